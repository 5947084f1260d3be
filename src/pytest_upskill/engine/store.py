"""Stored answers, so that none is paid for twice.

SQLite in write-ahead mode, used by the engine's thread only. Each answer is committed as it
arrives: a killed run loses nothing, and two runs can share the store. What can't be read is asked
again, what can't be written is tried again at the end, and the run says so.
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from .._util.json_forms import form_of, json_values
from .._util.texts import counted, digest
from ..errors import shown
from ..trials.answer import (
    Answer,
    Reply,
)
from ..trials.trial import Question
from . import database
from .database import Row

FOLDER: Final = ".upskill"
FILE_NAME: Final = "answers.sqlite"
_WORTH_PACKING: Final = 1000  # characters
_MOST_DAMAGES: Final = 3  # of one run; then the disk is broken, not the store
_UNKNOWN: Final = -1.0  # seconds, in a column that is never null
_ERRORS: Final = (sqlite3.Error, OSError, OverflowError, UnicodeEncodeError)


@dataclass(frozen=True)
class StoreSize:
    """What a store holds."""

    answers: dict[str, int]  # by model
    size: int
    oldest: float | None


class Store:
    """The answers of a project, by key. Opened and used by one thread."""

    def __init__(self, file: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self._file = file
        self._tell = tell
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self._keeps = False  # whether it can be written
        self._unsaved: dict[str, Row] = {}  # to be tried again
        self._carried: set[str] = set()  # of a damaged store; they replace no newer answer
        self._lost = 0  # answers that no store can take
        self._reason: Exception | None = None  # why the last one was not stored
        self._unread = False  # whether that was told
        self._damages = 0
        self._open()

    def get(self, key: str) -> Answer | None:
        if row := self._unsaved.get(key):
            return _answer(row)
        rows = self._read(f"{database.SELECT} WHERE key=?", key)
        if row := self._unsaved.get(key):  # the store was damaged, and this was carried over
            return _answer(row)
        return _answer(rows[0]) if rows else None

    def put(self, key: str, model: str, answer: Answer) -> bool:
        """Store an answer; whether it is. Never an error, since the answer itself is good."""
        usage = answer.usage
        other_usage = replace(usage, input=None, output=None, cached=None)
        columns = {"text", "stop", "seconds", "workspace"}
        extras = json_values(replace(answer, usage=other_usage), brief=True, without=columns)
        text = answer.text
        if not _is_encodable(text):  # SQLite takes no lone surrogate, JSON does
            extras["text"], text = text, ""
        counts = (usage.input, usage.output, usage.cached)
        seconds = _UNKNOWN if answer.seconds is None else answer.seconds
        self._unsaved[key] = (
            *(key, model, text, *counts, answer.stop, seconds, time.time()),
            _packed(extras, answer.workspace),
        )
        self._carried.discard(key)
        self._save()
        return key not in self._unsaved

    def size(self) -> StoreSize:
        counts = self._read("SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model")
        # SQLite keeps any type in any column, and a later time than this is no date.
        dates = "typeof(created) = 'real' AND created BETWEEN 0 AND 1e11"
        oldest = self._read(f"SELECT MIN(created) FROM answers WHERE {dates}")
        # Not the size of the files: while the store is open, SQLite keeps more of them.
        pages = "pragma_page_count, pragma_page_size"
        [(size,)] = self._read(f"SELECT page_count * page_size FROM {pages}") or [(0,)]
        models = {str(model): number for model, number in counts}
        return StoreSize(models, size, oldest[0][0] if oldest else None)

    def prune(self, before: float) -> int | None:
        """Forget answers from before this time.time(); returns how many, or None if it can't."""
        self._read("SELECT COUNT(*) FROM answers WHERE created < ?", before)  # finds damage first
        if self._connection is None:
            return None  # which was told
        try:
            with closing(self._connection.cursor()) as cursor:
                # VACUUM leaves nothing of them; wiping each one before takes as long again.
                cursor.execute("PRAGMA secure_delete=OFF")
                cursor.execute("DELETE FROM answers WHERE created < ?", (before,))
                forgotten = cursor.rowcount
                cursor.execute("DELETE FROM extras WHERE created < ?", (before,))
            with suppress(sqlite3.Error):  # which needs room on the disk
                self._connection.execute("VACUUM")
        except sqlite3.Error as error:
            self._tell(f"stored answers can't be deleted: {self._told(error)}")
            return None
        return forgotten

    def close(self) -> None:
        """Store what could not be stored so far, and say what can't be stored at all."""
        if self._unsaved:
            self._disconnect()
            self._open()
            self._save()
        self._disconnect()
        if (missing := len(self._unsaved) + self._lost) and self._reason:
            what = counted(missing, "answer")
            self._tell(f"{what} could not be stored: {self._told(self._reason)}")
        self._unsaved, self._lost = {}, 0

    def _open(self) -> None:
        self._identity = database.identity(self._file)
        try:
            self._connection, self._keeps = database.opened(self._file), True
            self._identity = database.identity(self._file)
        except _ERRORS as error:
            self._reason = error
            if not (database.is_damage(error) and self._replace_damaged(error)):
                self._open_for_reading(error)

    def _open_for_reading(self, reason: Exception) -> None:
        self._connection, self._keeps = None, False
        with suppress(*_ERRORS):
            if not (database.is_busy(reason) or isinstance(reason, database.LaterVersion)):
                self._connection = database.opened_for_reading(self._file)
        if self._connection is None and self._file.exists():
            self._say_unread(reason)

    def _disconnect(self) -> None:
        if self._connection:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _read(self, sql: str, *values: object) -> list[Row]:
        while self._connection:
            try:
                return self._connection.execute(sql, values).fetchall()
            except _ERRORS as error:
                if database.is_damage(error) and self._replace_damaged(error):
                    continue
                if not database.is_of_a_row(error):
                    self._say_unread(error)
                    self._hurry(error)
                break
        return []

    def _save(self) -> None:
        """Write what is not written yet; what fails for a reason that may pass stays."""
        if self._connection and database.identity(self._file) != self._identity:
            self._disconnect()  # another run set it aside, or somebody deleted it
            self._open()
        while self._connection and self._keeps and self._unsaved:
            try:
                self._write(self._connection)
            except _ERRORS as error:
                self._reason = error
                if database.is_damage(error) and self._replace_damaged(error):
                    continue
                self._hurry(error)
                break

    def _write(self, connection: sqlite3.Connection) -> None:
        """All or nothing, but for rows that no store can take."""
        lost = 0
        connection.execute("BEGIN IMMEDIATE")
        try:
            for key, row in self._unsaved.items():
                try:
                    database.insert(connection, row, replace=key not in self._carried)
                except _ERRORS as error:
                    if not database.is_of_a_row(error):
                        raise
                    self._reason = error
                    lost += 1
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
        self._lost += lost
        self._unsaved.clear()
        self._carried.clear()

    def _replace_damaged(self, damage: Exception) -> bool:
        """Set the store aside, begin a new one with all that can be read; whether it worked."""
        self._damages += 1
        if self._damages > _MOST_DAMAGES:
            return False
        connection = self._connection
        rows = database.readable_rows(connection) if connection else []
        rows = rows or database.rows_of_truncated(self._file)
        aside = None
        try:
            with database.alone(self._file):
                self._disconnect()
                if database.identity(self._file) == self._identity:  # else another run did it
                    aside = database.set_aside(self._file)
                self._carry_over(rows)
                self._open()
        except _ERRORS as error:
            self._reason = error
            self._open_for_reading(damage)
            return False
        self._save()
        if aside:
            carried = counted(len(rows) - len(self._carried), "answer")
            self._tell(
                f"stored answers damaged ({damage}); set aside as {shown(aside)}, "
                f"{carried} carried over"
            )
        return True

    def _carry_over(self, rows: list[Row]) -> None:
        carried = {row[0]: row for row in rows if row[0] not in self._unsaved}
        self._unsaved.update(carried)
        self._carried.update(carried)

    def _hurry(self, error: Exception) -> None:
        """Wait for a locked store once, not once per answer."""
        if self._connection and database.is_busy(error):
            self._connection.execute("PRAGMA busy_timeout=0")

    def _say_unread(self, reason: Exception) -> None:
        if not self._unread:
            self._unread = True
            self._tell(f"stored answers can't be read: {self._told(reason)}")

    def _told(self, error: Exception) -> str:
        return f"{shown(self._file)}: {database.cause(self._file) or error}"


