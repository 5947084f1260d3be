"""Stored answers, so that none is paid for twice: a SQLite cache in write-ahead mode.

Each answer is committed as it arrives, so a killed run loses nothing. Several runs may
share a store: each question has a lease while one of them asks it, and the others wait
for its answer. The lease of a killed run ends by itself, as nobody renews it.

An answer that can't be read is asked for again; one that can't be written
is tried again later. A damaged file, or one of another version, is set
aside and a new one begun.
"""

import errno
import json
import math
import os
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Final

from .._util.files import (
    inflated,
    reason_of,
    replace_file,
    require_regular,
    why_unwritable,
)
from .._util.json_forms import MOST_TIME, form_of, parse_limited
from .._util.texts import counted, digest
from ..errors import shown
from ..trials.answer import Answer, Reply
from ..trials.answer_times import dated
from ..trials.trial import Question

FOLDER: Final = ".upskill"
FILE_NAME: Final = "answers.sqlite"
_VERSION: Final = 4
_TIMEOUT: Final = 10.0  # seconds that a statement waits for another run
# Seconds until a locked store counts as one that can't be written
_LONGEST_LOCK: Final = 30.0
_LARGEST_ANSWER: Final = 64_000_000  # bytes, unpacked
# Free bytes of the disk for each answer, and for SQLite's own files
_ROOM: Final = 100_000
_LEASE: Final = 15.0  # seconds, unless it is renewed
_RENEWED: Final = 3.0  # seconds between renewals
_SCHEMA: Final = (
    (
        "CREATE TABLE answers (key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL"
        " NOT NULL, answer BLOB NOT NULL)"
    ),
    (
        "CREATE TABLE leases ("
        "key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"
    ),
)
# One that would last much longer was made by a clock that was wrong; a little longer by
# another run since this one looked at its clock.
_LASTS: Final = f"(until BETWEEN ? AND ? + {2 * _LEASE})"
_TAKE_LEASE: Final = f"""
INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
SET owner = excluded.owner, until = excluded.until WHERE NOT {_LASTS}
"""
# An answer that is written late replaces no newer one,
# unless that has a date in the future.
_INSERT: Final = """
INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET model = excluded.model, created = excluded.created, answer = excluded.answer
WHERE NOT (answers.created > excluded.created AND answers.created <= ?)
"""
# SQLite keeps any type in any column. What is no time was long ago.
_IS_TIME: Final = f"(typeof(created) = 'real' AND created BETWEEN 0 AND {MOST_TIME})"
_TIME: Final = f"CASE WHEN {_IS_TIME} THEN created ELSE 0.0 END"
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_ERRORS: Final = (sqlite3.Error, OSError, OverflowError)

_Row = tuple[Any, ...]


class _OtherVersion(sqlite3.Error):
    pass


@dataclass(frozen=True)
class StoreSize:
    """What a store holds."""

    answers: dict[str, int]  # by model
    size: int  # in bytes
    oldest: float | None  # time.time()


