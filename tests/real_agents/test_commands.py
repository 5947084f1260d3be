"""Real agents call commands, which a stand-in answers in their sandbox."""

from pathlib import Path
from typing import Final

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.features.commands.reading import CommandFiles
from pytest_upskill.skills.case_forms import CaseForm
from pytest_upskill.trials.transcript import CommandCall
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import agent_named, plays, tried
from support.agents import write_files
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap
NAMES: Final = [name for name in PACKAGES if name in AGENTS]
ANSWERS: Final = "- args: pr view *\n  stdout: it is a draft\n  files: {pr.txt: '12'}"


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_calls_a_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_there(name, PACKAGES[name]["npm"]):
        pytest.skip(f"{name} is not installed. {HOW}")
    write_files(tmp_path, {"evals/commands/gh.yaml": ANSWERS})
    commands = CommandFiles(tmp_path).part_of(CaseForm.model_validate({"input": "x"}))
    assert commands
    monkeypatch.setenv("PATH", path_for(name))
    script = plays(
        ScriptStep("shell", "gh pr view 12 && cat pr.txt"),
        ScriptStep("shell", "gh pr merge 12"),
        ScriptStep("say", "Done."),
    )
    protocol = agent_named(name).protocols[0]
    done = tried(name, protocol, script, parts=(commands,))
    assert done.answer, done.told
    assert done.answer.activity
    assert done.answer.activity.commands == (
        CommandCall(("gh", "pr", "view", "12")),
        CommandCall(("gh", "pr", "merge", "12"), 1),
    )
    results = [turn.text for turn in done.answer.transcript if turn.kind == "result"]
    assert "it is a draft12" in results[0]
