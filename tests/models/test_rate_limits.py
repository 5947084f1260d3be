"""What headers say about rate limits; anything may stand in them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.models.rate_limits import quotas_of
from pytest_upskill.trials.answer import Quota

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def openai(left: str, most: str, reset: str, of: str = "requests") -> dict[str, str]:
    fields = {"remaining": left, "limit": most, "reset": reset}
    return {f"x-ratelimit-{field}-{of}": value for field, value in fields.items()}


def anthropic(left: str, most: str, reset: str, of: str = "requests") -> dict[str, str]:
    fields = {"remaining": left, "limit": most, "reset": reset}
    return {
        f"anthropic-ratelimit-{of}-{field}": value for field, value in fields.items()
    }


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("1h2m3.5s", 3723.5),
        ("120ms", 0.12),
        ("30", 30),
        ("2026-11-15T12:00:20Z", 20),
        ("1794744030", 30),
    ],
)
def test_reset_is_read_in_all_forms(reset: str, seconds: float) -> None:
    for headers in (openai("40", "100", reset), anthropic("40", "100", reset)):
        [quota] = quotas_of(headers, NOW)
        assert (quota.of, quota.left, quota.most) == ("requests", 40, 100)
        assert quota.per_second == pytest.approx(60 / seconds)


def test_each_limit_is_its_own() -> None:
    headers = {
        **anthropic("4", "10", "2026-11-15T12:00:06Z"),
        **anthropic("1000", "5000", "2026-11-15T12:00:40Z", "input-tokens"),
        **anthropic("100", "200", "2026-11-15T12:00:50Z", "output-tokens"),
    }
    found = [
        (quota.of, quota.left, quota.per_second) for quota in quotas_of(headers, NOW)
    ]
    assert found == [("requests", 4, 1), ("input", 1000, 100), ("output", 100, 2)]


def test_without_the_limit_at_least_one_more_comes_back() -> None:
    assert quotas_of(openai("0", "", "2s"), NOW) == (Quota("requests", 0, 1, 0.5),)


@pytest.mark.parametrize(
    ("left", "most", "reset"),
    [
        ("nan", "10", "1s"),
        ("-1", "10", "1s"),
        ("inf", "10", "1s"),
        ("many", "10", "1s"),
        ("", "10", "1s"),
        ("0", "10", "nan"),
        ("0", "10", "inf"),
        ("0", "10", "-1s"),
        ("0", "10", "0s"),
        ("0", "10", "later"),
        ("0", "10", "1s1"),
        ("0", "10", "2026-11-15T12:00:20"),
        ("0", "10", "2026-11-15T11:00:00Z"),
        ("0", "10", "s" * 10_000),
        ("0", "1e308", "1e-308"),
        ("10", "10", "1s"),
        ("20", "10", "1s"),
    ],
)
def test_nonsense_is_left_out(left: str, most: str, reset: str) -> None:
    assert quotas_of(openai(left, most, reset), NOW) == ()


numbers = st.one_of(st.text(max_size=20), st.floats().map(str), st.integers().map(str))


@given(numbers, numbers, numbers)
def test_every_quota_is_a_sensible_number(left: str, most: str, reset: str) -> None:
    for quota in quotas_of(openai(left, most, reset), NOW):
        assert 0 <= quota.left < quota.most
        assert 0 < quota.per_second < 1e9
