"""Checks in Python, and what they are called with."""

from pathlib import Path

from pytest_upskill.checks import Check, CheckContext, function_kind, grade, python_kind
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.answer import Answer

ANSWER = Answer("gate up")
CASE = Case("open", "How?")


def test_registered_check_gets_the_context() -> None:
    kind = function_kind("own", lambda context: context == CheckContext(ANSWER, CASE, 3))
    (only,) = grade([Check(kind, 3)], ANSWER, case=CASE)
    assert only.passed


OWN = """
def is_open(context):
    return (context.answer.text, context.case.id, context.value) == ("gate up", "open", None)
"""


def test_function_of_the_skill_gets_the_context(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(OWN)
    kind = python_kind(tmp_path, allowed=True)
    argument = kind.argument.validate_python("checks.py:is_open")
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
