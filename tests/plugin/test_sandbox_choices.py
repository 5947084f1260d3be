"""Which sandbox each task gets: what --collect-only shows, and what is skipped."""

import json
from pathlib import Path

import pytest

from pytest_upskill.agents.task_sandbox import SandboxChoice
from pytest_upskill.reports.terminal.sandbox_table import sandbox_counts, sandbox_table
from support.runs import run_skills
from support.sandboxes import needs_docker

CASES = [
    {
        "id": "tool",
        "input": "Sum.",
        "sandbox": {"dockerfile": "tool/Dockerfile"},
        "expected": {"contains": "3"},
        "reference": "3",
    },
    {"id": "plain", "input": "Sum.", "expected": {"contains": "3"}, "reference": "3"},
]
ORACLE = ("--skill-agent", "oracle")


@pytest.fixture
def tasks(pytester: pytest.Pytester) -> Path:
    """A skill with a case for an image, and one for any sandbox."""
    skill = pytester.mkdir("sums")
    (skill / "SKILL.md").write_text("---\nname: sums\ndescription: Adds.\n---\nAdd.\n")
    (skill / "skill_meta.json").write_text(json.dumps({"cases": CASES}))
    (skill / "tool").mkdir()
    (skill / "tool" / "Dockerfile").write_text("FROM ubuntu:24.04\nRUN make\n")
    return skill


def collect(pytester: pytest.Pytester, skill: Path, *options: str) -> pytest.RunResult:
    agent = ("--skill-agent", "loop", "--model", "haiku", "--collect-only")
    return pytester.runpytest_inprocess("--skill", str(skill), *agent, *options)


@pytest.mark.usefixtures("no_docker")
def test_without_docker_and_podman_tasks_with_an_image_are_skipped(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    result = collect(pytester, tasks)
    result.stdout.fnmatch_lines(
        [
            "upskill: 1 of 2 tests would be skipped",
            "upskill: 1 task: 1 can't run",
            "task * sandbox * why",
            "tool * can't run * needs docker or podman: *",
        ]
    )
    run = run_skills(pytester, "haiku", "--skill-allow-code", *ORACLE, skill=str(tasks))
    assert (run.status, run.outcomes) == (0, {"passed": 1, "skipped": 1})


@pytest.mark.usefixtures("no_docker")
@pytest.mark.parametrize("agent", ["oracle", "loop"])
def test_a_run_without_any_task_that_can_run_says_that_nothing_was_tested(
    pytester: pytest.Pytester, tasks: Path, agent: str
) -> None:
    (tasks / "skill_meta.json").write_text(json.dumps({"cases": CASES[:1]}))
    model = pytester.makepyfile(model="def answer(question): ...")
    args = ("--skill-allow-code", "--skill-agent", agent)
    run = run_skills(pytester, f"scripted:{model}:answer", *args, skill=str(tasks))
    assert (run.status, run.outcomes) == (0, {"skipped": 1})
    [line] = run.ending
    assert line.startswith("! nothing was tested of sums: all cases are skipped: ")
    assert "install podman" in line
    assert "install podman" in run.report["untested"]["sums"]


@needs_docker
def test_an_image_is_used_if_there_is_a_program(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    result = collect(pytester, tasks)
    result.stdout.fnmatch_lines(["upskill: 1 task: 1 in an image (docker)"])
    result.stdout.no_fnmatch_line("*would be skipped*")
    result = collect(pytester, tasks, "--skill-sandbox", "bwrap")
    result.stdout.fnmatch_lines(["tool * can't run * the sandbox is bwrap"])


def test_the_counts_end_with_what_can_not_run() -> None:
    places = {
        "a": SandboxChoice("", reason="compose"),
        "b": SandboxChoice("bwrap"),
        "c": SandboxChoice("podman", "tool:1"),
        "d": SandboxChoice("bwrap"),
    }
    expected = "4 tasks: 2 in bwrap, 1 in an image (podman), 1 can't run"
    assert sandbox_counts(places) == expected
    assert [line.split()[:2] for line in sandbox_table(places)[2:]] == [
        ["a", "can't"],
        ["b", "bwrap"],
        ["c", "podman"],
        ["d", "bwrap"],
    ]


def test_a_skill_that_builds_an_image_has_to_be_trusted(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    model = pytester.makepyfile(model="def answer(question): ...")
    agent = ("--skill-agent", "loop", "--model", f"scripted:{model}:answer")
    result = pytester.runpytest_inprocess("--skill", str(tasks), *agent)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--skill-allow-code: sums needs an image, and building one *"]
    )


@pytest.mark.parametrize(
    ("case", "asked"),
    [
        ({"sandbox": {"memory_mb": 8192}}, "8,192 MB of memory, not 4,096"),
        ({"sandbox": {"storage_mb": 2048}}, "2,048 MB of files, not 1,024"),
        ({"timeout": 7200}, "7200 s for a trial, not 600"),
    ],
)
def test_a_case_may_not_raise_its_own_limits(
    pytester: pytest.Pytester, tasks: Path, case: dict[str, object], asked: str
) -> None:
    usual = {"sandbox": {"memory_mb": 4096, "cpus": 64}, "timeout": 600}
    cases = [{**CASES[1], **usual}, {**CASES[1], "id": "greedy", **case}]
    (tasks / "skill_meta.json").write_text(json.dumps({"cases": cases}))
    model = pytester.makepyfile(model="def answer(question): ...")
    agent = ("--skill-agent", "loop", "--model", f"scripted:{model}:answer")
    result = pytester.runpytest_inprocess("--skill", str(tasks), *agent)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--skill-allow-code: sums asks for {asked}"])


def test_the_time_that_a_user_gives_needs_no_other_word(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    (tasks / "skill_meta.json").write_text(
        json.dumps({"cases": [{**CASES[1], "timeout": 1200}]})
    )
    run = run_skills(
        *(pytester, "haiku", *ORACLE, "--skill-timeout", "1200"), skill=str(tasks)
    )
    assert run.outcomes == {"passed": 1}


def test_cases_of_a_chat_may_ask_for_what_they_never_get(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    model = pytester.makepyfile(model="def answer(question): return '3'")
    run = run_skills(pytester, f"scripted:{model}:answer", skill=str(tasks))
    assert run.outcomes == {"passed": 2}
