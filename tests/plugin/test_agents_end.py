"""A run that ends takes its agents with it: -x, Ctrl-C, SIGTERM, kill -9;
the next one goes on.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.sandboxes import needs_bwrap
from support.shell import started
from support.waiting import wait_until

pytestmark = [
    pytest.mark.nightly,
    needs_bwrap,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]


def write_project(folder: Path, *questions: str) -> None:
    cases = [
        {"id": text.replace(" ", "-"), "input": text, "expected": {"contains": "yes"}}
        for text in questions
    ]
    write_skill(folder / "skills/gate", cases)
    (folder / "tmp").mkdir()


class Model:
    """Has agents run a command that sleeps, unless the question is a quick one."""

    def __init__(self) -> None:
        self.sleep = odd_seconds()

    def __call__(self, asked: Asked) -> Reply:
        if asked.results or asked.question.startswith("quick"):
            return Reply("yes")
        return Reply("", calls=(("bash", {"command": f"sleep {self.sleep}"}),))


def odd_seconds() -> str:
    """By which the process is known."""
    return f"{600 + os.getpid() / 10**7 + time.monotonic_ns() % 1000 / 10**10:.10f}"


def command(server: LoopbackServer, *args: str) -> list[str]:
    model = ["--skill", "skills", "--skill-agent", "loop", "--model", "m"]
    model += ["--skill-base-url", f"{server.url}/v1", "-o", "skill_agents_at_once=2"]
    return [sys.executable, "-m", "pytest", *model, "-v", *args]


def where(workers: str) -> tuple[str, str]:
    """The option for workers: of xdist, or of a cluster."""
    return ("--skill-cluster" if workers.startswith("local:") else "-n", workers)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder / "tmp")}


def sleeping(seconds: str) -> list[int]:
    """The processes that have this word on their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if seconds.encode() in words:
                found.append(int(folder.name))
    return found


@contextmanager
def run_with_agents_at_work(
    folder: Path, server: LoopbackServer, sleep: str, workers: str
) -> "Iterator[subprocess.Popen[str]]":
    args, env = command(server, *where(workers)), environment(folder)
    output = (folder / "output.txt").open("w")
    with output, started(args, cwd=folder, env=env, stdout=output) as run:
        wait_until(lambda: len(sleeping(sleep)) == 2)
        yield run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", ["0", "2", "local:2"])
def test_ctrl_c_and_sigterm_end_agents(
    tmp_path: Path, workers: str, number: signal.Signals
) -> None:
    write_project(tmp_path, "slow 1", "slow 2")
    with LoopbackServer(model := Model()) as server:
        with run_with_agents_at_work(tmp_path, server, model.sleep, workers) as run:
            run.send_signal(number)
            assert run.wait(60) == pytest.ExitCode.INTERRUPTED
        assert sleeping(model.sleep) == []
    assert list((tmp_path / "tmp").glob("pytest-upskill-*")) == []
    assert "Traceback" not in (tmp_path / "output.txt").read_text()


@pytest.mark.parametrize("workers", ["0", "2", "local:2"])
def test_kill_leaves_no_process_and_no_mount_and_the_next_run_goes_on(
    tmp_path: Path, workers: str
) -> None:
    write_project(tmp_path, "quick 1", "slow 1", "slow 2")
    with LoopbackServer(model := Model()) as server:
        with run_with_agents_at_work(tmp_path, server, model.sleep, workers) as run:
            run.kill()
            run.wait(60)
        wait_until(lambda: not sleeping(model.sleep))
        assert str(tmp_path) not in Path("/proc/mounts").read_text()
        before = len(server.asked)
        assert [one.question for one in server.asked].count("quick 1") == 2
        model.sleep = "0"
        args = command(server, *where(workers), "--skill-json", "r.json")
        done = subprocess.run(
            args, cwd=tmp_path, env=environment(tmp_path), check=False
        )
        assert done.returncode == 0
        asked = sorted(one.question for one in server.asked[before:])
    # Two turns in each of two arms; what was answered is not asked again.
    assert asked == ["slow 1"] * 4 + ["slow 2"] * 4
    records = json.loads((tmp_path / "r.json").read_text())["records"]
    stored = {(one["case"], one["stored"]) for one in records}
    assert stored == {("quick-1", True), ("slow-1", False), ("slow-2", False)}
    assert list((tmp_path / "tmp").glob("pytest-upskill-*")) == []


def test_a_stop_after_a_failure_ends_agents(tmp_path: Path) -> None:
    write_project(tmp_path, "quick wrong", "slow 1", "slow 2")
    meta = tmp_path / "skills/gate/skill_meta.json"
    data = json.loads(meta.read_text())
    data["cases"][0]["expected"] = {"contains": "no"}
    meta.write_text(json.dumps(data))
    with LoopbackServer(model := Model()) as server:
        args = command(server, "-x", "-p", "no:xdist")
        env = environment(tmp_path)
        done = subprocess.run(args, cwd=tmp_path, env=env, check=False, timeout=300)
        assert done.returncode == pytest.ExitCode.TESTS_FAILED
        assert sleeping(model.sleep) == []
