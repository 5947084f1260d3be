"""A pipe, a socket, a device or a folder in place of our files: an error, and no
hang.
"""

import os
import select
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from pytest_upskill._util.files import replace_file, why_unwritable
from pytest_upskill.engine.store import Store
from support.stored_answers import ANSWER, put

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such files")


def bind(file: Path) -> None:
    folder = Path.cwd()
    os.chdir(file.parent)  # the path of a socket has 100 bytes at most
    try:
        with closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(file.name)
    finally:
        os.chdir(folder)


KINDS: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "folder": Path.mkdir,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "broken link": lambda file: file.symlink_to(file.parent / "gone/a"),
}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_asked_or_stored_in_place_of_a_store(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    if kind == "broken link" and suffix:
        return  # SQLite makes what is missing, or can't
    KINDS[kind](tmp_path / f"a.sqlite{suffix}")
    messages: list[str] = []
    store = Store(tmp_path / "a.sqlite", messages.append)
    assert store.get("k") is None
    assert not store.leases.take(["k"])
    assert store.database.failed
    assert "a.sqlite" in store.database.problem
    assert not put(store, "k", "m", ANSWER)
    assert not store.close()
    assert messages[-1].startswith("1 answer could not be stored: ")


def test_a_pipe_that_nobody_reads_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(file := tmp_path / "pipe")
    assert why_unwritable(file) == ""  # somebody may read it later
    with pytest.raises(OSError, match="pipe"):
        replace_file(file, "report")


def test_a_pipe_gets_all_of_a_report_even_if_its_reader_is_slow(tmp_path: Path) -> None:
    os.mkfifo(file := tmp_path / "pipe")
    report = "line\n" * 100_000  # more than a pipe holds
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    # Without opening it, or the reader would be at its end
    assert why_unwritable(file) == ""
    writer = threading.Thread(target=replace_file, args=[file, report])
    writer.start()
    select.select([reader], [], [])  # until something was written
    with os.fdopen(reader, encoding="utf-8") as stream:
        assert stream.read() == report
    writer.join()


@pytest.mark.parametrize(
    "hostile",
    [
        "CREATE TRIGGER t AFTER INSERT ON leases BEGIN DELETE FROM answers; END",
        "CREATE VIEW v AS SELECT 1",
        (
            "DROP TABLE leases; CREATE VIEW leases AS WITH RECURSIVE n(key) AS (SELECT"
            " 1 UNION ALL SELECT key + 1 FROM n) SELECT key, '' AS owner, 1.0 AS until"
            " FROM n"
        ),
        "ALTER TABLE leases ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(owner))",
    ],
)
def test_a_store_with_anything_but_our_tables_is_set_aside(
    tmp_path: Path, hostile: str
) -> None:
    Store(tmp_path / "a.sqlite").close()
    with closing(
        sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    ) as connection:
        connection.executescript(hostile)
    messages: list[str] = []
    store = Store(tmp_path / "a.sqlite", messages.append)
    assert store.leases.take(["k"])
    assert put(store, "k", "m", ANSWER)
    assert store.close()
    assert len(list(tmp_path.glob("answers-*.old"))) == len(messages) == 1
