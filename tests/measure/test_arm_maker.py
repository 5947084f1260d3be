"""What of a skill's folder belongs to its cases."""

from pathlib import Path

from pytest_upskill.measure.arm_maker import ArmMaker, files_of_cases
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.context import load_for_run
from support.agents import write_files
from support.kit import write_skill


def test_files_that_cases_compare_with_are_left_out_unless_the_skill_names_them(
    tmp_path: Path,
) -> None:
    text = "---\nname: x\ndescription: d\n---\nFill in assets/template.md.\n"
    (tmp_path / "SKILL.md").write_text(text)
    (tmp_path / "assets").mkdir()
    for name in ("assets/template.md", "want.md", "hidden.py"):
        (tmp_path / name).write_text("text")
    compared = {
        "a": {"equals_file": "./assets/template.md"},
        "b": {"equals_file": "want.md"},
    }
    hidden = {"run": "x", "hidden_files": {"t.py": {"file": "hidden.py"}}}
    case = Case(
        "c", "Go.", expected={"files": compared, "command": hidden}, workspace="start"
    )
    for references in (False, True):
        skill = load_for_run(tmp_path / "SKILL.md", Settings(references=references))
        assert files_of_cases(skill, [case]) == (
            "fixtures",
            "hidden.py",
            "start",
            "want.md",
        )


def test_files_of_cases_in_any_form_are_not_installed(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    write_files(
        folder, {"eval.yaml": "stimuli:", "cases/own.toml": "x", "kept.md": "x"}
    )
    skill = load_for_run(folder / "SKILL.md", Settings())
    files = [folder / "cases/own.toml", tmp_path / "elsewhere.json"]
    _, arm = ArmMaker(Settings()).arms(skill, agents=True, case_files=files)
    [copy] = arm.skills
    assert [file.path for file in copy.files()] == ["SKILL.md", "kept.md"]
