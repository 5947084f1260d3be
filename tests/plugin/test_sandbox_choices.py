"""Which sandbox each task gets: what --collect-only shows, and what is skipped."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.agents import images, task_sandbox
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.task_sandbox import SandboxChoice
from pytest_upskill.reports.terminal.sandbox_table import sandbox_counts, sandbox_table

CASES = [
    {
        "id": "files",
        "input": "Sum.",
        "sandbox": {"dockerfile": "files/Dockerfile"},
        "expected": {"contains": "3"},
    },
    {
        "id": "tool",
        "input": "Sum.",
        "sandbox": {"dockerfile": "tool/Dockerfile"},
        "expected": {"contains": "3"},
    },
    {"id": "plain", "input": "Sum.", "expected": {"contains": "3"}},
]


@pytest.fixture
def tasks(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A skill with a case for bubblewrap and one for an image;
    podman does not work here.
    """
    skill = pytester.mkdir("sums")
    (skill / "SKILL.md").write_text("---\nname: sums\ndescription: Adds.\n---\nAdd.\n")
    (skill / "skill_meta.json").write_text(json.dumps({"cases": CASES}))
    for name, line in (
        ("files", "COPY a.csv /app/"),
        ("tool", "RUN curl https://x.org | sh"),
    ):
        (skill / name).mkdir()
        (skill / name / "a.csv").write_text("1\n")
        (skill / name / "Dockerfile").write_text(f"FROM ubuntu:24.04\n{line}\n")
    monkeypatch.setattr(Bwrap, "why_not", lambda *_: None)
    monkeypatch.setattr(images, "why_no_program", lambda name: f"{name} was not found")
    monkeypatch.setattr(images, "images_here", lambda _: set())
    task_sandbox.choose_sandbox.cache_clear()
    yield skill
    task_sandbox.choose_sandbox.cache_clear()


def collect(pytester: pytest.Pytester, skill: Path, *options: str) -> pytest.RunResult:
    agent = ("--skill-agent", "loop", "--model", "haiku", "--collect-only")
    return pytester.runpytest_inprocess("--skill", str(skill), *agent, *options)


def test_each_task_is_shown_with_its_sandbox(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    result = collect(pytester, tasks)
    result.stdout.fnmatch_lines(
        [
            "upskill: 1 of 3 tests would be skipped",
            "upskill: 2 tasks: 1 in bwrap, 1 can't run",
            "task * sandbox * why",
            "files * bwrap*",
            "tool * can't run * needs an image (Dockerfile:2: RUN curl https://x.org*",
        ]
    )
    result.stdout.no_fnmatch_line("plain * bwrap*")


def test_an_image_is_used_if_there_is_a_program(
    pytester: pytest.Pytester, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "why_no_program", lambda _: "")
    result = collect(pytester, tasks)
    result.stdout.fnmatch_lines(
        ["upskill: 2 tasks: 1 in bwrap, 1 in an image (docker)"]
    )
    result.stdout.no_fnmatch_line("*would be skipped*")
    task_sandbox.choose_sandbox.cache_clear()
    result = collect(pytester, tasks, "--skill-sandbox", "podman")
    result.stdout.fnmatch_lines(["upskill: 2 tasks: 2 in an image (podman)"])


def test_without_images_only_files_can_run(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    result = collect(pytester, tasks, "--skill-sandbox", "bwrap")
    result.stdout.fnmatch_lines(
        ["tool * can't run * needs an image, which bwrap has not: *"]
    )


def test_the_counts_end_with_what_can_not_run() -> None:
    places = {
        "a": SandboxChoice("", reason="compose"),
        "b": SandboxChoice("bwrap"),
        "c": SandboxChoice("podman", "tool:1", "Dockerfile:2: RUN make"),
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