def _answer(row: Row) -> Answer | None:
    """The answer of a row; None if another version wrote it, or nobody did."""
    _, _, text, tokens_in, tokens_out, cached, stop, seconds, _, extras = row
    columns = {"text": text, "stop": stop, "seconds": seconds}
    counts = {"input": tokens_in, "output": tokens_out, "cached": cached}
    try:  # SQLite keeps any type in any column
        extras, workspace = _unpacked(extras)
        usage = {**extras.get("usage", {}), **counts}
        answer = form_of(Answer).validate_python({**columns, **extras, "usage": usage})
    except (ValueError, TypeError, AttributeError, RecursionError, zlib.error):
        return None
    return replace(answer, stored=True, workspace=workspace)


def _is_encodable(text: object) -> bool:
    if isinstance(text, str) and not text.isascii():
        with suppress(UnicodeEncodeError):
            return bool(text.encode())
        return False
    return True


def _packed(extras: dict[str, Any], workspace: bytes) -> str | bytes | None:
    """What goes into the column of extras; what an agent leaves is long, so it is compressed."""
    text = json.dumps(extras) if extras else ""
    if len(text) < _WORTH_PACKING and not workspace:
        return text or None
    packed = zlib.compress(text.encode())
    return len(packed).to_bytes(8, "big") + packed + workspace


def _unpacked(data: str | bytes | None) -> tuple[dict[str, Any], bytes]:
    if not isinstance(data, bytes):
        return json.loads(data or "{}"), b""
    end = 8 + int.from_bytes(data[:8], "big")
    return json.loads(zlib.decompress(data[8:end]) or b"{}"), data[end:]


class KnownAnswers:
    """What the engine knows without asking: nothing."""

    def get(self, _question: Question) -> Reply | None:
        return None

    def key_of(self, _question: Question) -> str | None:
        """What an answer is stored under; None if it is not."""
        return None

    def put(self, _question: Question, _answer: Answer) -> bool:
        """Keep an answer; whether that is done already."""
        return False

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
        key = self.key_of(question)
        if self._fresh or key is None:
            return None
        return self._opened().get(key)

    def put(self, question: Question, answer: Answer) -> bool:
        key = self.key_of(question)
        if key is None:
            return False
        return self._opened().put(key, question.model, answer)

    def close(self) -> None:
        if self._store:
            self._store.close()

    def key_of(self, question: Question) -> str | None:
        identity = self._identity(question.model)
        return None if identity is None else digest(identity, question.content)

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store
