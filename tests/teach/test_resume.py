"""Killed, interrupted and finished runs, and --resume."""

import json
import os
import signal
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from pytest_upskill.teach.teach_run import resume_state, start_state
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
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.shell import COMMAND, started


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills by signal")
def test_a_killed_run_is_resumed_and_asks_nothing_twice(project: Project) -> None:
    fake = FakeModels([draft("red"), draft(*COLOURS[:6]), draft(*COLOURS)])
    process: list[subprocess.Popen[str]] = []

    def script(asked: Asked) -> Reply | Fault:
        # At the second version of the skill, when all students have been heard.
        if (
            process
            and FakeModels.role(asked) == "teacher"
            and len(fake.of("teacher")) == 1
        ):
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
        before = len(fake.asked)
        assert before > 20
        with (
            closing(
                sqlite3.connect(project.folder / ".upskill/answers.sqlite")
            ) as store,
            store,
        ):
            # As they do by themselves, in 15 s
            store.execute("UPDATE leases SET until = 0")
        status, shown, _ = project.run(*words, "--resume", "--json")
    assert (status, json.loads(shown)["chosen"]) == (0, 3)
    times = Counter(fake.keys())  # what cases were chosen by is asked again, to count
    assert (max(times.values()), sum(number > 1 for number in times.values())) == (
        2,
        12,
    )
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
    assert not list(project.workspace.glob("tmp-*"))


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
    assert "--resume" in error
    assert project.files() == []


def test_a_new_run_asks_the_teacher_again_and_keeps_the_old_skill(
    project: Project,
) -> None:
    fake = FakeModels()
    with served(fake) as url:
        assert project.run(*generate_words(url))[0] == 0
        asked = len(fake.of("student"))
        status, _, _ = project.run(*generate_words(url))
    assert status == 0
    assert (
        load_skill(project.folder / "skills/lamp-colours-2/SKILL.md").name
        == "lamp-colours-2"
    )
    assert (len(fake.of("teacher")), len(fake.of("author"))) == (2, 2)
    assert len(fake.of("student")) == asked
    kept = sorted(path.name for path in project.workspace.parent.iterdir())
    assert kept == ["lamp-colours", "lamp-colours-2"]


@pytest.mark.usefixtures("short_pauses")
def test_an_unreachable_student_ends_the_run_and_resume_continues(
    project: Project,
) -> None:
    fake = FakeModels()
    with served(fake) as url:
        words = [*generate_words(url), "--eval-base-url", "http://127.0.0.1:9/v1"]
        status, _, error = project.run(*words)
        assert status == 1
        assert "can't connect to http://127.0.0.1:9" in error
        assert "with --resume to continue" in error
        assert project.files() == []
        asked = len(fake.asked)
        status, _, error = project.run(*words, "--resume")
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


def test_resuming_a_finished_run_changes_nothing(
    project: Project,
) -> None:
    write_skill(project.skill)
    fake = FakeModels([draft("red"), draft(*COLOURS)])
    with served(fake) as url:
        words = [*generate_words(url), "--attempts", "1"]
        assert project.run(*words)[0] == 1
        asked, before = len(fake.asked), all_files(project.folder)
        status, shown, _ = project.run(*words, "--resume")
        assert (status, shown) == (
            0,
            "Already finished: saved in skills/lamp-colours-2\n",
        )
        assert len(fake.asked) == asked
        assert all_files(project.folder) == before
        status, shown, _ = project.run(*words, "--resume", "--json")
        assert json.loads(shown)["finished"]
        status, _, _ = project.run(*generate_words(url), "--resume")  # and goes further
    assert status == 0
    assert load_skill(project.folder / "skills/lamp-colours-2/SKILL.md").body == body(
        *COLOURS
    )


@pytest.mark.parametrize("more", [[], ["--no-eval"]])
def test_an_unsaved_skill_is_kept_and_resume_saves_it(
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
        assert "--resume" in how
        assert more or [
            line for line in before if line.startswith("Stopped after one attempt")
        ]
        kept = project.workspace / "attempt-1"
        assert body(*COLOURS) in (kept / "SKILL.md").read_text()
        assert len(load_cases(kept / "skill_meta.json").require_all()) == 12
        (project.folder / "skills").unlink()
        asked = len(fake.asked)
        status, _, _ = project.run(*words, "--resume")
    assert status == 0
    assert len(fake.asked) == asked
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)


def test_an_earlier_state_is_never_overwritten(tmp_path: Path) -> None:
    one = start_state(tmp_path, "gate", "d1")
    (one.folder / "mark").write_text("one")
    two = start_state(tmp_path, "gate", "d1")
    three = start_state(tmp_path, "gate", "d2")
    assert (one.session, two.session, three.session) == (1, 2, 1)
    names = sorted(path.name for path in one.folder.parent.iterdir())
    assert names == ["gate", "gate.2", "gate.3"]
    assert (one.folder.parent / "gate/mark").read_text() == "one"
    assert resume_state(tmp_path, "d1").session == 2
    three.rename("door")
    assert resume_state(tmp_path, "d2").folder.name == "door"
    (three.folder / "state.json").write_text("broken")
    assert resume_state(tmp_path, "d1").session == 2


@pytest.mark.parametrize(
    "odd",
    [
        *("[]", "{", "[" * 100_000, '{"form": 1}', '{"form": 1, "session": 1e999}'),
        '{"form": 1, "name": "a", "digest": "d", "session": "x"}',
        '{"form": 1, "name": "a", "digest": "d", "session": 1, "saved": 5}',
    ],
    ids=range(7),
)
def test_an_odd_state_is_no_run(tmp_path: Path, odd: str) -> None:
    good = start_state(tmp_path, "lamp", "d")
    (tmp_path / ".upskill/teach/odd").mkdir()
    (tmp_path / ".upskill/teach/odd/state.json").write_text(odd)
    assert resume_state(tmp_path, "d").folder == good.folder
    assert start_state(tmp_path, "lamp", "d").session == 2


def test_a_state_holds_any_name_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key := "sk-ant-0123456789abcdefghij")
    saved = "/caf\udce9/lamp"  # os.fsdecode of a name in Latin-1
    start_state(tmp_path, "lamp", "d").save(saved=saved, task=f"print {key}")
    state = resume_state(tmp_path, "d").state
    assert state.saved == saved
    assert key not in state.task
