"""A fake model for `make demo-agent`: it acts as a model might, in both arms,
and knows nothing.

With the skill it opens it, reads the codes, writes the manifest and runs the script.
Without, it makes up codes. So the demo shows how a trial goes, and measures nothing.
"""

import csv
import io
import json
import re

from pytest_upskill import Answer, Question, ToolCall, Usage


def answer(question: Question) -> Answer:
    """The next turn, by the number of tool results so far."""
    told = [result.text for step in question.steps for result in step.results]
    offered = {tool.name for tool in question.tools}
    size = sum(map(len, told)) + len(question.system) + len(question.messages[-1][1])
    usage = Usage(size // 4, 40, 0)
    turns = with_skill(told) if "skill" in offered else without(told)
    if len(told) == len(turns) - 1:
        return Answer(turns[-1], usage)
    tool, arguments = turns[len(told)]
    call = ToolCall(f"call-{len(told)}", tool, json.dumps(arguments))
    return Answer("", usage, "tools", calls=(call,))


def with_skill(told: list[str]) -> list:
    lines, folder = [], ""
    if told:
        folder = re.search("Skill directory: (.*)", told[0])[1]
    if len(told) > 2:
        codes = dict(re.findall(r"\| ([\w ]+) \| (SM-\d+) \|", told[2]))
        lines = sorted(f"{codes[good]} {crates}" for good, crates in cargo(told[1]))
    return [
        ("skill", {"name": "harbour-manifest"}),
        ("read", {"path": "cargo.csv"}),
        ("read", {"path": f"{folder}/references/goods-codes.md"}),
        ("write", {"path": "manifest.txt", "content": "\n".join(lines) + "\n"}),
        ("bash", {"command": f"python3 {folder}/scripts/seal.py manifest.txt"}),
        (
            "The manifest is written and sealed:"
            f" {told[-1].split(chr(10))[0] if told else ''}."
        ),
    ]


def without(told: list[str]) -> list:
    lines = (
        [f"{good.upper()} {crates}" for good, crates in cargo(told[0])] if told else []
    )
    return [
        ("read", {"path": "cargo.csv"}),
        ("write", {"path": "manifest.txt", "content": "\n".join(lines) + "\n"}),
        (
            "I wrote manifest.txt. I don't know the office's codes, so the goods stand"
            " by name."
        ),
    ]


def cargo(text: str) -> list[tuple[str, str]]:
    table = text[text.index("good,crates") :]
    return [(row["good"], row["crates"]) for row in csv.DictReader(io.StringIO(table))]
