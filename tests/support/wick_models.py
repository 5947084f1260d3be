"""The fake models of docs/generate.md: they answer as the page shows it."""

import json
import re
from pathlib import Path

from pytest_upskill.skills.case import Case
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.fake_models import FakeModels
from support.loopback import Asked, Reply

WICK = Path(__file__).parents[2] / "skills/wick"
SERVICES = (
    *(
        "billing",
        "search",
        "mailer",
        "tiles",
        "lantern",
        "quota",
        "audit",
        "maps",
        "login",
        "fleet",
    ),
    *(
        "pager",
        "cart",
        "stock",
        "voice",
        "trips",
        "forms",
        "media",
        "proxy",
        "rates",
        "sync",
    ),
)
DESCRIPTION = (
    "How to deploy at Lanternfield: ship a service, undo a release, look at what runs,"
    " freeze days. Use it whenever a service should go live or back, also if no tool is"
    " named."
)


def teacher(asked: Asked) -> str:
    """Half of what there is to know at first, all of it when told what fails."""
    body = load_skill(WICK / "SKILL.md").body.replace("# Wick", "# Deploy with Wick")
    if "Write a shorter body" in asked.question:
        return json.dumps({"body": shorter(body)})
    lines = body.split("\n")
    refines = "Students were asked" in asked.question
    description = "Deploy services with Wick. Use it for its commands, names and rules."
    return json.dumps(
        {
            "name": "wick-deploys",
            "description": description,
            "body": body if refines else "\n".join(lines[:8]),
            "files": [],
        }
    )


def shorter(body: str) -> str:
    """The same rules in fewer words."""
    rules = [line for line in body.split("\n") if line.startswith("- ")]
    short = [
        re.sub(r" (?:is named|is called|is|needs the flag) ", ": ", line)
        for line in rules
    ]
    return "\n".join(line.replace("The command to ", "").rstrip(".") for line in short)


def queries() -> list[dict[str, object]]:
    """Twenty that need the skill, and twenty that don't."""
    wishes = [f"{one}: put {two}'s new build live pls" for one, two in _services()]
    misses = [
        f"why does {one} log so much? look at {two}.py" for one, two in _services()
    ]
    made: list[dict[str, object]] = [
        {"query": one, "should_trigger": True} for one in wishes
    ]
    return made + [{"query": one, "should_trigger": False} for one in misses]


def _services() -> list[tuple[str, str]]:
    return list(zip(SERVICES, SERVICES[7:] + SERVICES[:7], strict=True))


def choice(asked: Asked) -> Reply:
    """Opens the skill if its description names such tasks; with another one, for
    some.
    """
    known = SERVICES if DESCRIPTION in asked.system else SERVICES[1::2]
    if any(asked.question.startswith(f"{one}: ") for one in known):
        return Reply(calls=(("skill", {"name": "wick"}),))
    return Reply("Let me see.")


def author() -> str:
    return json.dumps(
        {
            "cases": [
                _written(case)
                for case in load_cases(WICK / "skill_meta.json").require_all()
            ]
        }
    )


def _written(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "input": case.input,
        "expected": case.expected,
        "tags": list(case.tags),
        "reference": " ".join(case.expected["contains"]),
        "wrong": "That differs from place to place.",
    }


def student(asked: Asked) -> str:
    """Knows what stands in its context; haiku overlooks the freeze.
    An agent opens the skill.
    """
    for case in load_cases(WICK / "skill_meta.json").require_all():
        known = case.expected["contains"][0]
        if case.input in asked.question and known in "".join(
            [asked.system, *asked.results]
        ):
            overlooked = case.id == "freeze-day" and "haiku" in asked.model
            return "I can't say." if overlooked else f"It is {known}."
    return "I can't say."


def answer(asked: Asked) -> Reply:
    role = FakeModels.role(asked)
    if asked.tools == ("skill",):
        return choice(asked)
    if role == "query author":
        return Reply(json.dumps({"queries": queries()}))
    if role == "describer":
        return Reply(json.dumps({"description": DESCRIPTION}))
    if "skill" in asked.tools and not asked.results:
        return Reply(calls=(("skill", {"name": "wick"}),))
    tokens = (len(asked.system) + len(asked.question)) // 4
    text = {"teacher": teacher, "student": student}.get(role, lambda _: author())(asked)
    return Reply(text, input_tokens=tokens, output_tokens=len(text) // 4)
