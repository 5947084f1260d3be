"""Real agents with many skills, and with one that a user invokes:
what their models are sent.
"""

import json
from pathlib import Path

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.lint.listing_rules import BUDGET, listing_findings
from pytest_upskill.skills.invocation import Invocation
from pytest_upskill.trials.arm import Arm, SkillCopy
from pytest_upskill.trials.transcript import Activity
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import (
    DESCRIPTION,
    PROMPT,
    SKILL,
    Tried,
    agent_named,
    plays,
    tried,
    write_gate,
)
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap
DONE = ScriptStep("say", "Done.")


def need(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_there(name, PACKAGES[name]["npm"]):
        pytest.skip(f"{name} is not installed. {HOW}")
    monkeypatch.setenv("PATH", path_for(name))


def write_parts(folder: Path, number: int, length: int) -> list[Path]:
    """Skills whose descriptions begin alike, in the order in which agents list them."""
    files = list[Path]()
    for part in range(number):
        name = f"part-{part:03}"
        description = (
            f"Use this skill to build part {part} of a machine: {'it-turns-' * 120}"
        )
        file = folder / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {description[:length]}\n---\n\n"
        file.write_text(f"{head}# Part {part}\n\nPull the lever of {name} twice.\n")
        files.append(file)
    return files


def activity(done: Tried) -> Activity:
    assert done.answer, done.told
    assert done.answer.activity
    return done.answer.activity


def test_claude_code_lists_as_many_descriptions_as_lint_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("claude", monkeypatch)
    files = write_parts(tmp_path, 50, 300)
    copies = [SkillCopy.of(file.parent.name, file.parent) for file in files]
    listed = activity(
        tried("claude", "messages", plays(DONE), arm=Arm("all", skills=tuple(copies)))
    ).listed
    sent = [skill.sent for skill in listed]
    whole = sent.count("whole")
    assert sent == ["whole"] * whole + ["name"] * (50 - whole)
    # Its budget is that of lint: one more description would not fit.
    lines = [len(f"- {file.parent.name}: ") + 300 for file in files]
    names = [len(f"- {file.parent.name}") for file in files]
    assert sum(lines[:whole]) + sum(names[whole:]) + 49 <= BUDGET
    assert sum(lines[: whole + 1]) + sum(names[whole + 1 :]) + 49 > BUDGET
    assert not list(listing_findings(files[: BUDGET // 320]))
    assert list(listing_findings(files))


def test_codex_cuts_descriptions_and_then_leaves_out_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("codex", monkeypatch)
    copies = [
        SkillCopy.of(file.parent.name, file.parent)
        for file in write_parts(tmp_path, 900, 1_000)
    ]
    few = activity(
        tried(
            "codex", "responses", plays(DONE), arm=Arm("few", skills=tuple(copies[:60]))
        )
    ).listed
    assert {skill.sent for skill in few} == {"cut"}
    many = activity(
        tried("codex", "responses", plays(DONE), arm=Arm("all", skills=tuple(copies)))
    ).listed
    assert {skill.sent for skill in many} == {"name", "not listed"}


@pytest.mark.parametrize("name", [name for name in PACKAGES if name in AGENTS])
@pytest.mark.parametrize("users_only", [False, True])
def test_a_skill_that_is_invoked_is_opened(
    name: str, users_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(name, monkeypatch)
    skill = write_gate(tmp_path)
    file = skill / "SKILL.md"
    if users_only:
        head = "---\ndisable-model-invocation: true\n"
        file.write_text(file.read_text().replace("---\n", head, 1))
    invoke = Invocation(SKILL, "for the visitors of Walrus street")
    done = tried(
        name, agent_named(name).protocols[0], plays(DONE), skill=skill, invoke=invoke
    )
    used = activity(done)
    assert (used.activated, used.opened[:1]) == (True, (SKILL,)), done.told
    assert done.answer
    assert done.answer.text == "Done."
    asked = json.dumps([one.body for one in done.asked])
    assert "for the visitors of Walrus street" in asked
    assert PROMPT not in asked
    if name == "claude":
        assert f"<command-name>/{SKILL}</command-name>" in asked
        assert (DESCRIPTION in asked) is not users_only
