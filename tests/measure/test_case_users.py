"""Users of cases, before the first call."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError
from pytest_upskill.measure.assembly import Assembly
from pytest_upskill.measure.case_users import cases_with_user, use_users
from pytest_upskill.measure.estimate import calls_of_trial, cost_bound
from pytest_upskill.models.prices import Price
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case, CaseUser
from pytest_upskill.trials.arm import Arm
from pytest_upskill.trials.subject import Subject
from pytest_upskill.trials.trial import Trial, trials_of

FILE = Path("skill_meta.json")
FACTS = Case("facts", "Open?", line=7, user=CaseUser(("It is red.",), most=3))
FIXED = Case("fixed", "Close?", user=CaseUser(replies=("Red.",), most=1))
LOOP, GEMINI, CHAT = Subject("loop", "m"), Subject("gemini", "m"), Subject("chat", "m")
CHEAP = Settings(user_model="scripted:user.py:f")


def used(case: Case, *subjects: Subject, settings: Settings = CHEAP) -> Assembly:
    models = Assembly()
    use_users(models, [(FILE, case)], dict.fromkeys(subjects, "id"), settings)
    return models


def test_the_model_of_users_is_added_if_a_case_needs_it() -> None:
    assert used(FACTS, LOOP).user_model == "scripted:user.py:f"
    assert list(used(FACTS, LOOP).specs) == ["scripted:user.py:f"]
    for models in (
        used(FIXED, LOOP),
        used(FACTS, CHAT),
        used(replace(FACTS, skip="no"), LOOP),
    ):
        assert (models.user_model, models.specs) == ("", {})


def test_a_case_is_only_for_some_agents() -> None:
    only = replace(FACTS, models=("loop/*",))
    assert cases_with_user([(FILE, only)], {GEMINI: "id"}) == []
    assert used(only, LOOP, GEMINI).user_model


@pytest.mark.parametrize(
    ("case", "subject", "settings", "problem"),
    [
        (FACTS, GEMINI, CHEAP, "facts has a user, and gemini can't be answered"),
        (FACTS, LOOP, Settings(), "facts has a user with facts, and no model plays it"),
        (
            FACTS,
            LOOP,
            Settings(judge="claude/m", judge_agent="claude"),
            "the judge is an agent",
        ),
    ],
)
def test_what_can_not_be_answered_is_refused_with_its_place(
    case: Case, subject: Subject, settings: Settings, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        used(case, subject, settings=settings)
    assert str(caught.value).startswith("skill_meta.json:7: ")


def trial_of(case: Case) -> Trial:
    (trial,) = trials_of("gate", case, LOOP, [Arm("skill")], settings=CHEAP)
    return trial


def test_estimates_count_the_user() -> None:
    models = [calls.model for calls in calls_of_trial(trial_of(FACTS))]
    assert models == ["m", "scripted:user.py:f"]
    assert [calls.model for calls in calls_of_trial(trial_of(FIXED))] == ["m"]
    prices = {"m": Price(0.0, 0.0, 0.0), "scripted:user.py:f": Price(1.0, 1.0, 1.0)}
    assert cost_bound([trial_of(FACTS)], {}, prices.__getitem__).cost > 0
    assert cost_bound([trial_of(FIXED)], {}, prices.__getitem__).cost == 0
