"""What an agent's first request says of each skill: its description, a part, its name,
nothing.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.skill_listing import sent_in
from pytest_upskill.agents.staging import InstalledSkill
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.transcript import UNTOLD, ListedSkill, Tool, ToolCall
from support.agents import MemorySandbox, ScriptedCall, installed, recorder_for
from support.trials import SPEC

GATE = (
    "Use this skill when a gate has to be opened, with the code of the day & a <motor>."
)
BOAT = (
    "Use this skill when boats are laid up.\nAlso for masts, and unlike gate for sheds."
)


def skill(name: str, description: str, tested: bool = False) -> InstalledSkill:
    return InstalledSkill(
        name, description, "# Body\n", ("SKILL.md",), "", tested=tested
    )


SKILLS = (skill("gate", GATE, tested=True), skill("boat", BOAT))


@pytest.mark.parametrize(
    ("text", "gate", "boat"),
    [
        (f"- gate: {GATE}\n- boat: {BOAT}\n", "whole", "whole"),
        (f"- gate: {GATE}\n- boat: {' '.join(BOAT.split())}", "whole", "whole"),
        (f"- boat\n- gate: {GATE}\n", "whole", "name"),
        (f"- gate\n- boat: {BOAT}\n", "name", "whole"),
        (f"- garden:gate: {GATE[:40]}…\n- garden:boat\n", "cut", "name"),
        (f"- gate: {GATE[:-5]} (file: /skills/gate/SKILL.md)\n", "cut", "not listed"),
        ("Skills: gate, boat.", "name", "name"),
        ('{"enum": ["boat", "other"]}', "not listed", "name"),
        (
            (
                "<skill><name>gate</name><description>Use this skill when a gate has to"
                " be opened, "
                "with the code of the day &amp; a &lt;motor&gt;.</description>"
                "<location>/skills/gate/SKILL.md</location></skill>"
            ),
            "whole",
            "not listed",
        ),
        ("Never close a gate behind a boat that leaves.", "not listed", "not listed"),
        ("- gate-keeper: opens things\n- my-boat: sails", "not listed", "not listed"),
        ("", "not listed", "not listed"),
    ],
)
def test_what_of_a_skill_is_sent(text: str, gate: str, boat: str) -> None:
    assert sent_in(["You are an agent.", text, "Go."], SKILLS) == {
        "gate": gate,
        "boat": boat,
    }


@pytest.mark.parametrize("prompt", ["gat", "e", "gate", "the gate", f"gate: {GATE}"])
@pytest.mark.parametrize("text", ["Skills: gate.", ""])
def test_a_prompt_lists_nothing(prompt: str, text: str) -> None:
    sent = sent_in([text, f"<reminder/>\n{prompt}"], SKILLS[:1], [prompt])
    assert sent == {"gate": "name" if text else "not listed"}


def test_a_catalogue_of_skills_with_the_same_start() -> None:
    names = [f"part-{number}" for number in range(300)]
    skills = [
        skill(name, f"Use this skill to build {name} of the whole.") for name in names
    ]
    lines = [f"- {skill.name}: {skill.description}" for skill in skills[:100]]
    lines += [f"- {skill.name}: {skill.description[:-8]}…" for skill in skills[100:200]]
    sent = list(
        sent_in(
            ["\n".join([*lines, *(f"- {n}" for n in names[200:])])], skills
        ).values()
    )
    assert sent == ["whole"] * 100 + ["cut"] * 100 + ["name"] * 100


def recorded(*texts: str, tools: tuple[Tool, ...] = (), result: str = "") -> Recorder:
    recorder = recorder_for()
    recorder = Recorder(recorder.question, SKILLS)
    recorder.offer.add_tools(tools)
    for text in texts:
        recorder.message("user", text)
    recorder.reply(Answer("", calls=(ToolCall("1", "bash", "{}"),)))
    recorder.result("1", result, failed=False)
    return recorder


def test_the_first_request_counts_with_its_tools() -> None:
    tool = Tool("Skill", f"- gate: {GATE}", '{"enum": ["boat"]}')
    activity = recorded("Go.", tools=(tool,), result=f"boat: {BOAT}").activity
    assert activity.listed == (
        ListedSkill("gate", "whole", tested=True),
        ListedSkill("boat", "name"),
    )
    assert activity.sent == ("whole",)
    assert not activity.untold


@pytest.mark.parametrize(
    ("result", "sent"), [("nothing", "not listed"), ("see gate", "name")]
)
def test_a_later_request_may_still_name_a_skill(result: str, sent: str) -> None:
    activity = recorded("Go.", result=result).activity
    assert activity.sent == (sent,)
    assert activity.untold is (UNTOLD in activity.findings) is (sent == "not listed")


def test_our_agent_lists_all_skills(tmp_path: Path) -> None:
    skills = [
        installed(tmp_path),
        replace(installed(tmp_path, "boat"), description=BOAT),
    ]
    recorder = recorder_for(*skills)
    run = LoopAgent().run(
        MemorySandbox(), ScriptedCall(Answer("Done.")), recorder, SPEC
    )
    activity = asyncio.run(run).activity
    assert activity
    assert {listed.sent for listed in activity.listed} == {"whole"}
