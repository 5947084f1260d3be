"""What agents have in the trials of a case."""

import pickle
from pathlib import Path

from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.trials.installing import installed
from pytest_upskill.trials.outfit import Outfit
from pytest_upskill.trials.trial import trials_of
from support.kit import write_skill


def test_files_of_a_case_cross_to_another_process_once(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    settings = Settings(runs=5)
    case = Case("one", "Go.", files=(("data.txt", "x" * 100_000),))
    outfit = Outfit.of("loop", "1", skill, settings)
    trials = trials_of("gate", skill, case, "m", settings, outfit=outfit)
    assert len(trials) == 10
    assert len(pickle.dumps(trials)) < 200_000


def test_arms_differ_by_the_tested_skill_alone(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    case = Case("one", "Go.", files=(("data.txt", "x"),), setup="make it")
    outfit = Outfit.of("loop", "1", skill, Settings())
    base, own = outfit.tasks(case)["baseline"], outfit.tasks(case)["skill"]
    assert base.tested is None
    assert own.tested is not None
    assert {**vars(base), "skills": ()} == {**vars(own), "skills": ()}


def test_a_trial_without_a_sandbox_is_not_taken_for_one_in_a_sandbox(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    kinds = ("auto", "bwrap", "none")
    outfits = [Outfit.of("loop", "1", skill, Settings(sandbox=kind)) for kind in kinds]
    auto, bwrap, none = (outfit.tasks(Case("one", "Go.")) for outfit in outfits)
    for arm, task in none.items():
        assert auto[arm].content == bwrap[arm].content != task.content


def test_the_tested_skill_has_no_better_place_than_others(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    others = tuple(installed(name, write_skill(tmp_path / name)) for name in ("lamp", "boat"))
    tasks = Outfit.of("loop", "1", skill, Settings(), others).tasks(Case("one", "Go."))
    assert [one.name for one in tasks["baseline"].skills] == ["boat", "lamp"]
    assert [one.name for one in tasks["skill"].skills] == ["boat", "gate", "lamp"]
