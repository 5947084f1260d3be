"""git on the repositories of strangers: their config can name commands,
and none may run.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_upskill._util import git as git_calls
from pytest_upskill._util.git import commit_of, ignored_in, repository_of
from pytest_upskill.errors import SettingsError
from pytest_upskill.settings import Settings
from pytest_upskill.skills.context import load_for_run, require_ref
from support.kit import BODY, commit_all, skill_with_a_past, write_skill

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

OLD = "Nobody knows how the gate opens."


@pytest.fixture(autouse=True)
def fresh_refs() -> None:
    require_ref.cache_clear()


def git(folder: Path, *args: str) -> None:
    person = [
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    command = ["git", *person, "-c", "protocol.file.allow=always", *args]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def previous(skill: Path, ref: str = "main") -> str | None:
    return load_for_run(skill / "SKILL.md", Settings(against=ref)).previous


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What a command of the stranger would write."""
    return tmp_path / "executed"


def script(file: Path, mark: Path) -> str:
    file.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    file.chmod(0o755)
    return str(file)


def write_bare_repository(folder: Path, mark: Path) -> None:
    """A folder that git takes for a bare repository which fetches
    its objects by a command.
    """
    for name in ("refs/heads", "objects/info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "refs/heads/main").write_text("1" * 40 + "\n")
    (folder / "objects/info/keep").write_text("")
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
        f'\tfsmonitor = "touch {mark}"\n\thooksPath = .\n'
        "[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "touch'
        f' {mark}; false"\n'
        '[protocol "file"]\n\tallow = always\n'
    )


def test_a_skill_that_looks_like_a_bare_repository_runs_nothing(
    tmp_path: Path, mark: Path
) -> None:
    skill = skill_with_a_past(tmp_path / "project", old=OLD)
    write_bare_repository(skill, mark)
    subprocess.run(
        ["git", "cat-file", "-e", "1" * 40], cwd=skill, check=False, capture_output=True
    )
    assert mark.exists()  # git alone would run it
    mark.unlink()
    assert previous(skill) == OLD
    commit = commit_of(tmp_path / "project", ["skills/gate"])
    assert commit
    assert commit.dirty
    assert not mark.exists()


def test_a_bare_repository_alone_is_no_repository(tmp_path: Path, mark: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    write_bare_repository(skill, mark)
    with pytest.raises(SettingsError, match="is in no git repository"):
        previous(skill)
    assert commit_of(skill) is None
    # Now it is one, by a file that no clone can bring
    (skill / ".git").write_text("gitdir: .")
    with pytest.raises(SettingsError):
        previous(skill)
    assert commit_of(skill, ["."]) is None
    assert not mark.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "{command}"),
        ("core.hooksPath", "{folder}"),
        ("filter.x=y.z.clean", "{command}"),
        ("filter.x=y.z.process", "{command}"),
    ],
)
def test_the_config_of_a_repository_runs_nothing(
    tmp_path: Path, mark: Path, key: str, value: str
) -> None:
    top = tmp_path / "project"
    skill = write_skill(top / "skills/gate", body=OLD)
    (top / ".gitattributes").write_text("* filter=x=y.z\n")
    commit_all(top)
    write_skill(skill)
    command = script(tmp_path / "post-index-change", mark)
    git(top, "config", key, value.format(command=command, folder=tmp_path))
    git(top, "config", "filter.x=y.z.required", "true")
    # Git has to look at its content
    os.utime(top / "skills/gate/skill_meta.json", (1, 1))
    assert previous(skill) == OLD
    commit = commit_of(top, ["skills/gate"])
    assert commit
    assert commit.dirty
    assert not mark.exists()


def test_missing_objects_are_not_fetched(tmp_path: Path, mark: Path) -> None:
    top = tmp_path / "project"
    skill = skill_with_a_past(top, old=OLD)
    require_ref("main", skill)
    shutil.rmtree(top / ".git/objects")
    (top / ".git/objects").mkdir()
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": ".",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {mark}; false",
        "protocol.file.allow": "always",
    }.items():
        git(top, "config", key, value)
    with pytest.raises(SettingsError, match="in a partial clone, fetch"):
        previous(skill)
    assert not mark.exists()


def test_a_worktree_and_a_submodule_are_compared(tmp_path: Path) -> None:
    one = tmp_path / "one"
    write_skill(one / "skills/gate", body=OLD)
    commit_all(one)
    git(one, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert previous(write_skill(tmp_path / "side/skills/gate")) == OLD
    assert previous(one / "skills/gate", "side") == OLD

    two = tmp_path / "two"
    write_skill(two / "door", body="Another text.")
    commit_all(two)
    git(two, "submodule", "add", "-q", str(one), "sub")
    git(two, "commit", "-qm", "Add")
    clean = commit_of(two, ["sub/skills/gate"])
    assert clean
    assert not clean.dirty
    skill = write_skill(two / "sub/skills/gate")
    assert repository_of(skill) == two / "sub"
    assert previous(skill) == OLD
    changed = commit_of(two, ["sub/skills/gate"])
    assert changed
    assert changed.dirty
    assert changed.id == clean.id


def test_a_skill_may_be_the_repository_itself(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate", body=OLD)
    commit_all(skill)
    assert previous(write_skill(skill)) == OLD
    commit = commit_of(skill, ["."])
    assert commit
    assert commit.dirty


@pytest.mark.parametrize("name", ["[a]*", ":(top)x", "ä b", "-c"])
def test_the_name_of_a_folder_is_no_pattern(tmp_path: Path, name: str) -> None:
    skill = write_skill(tmp_path / name, body=OLD)
    write_skill(tmp_path / "ab", body="Another text.")
    commit_all(tmp_path)
    clean = commit_of(tmp_path, [name])
    assert clean
    assert not clean.dirty
    (skill / "new.md").write_text(BODY)
    assert previous(skill) == OLD
    changed = commit_of(tmp_path, [name])
    assert changed
    assert changed.dirty


def test_an_empty_git_folder_is_no_repository(tmp_path: Path) -> None:
    skill = skill_with_a_past(tmp_path, old=OLD)
    (skill / ".git").mkdir()
    assert previous(skill) == OLD


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_a_pipe_that_git_waits_for_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = skill_with_a_past(tmp_path / "project", old=OLD)
    monkeypatch.setattr(git_calls, "_SECONDS", 0.5)
    for name in (".gitattributes", ".gitignore"):
        os.mkfifo(skill / name)
    assert commit_of(tmp_path / "project", ["skills/gate"]) is None
    assert not ignored_in(skill)(Path("SKILL.md"))


def test_git_that_takes_too_long_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = skill_with_a_past(tmp_path / "project", old=OLD)
    monkeypatch.setattr(git_calls, "_SECONDS", 0.0)
    with pytest.raises(
        SettingsError, match=r"git rev-parse did not end within 0 s in .*project"
    ):
        previous(skill)
