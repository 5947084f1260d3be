"""A skill by its name: where it is looked for, and what is said if there is none,
or two.
"""

from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.skills.named_skill import path_or_name
from support.kit import write_skill


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Skills in a folder of skills, in a plugin, and one whose folder has another
    name.
    """
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "skills/gate")
    write_skill(tmp_path / "plugins/a/skills/door")
    other = write_skill(tmp_path / "skills/other") / "SKILL.md"
    other.write_text("---\nname: window\ndescription: d\n---\nx\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("gate", "skills/gate"),
        ("window", "skills/other"),
        ("other", "skills/other"),
        ("door", "plugins/a/skills/door"),
        ("skills", "skills"),
    ],
)
def test_a_skill_is_found_by_its_folder_or_its_name(
    project: Path, name: str, folder: str
) -> None:
    path = path_or_name(project / name, project, [project / "skills"])
    assert path == project / folder


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            "gaet",
            'no such file or folder, and no skill of this name (did you mean "gate"?)',
        ),
        (
            "windw",
            (
                "no such file or folder, and no skill of this name (did you mean"
                ' "window"?)'
            ),
        ),
        ("zebra", "no such file or folder, and no skill of this name"),
        ("skills/gaet", 'no such file or folder (did you mean "gate"?)'),
        ("no/where", "no such file or folder"),
    ],
)
def test_another_name_gets_a_guess(project: Path, written: str, problem: str) -> None:
    with pytest.raises(SkillError) as caught:
        path_or_name(project / written, project, [project / "skills"])
    assert (caught.value.where, caught.value.problem) == (written, problem)


def test_two_skills_of_a_name_are_both_named(project: Path) -> None:
    write_skill(project / "plugins/b/skills/door", body="Another door.")
    with pytest.raises(SkillError, match="2 skills have this name") as caught:
        path_or_name(project / "door", project, [])
    assert (
        caught.value.hint
        == "Name its folder: plugins/a/skills/door, plugins/b/skills/door"
    )


def test_a_home_folder_is_not_searched(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: project)
    assert path_or_name(project / "gate", project, [project / "skills"]).name == "gate"
    with pytest.raises(SkillError, match="no skill of this name"):
        path_or_name(project / "door", project, [project / "skills"])
