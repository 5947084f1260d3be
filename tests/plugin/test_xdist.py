"""xdist: the same results, one engine, nothing lost."""

import json
import os
import re

import pytest

from pytest_upskill.plugin.asking import Asking
from pytest_upskill.trials.answer import NoAnswer
from pytest_upskill.trials.plan import Plan
from pytest_upskill.trials.trial import Question
from support.kit import case, ending, gates, write_script, write_skill
from support.loopback import LoopbackServer, Reply, unreliable


def report_of(pytester: pytest.Pytester) -> dict[str, object]:
    data: dict[str, object] = json.loads((pytester.path / "r.json").read_text())
    for name in ("started", "seconds"):
        del data[name]
    records = data["records"]
    assert isinstance(records, list)
    for record in records:
        del record["seconds"]
    return data


def table_of(result: pytest.RunResult) -> list[str]:
    """The lines of the table, without the seconds."""
    start = next(n for n, line in enumerate(result.outlines) if "= skills =" in line)
    end = next(n for n, line in enumerate(result.outlines) if "= short test" in line)
    return [re.sub(r"\d\.\d→\d\.\d", "", line) for line in result.outlines[start:end] if line]


def test_workers_change_nothing_in_the_results(pytester: pytest.Pytester) -> None:
    cases = [case(f"gate {n}?", "gate up" if n % 3 else "never", id=f"c{n}") for n in range(7)]
    write_skill(pytester.path / "skills/gate", cases)
    write_skill(pytester.path / "skills/door")
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "--skill-runs", "2", "--skill-json", "r.json"]
    alone = pytester.runpytest_inprocess(*args)
    alone_report = report_of(pytester)
    together = pytester.runpytest_inprocess(*args, "-n", "2")
    assert together.parseoutcomes()["failed"] == alone.parseoutcomes()["failed"] == 3
    assert report_of(pytester) == alone_report
    assert table_of(together) == table_of(alone)


def test_workers_together_hold_the_limit_and_import_no_sdk(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(16)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(
        """
        import sys
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            if hasattr(session.config, "workerinput"):
                heavy = ("anthropic", "openai", "httpx2", "genai_prices")
                loaded = [name for name in heavy if name in sys.modules]
                name = session.config.workerinput["workerid"]
                (session.config.rootpath / f"{name}.txt").write_text(" ".join(loaded))
        """
    )
    with LoopbackServer(lambda _: Reply("yes", delay=0.05)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess(*args, "-n", "2", "--skill-concurrency", "3")
    result.assert_outcomes(passed=16)
    assert server.most_in_flight == 3
    assert len(server.asked) == 32
    assert [(pytester.path / f"gw{n}.txt").read_text() for n in (0, 1)] == ["", ""]


def test_a_killed_worker_takes_no_finished_record_with_it(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(
        """
        import os
        import signal

        def pytest_runtest_call(item):
            if item.name.startswith("c5["):
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    args = ["--skill", "skills", "--model", "scripted:a.json", "--skill-json", "r.json"]
    result = pytester.runpytest_inprocess(*args, "-n", "2")
    assert result.parseoutcomes() == {"passed": 7, "failed": 1}
    data = json.loads((pytester.path / "r.json").read_text())
    outcomes = {(record["case"], record["outcome"]) for record in data["records"]}
    assert outcomes == {(f"c{n}", "errored" if n == 5 else "passed") for n in range(8)}
    assert data["summary"][0]["errored"] == 2
    assert "crashed" in next(r["error"] for r in data["records"] if r["case"] == "c5")


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
            ["-n", "1"],
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
    args += ["--skill", "skills", "--model", "scripted:a.json", "--max-worker-restart", "0"]
    result = pytester.runpytest_inprocess(*args, "--skill-min-pass-rate", "0.1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    if lost:
        assert re.match(f"✘ {lost} of 8 tests collected but never reported, ", ending(result)[0])
    assert "can't pass" in gates(result)[-1]


def test_groups_of_xdist_change_node_ids_and_nothing_else(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(3)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(
        """
        import pytest
        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.xdist_group("first"))
        """
    )
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    args = ["--skill", "skills", "--model", "scripted:a.json", "-n", "1", "--dist", "loadgroup"]
    result = pytester.runpytest_inprocess(*args, "--skill-min-pass-rate", "0.9")
    result.assert_outcomes(passed=3)
    assert result.ret == 0


def test_stopping_at_the_first_failure_stops_the_asking_too(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "never", id=f"c{n}") for n in range(40)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("no", delay=0.05)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess(*args, "-n", "2", "-x", "--skill-concurrency", "2")
    assert result.parseoutcomes()["failed"] >= 1
    assert len(server.asked) < 80


def test_the_key_of_the_link_is_on_no_command_line_and_in_no_environment(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(
        """
        import os
        from pathlib import Path

        def pytest_sessionstart(session):
            given = getattr(session.config, "workerinput", {}).get("upskill_link")
            if given:
                seen = Path("/proc/self/cmdline").read_text() + str(dict(os.environ))
                assert len(given[1]) == 64 and given[1] not in seen
                (session.config.rootpath / "looked.txt").write_text("yes")
        """
    )
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "-n", "1"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    if os.path.exists("/proc/self/cmdline"):  # noqa: PTH110
        assert (pytester.path / "looked.txt").read_text() == "yes"


@pytest.mark.parametrize("workers", ["0", "4"])
def test_faults_are_counted_and_the_limit_holds_over_all_workers(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case(f"question {n}", f"QUESTION {n}", id=f"c{n}") for n in range(30)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(unreliable) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        args += ["--skill-concurrency", "5", "-n", workers, "--skill-json", "r.json"]
        result = pytester.runpytest_inprocess(*args)
    result.assert_outcomes(passed=30)
    assert server.most_in_flight <= 5
    again = len(server.asked) - 60
    assert again > 0
    result.stdout.fnmatch_lines([f"m: {again} retr* after rate limits or errors."])
    [summary] = json.loads((pytester.path / "r.json").read_text())["summary"]
    assert summary["errored"] == 0


def test_a_worker_that_finds_no_controller_says_so(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfigure()
    config.workerinput = {"upskill_link": ("/nowhere/link", "00" * 32)}  # type: ignore[attr-defined]
    asking = Asking(config, None, lambda _: None)
    asking.connect()
    asking.start(Plan((), ()), nothing_else_runs=False)
    [reply] = asking.ask([Question("m", "", (("user", "q"),), 9, 1)])
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith("not asked: can't connect to the controller's engine: ")
    del config.workerinput  # type: ignore[attr-defined]
