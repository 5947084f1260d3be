"""A skill's folder: which files belong to it, and its digest."""

import os
from pathlib import Path

import pytest

from pytest_upskill.skills.folder import MAX_FILE_BYTES, contents_of, read_skill_file
from pytest_upskill.skills.skill import load_skill
from support.kit import refused, write_skill


def files_of(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in contents_of(folder).files]


def test_large_and_binary_files_are_no_reason_to_refuse(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff\0" * MAX_FILE_BYTES)
    skill = load_skill(folder / "SKILL.md")
    assert skill.warnings == ()
    (folder / "picture.png").write_bytes(b"\x89PNG\xfe\0" * MAX_FILE_BYTES)
    assert load_skill(folder / "SKILL.md").digest != skill.digest


def test_huge_file_counts_by_its_size_start_and_end(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    digests = set()
    for size, end in ((30_000_000, b"a"), (30_000_000, b"b"), (30_000_001, b"b")):
        with (folder / "weights.bin").open("wb") as stream:
            stream.truncate(size - 1)
            stream.seek(size - 1)
            stream.write(end)
        digests.add(load_skill(folder / "SKILL.md").digest)
    assert len(digests) == 3


def test_huge_skill_md_is_rejected(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate", body="x" * MAX_FILE_BYTES)
    error = refused(folder / "SKILL.md")
    assert error.where.endswith("SKILL.md")
    assert "1,000,0" in error.problem


@pytest.mark.parametrize("target", ["secret.txt", "secrets", "no-such-file"])
def test_link_out_of_the_folder_is_a_warning_and_not_followed(
    tmp_path: Path, target: str
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "more.txt").write_text("secret")
    folder = write_skill(tmp_path / "gate")
    before = load_skill(folder / "SKILL.md").digest
    (folder / "references").mkdir()
    (folder / "references" / "link").symlink_to(tmp_path / target)
    skill = load_skill(folder / "SKILL.md")
    (folder / "references" / "more").symlink_to(tmp_path / target)
    assert "(and 1 more)" in load_skill(folder / "SKILL.md").warnings[0].message
    (warning,) = skill.warnings
    assert (warning.code, warning.level) == ("skill-link", "warning")
    assert (
        "'references/link' is a symbolic link out of the skill's folder"
        in warning.message
    )
    assert skill.digest == before
    assert files_of(folder) == ["SKILL.md"]


def test_skill_md_linked_from_outside_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "SKILL.md").symlink_to(
        write_skill(tmp_path / "other") / "SKILL.md"
    )
    assert (
        "out of the skill's folder" in refused(tmp_path / "gate" / "SKILL.md").problem
    )


def test_links_inside_the_folder_are_allowed(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "references").mkdir()
    (folder / "references" / "more.md").write_text("more")
    (folder / "more.md").symlink_to("references/more.md")
    (folder / "refs").symlink_to("references")
    assert load_skill(folder / "SKILL.md").warnings == ()


def test_link_to_itself_does_not_crash(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "loop").symlink_to("loop")
    assert load_skill(folder / "SKILL.md").name == "gate"
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "SKILL.md").symlink_to("SKILL.md")
    assert refused(tmp_path / "door" / "SKILL.md").where.endswith("SKILL.md")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_pipe_is_never_read(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    os.mkfifo(folder / "pipe")
    assert files_of(folder) == ["SKILL.md"]
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")
    assert "not a SKILL.md" in refused(folder / "SKILL.md").problem


@pytest.mark.parametrize("link", ["gate", "other"])
def test_folder_itself_may_be_a_link(tmp_path: Path, link: str) -> None:
    real = write_skill(tmp_path / "real" / "gate")
    (tmp_path / link).symlink_to(real)
    skill = load_skill(tmp_path / link / "SKILL.md")
    assert (skill.name, skill.warnings) == ("gate", ())


def test_other_skills_in_the_folder_are_not_part_of_it(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "skills").mkdir()
    (folder / "skills" / "README.md").write_text("All of them.")
    before = load_skill(folder / "SKILL.md").digest
    inner = write_skill(folder / "skills" / "door")
    (inner / "scripts").mkdir()
    (inner / "scripts" / "run.py").write_text("1")
    assert load_skill(folder / "SKILL.md").digest == before
    assert files_of(folder) == ["SKILL.md", "skills/README.md"]
    assert files_of(inner) == ["SKILL.md", "scripts/run.py"]


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
    (folder / ".claude/worktrees/try").mkdir(parents=True)
    (folder / ".claude/worktrees/try/.git").write_text(
        "gitdir: ../../.git/worktrees/try"
    )
    for name in (
        *("skill_meta.json", "skill_results.json", "evals/evals.json", ".git/HEAD"),
        *("node_modules/x/index.js", "scripts/__pycache__/run.pyc", "env/pyvenv.cfg"),
        *(".claude/worktrees/try/README.md",),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not taught")
        assert load_skill(file).digest == seen[-1]


def test_digest_does_not_depend_on_the_location(tmp_path: Path) -> None:
    one, other = (
        write_skill(tmp_path / "a" / "gate"),
        write_skill(tmp_path / "b" / "gate"),
    )
    assert load_skill(one / "SKILL.md").digest == load_skill(other / "SKILL.md").digest


def test_a_pipe_is_no_file_of_a_case(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="'pipe' is not a regular file; name a file"):
        read_skill_file(tmp_path, "pipe")
