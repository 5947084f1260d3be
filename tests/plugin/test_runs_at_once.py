"""Runs at once in one project, each in a process of its own."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack

import pytest

from support.kit import case, write_skill
from support.loopback import LoopbackServer, Reply
from support.shell import started


def test_three_runs_at_once_pay_for_each_question_once(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate",
        [case(f"question {number}", "yes", id=f"c{number}") for number in range(6)],
    )
    command = [sys.executable, "-m", "pytest", "--skill", "skills", "--model", "m"]
    # Each run has one call in flight, so three that are in flight together are of three runs.
    with LoopbackServer(lambda _: Reply("yes"), together=3) as server, ExitStack() as stack:
        command += ["--skill-base-url", f"{server.url}/v1", "--skill-concurrency", "1"]
        runs = [
            stack.enter_context(
                started([*command, "--skill-json", f"{n}.json"], stdout=subprocess.DEVNULL)
            )
            for n in range(3)
        ]
        assert [run.wait() for run in runs] == [0, 0, 0]
    assert len(server.asked) == 12
    assert set(Counter((asked.system, asked.question) for asked in server.asked).values()) == {1}
    reports = [json.loads((pytester.path / f"{n}.json").read_text()) for n in range(3)]
    paid = [sum(not record["stored"] for record in report["records"]) for report in reports]
    assert sum(paid) == 12
    assert all(paid)
