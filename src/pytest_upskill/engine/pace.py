"""When calls may start: how many a server takes at once, and when it takes none.

A refused call (429, 529, or 503 with a time to wait) is repeated and does not count as
an attempt. The calls that were not refused are what the server takes, so they become
the limit. While it takes something, each answer makes room for the next call. While it
takes nothing, single calls try again when the server says so.

A server on a loopback or private address may work on one call at a time and queue the
others, where they run out of time: it gets one at first, then twice as many after each
good round, as long as answers would be in time if that made them as much slower as the
last step did. A call that ran out of time halves it.
"""

from ipaddress import ip_address
from math import inf
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
_SHARE: Final = 0.5  # of the time that a call has, for an answer after the next step
_FIRST_SHARE: Final = 0.9  # after the first step, which shows whether the server queues
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


class Limit:
    """How many calls may be in flight to one server with one key.

    ``careful`` is the time that a call has, if the server gets one call at first.
    """

    def __init__(self, most: int, careful: float | None = None) -> None:
        self._most = most
        self._good = 0
        self._slowest = 0.0  # seconds of the good calls
        self._before: float | None = None  # the same with half as many calls
        self._time = inf if careful is None else careful
        self._doubles = careful is not None
        self.allowed = most if careful is None else 1
        self.in_flight = 0
        self.held_back = False  # whether slow answers kept it from growing

    def has_room(self) -> bool:
        return self.in_flight < self.allowed

    def answered(self, seconds: float = 0.0) -> None:
        """Grow by an eighth after as many good calls in a row as are allowed at
        once.
        """
        self._good += 1
        self._slowest = max(self._slowest, seconds)
        if self._good >= (
            self.allowed if self._doubles else max(self.allowed, _SHORTEST_ROUND)
        ):
            step = self.allowed if self._doubles else max(1, self.allowed // _GROWTH)
            self.held_back = self.allowed < self._most and self._would_be_late(step)
            if not self.held_back:
                self._before = self._slowest
                self.allowed = min(self._most, self.allowed + step)
            self._good, self._slowest = 0, 0.0

    def _would_be_late(self, step: int) -> bool:
        """Whether answers might be late if there were so many more calls in flight."""
        slower, share = 1 + step / self.allowed, _SHARE
        if self._doubles and self._before is None:
            share = _FIRST_SHARE
        elif self._doubles and self._before:
            slower = min(slower, max(1.0, self._slowest / self._before))
        return self._slowest * slower > share * self._time

    def failed(self) -> None:
        """Don't grow until a whole round succeeds."""
        self._good = 0

    def timed_out(self) -> None:
        """A call may have waited for the others in flight: allow half as many."""
        self._good, self._slowest = 0, 0.0
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
        self.sent = 0
        self._waits = 0  # consecutive
        self._nothing_since: float | None = None
        self._seconds_alone = ALONE

    def lets_in(self, in_flight: int) -> bool:
        """Whether another call may be in flight, once it is time."""
        return not (in_flight and self.alone)

    def start(self, now: float) -> int:
        """A call starts; returns its number."""
        self.sent += 1
        if self.alone:
            self.alone = False
            self.opens_at = now + self._seconds_alone
        return self.sent

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
