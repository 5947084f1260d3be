"""What the tests of checks share: answers graded by an ``expected``."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_upskill._util.json_forms import FormError
from pytest_upskill.checks import grade, parse_checks
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.trials.answer import Answer, AnswerFile
from pytest_upskill.trials.records import Grade
from pytest_upskill.trials.transcript import Activity, Turn


def graded(expected: Any, answer: str | Answer) -> tuple[Grade, ...]:
    given = Answer(answer) if isinstance(answer, str) else answer
    return grade(parse_checks(expected, KINDS, ()), given)


def agent_answer(
    *files: AnswerFile,
    calls: Sequence[tuple[str, Any]] = (),
    text: str = "Done.",
    stop: str = "end",
    **activity: Any,
) -> Answer:
    """An agent's answer; ``calls`` are names of tools with their arguments."""
    turns = tuple(
        Turn("call", json.dumps(arguments), tool) for tool, arguments in calls
    )
    done = Activity(**{"tool_calls": len(turns), "activated": True, **activity})
    return Answer(text, stop=stop, files=files, transcript=turns, activity=done)


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
