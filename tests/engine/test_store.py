"""The store: kept, shared, set aside, pruned."""

import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.transcript import Turn
from support.kit import write_damaged_store
from support.strategies import ANSWERS

ANSWER = Answer("gate up", Usage(10, 5, None), "end", 1.5)

WHOLE = replace(
    ANSWER,
    files=(AnswerFile.of("a.txt", b"one"), AnswerFile.of("b.png", b"\0")),
    transcript=(Turn("call", "ls", "bash"), Turn("result", "", "bash", failed=True)),
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

OLD_PUT = "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?,?,?,?)"

OLD_GET = "SELECT text, input, output, cached, stop, seconds FROM answers WHERE key=?"

OLD_ROW = ("gate up", 10, 5, None, "end", 1.5)


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


@given(ANSWERS)
def test_answer_is_stored_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, answer: Answer
) -> None:
    store = Store(tmp_path_factory.mktemp("any") / "a.sqlite", pytest.fail)
    store.put("k", "m", answer)
    surrogate = any(0xD800 <= ord(char) < 0xE000 for char in answer.text)
    too_large = any((count or 0) >= 2**63 for count in vars(answer.usage).values())
    assert store.get("k") == (None if surrogate or too_large else stored(answer))
    store.close()


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


@pytest.mark.parametrize("kind", ["garbage", "version"])
def test_unusable_store_is_set_aside(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "answers.sqlite"
    if kind == "garbage":
        file.write_bytes(b"this was never a database, it is just words " * 100)
    else:
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE answers (old)")
            connection.execute("PRAGMA user_version=99")
        connection.close()
    before = file.read_bytes()
    messages: list[str] = []
    store = Store(file, messages.append)
    store.put("k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()
    [aside] = tmp_path.glob("answers-*.broken")
    assert aside.read_bytes() == before
    assert len(messages) == 1
    assert "set aside as" in messages[0]


def test_damaged_store_is_set_aside_once_and_replaced(tmp_path: Path) -> None:
    write_damaged_store(file := tmp_path / "answers.sqlite")
    messages: list[str] = []
    store = Store(file, messages.append)
    for number in range(200):
        store.get(f"k{number}")
        store.put(f"k{number}", "m", ANSWER)
    assert store.get("k199") == stored(ANSWER)
    store.close()
    [word] = messages
    assert "malformed" in word
    assert "set aside as" in word
    assert len(list(tmp_path.glob("answers-*.broken"))) == 1
    again = Store(file, pytest.fail)
    assert again.get("k199") == stored(ANSWER)
    again.close()


def test_run_goes_on_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    messages: list[str] = []
    store = Store(tmp_path / "file/answers.sqlite", messages.append)
    store.put("k", "m", ANSWER)
    assert store.get("k") is None
    assert len(messages) == 1
    store.close()
