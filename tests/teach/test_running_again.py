"""Killed, interrupted and finished runs, whose command is run again."""

import json
import os
import signal
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.fake_models import (
    COLOURS,
    FakeModels,
    Project,
    body,
    draft,
    generate_words,
    lines,
    served,
)
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.shell import COMMAND, started


def saved(project: Project) -> Any:
    """The cases, without the time at which they were written, and the skill."""
    data = json.loads((project.skill / "skill_meta.json").read_text())
    del data["metadata"]["generated_at"]
    return {**data, "text": (project.skill / "SKILL.md").read_text()}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills by signal")
def test_a_killed_command_run_again_asks_nothing_twice(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first reply has to be repaired, also in the second run.
    drafts = [draft("red", name="a b", files=[{"path": "x", "text": ""}])]
    drafts += [draft("red"), draft(*COLOURS[:6]), draft(*COLOURS)]
    fake = FakeModels(drafts)
    process: list[subprocess.Popen[str]] = []

    def script(asked: Asked) -> Reply | Fault:
        # At the second version of the skill, when all students have been heard.
        is_teacher = FakeModels.role(asked) == "teacher"
        if process and is_teacher and len(fake.of("teacher")) == 2:
            process.pop().kill()
            return Fault("hang")
        return fake(asked)

    with LoopbackServer(script) as server:
        words = generate_words(f"{server.url}/v1")
        with started(
            [COMMAND, *words], stdout=subprocess.PIPE, cwd=project.folder
        ) as killed:
            process.append(killed)
            shown, _ = killed.communicate()
        assert killed.returncode == -signal.SIGKILL, shown
        assert project.files() == []
        left = all_files(project.folder)
        assert len(fake.asked) > 20
        with (
            closing(
                sqlite3.connect(project.folder / ".upskill/answers.sqlite")
            ) as store,
            store,
        ):
            # As they do by themselves, in 15 s
            store.execute("UPDATE leases SET until = 0")
        status, shown, _ = project.run(*words, "--json")
    assert (status, json.loads(shown)["chosen"]) == (0, 3)
    assert all_files(project.folder).items() >= left.items()

    # Never interrupted, it is asked the same and comes to the same end.
    whole = FakeModels(drafts)
    other = replace(project, folder=tmp_path / "other")
    other.folder.mkdir()
    monkeypatch.chdir(other.folder)
    assert other.generate(whole)[0] == 0
    assert Counter(whole.keys()) == Counter(fake.keys())
    assert saved(other) == saved(project)


@pytest.mark.nightly
def test_an_interrupted_run_says_how_to_continue(project: Project) -> None:
    process: list[subprocess.Popen[str]] = []

    def script(_: Asked) -> Fault:
        process[0].send_signal(signal.SIGINT)
        return Fault("hang")

    with LoopbackServer(script) as server:
        command = [COMMAND, *generate_words(f"{server.url}/v1")]
        with started(command, stderr=subprocess.PIPE) as lesson:
            process.append(lesson)
            _, error = lesson.communicate()
    assert lesson.returncode == 130
    assert error.startswith("pytest-upskill: interrupted\n")
    assert "Run the same command again" in error
    assert project.files() == []


def test_a_finished_command_run_again_is_free_and_replaces_nothing(
    project: Project,
) -> None:
    fake = FakeModels([draft("red"), draft(*COLOURS)])
    with served(fake) as url:
        assert project.run(*generate_words(url))[0] == 0
        asked = len(fake.asked)
        before = all_files(project.folder)
        assert project.run(*generate_words(url))[0] == 0
        assert len(fake.asked) == asked

        status, _, _ = project.run(*generate_words(url), "--fresh")
    assert (status, len(fake.of("author"))) == (0, 2)
    assert all_files(project.folder).items() >= before.items()
    names = ["lamp-colours", "lamp-colours-2", "lamp-colours-3"]
    for parent in (project.skill.parent, project.workspace.parent):
        assert sorted(path.name for path in parent.iterdir()) == names


@pytest.mark.usefixtures("short_pauses")
def test_an_unreachable_student_ends_the_run(
    project: Project,
) -> None:
    fake = FakeModels()
    with served(fake) as url:
        words = [*generate_words(url), "--eval-base-url", "http://127.0.0.1:9/v1"]
        status, _, error = project.run(*words)
        assert status == 1
        assert "can't connect to http://127.0.0.1:9" in error
        assert "Run the same command again to continue" in error
        assert project.files() == []
        asked = len(fake.asked)
        status, _, error = project.run(*words)
        assert status == 1
        assert len(fake.asked) == asked


@pytest.mark.nightly
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_closed_output_does_not_end_the_run(
    project: Project, more: list[str]
) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with served(FakeModels()) as url:
        done = subprocess.run(
            [COMMAND, *generate_words(url), *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if more else theirs,
            stderr=theirs if more else subprocess.PIPE,
            check=False,
        )
    os.close(theirs)
    assert (done.returncode, done.stderr or b"") == (0, b"")
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)


def all_files(folder: Path) -> dict[Path, bytes]:
    files = (
        file
        for file in folder.rglob("*")
        if file.is_file() and "sqlite" not in file.name
    )
    return {file: file.read_bytes() for file in files}


def test_a_longer_run_goes_on_where_a_short_one_ended(project: Project) -> None:
    fake = FakeModels([draft("red"), draft(*COLOURS)])
    with served(fake) as url:
        words = generate_words(url)
        assert project.run(*words, "--attempts", "1")[0] == 1
        assert project.run(*words)[0] == 0
    assert len(fake.of("teacher")) == 2
    assert load_skill(project.folder / "skills/lamp-colours-2/SKILL.md").body == body(
        *COLOURS
    )


@pytest.mark.parametrize("more", [[], ["--no-eval"]])
def test_an_unsaved_skill_is_kept_and_the_same_command_saves_it(
    project: Project, more: list[str]
) -> None:
    fake = FakeModels()

    def script(asked: Asked) -> Reply:
        # A place that was free when it was looked at
        if FakeModels.role(asked) == "author":
            (project.folder / "skills").write_text("in the way")
        return fake(asked)

    with LoopbackServer(script) as server:
        words = [*generate_words(f"{server.url}/v1"), *more]
        status, shown, error = project.run(*words)
        assert (status, error) == (1, "")
        *before, problem, where, how = lines(shown)
        assert (
            problem
            == "Not saved: skills/lamp-colours: can't be written: not a directory."
        )
        assert (
            where == "The best version is kept in .upskill/teach/lamp-colours/attempt-1"
        )
        assert "the same command saves it" in how
        assert more or [
            line for line in before if line.startswith("Stopped after one attempt")
        ]
        kept = project.workspace / "attempt-1"
        assert body(*COLOURS) in (kept / "SKILL.md").read_text()
        assert len(load_cases(kept / "skill_meta.json").require_all()) == 12
        (project.folder / "skills").unlink()
        asked = len(fake.asked)
        status, _, _ = project.run(*words)
    assert status == 0
    assert len(fake.asked) == asked
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
