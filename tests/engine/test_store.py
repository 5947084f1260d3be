"""The store: kept, shared, pruned; damaged, locked, full, read-only."""

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pytest_upskill.engine import database
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.trials.activity import Activity
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage, extras_to_json
from pytest_upskill.trials.transcript import Turn
from pytest_upskill.trials.trial import Question
from support.folders import new_folder
from support.kit import write_damaged_store
from support.strategies import ANSWERS

ANSWER = Answer("gate up", Usage(10, 5, None), "end", 1.5)

WHOLE = replace(
    ANSWER,
    files=(AnswerFile.of("a.txt", b"one"), AnswerFile.of("b.png", b"\0")),
    transcript=(Turn("call", "ls", "bash"), Turn("result", "", "bash", failed=True)),
)
TRIAL = replace(
    WHOLE,
    transcript=(Turn("result", "a line of output\n" * 10_000, "bash", reply=2, seconds=0.5),),
    activity=Activity(3, 2, True, ("gate",), ("references/a.md",), ("run.sh",), ("cut",)),
    workspace=bytes(range(256)) * 40,
)

# What version 0.1 made and wrote.
OLD_SCHEMA = """
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

OLD_EXTRAS = """
CREATE TABLE IF NOT EXISTS extras (
    key TEXT PRIMARY KEY,
    created REAL NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID
"""

OLD_PUT = "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?,?,?,?)"

OLD_GET = "SELECT text, input, output, cached, stop, seconds FROM answers WHERE key=?"

OLD_ROW = ("gate up", 10, 5, None, "end", 1.5)


def test_a_trial_of_an_agent_is_stored_compressed(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite")
    store.put("k", "m", TRIAL)
    store.close()
    store = Store(tmp_path / "answers.sqlite")
    assert store.get("k") == stored(TRIAL)
    assert store.size().size < 40_000
    store.close()


def test_extras_of_an_older_version_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite")
    store.put("k", "m", WHOLE)
    store.close()
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as connection, connection:
        text = json.dumps(extras_to_json(WHOLE.files, WHOLE.transcript))
        connection.execute("UPDATE extras SET data=?", (text,))
    store = Store(tmp_path / "answers.sqlite")
    assert store.get("k") == stored(WHOLE)
    store.close()


@pytest.mark.parametrize("damage", [b"", b"\0" * 8, b"\0" * 7 + b"\x09" + b"not zlib!"])
def test_damaged_extras_are_asked_again(tmp_path: Path, damage: bytes) -> None:
    store = Store(tmp_path / "answers.sqlite")
    store.put("k", "m", TRIAL)
    store.close()
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as connection, connection:
        connection.execute("UPDATE extras SET data=?", (damage,))
    store = Store(tmp_path / "answers.sqlite")
    assert store.get("k") is None
    store.close()


def stored(answer: Answer) -> Answer:
    return replace(answer, stored=True)


def test_answer_is_there_for_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / ".upskill/answers.sqlite"
    first = Store(file)
    assert first.get("k") is None
    first.put("k", "m", ANSWER)
    first.close()
    second = Store(file)
    assert second.get("k") == stored(ANSWER)
    assert second.get("other") is None
    second.close()


def test_what_was_written_to_a_cache_is_kept_so_that_costs_stay_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite")
    answer = replace(ANSWER, usage=Usage(10, 5, 2, 7, hour=3))
    store.put("k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()


@given(ANSWERS)
def test_any_answer_is_stored_whole(
    tmp_path_factory: pytest.TempPathFactory, answer: Answer
) -> None:
    messages: list[str] = []
    store = Store(new_folder(tmp_path_factory) / "a.sqlite", messages.append)
    assert store.put("k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()
    assert not messages


def test_store_of_an_older_version_still_works(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    old = sqlite3.connect(file, isolation_level=None)
    old.execute("PRAGMA journal_mode=WAL")
    old.execute(OLD_SCHEMA)
    old.execute("PRAGMA user_version=1")
    old.execute(OLD_PUT, ("k", "m", *OLD_ROW, time.time()))
    old.close()
    store = Store(file, pytest.fail)
    assert store.get("k") == stored(ANSWER)
    store.put("k", "m", WHOLE)
    assert store.get("k") == stored(WHOLE)
    store.close()


def old_store(file: Path, answers: int) -> None:
    """As version 0.1 made it, with extras as the next one wrote them."""
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.execute("PRAGMA journal_mode=WAL")
        old.execute(OLD_SCHEMA)
        old.execute(OLD_EXTRAS)
        old.execute("PRAGMA user_version=1")
        text = json.dumps(extras_to_json(WHOLE.files, WHOLE.transcript))
        for number in range(answers):
            old.execute(OLD_PUT, (f"k{number}", "m", *OLD_ROW, 1e9 + number))
            old.execute("INSERT INTO extras VALUES (?,?,?)", (f"k{number}", 1e9 + number, text))


def tables_without_row_ids(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        sql = "SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%' ORDER BY name"
        return [name for (name,) in connection.execute(sql)]


def test_an_answer_takes_hardly_more_room_than_its_text(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite")
    for number in range(200):
        store.put(f"{number:064x}", "m", replace(ANSWER, text="x" * 1500))
    assert store.size().size / 200 < 2400
    store.close()


def test_an_old_store_is_copied_into_the_new_form_with_all_answers(tmp_path: Path) -> None:
    old_store(file := tmp_path / "a.sqlite", 50)
    assert tables_without_row_ids(file) == ["answers", "extras"]
    store = Store(file, pytest.fail)
    assert [store.get(f"k{number}") for number in range(50)] == [stored(WHOLE)] * 50
    assert store.size().oldest == 1e9
    store.close()
    assert tables_without_row_ids(file) == []


def test_a_large_old_store_is_copied_when_it_is_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_SOON_COPIED", 0)
    old_store(file := tmp_path / "a.sqlite", 50)
    store = Store(file, pytest.fail)
    assert store.get("k49") == stored(WHOLE)
    assert tables_without_row_ids(file) == ["answers", "extras"]
    assert store.prune(1e9 + 10) == 10
    assert [store.get(f"k{number}") for number in range(10, 50)] == [stored(WHOLE)] * 40
    store.close()
    assert tables_without_row_ids(file) == []


def test_an_old_store_that_another_run_writes_is_used_as_it_is(tmp_path: Path) -> None:
    old_store(file := tmp_path / "a.sqlite", 5)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store = Store(file, pytest.fail)
        assert store.get("k4") == stored(WHOLE)
        other.execute("ROLLBACK")
    assert tables_without_row_ids(file) == ["answers", "extras"]
    store.put("new", "m", WHOLE)
    assert store.get("new") == stored(WHOLE)
    store.close()
    Store(file, pytest.fail).close()
    assert tables_without_row_ids(file) == []


def test_a_run_sees_answers_while_another_copies_the_store(tmp_path: Path) -> None:
    old_store(file := tmp_path / "a.sqlite", 5)
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        assert old.execute(OLD_GET, ("k1",)).fetchone() == OLD_ROW
        Store(file, pytest.fail).close()
        assert old.execute(OLD_GET, ("k2",)).fetchone() == OLD_ROW
        old.execute(OLD_PUT, ("k3", "m", *OLD_ROW, time.time()))
    store = Store(file, pytest.fail)
    assert store.get("k3") == stored(ANSWER)
    store.close()


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


def test_older_version_can_share_the_store(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    store = Store(file, pytest.fail)
    store.put("kept", "m", WHOLE)
    store.put("replaced", "m", WHOLE)
    store.put("forgotten", "m", WHOLE)
    old = sqlite3.connect(file, isolation_level=None)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    old.execute(OLD_SCHEMA)
    assert old.execute(OLD_GET, ("kept",)).fetchone() == OLD_ROW
    old.execute(OLD_PUT, ("replaced", "m", *OLD_ROW, time.time()))
    old.execute("DELETE FROM answers WHERE key='forgotten'")
    old.close()
    assert store.get("kept") == stored(WHOLE)
    assert store.get("replaced") == stored(ANSWER)
    assert store.get("forgotten") is None
    store.put("forgotten", "m", ANSWER)
    assert store.get("forgotten") == stored(ANSWER)
    store.close()


@pytest.mark.parametrize("data", ["{", "[]", '{"transcript": [{"kind": "new", "text": ""}]}'])
def test_extras_of_a_later_version_are_asked_again(tmp_path: Path, data: str) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    store.put("k", "m", WHOLE)
    later = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    later.execute("UPDATE extras SET data=?", (data,))
    later.close()
    assert store.get("k") is None
    store.close()


def test_prune_forgets_extras_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    store.put("k", "m", WHOLE)
    assert store.prune(time.time() + 1) == 1
    store.close()
    left = sqlite3.connect(tmp_path / "a.sqlite")
    assert left.execute("SELECT COUNT(*) FROM extras").fetchone() == (0,)
    left.close()


def test_two_runs_share_answers_at_once(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "a.sqlite"), Store(tmp_path / "a.sqlite")
    one.put("k", "m", ANSWER)
    assert two.get("k") == stored(ANSWER)
    two.put("k", "m", Answer("new"))
    assert one.get("k") == stored(Answer("new"))
    one.close()
    two.close()


def test_folder_is_ignored_by_git(tmp_path: Path) -> None:
    Store(tmp_path / ".upskill/answers.sqlite").close()
    assert "*" in (tmp_path / ".upskill/.gitignore").read_text().splitlines()


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


def test_truncated_store_keeps_its_first_half(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    store = Store(file)
    for number in range(200):
        store.put(f"{number:064x}", "m", replace(WHOLE, text="gate up " * 40))
    store.close()
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 3 // 4])
    store = Store(file)
    found = [store.get(f"{number:064x}") for number in range(200)]
    store.close()
    kept = [answer for answer in found if answer]
    assert len(kept) > 20
    assert {answer.files for answer in kept} == {WHOLE.files}


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


def test_stores_damaged_in_the_same_second_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    texts = [f"{number} words, no database " * 50 for number in range(5)]
    for text in texts:
        file.write_text(text)
        Store(file).close()
    assert sorted(aside.read_text() for aside in asides(tmp_path)) == texts


@pytest.mark.parametrize(
    "odd",
    [
        replace(ANSWER, stop=None),  # type: ignore[arg-type]
        replace(ANSWER, text=["no text"]),  # type: ignore[arg-type]
        replace(ANSWER, seconds=float("nan")),
    ],
)
def test_an_answer_that_does_not_fit_costs_nothing_else(tmp_path: Path, odd: Answer) -> None:
    messages: list[str] = []
    store = Store(tmp_path / "a.sqlite", messages.append)
    store.put("before", "m", ANSWER)
    store.put("odd", "m", odd)
    store.put("after", "m", ANSWER)
    assert store.get("before") == store.get("after") == stored(ANSWER)
    assert store.get("odd") is None
    store.close()
    [word] = messages
    assert "1 answer could not be stored" in word
    assert not asides(tmp_path)


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
    store.put("old", "m", WHOLE)
    store.close()
    (tmp_path / "a.sqlite-shm").mkdir()  # SQLite can't make its files, as on a read-only disk
    messages: list[str] = []
    store = Store(file, messages.append)
    assert store.get("old") == stored(WHOLE)
    store.put("new1", "m", ANSWER)
    store.put("new2", "m", ANSWER)
    assert not messages
    store.close()
    [word] = messages
    assert word.startswith("2 answers could not be stored: ")
    assert not asides(tmp_path)


def test_old_store_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    old = sqlite3.connect(file, isolation_level=None)
    old.execute(OLD_SCHEMA)
    old.execute(OLD_PUT, ("k", "m", *OLD_ROW, time.time()))
    old.execute("PRAGMA journal_mode=WAL")
    old.close()
    (tmp_path / "a.sqlite-shm").mkdir()
    store = Store(file, pytest.fail)
    assert store.get("k") == stored(ANSWER)
    assert store.size().answers == {"m": 1}
    store.close()


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


@pytest.mark.parametrize(
    ("column", "value"),
    [("text", b"\xff"), ("text", 3), ("stop", b"end"), ("seconds", "soon"), ("input", 1e300)],
)
def test_odd_value_of_a_row_is_unknown_or_asked_again(
    tmp_path: Path, column: str, value: object
) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    store.put("k", "m", ANSWER)
    other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    other.execute(f"UPDATE answers SET {column}=?", (value,))
    other.close()
    answer = store.get("k")
    store.close()
    assert answer is None or (type(answer.text), type(answer.stop)) == (str, str)


def test_run_goes_on_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    messages: list[str] = []
    store = Store(tmp_path / "file/answers.sqlite", messages.append)
    assert store.get("k") is None
    store.put("k", "m", ANSWER)
    store.close()
    [word] = messages
    assert "1 answer could not be stored" in word


def test_an_answer_that_was_read_before_is_used_once_and_replaced_by_a_new_one(
    tmp_path: Path,
) -> None:
    asked = Question("m", "", (("user", "how?"),), 100, 1)
    old, new = Answer("old"), Answer("new")
    read = dict[str, Answer]()
    answers = StoredAnswers(lambda: Store(tmp_path / "a.sqlite"), str, fresh=False, read=read)
    key = answers.key_of(asked)
    assert key
    read[key] = old
    assert [answers.get(asked), answers.get(asked)] == [old, None]
    read[key] = old
    answers.put(asked, new)
    stored = answers.get(asked)
    assert isinstance(stored, Answer)
    assert stored.text == "new"
    answers.close()
