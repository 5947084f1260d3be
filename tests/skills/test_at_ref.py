"""A skill as it is at a git ref."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.context import load_for_run, require_ref
from pytest_upskill.skills.skill import Skill
from pytest_upskill.trials.arm import arms_of
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import trials_of
from support.kit import BODY, commit_all, skill_with_a_past, write_skill

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

OLD = "Nobody knows how the gate opens."

CASE = Case("open-gate", "How do I open it?", files=(("a.txt", "one\ntwo\n"),))


def at(ref: str | None, folder: Path, **more: Any) -> Skill:
    return load_for_run(folder / "SKILL.md", Settings(against=ref, **more))


@pytest.fixture(autouse=True)
def fresh_refs() -> None:
    require_ref.cache_clear()


@pytest.mark.parametrize(
    "old",
    [
        b"---\nname: other\n---\n\nOld.\n",
        b"\xef\xbb\xbf---\r\nname: [\r\n---\r\nOld.\r\n",
        b"Old.",
        b"\n<!-- x -->\n---\nname: a: b\n----\nOld.\n",
        b"---\nname: gate\n\nOld.\n",
    ],
)
def test_an_old_file_need_not_be_a_valid_one(tmp_path: Path, old: bytes) -> None:
    write_skill(tmp_path / "gate")
    (tmp_path / "gate/SKILL.md").write_bytes(old)
    commit_all(tmp_path)
    assert at("HEAD", write_skill(tmp_path / "gate")).previous == "Old."


def test_the_old_file_may_have_the_other_name(tmp_path: Path) -> None:
    write_skill(tmp_path / "gate", body=OLD)
    (tmp_path / "gate/SKILL.md").rename(tmp_path / "gate/skill.md")
    commit_all(tmp_path)
    (tmp_path / "gate/skill.md").unlink()
    assert at("main", write_skill(tmp_path / "gate")).previous == OLD


def test_a_git_hook_may_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill = skill_with_a_past(tmp_path, old=OLD)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", "elsewhere")
    assert at("main", skill).previous == OLD


def test_another_failure_of_git_is_told(tmp_path: Path) -> None:
    skill = skill_with_a_past(tmp_path, old=OLD)
    require_ref("main", skill.resolve())
    shutil.rmtree(tmp_path / ".git/objects")
    with pytest.raises(SettingsError, match="against main: git failed in"):
        at("main", skill)


def test_the_arms_differ_by_the_text_of_the_skill_only(tmp_path: Path) -> None:
    folder = skill_with_a_past(tmp_path, old=OLD)
    skill = at("main", folder)
    assert (skill.previous, at(None, folder).previous) == (OLD, None)
    arms = arms_of(skill, Settings())
    trials = trials_of("gate", CASE, Subject(CHAT, "haiku"), arms, settings=Settings())
    baseline, previous, new = trials
    assert (baseline.arm, previous.arm, new.arm) == ("baseline", "previous", "skill")
    assert previous.question.system == new.question.system.replace(BODY, OLD)
    assert previous.question.messages == new.question.messages
