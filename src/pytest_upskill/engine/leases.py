"""Which run asks what."""

import os
import time
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from .database import Database, Row

_LEASE_SECONDS: Final = 15.0  # unless it is renewed
_RENEWAL_SECONDS: Final = 3.0
LEASES_TABLE: Final = (
    "CREATE TABLE leases ("
    "key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"
)
# One that would last much longer was made by a clock that was wrong; a little longer by
# another run since this one looked at its clock.
_LASTS: Final = f"(until BETWEEN ? AND ? + {2 * _LEASE_SECONDS})"
_TAKE: Final = f"""
INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
SET owner = excluded.owner, until = excluded.until WHERE NOT {_LASTS}
"""
RELEASE: Final = "DELETE FROM leases WHERE key=? AND owner=?"


class Leases:
    """The questions that runs are asking: two that share a store and ask the same at
    once would pay for it twice.

    A run takes a lease before it asks and gives it back after its answer was stored;
    others wait for that. The lease of a killed run ends by itself.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = f"{os.getpid()}-{token_hex(8)}"
        self._keys = set[str]()
        self.over: list[Row] = []  # for ``RELEASE``
        self._renewed_at = 0.0  # time.monotonic()

    def take(self, keys: Sequence[str]) -> set[str]:
        """Lease questions; returns those that this run is to ask.

        Others are being asked, or this can't be written down.
        """
        # Another question of this run may have the same key.
        keys = [key for key in dict.fromkeys(keys) if key not in self._keys]
        if not keys:
            return set()

        now = time.time()
        values = [(key, self._owner, now + _LEASE_SECONDS, now, now) for key in keys]
        if self._database.write((_TAKE, values)) is None:
            return set()

        owned = "SELECT key FROM leases WHERE owner=?"
        taken = {key for [key] in self._database.read(owned, self._owner)}
        taken &= set(keys)
        self._keys |= taken
        return taken

    def release(self, key: str) -> None:
        """Give back a lease, with the next answers that are written."""
        if key in self._keys:
            self._keys.remove(key)
            self.over.append((key, self._owner))

    def all(self) -> set[str]:
        """The questions that are being asked, by this run or another."""
        now = time.time()
        lasting = f"SELECT key FROM leases WHERE {_LASTS}"
        return {key for [key] in self._database.read(lasting, now, now)}

    def renew(self) -> None:
        """Keep the leases; call it often."""
        now = time.monotonic()
        if self._keys and now >= self._renewed_at + _RENEWAL_SECONDS:
            self._renewed_at = now
            until = time.time() + _LEASE_SECONDS
            renewal = "UPDATE leases SET until=? WHERE owner=?"
            self._database.write((renewal, [(until, self._owner)]))

    def close(self) -> None:
        """End all leases of this run, and those of runs that were killed."""
        if self._keys or self.over:
            ended = time.time() - _LEASE_SECONDS
            everything = "DELETE FROM leases WHERE owner=? OR until < ?"
            self._database.write((everything, [(self._owner, ended)]))
