"""A model that follows the skill if it is there, and makes codes up otherwise."""

import json
import re

from pytest_upskill import Answer, Question, ToolCall, Usage


def answer(question: Question) -> Answer:
    results = [result.text for step in question.steps for result in step.results]
    plan = (
        plan_with_skill(results)
        if "harbour" in question.system
        else plan_without(results)
    )
    usage = Usage(100 + 50 * len(results), 10, 0)
    if len(results) == len(plan):
        return Answer("manifest.txt is written.", usage)
    tool, arguments = plan[len(results)]
    return Answer(
        "", usage, "tools", calls=(ToolCall("", tool, json.dumps(arguments)),)
    )


def plan_with_skill(results: list[str]) -> list[tuple[str, dict[str, str]]]:
    folder = re.findall("Skill directory: (.*)", "\n".join(results[:1]))
    skill = folder[0] if folder else ""
    return [
        ("skill", {"name": "harbour"}),
        ("read", {"path": "cargo.txt"}),
        ("read", {"path": f"{skill}/references/codes.md"}),
        ("write", {"path": "manifest.txt", "content": manifest(results)}),
        ("bash", {"command": f"sh {skill}/scripts/seal.sh manifest.txt"}),
    ]


def plan_without(results: list[str]) -> list[tuple[str, dict[str, str]]]:
    return [
        ("read", {"path": "cargo.txt"}),
        ("write", {"path": "manifest.txt", "content": manifest(results)}),
    ]


def manifest(results: list[str]) -> str:
    codes = dict(re.findall(r"\| (\w+) \| (SM-\d+) \|", "\n".join(results)))
    cargo = re.findall(r"\b(wool|rope) (\d+)", "\n".join(results))
    return "".join(f"{codes.get(good, good)} {crates}\n" for good, crates in cargo)
