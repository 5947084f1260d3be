"""The routing of a catalogue on a terminal and in Markdown."""

import pytest

from pytest_upskill.features.queries import routing_view as view
from pytest_upskill.features.queries.routing_view import (
    skill_table,
    wrong_table,
)
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.terminal.layout import TerminalLook, marks_for, text_width
from support.made import made_run
from support.made_studies import LONG, made_routing
from support.pages import PAYLOADS

MANY = made_routing(*PAYLOADS, LONG, skills=[f"skill-{number}" for number in range(40)])


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbosity", [0, 1])
def test_it_fits_any_terminal(width: int, verbosity: int) -> None:
    look = TerminalLook(width, marks_for("utf-8"), verbosity=verbosity)
    for routing in (made_routing(), MANY):
        assert max(map(text_width, view.lines(routing, look))) <= width


def test_the_table_of_what_is_wrong_has_what_fits_and_all_runs() -> None:
    routing = made_routing()
    table = wrong_table(routing, None, 8)
    assert table.opened == ("right", "(none)", "docx")
    assert table.rows == {"xlsx": (0, 2, 0), "pdf": (3, 0, 1), "(none)": (1, 0, 1)}
    narrow = wrong_table(routing, None, 1)
    assert narrow.opened == ("right", "(none)", "1 other")
    assert narrow.rows["pdf"] == (3, 0, 1)
    few = wrong_table(MANY, 2, 3)
    assert len(few.rows) == 2
    for row, cells in few.rows.items():
        assert sum(cells) == sum(MANY.table.rows[row])


def test_of_many_skills_only_those_with_something_wrong_are_listed() -> None:
    table = skill_table(MANY, 12)
    assert table.headers == ("skill", "right", "recall", "precision", "opened instead")
    assert len(table.rows) == 12
    assert table.rows[0][0] == "skill-0"  # the most queries that went wrong
    wrong = len(PAYLOADS) + 4 - 12
    assert (
        table.folded
        == f"{len(MANY.skills) - 12} more: {wrong} wrong, 37 without a query"
    )
    assert len(skill_table(MANY).rows) == len(MANY.skills)


def test_markdown_has_what_to_remember_and_a_table() -> None:
    text = markdown_summary(made_run(cases=0, sections=(made_routing(),)))
    assert "### Which skill each query opens\n" in text
    text = " ".join(text.split())
    assert "| xlsx | 0 of 1 | 0% (0% to 79%) | - | (none) 2 |" in text
    assert (
        "3 of 6 queries are routed right (1 missed, 1 wrong skill, 1 false alarm)"
        in text
    )
