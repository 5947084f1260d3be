"""Plugins of Claude Code: what their manifests say, which skills and files they
have.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.skills.context import FilesOnDisk
from pytest_upskill.skills.folder import MANIFEST
from pytest_upskill.skills.plugins import (
    files_on_disk,
    other_parts,
    plugin_name,
    read_manifest,
    server_files,
    skill_places,
    without_servers,
)
from support.agents import write_files
from support.plugins import write_plugin


def places(root: Path) -> list[str]:
    return skill_places(FilesOnDisk(root), read_manifest(root / MANIFEST))


def plugin(root: Path, manifest: dict[str, Any], *skills: str) -> Path:
    files = {
        f"{skill}/SKILL.md".removeprefix("/"): "---\nname: x\n---\nx\n"
        for skill in skills
    }
    write_files(root, {MANIFEST: json.dumps({"name": "p", **manifest}), **files})
    return root


@pytest.mark.parametrize(
    ("manifest", "skills", "found"),
    [
        (
            {},
            ("skills/a", "skills/b", "skills/deep/c", "other/d"),
            ["skills/a", "skills/b"],
        ),
        ({"skills": "./more/"}, ("skills/a", "more/b"), ["skills/a", "more/b"]),
        ({"skills": ["./one", "./skills/a"]}, ("skills/a", "one"), ["skills/a", "one"]),
        ({"skills": "./.claude/skills"}, (".claude/skills/a",), [".claude/skills/a"]),
        ({}, ("",), [""]),
        ({}, ("", "skills/a"), ["skills/a"]),
        ({"skills": ["./"]}, ("", "skills/a"), ["skills/a", ""]),
        ({"skills": ["./gone"]}, (), []),
    ],
)
def test_skills_are_found_where_claude_code_finds_them(
    tmp_path: Path, manifest: dict[str, Any], skills: tuple[str, ...], found: list[str]
) -> None:
    assert places(plugin(tmp_path, manifest, *skills)) == found


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{\n "name": "p",\n}', 3, "invalid JSON"),
        ('{\n "version": "1"\n}', 1, "name: missing"),
        ('{\n\n "name": 3\n}', 3, "name: must be a string"),
        ('{\n "name": "p",\n "skills": {"a": 1}\n}', 3, "skills"),
        (
            '{\n "name": "p",\n "skills": ["./a",\n "../b"]\n}',
            4,
            "is not in the plugin",
        ),
        ('{\n "name": "p",\n "skills": "/etc"\n}', 3, "is not in the plugin"),
        ("[]", 1, "must be an object"),
    ],
)
def test_a_broken_manifest_is_one_message_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    write_files(tmp_path, {MANIFEST: text})
    with pytest.raises(SkillError) as raised:
        read_manifest(tmp_path / MANIFEST)
    assert f"plugin.json:{line}:" in f"{raised.value.where}:"
    assert problem in raised.value.problem
    assert plugin_name(tmp_path) == tmp_path.name


def test_what_only_claude_code_has_of_it(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden", agents="./team/rose.md")
    manifest = read_manifest(root / MANIFEST)
    words = other_parts(FilesOnDisk(root), manifest)
    assert words == ("commands", "subagents", "hooks")
    bare = plugin(tmp_path / "bare", {}, "skills/a")
    assert other_parts(FilesOnDisk(bare), read_manifest(bare / MANIFEST)) == ()


def test_all_files_but_cases_secrets_and_hidden_ones_are_installed(
    tmp_path: Path,
) -> None:
    more = (
        *(
            "lib/a.py",
            "evals/evals.json",
            "skills/gate/evals/evals.json",
            ".env",
            "lib/.env",
        ),
        *(
            ".github/x.yml",
            "node_modules/x/y.js",
            ".cmds/one.md",
            "skills/gate/references/a.md",
        ),
        *("skill_results.json", "templates/t/SKILL.md", "templates/t/evals/a.json"),
    )
    files = dict.fromkeys(more, "x")
    root = write_plugin(tmp_path / "garden", files=files, commands=["./.cmds/one.md"])
    (tmp_path / "shared/pond").mkdir(parents=True)
    (tmp_path / "shared/pond/SKILL.md").write_text("---\nname: pond\n---\nx\n")
    (root / "skills/pond").symlink_to("../../shared/pond")
    (root / "out.txt").symlink_to("/etc/hostname")
    manifest = read_manifest(root / MANIFEST)
    assert list(files_on_disk(root, manifest, places(root))) == [
        ".claude-plugin/plugin.json",
        ".cmds/one.md",
        "commands/water.md",
        "hooks/hooks.json",
        "lib/a.py",
        "skills/boat/SKILL.md",
        "skills/gate/SKILL.md",
        "skills/gate/references/a.md",
        "skills/pond/SKILL.md",
        "templates/t/SKILL.md",
    ]


def test_mcp_servers_are_taken_out_of_a_manifest(tmp_path: Path) -> None:
    root = write_plugin(tmp_path / "garden", mcpServers="./servers.json")
    manifest, data = read_manifest(root / MANIFEST), (root / MANIFEST).read_bytes()
    assert json.loads(without_servers(data, manifest)) == {"name": "garden"}
    assert server_files(manifest) == {".mcp.json", "servers.json"}
    bare = read_manifest(plugin(tmp_path / "bare", {}) / MANIFEST)
    assert without_servers(b"{ }", bare) == b"{ }"
