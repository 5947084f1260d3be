"""A store that is damaged, truncated, locked, deleted, or on a disk that is full or read-only."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.engine import database
from pytest_upskill.engine.store import Store
from support.kit import write_damaged_store
from support.stored_answers import ANSWER, WITH_EXTRAS, stored


def asides(folder: Path) -> list[Path]:
    return sorted(folder.glob("answers-*.broken"))


def test_what_was_never_a_store_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    file.write_bytes(before := b"this was never a database, it is just words " * 100)
    messages: list[str] = []
    store = Store(file, messages.append)
    store.put("k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()
    [aside] = asides(tmp_path)
    assert aside.read_bytes() == before
    [word] = messages
    assert word.endswith("0 answers carried over")


def test_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE answers (new)")
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = file.read_bytes()
    messages: list[str] = []
    store = Store(file, messages.append)
    store.put("k", "m", ANSWER)
    store.close()
    assert file.read_bytes() == before
    assert not asides(tmp_path)
    assert ["later version" in word for word in messages] == [True, True]


def test_damaged_store_is_set_aside_once_and_what_can_be_read_is_kept(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    messages: list[str] = []
    store = Store(file, messages.append)
    found = sum(store.get(f"k{number}") is not None for number in range(200))
    assert 50 < found < 200
    for number in range(200):
        store.put(f"new{number}", "m", ANSWER)
    store.close()
    [word] = messages
    assert "malformed" in word
    assert word.endswith(f", {found} answers carried over")
    assert len(asides(tmp_path)) == 1
    again = Store(file, pytest.fail)
    assert again.get("new199") == stored(ANSWER)
    assert sum(again.size().answers.values()) == found + 200
    again.close()


def test_answers_are_found_past_a_damaged_index(tmp_path: Path) -> None:
    store = Store(file := tmp_path / "answers.sqlite")
    for number in range(300):
        store.put(f"{number:064x}", "m", replace(ANSWER, text="gate up " * 40))
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_answers_1'"
        [page] = connection.execute(sql).fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(data)
    store = Store(file)
    assert all(store.get(f"{number:064x}") for number in range(300))
    store.close()
    assert len(asides(tmp_path)) == 1


def test_truncated_store_keeps_its_first_half(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    store = Store(file)
    for number in range(200):
        store.put(f"{number:064x}", "m", replace(WITH_EXTRAS, text="gate up " * 40))
    store.close()
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 3 // 4])
    store = Store(file)
    found = [store.get(f"{number:064x}") for number in range(200)]
    store.close()
    kept = [answer for answer in found if answer]
    assert len(kept) > 20
    assert {answer.files for answer in kept} == {WITH_EXTRAS.files}


def test_two_runs_on_a_damaged_store_set_it_aside_once(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    messages: list[str] = []
    one, two = Store(file, messages.append), Store(file, messages.append)
    for number in range(200):
        one.get(f"k{number}")
        one.put(f"one{number}", "m", ANSWER)
        two.get(f"k{number}")
        two.put(f"two{number}", "m", ANSWER)
    one.close()
    two.close()
    assert len(asides(tmp_path)) == len(messages) == 1
    third = Store(file, pytest.fail)
    assert all(third.get(f"{run}{n}") for run in ("one", "two") for n in range(200))
    third.close()


def test_what_is_carried_over_replaces_no_newer_answer(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    first, second = Store(file), Store(file)
    readable = [f"k{number}" for number in range(200) if first.get(f"k{number}")]
    for key in readable:
        first.put(key, "m", ANSWER)
    for number in range(200):  # finds the damage as well, in the file that was set aside
        second.get(f"k{number}")
    first.close()
    second.close()
    third = Store(file, pytest.fail)
    assert len(readable) > 50
    assert all(third.get(key) == stored(ANSWER) for key in readable)
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
    assert store._connection
    pragmas = {"full": "max_page_count=1", "read-only": "query_only=1", "locked": "busy_timeout=0"}
    store._connection.execute(f"PRAGMA {pragmas[how]}")


@pytest.mark.parametrize("how", ["full", "read-only", "locked"])
def test_what_can_not_be_written_now_is_used_and_written_at_the_end(
    tmp_path: Path, how: str
) -> None:
    file = tmp_path / "a.sqlite"
    store = Store(file, pytest.fail)
    store.put("old", "m", ANSWER)
    full_or_read_only(store, how)
    other = sqlite3.connect(file, isolation_level=None)
    if how == "locked":
        other.execute("BEGIN IMMEDIATE")
    long = replace(ANSWER, text="gate up " * 2000)
    for number in range(3):
        store.put(f"new{number}", "m", long)
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
    store.put("old", "m", WITH_EXTRAS)
    store.close()
    (tmp_path / "a.sqlite-shm").mkdir()  # SQLite can't make its files, as on a read-only disk
    messages: list[str] = []
    store = Store(file, messages.append)
    assert store.get("old") == stored(WITH_EXTRAS)
    store.put("new1", "m", ANSWER)
    store.put("new2", "m", ANSWER)
    assert not messages
    store.close()
    [word] = messages
    assert word.startswith("2 answers could not be stored: ")
    assert not asides(tmp_path)


def test_damage_on_a_disk_that_can_only_be_read_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(database, "set_aside", refuse)
    messages: list[str] = []
    store = Store(file, messages.append)
    found = sum(store.get(f"k{number}") is not None for number in range(200))
    store.put("new", "m", ANSWER)
    assert store.get("new") == stored(ANSWER)
    store.close()
    assert found > 50
    assert file.exists()
    [word] = messages
    assert "can't be read" in word


def test_store_that_is_deleted_during_a_run_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    store = Store(file, pytest.fail)
    store.put("one", "m", ANSWER)
    for left in tmp_path.iterdir():
        left.unlink()
    store.put("two", "m", ANSWER)
    store.close()
    again = Store(file, pytest.fail)
    assert again.get("two") == stored(ANSWER)
    again.close()


def test_run_goes_on_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    messages: list[str] = []
    store = Store(tmp_path / "file/answers.sqlite", messages.append)
    assert store.get("k") is None
    store.put("k", "m", ANSWER)
    store.close()
    [word] = messages
    assert "1 answer could not be stored" in word
