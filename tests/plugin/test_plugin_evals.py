"""Evals of a plugin in a run: arms, the workspace of a script,
the skill that is opened.
"""

import json

import pytest

from support.runs import run_skills
from support.sandboxes import needs_bwrap

FILES = {
    ".claude-plugin/plugin.json": '{"name": "port"}',
    "skills/berths/SKILL.md": (
        "---\nname: berths\ndescription: x\n---\nLong ships moor at L1."
    ),
    "skills/tides/SKILL.md": (
        "---\nname: tides\ndescription: x\n---\nAsk for the high water."
    ),
    "evals/lib.sh": 'echo "$1" > ships.txt',
    "evals/late/case.yaml": (
        "context: {scaffold_script: make.sh}\nexecution: {max_turns: 5}"
    ),
    "evals/late/make.sh": 'bash "$(dirname "$0")/../lib.sh" Teasel',
    "evals/late/prompt.md": (
        "---\ntags: [late]\nallowed_tools: [Bash]\n---\nWhere does she moor?"
    ),
    "evals/late/graders/answer.md": "---\ntype: regex\npattern: L1$\n---\n",
    "evals/late/graders/file.md": (
        """\
---
type: regex
target: {source: file, path: ships.txt}
pattern: ^Teasel$
flags: m
---
"""
    ),
    "evals/late/graders/hidden.md": (
        """\
---
type: regex
target: trace
match: not_contains
---
scaffold"""
    ),
    "evals/late/graders/listed.md": (
        """\
---
type: tool_used
tool: Bash
input_match: ls -a
max: 1
---
"""
    ),
    "evals/late/graders/opened.md": (
        """\
---
type: tool_used
tool: Skill
arm: with-only
input_match: 'port:berths'
---
"""
    ),
    "evals/soon/prompt.md": "When?",
    "evals/soon/graders/a.md": "---\ntype: regexp\n---\n",
}
LISTS = {"calls": [{"tool": "bash", "arguments": {"command": "ls -a"}}]}
RULES = [
    {
        "offered": "skill",
        "turn": 1,
        "calls": [{"tool": "skill", "arguments": {"name": "berths"}}],
    },
    {"offered": "skill", "turn": 2, **LISTS},
    {"turn": 1, **LISTS},
    {"offered": "skill", "answer": "At L1"},
    {"answer": "At L2"},
]


@needs_bwrap
def test_both_arms_start_from_what_the_script_made(pytester: pytest.Pytester) -> None:
    for path, text in FILES.items():
        file = pytester.path / "port" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (pytester.path / "a.json").write_text(json.dumps(RULES))
    args = ("--skill-agent", "loop", "-v", "-W", "default")
    run = run_skills(pytester, "scripted:a.json", *args, skill="port")
    assert run.outcomes == {"passed": 1, "failed": 1, "warnings": 1}
    with_skill, without = (
        run.record(arm=arm)["checks"] for arm in ("skill", "baseline")
    )
    assert [check["passed"] for check in with_skill] == [True] * 5
    assert [check["passed"] for check in without] == [False, True, True, True]
    assert with_skill[-1]["reason"] == "berths was opened"
    assert "graders/a.md:2: type: unknown type 'regexp'" in run.screen
    assert "what has no equal here is left out: allowed_tools" in run.screen
