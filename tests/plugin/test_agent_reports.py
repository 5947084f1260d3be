"""Reports of a run with agents: JSON, transcripts, JUnit, -v, accepted results."""

import json
from pathlib import Path

import pytest

from support.kit import case, write_skill
from support.sandboxes import needs_bwrap

# An agent that opens the skill if there is one, and writes what it found.
SCRIPT = r"""
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.tools import ToolCall

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
LABEL = f"loop/{MODEL}"


def write_project(pytester: pytest.Pytester) -> list[str]:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makepyfile(fake=SCRIPT)
    return ["--skill", "skills", "--skill-agent", "loop", "--model", MODEL]


@needs_bwrap
def test_what_agents_did_is_in_every_report(pytester: pytest.Pytester, workers: str) -> None:
    run = write_project(pytester)
    files = ["--skill-json", "r.json", "--junitxml", "j.xml", "--skill-transcripts", "said"]
    result = pytester.runpytest_inprocess(*run, *files, "-n", workers, "-v")
    result.assert_outcomes(passed=1, failed=1)
    report = json.loads((pytester.path / "r.json").read_text())
    (row,) = report["summary"]
    assert (row["agent"], row["model"]) == ("loop", MODEL)
    assert (row["activated"], row["activated_trials"]) == (2, 2)
    assert (row["baseline_turns"], row["skill_turns"], row["skill_tool_calls"]) == (3, 3, 2)
    for record in report["records"]:
        assert record["agent"] == "loop"
        assert record["activated"] is (True if record["arm"] == "skill" else None)
        (file,) = record["files"]
        assert (file["path"], file["change"], file["size"]) == ("found.txt", "made", 3001)
        assert "transcript" not in record
    said = pytester.path / "said/gate/right[loop-scripted-fake.py-agent]/skill-1.jsonl"
    head, *turns = map(json.loads, said.read_text().splitlines())
    assert (head["case"], head["outcome"], head["activated"]) == ("right", "passed", True)
    assert [turn["tool"] for turn in turns if turn["kind"] == "call"] == ["skill", "bash"]
    junit = (pytester.path / "j.xml").read_text()
    assert "upskill_left_out" in junit
    assert "upskill_agent" in junit
    properties = [line for line in junit.split("<property ") if line.startswith('name="upskill"')]
    assert len(properties) == 2
    assert not any("qqqq" in one.partition("</")[0] for one in properties)
    text = result.stdout.str()
    assert "3 → 3 turns · opened 1/1" in text
    assert "  Agent: 3 turns, 2 tool calls, opened the skill" in text
    assert "    made found.txt (3,001 bytes)" in text
    assert "    calls bash: cat nowhere" in text
    assert "opened in 2 of 2 trials" in " ".join(text.split())
    assert "written: r.json, said" in text


@needs_bwrap
def test_results_of_an_agent_are_accepted_under_its_label(pytester: pytest.Pytester) -> None:
    run = write_project(pytester)
    pytester.runpytest_inprocess(*run, "--skill-accept").assert_outcomes(passed=1, xfailed=1)
    kept = json.loads((pytester.path / "skills/gate/skill_results.json").read_text())
    assert list(kept["models"]) == [LABEL]
    pytester.runpytest_inprocess(*run).assert_outcomes(passed=1, xfailed=1)


@pytest.mark.parametrize("folder", ["skills/gate", "skills/gate/new/said"])
def test_transcripts_never_go_into_a_skill(pytester: pytest.Pytester, folder: str) -> None:
    run = write_project(pytester)
    before = sorted(Path(pytester.path).rglob("*"))
    result = pytester.runpytest_inprocess(*run, "--skill-transcripts", folder)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(result.stderr.str().split())
    assert f"--skill-transcripts {folder}: inside the skill gate, which agents get as it is" in said
    assert "Choose a folder outside of it." in said
    assert (
        sorted(one for one in Path(pytester.path).rglob("*") if "cache" not in str(one)) == before
    )
