"""--skill-fresh and stored answers: nothing is asked twice, with and without xdist."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from random import randbytes

import pytest

from support.full_disk import fill_disk
from support.kit import case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import run_skills
from support.shell import started
from support.waiting import wait_until


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(
        lambda _: Reply("gate up", input_tokens=10, output_tokens=5)
    ) as server:
        yield server


def asked_since(server: LoopbackServer, before: int) -> list[tuple[str, str]]:
    """Questions since, and whether the skill was in context."""
    return sorted(
        (asked.question, "skill" if "Follow the skill" in asked.system else "baseline")
        for asked in server.asked[before:]
    )


def test_an_unchanged_skill_is_not_asked_again(
    pytester: pytest.Pytester, server: LoopbackServer, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    run_skills(pytester, server, "-n", workers)
    run = run_skills(pytester, server, "-n", workers)
    assert len(server.asked) == 2
    assert run.outcomes == {"passed": 1}
    assert "2 of 2 answers from cache (saved 30 tokens); " in run.screen
    assert [record["stored"] for record in run.records] == [True, True]
    assert (pytester.path / ".upskill/answers.sqlite").is_file()
    pytester.makeini("[pytest]\nskill_prices = m 1000 2000")
    assert "(saved $0.04); " in run_skills(pytester, server).screen


def test_only_what_is_new_is_asked(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    one, two = case("One?", "gate", id="one"), case("Two?", "gate", id="two")
    write_skill(pytester.path / "skills/gate", [one])
    run_skills(pytester, server)
    write_skill(pytester.path / "skills/gate", [one], body="An edited text.")
    run_skills(pytester, server)
    assert asked_since(server, 2) == [("One?", "skill")]
    write_skill(pytester.path / "skills/gate", [two, one], body="An edited text.")
    run_skills(pytester, server)
    assert asked_since(server, 3) == [("Two?", "baseline"), ("Two?", "skill")]
    run_skills(pytester, server, "--skill-runs", "2")
    assert len(server.asked) == 5 + 4
    run_skills(pytester, server, "--skill-max-output", "99", "-k", "one")
    assert len(server.asked) == 9 + 2


def test_question_late_in_two_runs_fails_its_arm(pytester: pytest.Pytester) -> None:
    def reply(asked: Asked) -> Reply | Fault:
        is_late = asked.question == "Two?" and "Follow the skill" in asked.system
        return Fault("hang") if is_late else Reply("gate up")

    cases = [case("One?", "gate", id="one"), case("Two?", "gate", id="two")]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(reply) as server:
        first = run_skills(pytester, server, "--skill-timeout", "1")
        second = run_skills(pytester, server, "--skill-timeout", "1")
        third = run_skills(pytester, server, "--skill-timeout", "1")
        assert len(server.asked) == 5

    assert first.outcomes == {"passed": 1, "errors": 1}
    assert "late again has failed" in first.ending[-2]
    assert second.outcomes == third.outcomes == {"passed": 1, "failed": 1}
    record = third.record(case="two", arm="skill")
    [grade] = record["checks"]
    assert grade["reason"] == "no answer within 1 s, in two runs"
    assert third.record(case="two", arm="baseline")["outcome"] == "passed"


def test_fresh_asks_again_and_replaces(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda asked: Reply(f"gate up {asked.attempt}")) as server:
        run_skills(pytester, server)
        run_skills(pytester, server, "--skill-fresh")
        assert len(server.asked) == 4
        run = run_skills(pytester, server)
        assert len(server.asked) == 4
    assert {record["output"] for record in run.records} == {"gate up 2"}


def test_errors_and_scripted_answers_are_not_stored(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Fault("status", 400, message="no")) as server:
        assert run_skills(pytester, server).outcomes == {"errors": 1}
        assert run_skills(pytester, server).outcomes == {"errors": 1}
    assert len(server.asked) == 4
    model = write_script(pytester.path / "a.json", knows="no")
    assert run_skills(pytester, model).outcomes == {"failed": 1}
    write_script(pytester.path / "a.json")
    assert run_skills(pytester, model).outcomes == {"passed": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_after_a_kill_exactly_the_rest_is_asked(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]
    write_skill(pytester.path / "skills/gate", cases)
    answered: list[str] = []
    killed = threading.Event()

    def script(asked: Asked) -> Reply | Fault:
        if len(answered) >= 7 and not killed.is_set():
            return Fault("hang")
        answered.append(asked.question)
        return Reply("yes")

    with LoopbackServer(script) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        command = [sys.executable, "-m", "pytest", *args, "--skill-concurrency", "2"]
        command += ["-n", workers]
        with started(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as first:
            wait_until(lambda: len(server.asked) >= 9)
            first.kill()
        killed.set()
        before = len(server.asked)
        run = run_skills(pytester, server, "-n", workers)
    assert run.outcomes == {"passed": 10}
    assert len(server.asked) - before == 20 - 7
    assert sum(record["stored"] for record in run.records) == 7


def test_a_run_whose_answers_are_not_kept_never_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    fill_disk(monkeypatch)
    with LoopbackServer(
        lambda _: Reply(f"yes {randbytes(12_000).hex()}"), together=12
    ) as server:
        # All are in flight before one can't be kept.
        run = run_skills(pytester, server, "--skill-concurrency", "12")
        assert (run.status, run.outcomes) == (1, {"passed": 6})
        assert run.summary["skill_rate"] == 1.0
        assert "answers could not be stored: " in run.screen
        kept = 12 - int(run.screen.partition("✘ ")[2].partition(" answers could")[0])
        run = run_skills(pytester, server, "--skill-concurrency", "1")
        assert run.status == 1
        assert run.outcomes["errors"] >= 3
        assert len(server.asked) == 12 + 1
        assert sum(record["stored"] for record in run.records) == kept
        run = run_skills(pytester, server, "--skill-fresh")
        assert (run.status, len(server.asked)) == (0, 13 + 12)


def test_a_broken_store_is_reported_and_the_run_goes_on(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / ".upskill").mkdir()
    (pytester.path / ".upskill/answers.sqlite").write_text("no database " * 200)
    run = run_skills(pytester, server)
    assert run.outcomes == {"passed": 1}
    assert "! stored answers set aside as " in run.screen
    (pytester.path / ".upskill/answers.sqlite").write_text("no database " * 200)
    assert (
        "! stored answers set aside as "
        in run_skills(pytester, server, "--no-summary").screen
    )
