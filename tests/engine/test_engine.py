"""The engine: order, limits, fatal errors, stop and close."""

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.engine.budget import Budget
from pytest_upskill.engine.lane import STOPPED, Job, Lane
from pytest_upskill.engine.pace import Limit
from pytest_upskill.engine.store import KnownAnswers
from pytest_upskill.errors import ModelError, SettingsError
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.trial import Question, Trial
from support.waiting import wait_until


def question(text: str, model: str = "m") -> Question:
    return Question(model, "system", (("user", text),), 100, 1)


class Recorder:
    """A model that keeps what it was asked, and answers when it is let."""

    def __init__(self, most_in_flight: int | None = None, held: bool = False) -> None:
        self.most_in_flight = most_in_flight
        self.endpoint = str(id(self))
        self.address = ""
        self.asked: list[str] = []
        self.now = 0
        self.most = 0
        self.closed = False
        self.go = threading.Event()
        if not held:
            self.go.set()

    async def ask(self, question: Question) -> Answer:
        text = question.messages[0][1]
        self.asked.append(text)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
            if text.startswith("raise"):
                raise ModelError(
                    text,
                    fatal="fatal" in text,
                    unreachable="unreachable" in text,
                    transient="transient" in text,
                    retry_after=0.0,
                )
            if text.startswith("bug"):
                raise ZeroDivisionError(text)
            return Answer(text.upper())
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed = True


@contextmanager
def engine_of(
    *models: tuple[str, Recorder], concurrency: int = 4, timeout: float = 60
) -> Iterator[Engine]:
    by_name = dict(models)

    async def open_model(name: str) -> Model:
        if name not in by_name:
            raise SettingsError("models", "there is no such model", value=name)
        return by_name[name]

    engine = Engine(ModelFacts(open_model, lambda _: timeout), concurrency=concurrency)
    try:
        yield engine
    finally:
        engine.close()


def texts(replies: list[Reply]) -> list[str]:
    return [
        reply.text if isinstance(reply, Answer) else reply.reason for reply in replies
    ]


def plan_of(*questions: Question) -> Plan:
    trials = tuple(Trial("s", "c", q.model, "skill", 1, q) for q in questions)
    return Plan((), (PlannedCase("nodeid", "s", "c", "m", trials),))


def test_replies_are_in_the_order_of_the_questions() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        assert texts(engine.ask([question("a"), question("b")])) == ["A", "B"]
    assert model.closed


def test_plan_is_asked_in_order_before_anyone_waits() -> None:
    wanted = [question(str(number)) for number in range(20)]
    with engine_of(("m", model := Recorder()), concurrency=1) as engine:
        engine.start(plan_of(*wanted))
        engine.ask(wanted[-1:])
    assert model.asked == [str(number) for number in range(20)]


def test_same_question_is_asked_once() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        engine.start(plan_of(question("a")))
        engine.ask([question("a"), question("a")])
        engine.ask([question("a")])
    assert model.asked == ["a"]


def test_calls_in_flight_stay_within_the_limit() -> None:
    one, two = Recorder(), Recorder()
    with engine_of(("one", one), ("two", two), concurrency=3) as engine:
        engine.ask([question(str(n), ("one", "two")[n % 2]) for n in range(40)])
    assert max(one.most, two.most) > 1
    assert one.most + two.most <= 6
    assert max(one.most, two.most) <= 3


def test_slow_model_does_not_block_another() -> None:
    slow, fast = Recorder(most_in_flight=1, held=True), Recorder()
    with engine_of(("slow", slow), ("fast", fast), concurrency=2) as engine:
        engine.start(plan_of(*(question(str(n), "slow") for n in range(5))))
        assert texts(engine.ask([question("a", "fast"), question("b", "fast")])) == [
            "A",
            "B",
        ]
        assert slow.asked == ["0"]
        slow.go.set()
        engine.ask([question("4", "slow")])
    assert slow.most == 1


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("word", ["fatal", "unreachable"])
def test_fatal_error_costs_one_call(word: str) -> None:
    wanted = [question(f"raise {word} {number}") for number in range(10)]
    with engine_of(("m", model := Recorder())) as engine:
        replies = texts(engine.ask(wanted))
    # Nobody may be there only for now, so that is tried again,
    # but for one question only.
    assert model.asked == [f"raise {word} 0"] * (5 if word == "unreachable" else 1)
    assert len(set(replies)) == 1
    assert replies[0].startswith(f"m: raise {word} 0")


def test_one_forbidden_question_leaves_others_alone() -> None:
    wanted = [
        question(text)
        for text in ("a", "raise fatal 1", "raise fatal 2", "b", "raise fatal")
    ]
    with engine_of(("m", Recorder()), concurrency=1) as engine:
        replies = texts(engine.ask([*wanted, question("c")]))
    assert replies == [
        "A",
        "m: raise fatal 1",
        "m: raise fatal 2",
        "B",
        "m: raise fatal",
        "C",
    ]


