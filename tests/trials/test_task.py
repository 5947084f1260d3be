"""What agents get: the copy of a skill, and the tasks of a case."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case, CaseUser
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.trials import arm
from pytest_upskill.trials.arm import Arm, SkillCopy, arms_of
from pytest_upskill.trials.subject import Subject
from pytest_upskill.trials.trial import sample_of, task_of, trials_of, user_of
from pytest_upskill.trials.user import User
from support.kit import commit_all, write_skill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_skill(tmp_path / "gate")
    kept = ("references/a.md", "scripts/run.sh", "assets/logo.png")
    left = (
        "evals/evals.json",
        "fixtures/in/a.csv",
        ".env",
        "secrets.json",
        "skill_results.json",
    )
    for name in (*kept, *left, "inner/SKILL.md", "inner/more.md", ".hidden/x"):
        file = folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(b"\x00\xff" + name.encode())
    (folder / "scripts/run.sh").chmod(0o755)
    (folder / "link.md").symlink_to("references/a.md")
    (folder / "link2.md").symlink_to("./assets/../link.md")
    (folder / "docs").symlink_to("references")
    (folder / "by-folder.md").symlink_to("docs/a.md")
    (folder / "out.md").symlink_to("/etc/hostname")
    (folder / "up.md").symlink_to("../../gate/../x")
    (folder / "round.md").symlink_to("round.md")
    (folder / "told.json").symlink_to("secrets.json")
    (folder / "case.csv").symlink_to("fixtures/in/a.csv")
    (folder / "cases.json").symlink_to("evals/evals.json")
    return folder


def test_a_copy_is_the_skill_without_its_cases(folder: Path) -> None:
    copy = SkillCopy.of("gate", folder, without=("fixtures/in",)).files()
    paths = ["SKILL.md", "assets/logo.png", "by-folder.md", "link.md", "link2.md"]
    assert [file.path for file in copy] == [*paths, "references/a.md", "scripts/run.sh"]
    assert {file.data for file in copy[2:6]} == {b"\x00\xffreferences/a.md"}
    assert [file.path for file in copy if file.is_executable] == ["scripts/run.sh"]
    assert copy[1].data == b"\x00\xffassets/logo.png"


def test_a_copy_at_a_ref_is_the_same_as_on_disk(folder: Path) -> None:
    commit_all(folder.parent)
    without = ("fixtures/in",)
    assert (
        SkillCopy.of("gate", folder, "main", without).files()
        == SkillCopy.of("gate", folder, None, without).files()
    )
    before = SkillCopy.of("gate", folder).digest
    (folder / "references/a.md").write_text("new", encoding="utf-8")
    assert SkillCopy.of("gate", folder, "main").digest == before
    assert SkillCopy.of("gate", folder).digest != before


def test_the_digest_is_of_paths_contents_and_modes(folder: Path) -> None:
    digests = [SkillCopy.of("gate", folder).digest]
    (folder / "scripts/run.sh").chmod(0o644)
    digests.append(SkillCopy.of("gate", folder).digest)
    (folder / "references/a.md").rename(folder / "references/b.md")
    digests.append(SkillCopy.of("gate", folder).digest)
    assert len(set(digests)) == 3


def test_a_skill_may_be_too_large(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arm, "MOST_FILES", 3)
    with pytest.raises(SkillError, match="too much to install"):
        SkillCopy.of("gate", folder).files()


def test_files_of_a_case_cross_to_another_process_once(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    settings = Settings(runs=5)
    case = Case("one", "Go.", files=(("data.txt", "x" * 100_000),))
    arms = arms_of(skill, settings, agents=True)
    trials = trials_of("gate", case, Subject("loop", "m"), arms, settings=settings)
    assert len(trials) == 10
    assert len(pickle.dumps(trials)) < 200_000


def test_arms_differ_by_the_tested_skill_alone(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    case = Case("one", "Go.", files=(("data.txt", "x"),), setup="make it")
    arms = arms_of(skill, Settings(), agents=True)
    base, own = (task_of(case, "loop", arm, Settings()) for arm in arms)
    assert (base.tested, own.tested) == ((), ("gate",))
    assert replace(own, skills=(), tested=()) == base


def test_a_trial_without_a_sandbox_is_not_taken_for_one_in_a_sandbox(
    tmp_path: Path,
) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    for each in arms_of(skill, Settings(), agents=True):
        case, kinds = Case("one", "Go."), ("auto", "bwrap", "none")
        tasks = [task_of(case, "loop", each, Settings(sandbox=kind)) for kind in kinds]
        auto, bwrap, none = (task.content for task in tasks)
        assert auto == bwrap != none


def test_the_tested_skill_has_no_better_place_than_others(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    others = tuple(
        SkillCopy.of(name, write_skill(tmp_path / name)) for name in ("lamp", "boat")
    )
    baseline, with_skill = arms_of(skill, Settings(), others, agents=True)
    assert [copy.name for copy in baseline.skills] == ["boat", "lamp"]
    assert [copy.name for copy in with_skill.skills] == ["boat", "gate", "lamp"]


def test_the_digest_of_an_arm_is_of_what_is_there(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    other = SkillCopy.of("boat", write_skill(tmp_path / "boat"))
    baseline, with_skill = arms_of(skill, Settings(), agents=True)
    beside = arms_of(skill, Settings(), (other,), agents=True)
    arms = (
        baseline,
        with_skill,
        *beside,
        *arms_of(skill, Settings()),
        Arm("empty", ""),
    )
    assert replace(with_skill, name="whole").digest == with_skill.digest
    assert arms[-3].digest == baseline.digest  # nothing is there
    assert len({arm.digest for arm in arms}) == len(arms) - 1


def test_a_user_is_part_of_the_key_and_the_same_in_both_arms(folder: Path) -> None:
    user = CaseUser(("It is red.",), most=2)
    settings, case = Settings(user_model="cheap"), Case("a", "Open?", user=user)
    base, skill = arms_of(load_skill(folder / "SKILL.md"), Settings(), agents=True)
    assert task_of(case, "loop", base, settings).user == User(
        ("It is red.",), (), 2, "cheap"
    )
    assert task_of(case, "loop", skill, settings).user == user_of(case, settings)
    fixed = Case("a", "Open?", user=CaseUser(replies=("Red.",), most=1))
    assert user_of(fixed, settings) == User((), ("Red.",), 1)
    other = replace(case, user=user._replace(facts=("It is blue.",)))
    cases = [case, other, fixed, Case("a", "Open?")]
    assert len({task_of(one, "loop", base, settings).content for one in cases}) == 4
    assert len({sample_of(one) for one in cases}) == 4
    assert len({case_digest(one) for one in cases}) == 4
    judged = Settings(judge="strict")
    assert (
        judged.model_of_users,
        replace(judged, judge_agent="claude").model_of_users,
    ) == (*("strict", ""),)
