"""Ctrl-C and SIGTERM: a run ends at once, reports what it has,
and leaves nothing behind.
"""

import json
import signal
import subprocess
import sys

import pytest

from support.kit import case, write_skill
from support.runs import run_skills
from support.shell import started
from support.waiting import wait_until

MODEL = """
    import asyncio
    from pathlib import Path

    from pytest_upskill import Answer, Model

    class Slow(Model):
        async def ask(self, question):
            with Path("asked.txt").open("a") as file:
                file.write("x")
            if "slow" in question.messages[-1][1]:
                # As a server does that answers what it has begun.
                last = question.messages[-1][1]
                while "slow 0" in last and not Path("ends.txt").exists():
                    await asyncio.sleep(0.01)
                if "slow 0" not in question.messages[-1][1]:
                    await asyncio.Event().wait()
            return Answer("yes")

    def pytest_upskill_models():
        return {"slow": lambda name: Slow()}

    def pytest_keyboard_interrupt():
        Path("ends.txt").touch()
"""


@pytest.mark.skipif(
    sys.platform == "win32", reason="has no signals for other processes"
)
@pytest.mark.parametrize(
    ("number", "times", "reason"),
    [
        pytest.param(signal.SIGINT, 1, "KeyboardInterrupt", id="ctrl-c"),
        pytest.param(signal.SIGTERM, 2, "SIGTERM", id="sigterm-as-timeout-sends-it"),
    ],
)
def test_an_interrupted_run_asks_nothing_more_and_keeps_what_it_has(
    pytester: pytest.Pytester,
    workers: str,
    number: signal.Signals,
    times: int,
    reason: str,
) -> None:
    cases = [case("quick", "yes", id="quick")]
    cases += [case(f"slow {n}", "yes", id=f"slow-{n}") for n in range(20)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(MODEL)
    asked = pytester.path / "asked.txt"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--skill",
        "skills",
        "--model",
        "slow",
        "-v",
    ]
    command += ["--skill-concurrency", "2", "-n", workers, "--skill-json", "r.json"]
    with started(command, cwd=pytester.path, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "quick" in line and "PASSED" in line:
                break
        wait_until(lambda: asked.stat().st_size >= 4)
        for _ in range(times):
            run.send_signal(number)
        rest = run.stdout.read()
        assert run.wait(60) == pytest.ExitCode.INTERRUPTED
    assert asked.stat().st_size == 4
    assert "all answers so far are kept: " in rest
    assert "Traceback" not in rest
    report = json.loads((pytester.path / "r.json").read_text())
    assert {record["case"] for record in report["records"]} == {"quick"}
    assert report["interrupted"] == reason
    assert len(report["lost"]) == 20
    assert "4 calls" in rest  # with the two that were in flight


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for other processes")
@pytest.mark.parametrize(
    ("hook", "times", "exitstatus"),
    [
        ("pytest_keyboard_interrupt", 1, pytest.ExitCode.INTERRUPTED),
        ("pytest_keyboard_interrupt", 2, -signal.SIGINT),
        ("pytest_upskill_finished", 1, pytest.ExitCode.OK),
    ],
)
def test_a_ctrl_c_while_the_run_ends_does_not_cost_its_reports(
    pytester: pytest.Pytester, hook: str, times: int, exitstatus: int
) -> None:
    write_skill(
        pytester.path / "skills/gate", [case("q?", "yes", id=f"c{n}") for n in range(2)]
    )
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    pytester.makeconftest(f"""
        import signal

        def pytest_runtest_teardown(item):
            if "interrupt" in "{hook}":
                raise KeyboardInterrupt

        def {hook}():
            for _ in range({times}):
                signal.raise_signal(signal.SIGINT)
        """)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--skill",
        "skills",
        "--model",
        "scripted:a.json",
    ]
    command += ["--skill-json", "r.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, cwd=pytester.path, **pipes) as run:
        _, told = run.communicate(timeout=60)
    assert run.returncode == exitstatus
    assert told.count("Ctrl-C again ends it at once, without its reports") == 1
    assert ("Traceback" in told) == (times == 2)
    assert json.loads((pytester.path / "r.json").read_text())["records"]


@pytest.mark.parametrize(
    ("how", "exitstatus", "reason"),
    [
        ('pytest.exit("enough", returncode=0)', pytest.ExitCode.TESTS_FAILED, "enough"),
        ('item.session.shouldstop = "enough"', pytest.ExitCode.INTERRUPTED, "enough"),
        ('item.session.shouldfail = "late"', pytest.ExitCode.TESTS_FAILED, "late"),
    ],
)
def test_a_run_that_is_stopped_is_interrupted_everywhere(
    pytester: pytest.Pytester, how: str, exitstatus: int, reason: str
) -> None:
    write_skill(
        pytester.path / "skills/gate", [case("q?", "yes", id=f"c{n}") for n in range(4)]
    )
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    pytester.makeconftest(f"""
        import pytest

        def pytest_runtest_teardown(item):
            if item.name.startswith("c1["):
                {how}
        """)
    run = run_skills(pytester, "scripted:a.json", "--skill-markdown", "r.md")
    assert run.status == exitstatus
    assert run.report["interrupted"] == reason
    assert len(run.report["lost"]) == 2
    assert any(line.startswith(f"✘ interrupted: {reason}") for line in run.ending)
    assert f"interrupted: {reason}" in (pytester.path / "r.md").read_text()
