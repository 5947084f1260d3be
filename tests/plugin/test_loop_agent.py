"""Our own agent in a whole run: a skill of several files, both arms, in a real
sandbox.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents import BODY, CODES, SCRIPT, write_files
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

CASE = {
    "id": "open",
    "input": "Open the gate.",
    "context": {"files": {"notes.txt": "The keeper is out."}},
    "expected": {
        "contains": ["is open"],
        "files": {"gate.txt": {"contains": "said the motor to Walrus-4711"}},
        "skill_activated": True,
        "references_read": ["references/codes.md"],
        "scripts_run": ["scripts/open.sh"],
        "unchanged": ["notes.txt"],
    },
}


def keeper(asked: Asked) -> Reply:
    """Can't open the gate without the code in the reference
    and the script of the skill.
    """
    step = len(asked.results)
    if "<name>gate</name>" not in asked.system:
        return (
            Reply("No idea.")
            if step
            else Reply(calls=(("read", {"path": "notes.txt"}),))
        )
    calls: list[tuple[str, dict[str, Any]]] = [
        ("skill", {"name": "gate"}),
        ("bash", {"command": "cat -n /skills/gate/references/codes.md"}),
    ]
    if step < 2:
        return Reply(calls=(calls[step],))
    if step == 2:
        code = asked.results[-1].partition("is ")[2].partition(",")[0]
        command = f"cd /skills/gate && ./scripts/open.sh {code} > /workspace/gate.txt"
        return Reply(calls=(("bash", {"command": command}),))
    return Reply("The gate is open.")


def write_gate(folder: Path, codes: str = CODES) -> None:
    write_skill(folder, [CASE], body=BODY)
    write_files(folder, {"references/codes.md": codes, "scripts/open.sh": SCRIPT})
    (folder / "scripts/open.sh").chmod(0o755)


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    done = run_skills(pytester, server, "--skill-agent", "loop", *args)
    assert done.outcomes == {"passed": 1}
    return done


def test_both_arms_of_a_skill_of_several_files(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_gate(pytester.path / "skills/gate")
    write_skill(pytester.path / "other/boat", [], body="How to row.")
    with LoopbackServer(keeper) as server:
        done = run(pytester, server, "-n", workers, "--skill-with", "other/boat")
    skill, baseline = done.record(arm="skill"), done.record(arm="baseline")
    assert (skill["outcome"], baseline["outcome"]) == ("passed", "failed")
    assert (skill["agent"], skill["model"]) == ("loop", "m")
    did, did_without = skill["activity"], baseline["activity"]
    assert (did["turns"], did["tool_calls"]) == (4, 3)
    assert (did["activated"], did["opened"]) == (True, ["gate"])
    assert did["read"] == ["references/codes.md"]
    assert did["scripts"] == ["scripts/open.sh"]
    assert (did_without["activated"], did_without["opened"]) == (None, [])
    first = {
        ("<name>gate</name>" in one.system): one
        for one in server.asked
        if not one.results
    }
    assert first[True].body["max_tokens"] == 8192
    body = json.dumps(first[True].body)
    start = body.index(r"  <skill>\n    <name>gate</name>")
    end = body.index(r"</skill>\n", start) + len(r"</skill>\n")
    body = (
        (body[:start] + body[end:])
        .replace('"gate", ', "", 1)
        .replace(', "gate"', "", 1)
    )
    assert body == json.dumps(first[False].body)
    assert "<name>boat</name>" in body


def test_an_edited_reference_asks_the_skill_arm_again(
    pytester: pytest.Pytester,
) -> None:
    write_gate(pytester.path / "skills/gate")
    with LoopbackServer(keeper) as server:
        run(pytester, server)
        assert len(server.asked) == 6
        run(pytester, server)
        assert len(server.asked) == 6
        write_gate(pytester.path / "skills/gate", CODES + "It is a good code.\n")
        done = run(pytester, server)
        assert len(server.asked) == 10
    assert (
        done.record(arm="skill")["stored"],
        done.record(arm="baseline")["stored"],
    ) == (
        False,
        True,
    )
