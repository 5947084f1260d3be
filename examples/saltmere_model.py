"""A fake model for the plugin in `saltmere`: it opens the skill whose word is asked for.

Then it answers by rules of its own. So it shows how a run goes, and measures nothing.
"""

import json

from pytest_upskill import Answer, Question, ToolCall, Usage

WORDS = {"berths": ("moor", "quay", "berth"), "tides": ("enter", "water", "draught", "come in")}
SERVER = "mcp__tides__high_water"


def answer(question: Question) -> Answer:
    """The next turn: open a skill, ask the server if there is one to ask, answer."""
    asked = question.messages[-1][1].lower()
    skill = next((name for name, words in WORDS.items() if any(w in asked for w in words)), None)
    done = [call.name for step in question.steps for call in step.calls]
    offered = {tool.name for tool in question.tools}
    if skill and "skill" in offered and "skill" not in done:
        return call("skill", {"name": skill})
    if skill == "tides" and done and SERVER in offered and SERVER not in done:
        return call(SERVER, {"date": "3 May"})
    known = "skill" in done or (not offered and "Saltmere" in question.system)
    return said({"berths": "Berth L1.", "tides": "13:10 to 15:10."}.get(skill, "") if known else "")


def call(tool: str, arguments: dict[str, str]) -> Answer:
    return Answer(
        "", Usage(200, 20, 0), "tools", calls=(ToolCall(tool, tool, json.dumps(arguments)),)
    )


def said(text: str) -> Answer:
    return Answer(text or "I don't know the rules of that harbour.", Usage(200, 20, 0))
