"""What a server says is left: calls wait for it, but never for long if it is wrong."""

from pytest_upskill.engine.quotas import Quotas
from pytest_upskill.trials.answer import Quota, Usage

USED = Usage(90, 10)


def told(
    left: float, most: float = 10, per_second: float = 1, of: str = "requests"
) -> Quota:
    return Quota(of, left, most, per_second)


def after_one_answer(*quotas: Quota, usage: Usage = USED) -> Quotas:
    """The state at 1 s, after a call that started at 0 s."""
    known = Quotas()
    known.start(1, 0.0)
    known.answered(1, quotas, usage)
    known.ended(1)
    return known


def believed(*quotas: Quota, usage: Usage = USED) -> Quotas:
    """The same after a call against what was told, which was refused at 1 s."""
    known = after_one_answer(*quotas, usage=usage)
    known.start(2, 1.0)
    known.refused(2, 1.0)
    known.ended(2)
    return known


def test_calls_start_as_long_as_something_is_left() -> None:
    known = after_one_answer(told(3, per_second=0.001))
    for number in range(2, 5):
        assert known.opens_at(1.0) == 1.0
        known.start(number, 1.0)
    known.start(5, 1.0)  # goes against it
    assert known.opens_at(1.0) > 1.0


def test_call_waits_until_enough_came_back() -> None:
    known = believed(told(0, per_second=0.1))
    assert known.opens_at(1.0) == 10.0
    assert known.opens_at(10.0) == 10.0


def test_nothing_said_is_believed_for_more_than_a_minute() -> None:
    known = believed(told(0, per_second=1e-9))
    assert known.opens_at(1.0) == 61.0
    assert known.opens_at(61.0) == 61.0


def test_no_more_comes_back_than_there_is() -> None:
    known = believed(told(0, most=2, per_second=0.5))
    for number in (3, 4):
        assert known.opens_at(50.0) == 50.0
        known.start(number, 50.0)
    assert known.opens_at(50.0) > 50.0


def test_what_is_wrong_is_soon_ignored() -> None:
    known = after_one_answer(told(0, per_second=1e-9))
    number = at_once = 1
    for now in range(2, 9):
        started: list[int] = []
        while known.opens_at(now) == now and len(started) < 64:
            number += 1
            started.append(number)
            known.start(number, now)
        at_once = max(at_once, len(started))
        for one in started:
            known.answered(one, (told(0, per_second=1e-9),), USED)
            known.ended(one)
    assert at_once == 64


def test_tokens_are_counted_by_the_mean_of_the_answers() -> None:
    assert believed(told(100, 1000, 10, "tokens")).opens_at(1.0) == 1.0
    assert believed(told(95, 1000, 1, "tokens")).opens_at(1.0) == 5.0
    assert believed(told(15, 1000, 1, "output")).opens_at(1.0) == 1.0
    assert believed(told(15, 1000, 25, "input")).opens_at(1.0) == 3.0


def test_tokens_that_no_answer_counts_are_not_waited_for() -> None:
    assert believed(told(0, 1000, 1, "tokens"), usage=Usage()).opens_at(1.0) == 1.0


def test_order_of_calls_that_start_together_does_not_matter() -> None:
    known = Quotas()
    for number in range(1, 5):
        known.start(number, 0.0)
    for number, left in ((2, 8), (4, 9), (1, 6), (3, 7)):  # as they happened to arrive
        known.answered(number, (told(left, per_second=0.001),), USED)
        known.ended(number)
    for number in range(5, 11):
        assert known.opens_at(1.0) == 1.0
        known.start(number, 1.0)
    known.start(11, 1.0)
    assert known.opens_at(1.0) > 1.0


def test_nonsense_of_an_adapter_is_ignored() -> None:
    nan = float("nan")
    for quota in (told(0, per_second=0), told(-1), told(nan), told(0, per_second=nan)):
        assert believed(quota).opens_at(1.0) == 1.0


def test_call_that_ends_without_an_answer_holds_nobody_up() -> None:
    known = after_one_answer(told(0, per_second=1e-9))
    known.start(2, 1.0)
    assert known.opens_at(1.0) > 1.0
    known.ended(2)
    assert known.opens_at(1.0) == 1.0
