"""Checks of agents in a run: files, a command with hidden files, the use of the
skill.
"""

import json
from typing import Any

import pytest

from support.kit import write_skill
from support.runs import run_skills
from support.sandboxes import needs_bwrap

CASE: dict[str, Any] = {
    "id": "sums",
    "input": "Write add(a, b) to sums.py.",
    "context": {"files": {"data.csv": "1\n2\n"}},
    "expected": {
        "command": {
            "run": "python3 test_it.py",
            "contains": "ok",
            "hidden_files": {"test_it.py": {"file": "evals/test_it.py"}},
        },
        "files": {"sums.py": {"contains": "def add"}, "test_it.py": "absent"},
        "unchanged": "data.csv",
        "skill_activated": True,
    },
}
TEST = "import sums\nassert sums.add(1, 2.001) == 3\nprint('ok')\n"


def write(rounded: str) -> dict[str, Any]:
    content = f"def add(a, b):\n    return {rounded}\n"
    return {"tool": "write", "arguments": {"path": "sums.py", "content": content}}


RULES = [
    {
        "offered": "skill",
        "turn": 1,
        "calls": [{"tool": "skill", "arguments": {"name": "gate"}}],
    },
    {"offered": "skill", "turn": 2, "calls": [write("round(a + b)")]},
    {"turn": 1, "calls": [write("a + b")]},
    {"answer": "I wrote sums.py."},
]


@needs_bwrap
def test_arms_are_graded_by_what_they_left(pytester: pytest.Pytester) -> None:
    skill = write_skill(pytester.path / "skills/gate", [CASE])
    (skill / "evals").mkdir()
    (skill / "evals/test_it.py").write_text(TEST)
    (pytester.path / "a.json").write_text(json.dumps(RULES))
    run = run_skills(pytester, "scripted:a.json", "--skill-agent", "loop")
    assert run.outcomes == {"passed": 1}
    with_skill, without = (
        run.record(arm="skill")["checks"],
        run.record(arm="baseline")["checks"],
    )
    assert [check["passed"] for check in with_skill] == [True] * 6
    assert [(check["check"], check["passed"]) for check in without] == [
        *(("command", False), ("command", False), ("files", True), ("files", True)),
        *(("unchanged", True), ("skill_activated", True)),
    ]
    assert "exit 1, not 0" in without[0]["reason"]
    assert "AssertionError" in without[0]["reason"]
