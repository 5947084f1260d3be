"""Lint rules for checks of agents."""

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.lint import Finding, lint_skill
from support.kit import write_skill


def lint(folder: Path, expected: Any, **more: Any) -> list[Finding]:
    skill = write_skill(
        folder / "gate", [{"input": "Open it.", "expected": expected, **more}]
    )
    for path in (
        "references/codes.md",
        "scripts/open.sh",
        "evals/want.txt",
        "want.txt",
    ):
        (skill / path).parent.mkdir(exist_ok=True)
        (skill / path).write_text("x")
    found = lint_skill(skill / "SKILL.md", judge=False, lift=0.2)
    return [finding for finding in found if finding.code != "few-cases"]


GOOD: list[dict[str, Any]] = [
    {"files": {"a.txt": {"equals_file": "evals/want.txt"}}},
    {"command": {"run": "x", "hidden_files": {"t.py": {"file": "evals/want.txt"}}}},
    {
        "unchanged": ["data.csv", "*.csv"],
        "skill_activated": True,
        "commands_run": "sort",
    },
    {"tools_used": ["bash", "Write"], "tools_not_used": "anything"},
    {
        "references_read": "references/codes.md",
        "scripts_run": "./scripts/open.sh",
        "contains": "x",
    },
    {"skill_activated": True, "files": "a.txt"},
    {"contains": "x", "not": {"scripts_run": "gone.sh"}},
]


@pytest.mark.parametrize("expected", GOOD)
def test_good_checks_have_no_findings(tmp_path: Path, expected: Any) -> None:
    assert lint(tmp_path, expected, context={"files": {"data.csv": "1"}}) == []


@pytest.mark.parametrize(
    ("expected", "level", "code", "words"),
    [
        (
            {"files": {"a": {"equals_file": "evals/gone.txt"}}},
            "error",
            "cases-invalid",
            "'evals/gone.txt' not found",
        ),
        (
            {"command": {"run": "x", "hidden_files": {"t": {"file": "gone"}}}},
            "error",
            "cases-invalid",
            "'gone' not found",
        ),
        (
            {"files": {"a": {"equals_file": "want.txt"}}},
            "warning",
            "expected-in-skill",
            '"want.txt" is part of the skill',
        ),
        (
            {
                "command": [
                    "y",
                    {"run": "x", "hidden_files": {"t": {"file": "scripts/open.sh"}}},
                ]
            },
            "warning",
            "expected-in-skill",
            '"scripts/open.sh"',
        ),
        (
            {"unchanged": "data.cvs"},
            "error",
            "check-impossible",
            'the workspace starts without "data.cvs" (did you mean "data.csv"?)',
        ),
        (
            {"contains": "x", "references_read": "references/code.md"},
            "error",
            "check-impossible",
            'not a file of the skill (did you mean "references/codes.md"?)',
        ),
        ({"tools_used": "bahs"}, "warning", "tool-unknown", '(did you mean "bash"?)'),
        (
            {"tool_order": ["skill", "bash"]},
            "warning",
            "tool-unknown",
            "baseline has no tool",
        ),
        ({"skill_activated": True}, "warning", "baseline-passes", "always passes"),
    ],
)
def test_checks_that_can_not_work(
    tmp_path: Path, expected: Any, level: str, code: str, words: str
) -> None:
    (finding,) = lint(tmp_path, expected, context={"files": {"data.csv": "1"}})
    assert (finding.level, finding.code) == (level, code)
    assert words in finding.message


def test_tools_of_servers_are_not_known(tmp_path: Path) -> None:
    assert lint(tmp_path, {"tools_used": "mcp__tides__high_water"}) == []


def test_what_a_setup_makes_is_not_known(tmp_path: Path) -> None:
    assert lint(tmp_path, {"unchanged": "made.txt"}, setup="touch made.txt") == []
