"""Cases that invoke a skill, in a whole run: by our agent, and in a plain
completion.
"""

from typing import Any

import pytest

from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import run_skills
from support.sandboxes import needs_bwrap

BODY = "# Wick\n\nTrim it with `lamp trim --half $0`, and never before noon.\n"
CASES: list[dict[str, Any]] = [
    {"id": "plain", "input": "L4", "expected": {"contains": "--half L4"}},
    {
        "id": "named",
        "invoke": "/wick L5",
        "input": "Trim L5.",
        "expected": {"contains": "--half"},
    },
]


def trims(asked: Asked) -> Reply:
    """Knows the command only where it is written."""
    said = str(asked.body)
    return Reply(
        said[at : at + 20] if (at := said.find("lamp trim")) >= 0 else "No idea."
    )


@needs_bwrap
@pytest.mark.parametrize("agent", ["chat", "loop"])
def test_a_skill_for_users_only_is_measured_by_its_text(
    pytester: pytest.Pytester, agent: str
) -> None:
    skill = write_skill(pytester.path / "skills/wick", CASES, body=BODY)
    file = skill / "SKILL.md"
    file.write_text(
        file.read_text().replace("---\n", "---\ndisable-model-invocation: true\n", 1)
    )
    with LoopbackServer(trims) as server:
        done = run_skills(pytester, server, "--skill-agent", agent, "-W", "error")
        again = run_skills(pytester, server, "--skill-agent", agent, "-W", "error")
    assert done.outcomes["passed"] == 2
    arms = {"skill": "passed", "baseline": "failed"}
    assert {r["arm"]: r["outcome"] for r in done.records} == arms
    assert all(record["stored"] for record in again.records)
    said = [str(asked.body) for asked in server.asked]
    assert sum("L4" in body for body in said) == sum("L5" in body for body in said) == 2
    baseline = [body for body in said if "noon" not in body]
    assert len(baseline) == 2
    assert not any("wick" in body for body in baseline)
    row = done.summary
    if agent == "loop":
        assert (row["activation"]["count"], row["activation"]["trials"]) == (2, 2)
        assert "never" not in row["sentence"]


def test_a_wrong_name_is_told_with_its_line(pytester: pytest.Pytester) -> None:
    cases = [CASES[0], {**CASES[1], "invoke": "/wcik L5"}]
    write_skill(pytester.path / "skills/wick", cases, body=BODY)
    with LoopbackServer(lambda _: Reply("lamp trim --half L4")) as server:
        done = run_skills(pytester, server)
    assert done.outcomes == {"passed": 1, "failed": 1}
    assert (
        "skill_meta.json:1: cases[1].invoke: 'wcik' is no skill under test"
        in done.screen
    )
