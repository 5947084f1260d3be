"""A shorter skill is written beside the old one."""

import os
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError
from pytest_upskill.skills.copies import save_beside
from pytest_upskill.skills.skill import load_skill
from support.kit import write_skill


def test_all_of_the_skill_is_copied_but_its_text(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "references").mkdir()
    for name in ("keys.md", "old.md"):
        (folder / "references" / name).write_text(name)
    (folder / "node_modules").mkdir()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    saved = save_beside(folder / "SKILL.md", "new", ["references/old.md"])
    assert saved == tmp_path / "gate-short"
    names = sorted(path.relative_to(saved).as_posix() for path in saved.rglob("*"))
    assert names == ["SKILL.md", "references", "references/keys.md", "skill_meta.json"]
    assert (saved / "SKILL.md").read_text() == "new"
    assert {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file()
    } == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate", "gate-short"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (tmp_path / "gate-short").symlink_to("nowhere")
    assert save_beside(folder / "SKILL.md", "new").name == "gate-short-2"
    (tmp_path / "link").symlink_to(folder)
    assert save_beside(tmp_path / "link/SKILL.md", "new") == tmp_path / "gate-short-3"


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere"
)
def test_what_can_not_be_written_is_told(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(InputError, match="can't be written"):
            save_beside(folder / "SKILL.md", "new")
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("name: gate\ndescription: x", "name: gate-short\ndescription: x"),
        (
            "description: x\nname:   'gate'  # its",
            "description: x\nname:   gate-short  # its",
        ),
        ("{name: gate, description: x}", "{name: gate-short, description: x}"),
        (
            "name: >-\n  gate\n\n\ndescription: x",
            "name: gate-short\n\n\ndescription: x",
        ),
        ('name: "ga\\\nte"\ndescription: x', "name: gate-short\ndescription: x"),
        ("name: >\n  gate\ndescription: x", "name: gate-short\ndescription: x"),
        ("description: x", "description: x"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_copy_is_named_like_its_folder(
    head: str, expected: str, newline: str, tmp_path: Path
) -> None:
    folder = write_skill(tmp_path / "gate")
    text, wanted = (
        f"---\n{one}\n---\n\nText.\n".replace("\n", newline) for one in (head, expected)
    )
    saved = save_beside(folder / "SKILL.md", text)
    assert (saved / "SKILL.md").read_bytes().decode() == wanted
    loaded = load_skill(saved / "SKILL.md")
    assert (loaded.name, loaded.description) == ("gate-short", "x")


def test_a_long_name_stays_within_the_limit(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / ("x" * 64))
    saved = save_beside(folder / "SKILL.md", (folder / "SKILL.md").read_text())
    assert len(saved.name) == 64
    assert load_skill(saved / "SKILL.md").name == saved.name
    assert not [
        one
        for one in load_skill(saved / "SKILL.md").warnings
        if one.code == "skill-name"
    ]


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("absolute", [True, False])
def test_nothing_of_the_old_skill_changes_through_a_link(
    tmp_path: Path, inside: bool, absolute: bool
) -> None:
    folder = write_skill(tmp_path / "gate")
    real = folder / "docs/text.md" if inside else tmp_path / "shared/text.md"
    real.parent.mkdir()
    (folder / "SKILL.md").rename(real)
    (folder / "SKILL.md").symlink_to(
        real if absolute else os.path.relpath(real, folder)
    )
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs/old.md").write_text("old")
    # Also a way that leaves the folder and comes back.
    (folder / "references").symlink_to(folder / "docs" if absolute else "../gate/docs")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    saved = save_beside(folder / "SKILL.md", "new", ["references/old.md"])
    assert {path: path.read_bytes() for path in before} == before
    assert (saved / "SKILL.md").read_text() == "new"
    assert not (saved / "SKILL.md").is_symlink()
    assert not (saved / "references/old.md").exists()
