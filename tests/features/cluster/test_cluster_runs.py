"""--skill-cluster: trials of agents on a Dask cluster, with the same results as
here.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.agents import BODY, CODES, SCRIPT, write_files
from support.clouds import AWS_SECRET, BEDROCK, SESSION, log_in, log_out
from support.dask_processes import DaskProcesses, dask_processes, path_without
from support.fake_cli import fake_cli
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.sandboxes import needs_bwrap

pytestmark = [pytest.mark.nightly, needs_bwrap]

CASE = {"input": "open it", "expected": {"contains": ["is open"]}}
KEY = "sk-of-the-workers-0123456789"

# As a model: opens the gate with the skill; the first time it is asked for the case
# "lose", it kills the process that asks, which is a worker.
MODEL = """
import contextlib, json, os, pathlib
from pytest_upskill import Answer, ToolCall, Usage
once = pathlib.Path({once!r})

def answer(question):
    told = [result.text for step in question.steps for result in step.results]
    if len(told) == 1 and "lose" in question.messages[0][1]:
        with contextlib.suppress(FileExistsError):
            once.touch(exist_ok=False)
            os.kill(os.getpid(), 9)
    if not any(tool.name == "skill" for tool in question.tools):
        calls = [("read", {{"path": "notes.txt"}})]
    else:
        script = "./scripts/open.sh Walrus-4711"
        command = f"cd /skills/gate && {{script}} > /workspace/gate.txt"
        calls = [("skill", {{"name": "gate"}}), ("bash", {{"command": command}})]
    if len(told) < len(calls):
        tool, arguments = calls[len(told)]
        call = ToolCall(f"c{{len(told)}}", tool, json.dumps(arguments))
        return Answer("", Usage(100, 10, 0), "tools", calls=(call,))
    text = "The gate is open." if len(calls) > 1 else "No idea."
    return Answer(text, Usage(100, 10, 0))
"""


def write_gate(folder: Path, *questions: str, setup: str = "true") -> None:
    expected = {
        "contains": ["is open"],
        "files": {"gate.txt": {"contains": "said the motor to Walrus-4711"}},
        "scripts_run": ["scripts/open.sh"],
        "unchanged": ["notes.txt"],
    }
    cases = [
        {
            "id": question.split()[0],
            "input": question,
            "context": {"files": {"notes.txt": "The keeper is out."}},
            "setup": setup,
            "expected": expected,
        }
        for question in questions
    ]
    write_skill(folder, cases, body=BODY)
    write_files(folder, {"references/codes.md": CODES, "scripts/open.sh": SCRIPT})
    (folder / "scripts/open.sh").chmod(0o755)


def scripted(folder: Path) -> str:
    (folder / "model.py").write_text(
        MODEL.format(once=str(folder / "lost")), encoding="utf-8"
    )
    return "scripted:model.py:answer"


def records(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    """All of them, without what differs from run to run."""
    data = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))[
        "records"
    ]
    for record in data:
        del record["seconds"], record["asked_at"]
        for turn in record.get("transcript", ()):
            turn.pop("seconds", None)
    return sorted(data, key=lambda one: (one["case"], one["arm"], one["run"]))


def run(
    pytester: pytest.Pytester, model: str, *args: str, agent: str = "loop"
) -> pytest.RunResult:
    options = ["--skill", "skills", "--skill-agent", agent, "--model", model]
    options += ["--skill-json", "out.json", "-p", "no:cacheprovider", *args]
    result = pytester.runpytest_subprocess(*options)
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "distributed" not in shown  # Dask's own log
    return result


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Two workers that have all, and one without a sandbox;
    a fake Claude Code on one of them.
    """
    folder = tmp_path_factory.mktemp("dask")
    programs = fake_cli(folder / "programs")
    path = os.environ["PATH"]
    with dask_processes(folder) as processes:
        keys = {"OPENAI_API_KEY": KEY, "AWS_REGION": "eu-west-1"}
        processes.add("anna", {"PATH": f"{programs}{os.pathsep}{path}", **keys})
        processes.add("berta", keys)
        processes.add("carla", {"PATH": path_without("bwrap", folder / "path"), **keys})
        yield processes


