"""A fake model for the plugin in `saltmere`: it opens the
skill whose word is asked for.

Then it answers by rules of its own. So it shows how a run goes, and measures nothing.
"""

import json

from pytest_upskill import Answer, Question, ToolCall, Usage

WORDS = {
    "berths": ("moor", "quay", "berth"),
    "tides": ("enter", "water", "draught", "come in"),
}
TITLES = {"berths": "Berths of Saltmere", "tides": "Entering Saltmere"}
ANSWERS = {"berths": "Berth L1.", "tides": "From 13:10 to 15:10."}
SERVER = "mcp__tides__high_water"


def answer(question: Question) -> Answer:
    """The next turn: open a skill, ask the server if there is one to ask, answer."""
    asked = question.messages[-1][1].lower()
    skill = next(
        (name for name, words in WORDS.items() if any(w in asked for w in words)), ""
    )
    done = [call.name for step in question.steps for call in step.calls]
    offered = {tool.name for tool in question.tools}
    if skill and "skill" in offered and "skill" not in done:
        return call("skill", {"name": skill})
    if skill == "tides" and SERVER in offered and SERVER not in done:
        return call(SERVER, {"date": "3 May"})
    results = [result.text for step in question.steps for result in step.results]
    knows = skill and any(TITLES[skill] in text for text in (question.system, *results))
    text = ANSWERS[skill] if knows else "I don't know the rules of that harbour."
    return Answer(text, Usage(200, 20, 0))


def call(tool: str, arguments: dict[str, str]) -> Answer:
    made = ToolCall(tool, tool, json.dumps(arguments))
    return Answer("", Usage(200, 20, 0), "tools", calls=(made,))
