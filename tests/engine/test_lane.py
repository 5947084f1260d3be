"""How many calls a lane has in flight, and how long it waits before a retry."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.lane import Limit, pause


def test_limit_starts_at_eight_and_doubles_after_each_clean_round() -> None:
    limit = Limit(64)
    seen = [limit.allowed]
    for _ in range(8 + 16 + 32 + 64):
        limit.answered()
        if limit.allowed != seen[-1]:
            seen.append(limit.allowed)
    assert seen == [8, 16, 32, 64]


def test_limit_never_exceeds_the_setting() -> None:
    assert Limit(3).allowed == 3
    limit = Limit(10)
    for _ in range(100):
        limit.answered()
    assert limit.allowed == 10


def test_rate_limit_shrinks_once_per_window() -> None:
    limit = Limit(64)
    for _ in range(8):
        limit.rate_limited(now=100.0, wait=5.0)
    assert limit.allowed == 5
    limit.rate_limited(now=104.9, wait=5.0)
    assert limit.allowed == 5
    limit.rate_limited(now=105.0, wait=5.0)
    assert limit.allowed == 3


def test_server_error_stops_growth_without_shrinking() -> None:
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
def test_limit_stays_between_one_and_the_maximum(events: list[str], most: int) -> None:
    limit = Limit(most)
    for time, event in enumerate(events):
        if event == "limited":
            limit.rate_limited(float(time), 0.5)
        else:
            getattr(limit, event)()
        assert 1 <= limit.allowed <= most


@given(st.integers(1, 10), st.randoms())
def test_pauses_double_up_to_twenty_seconds(attempt: int, random: Random) -> None:
    longest = min(20.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= pause(attempt, None, random) <= longest


@given(st.floats(0, 1000), st.randoms())
def test_retry_after_is_respected(seconds: float, random: Random) -> None:
    assert seconds <= pause(1, seconds, random) <= seconds * 1.1 + 0.06
