"""The real Claude Code with a plugin under test, and without it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.settings import Settings
from pytest_upskill.skills.bundle import load_entry
from pytest_upskill.skills.folder import MANIFEST
from pytest_upskill.trials.answer import NoAnswer
from pytest_upskill.trials.arm import Arm
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import Tried, plays, tried
from support.plugins import skill_text, write_plugin

SECRET = "The heron by the pond eats at noon, and only then."


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_there("claude", PACKAGES["claude"]["npm"]):
        pytest.skip(f"claude is not installed. {HOW}")
    monkeypatch.setenv("PATH", path_for("claude"))


def arms(tmp_path: Path, **manifest: Any) -> tuple[Arm, ...]:
    files = {
        # Named by its folder there
        "skills/water-birds/SKILL.md": skill_text("heron", SECRET),
        "evals/answers.md": "Only cases know this.",
    }
    root = write_plugin(tmp_path / "garden", files=files, **manifest)
    bundle = load_entry(root / MANIFEST, Settings())
    return ArmMaker(Settings()).arms(bundle, agents=True)


def carried_out(arm: Arm, *steps: ScriptStep) -> Tried:
    return tried(
        "claude", "messages", plays(*steps, ScriptStep("say", "Done.")), arm=arm
    )


def sent(done: Tried) -> list[str]:
    """The requests of a trial."""
    assert done.answer, done.told
    return [json.dumps(asked.body) for asked in done.asked]


def test_skills_commands_and_hooks_of_a_plugin_act(tmp_path: Path) -> None:
    _, arm = arms(tmp_path)
    look = "ls -R ~/plugins; cat ~/plugins/garden/.mcp.json; touch ~/plugins/garden/x"
    opens = [ScriptStep("skill", f"garden:{name}") for name in ("water-birds", "water")]
    done = carried_out(arm, *opens, ScriptStep("shell", look))
    first, *_, last = sent(done)
    for name in ("garden:gate", "garden:boat", "garden:water-birds", "garden:water"):
        assert name in first
    assert "Mia" in first  # said by the hook at the start
    assert SECRET not in first
    assert SECRET in last
    assert "Water the roses." in last
    assert "weather" not in last  # no MCP server
    assert "answers.md" not in last
    assert "Read-only file system" in last or "Permission denied" in last
    activity = done.answer and done.answer.activity
    assert activity
    assert (activity.activated, activity.opened) == (True, ("heron",))
    assert {skill.sent for skill in activity.listed if skill.tested} == {"whole"}


def test_the_baseline_has_nothing_of_it(tmp_path: Path) -> None:
    baseline, _ = arms(tmp_path)
    done = carried_out(baseline, ScriptStep("shell", "ls -aR ~ | head -c 20000"))
    for request in sent(done):
        for word in ("garden", "Mia", "heron", "water-birds", "Waters the roses"):
            assert word not in request


def test_a_plugin_that_is_not_taken_is_no_answer(tmp_path: Path) -> None:
    _, arm = arms(tmp_path, author="Mia")  # which Claude Code wants to be an object
    reply = carried_out(arm).reply
    assert isinstance(reply, NoAnswer)
    assert "author" in reply.reason
