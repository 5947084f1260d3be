"""When calls may start: how many a server takes at once, and when it takes none.

A refused call (429, 529, or 503 with a time to wait) is asked again and counts as no attempt. The
calls that were not refused are what the server takes, so they become the limit. While it takes
something, each answer makes room for the next call. While it takes nothing, one call after the
other tries, when the server says so.
"""

from random import Random
from typing import Final

# No server, or a wrong key, is told at once, an answer takes its time: so long does a first call go
# alone. All wait for it, so it is short: calls that are refused cost nothing.
ALONE: Final = 0.1
_LONGEST_ALONE: Final = 5.0
_GROWTH: Final = 8
_SHORTEST_ROUND: Final = 4
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 20.0
_MOST_SKIPPED: Final = 32
# A server that took calls after several waits refuses by chance: more waits, and shorter ones.
_BY_CHANCE: Final = 2
_FEW: Final = 4
PATIENCE: Final = 300.0  # seconds that a server may take nothing
LONG: Final = 5.0  # seconds after which nobody knows what it takes


def pause(attempt: int, retry_after: float | None, random: Random) -> float:
    """Seconds to wait after this attempt: what the server says, else exponential backoff.

    Jitter keeps calls that failed together from coming back together. What a server says is not
    enough if it refuses again and again.
    """
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempt - 1, 10))
    backoff = random.uniform(longest / 2, longest)
    if retry_after is None:
        return backoff
    said = retry_after + random.uniform(0.0, 0.1 * min(retry_after, 10.0) + 0.05)
    return said if attempt == 1 else max(said, backoff / 2)


class Limit:
    """Calls in flight to one server with one key: what it was seen to take."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._good = 0
        self._doubles = False
        self.allowed = most
        self.in_flight = 0

    def has_room(self) -> bool:
        return self.in_flight < self.allowed

    def answered(self) -> None:
        """Grow by an eighth after as many good calls in a row as are allowed at once."""
        self._good += 1
        if self._good >= (self.allowed if self._doubles else max(self.allowed, _SHORTEST_ROUND)):
            step = self.allowed if self._doubles else max(1, self.allowed // _GROWTH)
            self.allowed = min(self._most, self.allowed + step)
            self._good = 0

    def failed(self) -> None:
        """The server is in trouble: don't grow until a whole round went well."""
        self._good = 0

    def refused(self) -> None:
        """One call too many: the others in flight are what the server takes."""
        self._good = 0
        self._doubles = False
        self.allowed = max(1, min(self.allowed, self.in_flight - 1))

    def start_over(self) -> None:
        """The server took nothing for a while, so nobody knows what it takes now."""
        self._doubles = True


class Pace:
    """When the next call to one model may start, judging by what was taken and refused."""

    def __init__(self) -> None:
        self.opens_at = 0.0
        self.alone = True  # whether the next call must show that any is taken
        self.sent = 0
        self._sent_before = 0  # what was sent when the last call was refused
        self._in_a_row = 0  # calls that were refused one after the other
        self._skip = 0  # answers to wait for
        self._waits = 0  # in a row
        self._most_waits = 0  # in a row, until a call was taken
        self._nothing_since: float | None = None
        self._seconds_alone = ALONE

    def lets_in(self, in_flight: int) -> bool:
        """Whether another call may be in flight, once it is time."""
        return not (in_flight and (self.alone or self._skip))

    def start(self, now: float) -> int:
        """A call starts; returns its number."""
        self.sent += 1
        if self.alone:
            self.alone = False
            self.opens_at = now + self._seconds_alone
        return self.sent

    def answered(self, number: int) -> None:
        """The server answered, and so takes calls."""
        self.opens_at = 0.0
        self.alone = False
        self._skip = max(0, self._skip - 1)
        self._most_waits = max(self._most_waits, self._waits)
        self._waits = 0
        self._nothing_since = None
        if number > self._sent_before:
            self._in_a_row = 0

    def refused_again(self, number: int) -> bool:
        """Note a refusal; True if the call before it was refused as well.

        Then it doesn't help that one call less was in flight. If others are, let one, three, seven
        of them be answered first.
        """
        again = number == self.sent == self._sent_before + 1
        if number > self._sent_before:
            self._in_a_row = self._in_a_row + 1 if again else 0
            self._skip = min(_MOST_SKIPPED, 2**self._in_a_row) - 1
        self._sent_before = self.sent
        return again

    def close(self, now: float, took: float, retry_after: float | None, random: Random) -> float:
        """A call was refused, after ``took`` seconds, and none is in flight: wait.

        Returns for how many seconds nothing was and will be taken.
        """
        self._waits += 1
        if self._nothing_since is None:
            self._nothing_since = now
        by_chance = self._most_waits >= _BY_CHANCE
        wait = pause(min(self._waits, _FEW) if by_chance else self._waits, retry_after, random)
        self.opens_at = now + wait
        self.alone = True
        self._in_a_row = self._skip = 0
        # Some servers take their time to refuse a call.
        self._seconds_alone = min(_LONGEST_ALONE, max(ALONE, 1.5 * took))
        return self.opens_at - self._nothing_since
