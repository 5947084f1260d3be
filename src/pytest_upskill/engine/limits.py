"""How much may be asked at once, and how long to wait before asking again: numbers only."""

from random import Random
from typing import Final

MOST_ATTEMPTS: Final = 5
# Waiting because a server is busy is not the answer's fault, up to this many seconds.
MOST_RATE_LIMIT_WAIT: Final = 300.0

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
        """A call went well: after as many in a row as are allowed at once, allow twice as many."""
        self._good += 1
        if self._good >= self.allowed:
            self.allowed = min(self._most, self.allowed * 2)
            self._good = 0

    def failed(self) -> None:
        """The server is in trouble: it gets no more than now until a whole round went well."""
        self._good = 0

    def rate_limited(self, now: float, wait: float) -> None:
        """Too much was asked. All calls in flight hear so; only the first of them counts."""
        self._good = 0
        if now >= self._closed_until:
            self.allowed = max(1, int(self.allowed * _SHRINK))
            self._closed_until = now + wait


def pause(attempt: int, retry_after: float | None, random: Random) -> float:
    """Seconds to wait after this attempt: what the server says, else twice as long each time.

    Some chance in it keeps calls that failed together from coming back together.
    """
    if retry_after is not None:
        return retry_after + random.uniform(0.0, 0.1 * retry_after + 0.05)
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1))
    return random.uniform(longest / 2, longest)
