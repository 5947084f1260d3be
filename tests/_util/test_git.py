"""The commit of a project."""

from pathlib import Path

from pytest_upskill._util.git import Commit, commit_of
from support.kit import commit_all, write_skill


def test_the_commit_is_dirty_if_a_skill_has_uncommitted_changes(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    skill = write_skill(tmp_path / "skills/gate")
    commit_all(tmp_path)
    clean = commit_of(tmp_path, ["skills/gate"])
    assert clean
    assert len(clean.id) == 40
    assert not clean.dirty
    (tmp_path / "report.html").write_text("new, but of no skill")
    assert commit_of(tmp_path, ["skills/gate"]) == clean
    (skill / "more.md").write_text("new")
    assert commit_of(tmp_path, ["skills/gate"]) == Commit(clean.id, dirty=True)
    (skill / "more.md").unlink()
    (skill / "SKILL.md").write_text("changed")
    assert commit_of(tmp_path) == Commit(clean.id, dirty=True)
