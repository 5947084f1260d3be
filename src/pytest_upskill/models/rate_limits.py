"""Rate limits in the headers of a reply.

Servers and proxies may send anything here: what is not a sensible number is left out.
"""

import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from ..trials.answer import Quota

# Headers of the remaining part, the limit and the time of its reset,
# for each rate limit.
_ANTHROPIC: Final = "anthropic-ratelimit-{of}-{field}"
_OPENAI: Final = "x-ratelimit-{field}-{of}"
_HEADERS: Final = (
    ("requests", _ANTHROPIC, "requests"),
    ("tokens", _ANTHROPIC, "tokens"),
    ("input", _ANTHROPIC, "input-tokens"),
    ("output", _ANTHROPIC, "output-tokens"),
    ("requests", _OPENAI, "requests"),
    ("tokens", _OPENAI, "tokens"),
)
_PART: Final = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|us|µs|ns|h|m|s)")
_SECONDS: Final = {
    "h": 3600,
    "m": 60,
    "s": 1,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}
_EPOCH: Final = 1e9  # a number from here on is a point in time

_last_quotas: ContextVar[tuple[Quota, ...]] = ContextVar("last_quotas", default=())


def last_quotas() -> tuple[Quota, ...]:
    """The quotas in the last reply that this task got."""
    return _last_quotas.get()


async def note_quotas(response: Any) -> None:
    """A hook of the SDKs' HTTP clients."""
    _last_quotas.set(quotas_of(response.headers, datetime.now(UTC)))


def quotas_of(headers: Mapping[str, str], now: datetime) -> tuple[Quota, ...]:
    """The rate limits that these headers, which ignore case, describe well enough."""
    return tuple(_quotas(headers, now))


def _quotas(headers: Mapping[str, str], now: datetime) -> Iterator[Quota]:
    for of, form, name in _HEADERS:
        remaining, limit, reset = (
            headers.get(form.format(of=name, field=field), "")
            for field in ("remaining", "limit", "reset")
        )
        if quota := _quota(
            of, _number(remaining), _number(limit), _seconds(reset, now)
        ):
            yield quota


def _quota(
    of: str, remaining: float | None, limit: float | None, reset: float | None
) -> Quota | None:
    """Both protocols give the time until all of it is back,
    and let it come back evenly.
    """
    if remaining is None or reset is None or reset <= 0:
        return None
    if limit is None:
        limit = remaining + 1  # at least
    per_second = (limit - remaining) / reset
    return Quota(of, remaining, limit, per_second) if 0 < per_second < _EPOCH else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _seconds(text: str, now: datetime) -> float | None:
    """The seconds until a reset: ``6m0s``, plain seconds, or a point in time."""
    number = _number(text)
    if number is not None:
        return number - now.timestamp() if number >= _EPOCH else number
    parts = _PART.findall(text)
    if parts and "".join(map("".join, parts)) == text:
        return sum(float(count) * _SECONDS[unit] for count, unit in parts)
    try:
        return (datetime.fromisoformat(text) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