def test_a_lost_worker_and_the_same_results_as_on_one_machine(
    pytester: pytest.Pytester,
) -> None:
    write_gate(pytester.path / "skills/gate", "open it", "lose it", "close it")
    model = scripted(pytester.path)
    (pytester.path / "lost").touch()  # nobody is killed here
    run(pytester, model).assert_outcomes(passed=3)
    here = records(pytester)
    (pytester.path / "lost").unlink()
    result = run(pytester, model, "--skill-cluster", "local:3")
    result.assert_outcomes(passed=3)
    assert (pytester.path / "lost").exists()
    assert records(pytester) == here
    result.stdout.fnmatch_lines(
        [
            "upskill: carried out by loop 1",
            "upskill: cluster local:3: 3 workers, * trials at once, sandbox: bwrap",
        ]
    )


def keeper(asked: Asked) -> Reply:
    """Opens the gate by a command, if it is told of the skill."""
    by_loop = "<name>gate</name>" in asked.system
    if "gate/SKILL.md" not in asked.system and not by_loop:
        return Reply("No idea.")
    folder = "/skills" if by_loop else "~/.claude/skills"
    script = f"sh {folder}/gate/scripts/open.sh Walrus-4711"
    command = f"cat {folder}/gate/SKILL.md; ({script}; cat notes.txt) > gate.txt"
    if not asked.results:
        return Reply(calls=(("bash", {"command": command}),), delay=0.1)
    return Reply("The gate is open.", delay=0.1)


