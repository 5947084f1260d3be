"""The numbers of the engine: how much at once, how long until the next try."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.lane import Limit, pause
from pytest_upskill.models.sdk import retry_after_seconds

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)


def test_a_limit_starts_at_eight_and_doubles_after_each_clean_round() -> None:
    limit = Limit(64)
    seen = [limit.allowed]
    for _ in range(8 + 16 + 32 + 64):
        limit.answered()
        if limit.allowed != seen[-1]:
            seen.append(limit.allowed)
    assert seen == [8, 16, 32, 64]


def test_a_limit_never_passes_what_the_user_allows() -> None:
    assert Limit(3).allowed == 3
    limit = Limit(10)
    for _ in range(100):
        limit.answered()
    assert limit.allowed == 10


def test_a_rate_limit_shrinks_once_per_window_however_many_calls_hear_of_it() -> None:
    limit = Limit(64)
    for _ in range(8):
        limit.rate_limited(now=100.0, wait=5.0)
    assert limit.allowed == 5
    limit.rate_limited(now=104.9, wait=5.0)
    assert limit.allowed == 5
    limit.rate_limited(now=105.0, wait=5.0)
    assert limit.allowed == 3


def test_a_fault_of_the_server_holds_growth_and_does_not_shrink() -> None:
    limit = Limit(64)
    for _ in range(7):
        limit.answered()
    limit.failed()
    limit.answered()
    assert limit.allowed == 8
    for _ in range(7):
        limit.answered()
    assert limit.allowed == 16


@given(st.lists(st.sampled_from(["answered", "failed", "limited"])), st.integers(1, 200))
def test_a_limit_stays_between_one_and_the_most(events: list[str], most: int) -> None:
    limit = Limit(most)
    for time, event in enumerate(events):
        if event == "limited":
            limit.rate_limited(float(time), 0.5)
        else:
            getattr(limit, event)()
        assert 1 <= limit.allowed <= most


@given(st.integers(1, 10), st.randoms())
def test_pauses_grow_and_are_never_longer_than_twenty_seconds(attempt: int, random: Random) -> None:
    longest = min(20.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= pause(attempt, None, random) <= longest


@given(st.floats(0, 1000), st.randoms())
def test_a_server_is_left_alone_as_long_as_it_wants(seconds: float, random: Random) -> None:
    assert seconds <= pause(1, seconds, random) <= seconds * 1.1 + 0.06


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds
