"""Skills on two models, on a terminal and in Markdown."""

from dataclasses import replace

import pytest

from pytest_upskill.features.drift import view
from pytest_upskill.features.drift.results import ModelChange, SkillOnModel
from pytest_upskill.features.drift.tables import (
    facts_of,
    model_change_table,
    score_table,
)
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.terminal.layout import TerminalLook, marks_for, text_width
from support.made import made_run
from support.made_studies import LONG, made_model_change
from support.pages import PAYLOADS


def spared(case: int, model: str, arm: str, _run: int) -> bool:
    """The new model needs no skill, and gets two cases wrong with it."""
    return (model == "new" or arm == "skill") and not (
        model == "new" and arm == "skill" and case < 2
    )


CHANGE = made_model_change(spared)


@pytest.fixture(scope="module")
def many() -> ModelChange:
    return made_model_change(
        spared, skills=(*(f"skill-{n}" for n in range(30)), LONG, *PAYLOADS)
    )


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbosity", [0, 1])
def test_it_fits_any_terminal(width: int, verbosity: int, many: ModelChange) -> None:
    look = TerminalLook(width, marks_for("utf-8"), verbosity=verbosity)
    for change in (CHANGE, many):
        assert max(map(text_width, view.lines(change, look))) <= width


def test_what_needs_attention_comes_first_and_the_others_are_folded(
    many: ModelChange,
) -> None:
    table = model_change_table(many, 12)
    assert len(table.rows) == 12
    assert (
        table.folded
        == f"{len(many.skills) - 12} more: {len(many.skills) - 12} lift fell"
    )
    helping = made_model_change(
        lambda _case, _model, arm, _run: arm == "skill", skills=("a",)
    )
    both = replace(CHANGE, skills=(*CHANGE.skills, *helping.skills))
    assert [row[0] for row in model_change_table(both).rows] == ["gate", "a"]


def test_lifts_have_intervals_where_there_is_room() -> None:
    headers = ("skill", "lift, old", "lift, new", "change", "broke", "verdict")
    (wide,), (brief,) = (
        model_change_table(CHANGE, brief=brief).rows for brief in (False, True)
    )
    assert model_change_table(CHANGE).headers == headers
    assert wide[1] == "+100 (+83 to +100)"
    assert brief == ("gate", "+100", "-10", wide[3], "2 cases", "lift fell")
    assert score_table(CHANGE).rows == (("gate", "0% → 100%", "100% → 90%", "20", "3"),)


def test_scores_stand_for_lifts_where_there_is_no_skill() -> None:
    (skill,) = CHANGE.skills
    old, new = (SkillOnModel(None, "", skill_score=score) for score in (1.0, 0.25))
    plain = replace(CHANGE, skills=(replace(skill, old=old, new=new),))
    assert model_change_table(plain).rows[0][1:3] == ("100%", "25%")


def test_the_facts_count_the_cases_that_were_asked() -> None:
    (skill,) = CHANGE.skills
    assert "20 cases × 3 runs" in facts_of(
        replace(CHANGE, skills=(replace(skill, cases=0),))
    )


def test_markdown_has_what_to_remember_and_a_table() -> None:
    text = markdown_summary(made_run(cases=0, sections=(CHANGE,)))
    assert "### From old to new\n" in text
    text = " ".join(text.split())
    assert "**On new: broke: gate (2 cases); lift fell: gate.** 1 skill · 20" in text
    assert "| gate | +100 (+83 to +100) | -10" in text
