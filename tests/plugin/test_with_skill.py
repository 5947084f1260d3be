"""Checks of answers with the skill alone: they fail tests, and no lift compares
them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.kit import write_script, write_skill
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

DOCS = Path(__file__).parents[2] / "docs/checks.md"


def run(
    pytester: pytest.Pytester, cases: list[dict[str, Any]], *options: str
) -> SkillRun:
    """A model that says "gate up" with the skill, and also "please" without it."""
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(
        pytester.path / "a.json", knows="gate up", does_not="gate up please"
    )
    return run_skills(pytester, model, *options)


def polite(number: int, **common: Any) -> dict[str, Any]:
    expected = {**common, "with_skill": {"contains": "please"}}
    return {"id": f"c{number}", "input": f"How, {number}?", "expected": expected}


def test_they_fail_the_test_but_the_arms_compare_equal(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, [polite(n, contains="gate") for n in range(2)], "-v")
    assert result.outcomes == {"failed": 2}
    with_skill, without = (
        result.record(arm=a, case="c0") for a in ("skill", "baseline")
    )
    assert (with_skill["outcome"], without["outcome"]) == ("failed", "passed")
    assert (with_skill["score"], without["score"]) == (1, 1)
    assert [
        (c["check"], c["passed"], c["with_skill"]) for c in with_skill["checks"]
    ] == [
        ("contains", True, False),
        ("contains", False, True),
    ]
    assert len(without["checks"]) == 1
    row = result.summary
    assert (row["skill_rate"], row["lift"], row["verdict"]) == (1, 0, None)
    assert (row["checks_passed"], row["checks_total"]) == (2, 2)
    assert "contains (only with the skill): " in result.screen
    assert "2 trials failed only by checks in with_skill" in result.screen


def test_a_case_without_other_checks_is_asked_with_the_skill_alone(
    pytester: pytest.Pytester,
) -> None:
    cases = [polite(1), {"id": "b", "input": "How?", "expected": {"contains": "gate"}}]
    result = run(pytester, cases, "--skill-runs", "2")
    assert result.outcomes == {"failed": 1, "passed": 1}
    arms = {record["arm"] for record in result.records if record["case"] == "c1"}
    assert arms == {"skill"}
    row = result.summary
    assert (row["cases"], row["all_cases"], row["skill_rate"]) == (1, 1, 1)
    assert "1 case asked with the skill alone" in result.screen


def test_a_run_of_such_cases_has_no_verdict(pytester: pytest.Pytester) -> None:
    result = run(pytester, [polite(1), polite(2)], "--skill-min-lift", "0.1")
    assert result.outcomes == {"failed": 2}
    assert result.gate["reasons"] == ["can't pass: no case was tested"]


def test_a_plain_completion_is_not_asked_to_open_the_skill(
    pytester: pytest.Pytester,
) -> None:
    expected = {"contains": "gate", "with_skill": {"skill_activated": True}}
    result = run(pytester, [{"id": "a", "input": "How?", "expected": expected}])
    assert result.outcomes == {"passed": 1}
    assert [check["check"] for check in result.record(arm="skill")["checks"]] == [
        "contains"
    ]


@needs_bwrap
def test_an_agent_has_to_open_it(pytester: pytest.Pytester) -> None:
    expected = {"contains": "gate", "with_skill": {"skill_activated": True}}
    cases = [
        {"id": f"c{n}", "input": f"How, {n}?", "expected": expected} for n in range(2)
    ]
    result = run(pytester, cases, "--skill-agent", "loop")
    assert result.outcomes == {"failed": 2}
    assert (
        result.record(arm="skill", case="c0")["checks"][1]["reason"]
        == "the skill was not opened"
    )
    row = result.summary
    assert (row["skill_rate"], row["baseline_rate"], row["lift"]) == (1, 1, 0)


def test_the_example_in_the_docs_can_be_run(pytester: pytest.Pytester) -> None:
    text = DOCS.read_text(encoding="utf-8").partition("**Only with the skill.**")[2]
    write_skill(
        pytester.path / "skills/gate",
        json.loads(text.split("```json\n")[1].split("```")[0]),
    )
    model = write_script(pytester.path / "a.json")
    result = run_skills(pytester, model, "--collect-only", "--skill-agent", "loop")
    assert result.status == 0
    assert "2 trials by loop" in result.screen


@needs_bwrap
@pytest.mark.parametrize("agent", ["chat", "loop"])
def test_a_trial_ends_with_the_skill_that_is_opened(
    pytester: pytest.Pytester, agent: str
) -> None:
    """As that of a trigger does, even if it may take only one turn."""
    cases = [
        {
            "id": name,
            "input": f"How, {name}?",
            "max_turns": 1,
            "expected": {"with_skill": check},
        }
        for name, check in {
            "opens": {"skill_opened": "gate"},
            "other": {"skill_opened": "door"},
            "closed": {"skill_not_opened": "gate"},
        }.items()
    ]
    write_skill(pytester.path / "skills/gate", cases)
    call = {"tool": "skill", "arguments": {"name": "gate"}}
    (pytester.path / "a.json").write_text(
        json.dumps([{"calls": [call]}, {"answer": "x"}])
    )
    result = run_skills(pytester, "scripted:a.json", "--skill-agent", agent)
    assert result.outcomes == {"passed": 1, "failed": 2}
    reasons = {r["case"]: [c["reason"] for c in r["checks"]] for r in result.records}
    assert reasons == {
        "opens": ["gate was opened"],
        "other": ["door was not opened (opened: gate)"],
        "closed": ["gate was opened"],
    }
