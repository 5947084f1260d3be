"""When calls may start: how many a server takes at once, and when it takes none.

A refused call (429, 529, or 503 with a time to wait) is repeated and does not count as
an attempt. The calls that were not refused are what the server takes, so they become
the limit. While it takes something, each answer makes room for the next call. While it
takes nothing, single calls try again when the server says so.

A server on a loopback or private address may work on one call at a time and queue the
others, or let them wait for a connection. Each answer of such a server gives all calls
in flight their full time again, and one that it took no connection for is repeated as
if it had been refused.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from random import Random
from typing import Final
from urllib.parse import urlsplit

# Send the first call alone: a bad key or a dead server fails fast.
ALONE: Final = 0.1  # seconds
_LONGEST_ALONE: Final = 5.0
_GROWTH: Final = 8
_SHORTEST_ROUND: Final = 4
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 20.0
_MOST_STEPS: Final = 5  # pauses that double
PATIENCE: Final = 300.0  # seconds without any call taken before the model is given up
LONG: Final = 5.0  # seconds after which the limit is unknown
# Answers may come in by the hundred a second.
_RESTART_SECONDS: Final = 0.1
_NEAR: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def is_near(url: str) -> bool:
    """Whether a server is on this machine or in its network."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_NEAR))
    return not (getattr(address, "ipv4_mapped", None) or address).is_global


def pause(attempt: int, retry_after: float | None, random: Random) -> float:
    """Seconds to wait after this attempt: what the server says,
    else exponential backoff.

    Jitter keeps calls that failed together from coming back together. A server that
    refuses several times in a row gets more time than it asks for.
    """
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempt - 1, 10))
    backoff = random.uniform(longest / 2, longest)
    if retry_after is None:
        return backoff
    requested = retry_after + random.uniform(0.0, 0.1 * min(retry_after, 10.0) + 0.05)
    return requested if attempt == 1 else max(requested, backoff / 2)


class Deadlines:
    """When the calls in flight to one server run out of time."""

    def __init__(self) -> None:
        self._seconds: dict[asyncio.Timeout, float] = {}
        self._restarted_at = 0.0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncGenerator[None]:
        """TimeoutError if a call takes longer."""
        async with asyncio.timeout(seconds) as deadline:
            self._seconds[deadline] = seconds
            try:
                yield
            finally:
                del self._seconds[deadline]

    def restart(self, now: float) -> None:
        """Give all calls in flight their full time again, or a moment less."""
        if now < self._restarted_at + _RESTART_SECONDS:
            return

        self._restarted_at = now
        for deadline, seconds in self._seconds.items():
            # One that has just passed can't be moved any more.
            if not deadline.expired():
                deadline.reschedule(now + seconds)


class Limit:
    """How many calls may be in flight to one server with one key.

    ``may_queue``: calls may wait for each other there, and not be worked on.
    """

    def __init__(self, most: int, *, may_queue: bool = False) -> None:
        self._most = most
        self._good = 0
        self._doubles = False
        self.allowed = most
        self.in_flight = 0
        self.may_queue = may_queue
        self.deadlines = Deadlines()

    def has_room(self) -> bool:
        return self.in_flight < self.allowed

    def answered(self) -> None:
        """Grow by an eighth after as many good calls in a row as are allowed at
        once.
        """
        self._good += 1
        if self._doubles:
            round_length, step = self.allowed, self.allowed
        else:
            round_length = max(self.allowed, _SHORTEST_ROUND)
            step = max(1, self.allowed // _GROWTH)
        if self._good >= round_length:
            self.allowed = min(self._most, self.allowed + step)
            self._good = 0

    def failed(self) -> None:
        """Don't grow until a whole round succeeds."""
        self._good = 0

    def timed_out(self) -> None:
        """A call may have waited for the others in flight: allow half as many."""
        self._good = 0
        self._doubles = False
        self.allowed = max(1, min(self.allowed, self.in_flight // 2))

    def refused(self) -> None:
        """One call too many: the other calls in flight are what the server takes."""
        self._good = 0
        self._doubles = False
        self.allowed = max(1, min(self.allowed, self.in_flight - 1))

    def start_over(self) -> None:
        """The server took nothing for a while, so its limit is unknown:
        double on success.
        """
        self._doubles = True


class Pace:
    """When the next call to one model may start, judging by what was taken and
    refused.
    """

    def __init__(self) -> None:
        self.opens_at = 0.0
        self.alone = True  # whether the next call must succeed before others start
        self._waits = 0  # consecutive
        self._nothing_since: float | None = None
        self._seconds_alone = ALONE

    def lets_in(self, in_flight: int) -> bool:
        """Whether another call may be in flight, once it is time."""
        return not (in_flight and self.alone)

    def start(self, now: float) -> None:
        """A call starts."""
        if self.alone:
            self.alone = False
            self.opens_at = now + self._seconds_alone

    def answered(self) -> None:
        """The server answered, and so takes calls."""
        self.opens_at = 0.0
        self.alone = False
        self._waits = 0
        self._nothing_since = None

    def close(
        self, now: float, delay: float, retry_after: float | None, random: Random
    ) -> float:
        """A call was refused, after a ``delay``, and none is in flight: wait.

        Returns the seconds between the last call that was taken and the next attempt.
        """
        self._waits += 1
        if self._nothing_since is None:
            self._nothing_since = now
        # Without a word from the server, it may refuse at random: try more often.
        waits = min(self._waits, _MOST_STEPS) if retry_after is None else self._waits
        self.opens_at = now + pause(waits, retry_after, random)
        self.alone = True
        # Some servers are slow to refuse.
        self._seconds_alone = min(_LONGEST_ALONE, max(ALONE, 1.5 * delay))
        return self.opens_at - self._nothing_since
