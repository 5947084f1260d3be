"""A fake model for the tasks of `examples/harbour-tasks`,
carried out by the agent `loop`.

With the skill of a task it opens it and writes what the skill says. Without, it
guesses. So it shows how a run of tasks goes, and measures nothing.
"""

import json

from pytest_upskill import Answer, Question, ToolCall, Usage

SOLVED = {
    "harbour-dues": (
        "printf 'good,pence\\nwool,99\\ngrain,28\\ntotal,127\\n' > /app/dues.csv"
    ),
    "harbour-berths": "echo 7 > /output/berth.txt",
}
GUESSED = {
    "harbour-dues": (
        "printf 'good,pence\\nwool,12\\ngrain,7\\ntotal,19\\n' > /app/dues.csv"
    ),
    "harbour-berths": "echo 1 > /output/berth.txt",
}


def answer(question: Question) -> Answer:
    """The next turn: open the skill if there is one, write the file, say so."""
    asked = question.messages[-1][1]
    skill = "harbour-dues" if "dues" in asked else "harbour-berths"
    has_skill = any(tool.name == "skill" for tool in question.tools)
    write = ("bash", {"command": (SOLVED if has_skill else GUESSED)[skill]})
    turns = [("skill", {"name": skill}), write] if has_skill else [write]
    done = len(question.steps)
    usage = Usage(len(question.system + asked) // 4, 40, 0)
    if done == len(turns):
        return Answer("It is written.", usage)
    tool, arguments = turns[done]
    return Answer(
        "",
        usage,
        "tools",
        calls=(ToolCall(f"call-{done}", tool, json.dumps(arguments)),),
    )
