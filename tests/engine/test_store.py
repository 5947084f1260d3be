"""The store of answers: kept, shared between runs, pruned."""

import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Activity, Turn
from support.folders import new_folder
from support.stored_answers import ANSWER, WITH_EXTRAS, put, stored
from support.strategies import ANSWERS

TRIAL = replace(
    WITH_EXTRAS,
    transcript=(
        Turn("result", "a line of output\n" * 10_000, "bash", reply=2, seconds=0.5),
    ),
    activity=Activity(
        3,
        2,
        activated=True,
        opened=("gate",),
        read=("references/a.md",),
        scripts=("run.sh",),
        findings=("cut",),
    ),
    workspace=bytes(range(256)) * 40,
)


def test_answer_is_there_for_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / ".upskill/answers.sqlite"
    first = Store(file)
    assert first.get("k") is None
    put(first, "k", "m", ANSWER)
    first.close()
    second = Store(file)
    assert second.get("k") == stored(ANSWER)
    assert second.get("other") is None
    second.close()


def test_a_trial_of_an_agent_is_stored_compressed(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite")
    put(store, "k", "m", TRIAL)
    store.close()
    store = Store(tmp_path / "answers.sqlite")
    assert store.get("k") == stored(TRIAL)
    assert store.size().size < 40_000
    store.close()


@given(ANSWERS)
def test_any_answer_is_stored_whole(
    tmp_path_factory: pytest.TempPathFactory, answer: Answer
) -> None:
    messages: list[str] = []
    store = Store(new_folder(tmp_path_factory) / "a.sqlite", messages.append)
    assert put(store, "k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()
    assert not messages


def test_what_was_written_to_a_cache_is_kept_so_that_costs_stay_the_same(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "a.sqlite")
    answer = replace(ANSWER, usage=Usage(10, 5, 2, 7, hour=3))
    put(store, "k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()


def test_a_short_answer_replaces_a_long_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    put(store, "k", "m", WITH_EXTRAS)
    put(store, "k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"not zlib!", "text", 3, 1e300),
        *(
            zlib.compress(text)
            for text in (b"{", b"[]", b"\xff", b'{"text": 3}', b"[" * 99_999)
        ),
        zlib.compress(b'{"text": "", "transcript": [{"kind": "new", "text": ""}]}'),
        zlib.compress(b'{"text": "' + b"x" * 64_000_000 + b'"}'),
        zlib.compress(b'{"text": "", "x": [' + b"[]," * 2_600_000 + b"[]]}"),
    ],
)
def test_an_answer_that_can_not_be_read_is_asked_for_again(
    tmp_path: Path, data: object
) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    put(store, "k", "m", WITH_EXTRAS)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other, other:
        other.execute("UPDATE answers SET answer=?", (data,))
    assert store.get("k") is None
    put(store, "k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()


@pytest.mark.parametrize("column", ["model", "created"])
@pytest.mark.parametrize("value", [b"\xff", "\x00soon", 3, -1e300, 1e300])
def test_odd_values_of_a_row_harm_nothing(
    tmp_path: Path, column: str, value: object
) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    put(store, "k", "m", ANSWER)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other, other:
        other.execute(f"UPDATE answers SET {column}=CAST(? AS TEXT)", (value,))
        other.execute(f"UPDATE answers SET {column}=?", (value,))
    assert store.get("k") == stored(ANSWER)
    assert sum(store.size().answers.values()) == 1
    put(store, "k", "m", Answer("new"))
    assert store.get("k") == stored(Answer("new"))
    store.close()


@pytest.mark.parametrize(
    "odd",
    [
        replace(ANSWER, stop=None),  # type: ignore[arg-type]
        replace(ANSWER, text=["no text"]),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_does_not_fit_costs_nothing_else(
    tmp_path: Path, odd: Answer
) -> None:
    messages: list[str] = []
    store = Store(tmp_path / "a.sqlite", messages.append)
    put(store, "before", "m", ANSWER)
    put(store, "odd", "m", odd)
    put(store, "after", "m", ANSWER)
    assert store.get("before") == store.get("after") == stored(ANSWER)
    assert store.get("odd") is None
    store.close()
    [word] = messages
    assert "1 answer could not be stored" in word
    assert not list(tmp_path.glob("*.old"))


def test_a_name_of_a_model_that_is_not_utf_8_is_stored_escaped(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite")
    assert put(store, "k", "m\udcff", ANSWER)
    assert store.size().answers == {"m\\udcff": 1}
    store.close()


def test_an_answer_takes_hardly_more_room_than_its_text(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite")
    for number in range(200):
        put(store, f"{number:064x}", "m", replace(ANSWER, text="x" * 1500))
    assert store.size().size / 200 < 2400
    store.close()


def test_prune_deletes_what_is_older(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    for number in range(3):
        put(store, f"k{number}", "m", WITH_EXTRAS)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other, other:
        other.execute("UPDATE answers SET created=1e9 WHERE key<>'k2'")
    assert store.size().oldest == 1e9
    assert store.prune(1e9 + 1) == 2
    assert [store.get(f"k{number}") for number in range(3)] == [
        None,
        None,
        stored(WITH_EXTRAS),
    ]
    store.close()


def test_an_answer_that_is_written_late_replaces_no_newer_one(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    late, other = Store(file, pytest.fail), Store(file, pytest.fail)
    assert late.database._connection
    # As if the disk were read-only for a while
    late.database._connection.execute("PRAGMA query_only=1")
    assert not put(late, "k", "m", Answer("old"))
    assert not put(late, "l", "m", Answer("late"))
    assert put(other, "k", "m", Answer("new"))
    late.close()
    assert other.get("k") == stored(Answer("new"))
    assert other.get("l") == stored(Answer("late"))
    other.close()


def test_the_last_of_two_answers_in_the_same_instant_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1e9)
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    put(store, "k", "m", Answer("one"))
    put(store, "k", "m", Answer("two"))
    assert store.get("k") == stored(Answer("two"))
    store.close()


def test_two_runs_share_answers_at_once(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "a.sqlite"), Store(tmp_path / "a.sqlite")
    put(one, "k", "m", ANSWER)
    assert two.get("k") == stored(ANSWER)
    put(two, "k", "m", Answer("new"))
    assert one.get("k") == stored(Answer("new"))
    one.close()
    two.close()


def test_folder_is_ignored_by_git(tmp_path: Path) -> None:
    Store(tmp_path / ".upskill/answers.sqlite").close()
    assert "*" in (tmp_path / ".upskill/.gitignore").read_text().splitlines()
