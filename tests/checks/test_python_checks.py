"""Checks in Python, and what they are called with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import Check, CheckContext, function_kind, grade, python_kind
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.answer import Answer

ANSWER = Answer("gate up")
CASE = Case("open", "How?")


def takes_context(context: Any) -> bool:
    return bool(context == CheckContext(ANSWER, CASE, 3))


def annotated(it: CheckContext, strict: bool = True) -> bool:
    return strict and takes_context(it)


def annotated_by_name(it: "CheckContext", *, strict: bool = True) -> bool:
    return strict and takes_context(it)


def takes_one(it: Any) -> bool:
    return takes_context(it)


def takes_two(answer: Answer, value: int) -> bool:
    return (answer, value) == (ANSWER, 3)


def takes_all(*given: Any) -> bool:
    return given == (ANSWER, 3)


def second_by_default(answer: Answer, value: int = 4) -> bool:
    return takes_two(answer, value)


class Callee:
    def __call__(self, context: Any) -> bool:
        return takes_context(context)


@pytest.mark.parametrize(
    "function",
    [
        takes_context,
        annotated,
        annotated_by_name,
        takes_one,
        takes_two,
        takes_all,
        second_by_default,
        Callee(),
    ],
)
def test_registered_check_gets_context_or_answer_and_value(
    function: Callable[..., bool],
) -> None:
    kind = function_kind("own", function)
    (only,) = grade([Check(kind, 3)], ANSWER, case=CASE)
    assert only.passed


OWN = """
def plain(answer):
    return answer.text == "gate up"

def with_context(context):
    return (context.answer.text, context.case.id, context.value) == ("gate up", "open", None)

def annotated(it: "pytest_upskill.CheckContext"):
    return with_context(it)
"""


@pytest.mark.parametrize("name", ["plain", "with_context", "annotated"])
def test_function_of_the_skill_gets_answer_or_context(tmp_path: Path, name: str) -> None:
    (tmp_path / "checks.py").write_text(OWN)
    kind = python_kind(tmp_path, allowed=True)
    argument = kind.argument.validate_python(f"checks.py:{name}")
    (only,) = grade([Check(kind, argument)], ANSWER, case=CASE)
    assert only.passed


def test_context_does_not_reveal_the_arm() -> None:
    fields = list(CheckContext.__dataclass_fields__)
    assert fields == [
        *(
            "answer",
            "case",
            "value",
            "case_sensitive",
            "rulings",
            "why_not_gradable",
            "text_name",
            "final_workspace",
        )
    ]
