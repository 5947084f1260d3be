"""A teacher, an author of cases, and a student who knows what the skill says."""

import json
import re

from pytest_upskill import Question

COMMANDS = {
    "red": "zorp",
    "green": "quib",
    "blue": "flen",
    "amber": "dask",
    "violet": "murt",
    "black": "vixo",
    "white": "halp",
    "pink": "jorn",
    "cyan": "kest",
}
QUESTIONS = (
    "Which lamp command makes it {}?",
    "I want {} light in my room now, so what do I type?",
    "Name the subcommand for {}.",
    "Somebody asked me to set this thing to {}: how is that done?",
    "What is the one word that turns everything {}?",
    "For a {} kitchen, which command do people use?",
    "My friend says that lamp can shine {}. Tell me how, please.",
    "Switch over to {}: give the whole line.",
    "Before the party starts I need {}; what must be entered?",
)


def teacher(question: Question) -> str:
    """Four colours at first; all of them when the first version comes back."""
    colours = (
        list(COMMANDS)
        if "lamp zorp" in question.messages[-1][1]
        else list(COMMANDS)[:4]
    )
    lines = [f"- {colour}: `lamp {COMMANDS[colour]}`" for colour in colours]
    return json.dumps(
        {
            "name": "lamp",
            "description": (
                "The commands of lamp. Use it for questions about the lamp's colour."
            ),
            "body": "\n".join(
                ["Each colour of the lamp has a command of its own.", "", *lines]
            ),
            "files": [],
        }
    )


def author(question: Question) -> str:
    del question
    cases = [
        {
            "id": f"colour-{colour}",
            "input": text.format(colour),
            "files": [],
            "expected": {"contains": [command], "not_contains": ["sudo"]},
            "tags": ["colour"],
            "reference": f"Type lamp {command}.",
            "wrong": f"Type lamp {colour}.",
        }
        for text, (colour, command) in zip(QUESTIONS, COMMANDS.items(), strict=True)
    ]
    return json.dumps({"cases": cases})


def student(question: Question) -> str:
    asked = question.messages[-1][1]
    for colour, command in COMMANDS.items():
        if re.search(rf"\b{colour}\b", asked) and f"lamp {command}" in question.system:
            return f"Type lamp {command}."
    return "I do not know."
