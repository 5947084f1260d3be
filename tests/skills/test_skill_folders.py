"""A skill's folder: allowed files, digest, and how skills are found."""

from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.skills.skill import MAX_FILE_BYTES, Skill, find_skills, load_skill, skill_file
from support.kit import refused, skill_or_error, write_skill, write_skill_md


def test_huge_file_is_rejected(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "big.bin").write_bytes(b"x" * MAX_FILE_BYTES)
    load_skill(folder / "SKILL.md")
    (folder / "big.bin").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    error = refused(folder / "SKILL.md")
    assert error.where.endswith("big.bin")
    assert "1,000,001 bytes" in error.problem


def test_huge_file_of_cases_is_not_part_of_the_skill(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "skill_meta.json").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    assert load_skill(folder / "SKILL.md").name == "gate"


@pytest.mark.parametrize("target", ["secret.txt", "secrets", "no-such-file"])
def test_link_out_of_the_folder_is_rejected(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "secrets").mkdir()
    folder = write_skill(tmp_path / "gate")
    (folder / "references").mkdir()
    (folder / "references" / "link").symlink_to(tmp_path / target)
    error = refused(folder / "SKILL.md")
    assert error.where.endswith("references/link")
    assert "out of the skill's folder" in error.problem


def test_skill_md_linked_from_outside_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "SKILL.md").symlink_to(write_skill(tmp_path / "other") / "SKILL.md")
    assert "out of the skill's folder" in refused(tmp_path / "gate" / "SKILL.md").problem


def test_links_inside_the_folder_are_allowed(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "references").mkdir()
    (folder / "references" / "more.md").write_text("more")
    (folder / "more.md").symlink_to("references/more.md")
    (folder / "refs").symlink_to("references")
    assert load_skill(folder / "SKILL.md").name == "gate"


def test_link_to_itself_does_not_crash(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "loop").symlink_to("loop")
    found = skill_or_error(folder / "SKILL.md")
    assert isinstance(found, Skill) or "loop" in found.where


@pytest.mark.parametrize("link", ["gate", "other"])
def test_folder_itself_may_be_a_link(tmp_path: Path, link: str) -> None:
    real = write_skill(tmp_path / "real" / "gate")
    (tmp_path / link).symlink_to(real)
    assert load_skill(tmp_path / link / "SKILL.md").name == "gate"


def test_digest_covers_the_skills_files_and_nothing_else(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    file = folder / "SKILL.md"
    seen = [load_skill(file).digest]
    for path, text in {"references/more.md": "1", "scripts/run.py": "1"}.items():
        (folder / path).parent.mkdir()
        (folder / path).write_text(text)
        seen.append(load_skill(file).digest)
    (folder / "references" / "more.md").write_text("2")
    seen.append(load_skill(file).digest)
    (folder / "references" / "more.md").rename(folder / "references" / "other.md")
    seen.append(load_skill(file).digest)
    file.write_text(file.read_text() + "One word more.")
    seen.append(load_skill(file).digest)
    assert len(set(seen)) == 6
    for name in ("skill_meta.json", "skill_results.json", "evals/evals.json", ".git/HEAD"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("not taught")
        assert load_skill(file).digest == seen[-1]


def test_digest_does_not_depend_on_the_location(tmp_path: Path) -> None:
    one, other = write_skill(tmp_path / "a" / "gate"), write_skill(tmp_path / "b" / "gate")
    assert load_skill(one / "SKILL.md").digest == load_skill(other / "SKILL.md").digest


def test_file_or_folder_names_its_skill(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    assert find_skills(folder / "SKILL.md") == [folder / "SKILL.md"]
    assert find_skills(folder) == [folder / "SKILL.md"]


def test_skills_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    deep = write_skill(tmp_path / "a" / "b" / "c" / "deep")
    claude = write_skill(tmp_path / ".claude" / "skills" / "hidden")
    gate = write_skill(tmp_path / "gate")
    write_skill(gate / "assets" / "template")  # a skill inside a skill belongs to it
    small = write_skill_md(tmp_path / "a", "", "skill.md")
    expected = [claude / "SKILL.md", deep / "SKILL.md", small, gate / "SKILL.md"]
    assert find_skills(tmp_path) == expected


@pytest.mark.parametrize("name", [".git", "node_modules", ".venv", "venv", "__pycache__"])
def test_tool_folders_are_not_searched(tmp_path: Path, name: str) -> None:
    gate = write_skill(tmp_path / "gate")
    write_skill(tmp_path / "a" / name / "theirs")
    assert find_skills(tmp_path) == [gate / "SKILL.md"]


def test_virtual_environment_of_any_name_is_not_searched(tmp_path: Path) -> None:
    gate = write_skill(tmp_path / "gate")
    write_skill(tmp_path / "env" / "theirs")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert find_skills(tmp_path) == [gate / "SKILL.md"]


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


def test_the_file_of_a_skill_is_itself_or_in_its_folder(tmp_path: Path) -> None:
    assert skill_file(tmp_path) == tmp_path / "SKILL.md"
    small = write_skill_md(tmp_path, "", "skill.md")
    assert skill_file(small.parent) == skill_file(small) == small
