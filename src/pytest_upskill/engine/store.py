"""Stored answers, so that none is paid for twice.

SQLite in write-ahead mode, used by the engine's thread only. Each answer is committed as it
arrives: a killed run loses nothing, and two runs can share the store. If the store fails, the run
goes on without it and says so.
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

from .._util.texts import digest
from ..errors import shown
from ..trials.answer import Answer, Reply, Usage, extras_from_json, extras_to_json
from ..trials.trial import Question

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
# Files and transcripts have their own table because older versions, which may share the store,
# insert into ``answers`` by position. An answer and its extras have the same ``created``, so extras
# are void once an older version has replaced or deleted their answer.
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
    """Make the folder that a project keeps between runs, ignored by git."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by pytest-upskill: nothing here belongs in git.\n*\n")


class Store:
    """The answers of a project, by key. Opened and used by one thread."""

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
        if not _fits(answer):
            return
        usage, now = answer.usage, time.time()
        values = (usage.input, usage.output, usage.cached, answer.stop, answer.seconds, now)
        if extras := extras_to_json(answer.files, answer.transcript):
            # Extras first: a run killed in between leaves a row that nobody reads.
            self._run("INSERT OR REPLACE INTO extras VALUES (?,?,?)", key, now, json.dumps(extras))
        sql = "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?,?,?,?)"
        self._run(sql, key, model, answer.text, *values)

    def size(self) -> StoreSize:
        counts = self._run("SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model")
        oldest = self._run("SELECT MIN(created) FROM answers")
        # Not the size of the files: while the store is open, SQLite keeps more of them.
        pages = "pragma_page_count, pragma_page_size"
        [(size,)] = self._run(f"SELECT page_count * page_size FROM {pages}") or [(0,)]
        return StoreSize(dict(counts), size, oldest[0][0] if oldest else None)

    def prune(self, before: float) -> int:
        """Forget answers from before this time.time(); returns how many."""
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
                raise sqlite3.DatabaseError(f"version {version}, expected {_VERSION}")
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
        """Rename the store rather than delete it: its answers were paid for."""
        mark = datetime.now().strftime("%Y%m%d-%H%M%S")
        aside = self._file.with_name(f"answers-{mark}.broken")
        self._file.rename(aside)
        for extra in ("-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._file}{extra}").rename(f"{aside}{extra}")
        self._tell(f"stored answers unusable ({error}); set aside as {shown(aside)}")

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
        self._tell(f"answers are no longer stored: {shown(self._file)}: {error}")


def _rows(
    connection: sqlite3.Connection, sql: str, values: tuple[object, ...]
) -> list[tuple[Any, ...]]:
    with closing(connection.execute(sql, values)) as cursor:
        return cursor.fetchall()


def _fits(answer: Answer) -> bool:
    """SQLite can't store lone surrogates."""
    try:
        f"{answer.text}{answer.stop}".encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_damage(error: sqlite3.Error) -> bool:
    """Operational errors (locked, read-only, disk full) say nothing about the data."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    )


class KnownAnswers:
    """What the engine knows without asking: nothing."""

    def get(self, _question: Question) -> Reply | None:
        return None

    def put(self, _question: Question, _answer: Answer) -> None:
        pass

    def close(self) -> None:
        pass


class StoredAnswers(KnownAnswers):
    """Answers of earlier runs, under a key of everything that shapes them.

    ``identity`` maps the name of a model to what it really is (protocol, address, id), or to None
    if its answers must not be stored. ``open_store`` is called on the engine's thread.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        identity: Callable[[str], str | None],
        *,
        fresh: bool,
    ) -> None:
        self._open_store = open_store
        self._identity = identity
        self._fresh = fresh
        self._store: Store | None = None

    def get(self, question: Question) -> Reply | None:
        key = self._key(question)
        return None if self._fresh or key is None else self._opened().get(key)

    def put(self, question: Question, answer: Answer) -> None:
        if key := self._key(question):
            self._opened().put(key, question.model, answer)

    def close(self) -> None:
        if self._store:
            self._store.close()

    def _key(self, question: Question) -> str | None:
        identity = self._identity(question.model)
        return None if identity is None else digest(identity, question.content)

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store
