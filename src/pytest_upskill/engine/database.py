"""The SQLite file of the stored answers: opened, read, and set aside when it is damaged.

Damage is what SQLite calls so, and nothing else: a locked or later store, a full or read-only disk
and a row that does not fit say nothing about the data.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from .._util.files import replace_file, why_unwritable

_VERSION: Final = 1
_WAIT_MS: Final = 10_000
_LITTLE: Final = 100_000  # bytes; SQLite needs some for the files beside a store
# With row ids: a table without them is its own index, and an index puts rows of more than a
# thousand bytes on pages of their own. That took twice the room, and twice the time to find one.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    input INTEGER, output INTEGER, cached INTEGER,
    stop TEXT NOT NULL,
    seconds REAL NOT NULL,
    created REAL NOT NULL
)
"""
# What few answers have is in a table of its own. An answer and its extras have the same
# ``created``, so extras are void once another answer has replaced theirs.
_EXTRAS: Final = """
CREATE TABLE IF NOT EXISTS extras (
    key TEXT PRIMARY KEY,
    created REAL NOT NULL,
    data TEXT NOT NULL
)
"""
_MOST_ROWS: Final = 10_000_000  # more is a damaged number
_AT_ONCE: Final = 32
_HUGE: Final = 2**40  # bytes; no store is that large
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_OF_A_ROW: Final = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_MARKS: Final = ("", *(f"{number:03x}" for number in range(4096)), "\U0010ffff")

SELECT: Final = (
    "SELECT key, model, text, input, output, cached, stop, seconds, created, data"
    " FROM answers LEFT JOIN extras USING (key, created)"
)
Row = tuple[Any, ...]  # of SELECT


class LaterVersion(sqlite3.Error):
    """The store belongs to a later version of pytest-upskill."""


def make_folder(folder: Path) -> None:
    """Make the folder that a project keeps between runs, ignored by git."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        replace_file(ignore, "# Made by pytest-upskill: nothing here belongs in git.\n*\n")


def opened(file: Path) -> sqlite3.Connection:
    """A store to read and write; made if there is none. sqlite3.Error or OSError if that fails."""
    make_folder(file.parent)
    connection = _connected(file)
    try:
        version = _version(connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_SCHEMA)
        connection.execute(_EXTRAS)
        if version == 0:  # a healthy store is opened without writing
            connection.execute(f"PRAGMA user_version={_VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def opened_for_reading(file: Path) -> sqlite3.Connection | None:
    """A store on a disk that is full or read-only, where SQLite can't make its usual files.

    None if there is nothing to read; what a killed run left in a log can't be read this way.
    """
    log = Path(f"{file}-wal")
    if not file.is_file() or not file.stat().st_size or (log.exists() and log.stat().st_size):
        return None
    connection = _connected(f"{file.absolute().as_uri()}?mode=ro&immutable=1")
    try:
        _version(connection)
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def is_damage(error: Exception) -> bool:
    return _code(error) in _DAMAGE


def is_busy(error: Exception) -> bool:
    return _code(error) in _BUSY


def is_of_a_row(error: Exception) -> bool:
    """Whether only what was read or written is at fault. Python's own errors have no code."""
    return _code(error) is None or _code(error) in _OF_A_ROW


def readable_rows(connection: sqlite3.Connection) -> list[Row]:
    """All that can still be read of a damaged store.

    A scan ends at the first damaged page. Keys are hex digests, so many short scans, each from
    both ends, get around it.
    """
    rows: dict[str, Row] = {}
    sql = f"{SELECT} WHERE key >= ? AND key < ? ORDER BY key"
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA cell_size_check=ON")
    for low, high in pairwise(_MARKS):
        for order in ("", " DESC"):
            try:
                for row in connection.execute(sql + order, (low, high)):
                    # A damaged page may also hold rows that nobody wrote.
                    if isinstance(row[0], str) and low <= row[0] < high:
                        rows[row[0]] = row
                break
            except (sqlite3.Error, ValueError):
                continue
    for row in _rows_by_number(connection):
        rows.setdefault(row[0], row)
    return list(rows.values())


def _rows_by_number(connection: sqlite3.Connection) -> Iterator[Row]:
    """The same past the index of the keys, which may be what is damaged."""
    sql = f"{SELECT} WHERE answers.rowid BETWEEN ? AND ?"
    most = 0
    with suppress(sqlite3.Error):
        [most] = connection.execute("SELECT COALESCE(MAX(rowid), 0) FROM answers").fetchone()
    for first in range(1, min(most, _MOST_ROWS) + 1, _AT_ONCE):
        with suppress(sqlite3.Error, ValueError):
            found = connection.execute(sql, (first, first + _AT_ONCE - 1))
            yield from (row for row in found if isinstance(row[0], str))


def rows_of_truncated(file: Path) -> list[Row]:
    """All that can be read of a store that lost its end, which SQLite refuses to open."""
    with (
        suppress(OSError, sqlite3.Error),
        tempfile.TemporaryDirectory(prefix="upskill-", ignore_cleanup_errors=True) as folder,
    ):
        copy = Path(folder, file.name)
        shutil.copyfile(file, copy)
        with copy.open("r+b") as stream:
            head = stream.read(100)
            size = int.from_bytes(head[16:18], "big") * int.from_bytes(head[28:32], "big")
            if not copy.stat().st_size < size < _HUGE:
                return []
            stream.truncate(size)  # to what its header says, with zeros
        with closing(_connected(copy)) as connection:
            return readable_rows(connection)
    return []


def insert(connection: sqlite3.Connection, row: Row, *, replace: bool) -> None:
    how = "REPLACE" if replace else "IGNORE"
    marks = ",".join("?" * (len(row) - 1))
    connection.execute(f"INSERT OR {how} INTO answers VALUES ({marks})", row[:-1])
    if (data := row[-1]) is not None:
        extras = (row[0], row[-2], data)
        connection.execute(f"INSERT OR {how} INTO extras VALUES (?,?,?)", extras)


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Let no two runs set a store aside at once. SQLite's locks end with their process."""
    lock = _connected(file.with_name("answers.lock"))
    try:
        lock.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        lock.close()


def set_aside(file: Path) -> Path:
    """Rename a store rather than delete it: its answers were paid for."""
    mark = datetime.now().strftime("%Y%m%d-%H%M%S")
    handle, name = tempfile.mkstemp(".broken", f"answers-{mark}-", file.parent)
    os.close(handle)
    aside = Path(name)  # a new name, so nothing is overwritten
    try:
        file.replace(aside)
    except OSError:
        aside.unlink()
        raise
    for extra in ("-wal", "-shm"):
        with suppress(OSError):
            Path(f"{file}{extra}").replace(f"{aside}{extra}")
    return aside


def identity(file: Path) -> tuple[int, int] | None:
    """Which file is there now; another run may have set ours aside."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def cause(file: Path) -> str:
    """Why a store can't be written, where SQLite only says that it can't; empty if unknown."""
    with suppress(OSError):
        if shutil.disk_usage(file.parent).free < _LITTLE:
            return "no space left on the disk"
    return why_unwritable(file)


def _connected(file: Path | str) -> sqlite3.Connection:
    # Each statement is committed at once.
    connection = sqlite3.connect(file, isolation_level=None, uri=isinstance(file, str))
    connection.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, _VERSION):
        raise LaterVersion("made by a later version of pytest-upskill; update it to use the store")
    return int(version)


def _code(error: Exception) -> int | None:
    """SQLite's code of an error, without its details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
