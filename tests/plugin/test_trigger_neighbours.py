"""Queries of triggers among other skills, of --skill-with and --skill-noise."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.noise import noise_skills
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.sandboxes import needs_bwrap

NAME = re.compile("<name>(.*)</name>")
QUERIES = [
    {"query": "Raise the gate.", "should_trigger": True},
    {"query": "Row me over.", "should_trigger": True},
    {"query": "Write a poem.", "should_trigger": False},
]


def chooses(asked: Asked) -> Reply:
    """Opens the gate, the boat, or no skill."""
    word = {"Raise": "gate", "Row": "boat"}.get(asked.question.split()[0])
    if word is None or asked.results:
        return Reply("Done.")
    if not asked.tools:
        return Reply(json.dumps({"skill": word}))
    return Reply(calls=(("skill", {"name": word}),))


def write_skills(folder: Path) -> None:
    write_skill(folder / "skills/gate", [])
    (folder / "skills/gate/evals").mkdir()
    (folder / "skills/gate/evals/triggers.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    write_skill(folder / "other/boat", [], body="# Boats\n\nRow with both oars, and look back.")


def run(
    pytester: pytest.Pytester, server: LoopbackServer, *args: str
) -> tuple[pytest.RunResult, dict[str, dict[str, Any]]]:
    """What was shown, and the records of triggers by their queries."""
    options = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
    options += ["--skill-triggers", "only", "--skill-trigger-runs", "1", "--skill-json", "out.json"]
    result = pytester.runpytest_inprocess(*options, *args)
    records = json.loads((pytester.path / "out.json").read_text())["trigger_records"]
    return result, {record["case"]: record for record in records}


def test_a_model_may_choose_another_skill(pytester: pytest.Pytester, workers: str) -> None:
    another_is_opened(pytester, "chat", workers, asked=3)


@needs_bwrap
def test_an_agent_may_open_another_skill(pytester: pytest.Pytester, workers: str) -> None:
    # One that took a wrong skill may still take ours, so its model is asked once more.
    another_is_opened(pytester, "loop", workers, asked=4)


def another_is_opened(pytester: pytest.Pytester, agent: str, workers: str, *, asked: int) -> None:
    write_skills(pytester.path)
    others = ("--skill-with", "other", "--skill-noise", "7")
    with LoopbackServer(chooses) as server:
        result, records = run(pytester, server, "--skill-agent", agent, "-n", workers, *others)
        result.assert_outcomes(passed=2, failed=1)
        result.stdout.fnmatch_lines(
            [
                "upskill: with other skills: boat",
                "upskill: with 7 unrelated skills besides (--skill-noise)",
                "*not opened: opened boat instead*",
            ]
        )
        assert "only for agents" not in result.stdout.str()
        opened = {case: one["opened"] for case, one in records.items()}
        assert opened == {
            "trigger-raise-the-gate": ["gate"],
            "trigger-row-me-over": ["boat"],
            "trigger-write-a-poem": [],
        }
        names = sorted(["gate", "boat", *(one.name for one in noise_skills()[:7])])
        assert all(NAME.findall(one.system) == names for one in server.asked)
        assert len(server.asked) == asked
        run(pytester, server, "--skill-agent", agent, "-n", workers, *others)
        assert len(server.asked) == asked  # all are stored


def test_a_server_without_tools_chooses_by_schema(pytester: pytest.Pytester) -> None:
    write_skills(pytester.path)

    def script(asked: Asked) -> Reply | Fault:
        if asked.tools:
            return Fault("status", 400, message="m does not support tools")
        reply = chooses(asked)
        return Reply('{"skill": "none"}') if reply.text == "Done." else reply

    with LoopbackServer(script) as server:
        result, records = run(pytester, server, "--skill-with", "other")
    result.assert_outcomes(passed=2, failed=1)
    assert records["trigger-row-me-over"]["opened"] == ["boat"]
    assert not any(asked.results for asked in server.asked)


def test_the_tested_skill_must_not_be_among_the_others(pytester: pytest.Pytester) -> None:
    write_skills(pytester.path)
    options = ["--skill", "skills", "--model", "haiku", "--skill-with", "skills", "--co"]
    result = pytester.runpytest_inprocess(*options, "--skill-triggers", "only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skill-with*this skill is tested*"])