def test_workers_without_a_sandbox_or_the_agent_get_no_trials(
    pytester: pytest.Pytester, dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, claude is not installed, and there is no key."""
    write_gate(pytester.path / "skills/gate", "open it", "close it")
    with LoopbackServer(keeper) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        args = ("--skill-cluster", dask.address, "--skill-concurrency", "1")
        refused = run(pytester, "haiku", *args, agent="claude")
        assert refused.ret == 4
        no_key = "haiku: ANTHROPIC_API_KEY is not set"
        refused.stderr.fnmatch_lines(
            [f"*no worker fits: anna: {no_key}; berta: {no_key}; claude: *"]
        )
        monkeypatch.setenv("ANTHROPIC_API_KEY", key := "sk-ant-1234567890abcdefghij")
        result = run(
            pytester, "haiku", *args, "-o", "skill_cluster_keys=true", agent="claude"
        )
        result.assert_outcomes(passed=2)
        assert all(key in str(asked.headers) for asked in server.asked)
        asked = len(server.asked)
        again = run(
            pytester, "haiku", *args, "-o", "skill_cluster_keys=true", agent="claude"
        )
        again.assert_outcomes(passed=2)
        assert len(server.asked) == asked
    result.stdout.fnmatch_lines(
        [
            "upskill: carried out by claude 2.1.0",
            (
                f"upskill: cluster {dask.address}: 1 worker, 1 trial at once, sandbox:"
                " bwrap"
            ),
            "upskill: no trials for worker berta: claude: claude is not installed*",
            "upskill: no trials for worker carla: no sandbox: *bwrap*",
        ]
    )
    assert {record["outcome"] for record in records(pytester)} == {"passed", "failed"}
    assert (
        key
        not in dask.logs()
        + result.stdout.str()
        + (pytester.path / "out.json").read_text()
    )
    assert not dask.left()


def test_a_cloud_is_asked_in_the_region_of_the_controller(
    pytester: pytest.Pytester, dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gate(pytester.path / "skills/gate", "open it")
    log_out(monkeypatch, pytester.path)
    with LoopbackServer(keeper) as server:
        log_in(monkeypatch, BEDROCK, server.url, pytester.path)
        args = ("--skill-cluster", dask.address, "-o", "skill_cluster_keys=true")
        result = run(pytester, BEDROCK, *args)
        result.assert_outcomes(passed=1)
        signed = [asked.headers["authorization"] for asked in server.asked]
    assert signed
    assert all("/us-east-1/bedrock/" in one for one in signed)
    shown = dask.logs() + result.stdout.str() + (pytester.path / "out.json").read_text()
    assert AWS_SECRET not in shown
    assert SESSION not in shown


def test_calls_of_all_workers_share_one_limit(
    pytester: pytest.Pytester,
    dask: DaskProcesses,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
) -> None:
    """They use keys of their own. A setup runs once for all of them."""
    write_gate(pytester.path / "skills/gate", "open it", setup="date +%N > notes.txt")
    with LoopbackServer(keeper) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        args = ["--skill-cluster", dask.address, "-n", workers]
        args += ["--skill-runs", "4", "--skill-concurrency", "2"]
        result = run(pytester, "openai:m", *args)
    assert all(KEY in str(asked.headers) for asked in server.asked)
    assert KEY not in (pytester.path / "out.json").read_text() + dask.logs()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["upskill: cluster *: 2 workers, 2 trials at once, sandbox: bwrap"]
    )
    assert server.most_in_flight <= 2
    made = [
        one["files"][0]["text"] for one in records(pytester) if one["arm"] == "skill"
    ]
    assert (len(made), len(set(made))) == (4, 1)


def test_a_budget_is_kept_over_all_workers(
    pytester: pytest.Pytester, dask: DaskProcesses
) -> None:
    write_gate(pytester.path / "skills/gate", *(f"{word} it" for word in "abcdef"))
    with LoopbackServer(keeper) as server:
        args = ("--skill-base-url", f"{server.url}/v1", "--skill-cluster", dask.address)
        most = ("--skill-max-tokens", "700", "--skill-max-output", "50")
        result = run(pytester, "m", *args, *most)
    data = records(pytester)
    spent = sum(
        one["input_tokens"] + one["output_tokens"] for one in data if not one["error"]
    )
    assert 0 < spent <= 700
    errors = {one["error"] for one in data if one["error"]}
    assert errors
    assert all("budget" in error and "of 700 tokens" in error for error in errors)
    assert result.ret == 1


def test_the_only_worker_that_fits_is_lost_and_another_joins(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trials wait for the new one."""
    write_skill(pytester.path / "skills/gate", [CASE])
    path = f"{fake_cli(tmp_path / 'programs')}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1234567890abcdefghij")
    joining = list[Thread]()
    with dask_processes(tmp_path / "dask") as dask:
        dask.add("anna", {"PATH": path})
        dask.add("berta")

        def lose_anna(asked: Asked) -> Reply:
            # The agent has one, loop has more
            if len(asked.body["tools"]) == 1 and not joining:
                dask.workers["anna"].kill()
                joining.append(Thread(target=dask.add, args=("emil", {"PATH": path})))
                joining[0].start()
            return Reply("The gate is open.", delay=0.5)

        with LoopbackServer(lose_anna) as server:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            args = ("--skill-cluster", dask.address, "--skill-agent", "claude")
            result = run(pytester, "haiku", *args)
        joining[0].join()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["upskill: no trials for worker berta: claude: claude is not installed*"]
    )


def test_the_scheduler_is_lost(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """Trials end without an answer, and soon."""
    write_skill(pytester.path / "skills/gate", [CASE])
    with dask_processes(tmp_path / "dask") as dask:
        dask.add("anna")

        def lose_scheduler(_: Asked) -> Reply:
            dask.scheduler.kill()
            return Reply("The gate is open.", delay=0.5)

        with LoopbackServer(lose_scheduler) as server:
            args = (
                "--skill-cluster",
                dask.address,
                "--skill-base-url",
                f"{server.url}/v1",
            )
            result = run(pytester, "m", *args)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*loop: the connection to {dask.address} was lost*"])
