"""The store of answers: kept, shared between runs, pruned."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from pytest_upskill.engine.store import Store
from pytest_upskill.trials.activity import Activity
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Turn
from support.folders import new_folder
from support.stored_answers import ANSWER, WITH_EXTRAS, stored
from support.strategies import ANSWERS

TRIAL = replace(
    WITH_EXTRAS,
    transcript=(Turn("result", "a line of output\n" * 10_000, "bash", reply=2, seconds=0.5),),
    activity=Activity(3, 2, True, ("gate",), ("references/a.md",), ("run.sh",), ("cut",)),
    workspace=bytes(range(256)) * 40,
)


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


def test_a_trial_of_an_agent_is_stored_compressed(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite")
    store.put("k", "m", TRIAL)
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
    assert store.put("k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()
    assert not messages


def test_what_was_written_to_a_cache_is_kept_so_that_costs_stay_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite")
    answer = replace(ANSWER, usage=Usage(10, 5, 2, 7, hour=3))
    store.put("k", "m", answer)
    assert store.get("k") == stored(answer)
    store.close()


def test_an_answer_without_extras_replaces_one_with_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    store.put("k", "m", WITH_EXTRAS)
    store.put("k", "m", ANSWER)
    assert store.get("k") == stored(ANSWER)
    store.close()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\0" * 8, b"\0" * 7 + b"\x09" + b"not zlib!"),
        *("{", "[]", '{"transcript": [{"kind": "new", "text": ""}]}'),
    ],
)
def test_extras_that_can_not_be_read_are_asked_again(tmp_path: Path, data: bytes | str) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    store.put("k", "m", WITH_EXTRAS)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other, other:
        other.execute("UPDATE extras SET data=?", (data,))
    assert store.get("k") is None
    store.close()


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
    assert not list(tmp_path.glob("*.broken"))


def test_an_answer_takes_hardly_more_room_than_its_text(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite")
    for number in range(200):
        store.put(f"{number:064x}", "m", replace(ANSWER, text="x" * 1500))
    assert store.size().size / 200 < 2400
    store.close()


def test_prune_forgets_what_is_older_with_its_extras(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    for number in range(3):
        store.put(f"k{number}", "m", WITH_EXTRAS)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other:
        with other:
            for table in ("answers", "extras"):
                other.execute(f"UPDATE {table} SET created=1e9 WHERE key<>'k2'")
        assert store.size().oldest == 1e9
        assert store.prune(1e9 + 1) == 2
        assert other.execute("SELECT key FROM extras").fetchall() == [("k2",)]
    assert [store.get(f"k{number}") for number in range(3)] == [None, None, stored(WITH_EXTRAS)]
    store.close()


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
