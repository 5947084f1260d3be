"""All checks of an answer share one time budget."""

import json
from typing import Any, Final

import pytest

from pytest_upskill.checks import languages, time_budget
from pytest_upskill.checks.check import Check, places, spans
from pytest_upskill.checks.grading import ToGrade, grade, records_of
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.checks.parse import parse_checks
from pytest_upskill.checks.python_checks import function_kind
from pytest_upskill.errors import CheckError
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question, Trial

HANGING: Final = "a" * 5_000 + "b"
SLOW: Final = "(a+)+$"


class Clock:
    """Time that passes only when it is told to, or a little with every look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The CPU time of the thread."""
    clock = Clock()
    monkeypatch.setattr(time_budget, "thread_time", clock)
    return clock


@pytest.fixture
def real_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time_budget, "monotonic", clock)
    return clock


def checks_for(expected: Any) -> Any:
    return parse_checks(expected, KINDS, ())


@pytest.mark.usefixtures("short_timeouts")
def test_twenty_slow_patterns_take_no_longer_than_one() -> None:
    """The first of them uses the budget up, and none of the others is tried."""
    many = ["b", *(f"(a+)+[{letter}]" for letter in "cdefghijklmnopqrstuvw")]
    for expected in ({"regex": many}, [{"regex": one} for one in many]):
        with pytest.raises(CheckError, match=r"regex \"\(a\+\)\+\[c\]\" was not done"):
            grade(checks_for(expected), Answer(HANGING))


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize("around", ["any_of", "all_of"])
def test_groups_and_optional_checks_share_the_budget(around: str) -> None:
    expected = [{"contains": "a"}, {around: [{"regex": SLOW}], "required": False}]
    with pytest.raises(CheckError, match="timed out: an answer's checks have"):
        grade(checks_for(expected), Answer(HANGING))


@pytest.mark.usefixtures("short_timeouts")
def test_an_answer_whose_checks_time_out_is_errored_not_failed() -> None:
    checks = checks_for({"regex": SLOW})
    trial = Trial("s", "c", "m", "skill", 1, Question("m", "", (("user", "q"),), 10, 1))
    answer = Answer(HANGING)
    graded = [ToGrade(trial, Case("c", "q"), checks)]
    (record,) = records_of(graded, lambda asked: [answer for _ in asked])
    assert (record.outcome, record.output, record.score) == ("errored", HANGING, None)
    assert "Simplify it" in (record.error or "")


def check_that_takes(seconds: float, clock: Clock) -> Check:
    def tick(*_: Any) -> list[Any]:
        clock.now += seconds
        return [(True, "fine")]

    kind = KINDS["contains"]
    return Check(type(kind)("slow", kind.argument, tick), None)


def test_many_quick_checks_use_it_up_too(clock: Clock) -> None:
    slow = check_that_takes(1, clock)
    assert len(grade([slow] * 5, Answer("x"))) == 5
    with pytest.raises(CheckError, match="slow was not done"):
        grade([slow] * 6, Answer("x"))


def test_what_else_the_machine_does_takes_nothing_from_it(real_clock: Clock) -> None:
    """But a check that only waits does not wait forever."""
    waits = check_that_takes(10, real_clock)
    assert len(grade([waits] * 6, Answer("x"))) == 6
    with pytest.raises(CheckError, match="slow was not done"):
        grade([waits] * 7, Answer("x"))


def test_the_time_of_own_functions_does_not_count(
    clock: Clock, real_clock: Clock
) -> None:
    def own(*_: Any) -> bool:
        clock.now += 3600
        real_clock.now += 3600
        return True

    check = Check(function_kind("own", own), 1)
    assert all(
        one.passed
        for one in grade([check, *checks_for({"contains": "x"})], Answer("x"))
    )


def test_each_answer_has_its_own(clock: Clock) -> None:
    for _ in range(3):
        clock.now += 4
        grade(checks_for({"regex": "x"}), Answer("x"))


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"yaml": True}, "- a\n" * 50),
        ({"json_schema": {"items": {"type": "integer"}}}, json.dumps([1] * 50)),
        ({"json_path": ["$.a"] * 50}, "{}"),
        ({"regex": ["x"] * 50}, "x"),
        ({"words": ["x"] * 50}, "x"),
        ({"parses": "shell"}, "```sh\nls\n```\n" * 50),
        ({"toml": True}, "```toml\n[\n```\n" * 50),
    ],
    ids=str,
)
def test_every_kind_that_may_take_long_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch, expected: Any, text: str
) -> None:
    monkeypatch.setattr(time_budget, "thread_time", Clock(step=0.2))
    monkeypatch.setitem(languages.PARSERS, "shell", _quick_shell)
    with pytest.raises(CheckError, match="timed out"):
        grade(checks_for(expected), Answer(text))


def _quick_shell(_: str) -> None:
    time_budget.seconds_left()


@pytest.mark.usefixtures("short_timeouts")
def test_highlighting_stops_when_its_time_is_over() -> None:
    checks = checks_for([{"contains": "b"}, *({"regex": SLOW} for _ in range(20))])
    assert spans(places(checks, [1] * len(checks), HANGING)) == [(5_000, 5_001)]
