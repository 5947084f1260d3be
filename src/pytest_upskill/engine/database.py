"""A SQLite file that several runs share, and that may be damaged, locked or full."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from .._util.files import reason_of, replace_file, require_regular, why_unwritable
from ..errors import shown

_VERSION: Final = 4
_BUSY_SECONDS: Final = 10.0  # that a statement waits for another run
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_LOCKED: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_ERRORS: Final = (sqlite3.Error, OSError, OverflowError)

Result = TypeVar("Result")
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Row]]  # SQL, with the values of each time


class _OtherVersion(sqlite3.Error):
    pass


class Database:
    """A file in write-ahead mode; used by one thread. Nothing here raises an error.

    A damaged file, or one of another version, is set aside once, and a new one begun.
    After an error nothing more is written until the file is opened again. ``notify``
    gets what people should know.
    """

    def __init__(
        self, file: Path, tables: Sequence[str], notify: Callable[[str], None]
    ) -> None:
        self.file = file
        self.failed = False  # nothing can be written
        self._tables = tables
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self.error: Exception | None = None  # the last one
        # At most once per run; then the disk is broken, not the file
        self._replaced = False
        self._warned = False  # that it can't be read
        self.open()

    def read(self, sql: str, *values: object) -> list[Row]:
        rows = self._execute(lambda db: db.execute(sql, values).fetchall())
        if rows is None and self.file.exists() and not self._warned:
            self._warned = True
            self._notify(f"stored answers can't be read: {self.problem}")
        return rows or []

    def write(self, *statements: Statement) -> int | None:
        """Carry out all statements or none; the number of rows that changed, None after
        an error.
        """
        if self.failed:
            return None
        if self._connection and _identity(self.file) != self._identity:
            self.open()  # another run set the file aside, or somebody deleted it

        def write(db: sqlite3.Connection) -> int:
            before = db.total_changes
            with suppress(sqlite3.OperationalError):
                db.execute("ROLLBACK")
            db.execute("BEGIN IMMEDIATE")
            for sql, rows in statements:
                db.executemany(sql, rows)
            db.execute("COMMIT")
            return db.total_changes - before

        changed = self._execute(write)
        self.failed = changed is None
        return changed

    def shrink(self) -> None:
        """Give space back; may fail, as it needs some."""
        self._execute(lambda db: db.execute("VACUUM"))

    @property
    def problem(self) -> str:
        """The last error, with its cause where SQLite only says that something
        failed.
        """
        cause = why_unwritable(self.file)
        if not cause and isinstance(self.error, OSError):
            cause = reason_of(self.error)
        return f"{shown(self.file)}: {cause or self.error}"

    def open(self) -> None:
        """Open the file, again if it was open."""
        self.close()
        self.failed = False
        self._identity = _identity(self.file)
        try:
            self._connection = _connected(self.file, self._tables)
            self._identity = _identity(self.file)
        except _ERRORS as error:
            self.error = error
            if _is_unusable(error):
                self._replace(error)
            elif _code(error) not in _LOCKED:
                with suppress(*_ERRORS):
                    self._connection = _connected_read_only(self.file, self._tables)

    def close(self) -> None:
        if self._connection:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _execute(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """What ``work`` returns; None after an error."""
        while self._connection:
            try:
                return work(self._connection)
            except _ERRORS as error:
                self.error = error
                if not (_is_unusable(error) and self._replace(error)):
                    break
        return None

    def _replace(self, reason: Exception) -> bool:
        """Set the file aside and begin a new one; returns whether that worked."""
        self.close()
        if self._replaced:
            return False

        self._replaced = True
        try:
            if _identity(self.file) == self._identity:  # else another run did it
                aside = _set_aside(self.file)
                self._notify(f"stored answers set aside as {shown(aside)}: {reason}")
        except OSError:
            return False
        self.open()
        return self._connection is not None


def make_folder(folder: Path) -> None:
    """Make the folder that a project keeps between runs, ignored by git."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        replace_file(
            ignore, "# Made by pytest-upskill: nothing here belongs in git.\n*\n"
        )


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


def _connected(file: Path, tables: Sequence[str]) -> sqlite3.Connection:
    make_folder(file.parent)
    require_database(file)
    connection = _connection(str(file.absolute()))
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if _version(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:  # no other run was faster
                for table in tables:
                    connection.execute(table)
                connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute("COMMIT")
        if not _is_ours(connection, tables):
            raise _OtherVersion("written by another version of pytest-upskill")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connected_read_only(
    file: Path, tables: Sequence[str]
) -> sqlite3.Connection | None:
    """A file on a disk that is full or read-only, where SQLite
    can't make its usual files.
    """
    log = Path(f"{file}-wal")
    if log.exists() and log.stat().st_size:
        return None  # it would be ignored

    require_regular(file)
    connection = _connection(f"{file.absolute().as_uri()}?mode=ro&immutable=1")
    if not _is_ours(connection, tables):
        connection.close()
        return None
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def _connection(address: str) -> sqlite3.Connection:
    """A connection that reads any text, and begins no transaction by itself."""
    uri = address.startswith("file:")
    connection = sqlite3.connect(address, _BUSY_SECONDS, isolation_level=None, uri=uri)
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _is_ours(connection: sqlite3.Connection, tables: Sequence[str]) -> bool:
    """Whether its tables are ours, and nothing else: a view or a trigger may never
    end.
    """
    made = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    return _version(connection) == _VERSION and {sql for [sql] in made} == {*tables}


def _set_aside(file: Path) -> Path:
    """Rename a file rather than delete it: its answers were paid for."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    aside = file.with_name(f"answers-{stamp}.old")
    # first, or a new store would take them for its own
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{file}{suffix}").replace(f"{aside}{suffix}")
    return file.replace(aside)


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file is there now; another run may have set ours aside."""
    with suppress(OSError):
        status = file.stat()
        return status.st_dev, status.st_ino
    return None


def _is_unusable(error: Exception) -> bool:
    return isinstance(error, _OtherVersion) or _code(error) in _DAMAGED


def _code(error: Exception | None) -> int | None:
    """SQLite's code of an error, without its details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
