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


@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_runs_at_once_pay_for_each_question_once(
    pytester: pytest.Pytester, number: int
) -> None:
    """One of them in this process."""
    write_skill(
        pytester.path / "skills/gate",
        [case(f"question {n}", "yes", id=f"c{n}") for n in range(6)],
    )
    # Each run has one call in flight, so two that are in flight
    # together are of two runs.
    with (
        LoopbackServer(lambda _: Reply("yes"), together=number) as server,
        ExitStack() as stack,
    ):
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        args += ["--skill-concurrency", "1"]
        command = [sys.executable, "-m", "pytest", *args]
        runs = [
            stack.enter_context(
                started(
                    [*command, "--skill-json", f"{n}.json"], stdout=subprocess.DEVNULL
                )
            )
            for n in range(1, number)
        ]
        assert pytester.runpytest_inprocess(*args, "--skill-json", "0.json").ret == 0
        assert [run.wait() for run in runs] == [0] * (number - 1)
    assert len(server.asked) == 12
    assert set(
        Counter((asked.system, asked.question) for asked in server.asked).values()
    ) == {1}
    reports = [
        json.loads((pytester.path / f"{n}.json").read_text()) for n in range(number)
    ]
    paid = [
        sum(not record["stored"] for record in report["records"]) for report in reports
    ]
    assert sum(paid) == 12
    assert all(paid)