def test_key_that_works_no_more_costs_few_calls() -> None:
    wanted = [
        question("a"),
        *(question(f"raise fatal {number}") for number in range(9)),
    ]
    with engine_of(("m", model := Recorder()), concurrency=1) as engine:
        replies = texts(engine.ask(wanted))
    assert len(model.asked) == 1 + 3
    assert set(replies[3:]) == {"m: raise fatal 2"}


@pytest.mark.usefixtures("short_pauses")
def test_server_that_answered_before_gets_more_questions_after_an_outage() -> None:
    wanted = [question("a"), question("raise unreachable"), question("b")]
    with engine_of(("m", Recorder()), concurrency=1) as engine:
        assert texts(engine.ask(wanted)) == [
            "A",
            "m: raise unreachable (5 attempts)",
            "B",
        ]


def test_error_of_one_question_leaves_others_alone() -> None:
    with engine_of(("m", Recorder()), concurrency=1) as engine:
        replies = texts(
            engine.ask([question("raise once"), question("a"), question("bug")])
        )
    assert replies[:2] == ["m: raise once", "A"]
    assert "the adapter raised" in replies[2]
    assert "ZeroDivisionError" in replies[2]


@pytest.mark.usefixtures("short_pauses")
def test_transient_error_gets_five_attempts() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        [reply] = texts(engine.ask([question("raise transient")]))
        assert engine.progress.retries() == {"m": 4}
    assert len(model.asked) == 5
    assert reply == "m: raise transient (5 attempts)"


def test_refused_question_is_asked_before_others_until_refused_often() -> None:
    lane = Lane("m", Limit(4))
    jobs = [Job(question(str(number)), number) for number in range(3)]
    lane.waiting.extend(jobs)
    order = []
    for _ in range(6):
        job = lane.drop()
        order.append(job.number)
        if job is jobs[0]:
            job.refused += 1
            lane.enqueue(job)
            assert lane.to_retry == 1
    assert order == [0, 0, 0, 0, 1, 2]
    assert lane.next is jobs[0]
    lane.settle_all("over")
    assert lane.to_retry == 0
    assert jobs[0].reply == NoAnswer("over")


def test_question_waiting_for_a_retry_takes_no_slot() -> None:
    with engine_of(("m", model := Recorder()), concurrency=1) as engine:
        engine.ask([question("first")])
        engine.start(plan_of(question("raise transient"), question("a"), question("b")))
        assert texts(engine.ask([question("b")])) == ["B"]
    assert model.asked.index("b") < 5


def test_stop_ends_pending_retries() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        engine.ask([question("first")])
        engine.start(plan_of(question("raise transient")))
        wait_until(lambda: "raise transient" in model.asked)
        engine.stop()
        [reply] = texts(engine.ask([question("raise transient")]))
    assert reply in (STOPPED, "m: raise transient", "m: raise transient (2 attempts)")


def test_model_that_cannot_be_opened_fails_all_its_questions() -> None:
    with engine_of() as engine:
        replies = texts(engine.ask([question("a", "none"), question("b", "none")]))
    assert replies == ["models none: there is no such model"] * 2


def test_slow_answer_times_out() -> None:
    with engine_of(("m", Recorder(held=True)), timeout=0.05) as engine:
        [reply] = texts(engine.ask([question("a")]))
    assert reply.startswith(
        "m: no answer within 0.05 s. Raise timeout, or lower concurrency "
    )


def test_stop_drops_questions_not_asked_yet() -> None:
    wanted = [question(str(number)) for number in range(10)]
    with engine_of(("m", model := Recorder(held=True)), concurrency=2) as engine:
        engine.start(plan_of(*wanted))
        engine.stop()
        assert texts(engine.ask(wanted[5:])) == [STOPPED] * 5
        model.go.set()
        engine.ask(wanted[:1])
        assert engine.ask([question("later")]) == [NoAnswer(STOPPED)]
    assert len(model.asked) <= 1


def test_close_cancels_calls_and_closes_models() -> None:
    with engine_of(("m", model := Recorder(held=True))) as engine:
        engine.start(plan_of(question("a")))
        reply = engine.submit(question("a"))
        wait_until(lambda: model.asked)
    assert reply.result() == NoAnswer(STOPPED)
    assert model.closed


def test_close_keeps_the_answer_of_a_call_in_flight() -> None:
    model = Recorder(held=True)
    with engine_of(("m", model), concurrency=1) as engine:
        in_flight = engine.submit(question("paid"))
        waiting = engine.submit(question("later"))
        waiting.add_done_callback(lambda _: model.go.set())
        wait_until(lambda: model.asked)
        engine.close()
    assert texts([in_flight.result(), waiting.result()]) == ["PAID", STOPPED]
    assert model.asked == ["paid"]


