"""xdist: the same results, one engine, nothing lost."""

import json
import re
from typing import Any

import pytest

from pytest_upskill.plugin.asking import Asking
from pytest_upskill.plugin.run import Run
from pytest_upskill.trials.answer import NoAnswer
from pytest_upskill.trials.plan import Plan
from pytest_upskill.trials.trial import Question
from support.kit import case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply, unreliable
from support.runs import run_skills

CONFTEST_OF_WORKERS = """
    import os
    import sys
    from pathlib import Path

    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(session):
        given = getattr(session.config, "workerinput", None)
        if given is None:
            return
        heavy = ("anthropic", "openai", "httpx2", "genai_prices")
        seen = [name for name in heavy if name in sys.modules]
        _, key = given["upskill_link"]
        assert len(key) == 64
        command = Path("/proc/self/cmdline")
        if key in str(dict(os.environ)):
            seen.append("the key of the link")
        if command.exists() and key in command.read_text():
            seen.append("the key of the link")
        found = session.config.rootpath / f"{given['workerid']}.txt"
        found.write_text(" ".join(seen) or "none")
"""


TIMES = {"started", "seconds", "asked", "asked_at", "looks"}


def without_times(value: Any) -> Any:
    """The same report without what differs from run to run, at any depth."""
    if isinstance(value, list):
        return [without_times(one) for one in value]
    if not isinstance(value, dict):
        return value

    return {
        name: without_times(one) for name, one in value.items() if name not in TIMES
    }


