"""Rate-limit headers: start no call that the server would refuse.

Headers may be wrong, so single calls ignore them, as probes. If a probe is refused, the
header is trusted for a minute; if it is answered, more is left than the header says.
"""

from dataclasses import dataclass
from typing import Final

from ..trials.answer import Quota, Usage

_TRUSTED: Final = 60.0  # seconds
# Calls that start within so many seconds may arrive in any order
_TOGETHER: Final = 0.05
_ROUNDING: Final = 1e-6


@dataclass
class _RateLimit:
    """What was left of one rate limit when a call arrived, by the header of its
    reply.
    """

    quota: Quota
    started: float  # when the call started
    trusted_until: float = 0.0
    probe: int | None = None  # the number of a call in flight that ignores it
    extra: float = 0.0  # beyond what the header says

    def update(self, quota: Quota, started: float) -> None:
        """Later calls know better; of calls that started together,
        the one with less left.
        """
        if started > self.started + _TOGETHER or (
            started > self.started - _TOGETHER and quota.left < self.quota.left
        ):
            self.quota, self.started = quota, max(started, self.started)

    def remaining(self, now: float) -> float:
        quota = self.quota
        refilled = quota.per_second * max(0.0, now - self.started)
        return min(quota.most, quota.left + refilled) + self.extra


class Quotas:
    """The rate limits of one model."""

    def __init__(self) -> None:
        self._limits: dict[str, _RateLimit] = {}
        self._started: dict[int, float] = {}  # when calls started that were not refused
        self._in_flight = set[int]()
        self._answers = 0
        self._tokens = {"input": 0, "output": 0}

    def opens_at(self, now: float) -> float:
        """When the next call may start."""
        return max(
            (self._fits_at(limit, now) for limit in self._limits.values()), default=now
        )

    def start(self, number: int, now: float) -> None:
        for limit in self._limits.values():
            if not limit.probe and self._missing(limit, now):
                limit.probe = number
        self._started[number] = now
        self._in_flight.add(number)

    def answered(self, number: int, quotas: tuple[Quota, ...], usage: Usage) -> None:
        self._answers += 1
        self._tokens["input"] += usage.input or 0
        self._tokens["output"] += usage.output or 0
        for limit in self._limits.values():
            if limit.probe == number:
                limit.extra = 2 * limit.extra + self._cost(limit.quota.of)
        started = self._started[number]
        for quota in quotas:
            if not (quota.left >= 0 and quota.per_second > 0):
                continue  # nonsense of a foreign adapter
            self._limits.setdefault(quota.of, _RateLimit(quota, started)).update(
                quota, started
            )

    def refused(self, number: int, now: float) -> None:
        self._started.pop(number, None)
        for limit in self._limits.values():
            limit.extra = max(0.0, limit.extra - self._cost(limit.quota.of))
            if limit.probe == number:
                limit.extra /= 2
                limit.trusted_until = now + _TRUSTED

    def ended(self, number: int) -> None:
        """A call is no longer in flight, for whatever reason."""
        self._in_flight.discard(number)
        for limit in self._limits.values():
            if limit.probe == number:
                limit.probe = None
        needed = min(
            (limit.started for limit in self._limits.values()), default=float("inf")
        )
        self._started = {
            number: started
            for number, started in self._started.items()
            if started > needed or number in self._in_flight
        }

    def _fits_at(self, limit: _RateLimit, now: float) -> float:
        missing = self._missing(limit, now)
        trusted = now < limit.trusted_until
        if not missing or not (trusted or limit.probe):
            return now
        fits = now + missing / limit.quota.per_second
        return min(fits, limit.trusted_until) if trusted else fits

    def _missing(self, limit: _RateLimit, now: float) -> float:
        """How much must come back before another call fits."""
        cost = self._cost(limit.quota.of)
        later, together = limit.started + _TOGETHER, limit.started - _TOGETHER
        spent = cost * sum(
            started > later or (started > together and number in self._in_flight)
            for number, started in self._started.items()
        )
        missing = cost - (limit.remaining(now) - spent)
        return missing if missing > _ROUNDING * cost else 0.0

    def _cost(self, of: str) -> float:
        """What a call uses: one request, or the mean of the tokens so far."""
        if of == "requests":
            return 1.0
        counted = [
            tokens for side, tokens in self._tokens.items() if of in ("tokens", side)
        ]
        return sum(counted) / max(1, self._answers)
