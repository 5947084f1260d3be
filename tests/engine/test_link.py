"""The link between xdist workers and the engine, without xdist."""

import socket
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Thread

import pytest

from pytest_upskill.engine import Engine, LinkClient, LinkServer, ModelFacts
from pytest_upskill.engine.lane import STOPPED
from pytest_upskill.errors import UpskillError
from pytest_upskill.models import Model
from pytest_upskill.models.scripted import ScriptedModel
from pytest_upskill.trials.answer import Answer, AnswerFile, NoAnswer, Reply
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.transcript import Activity, Turn
from pytest_upskill.trials.trial import Question, Trial

FILES = (AnswerFile.of("a.txt", b"one"),)
ACTIVITY = Activity(2, 1, activated=True, opened=("gate",))
TRANSCRIPT = (Turn("user", "q"), Turn("call", "ls", "bash"))


class Controller:
    """An engine with a link, and what came over it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.plans: list[Plan] = []
        self.engine = Engine(ModelFacts(self._open, lambda _: 60), concurrency=2)
        self.link = LinkServer(self.engine, self._begin)

    async def _open(self, _: str) -> Model:
        def script(question: Question) -> Answer:
            self.asked.append(question.messages[0][1])
            return Answer(
                question.messages[0][1].upper(),
                files=FILES,
                transcript=TRANSCRIPT,
                activity=ACTIVITY,
                workspace=b"tar",
            )

        return ScriptedModel(script)

    def _begin(self, plan: Plan) -> None:
        self.plans.append(plan)
        self.engine.start(plan)


@pytest.fixture
def controller() -> Iterator[Controller]:
    controller = Controller()
    yield controller
    controller.engine.close()
    controller.link.close()


def question(text: str) -> Question:
    return Question("m", "system", (("user", text),), 100, 1)


def plan_of(*texts: str) -> Plan:
    trials = tuple(Trial("s", "c", "m", "skill", 1, question(text)) for text in texts)
    return Plan((), (PlannedCase("nodeid", "s", "c", "m", trials),))


def test_workers_send_the_plan_once_and_share_its_answers(
    controller: Controller,
) -> None:
    workers = [LinkClient(controller.link.address) for _ in range(3)]
    for worker in workers:
        worker.start(plan_of("a", "b"))
    for worker in workers:
        replies = worker.ask([question("a"), question("b")])
        assert [reply.text for reply in replies if isinstance(reply, Answer)] == [
            "A",
            "B",
        ]
        worker.close()
    assert controller.plans == [plan_of("a", "b")]
    assert sorted(controller.asked) == ["a", "b"]


def test_question_outside_the_plan_is_asked_too(controller: Controller) -> None:
    worker = LinkClient(controller.link.address)
    [reply] = worker.ask([question("c")])
    assert isinstance(reply, Answer)
    assert (reply.text, reply.files, reply.transcript) == ("C", FILES, TRANSCRIPT)
    assert (reply.activity, reply.workspace) == (ACTIVITY, b"tar")
    assert controller.asked == ["c"]
    worker.close()


def test_worker_does_not_wait_for_a_stopped_engine(controller: Controller) -> None:
    worker = LinkClient(controller.link.address)
    controller.engine.stop()
    [reply] = worker.ask([question("c")])
    assert isinstance(reply, NoAnswer)
    worker.close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_worker_of_a_run_that_has_ended_is_told(controller: Controller) -> None:
    worker = LinkClient(controller.link.address)
    controller.engine.start(plan_of())
    controller.engine.close()
    worker.start(plan_of("a"))
    assert worker.ask([question("a")]) == [NoAnswer(STOPPED)]
    worker.close()


def test_questions_beside_the_end_of_a_run_get_a_reply(controller: Controller) -> None:
    engine = controller.engine
    engine.ask([question("a")])
    replies = list[Reply]()

    def ask() -> None:
        for number in range(300):
            replies.extend(engine.ask([question(f"{number}")]))

    threads = [Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    engine.close()
    for thread in threads:
        thread.join(20)
    assert len(replies) == 1200


def test_client_without_the_key_is_rejected(controller: Controller) -> None:
    where, _ = controller.link.address
    with pytest.raises(AuthenticationError):
        Client(where, authkey=b"guessed")
    with pytest.raises(UpskillError, match="can't connect"):
        LinkClient((where, "00" * 32))
    worker = LinkClient(controller.link.address)
    assert worker.ask([question("still there")])
    worker.close()


@pytest.mark.parametrize(
    "sent", [b"", b"\0\0", b"\0\0\0\x14half", b"GET / HTTP/1.1\n\n", b"\xff" * 99]
)
def test_client_that_does_not_finish_the_handshake_blocks_nobody(
    controller: Controller, sent: bytes
) -> None:
    where, _ = controller.link.address
    strangers = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for stranger in strangers:
        stranger.connect(where)
        stranger.sendall(sent)
    replies: list[Reply] = []

    def work() -> None:
        worker = LinkClient(controller.link.address)
        replies.extend(worker.ask([question("a")]))
        worker.close()

    ended_in_time(work)
    ended_in_time(controller.link.close)
    assert [isinstance(reply, Answer) for reply in replies] == [True]
    for stranger in strangers:
        stranger.close()


def test_late_worker_neither_blocks_the_end_nor_waits(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, key = controller.link.address
    real = controller.link._thread.join
    late: list[Thread] = []
    told: list[str] = []

    def come() -> None:
        try:
            LinkClient((where, key)).ask([question("late")])
        except UpskillError as error:
            told.append(str(error))

    def join_late() -> None:
        real()  # nobody accepts any more
        late.extend(Thread(target=come, daemon=True) for _ in range(3))
        for one in late:
            one.start()

    with monkeypatch.context() as patch:
        patch.setattr(controller.link._thread, "join", join_late)
        ended_in_time(controller.link.close)
    for one in late:
        ended_in_time(one.join)
    assert len(told) == 3


def test_link_works_where_a_path_would_be_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (deep := tmp_path / ("deep" * 40)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    async def no_model(_: str) -> Model:
        raise AssertionError

    engine = Engine(ModelFacts(no_model, lambda _: 1), concurrency=1)
    link = LinkServer(engine, lambda _: None)
    worker = LinkClient(link.address)
    worker.start(plan_of("a"))
    worker.close()
    link.close()
    assert not list(deep.iterdir())


def ended_in_time(work: Callable[[], object]) -> None:
    """Fail rather than hang."""
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_worker_reports_a_lost_controller() -> None:
    with Listener(authkey=b"key") as listener:
        ender = Thread(target=lambda: listener.accept().close())
        ender.start()
        worker = LinkClient((listener.address, b"key".hex()))
        ender.join()
        with pytest.raises(UpskillError, match="lost the connection"):
            worker.ask([question("a")])
        worker.close()
