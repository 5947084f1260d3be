"""Commands that check what an agent left behind."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.sandboxes.sandbox import (
    CommandResult,
    Sandbox,
    SandboxError,
    SandboxKind,
    SandboxSpec,
)
from pytest_upskill.agents.snapshot import Link, Snapshot, pack
from pytest_upskill.agents.task_sandbox import TaskSandbox
from pytest_upskill.checks import (
    command_check,
    grade,
    load_checked_cases,
    parse_checks,
    time_budget,
)
from pytest_upskill.checks.command_check import command_kind, commands_in
from pytest_upskill.checks.final_workspace import Workspace, WorkspaceCommand
from pytest_upskill.checks.grading import ToGrade, records_of
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.errors import CasesError, CheckError
from pytest_upskill.skills.case import Case, SandboxNeeds, WorkspaceFile
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade
from pytest_upskill.trials.trial import Question, Task, Trial
from support.checking import agent_answer, refused
from support.sandboxes import needs_bwrap
from support.trials import MemoryKind

KEPT = Snapshot(
    (
        WorkspaceFile("app.py", b"print('hello')\n"),
        WorkspaceFile("go.sh", b"#!/bin/sh\n", 0o755),
    )
)
LEFT = replace(agent_answer(), workspace=pack(KEPT))


class Runs:
    """Commands that end as a test says."""

    def __init__(self, **results: CommandResult) -> None:
        self.commands = list[WorkspaceCommand]()
        self._results = results

    def __call__(self, pack: bytes, command: WorkspaceCommand) -> CommandResult:
        assert pack
        self.commands.append(command)
        return self._results[command.run]


def graded(expected: Any, run: Runs, answer: Answer = LEFT) -> tuple[Grade, ...]:
    checks = parse_checks({"command": expected}, KINDS, ())
    return grade(checks, answer, workspace=Workspace(answer, run=run))


@pytest.mark.parametrize(
    ("expected", "ran", "good"),
    [
        ("go", CommandResult(0, b""), [True]),
        ("go", CommandResult(1, b""), [False]),
        ("go", CommandResult(-9, b""), [False]),
        ("go", CommandResult(0, b"", timed_out=True), [False]),
        ({"run": "go", "exit": 3}, CommandResult(3, b""), [True]),
        (
            {"run": "go", "contains": ["3 passed", "x"]},
            CommandResult(0, b"3 PASSED"),
            [True, True, False],
        ),
        (
            {"run": "go", "not_contains": "failed"},
            CommandResult(0, b"1 failed"),
            [True, False],
        ),
        (
            {"run": "go", "exit": None, "regex": r"\d+ ok"},
            CommandResult(7, b"2 ok"),
            [True],
        ),
        (
            {"run": "go", "json_path": {"path": "$.n", "equals": 3}},
            CommandResult(0, b'{"n": 3}'),
            [True] * 2,
        ),
        (["go", {"run": "go", "exit": 1}], CommandResult(1, b""), [False, True]),
    ],
)
def test_exit_status_and_output_are_checked(
    expected: Any, ran: CommandResult, good: list[bool]
) -> None:
    assert [one.passed for one in graded(expected, Runs(go=ran))] == good


def test_reasons_say_how_it_ended_and_what_it_said() -> None:
    (only,) = graded(
        "go", Runs(go=CommandResult(1, b"x" * 999 + b"\n\x1b[31mE  2 failed\n"))
    )
    assert only.reason.startswith("go: exit 1, not 0; it said: …xxx")
    assert only.reason.endswith("E 2 failed")
    assert "\x1b" not in only.reason
    (only,) = graded(
        {"run": "go", "timeout": 2}, Runs(go=CommandResult(-9, b"", timed_out=True))
    )
    assert only.reason == "go: no end within 2 s"
    (only,) = graded("go", Runs(go=CommandResult(-11, b"")))
    assert only.reason == "go: signal 11, not 0"
    _, told = graded({"run": "go", "contains": "ok"}, Runs(go=CommandResult(0, b"no")))
    assert told.reason == 'go: "ok" is not in its output'


def test_a_command_runs_once_for_a_trial() -> None:
    run = Runs(go=CommandResult(0, b"ok"))
    both = [{"command": "go"}, {"command": {"run": "go", "contains": "ok"}}]
    checks = parse_checks(
        [{"command": "go"}, {"any_of": both}, {"not": both[0]}], KINDS, ()
    )
    grade(checks, LEFT, workspace=Workspace(LEFT, run=run))
    assert len(run.commands) == 1


@pytest.mark.parametrize("stop", ["max_turns", "time", "refusal"])
def test_nothing_runs_after_an_agent_that_failed(stop: str) -> None:
    run = Runs()
    grades = graded(
        {"run": "go", "contains": ["a", "b"]}, run, replace(LEFT, stop=stop)
    )
    assert len(grades) == 3
    assert not any(one.passed for one in grades)
    assert not run.commands
    assert not any(
        one.passed for one in graded("go", run, Answer("a plain completion"))
    )


def test_time_of_commands_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    for clock in ("thread_time", "monotonic"):
        monkeypatch.setattr(time_budget, clock, lambda: now)

    def slow(_: bytes, __: WorkspaceCommand) -> CommandResult:
        nonlocal now
        now += 3600
        return CommandResult(0, b"")

    checks = parse_checks(
        {"command": "go", "contains": "done", "regex": "d"}, KINDS, ()
    )
    grades = grade(checks, LEFT, workspace=Workspace(LEFT, run=slow))
    assert all(one.passed for one in grades)


def test_a_workspace_that_was_not_kept_is_an_error_that_says_so() -> None:
    with pytest.raises(CheckError, match="too large"):
        graded("go", Runs(), agent_answer())


def test_without_a_sandbox_it_is_an_error() -> None:
    checks = parse_checks({"command": "go"}, KINDS, ())
    with pytest.raises(CheckError, match="sandbox"):
        grade(checks, LEFT, workspace=Workspace(LEFT))


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("", "must not be empty"),
        ([], "must not be empty"),
        (3, "must be an object"),
        ({"exit": 1}, "run: missing"),
        ({"run": "go", "exit": None}, "every answer would pass"),
        ({"run": "go", "timeout": 0}, "timeout: must be above 0"),
        ({"run": "go", "contians": "x"}, 'did you mean "contains"?'),
        ({"run": "go", "hidden_files": {"../x": "y"}}, "without .."),
        (
            {"run": "go", "hidden_files": {"x": 3}},
            'must be a string or an object with "file"',
        ),
    ],
)
def test_mistakes_are_told(expected: Any, message: str) -> None:
    assert message in refused({"command": expected})


def test_hidden_files_come_from_the_case_or_the_skill(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/run.sh").write_text("echo")
    (tmp_path / "evals/run.sh").chmod(0o755)
    hidden = {"a/t.py": "x = 1", "run.sh": {"file": "evals/run.sh"}}
    written = {"run": "go", "hidden_files": hidden}
    (check,) = parse_checks(
        {"command": written}, {"command": command_kind(tmp_path)}, ()
    )
    (asked,) = check.argument  # type: ignore[union-attr]
    assert asked.command.hidden == (
        WorkspaceFile("a/t.py", b"x = 1"),
        WorkspaceFile("run.sh", b"echo", 0o755),
    )
    file = tmp_path / "skill_meta.json"
    written["hidden_files"] = {"a": {"file": "evals/gone"}}
    file.write_text(json.dumps([{"input": "q", "expected": {"command": written}}]))
    with pytest.raises(CasesError, match="'evals/gone' not found"):
        load_checked_cases(file, folder=tmp_path).require_all()


class BrokenKind(MemoryKind):
    async def open(self, room: SandboxSpec) -> Sandbox:  # noqa: ARG002
        raise SandboxError("no more memory")


def use(monkeypatch: pytest.MonkeyPatch, kind: SandboxKind) -> None:
    monkeypatch.setattr(command_check, "sandbox_of", lambda *_: TaskSandbox(kind))


def record(expected: Any, answer: Answer = LEFT, **task: Any) -> Any:
    question = Question("m", "", (("user", "q"),), 10, 1, task=Task("loop", **task))
    trial = Trial("s", "c", "m", "skill", 1, question)
    checks = parse_checks(expected, KINDS, ())
    (only,) = records_of([ToGrade(trial, Case("c", "q"), checks)], lambda _: [answer])
    return only


def test_a_broken_sandbox_is_an_error_not_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, BrokenKind())
    made = record({"command": "go"})
    assert (made.outcome, made.error) == (
        "errored",
        "the command can't be run: no more memory",
    )


def test_a_workspace_that_can_not_be_unpacked_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, MemoryKind())
    made = record(
        {"command": "go", "files": "app.py"}, replace(LEFT, workspace=b"no workspace")
    )
    assert made.outcome == "errored"
    assert (made.error or "").startswith("the command can't be run: not a workspace")


def test_it_runs_in_a_copy_with_what_the_skill_needs_and_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def end(_: str) -> CommandResult:
        return CommandResult(0, b"")

    (tmp_path / "tool").write_text("x")
    kind = MemoryKind(end)
    use(monkeypatch, kind)
    needs = SandboxNeeds(paths=(str(tmp_path / "tool"),), network=True)
    hidden = {"run": "go", "hidden_files": {"app.py": "print('mine')"}}
    assert record({"command": hidden}, needs=needs).outcome == "passed"
    ((room, sandbox),) = kind.opened
    assert not room.network
    assert [mount.host for mount in room.mounts] == [str(tmp_path / "tool")]
    assert sandbox.files["/workspace/app.py"] == b"print('mine')"
    assert [command.split("\n")[-1] for command in sandbox.commands] == ["go"]
    assert kind.closed == 1


def test_files_made_by_a_setup_are_in_the_workspace_too() -> None:
    expected = {"files": {"app.py": {"contains": "hello"}}, "unchanged": "app.py"}
    assert record(expected, setup="make").outcome == "passed"


def test_a_change_that_the_list_of_files_has_no_room_for_is_found() -> None:
    start = (WorkspaceFile("app.py", b"old"), WorkspaceFile("gone.py", b"x"))
    made = record({"unchanged": ["app.py", "gone.py"]}, files=start)
    assert [one.reason for one in made.checks] == [
        "app.py: changed",
        "gone.py: deleted",
    ]


def run_now(command: str, kept: Snapshot = KEPT, **hidden: str) -> CommandResult:
    files = tuple(WorkspaceFile(path, text.encode()) for path, text in hidden.items())
    run = commands_in("bwrap", "", SandboxNeeds())
    return run(pack(kept), WorkspaceCommand(command, 300, files))


@needs_bwrap
def test_a_command_sees_the_workspace_and_the_hidden_files() -> None:
    ran = run_now("python3 app.py && cat secret && ls -l go.sh", secret="said\n")
    assert ran.exit == 0
    assert ran.output.startswith(b"hello\nsaid\n-rwx")


@needs_bwrap
def test_what_the_agent_left_in_place_of_a_hidden_file_is_removed() -> None:
    links = (Link("test.py", "app.py"), Link("tests", "/etc"))
    files = (*KEPT.files, WorkspaceFile("dir/test.py/x", b"in the way"))
    hidden = {
        "test.py": "print('mine')",
        "tests/a.py": "2",
        "dir/test.py": "3",
        "go.sh/x": "4",
    }
    command = "python3 test.py; python3 app.py; cat tests/a.py dir/test.py go.sh/x"
    ran = run_now(command, Snapshot(files, links), **hidden)
    assert ran.output == b"mine\nhello\n234"


@needs_bwrap
@pytest.mark.parametrize("workdir", ["/root", "/srv/a"])
def test_a_command_runs_in_the_workdir_of_its_task(workdir: str) -> None:
    start = [WorkspaceFile("in.txt", b"in"), WorkspaceFile("/data/x", b"x")]
    needs = SandboxNeeds(workdir=workdir, places=("/data",), env=(("MODE", "test"),))
    run = commands_in("bwrap", "", needs, start)
    left = Snapshot((WorkspaceFile("app.py", b""), WorkspaceFile("/data/tool.py", b"")))
    packed = pack(left, ["in.txt", "/data/x"])

    def ran(command: str) -> CommandResult:
        hidden = (WorkspaceFile("check.py", b"import sys; __import__(sys.argv[1])"),)
        return run(packed, WorkspaceCommand(command, 300, hidden))

    shown = ran("pwd; echo $MODE; cat in.txt /data/x; python3 -c 'import json'")
    assert shown.output == f"{workdir}\ntest\ninx".encode()
    assert shown.exit == 0
    assert ran("python3 check.py app").exit == 0
    assert ran("PYTHONPATH=/data python3 check.py tool").exit == 0
    assert ran("python3 check.py tool").exit == 1


@needs_bwrap
def test_two_commands_do_not_see_each_other() -> None:
    assert run_now("echo x > left; ls").output.split() == [b"app.py", b"go.sh", b"left"]
    assert run_now("ls").output.split() == [b"app.py", b"go.sh"]


@needs_bwrap
def test_there_is_no_skill_and_no_network() -> None:
    ran = run_now("ls /skills; cat /proc/net/dev | wc -l; id -u; exit 3")
    assert ran.exit == 3
    assert b"SKILL.md" not in ran.output
    script = "import socket; socket.create_connection(('1.1.1.1', 53), 3)"
    assert run_now(f'python3 -c "{script}"').exit != 0


@needs_bwrap
def test_it_also_runs_where_a_loop_is_running() -> None:
    async def inside() -> CommandResult:
        return run_now("echo hi")

    assert asyncio.run(inside()).output == b"hi\n"


@needs_bwrap
def test_it_ends_when_its_time_is_over() -> None:
    run = commands_in("bwrap", "", SandboxNeeds())
    assert run(pack(KEPT), WorkspaceCommand("sleep 60", 0.3)).timed_out
