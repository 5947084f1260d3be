"""How skills are found below a folder, and which ones are left out."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.skills.folder import contents_of, skill_file, walk
from pytest_upskill.skills.search import (
    BROKEN,
    COPY,
    ENVIRONMENT,
    PACKAGES,
    WORKSPACE,
    WORKTREE,
    find_skills,
    left_out_lines,
)
from support.kit import write_skill, write_skill_md


def found(root: Path) -> list[str]:
    """The folders of the skills, relative to the root."""
    files = find_skills(root).files
    assert list(files) == sorted(files)
    return [file.parent.relative_to(root).as_posix() for file in files]


def left_out(root: Path) -> list[tuple[str, str]]:
    return [
        (path.relative_to(root).as_posix(), reason)
        for path, reason in find_skills(root).left_out
    ]


def write_skills(root: Path, *folders: str) -> None:
    """Write skills that differ from each other."""
    for folder in folders:
        write_skill(root / folder, body=f"The text of {folder}.")


def test_file_or_folder_names_its_skill(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    assert find_skills(folder / "SKILL.md").files == (folder / "SKILL.md",)
    assert find_skills(folder).files == (folder / "SKILL.md",)


def test_skills_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    write_skills(tmp_path, "a/b/c/deep", ".claude/skills/hidden", "gate")
    small = write_skill_md(
        tmp_path / "a", "---\nname: gate\n---\nLowercase.", "skill.md"
    )
    assert found(tmp_path) == [".claude/skills/hidden", "a/b/c/deep", "a/gate", "gate"]
    assert small in find_skills(tmp_path).files


def test_a_skill_hides_none_below_it(tmp_path: Path) -> None:
    write_skills(tmp_path, ".", "skills/a", "skills/a/assets/template", "skills/b")
    assert found(tmp_path) == [".", "skills/a", "skills/a/assets/template", "skills/b"]
    assert found(tmp_path / "skills/a") == [".", "assets/template"]
    only = tmp_path / "skills/a/SKILL.md"
    assert find_skills(only).files == (only,)


def test_both_spellings_in_one_folder_are_one_skill(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "skill.md").write_text("The other one.")
    assert find_skills(tmp_path).files == (folder / "SKILL.md",)


@pytest.mark.parametrize(
    "text", [b"About skills.", b"---\ntitle: Skills\n---\nx", b"\xff"]
)
def test_a_page_about_skills_is_no_skill(tmp_path: Path, text: bytes) -> None:
    write_skills(tmp_path, "gate")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/skill.md").write_bytes(text)
    assert found(tmp_path) == ["gate"]
    assert find_skills(tmp_path / "docs/skill.md").files == (
        tmp_path / "docs/skill.md",
    )


@pytest.mark.parametrize("name", [".git", "__pycache__", ".upskill", ".cache"])
def test_folders_of_tools_are_not_searched(tmp_path: Path, name: str) -> None:
    write_skills(tmp_path, "gate", f"a/{name}/theirs")
    assert found(tmp_path) == ["gate"]
    assert left_out(tmp_path) == []


def test_installed_packages_are_left_out(tmp_path: Path) -> None:
    write_skills(tmp_path, "gate", "node_modules/@them/pack/skills/theirs")
    # Without a skill: not worth a word
    (tmp_path / "web/node_modules/other").mkdir(parents=True)
    assert found(tmp_path) == ["gate"]
    assert left_out(tmp_path) == [("node_modules", PACKAGES)]


def test_virtual_environments_are_left_out_whatever_their_name(tmp_path: Path) -> None:
    # A skill about them is a skill
    write_skills(tmp_path, "gate", "env/lib/theirs", "venv")
    (tmp_path / "env/pyvenv.cfg").touch()
    assert found(tmp_path) == ["gate", "venv"]
    assert left_out(tmp_path) == [("env", ENVIRONMENT)]
    assert found(tmp_path / "env") == ["lib/theirs"]


def test_a_virtual_environment_in_its_usual_place_is_told(tmp_path: Path) -> None:
    write_skills(tmp_path, "gate", ".venv/lib/site-packages/pack/theirs")
    (tmp_path / "tool/.venv/lib").mkdir(parents=True)
    assert found(tmp_path) == ["gate"]
    assert left_out(tmp_path) == [(".venv", ENVIRONMENT)]


def test_other_worktrees_of_the_repository_are_left_out(tmp_path: Path) -> None:
    write_skills(tmp_path, "gate", ".claude/worktrees/try/gate", "sub/gate")
    (tmp_path / ".claude/worktrees/try/.git").write_text(
        "gitdir: /repo/.git/worktrees/try\n"
    )
    (tmp_path / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    assert found(tmp_path) == ["gate", "sub/gate"]
    assert left_out(tmp_path) == [(".claude/worktrees/try", WORKTREE)]


def test_workspaces_of_skill_creator_are_left_out(tmp_path: Path) -> None:
    write_skills(tmp_path, "skills/gate", "skills/gate-workspace/old_skill")
    write_skills(
        tmp_path, "skills/gate-workspace/iteration-1/eval-0/with_skill/outputs/made"
    )
    write_skill(tmp_path / "door-workspace/skill-snapshot", body="Old.")
    assert found(tmp_path) == ["door-workspace/skill-snapshot", "skills/gate"]
    assert left_out(tmp_path) == [("skills/gate-workspace", WORKSPACE)]
    old = (tmp_path / "door-workspace/skill-snapshot/SKILL.md").read_text()
    renamed = old.replace("name: skill-snapshot", "name: door")
    (tmp_path / "door-workspace/skill-snapshot/SKILL.md").write_text(renamed)
    assert found(tmp_path) == ["skills/gate"]
    assert ("door-workspace", WORKSPACE) in left_out(tmp_path)


def test_a_skill_or_a_group_named_workspace_is_none(tmp_path: Path) -> None:
    write_skills(tmp_path, "google", "google-workspace", "nx-workspace/build")
    assert found(tmp_path) == ["google", "google-workspace", "nx-workspace/build"]


def test_what_is_left_out_can_be_named(tmp_path: Path) -> None:
    write_skills(tmp_path, "gate", "gate-workspace/old", "node_modules/theirs")
    shutil.copytree(tmp_path / "gate", tmp_path / ".claude/skills/gate")
    assert found(tmp_path) == ["gate"]
    for path in ("gate-workspace/old", "node_modules/theirs", ".claude/skills/gate"):
        assert found(tmp_path / path) == ["."]
        assert find_skills(tmp_path / path).left_out == ()
    assert found(tmp_path / "gate-workspace") == ["old"]
    assert found(tmp_path / "node_modules") == ["theirs"]


def test_a_copy_is_left_out_and_the_original_kept(tmp_path: Path) -> None:
    write_skills(tmp_path, "skills/gate", "skills/door")
    for copy in (".agents/skills/gate", ".claude/skills/gate", "plugins/x/skills/gate"):
        shutil.copytree(tmp_path / "skills/gate", tmp_path / copy)
    assert found(tmp_path) == ["skills/door", "skills/gate"]
    assert left_out(tmp_path) == [
        (".agents/skills/gate", COPY),
        (".claude/skills/gate", COPY),
        ("plugins/x/skills/gate", COPY),
    ]


def test_a_copy_that_was_changed_is_another_skill(tmp_path: Path) -> None:
    write_skills(tmp_path, "skills/gate")
    shutil.copytree(tmp_path / "skills/gate", tmp_path / ".claude/skills/gate")
    (tmp_path / ".claude/skills/gate/notes.md").write_text("Mine.")
    assert found(tmp_path) == [".claude/skills/gate", "skills/gate"]


@pytest.mark.parametrize("text", ["# Gates\n\nOpen them.\n", ""])
def test_the_same_text_under_another_name_is_another_skill(
    tmp_path: Path, text: str
) -> None:
    for folder in ("gate", "door", "copy/gate"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(text)
    assert found(tmp_path) == ["door", "gate"]
    assert left_out(tmp_path) == [("copy/gate", COPY)]


def test_of_two_copies_the_one_with_cases_is_kept(tmp_path: Path) -> None:
    write_skills(tmp_path, "a/gate")
    shutil.copytree(tmp_path / "a/gate", tmp_path / "b/c/gate")
    (tmp_path / "a/gate/skill_meta.json").unlink()
    assert found(tmp_path) == ["b/c/gate"]


def test_linked_skill_is_found_once_under_its_real_path(tmp_path: Path) -> None:
    write_skills(tmp_path, "skills/gate")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/gate").symlink_to("../../skills/gate")
    (tmp_path / "all").symlink_to("skills")
    (tmp_path / "up").symlink_to("..")
    assert found(tmp_path) == ["skills/gate"]
    assert left_out(tmp_path) == []
    assert found(tmp_path / ".claude/skills") == ["gate"]
    assert found(tmp_path / ".claude/skills/gate") == ["."]


def test_skill_linked_from_elsewhere_is_found_under_the_link(tmp_path: Path) -> None:
    write_skills(
        tmp_path, "mine/gate", "repo/skills/door", "repo/node_modules/pack/theirs"
    )
    (tmp_path / "repo/.claude/skills").mkdir(parents=True)
    (tmp_path / "repo/.claude/skills/gate").symlink_to(tmp_path / "mine/gate")
    (tmp_path / "repo/.claude/skills/theirs").symlink_to(
        "../../node_modules/pack/theirs"
    )
    assert found(tmp_path / "repo") == [
        ".claude/skills/gate",
        ".claude/skills/theirs",
        "skills/door",
    ]


def test_skill_md_that_is_a_link_to_another_is_a_copy(tmp_path: Path) -> None:
    write_skills(tmp_path, "skills/gate")
    (tmp_path / ".claude/skills/gate").mkdir(parents=True)
    (tmp_path / ".claude/skills/gate/SKILL.md").symlink_to(
        "../../../skills/gate/SKILL.md"
    )
    assert found(tmp_path) == ["skills/gate"]
    assert left_out(tmp_path) == [(".claude/skills/gate", COPY)]


def test_what_was_left_out_is_told_in_a_line_for_each_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_skills(tmp_path, "gate", "gate-workspace/old")
    for number in range(5):
        shutil.copytree(tmp_path / "gate", tmp_path / f"copies/{number}")
    assert left_out_lines(find_skills(tmp_path).left_out) == [
        (
            "left out (a copy of another skill here): copies/0, copies/1, copies/2 and"
            " 2 more"
        ),
        "left out (a workspace of skill-creator): gate-workspace",
    ]
    assert left_out_lines([]) == []


def test_broken_link_named_skill_md_is_no_skill(tmp_path: Path) -> None:
    write_skills(tmp_path, "gate")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/SKILL.md").symlink_to("nowhere")
    (tmp_path / "third/SKILL.md").mkdir(parents=True)
    assert found(tmp_path) == ["gate"]
    assert left_out(tmp_path) == [("other", BROKEN)]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nothing", "no such file or folder"),
        ("empty", "no SKILL.md in this folder or below"),
        ("README.md", "not a SKILL.md"),
    ],
)
def test_path_without_a_skill_is_rejected_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "sub").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    with pytest.raises(SkillError) as caught:
        find_skills(tmp_path / path)
    assert caught.value.where == path
    assert problem in caught.value.problem
    assert caught.value.hint


def test_folder_with_nothing_but_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_skills(tmp_path, "web/node_modules/theirs")
    with pytest.raises(SkillError) as caught:
        find_skills(tmp_path / "web")
    told = "no skill but those left out (installed packages): web/node_modules"
    assert caught.value.problem == told
    assert caught.value.hint == "To use one of them, name its folder."


def test_the_file_of_a_skill_is_itself_or_in_its_folder(tmp_path: Path) -> None:
    assert skill_file(tmp_path) == tmp_path / "SKILL.md"
    small = write_skill_md(tmp_path, "", "skill.md")
    assert skill_file(small.parent) == skill_file(small) == small


def test_only_a_hundred_levels_of_folders_are_searched(tmp_path: Path) -> None:
    (tmp_path / "/".join("a" * 120)).mkdir(parents=True)
    assert sum(1 for _ in walk(tmp_path)) == 101


@pytest.mark.parametrize(("name", "levels"), [("a", 1500), ("a" * 250, 16)])
def test_folders_may_be_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, levels: int
) -> None:
    write_skills(tmp_path, "deep")
    monkeypatch.chdir(tmp_path / "deep")
    for _ in range(levels):
        os.mkdir(name)  # noqa: PTH102  # the whole path would be too long
        os.chdir(name)
    os.chdir(tmp_path)
    try:
        assert found(tmp_path) == ["deep"]
        assert contents_of(tmp_path / "deep").files == (tmp_path / "deep/SKILL.md",)
    finally:
        subprocess.run(["rm", "-r", "deep"], check=True)  # shutil.rmtree recurses