class Store:
    """The answers of a project, by key. Opened and used by one thread."""

    def __init__(
        self, file: Path, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self._file = file
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self._unsaved: dict[str, _Row] = {}  # to be tried again
        self._unusable = 0  # answers that can't be written as JSON
        self._error: Exception | None = None  # the last one
        # At most once per run; then the disk is broken, not the file
        self._replaced = False
        self._warned = False  # that answers can't be read
        self._failing_since: float | None = None  # writing; time.monotonic()
        self._owner = f"{os.getpid()}-{token_hex(8)}"
        self._leases = set[str]()
        self._renewed_at = 0.0  # time.monotonic()
        self._open()

    def get(self, key: str) -> Answer | None:
        rows = [self._unsaved[key][2:]] if key in self._unsaved else []
        rows += self._read(
            f"SELECT {_TIME}, CAST(answer AS BLOB) FROM answers WHERE key=?", key
        )
        return _unpacked(*rows[0]) if rows else None

    def asked_at(self, key: str) -> int | None:
        """When an answer was given; None if there is none."""
        if key in self._unsaved:
            return int(self._unsaved[key][2])
        rows = self._read(f"SELECT {_TIME} FROM answers WHERE key=?", key)
        return int(rows[0][0]) if rows else None

    def put(self, key: str, model: str, answer: Answer) -> bool:
        """Store an answer; returns whether it was written. Never an error:
        the answer is good.
        """
        try:
            data = _packed(answer)
        except ValueError as error:
            self._error = error
            self._unusable += 1
            return False
        # An argument may not be UTF-8
        name = model.encode(errors="backslashreplace").decode()
        asked_at = time.time() if answer.asked_at is None else float(answer.asked_at)
        self._unsaved[key] = (key, name, asked_at, data)
        self._save()
        return key not in self._unsaved

    def size(self) -> StoreSize:
        counts = self._read(
            "SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model"
        )
        oldest = self._read(f"SELECT MIN(created) FROM answers WHERE {_IS_TIME}")
        # Not the size of the files: while the store is open, SQLite keeps more of them.
        pages = "pragma_page_count, pragma_page_size"
        [(size,)] = self._read(f"SELECT page_count * page_size FROM {pages}") or [(0,)]
        models = {str(model): number for model, number in counts}
        return StoreSize(models, size, oldest[0][0] if oldest else None)

    def prune(self, before: float) -> int | None:
        """Delete answers from before this time.time(); returns how many,
        None if that fails.
        """
        deleted = self._write("DELETE FROM answers WHERE created < ?", before)
        if deleted is None:
            self._notify(f"stored answers can't be deleted: {self._problem}")
            return None
        self._execute("VACUUM")  # may fail: it needs space on the disk
        return deleted

    def lease(self, key: str) -> bool:
        """Whether this run is to ask a question: nobody else is asking it.

        Also False if that can't be written down, or there may
        be no room for its answer.
        """
        if not self._has_room(1 + len(self._leases)):
            if not self._leases:  # else their answers may take less
                self._fail(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            return False
        now = time.time()
        if not self._write(_TAKE_LEASE, key, self._owner, now + _LEASE, now, now):
            return False
        self._leases.add(key)
        return True

    def release(self, key: str) -> None:
        if key in self._leases:
            self._leases.remove(key)
            self._write("DELETE FROM leases WHERE key=? AND owner=?", key, self._owner)

    def leased(self) -> set[str]:
        """The questions that are being asked, by this run or another."""
        now = time.time()
        return {
            key
            for [key] in self._read(f"SELECT key FROM leases WHERE {_LASTS}", now, now)
        }

    def renew(self) -> None:
        """Keep the leases, and try again to write what could not be written;
        call it often.
        """
        if time.monotonic() < self._renewed_at + _RENEWED:
            return
        self._renewed_at = time.monotonic()
        self._save()
        if self._leases:
            until = time.time() + _LEASE
            self._write("UPDATE leases SET until=? WHERE owner=?", until, self._owner)

    @property
    def trouble(self) -> str:
        """Why nothing can be written; empty if it can. Another run
        may lock the store a while.
        """
        if self._failing_since is None:
            return ""
        locked = (
            time.monotonic() - self._failing_since
            if _is_locked(self._error)
            else math.inf
        )
        return self._problem if locked > _LONGEST_LOCK else ""

    def close(self) -> bool:
        """Store what could not be stored so far; returns
        whether all answers are stored.
        """
        if self._unsaved:
            self._disconnect()
            self._open()
            self._save()
        if self._leases:
            ended = time.time() - _LEASE
            self._write(
                "DELETE FROM leases WHERE owner=? OR until < ?", self._owner, ended
            )
        self._disconnect()
        if missing := len(self._unsaved) + self._unusable:
            self._notify(
                f"{counted(missing, 'answer')} could not be stored: {self._problem}"
            )
        self._unsaved, self._unusable = {}, 0
        return not missing

    def _save(self) -> None:
        for key in list(self._unsaved):
            row = self._unsaved.pop(key)
            if self._write(_INSERT, *row, time.time()) is None:
                self._unsaved[key] = row
                break

    def _write(self, sql: str, *values: object) -> int | None:
        """The number of rows that a statement changed; None after an error."""
        if self._connection and _identity(self._file) != self._identity:
            self._disconnect()  # another run set the file aside, or somebody deleted it
            self._open()
        rows = self._execute(sql, *values)
        if rows is None:
            self._fail()
            return None
        # What is smaller than an answer may fit
        if self._failing_since and not self._unsaved:
            self._failing_since = None
            self._execute(f"PRAGMA busy_timeout={_TIMEOUT * 1000:.0f}")
        [(changed,)] = self._execute("SELECT changes()") or [(0,)]
        return int(changed)

    def _fail(self, error: Exception | None = None) -> None:
        self._error = error or self._error
        self._failing_since = self._failing_since or time.monotonic()

    def _has_room(self, answers: int) -> bool:
        with suppress(OSError):
            disk = shutil.disk_usage(self._file.parent)
            # Some systems don't say
            return disk.free >= answers * _ROOM or not disk.total
        return True

    def _read(self, sql: str, *values: object) -> list[_Row]:
        rows = self._execute(sql, *values)
        if rows is None and self._file.exists() and not self._warned:
            self._warned = True
            self._notify(f"stored answers can't be read: {self._problem}")
        return rows or []

    def _execute(self, sql: str, *values: object) -> list[_Row] | None:
        """The rows of a statement; None after an error."""
        while self._connection:
            try:
                return self._connection.execute(sql, values).fetchall()
            except _ERRORS as error:
                self._error = error
                if _is_unusable(error) and self._replace(error):
                    continue
                # Wait once, not for each answer
                if self._connection and _is_locked(error):
                    self._connection.execute("PRAGMA busy_timeout=0")
                break
        return None

    def _open(self) -> None:
        self._identity = _identity(self._file)
        try:
            self._connection = _connected(self._file)
            self._identity = _identity(self._file)
        except _ERRORS as error:
            self._error = error
            if _is_unusable(error):
                self._replace(error)
            elif not _is_locked(error):
                with suppress(*_ERRORS):
                    self._connection = _connected_read_only(self._file)

    def _replace(self, reason: Exception) -> bool:
        """Set the file aside and begin a new one; returns whether that worked."""
        self._disconnect()
        if self._replaced:
            return False
        self._replaced = True
        try:
            if _identity(self._file) == self._identity:  # else another run did it
                aside = _set_aside(self._file)
                self._notify(f"stored answers set aside as {shown(aside)}: {reason}")
        except OSError:
            return False
        self._open()
        return self._connection is not None

    def _disconnect(self) -> None:
        if self._connection:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    @property
    def _problem(self) -> str:
        """The last error, with its cause where SQLite only says that something
        failed.
        """
        cause = why_unwritable(self._file)
        if not self._has_room(1):
            cause = "no space left on the disk"
        error = self._error
        cause = cause or (
            reason_of(error) if isinstance(error, OSError) else str(error)
        )
        return f"{shown(self._file)}: {cause}"


def make_folder(folder: Path) -> None:
    """Make the folder that a project keeps between runs, ignored by git."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        replace_file(
            ignore, "# Made by pytest-upskill: nothing here belongs in git.\n*\n"
        )


def _connected(file: Path) -> sqlite3.Connection:
    make_folder(file.parent)
    require_database(file)
    connection = _connection(str(file.absolute()))
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if _version(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:  # no other run was faster
                for table in _SCHEMA:
                    connection.execute(table)
                connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute("COMMIT")
        if not _is_ours(connection):
            raise _OtherVersion("written by another version of pytest-upskill")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connected_read_only(file: Path) -> sqlite3.Connection | None:
    """A store on a disk that is full or read-only, where SQLite
    can't make its usual files.
    """
    log = Path(f"{file}-wal")
    if log.exists() and log.stat().st_size:
        return None  # it would be ignored
    require_regular(file)
    connection = _connection(f"{file.absolute().as_uri()}?mode=ro&immutable=1")
    if not _is_ours(connection):
        connection.close()
        return None
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def require_database(file: Path) -> None:
    """OSError if SQLite would open a pipe, a socket, a device or a folder,
    and perhaps wait.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = Path(f"{file}{suffix}")
        try:
            require_regular(part)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OSError(error.errno, f"{part.name}: {reason_of(error)}") from None


def _connection(address: str) -> sqlite3.Connection:
    """A connection that commits each statement, and reads any text."""
    uri = address.startswith("file:")
    connection = sqlite3.connect(address, _TIMEOUT, isolation_level=None, uri=uri)
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Whether its tables are ours, and nothing else: a view or a trigger may never
    end.
    """
    made = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    return _version(connection) == _VERSION and {sql for [sql] in made} == {*_SCHEMA}


def _set_aside(file: Path) -> Path:
    """Rename a store rather than delete it: its answers were paid for."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    handle, name = tempfile.mkstemp(".old", f"answers-{stamp}-", file.parent)
    os.close(handle)
    try:
        # first, or a new store would take them for its own
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{file}{suffix}").replace(f"{name}{suffix}")
        return file.replace(name)
    except OSError:
        Path(name).unlink()
        raise


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file is there now; another run may have set ours aside."""
    with suppress(OSError):
        status = file.stat()
        return status.st_dev, status.st_ino
    return None


def _is_unusable(error: Exception) -> bool:
    return isinstance(error, _OtherVersion) or _code(error) in _DAMAGED


def _is_locked(error: Exception | None) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: Exception | None) -> int | None:
    """SQLite's code of an error, without its details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _packed(answer: Answer) -> bytes:
    """An answer as compressed JSON; ValueError if it could not be read again.

    Its time is in a column.
    """
    form, timeless = form_of(Answer), replace(answer, asked_at=None)
    values = form.dump_python(
        timeless, mode="json", exclude_defaults=True, warnings=False
    )
    form.validate_python(values)
    return zlib.compress(json.dumps(values).encode())


def _unpacked(asked_at: float, data: bytes) -> Answer | None:
    """The answer of a row; None if it can't be read."""
    try:
        values = parse_limited(inflated(data, _LARGEST_ANSWER).decode())
        answer = form_of(Answer).validate_python(values)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return replace(answer, stored=True, asked_at=int(asked_at))


class KnownAnswers:
    """What the engine knows without asking: nothing."""

    def get(self, _question: Question) -> Reply | None:
        return None

    def asked_at(self, _question: Question) -> int | None:
        """When a stored answer was given; None if there is none."""
        return None

    def key_of(self, _question: Question) -> str | None:
        """What an answer is stored under; None if it is not stored."""
        return None

    def put(self, _question: Question, _answer: Answer) -> bool:
        """Keep an answer; returns whether that is done already."""
        return False

    def put_late(self, _question: Question, _answer: Answer) -> Answer | None:
        """Keep that a question reached its time limit.

        Returns the failed answer if it did so in an earlier run, too.
        """
        return None

    def lease(self, _key: str) -> bool:
        """Whether to ask a question that is stored under a key:
        no other run is asking it.
        """
        return True

    def release(self, _key: str) -> None:
        """The question has its reply."""

    def leased(self) -> Set[str]:
        """The keys of questions that are being asked."""
        return frozenset()

    def renew(self) -> None:
        """Keep the leases; called now and then."""

    @property
    def trouble(self) -> str:
        """Why nothing must be asked: answers could not be kept. Empty if they can."""
        return ""

    def close(self) -> bool:
        """Returns whether all answers were kept that should be."""
        return True


_NO_ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType({})


def _is_newer(answer: Answer, other: Answer) -> bool:
    return (answer.asked_at or 0) > (other.asked_at or 0)


class StoredAnswers(KnownAnswers):
    """Answers of earlier runs, under a key of everything that shapes them.

    ``identity`` maps the name of a model to what it really is (protocol, address,
    id), or to None if its answers must not be stored. ``open_store`` is called on
    the engine's thread. A ``fresh`` run asks everything itself, even what another
    run is asking, and even if it can't be kept. ``hint`` says what to do if answers
    can't be kept. ``recorded`` are answers of a file by the keys of their
    questions; the newer one counts.

    ``seconds_for`` is the time limit of a question. One that reached it in two runs has
    failed, and is asked again only with more time: asking until it ends well would
    favour the arm with more time-outs.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        identity: Callable[[str], str | None],
        *,
        fresh: bool,
        hint: str = "",
        recorded: Mapping[str, Answer] = _NO_ANSWERS,
        seconds_for: Callable[[Question], float] = lambda _: 0.0,
    ) -> None:
        self._recorded = recorded
        self._open_store = open_store
        self._hint = hint
        self._identity = identity
        self._fresh = fresh
        self._seconds_for = seconds_for
        self._answering = set[str]()  # models that have answered
        self._store: Store | None = None

    def get(self, question: Question) -> Reply | None:
        key = self.key_of(question)
        if self._fresh or key is None:
            return self._recorded.get(question.key)
        stored = self._opened().get(key)
        if stored and stored.stop != "time":
            self._answering.add(question.model)
        elif stored and (stored.seconds or 0.0) < self._seconds_for(question):
            stored = None

        recorded = self._recorded.get(question.key)
        if recorded is None or (
            isinstance(stored, Answer) and _is_newer(stored, recorded)
        ):
            return stored
        return recorded

    def asked_at(self, question: Question) -> int | None:
        if question.key in self._recorded:
            answer = self.get(question)
            return answer.asked_at if isinstance(answer, Answer) else None
        key = self.key_of(question)
        return None if self._fresh or key is None else self._opened().asked_at(key)

    def put(self, question: Question, answer: Answer) -> bool:
        self._answering.add(question.model)
        key = self.key_of(question)
        return key is not None and self._opened().put(key, question.model, answer)

    def put_late(self, question: Question, answer: Answer) -> Answer | None:
        key = self.key_of(question)
        if key is None or not _may_fail(question):
            return None

        store = self._opened()
        first_key = f"late {key}"
        late = dated(replace(answer, seconds=self._seconds_for(question)))
        turns = answer.activity.turns if answer.activity else 0
        # A server that answers nothing at all is down: no answer has failed.
        answers = turns > 0 or question.model in self._answering
        if answers and store.get(first_key):
            store.put(key, question.model, late)
            return late

        store.put(first_key, question.model, late)
        return None

    def lease(self, key: str) -> bool:
        return self._opened().lease(key) or self._fresh

    def release(self, key: str) -> None:
        self._opened().release(key)

    def leased(self) -> Set[str]:
        return self._opened().leased()

    def renew(self) -> None:
        self._opened().renew()

    @property
    def trouble(self) -> str:
        trouble = self._store.trouble if self._store and not self._fresh else ""
        return trouble and f"{trouble}{self._hint}"

    def close(self) -> bool:
        kept = self._store.close() if self._store else True
        return kept or self._fresh

    def key_of(self, question: Question) -> str | None:
        user = question.task.user if question.task else None
        names = [question.asked_as, *([user.model] if user and user.model else [])]
        identities = [self._identity(name) for name in names]
        known = [identity for identity in identities if identity is not None]
        return digest(*known, question.content) if len(known) == len(names) else None

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store


def _may_fail(question: Question) -> bool:
    """Whether a question is that of a case.

    Nothing follows from a judge, a teacher or a choice of skills that never came.
    """
    task = question.task
    is_choice = question.choice or (task and task.until_opened)
    return not (is_choice or question.schema or question.verdicts)
