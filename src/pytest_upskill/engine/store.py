"""Stored answers: an answer is bought once.

SQLite in write-ahead mode, used by the engine's thread alone; each answer is committed as it
arrives, so a killed run loses nothing that was answered, and two runs at once can share it.
The store is a help, never a hindrance: where it fails, the run goes on without it and says so.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..errors import shown
from ..trials.answer import Answer, Usage, extras_from_json, extras_to_json

FOLDER: Final = ".upskill"
FILE_NAME: Final = "answers.sqlite"
_VERSION: Final = 1
_WAIT_MS: Final = 10_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    input INTEGER, output INTEGER, cached INTEGER,
    stop TEXT NOT NULL,
    seconds REAL NOT NULL,
    created REAL NOT NULL
) WITHOUT ROWID
"""
# Files and transcript have a table of their own: an older pytest-upskill may share the store, and
# inserts into ``answers`` by position. A row counts only beside an answer of the same moment, so
# that what an older version replaces or deletes takes its extras with it.
_EXTRAS: Final = """
CREATE TABLE IF NOT EXISTS extras (
    key TEXT PRIMARY KEY,
    created REAL NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class StoreSize:
    """What a store holds."""

    answers: dict[str, int]  # by model
    size: int
    oldest: float | None


def make_folder(folder: Path) -> None:
    """The folder of what a project keeps from run to run; git is told to leave it alone."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by pytest-upskill: nothing here belongs into git.\n*\n")


class Store:
    """The answers of a project. Opened by the thread that uses it."""

    def __init__(self, file: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self._file = file
        self._tell = tell
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._opened()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def get(self, key: str) -> Answer | None:
        columns = "text, input, output, cached, stop, seconds, data"
        tables = "answers LEFT JOIN extras USING (key, created)"
        rows = self._run(f"SELECT {columns} FROM {tables} WHERE key=?", key)
        if not rows:
            return None
        text, tokens_in, tokens_out, cached, stop, seconds, extras = rows[0]
        try:
            files, transcript = extras_from_json(json.loads(extras or "{}"))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # written by a later version
        return Answer(
            text,
            Usage(tokens_in, tokens_out, cached),
            stop,
            seconds,
            stored=True,
            files=files,
            transcript=transcript,
        )

    def put(self, key: str, model: str, answer: Answer) -> None:
        usage, now = answer.usage, time.time()
        values = (usage.input, usage.output, usage.cached, answer.stop, answer.seconds, now)
        if extras := extras_to_json(answer.files, answer.transcript):
            # First: a run killed between the two leaves a row that nobody reads.
            self._run("INSERT OR REPLACE INTO extras VALUES (?,?,?)", key, now, json.dumps(extras))
        # SQLite has no place for a lone surrogate, nor for an integer of more than 64 bits.
        with suppress(UnicodeEncodeError, OverflowError):
            self._run(
                "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?,?,?,?)",
                key,
                model,
                answer.text,
                *values,
            )

    def size(self) -> StoreSize:
        counts = self._run("SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model")
        oldest = self._run("SELECT MIN(created) FROM answers")
        # Not of the files: SQLite keeps more of them for as long as this one is open.
        pages = "pragma_page_count, pragma_page_size"
        [(size,)] = self._run(f"SELECT page_count * page_size FROM {pages}") or [(0,)]
        return StoreSize(dict(counts), size, oldest[0][0] if oldest else None)

    def prune(self, before: float) -> int:
        """Forget the answers that are older than a moment; how many these were."""
        old = self._run("SELECT key FROM answers WHERE created < ?", before)
        self._run("DELETE FROM answers WHERE created < ?", before)
        self._run("DELETE FROM extras WHERE created < ?", before)
        self._run("VACUUM")
        return len(old)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        make_folder(self._file.parent)
        connection = self._connected()
        try:
            [version] = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, not {_VERSION}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_SCHEMA)
            connection.execute(_EXTRAS)
            connection.execute(f"PRAGMA user_version={_VERSION}")
        except sqlite3.Error as error:
            connection.close()
            if not _is_damage(error):
                raise
            self._set_aside(error)
            return self._opened()
        return connection

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level=None)  # commits each statement
        connection.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
        return connection

    def _set_aside(self, error: Exception) -> None:
        """Make room for a new store, and keep the old one: it may hold what was paid for."""
        mark = datetime.now().strftime("%Y%m%d-%H%M%S")
        aside = self._file.with_name(f"answers-{mark}.broken")
        self._file.rename(aside)
        for extra in ("-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._file}{extra}").rename(f"{aside}{extra}")
        self._tell(f"the stored answers can't be used ({error}); set aside as {shown(aside)}")

    def _run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return _rows(self._connection, sql, values)
        except sqlite3.Error as error:
            if not _is_damage(error):
                self._give_up(error)
                return []
            damage = error
        try:
            self.close()
            self._set_aside(damage)
            self._connection = self._opened()
            return _rows(self._connection, sql, values)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return []

    def _give_up(self, error: Exception) -> None:
        self.close()
        self._tell(f"answers are not stored from here on: {shown(self._file)}: {error}")


def _rows(
    connection: sqlite3.Connection, sql: str, values: tuple[object, ...]
) -> list[tuple[Any, ...]]:
    with closing(connection.execute(sql, values)) as cursor:
        return cursor.fetchall()


def _is_damage(error: sqlite3.Error) -> bool:
    """Locked, read-only, full are operational: nothing is wrong with what is in the file."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    )
