"""Answers that can't be kept: nothing more is asked, and the run says so."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts, database
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.trial import Question
from support.full_disk import fill_disk
from support.stored_answers import ANSWER, put
from support.trials import FakeTrials, trial_question


class Long(Model):
    """Gives answers that can't be compressed."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, _question: Question) -> Answer:
        self.asked += 1
        await asyncio.sleep(0.1)  # longer than answers wait to be written together
        return Answer(Random(self.asked).randbytes(20_000).hex())


@contextmanager
def engine_of(model: Model, file: Path, *, fresh: bool = False) -> Iterator[Engine]:
    async def open_model(_name: str) -> Model:
        return model

    answers = StoredAnswers(lambda: Store(file), str, fresh=fresh, hint=". Do this")
    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: 60),
        concurrency=1,
        answers=answers,
        agents=AgentPlaces(FakeTrials),
    )
    try:
        yield engine
    finally:
        engine.close()


def questions(number: int) -> list[Question]:
    return [Question("m", "", (("user", str(n)),), 100, 1) for n in range(number)]


def counted(replies: list[Reply]) -> tuple[int, set[str]]:
    """The number of answers, and why there are no others."""
    reasons = {reply.reason for reply in replies if isinstance(reply, NoAnswer)}
    return sum(isinstance(reply, Answer) for reply in replies), reasons


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores have room for two of the long answers."""
    fill_disk(monkeypatch)


@pytest.mark.usefixtures("small")
def test_nothing_more_is_asked_once_an_answer_can_not_be_kept(tmp_path: Path) -> None:
    with engine_of(model := Long(), tmp_path / "a.sqlite") as engine:
        answered, [reason] = counted(engine.ask(questions(9)))
    assert (answered, model.asked) == (3, 3)
    assert reason.startswith("not asked: answers can't be kept: ")
    assert reason.endswith("a.sqlite: database or disk is full. Do this")
    assert engine.not_kept
    store = Store(tmp_path / "a.sqlite")
    assert store.size().answers == {"m": 2}
    store.close()


@pytest.mark.usefixtures("small")
def test_a_fresh_run_asks_all_the_same(tmp_path: Path) -> None:
    with engine_of(model := Long(), tmp_path / "a.sqlite", fresh=True) as engine:
        assert counted(engine.ask(questions(9))) == (9, set())
    assert model.asked == 9
    assert not engine.not_kept


@pytest.mark.usefixtures("small")
def test_the_last_answer_counts_even_if_it_was_the_first_not_kept(
    tmp_path: Path,
) -> None:
    with engine_of(Long(), tmp_path / "a.sqlite") as engine:
        assert counted(engine.ask(questions(3))) == (3, set())
    assert engine.not_kept


@pytest.mark.parametrize("how", ["a file in place of the folder", "read-only"])
def test_nothing_is_asked_where_nothing_can_be_kept(tmp_path: Path, how: str) -> None:
    file = tmp_path / "kept/a.sqlite"
    if how == "a file in place of the folder":
        (tmp_path / "kept").write_text("")
    else:
        store = Store(file)
        with engine_of(Long(), file) as engine:
            engine.ask(questions(1))
        store.close()
        (tmp_path / "kept/a.sqlite-shm").mkdir()  # SQLite can't make its files
    with engine_of(model := Long(), file) as engine:
        answered, reasons = counted(engine.ask([*questions(3), trial_question("t")]))
    assert answered == (how != "a file in place of the folder")  # the stored one
    assert len(reasons) == 1
    assert model.asked == 0
    assert engine.not_kept


def test_nothing_is_asked_while_another_program_locks_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.sqlite"
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.1)
    store = Store(file, pytest.fail)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not put(store, "k", "m", ANSWER)
        assert not store.leases.take(["l"])
        assert store.database.problem.endswith("database is locked")
        with engine_of(model := Long(), file) as engine:
            answered, [reason] = counted(engine.ask(questions(3)))
    assert (answered, model.asked) == (0, 0)
    assert reason.endswith("database is locked. Do this")
    assert store.close()
    assert Store(file).size().answers == {"m": 1}
