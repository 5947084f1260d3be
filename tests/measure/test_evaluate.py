"""Measuring a skill without pytest."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.checks import load_checked_cases
from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.measure.evaluate import Evaluator
from pytest_upskill.models.prices import Price
from pytest_upskill.settings import Score, Settings
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.reading import read_suites
from pytest_upskill.trials.answer import Answer, AnswerFile, NoAnswer, Reply, Usage
from pytest_upskill.trials.arm import arms_of
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill

CASES = [
    case("How?", "gate up", id="how"),
    case("Why?", "gate up", id="why", xfail="it is hard"),
    case("Later?", "gate up", id="later", skip="not yet"),
    case("Only opus?", "gate up", id="opus", models=["opus"]),
]


@pytest.mark.parametrize("arms", [("baseline", "skill"), ("baseline",)])
def test_cases_are_asked_on_every_model_and_graded(
    tmp_path: Path, arms: Sequence[str]
) -> None:
    skill = load_skill(write_skill(tmp_path / "gate", CASES) / "SKILL.md")
    file = read_suites(skill.file.parent).path
    assert file

    def ask(questions: Sequence[Question]) -> list[Reply]:
        return [reply(question) for question in questions]

    def reply(question: Question) -> Reply:
        if "Why" in question.messages[-1][1] and question.model == "opus":
            return NoAnswer("opus: no answer")
        text = "gate up" if skill.body in question.system else "no idea"
        return Answer(text, Usage(1_000_000, 0, 0))

    models = {
        Subject(CHAT, "haiku"): "claude-haiku",
        Subject(CHAT, "opus"): "claude-opus",
    }
    evaluator = Evaluator(Settings(runs=2), ask, {"haiku": Price(1, 1, 1)}.get)
    chosen = [arm for arm in arms_of(skill, Settings()) if arm.name in arms]
    results = evaluator.evaluate(
        skill, load_checked_cases(file).require_all(), models, chosen
    )
    assert [(test.case, test.label) for test in results.tests] == [
        ("how", "haiku"),
        ("why", "haiku"),
        ("how", "opus"),
        ("why", "opus"),
        ("opus", "opus"),
    ]
    assert len(results.records) == 5 * len(arms) * 2
    assert {record.arm for record in results.records} == set(arms)
    outcomes = {(r.case, r.label, r.arm): (r.outcome, r.cost) for r in results.records}
    assert outcomes["how", "haiku", "baseline"] == ("failed", 1.0)
    assert outcomes["why", "opus", "baseline"] == ("errored", None)
    if "skill" in arms:
        assert outcomes["opus", "opus", "skill"] == ("passed", None)
    assert results.model_ids == {"haiku": "claude-haiku", "opus": "claude-opus"}
    assert results.questions["gate", "how"] == "How?"


@pytest.mark.parametrize(
    ("written", "chosen", "score"),
    [
        ({"cases": [case("How?", "gate up")]}, None, "pass"),
        ({"cases": [case("How?", "gate up")]}, "checks", "checks"),
        ({"evals": [{"prompt": "How?", "assertions": ["It helps."]}]}, None, "checks"),
        ({"evals": [{"prompt": "How?", "assertions": ["It helps."]}]}, "pass", "pass"),
    ],
)
def test_the_form_of_the_cases_decides_what_is_scored(
    tmp_path: Path, written: object, chosen: Score | None, score: Score
) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    file = tmp_path / "gate/skill_meta.json"
    file.write_text(json.dumps(written))
    cases = load_checked_cases(file).require_all()
    nobody = Settings(score=chosen)
    results = Evaluator(nobody, lambda _: [], lambda _: None).evaluate(
        skill, cases, {}, ()
    )
    assert [info.score for info in results.skills] == [score]


def test_agents_get_tasks_and_a_plain_question_none_of_their_cases(
    tmp_path: Path,
) -> None:
    left = {
        "id": "left",
        "input": "Write it.",
        "expected": {"files": {"a.md": {"exists": True}}},
    }
    folder = write_skill(tmp_path / "gate", [case("How?", "gate up", id="how"), left])
    skill = load_skill(folder / "SKILL.md")
    asked = list[Question]()

    def ask(questions: Sequence[Question]) -> list[Reply]:
        asked.extend(questions)
        files = (AnswerFile.of("a.md", b"text"),)
        return [
            (
                Answer(
                    "gate up", Usage(1, 1, 0), files=files, activity=Activity(turns=1)
                )
                if question.task and question.task.tested
                else Answer("no idea", Usage(1, 1, 0), activity=Activity(turns=1))
            )
            for question in questions
        ]

    results = Evaluator(Settings(), ask, lambda _: Price(1, 1, 1)).evaluate(
        skill,
        load_checked_cases(folder / "skill_meta.json").require_all(),
        {Subject(CHAT, "haiku"): "id", Subject("loop", "haiku"): "id"},
        ArmMaker(Settings()).arms(skill, agents=True),
    )
    tests = [(test.case, test.label) for test in results.tests]
    assert tests == [("how", "haiku"), ("how", "loop/haiku"), ("left", "loop/haiku")]
    assert {question.model for question in asked} == {"haiku"}
    assert sum(question.task is not None for question in asked) == 4
    passed = {
        (one.case, one.label) for one in results.records if one.outcome == "passed"
    }
    assert passed == {("how", "loop/haiku"), ("left", "loop/haiku")}
    assert all(record.cost for record in results.records)
    assert results.model_ids == {"haiku": "id", "loop/haiku": "id"}
