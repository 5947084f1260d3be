"""Reports of a run with agents: JSON, transcripts, JUnit, the screen."""

import json

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill
from support.runs import run_skills
from support.sandboxes import needs_bwrap

# An agent that opens the skill if there is one, and writes what it found.
SCRIPT = r"""
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import ToolCall

def agent(question):
    tools = [tool.name for tool in question.tools]
    said = len(question.steps)
    if said == 0 and "skill" in tools:
        return called("skill", '{"name": "gate"}')
    if said == 0:
        return called("bash", '{"command": "cat nowhere"}')
    if said == 1:
        return called("bash", '{"command": "echo %s > found.txt"}' % ("q" * 3000))
    return Answer("Type gate up." if "skill" in tools else "No idea.", Usage(900, 30))

def called(name, arguments):
    return Answer("", Usage(500, 20), calls=(ToolCall("1", name, arguments),))
"""
CASES = [case("Open?", "gate up", id="right"), case("Shut?", "gate down", id="wrong")]
MODEL = "scripted:fake.py:agent"


@needs_bwrap
def test_what_agents_did_is_in_every_report(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makepyfile(fake=SCRIPT)
    agent = ("--skill-agent", "loop", "--junitxml", "j.xml")
    run = run_skills(pytester, MODEL, *agent, "-n", workers, "-v")
    assert (run.outcomes["passed"], run.outcomes["failed"]) == (1, 1)
    row = run.summary
    assert (row["agent"], row["model"]) == ("loop", MODEL)
    assert (row["activation"]["count"], row["activation"]["trials"]) == (2, 2)
    assert row["arms"]["baseline"]["turns"] == pytest.approx(3)
    assert row["arms"]["skill"]["turns"] == pytest.approx(3)
    assert row["arms"]["skill"]["tool_calls"] == 2
    for record in run.records:
        assert record["agent"] == "loop"
        assert record["activity"]["activated"] is (
            True if record["arm"] == "skill" else None
        )
        (file,) = record["files"]
        assert (file["path"], file["change"], file["size"]) == (
            "found.txt",
            "made",
            3001,
        )
        assert not record["transcript"]
    assert main(["report", "last", "--transcripts", "told"]) == 1  # as a test failed
    transcript = (
        pytester.path / "told/gate/right[loop-scripted-fake.py-agent]/skill-1.jsonl"
    )
    head, *turns = map(json.loads, transcript.read_text().splitlines())
    assert (head["case"], head["outcome"], head["activity"]["activated"]) == (
        "right",
        "passed",
        True,
    )
    assert [turn["tool"] for turn in turns if turn["kind"] == "call"] == [
        "skill",
        "bash",
    ]
    junit = (pytester.path / "j.xml").read_text()
    assert "upskill_agent" in junit
    properties = [line.partition("/>")[0] for line in junit.split("<property ")[1:]]
    assert sum(line.startswith('name="upskill"') for line in properties) == 2
    assert not any("qqqq" in line for line in properties)
    assert "3 → 3 turns · opened 1/1" in run.screen
    assert "Agent: 3 turns, 2 tool calls, opened the skill" in run.screen
    assert "made found.txt (3,001 bytes)" in run.screen
