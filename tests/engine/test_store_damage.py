"""A store that is damaged, truncated, locked, deleted,
or on a disk that is full or read-only.
"""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_upskill.engine import database
from pytest_upskill.engine.store import Store
from support.kit import write_damaged_store
from support.stored_answers import ANSWER, WITH_EXTRAS, put, stored


def asides(folder: Path) -> list[Path]:
    return sorted(folder.glob("answers-*.old"))


def test_what_was_never_a_store_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    file.write_bytes(before := b"this was never a database, it is just words " * 100)
    messages: list[str] = []
    store = Store(file, messages.append)
    put(store, "k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()
    [aside] = asides(tmp_path)
    assert aside.read_bytes() == before
    [message] = messages
    assert message.startswith("stored answers set aside as ")
    assert message.endswith(": file is not a database")


@pytest.mark.parametrize("version", [1, 99])
def test_a_store_of_another_version_is_set_aside(tmp_path: Path, version: int) -> None:
    file = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE answers (new)")
        connection.execute("INSERT INTO answers VALUES ('paid for')")
        connection.execute(f"PRAGMA user_version={version}")
    messages: list[str] = []
    store = Store(file, messages.append)
    put(store, "k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()
    [aside] = asides(tmp_path)
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT * FROM answers").fetchall() == [("paid for",)]
    [message] = messages
    assert message.endswith("written by another version of pytest-upskill")
    Store(file, pytest.fail).close()


def test_a_damaged_store_is_set_aside_once(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    messages: list[str] = []
    store = Store(file, messages.append)
    for number in range(200):
        store.get(f"k{number}")
        put(store, f"new{number}", "m", ANSWER)
    store.close()
    [message] = messages
    assert "malformed" in message
    assert len(asides(tmp_path)) == 1
    again = Store(file, pytest.fail)
    assert again.get("new199") == stored(ANSWER)
    again.close()


def test_a_truncated_store_is_set_aside(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    store = Store(file)
    put(store, "new", "m", ANSWER)
    assert [store.get(f"k{number}") for number in range(200)] == [None] * 200
    store.close()
    assert len(asides(tmp_path)) == 1


def test_two_runs_on_a_damaged_store_set_it_aside_once(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    messages: list[str] = []
    one, two = Store(file, messages.append), Store(file, messages.append)
    for number in range(200):
        one.get(f"k{number}")
        put(one, f"one{number}", "m", ANSWER)
        two.get(f"k{number}")
        put(two, f"two{number}", "m", ANSWER)
    one.close()
    two.close()
    assert len(asides(tmp_path)) == len(messages) == 1
    third = Store(file, pytest.fail)
    assert all(
        third.get(f"{run}{n}") for run in ("one", "two") for n in range(100, 200)
    )
    third.close()


def test_stores_damaged_in_the_same_second_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    texts = [f"{number} words, no database " * 50 for number in range(5)]
    for text in texts:
        file.write_text(text)
        Store(file).close()
    assert sorted(aside.read_text() for aside in asides(tmp_path)) == texts


def full_or_read_only(store: Store, how: str) -> None:
    """Make the disk look full, read-only or locked to a store, also to root."""
    assert store.database._connection
    pragmas = {
        "full": "max_page_count=1",
        "read-only": "query_only=1",
        "locked": "busy_timeout=0",
    }
    store.database._connection.execute(f"PRAGMA {pragmas[how]}")


@pytest.mark.parametrize("how", ["full", "read-only", "locked"])
def test_what_can_not_be_written_now_is_used_and_written_at_the_end(
    tmp_path: Path, how: str
) -> None:
    file = tmp_path / "a.sqlite"
    store = Store(file, pytest.fail)
    put(store, "old", "m", ANSWER)
    full_or_read_only(store, how)
    other = sqlite3.connect(file, isolation_level=None)
    if how == "locked":
        other.execute("BEGIN IMMEDIATE")
    long = replace(ANSWER, text=Random(1).randbytes(9000).hex())
    for number in range(3):
        put(store, f"new{number}", "m", long)
    assert other.execute("SELECT COUNT(*) FROM answers").fetchone() == (1,)
    assert store.get("old") == stored(ANSWER)
    assert store.get("new2") == stored(long)
    other.close()
    store.close()
    again = Store(file, pytest.fail)
    assert again.get("new0") == again.get("new2") == stored(long)
    again.close()


def test_store_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    store = Store(file)
    put(store, "old", "m", WITH_EXTRAS)
    store.close()
    # SQLite can't make its files, as on a read-only disk
    (tmp_path / "a.sqlite-shm").mkdir()
    messages: list[str] = []
    store = Store(file, messages.append)
    assert store.get("old") == stored(WITH_EXTRAS)
    put(store, "new1", "m", ANSWER)
    put(store, "new2", "m", ANSWER)
    assert not messages
    store.close()
    [message] = messages
    assert message.startswith("2 answers could not be stored: ")
    assert not asides(tmp_path)


def test_damage_on_a_disk_that_can_only_be_read_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(database, "_set_aside", refuse)
    messages: list[str] = []
    store = Store(file, messages.append)
    for number in range(200):
        store.get(f"k{number}")
    put(store, "new", "m", ANSWER)
    assert store.get("new") == stored(ANSWER)
    store.close()
    assert file.exists()
    assert "can't be read" in messages[0]


def test_store_that_is_deleted_during_a_run_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    store = Store(file, pytest.fail)
    put(store, "one", "m", ANSWER)
    for left in tmp_path.iterdir():
        left.unlink()
    put(store, "two", "m", ANSWER)
    store.close()
    again = Store(file, pytest.fail)
    assert again.get("two") == stored(ANSWER)
    again.close()


def test_run_goes_on_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    messages: list[str] = []
    store = Store(tmp_path / "file/answers.sqlite", messages.append)
    assert store.get("k") is None
    put(store, "k", "m", ANSWER)
    store.close()
    [message] = messages
    assert "1 answer could not be stored" in message
