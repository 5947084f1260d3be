"""Queries of triggers among other skills, of --skill-with and --skill-noise."""

import json
import re
from pathlib import Path

import pytest

from pytest_upskill.skills.noise import noise_skills
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import require_bwrap

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
    (folder / "skills/gate/evals/triggers.json").write_text(
        json.dumps(QUERIES), encoding="utf-8"
    )
    write_skill(
        folder / "other/boat", [], body="# Boats\n\nRow with both oars, and look back."
    )


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    return run_skills(pytester, server, "-o", "skill_trigger_runs=1", *args)


def opened(run: SkillRun) -> dict[str, list[str]]:
    return {record["case"]: record["activity"]["opened"] for record in run.records}


@pytest.mark.parametrize(
    ("agent", "asked"),
    # An agent that took a wrong skill may still take ours,
    # so its model is asked once more.
    [("chat", 3), ("loop", 4)],
)
def test_another_skill_may_be_opened(
    pytester: pytest.Pytester, agent: str, asked: int, workers: str
) -> None:
    if agent == "loop":
        require_bwrap()
    write_skills(pytester.path)
    args = [
        "--skill-agent",
        agent,
        "-n",
        workers,
        "--skill-with",
        "other",
        "--skill-noise",
        "7",
    ]
    with LoopbackServer(chooses) as server:
        first = run(pytester, server, *args)
        assert first.outcomes == {"passed": 2, "failed": 1}
        assert "only for agents" not in first.screen
        assert opened(first) == {
            "trigger-raise-the-gate": ["gate"],
            "trigger-row-me-over": ["boat"],
            "trigger-write-a-poem": [],
        }
        names = sorted(["gate", "boat", *(skill.name for skill in noise_skills()[:7])])
        assert all(NAME.findall(question.system) == names for question in server.asked)
        assert len(server.asked) == asked
        run(pytester, server, *args)
        assert len(server.asked) == asked  # all are stored


def test_a_server_without_tools_chooses_by_schema(pytester: pytest.Pytester) -> None:
    write_skills(pytester.path)

    def script(asked: Asked) -> Reply | Fault:
        if asked.tools:
            return Fault("status", 400, message="m does not support tools")
        reply = chooses(asked)
        return Reply('{"skill": "none"}') if reply.text == "Done." else reply

    with LoopbackServer(script) as server:
        finished = run(pytester, server, "--skill-with", "other")
    assert finished.outcomes == {"passed": 2, "failed": 1}
    assert opened(finished)["trigger-row-me-over"] == ["boat"]
    assert not any(asked.results for asked in server.asked)


def test_the_tested_skill_must_not_be_among_the_others(
    pytester: pytest.Pytester,
) -> None:
    write_skills(pytester.path)
    finished = run_skills(pytester, "haiku", "--skill-with", "skills", "--co")
    assert finished.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-with" in finished.screen
    assert "this skill is tested" in finished.screen
