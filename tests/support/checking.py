"""What the tests of checks share: answers graded by an ``expected``."""

from typing import Any

import pytest

from pytest_upskill._util.json_forms import FormError
from pytest_upskill.checks import KINDS, grade, parse_checks
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade


def graded(expected: Any, answer: str | Answer) -> tuple[Grade, ...]:
    given = Answer(answer) if isinstance(answer, str) else answer
    return grade(parse_checks(expected, KINDS, ()), given)


def passes(answer: str | Answer, **expected: Any) -> bool:
    return all(one.passed for one in graded(expected, answer))


def reason(answer: str | Answer, **expected: Any) -> str:
    (only,) = graded(expected, answer)
    return only.reason


def refused(expected: Any) -> str:
    """The error for an invalid ``expected``."""
    with pytest.raises(FormError) as caught:
        parse_checks(expected, KINDS, ())
    return str(caught.value)
