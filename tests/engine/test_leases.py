"""Several runs at once in one project: each question is asked by one of them."""

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts
from pytest_upskill.engine.lane import STOPPED
from pytest_upskill.engine.leases import Leases
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.trial import Question
from support.trials import FakeTrials, trial_question
from support.waiting import wait_until


class Gate(Model):
    """Answers once it is open; the first call of what begins with "fail" fails."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.asked: list[str] = []
        self.open = threading.Event()
        if is_open:
            self.open.set()

    async def ask(self, question: Question) -> Answer:
        text = question.messages[0][1]
        self.asked.append(text)
        while not self.open.is_set():
            await asyncio.sleep(0.01)
        if text.startswith("fail") and self.asked.count(text) == 1:
            raise ModelError("not this one")
        return Answer(text.upper())


@contextmanager
def run(
    folder: Path, model: Model, *, fresh: bool = False, **more: Any
) -> Iterator[Engine]:
    async def open_model(_name: str) -> Model:
        return model

    answers = StoredAnswers(lambda: Store(folder / "a.sqlite"), str, fresh=fresh)
    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: 60),
        answers=answers,
        **{"concurrency": 2, **more},
    )
    try:
        yield engine
    finally:
        engine.close()


def about(*topics: str) -> list[Question]:
    return [Question("m", "", (("user", topic),), 100, 1) for topic in topics]


def texts(replies: Sequence[Reply]) -> list[str]:
    return [
        reply.text if isinstance(reply, Answer) else reply.reason for reply in replies
    ]


def asked_in(engine: Engine, questions: Sequence[Question]) -> list[str]:
    return texts(
        [engine.submit(question).result(timeout=300) for question in questions]
    )


def rows(folder: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(
        sqlite3.connect(folder / "a.sqlite", isolation_level=None)
    ) as connection:
        return connection.execute(sql, values).fetchall()


def test_runs_at_once_share_the_questions(tmp_path: Path) -> None:
    model, wanted = Gate(), about(*"abcdefghij")
    with ExitStack() as stack:
        engines = [stack.enter_context(run(tmp_path, model)) for _ in range(3)]
        for engine in engines:
            for question in wanted:
                engine.submit(question)
        wait_until(lambda: len(model.asked) == 6)  # two of each run
        model.open.set()
        for engine in engines:
            assert asked_in(engine, wanted) == list("ABCDEFGHIJ")
    assert Counter(model.asked) == Counter("abcdefghij")
    assert rows(tmp_path, "SELECT * FROM leases") == []


def test_a_lease_that_was_taken_while_another_run_waited_is_respected(
    tmp_path: Path,
) -> None:
    model, [question] = Gate(is_open=True), about("a")
    # Of a clock that is 2 seconds ahead
    leased_by_another(tmp_path, [question], lasts=17.0)
    with run(tmp_path, model) as engine:
        engine.submit(question)
        wait_until(lambda: engine.progress.elsewhere == 1)
    assert model.asked == []


def test_what_failed_in_one_run_is_asked_by_the_next(tmp_path: Path) -> None:
    model, [question] = Gate(), about("fail")
    with run(tmp_path, model) as first, run(tmp_path, model) as second:
        replies = [first.submit(question)]
        wait_until(lambda: model.asked)
        replies.append(second.submit(question))
        wait_until(lambda: second.progress.elsewhere == 1)
        model.open.set()
        failed, answered = (reply.result(timeout=300) for reply in replies)
    assert isinstance(failed, NoAnswer)
    assert texts([answered]) == ["FAIL"]


def leased_by_another(
    folder: Path, questions: Sequence[Question], lasts: float = 9.0
) -> None:
    """As if a run that does nothing else were asking them."""
    Store(folder / "a.sqlite").close()
    key_of = StoredAnswers(lambda: Store(folder / "none"), str, fresh=False).key_of
    for question in questions:
        until = time.time() + lasts
        rows(
            folder, "INSERT INTO leases VALUES (?, 'other', ?)", key_of(question), until
        )


def test_a_question_waits_while_another_run_asks_it_and_no_longer(
    tmp_path: Path,
) -> None:
    model, wanted = Gate(is_open=True), about("a", "b")
    leased_by_another(tmp_path, wanted[:1], lasts=14.0)
    with run(tmp_path, model) as engine:
        reply = engine.submit(wanted[0])
        assert asked_in(engine, wanted[1:]) == ["B"]
        assert engine.progress.elsewhere == 1
        assert not reply.done()
        rows(tmp_path, "UPDATE leases SET until=1")  # its owner was killed
        assert texts([reply.result(timeout=300)]) == ["A"]
    assert model.asked == ["b", "a"]


def leases_in(folder: Path) -> Leases:
    return Store(folder / "a.sqlite", pytest.fail).leases


def test_a_lease_ends_by_itself_unless_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    owner = store.leases
    other = leases_in(tmp_path)
    assert owner.take(["k"]) == {"k"}
    for _ in range(4):
        now[0] += 10.0
        owner.renew()
        assert not other.take(["k"])
    assert other.all() == {"k"}
    now[0] += 16.0  # killed
    assert other.all() == set()
    assert other.take(["k"]) == {"k"}
    owner.release("k")  # it was not: the lease is not its own any more
    store.save()
    assert other.all() == {"k"}
    other.close()
    assert owner.all() == set()


def test_no_more_is_leased_than_a_model_takes_at_once(tmp_path: Path) -> None:
    class Small(Gate):
        @property
        def most_in_flight(self) -> int | None:
            return 1

    model = Small()
    with run(tmp_path, model, concurrency=3) as engine:
        for question in about(*"abcdef"):
            engine.submit(question)
        wait_until(lambda: model.asked)
        assert len(leases_in(tmp_path).all()) == 1
        model.open.set()


def test_answers_that_arrive_together_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = list[int]()
    save = Store.save

    def counted(store: Store) -> bool:
        writes.append(len(store._unsaved))
        return save(store)

    monkeypatch.setattr(Store, "save", counted)
    model = Gate()
    with run(tmp_path, model, concurrency=20) as engine:
        replies = [engine.submit(question) for question in about(*"abcdefghijklmnop")]
        wait_until(lambda: len(model.asked) == 16)
        model.open.set()
        for reply in replies:
            reply.result(timeout=60)
    assert sum(writes) == 16
    assert len(writes) < 8


def test_leases_of_many_questions_are_taken_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", pytest.fail)
    one = store.leases
    two = leases_in(tmp_path)
    assert one.take(["a", "b"]) == {"a", "b"}
    assert two.take(["b", "c", "d"]) == {"c", "d"}
    one.release("a")
    assert two.all() == {"a", "b", "c", "d"}
    store.save()
    assert two.take(["a", "b"]) == {"a"}


@pytest.mark.parametrize("until", [1e300, "soon", b"\xff", 4e9])
def test_nobody_can_lease_a_question_for_ever(tmp_path: Path, until: object) -> None:
    Store(tmp_path / "a.sqlite").close()
    rows(tmp_path, "INSERT INTO leases VALUES ('k', 'other', ?)", until)
    leases = leases_in(tmp_path)
    assert leases.all() == set()
    assert leases.take(["k"])


def test_a_fresh_run_asks_what_another_run_is_asking(tmp_path: Path) -> None:
    model, wanted = Gate(is_open=True), about("a")
    leased_by_another(tmp_path, wanted)
    with run(tmp_path, model, fresh=True) as engine:
        assert asked_in(engine, wanted) == ["A"]
    assert len(rows(tmp_path, "SELECT * FROM leases WHERE owner='other'")) == 1


def test_a_run_that_is_stopped_waits_for_no_other(tmp_path: Path) -> None:
    wanted = [*about("a"), trial_question("t"), trial_question("u")]
    leased_by_another(tmp_path, wanted)
    with run(tmp_path, Gate(), agents=AgentPlaces(FakeTrials)) as engine:
        replies = [engine.submit(question) for question in wanted]
        wait_until(lambda: engine.progress.elsewhere == 3)
        engine.stop()
        assert [reply.result(timeout=300) for reply in replies] == [
            NoAnswer(STOPPED)
        ] * 3


def test_a_trial_of_an_agent_is_carried_out_by_one_run(tmp_path: Path) -> None:
    model, trials, question = Gate(), [FakeTrials(), FakeTrials()], trial_question("a")
    with (
        run(tmp_path, model, agents=AgentPlaces(lambda: trials[0])) as first,
        run(tmp_path, model, agents=AgentPlaces(lambda: trials[1])) as second,
    ):
        first.submit(question)
        wait_until(lambda: model.asked)
        reply = second.submit(question)
        wait_until(lambda: second.progress.elsewhere == 1)
        model.open.set()
        assert (
            asked_in(first, [question])
            == texts([reply.result(timeout=300)])
            == ["A0 A1"]
        )
    assert (trials[0].begun, trials[1].begun) == (["a"], [])


def test_an_old_answer_is_asked_again_by_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [old] = about("a")
    new = replace(old, system="Say b.")
    day = 86_400.0
    clock = [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with run(tmp_path, Gate(is_open=True)) as engine:
        engine.ask([old])
    clock[0] += 3 * day
    model = Gate()
    with (
        run(tmp_path, model, max_age=day) as first,
        run(tmp_path, model, max_age=day) as second,
    ):
        replies = list[list[Reply]]()

        def ask(engine: Engine) -> None:
            replies.append(engine.ask([old, new]))

        threads = [
            threading.Thread(target=ask, args=[engine]) for engine in (first, second)
        ]
        threads[0].start()
        wait_until(lambda: len(model.asked) == 2)
        threads[1].start()
        wait_until(lambda: second.progress.elsewhere == 2)
        model.open.set()
        for thread in threads:
            thread.join()
    assert model.asked == ["a", "a"]  # with the system text, and without
    assert [reply.asked_at for pair in replies for reply in pair] == [int(clock[0])] * 4  # type: ignore[union-attr]


def test_two_names_of_one_model_are_asked_once(tmp_path: Path) -> None:
    model = Gate(is_open=True)

    async def open_model(_name: str) -> Model:
        return model

    store = tmp_path / "a.sqlite"
    answers = StoredAnswers(lambda: Store(store), lambda _: "same", fresh=False)
    facts = ModelFacts(open_model, timeout=lambda _: 60)
    with closing(Engine(facts, concurrency=8, answers=answers)) as engine:
        named_a = Question("a", "", (("user", "q"),), max_output=10, run=1)
        first, second = engine.ask([named_a, replace(named_a, model="b")])
    assert model.asked == ["q"]
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert [first.stored, second.stored] == [False, True]