def test_unused_engine_starts_nothing() -> None:
    before = threading.active_count()
    with engine_of(("m", model := Recorder())):
        assert threading.active_count() == before
    assert not model.closed


class Broken(Budget):
    """A budget with a bug in one of its methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        setattr(self, method, self._fail)

    def _fail(self, *_: object, **__: object) -> bool:
        raise OverflowError("too large")


class BrokenAnswers(KnownAnswers):
    """Stored answers with a bug that shows in one method, for one question."""

    def __init__(self, method: str, text: str) -> None:
        self._method = method
        self._text = text

    def get(self, question: Question) -> Reply | None:
        self._fail("get", question)
        return None

    def put(self, question: Question, _answer: Answer) -> None:
        self._fail("put", question)

    def close(self) -> bool:
        raise OverflowError("too large")

    def _fail(self, method: str, question: Question) -> None:
        if method == self._method and question.messages[0][1] == self._text:
            raise OverflowError("too large")


def replies_of(engine: Engine, *texts: str) -> list[Reply]:
    """The replies; fails instead of waiting for ever."""
    wanted = [question(text) for text in texts]
    engine.start(plan_of(*wanted))
    try:
        futures = [engine.submit(one) for one in wanted]
        return [future.result(timeout=60) for future in futures]
    finally:
        engine.close()


async def opened(_name: str) -> Model:
    return Recorder()


def engine_with(
    open_model: Callable[[str], Awaitable[Model]] = opened,
    budget: Budget | None = None,
    answers: KnownAnswers | None = None,
) -> Engine:
    return Engine(
        ModelFacts(open_model, lambda _: 60),
        concurrency=4,
        budget=budget,
        answers=answers,
    )


TOO_LARGE = "unexpected error: OverflowError('too large'). Please report it"


def test_unexpected_error_of_one_question_leaves_others_alone() -> None:
    replies = replies_of(engine_with(answers=BrokenAnswers("put", "b")), "a", "b", "c")
    assert texts(replies) == ["A", f"m: {TOO_LARGE}", "C"]


@pytest.mark.parametrize("method", ["refusal_of_case", "hold", "settle"])
def test_unexpected_error_between_questions_ends_the_run(method: str) -> None:
    replies = replies_of(engine_with(budget=Broken(method)), "a", "b", "c")
    assert replies == [NoAnswer(TOO_LARGE)] * 3


def test_unexpected_error_of_stored_answers_ends_the_run() -> None:
    engine = engine_with(answers=BrokenAnswers("get", "b"))
    assert NoAnswer(TOO_LARGE) in replies_of(engine, "a", "b", "c")
    assert engine.ask([question("later")]) == [NoAnswer(TOO_LARGE)]


def test_unexpected_error_before_a_retry_ends_the_run() -> None:
    class Once(Budget):
        held = 0

        def hold(self, question: Question) -> bool:
            self.held += 1
            if self.held > 1:
                raise OverflowError("too large")
            return super().hold(question)

    assert replies_of(engine_with(budget=Once()), "raise transient") == [
        NoAnswer(TOO_LARGE)
    ]


class Unshowable(Exception):
    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    "error", [SystemExit(3), asyncio.CancelledError(), Unshowable()]
)
@pytest.mark.parametrize("where", ["open", "ask"])
def test_whatever_an_adapter_raises_ends_its_questions(
    error: BaseException, where: str
) -> None:
    class Leaving(Recorder):
        async def ask(self, _question: Question) -> Answer:
            raise error

    async def open_model(_name: str) -> Model:
        if where == "open":
            raise error
        return Leaving()

    for reply in replies_of(engine_with(open_model), "a", "b"):
        assert isinstance(reply, NoAnswer)
        assert (
            isinstance(error, asyncio.CancelledError)
            or "adapter raised" in reply.reason
        )


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a thread")
def test_a_signal_that_does_not_wake_who_waits_ends_the_wait() -> None:
    """Such as one that comes just before the wait; here another thread takes it."""

    def interrupt(_number: int, _frame: object) -> None:
        raise InterruptedError

    def send() -> None:
        wait_until(lambda: model.asked)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with engine_of(("m", model := Recorder(held=True))) as engine:
            # So that it fails instead of hanging
            late = threading.Timer(60, model.go.set)
            late.start()
            threading.Thread(target=send).start()
            with pytest.raises(InterruptedError):
                engine.ask([question("a")])
            assert not model.go.is_set()
            late.cancel()
            model.go.set()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_exit_inside_the_loop_does_not_end_its_thread() -> None:
    class Leaving(Recorder):
        async def ask(self, question: Question) -> Answer:
            asyncio.get_running_loop().call_soon(sys.exit, 3)
            await asyncio.sleep(60)
            return Answer(question.key)

    async def open_model(_name: str) -> Model:
        return Leaving()

    [reply] = replies_of(engine_with(open_model), "a")
    assert reply == NoAnswer("unexpected error: SystemExit(3). Please report it")
