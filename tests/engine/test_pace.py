"""How many calls are in flight, when the next one starts, and how long a retry
waits.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.pace import ALONE, PATIENCE, Limit, Pace, is_near, pause


def limit_with(most: int, in_flight: int) -> Limit:
    limit = Limit(most)
    limit.in_flight = in_flight
    return limit


def refuse(limit: Limit, calls: int) -> None:
    """The server refuses these of the calls in flight."""
    for _ in range(calls):
        limit.refused()
        limit.in_flight -= 1


def test_limit_starts_at_the_users() -> None:
    assert Limit(50).allowed == 50


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/v1",
        "http://127.0.0.1/v1",
        "http://[::1]:8000/v1",
        "http://[::ffff:127.0.0.1]:8000",
        "http://0.0.0.0:8000",
        "http://10.1.2.3/v1",
        "http://172.16.0.9/v1",
        "https://192.168.1.20:11434/v1",
        "http://100.64.0.7:8000",
        "http://[fe80::1%25eth0]:8000",
        "http://llama:8080/v1",
        "http://box.local/v1",
        "http://host.docker.internal:11434",
    ],
)
def test_server_on_this_machine_or_in_its_network_is_near(url: str) -> None:
    assert is_near(url)


@pytest.mark.parametrize(
    "url", ["", "https://api.example.com/v1", "https://8.8.8.8/v1"]
)
def test_other_servers_are_not_near(url: str) -> None:
    assert not is_near(url)


def test_call_without_an_answer_in_time_halves_the_limit() -> None:
    limit = limit_with(64, in_flight=20)
    limit.timed_out()
    assert limit.allowed == 10
    limit.in_flight = 1
    limit.timed_out()
    assert limit.allowed == 1


def test_what_was_not_refused_becomes_the_limit() -> None:
    limit = limit_with(50, in_flight=50)
    refuse(limit, 42)
    assert limit.allowed == 8
    assert not limit.has_room()
    limit.in_flight -= 1
    assert limit.has_room()


def test_limit_grows_by_an_eighth_after_each_good_round() -> None:
    limit = limit_with(50, in_flight=50)
    refuse(limit, 34)
    seen = [limit.allowed]
    for _ in range(16 + 18 + 20 + 22):
        limit.answered()
        if limit.allowed != seen[-1]:
            seen.append(limit.allowed)
    assert seen == [16, 18, 20, 22, 24]


def test_limit_never_exceeds_the_setting() -> None:
    limit = limit_with(10, in_flight=10)
    refuse(limit, 3)
    for _ in range(100):
        limit.answered()
    assert limit.allowed == 10


def test_server_error_stops_growth_without_shrinking() -> None:
    limit = limit_with(50, in_flight=50)
    refuse(limit, 42)
    for _ in range(7):
        limit.answered()
    limit.failed()
    limit.answered()
    assert limit.allowed == 8
    for _ in range(7):
        limit.answered()
    assert limit.allowed == 9


def test_limit_doubles_after_a_time_in_which_nothing_was_taken() -> None:
    limit = limit_with(50, in_flight=1)
    refuse(limit, 1)
    limit.start_over()
    for _ in range(1 + 2 + 4):
        limit.answered()
    assert limit.allowed == 8
    limit.in_flight = 8
    refuse(limit, 1)
    for _ in range(7):
        limit.answered()
    assert limit.allowed == 8


@given(
    st.lists(st.sampled_from(["answered", "failed", "refused", "start_over"])),
    st.integers(1, 200),
)
def test_limit_stays_between_one_and_the_maximum(events: list[str], most: int) -> None:
    limit = Limit(most)
    for event in events:
        limit.in_flight = limit.allowed
        getattr(limit, event)()
        assert 1 <= limit.allowed <= most


def test_first_call_goes_alone_until_it_is_answered_or_taken() -> None:
    pace = Pace()
    pace.start(10.0)
    assert pace.opens_at == 10.0 + ALONE
    assert pace.lets_in(1)
    pace.answered()
    assert pace.opens_at == 0.0


def test_server_that_takes_nothing_is_asked_by_one_call_after_the_other() -> None:
    pace, random, now, waits = Pace(), Random(0), 0.0, []
    while pace.close(now, 0.01, None, random) <= PATIENCE:
        assert not pace.lets_in(1)
        waits.append(pace.opens_at - now)
        now = pace.opens_at
        pace.start(now)
    assert now <= PATIENCE
    assert 10 < len(waits) < 60
    assert max(waits) <= 8


def test_calls_go_alone_for_longer_if_refusals_are_slow() -> None:
    pace = Pace()
    pace.close(100.0, 2.0, 1.0, Random(0))
    pace.start(200.0)
    assert pace.opens_at == 203.0
    pace.close(210.0, 60.0, 1.0, Random(0))
    pace.start(300.0)
    assert pace.opens_at == 305.0


@given(st.integers(1, 10), st.randoms())
def test_pauses_double_up_to_twenty_seconds(attempt: int, random: Random) -> None:
    longest = min(20.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= pause(attempt, None, random) <= longest


@given(st.floats(0, 1000), st.randoms())
def test_retry_after_is_respected(seconds: float, random: Random) -> None:
    assert seconds <= pause(1, seconds, random) <= seconds * 1.1 + 0.06


@given(st.integers(2, 10_000), st.randoms())
def test_retry_after_is_not_enough_if_it_was_wrong_before(
    attempt: int, random: Random
) -> None:
    assert (
        pause(attempt, 0.0, random) >= min(20.0, 0.5 * 2.0 ** min(attempt - 1, 10)) / 4
    )
