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


def takes_context(context: Any, strict: bool = True) -> bool:
    return strict and context == CheckContext(ANSWER, CASE, 3)


def takes_annotated(it: CheckContext) -> bool:
    return takes_context(it)


def takes_annotated_by_name(it: "CheckContext", *, strict: bool = True) -> bool:
    return takes_context(it, strict)


def takes_answer(text: Answer, *, strict: bool = True) -> bool:
    return strict and text == ANSWER


def takes_answer_and_value(answer: Answer, value: int = 4) -> bool:
    return (answer, value) == (ANSWER, 3)


def takes_all(*arguments: Any) -> bool:
    return arguments == (ANSWER, 3)


class Callee:
    def __call__(self, context: Any) -> bool:
        return takes_context(context)


@pytest.mark.parametrize(
    "function",
    [
        *(takes_context, takes_annotated, takes_annotated_by_name, Callee()),
        *(takes_answer, takes_answer_and_value, takes_all),
    ],
)
def test_registered_check_gets_the_context_or_the_answer_and_the_value(
    function: Callable[..., bool],
) -> None:
    kind = function_kind("own", function)
    (only,) = grade([Check(kind, 3)], ANSWER, case=CASE)
    assert only.passed


OWN = """
def with_context(context):
    found = (context.answer.text, context.case.id, context.value)
    return found == ("gate up", "open", None)

def annotated(it: "pytest_upskill.CheckContext"):
    return with_context(it)

def plain(answer, strict=True):
    return strict and answer.text == "gate up"
"""


@pytest.mark.parametrize("name", ["with_context", "annotated", "plain"])
def test_function_of_the_skill_gets_the_context_or_the_answer(
    tmp_path: Path, name: str
) -> None:
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
