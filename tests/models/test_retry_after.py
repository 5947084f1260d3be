"""How long a server asks to wait; anything may stand in its headers."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.models.sdk_errors import retry_after

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": header}, NOW) == seconds


def test_retry_after_in_milliseconds_is_more_exact() -> None:
    assert retry_after({"retry-after": "1", "retry-after-ms": "250"}, NOW) == 0.25
    assert retry_after({"retry-after": "1", "retry-after-ms": "soon"}, NOW) == 1
    assert retry_after({}, NOW) is None


texts = st.one_of(st.text(max_size=20), st.floats().map(str), st.integers().map(str))


@given(texts, texts)
def test_no_wait_is_negative_or_endless(header: str, milliseconds: str) -> None:
    wait = retry_after({"retry-after": header, "retry-after-ms": milliseconds}, NOW)
    assert wait is None or 0 <= wait < float("inf")
