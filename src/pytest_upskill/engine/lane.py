"""The questions to one model, and what is known of it."""

import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from ..errors import ModelError
from ..models import Model
from ..trials.answer import NoAnswer, Reply
from ..trials.trial import Question
from .limits import MOST_ATTEMPTS, MOST_RATE_LIMIT_WAIT, Limit

NO_LIMIT: Final = 1_000_000


@dataclass(eq=False)
class Job:
    """A question on its way: how often it was asked, since when, and what it waited for."""

    question: Question
    number: int
    reply: "Future[Reply]" = field(default_factory=Future)
    attempts: int = 0
    started: float = 0.0
    excused: float = 0.0  # seconds that it waited only because a server was busy

    def seconds_left(self, timeout: float) -> float:
        return timeout - (time.monotonic() - self.started - self.excused)

    def may_wait(self, seconds: float, error: ModelError, timeout: float) -> bool:
        """Whether to ask once more after so many seconds."""
        if not error.passing or self.attempts >= MOST_ATTEMPTS:
            return False
        if error.rate_limited:
            return self.excused + seconds <= MOST_RATE_LIMIT_WAIT
        return seconds < self.seconds_left(timeout)

    def settle(self, reply: Reply) -> None:
        self.reply.set_result(reply)


@dataclass(eq=False)
class Lane:
    """The first question of a lane goes alone: what is wrong for all is found by one call."""

    name: str
    waiting: deque[Job] = field(default_factory=deque)
    pausing: set[Job] = field(default_factory=set)
    model: Model | None = None
    limit: Limit | None = None
    opening: bool = False
    in_flight: int = 0
    tried: bool = False
    answered: bool = False
    dead: str | None = None
    retries: int = 0

    def ready(self) -> bool:
        if not self.waiting or self.model is None or self.limit is None:
            return False
        if not self.tried:
            return self.in_flight == 0 and not self.pausing
        own = self.model.most_in_flight
        return self.limit.has_room() and self.in_flight < (NO_LIMIT if own is None else own)

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
        """Nothing of this lane will be asked any more."""
        jobs = [*self.waiting, *self.pausing]
        self.waiting.clear()
        self.pausing.clear()
        for job in jobs:
            job.settle(NoAnswer(reason))
