"""How lessons end: what is saved and where, what is said if it can't be, and how to go on."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_upskill.skills.cases import load_cases
from pytest_upskill.skills.skill import load_skill
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.school import (
    COLOURS,
    COMMAND,
    Project,
    School,
    body,
    draft,
    generate_words,
    in_session,
    lines,
    make_project,
)


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    return make_project(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_lesson_goes_on_if_nobody_reads_what_it_says(project: Project, more: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with in_session(School()) as url:
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


@dataclass(frozen=True)
class Keyboard:
    """Somebody who types this, or presses Ctrl-C."""

    typed: str

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        if self.typed == "^C":
            raise KeyboardInterrupt
        return self.typed


@pytest.mark.parametrize(
    ("typed", "wanted", "end", "told"),
    [
        ("n\n", 1, "Continue? [y/N] Nothing was asked.\n", ""),  # the terminal shows what is typed
        ("", 1, "Continue? [y/N] \nNothing was asked.\n", ""),
        ("^C", 130, "Continue? [y/N] \n", "pytest-upskill: interrupted\n"),
    ],
)
def test_who_does_not_agree_is_told_that_nothing_was_asked(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    wanted: int,
    end: str,
    told: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    school = School()
    with in_session(school) as url:
        status, shown, error = project.run(*generate_words(url)[:-1])
    assert (status, error) == (wanted, told)
    assert shown.endswith(end)
    assert school.asked == []


def test_nothing_is_written_over_without_force(project: Project) -> None:
    folder = write_skill(project.folder / "mine")
    school = School()
    status, _, error = project.generate(school, "-o", "mine")
    assert (status, "--output mine: a skill already exists here" in error) == (2, True)
    assert school.asked == []
    old = (folder / "SKILL.md").read_text()
    (folder / "extra.txt").write_text("kept too")
    status, shown, _ = project.generate(school, "-o", "mine", "--force")
    assert status == 0
    assert load_skill(folder / "SKILL.md").name == "mine"
    assert "The previous skill is kept in .upskill/teach/mine/before" in lines(shown)
    kept = project.folder / ".upskill/teach/mine/before"
    assert (kept / "SKILL.md").read_text() == old
    assert (kept / "extra.txt").read_text() == "kept too"
    assert not (folder / "extra.txt").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "/proc/lamp"], "--output /proc/lamp: /proc is not writable"),
        (["-o", "dangling"], "--output dangling: dangling is a broken link"),
        (["-o", "plain/lamp"], "--output plain/lamp: plain is a file, not a folder"),
        (["--name", "lamp"], "--name skills/lamp: skills is a file, not a folder"),
        ([], "skills: skills is a file, not a folder\n  Make room for it, or choose another"),
    ],
)
def test_a_place_that_can_not_be_written_to_is_found_before_the_first_call(
    project: Project, words: list[str], told: str
) -> None:
    (project.folder / "dangling").symlink_to("gone")
    for name in ("plain", "skills"):
        (project.folder / name).write_text("a file")
    school = School()
    status, _, error = project.generate(school, *words)
    assert (status, told in error) == (2, True), error
    assert school.asked == []
    assert project.files() == ["plain", "skills"]


@pytest.mark.parametrize("more", [[], ["--no-eval"]])
def test_what_can_not_be_saved_at_the_end_is_kept_and_resume_saves_it(
    project: Project, more: list[str]
) -> None:
    school = School()

    def script(asked: Asked) -> Reply:
        if School.role(asked) == "author":  # a place that was free when it was looked at
            (project.folder / "skills").write_text("in the way")
        return school(asked)

    with LoopbackServer(script) as server:
        words = [*generate_words(f"{server.url}/v1"), *more]
        status, shown, error = project.run(*words)
        assert (status, error) == (1, "")
        *before, problem, where, how = lines(shown)
        assert problem == "Not saved: skills/lamp-colours: can't be written: not a directory."
        assert where == "The best version is kept in .upskill/teach/lamp-colours/attempt-1"
        assert how.startswith("Once that is fixed, --resume saves it")
        assert more or [line for line in before if line.startswith("Stopped after one attempt")]
        kept = project.workspace / "attempt-1"
        assert body(*COLOURS) in (kept / "SKILL.md").read_text()
        assert len(load_cases(kept / "skill_meta.json")) == 12
        (project.folder / "skills").unlink()
        asked = len(school.asked)
        status, _, _ = project.run(*words, "--resume")
    assert status == 0
    assert len(school.asked) == asked
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)


def test_a_link_to_a_skill_stays_a_link(project: Project) -> None:
    folder = write_skill(project.folder / "elsewhere/mine")
    (project.folder / "mine").symlink_to(folder)
    status, _, error = project.generate(School(), "-o", "mine", "--force")
    assert status == 0, error
    assert (project.folder / "mine").is_symlink()
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS)


def test_a_skill_of_the_name_that_the_teacher_chose_is_replaced_by_force_only(
    project: Project,
) -> None:
    old = (write_skill(project.skill) / "SKILL.md").read_text()
    status, shown, _ = project.generate(School())
    assert status == 0
    told = "skills/lamp-colours already exists: saved as lamp-colours-2"
    assert told in lines(shown)
    assert (project.skill / "SKILL.md").read_text() == old
    status, shown, _ = project.generate(School(), "--force")
    assert status == 0
    assert "already exists" not in shown
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours"
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
    begin = "The previous skill is kept in "
    [kept] = [line.removeprefix(begin) for line in lines(shown) if line.startswith(begin)]
    assert (project.folder / kept / "SKILL.md").read_text() == old


def test_what_is_no_skill_is_never_replaced(project: Project) -> None:
    project.skill.mkdir(parents=True)
    (project.skill / "mine.txt").write_text("precious")
    status, shown, _ = project.generate(School(), "--force")
    assert status == 0
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours-2"
    assert (project.skill / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "wanted", "told"),
    [
        (["--cases", "4"], 1, "Too few cases: 4 can't show that a skill helps (5 needed)."),
        ([], 0, "Too few held-out cases: 4 can't show a lift (5 needed); all 12 cases can."),
        (["--holdout", "0.5"], 0, ""),
        (["--holdout", "0"], 0, ""),
    ],
)
def test_it_helps_if_that_is_shown_and_too_few_cases_are_told_before_the_first_call(
    project: Project, words: list[str], wanted: int, told: str
) -> None:
    status, shown, _ = project.generate(School(), *words)
    first, second, *_ = lines(shown)
    assert first.startswith("This takes about ")
    assert second == told or (not told and second.startswith("Generating skill"))
    assert "small on all cases: " + ("no effect shown" if wanted else "helps") in shown
    assert status == wanted


def all_files(folder: Path) -> dict[Path, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and "sqlite" not in file.name)
    return {file: file.read_bytes() for file in files}


def test_a_finished_lesson_that_is_resumed_asks_nobody_and_changes_nothing(
    project: Project,
) -> None:
    write_skill(project.skill)
    school = School([draft("red"), draft(*COLOURS)])
    with in_session(school) as url:
        words = [*generate_words(url), "--attempts", "1"]
        assert project.run(*words)[0] == 1
        asked, before = len(school.asked), all_files(project.folder)
        status, shown, _ = project.run(*words, "--resume")
        assert (status, shown) == (*(0, "Already finished: saved in skills/lamp-colours-2\n"),)
        assert len(school.asked) == asked
        assert all_files(project.folder) == before
        status, shown, _ = project.run(*words, "--resume", "--json")
        assert json.loads(shown)["finished"]
        status, shown, _ = project.run(*generate_words(url), "--resume")  # and goes further
    assert status == 0
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours-2"
    assert load_skill(project.folder / "skills/lamp-colours-2/SKILL.md").body == body(*COLOURS)


def test_what_is_kept_stays_where_it_was_said_to_be(project: Project) -> None:
    old = (write_skill(project.folder / "mine") / "SKILL.md").read_text()
    for _ in range(2):
        assert project.generate(School(), "-o", "mine", "--force")[0] == 0
    kept = project.folder / ".upskill/teach"
    assert (kept / "mine/before/SKILL.md").read_text() == old
    assert body(*COLOURS) in (kept / "mine.2/before/SKILL.md").read_text()
