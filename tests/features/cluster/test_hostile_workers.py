"""A hostile worker of a cluster: what it sends is data to the controller, or
nothing.
"""

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_upskill._util.json_forms import form_of
from pytest_upskill.engine.budget import Budget
from pytest_upskill.features.cluster.cluster import Cluster
from pytest_upskill.features.cluster.connection import read_data_only
from pytest_upskill.features.cluster.worker import Outcome, packed
from pytest_upskill.measure.open_run import open_run
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from support.dask_processes import DaskProcesses, dask_processes
from support.trials import trial_question

# Runs before a worker does: its trials attack as the question says.
_HOSTILE = """
import copyreg, pickle, secrets, sys
if "Worker" in " ".join(sys.orig_argv):
    from distributed import get_worker
    from distributed.protocol import to_serialize
    from pytest_upskill.features.cluster import worker
    from pytest_upskill.features.cluster.worker import Outcome, WorkerReport, packed
    from pytest_upskill.trials.answer import Answer

    CODE = "import os, pathlib; pathlib.Path({folder!r}, str(os.getpid())).touch()"

    class Evil(BaseException):
        def __reduce__(self):
            return exec, (CODE,)

    class EvilType(type):
        pass

    copyreg.pickle(EvilType, lambda _: (exec, (CODE,)))

    class OfEvilType(bytes, metaclass=EvilType):
        pass

    class EvilError(Exception):
        __reduce__ = Evil.__reduce__

    async def examine(brief, dask_worker=None):
        if dask_worker.name == "berta":
            raise EvilError
        ours = {{worker.PACKAGE: worker.version(worker.PACKAGE)}}
        versions = {{**ours, "loop": "1", "other": "9"}}
        return packed(WorkerReport("", "bwrap", versions))

    def carry_out(brief, question, allowance, calls_at_once, start):
        attack = question.messages[-1][1]
        log_event = get_worker().log_event
        if attack == "an object":
            return Evil()
        if attack == "an exception":
            raise EvilError
        if attack.startswith("large"):  # read by another thread
            global CODE
            CODE += "#" + secrets.token_hex(6_000_000)
            if attack == "large exception":
                raise EvilError
            return Evil()
        if attack == "a type":
            return OfEvilType(b"{{}}")
        if attack == "text":
            return "{{}}"
        if attack == "no form":
            return b'{{"reply": 5}}'
        if attack == "events":
            log_event("print", to_serialize(Evil()))
            log_event("warn", {{"message": pickle.dumps(Evil())}})
            log_event("print", {{"args": ("from a worker",)}})
        return packed(Outcome(Answer("fine"), tokens=3))

    worker.examine, worker.carry_out = examine, carry_out
    examine.__module__ = carry_out.__module__ = worker.__name__
"""


class NoCalls:
    async def __call__(self, question: object, send: object = None) -> NoAnswer:
        raise NotImplementedError


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    folder = tmp_path_factory.mktemp("dask")
    (folder / "ran").mkdir()
    (folder / "sitecustomize.py").write_text(
        _HOSTILE.format(folder=str(folder / "ran"))
    )
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    with dask_processes(folder / "processes") as processes:
        for name in ("anna", "berta"):
            processes.add(name, {"PYTHONPATH": path})
        yield processes


@pytest.fixture(scope="module")
def cluster(dask: DaskProcesses) -> Iterator[Cluster]:
    run = open_run(
        Settings(models=("haiku",), agents=("loop",), cluster=dask.address), ()
    )
    run.roster.pins["loop"] = "1"
    cluster = Cluster(run, lambda _: None).use(Budget(), str)
    try:
        assert "worker berta: it gave no report" in cluster.lines[1]
        yield cluster
    finally:
        cluster.leave()


@pytest.fixture
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(tmp_path_factory.getbasetemp().glob("dask*/ran"))


@pytest.mark.parametrize(
    "attack",
    [
        "an object",
        "an exception",
        "large object",
        pytest.param("large exception", marks=pytest.mark.nightly),
        "a type",
        "text",
        "no form",
        "events",
        "",
    ],
)
def test_a_hostile_worker_runs_no_code_here(
    cluster: Cluster,
    ran: Path,
    attack: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    trial = cluster.run(trial_question(attack), NoCalls())
    reply = asyncio.run(asyncio.wait_for(trial, 60))
    if attack in ("", "events"):
        assert reply == Answer("fine")
    else:
        assert isinstance(reply, NoAnswer)
        assert "its worker was lost or failed" in reply.reason
    assert str(os.getpid()) not in [file.name for file in ran.iterdir()]
    assert "from a worker" not in "".join(capfd.readouterr())


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.getenv, ("HOME",)


def test_dask_unpickles_all_on_other_threads() -> None:
    """Tests of users may have clusters of their own."""
    protocol = pytest.importorskip("distributed.protocol")
    frames = protocol.dumps(
        {"a": protocol.Serialize(Evil()), "b": protocol.ToPickle(Evil()), "c": 5}
    )

    async def read() -> object:
        await read_data_only()
        return protocol.loads(frames)

    home = os.environ["HOME"]
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, read()).result()
    assert found == {"a": None, "b": None, "c": 5}
    assert protocol.loads(frames) == {"a": home, "b": home, "c": 5}


def test_what_comes_back_is_what_was_sent() -> None:
    answer = Answer("half \ud800", Usage(1, 2), workspace=b"\xff\0")
    read = form_of(Outcome).validate_json(packed(Outcome(answer, 3, 0.5)))
    assert isinstance(read.reply, Answer)
    assert (read.reply.text, read.reply.workspace) == ("half ?", b"\xff\0")
    assert (read.tokens, read.usd) == (3, 0.5)


@pytest.mark.parametrize(
    "data",
    [
        '{"reply":{"reason":""},"tokens":-1}',
        '{"reply":{"reason":""},"usd":1e999}',
        '{"reply":{"reason":""},"usd":-0.1}',
        '{"reply":{"reason":""},"exceeded":"yes"}',
        '{"reply":{"stop":"end"}}',
        "[" * 10_000,
        "",
        "null",
    ],
)
def test_what_is_no_outcome(data: str) -> None:
    with pytest.raises(ValidationError):
        form_of(Outcome).validate_json(data)


@pytest.mark.parametrize("key", ["files", "transcript", "activity"])
def test_a_list_of_nonsense_takes_little_memory(key: str) -> None:
    """An error for each item would take gigabytes."""
    items = f"[{'1,' * 200_000}1]"
    value = f'{{"read":{items}}}' if key == "activity" else items
    data = f'{{"reply":{{"text":"","{key}":{value}}}}}'.encode()
    with pytest.raises(ValidationError) as caught:
        form_of(Outcome).validate_json(data)
    assert caught.value.error_count() < 10
