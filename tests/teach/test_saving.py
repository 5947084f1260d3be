"""Where a skill is saved, and what is never overwritten."""

from pathlib import Path

import pytest

from pytest_upskill.skills.skill import load_skill
from pytest_upskill.teach.teach_run import free_name
from support.fake_models import (
    COLOURS,
    FakeModels,
    Project,
    body,
    lines,
)
from support.kit import write_skill


def test_a_skill_is_replaced_only_with_force(project: Project) -> None:
    folder = write_skill(project.folder / "mine")
    fake = FakeModels()
    status, _, error = project.generate(fake, "-o", "mine")
    assert (status, "--output mine: a skill already exists here" in error) == (2, True)
    assert fake.asked == []
    old = (folder / "SKILL.md").read_text()
    (folder / "extra.txt").write_text("kept too")
    status, data = project.taught(fake, "-o", "mine", "--force", "--no-eval")
    assert status == 0
    assert load_skill(folder / "SKILL.md").name == "mine"
    kept = project.folder / ".upskill/teach/mine/before"
    assert data["kept"] == str(kept)
    assert (kept / "SKILL.md").read_text() == old
    assert (kept / "extra.txt").read_text() == "kept too"
    assert not (folder / "extra.txt").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "/proc/lamp"], "/proc/lamp: /proc is not writable"),
        (["-o", "dangling"], "dangling: dangling is a broken link"),
        (["-o", "plain/lamp"], "plain/lamp: plain is a file, not a folder"),
        (["--name", "lamp"], "skills/lamp: skills is a file, not a folder"),
        ([], "skills: skills is a file, not a folder\n  Choose another"),
    ],
)
def test_an_unwritable_folder_is_found_before_the_first_call(
    project: Project, words: list[str], told: str
) -> None:
    (project.folder / "dangling").symlink_to("gone")
    for name in ("plain", "skills"):
        (project.folder / name).write_text("a file")
    fake = FakeModels()
    status, _, error = project.generate(fake, *words)
    assert (status, told in error) == (2, True), error
    assert fake.asked == []
    assert project.files() == ["plain", "skills"]


def test_a_link_to_a_skill_stays_a_link(project: Project) -> None:
    folder = write_skill(project.folder / "elsewhere/mine")
    (project.folder / "mine").symlink_to(folder)
    status, _, error = project.generate(
        FakeModels(), "-o", "mine", "--force", "--no-eval"
    )
    assert status == 0, error
    assert (project.folder / "mine").is_symlink()
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS)


def test_a_taken_name_gets_a_number_unless_forced(
    project: Project,
) -> None:
    old = (write_skill(project.skill) / "SKILL.md").read_text()
    status, shown, _ = project.generate(FakeModels(), "--no-eval")
    assert status == 0
    assert "skills/lamp-colours already exists: saved as lamp-colours-2" in lines(shown)
    assert (project.skill / "SKILL.md").read_text() == old
    status, data = project.taught(FakeModels(), "--force", "--no-eval")
    assert (status, data["folder"]) == (0, str(project.skill))
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
    assert Path(data["kept"], "SKILL.md").read_text() == old


def test_a_folder_that_is_no_skill_is_never_replaced(project: Project) -> None:
    project.skill.mkdir(parents=True)
    (project.skill / "mine.txt").write_text("precious")
    status, data = project.taught(FakeModels(), "--force", "--no-eval")
    assert (status, data["name"]) == (0, "lamp-colours-2")
    assert (project.skill / "mine.txt").read_text() == "precious"


def test_kept_skills_stay_where_they_are(project: Project) -> None:
    old = (write_skill(project.folder / "mine") / "SKILL.md").read_text()
    for _ in range(2):
        words = ("-o", "mine", "--force", "--no-eval")
        assert project.generate(FakeModels(), *words)[0] == 0
    kept = project.folder / ".upskill/teach"
    assert (kept / "mine/before/SKILL.md").read_text() == old
    assert body(*COLOURS) in (kept / "mine-2/before/SKILL.md").read_text()


def test_free_names(tmp_path: Path) -> None:
    assert free_name(tmp_path, "gate") == "gate"
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate-2").mkdir()
    assert free_name(tmp_path, "gate") == "gate-3"


def test_a_name_with_dots_leads_out_of_no_folder(project: Project) -> None:
    folder = write_skill(project.folder / "skills/gate", frontmatter="license: MIT\n")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("name: gate", "name: ../../Big Gate"))
    status, data = project.taught(FakeModels(), "--from", str(folder), "-o", "made")
    assert status == 0
    (kept,) = (project.folder / ".upskill/teach").iterdir()
    assert (kept.name, data["name"]) == ("made", "made")
    assert sorted(path.name for path in project.folder.parent.iterdir()) == [
        "home",
        "project",
    ]
