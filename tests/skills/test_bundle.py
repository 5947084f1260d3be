"""Several skills that are tested as one."""

from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.settings import Settings
from pytest_upskill.skills.bundle import (
    Bundle,
    entry_in,
    entry_name,
    find_entries,
    folder_of,
    load_entry,
    skill_files_in,
)
from pytest_upskill.skills.folder import MANIFEST
from pytest_upskill.skills.search import labels_of
from support.agents import write_files
from support.kit import commit_all, write_skill
from support.plugins import BOAT, GATE, skill_text, write_plugin

BUNDLE = Settings(bundle=True)


def loaded(file: Path, settings: Settings = Settings()) -> Bundle:  # noqa: B008
    bundle = load_entry(file, settings)
    assert isinstance(bundle, Bundle)
    return bundle


def found(path: Path, settings: Settings = Settings()) -> list[str]:  # noqa: B008
    files = find_entries(path, settings).files
    return [file.relative_to(path).as_posix() for file in files]


def test_its_text_is_that_of_all_of_its_skills(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden", description="Of gardens.")
    bundle = loaded(root / MANIFEST)
    assert (bundle.name, bundle.description, bundle.folder) == (
        "garden",
        "Of gardens.",
        root,
    )
    assert [member.name for member in bundle.members] == ["boat", "gate"]
    assert bundle.text == f"# Skill: boat\n\n{BOAT}\n\n# Skill: gate\n\n{GATE}"
    assert bundle.plugin
    assert bundle.other_parts == ("commands", "hooks")


def test_its_digest_is_of_every_file_but_cases(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden")
    before = loaded(root / MANIFEST).digest
    (root / "skill_meta.json").write_text("{}")
    assert loaded(root / MANIFEST).digest == before
    (root / "hooks/hooks.json").write_text("{}")
    assert loaded(root / MANIFEST).digest != before


def test_two_skills_of_one_name_are_refused(tmp_path: Path) -> None:
    files = {"skills/other/SKILL.md": skill_text("gate", "Another.")}
    root = write_plugin(tmp_path / "garden", files=files)
    with pytest.raises(SkillError, match=r"have the same name \(gate\)"):
        load_entry(root / MANIFEST, Settings())


def test_a_plugin_without_skills_has_something_else_or_is_refused(
    tmp_path: Path,
) -> None:
    write_files(tmp_path / "empty", {MANIFEST: '{"name": "empty"}'})
    with pytest.raises(SkillError, match="no skill"):
        load_entry(tmp_path / "empty" / MANIFEST, Settings())
    write_files(tmp_path / "empty", {"commands/a.md": "Do it."})
    assert loaded(tmp_path / "empty" / MANIFEST).members == ()


def test_a_plugin_with_cases_of_its_own_is_one_thing(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins/garden")
    write_skill(tmp_path / "loose")
    assert found(tmp_path) == ["loose/SKILL.md", f"plugins/garden/{MANIFEST}"]
    write_skill(tmp_path / "plugins/garden/skills/gate")  # with cases of its own
    assert found(tmp_path) == [
        "loose/SKILL.md",
        f"plugins/garden/{MANIFEST}",
        "plugins/garden/skills/gate/SKILL.md",
    ]


def test_without_cases_of_its_own_its_skills_are_tested_one_by_one(
    tmp_path: Path,
) -> None:
    root = write_plugin(tmp_path / "plugins/garden", cases=())
    skills = ["skills/boat/SKILL.md", "skills/gate/SKILL.md"]
    assert found(tmp_path) == [f"plugins/garden/{skill}" for skill in skills]
    # Named itself: no cases at all, so these would be its own
    assert found(root) == [MANIFEST]
    write_skill(root / "skills/gate")
    assert found(root) == skills
    assert "one by one" in find_entries(root, Settings()).notes[0]
    assert found(root, BUNDLE) == [MANIFEST]
    assert found(root, Settings(tests_file=tmp_path / "any.json")) == [MANIFEST]


def test_a_plugin_that_is_just_a_skill_is_a_skill(tmp_path: Path) -> None:
    write_skill(tmp_path)
    write_files(tmp_path, {MANIFEST: '{"name": "p"}'})
    assert found(tmp_path) == ["SKILL.md"]
    assert entry_in(tmp_path, bundle=False) == tmp_path / "SKILL.md"
    write_files(tmp_path, {"commands/a.md": "Do it."})
    assert found(tmp_path) == [MANIFEST, "SKILL.md"]
    assert entry_in(tmp_path, bundle=False) == tmp_path / MANIFEST


def test_any_folder_of_skills_can_be_a_bundle(tmp_path: Path) -> None:
    root = tmp_path / "team"
    for name in ("gate", "deep/boat"):
        write_skill(root / name)
    assert find_entries(root, BUNDLE).files == (root,)
    bundle = loaded(root, BUNDLE)
    assert (bundle.name, bundle.plugin, bundle.places) == (
        "team",
        False,
        ("deep/boat", "gate"),
    )
    assert folder_of(root) == root
    assert skill_files_in(root) == (root / "deep/boat/SKILL.md", root / "gate/SKILL.md")
    assert find_entries(root / "gate", BUNDLE).files == (root / "gate/SKILL.md",)


def test_a_broken_manifest_is_told_if_the_plugin_is_named(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden")
    (root / MANIFEST).write_text("{\n")
    with pytest.raises(SkillError, match=r"plugin\.json:2:1"):
        find_entries(root, Settings())
    assert f"garden/{MANIFEST}" in found(tmp_path)  # whose tests report it


def test_labels_are_the_names_of_plugins(tmp_path: Path) -> None:
    files = [write_plugin(tmp_path / name) / MANIFEST for name in ("a/x", "b/x")]
    assert [entry_name(file) for file in files] == ["garden", "garden"]
    assert sorted(labels_of(files, entry_name).values()) == ["a/garden", "b/garden"]


def test_at_a_ref_it_has_the_skills_of_then(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden")
    commit_all(tmp_path)
    (root / "skills/boat/SKILL.md").unlink()
    write_files(root, {"skills/pond/SKILL.md": skill_text("pond", "Fish.")})
    bundle = loaded(root / MANIFEST, Settings(against="main"))
    assert [member.name for member in bundle.members] == ["gate", "pond"]
    assert bundle.before == (("boat", "skills/boat"), ("gate", "skills/gate"))
    assert bundle.previous == f"# Skill: boat\n\n{BOAT}\n\n# Skill: gate\n\n{GATE}"


def test_what_is_newer_than_the_ref_has_no_past(tmp_path: Path) -> None:
    write_skill(tmp_path / "x")
    commit_all(tmp_path)
    root = write_plugin(tmp_path / "garden")
    assert loaded(root / MANIFEST, Settings(against="main")).previous is None
