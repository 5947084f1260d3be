"""What a server says is left of its rate limits: used to start no call that it would refuse.

Such headers may be wrong, and nobody may wait for a wrong one. So single calls go against it. If
one is refused, the header is believed for a minute; if it is answered, there is more than it says.
"""

from dataclasses import dataclass
from typing import Final

from ..trials.answer import Quota, Usage

_BELIEVED: Final = 60.0  # seconds
_TOGETHER: Final = 0.05  # calls that start within so many seconds may arrive in any order
_ROUNDING: Final = 1e-6


@dataclass
class _Known:
    """What was left of one rate limit when a call arrived, as told by the reply to it."""

    quota: Quota
    asked: float  # when the call started
    believed_until: float = 0.0
    trial: int | None = None  # a call in flight that went against it
    more: float = 0.0  # than it says

    def hear(self, quota: Quota, asked: float) -> None:
        """Replies to later calls know more; of calls that started together, the last one does."""
        if asked > self.asked + _TOGETHER or (
            asked > self.asked - _TOGETHER and quota.left < self.quota.left
        ):
            self.quota, self.asked = quota, max(asked, self.asked)

    def left(self, now: float) -> float:
        quota = self.quota
        back = quota.per_second * max(0.0, now - self.asked)
        return min(quota.most, quota.left + back) + self.more


class Quotas:
    """What is left for one model, brought up to date."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._started: dict[int, float] = {}  # when calls started that were not refused
        self._in_flight = set[int]()
        self._answers = 0
        self._tokens = {"input": 0, "output": 0}

    def opens_at(self, now: float) -> float:
        """When the next call may start."""
        return max((self._fits_at(known, now) for known in self._known.values()), default=now)

    def start(self, number: int, now: float) -> None:
        for known in self._known.values():
            if not known.trial and self._missing(known, now):
                known.trial = number
        self._started[number] = now
        self._in_flight.add(number)

    def answered(self, number: int, quotas: tuple[Quota, ...], usage: Usage) -> None:
        self._answers += 1
        self._tokens["input"] += usage.input or 0
        self._tokens["output"] += usage.output or 0
        for known in self._known.values():
            if known.trial == number:
                known.more = 2 * known.more + self._cost(known.quota.of)
        asked = self._started[number]
        for quota in quotas:
            if not (quota.left >= 0 and quota.per_second > 0):
                continue  # an adapter may be anybody's
            self._known.setdefault(quota.of, _Known(quota, asked)).hear(quota, asked)

    def refused(self, number: int, now: float) -> None:
        self._started.pop(number, None)
        for known in self._known.values():
            known.more = max(0.0, known.more - self._cost(known.quota.of))
            if known.trial == number:
                known.more /= 2
                known.believed_until = now + _BELIEVED

    def ended(self, number: int) -> None:
        """A call is no longer in flight, for whatever reason."""
        self._in_flight.discard(number)
        for known in self._known.values():
            if known.trial == number:
                known.trial = None
        needed = min((known.asked for known in self._known.values()), default=float("inf"))
        self._started = {
            number: asked
            for number, asked in self._started.items()
            if asked > needed or number in self._in_flight
        }

    def _fits_at(self, known: _Known, now: float) -> float:
        missing = self._missing(known, now)
        believed = now < known.believed_until
        if not missing or not (believed or known.trial):
            return now
        fits = now + missing / known.quota.per_second
        return min(fits, known.believed_until) if believed else fits

    def _missing(self, known: _Known, now: float) -> float:
        """How much must come back before another call fits."""
        cost = self._cost(known.quota.of)
        later, together = known.asked + _TOGETHER, known.asked - _TOGETHER
        spent = cost * sum(
            asked > later or (asked > together and number in self._in_flight)
            for number, asked in self._started.items()
        )
        missing = cost - (known.left(now) - spent)
        return missing if missing > _ROUNDING * cost else 0.0

    def _cost(self, of: str) -> float:
        """What a call uses: one request, or the mean of the tokens so far."""
        if of == "requests":
            return 1.0
        counted = [tokens for side, tokens in self._tokens.items() if of in ("tokens", side)]
        return sum(counted) / max(1, self._answers)
