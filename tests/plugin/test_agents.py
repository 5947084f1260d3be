"""--skill-agent: which cases are carried out by which agents on which models."""

import pytest

from support.kit import case, write_script, write_skill
from support.runs import run_skills

BOTH = ("--skill-agent", "chat", "--skill-agent", "loop")


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_skill(pytester.path / "skills/gate")
    return write_script(pytester.path / "answers.json")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    """Node ids without the file."""
    result = pytester.runpytest_inprocess(*args, "--collect-only", "-q")
    assert result.ret == 0
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_every_agent_is_on_every_model_that_a_case_names(
    pytester: pytest.Pytester, model: str
) -> None:
    patterns = {
        "any": "*",
        "loop": "loop/*",
        "model": "scripted:*",
        "end": "*answers.json",
    }
    cases = [
        case("How?", "gate up", id=name, models=names)
        for name, names in patterns.items()
    ]
    write_skill(pytester.path / "skills/gate", cases)
    chat = [f"{name}[{model}]" for name in ("any", "model", "end")]
    loop = [f"{name}[loop/{model}]" for name in patterns]
    nodes = collected(pytester, "--skill", "skills", "--model", model, *BOTH)
    assert sorted(nodes) == sorted([*chat, *loop])


def test_a_node_id_names_its_agent(pytester: pytest.Pytester, model: str) -> None:
    node = f"skills/gate/skill_meta.json::open-gate[loop/{model}]"
    assert collected(pytester, node) == [f"open-gate[loop/{model}]"]
    # beside the usual ones
    other = write_skill(pytester.path / "skills/other")
    nodes = collected(pytester, node, str(other / "SKILL.md"), "--model", model)
    assert nodes == [f"open-gate[loop/{model}]", f"open-gate[{model}]"]


def test_a_case_that_needs_an_agent_says_so_without_one(
    pytester: pytest.Pytester, model: str
) -> None:
    files = {
        "id": "files",
        "input": "Write it.",
        "expected": {"files": {"a.md": {"exists": True}}},
    }
    write_skill(
        pytester.path / "skills/gate", [case("How?", "gate up", id="plain"), files]
    )
    run = run_skills(pytester, model)
    assert run.outcomes == {"passed": 1, "failed": 1}
    assert (
        'skill_meta.json:1: cases[1]: "files" looks at what an agent does; '
        in run.screen
    )
    run = run_skills(pytester, model, "--collect-only")
    assert "upskill: 1 case would need --skill-agent loop" in run.screen
    run = run_skills(pytester, model, *BOTH, "--collect-only")
    assert f"files[{model}]" not in run.screen
    assert f"files[loop/{model}]" in run.screen


def test_a_file_of_cases_for_agents_alone_is_one_error(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [
        case("How?", "x", id=name, context={"files": ["a.png"]}) for name in ("a", "b")
    ]
    (write_skill(pytester.path / "skills/gate", cases) / "a.png").write_bytes(
        b"\x89PNG\0"
    )
    run = run_skills(pytester, model, "--skill-max-turns", "5")
    assert run.outcomes == {"errors": 1}
    assert (
        "upskill: --skill-max-turns: only for agents (--skill-agent loop)" in run.screen
    )
    assert "'a.png' is not UTF-8 text" in run.screen


def test_agents_share_a_line(pytester: pytest.Pytester, model: str) -> None:
    judged = {"id": "two", "input": "open", "expected": {"judge": ["It is open"]}}
    write_skill(pytester.path / "skills/gate", [case("open", "yes", id="one"), judged])
    args = (*BOTH, "--skill-agent", "claude", "--skill-judge", model, "--collect-only")
    run = run_skills(pytester, model, *args)
    assert (
        "up to 6 calls: 2 tests × 1 run, with and without the skill, and 2 by the judge"
        in run.screen
    )
    assert "up to 8 trials by loop, claude, " in run.screen
    assert "and 4 calls by the judge" in run.screen
