"""Models for the pictures, as a conftest.py: each gives the right answer
with its own probability.

The same question always gets the same answer, so pictures change only with the program.
"""

import json
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from pytest_upskill import Answer, Model, Question, Usage
from pytest_upskill.skills.skill import estimated_tokens
from pytest_upskill.trials.trial import FOLLOW_SKILL

# In the project it is copied to
CASES = Path(__file__).parent / "skills/wick/skill_meta.json"


class Demo(Model):
    """A model that knows some of it."""

    def __init__(self, *, without: float, with_skill: float, wordy: int) -> None:
        self._answer = partial(
            _answer, without=without, with_skill=with_skill, wordy=wordy
        )

    async def ask(self, question: Question) -> Answer:
        return self._answer(question)


def pytest_upskill_models() -> dict[str, Callable[[str], Model]]:
    return {
        "small": lambda _: Demo(without=0.1, with_skill=0.65, wordy=1),
        "medium": lambda _: Demo(without=0.2, with_skill=0.95, wordy=2),
        "large": lambda _: Demo(without=0.5, with_skill=0.97, wordy=3),
    }


def _answer(
    question: Question, *, without: float, with_skill: float, wordy: int
) -> Answer:
    asked = question.messages[-1][1]
    has_skill = FOLLOW_SKILL in question.system
    chance = int(
        sha256(f"{question.model}{asked}{question.run}".encode()).hexdigest()[:6], 16
    )
    known = chance / 0xFFFFFF < (with_skill if has_skill else without)
    right = (
        " and ".join(_expected().get(asked, ()))
        if known
        else "not something that I know"
    )
    text = (
        f"It is {right}." + " You can look it up in the documentation of Wick." * wordy
    )
    spent = sum(estimated_tokens(part) for part in (question.system, asked))
    return Answer(text, Usage(spent, estimated_tokens(text), 0), seconds=0.4 * wordy)


@cache
def _expected() -> dict[str, list[str]]:
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    return {case["input"]: case["expected"].get("contains", []) for case in cases}