def test_workers_change_nothing_hold_the_limit_and_know_no_sdk_and_no_key(
    pytester: pytest.Pytester,
) -> None:
    cases = [
        case(f"gate {n}?", "gate up" if n % 3 else "never", id=f"c{n}")
        for n in range(7)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    write_skill(pytester.path / "skills/door")
    pytester.makeconftest(CONFTEST_OF_WORKERS)
    reports = []
    for workers in ("0", "2"):
        with LoopbackServer(lambda _: Reply("gate up"), together=3) as server:
            args = [
                "-n",
                workers,
                "--skill-concurrency",
                "3",
                "--skill-runs",
                "2",
                "--skill-fresh",
            ]
            run = run_skills(pytester, server, *args)
        assert run.outcomes == {"passed": 5, "failed": 3}
        assert server.most_in_flight == 3
        assert len(server.asked) == 8 * 2 * 2
        reports.append(json.dumps(without_times(run.report)).replace(server.url, "URL"))
    assert reports[0] == reports[1]
    assert [(pytester.path / f"gw{n}.txt").read_text() for n in (0, 1)] == [
        "none",
        "none",
    ]


def test_a_killed_worker_takes_no_finished_record_with_it(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest("""
        import os
        import signal

        def pytest_runtest_call(item):
            if item.name.startswith("c5["):
                os.kill(os.getpid(), signal.SIGKILL)
        """)
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    run = run_skills(pytester, "scripted:a.json", "-n", "1")
    assert run.outcomes == {"passed": 7, "failed": 1}
    outcomes = {(record["case"], record["outcome"]) for record in run.records}
    assert outcomes == {(f"c{n}", "errored" if n == 5 else "passed") for n in range(8)}
    assert run.summary["errored"] == 2
    assert "crashed" in run.record(case="c5", arm="skill")["error"]


@pytest.mark.parametrize(
    ("conftest", "args", "lost"),
    [
        # Before it has collected, so that the other worker gets no tests either.
        (
            """
            import os
            def pytest_sessionstart(session):
                if getattr(session.config, "workerinput", {}).get("workerid") == "gw0":
                    os._exit(1)
            """,
            ["-n", "2"],
            None,
        ),
        # Before it has sent its plan.
        (
            """
            import os, pytest
            @pytest.hookimpl(wrapper=True)
            def pytest_runtestloop(session):
                if hasattr(session.config, "workerinput"):
                    plugins = session.config.pluginmanager.get_plugins()
                    worker = next(one for one in plugins if hasattr(one, "torun"))
                    worker.channel.receive()  # xdist itself fails if it can't send this
                    os._exit(1)
                return (yield)
            """,
            ["-n", "1", "--dist", "each"],
            "[78]",
        ),
        # It lives, and reports nothing of some tests.
        (
            """
            def pytest_runtest_protocol(item):
                return item.name[:2] in ("c3", "c4") or None
            """,
            ["-n", "0"],
            "2",
        ),
    ],
)
def test_what_was_collected_and_not_reported_fails_the_run(
    pytester: pytest.Pytester, conftest: str, args: list[str], lost: str | None
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(conftest)
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    args += ["--max-worker-restart", "0", "--skill-min-pass-rate", "0.1"]
    run = run_skills(pytester, "scripted:a.json", *args)
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert run.gate["passed"] is False
    if lost:
        words = f" {lost} of 8 tests collected but never reported"
        assert any(re.search(words, line) for line in run.ending)


def test_groups_of_xdist_change_node_ids_and_nothing_else(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(3)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest("""
        import pytest
        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.xdist_group("first"))
        """)
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    args = ["-n", "1", "--dist", "loadgroup", "--skill-min-pass-rate", "0.9"]
    run = run_skills(pytester, "scripted:a.json", *args)
    assert (run.status, run.outcomes) == (0, {"passed": 3})


@pytest.mark.parametrize("workers", ["0", "2"])
def test_gates_leave_out_what_was_deselected(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case("Gate?", "up", id="first"), case("Again?", "up", id="second")]
    write_skill(pytester.path / "skills/gate", cases)
    write_skill(pytester.path / "skills/none", [])
    (pytester.path / "skills/none/skill_meta.json").unlink()
    model = write_script(pytester.path / "a.json")
    options = ("-k", "first", "-n", workers, "--skill-min-pass-rate", "0.1")
    run = run_skills(pytester, model, *options)
    assert run.report["gate"] == {"passed": True, "reasons": []}
    assert run.status == 0


def test_stopping_at_the_first_failure_stops_the_asking_too(
    pytester: pytest.Pytester,
) -> None:
    """The run ends though the answers that are still to come never come."""
    cases = [case(f"question {n}", "never", id=f"c{n}") for n in range(40)]
    write_skill(pytester.path / "skills/gate", cases)

    def script(asked: Asked) -> Reply | Fault:
        return (
            Reply("no")
            if asked.question in ("question 0", "question 1")
            else Fault("hang")
        )

    with LoopbackServer(script) as server:
        args = ["-n", "1", "-x", "--skill-concurrency", "4", "--skill-timeout", "3600"]
        run = run_skills(pytester, server, *args)
    assert run.outcomes["failed"] >= 1
    assert len(server.asked) <= 8


@pytest.mark.usefixtures("short_pauses")
def test_faults_are_counted_and_the_limit_holds_over_all_workers(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case(f"question {n}", f"QUESTION {n}", id=f"c{n}") for n in range(30)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(unreliable) as server:
        run = run_skills(pytester, server, "--skill-concurrency", "5", "-n", workers)
    assert run.outcomes == {"passed": 30}
    assert server.most_in_flight <= 5
    retries = len(server.asked) - 60
    assert retries > 0
    assert f"m: {retries} retr" in run.screen
    assert run.summary["errored"] == 0


def test_a_worker_that_finds_no_controller_says_so(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfigure()
    config.workerinput = {"upskill_link": ("/nowhere/link", "00" * 32)}  # type: ignore[attr-defined]
    asking = Asking(Run(config))
    asking.connect()
    asking.start(Plan((), ()))
    [reply] = asking.ask([Question("m", "", (("user", "q"),), 9, 1)])
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(
        "not asked: can't connect to the controller's engine: "
    )
    del config.workerinput  # type: ignore[attr-defined]
