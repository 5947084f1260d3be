"""What agents get of a bundle: its skills, or the whole plugin."""

import json
from pathlib import Path

import pytest

from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.settings import Settings
from pytest_upskill.skills.bundle import Bundle, load_entry, without_skills
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.folder import MANIFEST
from pytest_upskill.trials.arm import Arm, SkillCopy
from pytest_upskill.trials.choice import choice_of
from pytest_upskill.trials.trial import Task, task_of
from support.agents import write_files
from support.kit import commit_all, write_skill
from support.plugins import skill_text, write_plugin

CASE = Case("a", "How?", {"contains": ["x"]})


def arms(entry: Path, settings: Settings = Settings()) -> list[Arm]:  # noqa: B008
    maker = ArmMaker(settings)
    return list(maker.arms(load_entry(entry, settings), agents=True))


def task(arm: Arm, agent: str) -> Task:
    return task_of(CASE, agent, arm, Settings())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_plugin(tmp_path / "garden", mcpServers={"w": {"command": "cat"}})
    return tmp_path / "garden"


def test_the_arm_has_all_skills_and_the_baseline_nothing(root: Path) -> None:
    baseline, skill = arms(root / MANIFEST)
    assert (baseline.tested, baseline.skills) == ((), ())
    assert skill.tested == ("boat", "gate")
    assert [(copy.name, copy.plugin) for copy in skill.skills] == [
        ("boat", False),
        ("garden", True),
        ("gate", False),
    ]
    assert choice_of(skill).names == ("boat", "gate")


def test_claude_gets_the_plugin_and_others_its_skills(root: Path) -> None:
    _, skill = arms(root / MANIFEST)
    for agent in ("claude", "claude@2.1.325"):
        plugin = task(skill, agent).plugin
        assert plugin
        paths = [file.path for file in plugin.files()]
        assert paths == [
            *(".claude-plugin/plugin.json", "commands/water.md", "hooks/hooks.json"),
            *("skills/boat/SKILL.md", "skills/gate/SKILL.md"),
        ]
        assert json.loads(plugin.files()[0].data) == {"name": "garden"}
    other = task(skill, "codex")
    assert other.plugin is None
    assert [copy.name for copy in other.skills] == ["boat", "gate"]


def test_a_hook_is_part_of_the_key_where_it_is_installed(root: Path) -> None:
    def keys() -> tuple[str, ...]:
        baseline, skill = arms(root / MANIFEST)
        both = [task(skill, agent) for agent in ("claude", "loop")]
        return (task(baseline, "claude").content, *(task.content for task in both))

    before = keys()
    (root / "hooks/hooks.json").write_text("{}")
    after = keys()
    assert [old == new for old, new in zip(before, after, strict=True)] == [
        True,
        False,
        True,
    ]


def test_files_of_cases_are_in_no_copy(root: Path) -> None:
    cases = [{"id": "a", "input": "?", "expected": {"equals_file": "answers/a.txt"}}]
    write_files(
        root,
        {
            "skill_meta.json": json.dumps({"cases": cases}),
            "answers/a.txt": "42",
            "fixtures/a.csv": "1",
            "kept.txt": "1",
        },
    )
    own = [{"id": "b", "input": "?", "expected": {"equals_file": "right.txt"}}]
    write_skill(root / "skills/gate", own)
    write_files(
        root, {"skills/gate/right.txt": "43", "skills/gate/fixtures/b.csv": "2"}
    )
    _, skill = arms(root / MANIFEST)
    paths = {file.path for copy in skill.skills for file in copy.files()}
    assert "kept.txt" in paths
    assert not any(
        "fixtures" in path or "right" in path or "answers" in path for path in paths
    )


def test_the_plugin_of_a_ref_is_that_of_then(root: Path) -> None:
    commit_all(root.parent)
    before = SkillCopy.of("garden", root, plugin=True).files()
    assert SkillCopy.of("garden", root, "main", plugin=True).files() == before
    write_files(root, {"skills/pond/SKILL.md": skill_text("pond", "Fish.")})
    (root / "commands/water.md").unlink()
    _, previous, skill = arms(root / MANIFEST, Settings(against="main"))
    assert (previous.tested, skill.tested) == (
        ("boat", "gate"),
        ("boat", "gate", "pond"),
    )
    plugin = task(previous, "claude").plugin
    assert plugin
    assert plugin.files() == before


def test_a_skill_that_is_left_out_is_not_in_the_plugin_either(root: Path) -> None:
    bundle = load_entry(root / MANIFEST, Settings())
    assert isinstance(bundle, Bundle)
    less = without_skills(bundle, {"gate"})
    assert "gate" not in less.text
    _, arm = ArmMaker(Settings()).arms(less, agents=True)
    assert arm.tested == ("boat",)
    plugin = task(arm, "claude").plugin
    assert plugin
    paths = [file.path for file in plugin.files()]
    assert "skills/gate/SKILL.md" not in paths
    assert "skills/boat/SKILL.md" in paths


def test_a_folder_of_skills_is_no_plugin(tmp_path: Path) -> None:
    for name in ("gate", "boat"):
        write_skill(tmp_path / "team" / name)
    settings = Settings(bundle=True)
    _, skill = arms(tmp_path / "team", settings)
    assert skill.tested == ("boat", "gate")
    assert task(skill, "claude").plugin is None
