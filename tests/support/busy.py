"""A busy model server as plain rules on a clock: for simulations,
and for the loopback server.

It takes so many calls at once, has rate limits of requests and of tokens, and refuses
the rest. The ideal is what someone would need who knew all of this.
"""

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Literal

from support.loopback import Asked, Fault, Reply


@dataclass
class Bucket:
    """A rate limit: full at first; comes back evenly,
    or all at once after each ``window``.
    """

    per_second: float
    most: float
    window: float = 0.0
    left: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.most

    @classmethod
    def per_minute(cls, most: float) -> "Bucket":
        return cls(most / 60, most)

    @classmethod
    def each_minute(cls, most: float) -> "Bucket":
        return cls(most / 60, most, window=60.0)

    def pass_time(self, now: float) -> None:
        if self.window:
            if now // self.window > self.at // self.window:
                self.left = self.most
        else:
            self.left = min(
                self.most, self.left + self.per_second * max(0.0, now - self.at)
            )
        self.at = max(self.at, now)

    def wait_for(self, amount: float) -> float:
        """Seconds until there is so much."""
        if self.left >= amount - 1e-9:
            return 0.0
        if self.window:
            return self.window - self.at % self.window
        return (amount - self.left) / self.per_second


@dataclass
class Verdict:
    """What the server does with a call."""

    taken: bool
    headers: Mapping[str, str]


@dataclass
class Busy:
    """The rules of a server, and what it has seen."""

    cap: int | None = None  # calls in flight
    requests: Bucket | None = None
    tokens: Bucket | None = None
    cost: int = 15  # tokens of a call
    latency: float = 0.2
    retry_after: Literal["s", "ms", "date", ""] = "s"
    taken: int = 0
    refused: int = 0
    _ends: list[float] = field(default_factory=list)

    def visit(self, now: float, wall: datetime | None = None) -> Verdict:
        """Take a call or refuse it."""
        wall = wall or datetime.fromtimestamp(now, UTC)
        self._ends = [end for end in self._ends if end > now]
        wait = 0.0
        for bucket, amount in self._buckets():
            bucket.pass_time(now)
            wait = max(wait, bucket.wait_for(amount))
        if self.cap is not None and len(self._ends) >= self.cap:
            wait = max(wait, min(self._ends) - now)
        if wait > 0:
            self.refused += 1
            return Verdict(taken=False, headers=self._wait(wait, wall))
        self.taken += 1
        self._ends.append(now + self.latency)
        for bucket, amount in self._buckets():
            bucket.left -= amount
        return Verdict(taken=True, headers={})

    def ideal(self, calls: int, in_flight: int) -> float:
        """The seconds that the calls take at least, with so many in flight."""
        slots = min(in_flight, self.cap or in_flight)
        buckets = [(deepcopy(bucket), amount) for bucket, amount in self._buckets()]
        starts: list[float] = []
        for number in range(calls):
            now = max(
                starts[-1] if starts else 0.0,
                starts[number - slots] + self.latency if number >= slots else 0.0,
            )
            for bucket, amount in buckets:
                bucket.pass_time(now)
                now += bucket.wait_for(amount)
            for bucket, amount in buckets:
                bucket.pass_time(now)
                bucket.left -= amount
            starts.append(now)
        return starts[-1] + self.latency

    def _buckets(self) -> list[tuple[Bucket, float]]:
        pairs = ((self.requests, 1.0), (self.tokens, float(self.cost)))
        return [(bucket, amount) for bucket, amount in pairs if bucket]

    def _wait(self, wait: float, wall: datetime) -> dict[str, str]:
        if self.retry_after == "ms":
            return {"retry-after-ms": str(ceil(wait * 1000))}
        if self.retry_after == "date":
            then = datetime.fromtimestamp(ceil(wall.timestamp() + wait), UTC)
            return {"retry-after": then.strftime("%a, %d %b %Y %H:%M:%S GMT")}
        return {"retry-after": str(ceil(wait))} if self.retry_after else {}

    def script(self, answer: str) -> Callable[[Asked], Reply | Fault]:
        """For the loopback server, in real time."""

        def act(_asked: Asked) -> Reply | Fault:
            verdict = self.visit(time.monotonic(), datetime.now(UTC))
            if not verdict.taken:
                kind = "rate_limit_error"
                return Fault("status", 429, error_type=kind, headers=verdict.headers)
            tokens = self.cost - 5
            return Reply(answer, input_tokens=tokens, delay=self.latency)

        return act
