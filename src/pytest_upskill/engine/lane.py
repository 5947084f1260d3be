"""The questions to one model on their way: queued, limited, retried."""

import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Final

from ..errors import ModelError
from ..models import Model
from ..trials.answer import NoAnswer, Reply, Usage
from ..trials.trial import Question

_MAX_ATTEMPTS: Final = 5
# Waiting for a busy server doesn't count against the timeout, up to this many seconds.
_MAX_RATE_LIMIT_WAIT: Final = 300.0
_NO_LIMIT: Final = 1_000_000

_START: Final = 8
_SHRINK: Final = 0.7
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 20.0


class Limit:
    """Calls in flight to one server with one key: grows while all goes well, shrinks if not."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._good = 0
        self._closed_until = 0.0
        self.allowed = min(_START, most)
        self.in_flight = 0

    def has_room(self) -> bool:
        return self.in_flight < self.allowed

    def answered(self) -> None:
        """Double the limit after as many good calls in a row as it allows at once."""
        self._good += 1
        if self._good >= self.allowed:
            self.allowed = min(self._most, self.allowed * 2)
            self._good = 0

    def failed(self) -> None:
        """The server is in trouble: don't grow until a whole round went well."""
        self._good = 0

    def rate_limited(self, now: float, wait: float) -> None:
        """Shrink once: all calls in flight fail together, and only the first of them counts."""
        self._good = 0
        if now >= self._closed_until:
            self.allowed = max(1, int(self.allowed * _SHRINK))
            self._closed_until = now + wait


def pause(attempt: int, retry_after: float | None, random: Random) -> float:
    """Seconds to wait after this attempt: what the server says, else exponential backoff.

    Jitter keeps calls that failed together from coming back together.
    """
    if retry_after is not None:
        return retry_after + random.uniform(0.0, 0.1 * retry_after + 0.05)
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1))
    return random.uniform(longest / 2, longest)


@dataclass(eq=False)
class Job:
    """A question, its attempts so far, and the reply to come."""

    question: Question
    number: int
    reply: "Future[Reply]" = field(default_factory=Future)
    attempts: int = 0
    started: float = 0.0
    excused: float = 0.0  # seconds spent waiting for a busy server
    paid: Usage | None = None  # for the last attempt; None is nothing

    def seconds_left(self, timeout: float) -> float:
        return timeout - (time.monotonic() - self.started - self.excused)

    def may_retry(self, wait: float, error: ModelError, timeout: float) -> bool:
        """Whether to ask again after ``wait`` seconds."""
        if not error.transient or self.attempts >= _MAX_ATTEMPTS:
            return False
        if error.rate_limited:
            return self.excused + wait <= _MAX_RATE_LIMIT_WAIT
        return wait < self.seconds_left(timeout)

    def settle(self, reply: Reply) -> None:
        if not self.reply.done():  # else the engine gave up in the meantime
            self.reply.set_result(reply.without_keys())


@dataclass(eq=False)
class Lane:
    """The jobs of one model. The first runs alone: it shows whether any call can work."""

    name: str
    waiting: deque[Job] = field(default_factory=deque)
    pausing: set[Job] = field(default_factory=set)
    model: Model | None = None
    limit: Limit | None = None
    opening: bool = False
    in_flight: int = 0
    tried: bool = False
    answered: bool = False
    dead: str | None = None  # why nothing more is asked
    retries: int = 0

    def ready(self) -> bool:
        if not self.waiting or self.model is None or self.limit is None:
            return False
        if not self.tried:
            return self.in_flight == 0 and not self.pausing
        own = self.model.most_in_flight
        return self.limit.has_room() and self.in_flight < (_NO_LIMIT if own is None else own)

    def take(self) -> Job:
        assert self.limit is not None
        self.in_flight += 1
        self.limit.in_flight += 1
        return self.waiting.popleft()

    def give_back(self) -> None:
        assert self.limit is not None
        self.in_flight -= 1
        self.limit.in_flight -= 1

    def settle_all(self, reason: str) -> None:
        """Answer all that still waits with ``reason``."""
        jobs = [*self.waiting, *self.pausing]
        self.waiting.clear()
        self.pausing.clear()
        for job in jobs:
            job.settle(NoAnswer(reason))
