"""Users of cases, before the first call."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError
from pytest_upskill.measure.estimate import TYPICAL, WORST, estimate_trials
from pytest_upskill.measure.open_run import AskedSkill, OpenRun, open_run
from pytest_upskill.measure.requirements import require_skills
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


def used(case: Case, *subjects: Subject, settings: Settings = CHEAP) -> OpenRun:
    """A run of these agents on a model that any of them may ask."""
    agents = tuple(subject.agent for subject in subjects)
    settings = replace(settings, agents=agents, models=("m",), base_url="http://m/v1")
    skills = [AskedSkill("gate", [(FILE, case)])]
    run = open_run(settings, skills)
    # Models of a server may have any name, so no judge there is an agent.
    run.settings = replace(run.settings, judge_agent=settings.judge_agent)
    require_skills(run, skills, print)
    return run


def test_the_model_of_users_is_added_if_a_case_needs_it() -> None:
    assert used(FACTS, LOOP).user_model == "scripted:user.py:f"
    assert list(used(FACTS, LOOP).models.specs) == ["m", "scripted:user.py:f"]
    for run in (
        used(FIXED, LOOP),
        used(FACTS, CHAT),
        used(replace(FACTS, skip="no"), LOOP),
    ):
        assert (run.user_model, list(run.models.specs)) == ("", ["m"])


def test_a_case_is_only_for_some_agents() -> None:
    only = replace(FACTS, models=("loop/*",))
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
    prices = {"m": Price(0.0, 0.0, 0.0), "scripted:user.py:f": Price(1.0, 1.0, 1.0)}
    for sizes in (TYPICAL, WORST):
        facts = estimate_trials([trial_of(FACTS)], prices.get, sizes=sizes)
        fixed = estimate_trials([trial_of(FIXED)], prices.get, sizes=sizes)
        assert facts.usd > 0
        assert fixed.usd == 0
