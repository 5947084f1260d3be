"""What is asked in each arm of a case that invokes the skill:
they differ by that alone.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.invocation import Invocation
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.trials.arm import Arm, arms_of
from pytest_upskill.trials.choice import choice_of
from pytest_upskill.trials.subject import Subject
from pytest_upskill.trials.trial import Question, question_of, sample_of
from support.kit import write_skill

INVOKE = Invocation("wick", "lamp 4")
CASE = Case("a", "lamp 4", invoke=INVOKE)
PLAIN = replace(CASE, invoke=None)


def arms(folder: Path, body: str = "# Wick\n\nTrim it.") -> dict[str, Arm]:
    skill = load_skill(write_skill(folder / "wick", body=body) / "SKILL.md")
    return {arm.name: arm for arm in arms_of(skill, Settings(), agents=True)}


def asked(case: Case, arm: Arm, agent: str) -> Question:
    return question_of(case, Subject(agent, "haiku"), arm, Settings())


@pytest.mark.parametrize("agent", ["chat", "loop", "claude"])
def test_the_baseline_is_asked_as_if_there_were_no_skill(
    tmp_path: Path, agent: str
) -> None:
    baseline = arms(tmp_path)["baseline"]
    question = asked(CASE, baseline, agent)
    assert question == asked(PLAIN, baseline, agent)
    assert question.content == asked(PLAIN, baseline, agent).content
    assert "wick" not in repr(question)


def test_an_agent_gets_the_same_question_and_the_invocation(tmp_path: Path) -> None:
    skill = arms(tmp_path)["skill"]
    question, plain = asked(CASE, skill, "claude"), asked(PLAIN, skill, "claude")
    assert question.task
    assert question.task.invoke == INVOKE
    assert question == replace(plain, task=question.task)
    assert question.content != plain.content
    other = asked(replace(CASE, invoke=Invocation("wick", "lamp 5")), skill, "claude")
    assert other.content != question.content
    assert other.compared == question.compared


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Trim it.", "lamp 4", "Trim it."),
        ("Trim $ARGUMENTS.", "lamp 4", "Trim lamp 4."),
        ("Trim it.", "4", "Trim it.\n\nARGUMENTS: 4"),
    ],
)
def test_a_plain_completion_has_the_text_with_the_arguments(
    tmp_path: Path, body: str, arguments: str, text: str
) -> None:
    both = arms(tmp_path, body)
    case = replace(CASE, invoke=Invocation("wick", arguments))
    question, baseline = (
        asked(case, both["skill"], "chat"),
        asked(case, both["baseline"], "chat"),
    )
    expected = asked(PLAIN, replace(both["skill"], text=text), "chat")
    assert question == expected
    assert question.messages == baseline.messages == (("user", "lamp 4"),)


def test_a_plain_completion_is_told_which_skill_of_a_bundle_is_meant(
    tmp_path: Path,
) -> None:
    bundle = replace(
        arms(tmp_path)["skill"], text="# Wick\n\n# Saw", tested=("saw", "wick")
    )
    assert "# Saw\n\n/wick lamp 4\n" in asked(CASE, bundle, "chat").system
    without = replace(bundle, tested=("saw",))
    assert asked(CASE, without, "chat") == asked(PLAIN, without, "chat")


def test_cases_that_invoke_otherwise_are_other_cases() -> None:
    other = replace(CASE, invoke=Invocation("wick", "lamp 5"))
    assert len({sample_of(case) for case in (CASE, PLAIN, other)}) == 3
    assert len({case_digest(case) for case in (CASE, PLAIN, other)}) == 3


def test_a_model_does_not_choose_a_skill_for_users_only(tmp_path: Path) -> None:
    skill = arms(tmp_path)["skill"]
    assert choice_of(skill).names == ("wick",)
    file = tmp_path / "wick" / "SKILL.md"
    file.write_text(
        file.read_text().replace("---\n", "---\ndisable-model-invocation: true\n", 1)
    )
    assert choice_of(replace(skill, name="again")).names == ()
