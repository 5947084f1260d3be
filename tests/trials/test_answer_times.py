"""Which stored answers are too old to be compared with others."""

import time
from dataclasses import replace

import pytest

from pytest_upskill.trials.answer import Answer, joined
from pytest_upskill.trials.answer_times import are_apart, find_outdated, outdated
from pytest_upskill.trials.trial import Question

HOUR, DAY = 3600, 86_400
BASELINE = Question("m", "Be brief.", (("user", "Open?"),), 64, 1)
SKILL = replace(BASELINE, system="Say yes.")


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(time, "time", lambda: 100.0 * DAY)
    return 100 * DAY


@pytest.mark.parametrize(
    ("ages", "again"),
    [
        ({"baseline": HOUR, "skill": None}, []),  # a second edit within an hour
        ({"baseline": 25 * HOUR, "skill": None}, ["baseline"]),
        ({"baseline": 9 * DAY, "skill": 9 * DAY}, []),  # of one day, and nothing new
        ({"baseline": 3 * DAY, "skill": HOUR}, ["baseline"]),
        ({"baseline": 9 * DAY, "skill": 3 * DAY}, ["baseline", "skill"]),
        (
            {"baseline": 9 * DAY, "previous": 9 * DAY, "skill": None},
            ["baseline", "previous"],
        ),
        ({"baseline": -5 * DAY, "skill": None}, ["baseline"]),  # a clock was wrong
        ({"baseline": -5 * DAY, "skill": -5 * DAY}, []),
        ({"baseline": None, "skill": None}, []),
    ],
)
def test_what_is_asked_again(
    ages: dict[str, int | None], again: list[str], now: int
) -> None:
    times = {arm: None if age is None else now - age for arm, age in ages.items()}
    assert outdated(times, DAY) == again
    # Once that is done, nothing is asked any more.
    done = {
        arm: now if arm in again or asked is None else asked
        for arm, asked in times.items()
    }
    assert outdated(done, DAY) == []


def test_only_arms_of_the_same_question_and_run_are_compared(now: int) -> None:
    times = {BASELINE.key: now - 3 * DAY}

    def marks(*questions: Question, max_age: float = DAY) -> list[bool]:
        keys = find_outdated(questions, lambda one: times.get(one.key), max_age)
        return [one.key in keys for one in questions]

    other_case = replace(SKILL, messages=(("user", "Closed?"),))
    assert marks(BASELINE, SKILL) == [True, False]
    assert marks(BASELINE, SKILL, max_age=1e11) == [False, False]
    for other in (other_case, replace(SKILL, run=2), replace(SKILL, model="n")):
        assert marks(BASELINE, other) == [False, False]


def test_times_that_are_not_known_do_not_count() -> None:
    assert not are_apart([None, 0], DAY)
    assert not are_apart([], DAY)
    assert are_apart([0, None, DAY + 1], DAY)
    answers = [Answer("a", asked_at=7), Answer("b"), Answer("c", asked_at=5)]
    assert joined(answers).asked_at == 5
