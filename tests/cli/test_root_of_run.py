"""Where commands keep answers."""

from pathlib import Path

from pytest_upskill.cli.project import root_of_run


def test_answers_are_kept_in_the_project_or_right_here(tmp_path: Path) -> None:
    inside = tmp_path / "project/skills"
    inside.mkdir(parents=True)
    assert root_of_run(inside) == inside  # never in the root of the file system
    (tmp_path / "project/pytest.ini").touch()
    assert root_of_run(inside) == tmp_path / "project"
