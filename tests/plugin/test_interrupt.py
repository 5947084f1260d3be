"""Ctrl-C: a run ends at once, reports what it has, and leaves nothing behind."""

import json
import signal
import subprocess
import sys
import time

import pytest

from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.shell import started


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for other processes")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupted_run_asks_nothing_more_and_keeps_what_it_has(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case("quick", "yes", id="quick")]
    cases += [case(f"slow {n}", "yes", id=f"slow-{n}") for n in range(20)]
    write_skill(pytester.path / "skills/gate", cases)

    def script(asked: Asked) -> Reply | Fault:
        return Reply("yes") if asked.question == "quick" else Fault("hang")

    args = ["--skill", "skills", "--model", "m", "--skill-concurrency", "2", "-n", workers, "-v"]
    with LoopbackServer(script) as server:
        command = [sys.executable, "-m", "pytest", *args, "--skill-json", "r.json"]
        command += ["--skill-base-url", f"{server.url}/v1"]
        with started(command, cwd=pytester.path, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            for line in run.stdout:
                if "quick" in line and "PASSED" in line:
                    break
            while server.most_in_flight < 2:
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            rest = run.stdout.read()
            assert run.wait(20) == pytest.ExitCode.INTERRUPTED
    assert len(server.asked) == 4
    assert "m: incomplete: 20 cases not run" in rest
    assert "Traceback" not in rest
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    assert {record["case"] for record in records} == {"quick"}
