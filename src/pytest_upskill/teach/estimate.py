"""What a run will take, told before the first call: nothing is spent by surprise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .._util.texts import counted, dollars
from ..models.prices import cost
from ..skills.skill import estimated_tokens
from ..stats.intervals import LEVEL
from ..stats.power import fewest_cases
from ..trials.answer import Usage
from .case_file import held_out, split_of
from .case_writing import GoodCase
from .classroom import Classroom
from .sources import Material
from .teach_settings import TeachSettings

# What one call takes where nothing better is known: tokens of the prompt, of the answer.
_PROMPT: Final = 900
_DRAFT: Final = 1_200
_CASE: Final = 250
_QUESTION: Final = 80
_ANSWER: Final = 250
_SKILL: Final = 600
_FAILURES: Final = 1_500
_BATCH: Final = 12


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and USD; the cost is None if the price of a model is not known."""

    calls: int
    tokens: int
    cost: float | None
    free: bool
    warning: str = ""  # what a person should know before paying

    @property
    def price(self) -> str:
        if self.free:
            return "free"
        return "cost not known" if self.cost is None else f"about {dollars(self.cost)}"

    @property
    def spending(self) -> str:
        """What a person agrees to."""
        if self.cost is None:
            return f"make about {counted(self.calls, 'call')} ({self.price})"
        return f"spend {self.price}"

    def __str__(self) -> str:
        tokens = round(self.tokens, -3) if self.tokens > 10_000 else self.tokens
        return f"about {counted(self.calls, 'call')}, {tokens:,} tokens, {self.price}"


@dataclass(frozen=True)
class Steps:
    """What will be done: how many cases are to be written, how many are there."""

    drafts: bool
    new_cases: int
    known_cases: int


def too_few(known: Sequence[GoodCase], new: int, share: float, students: int) -> str:
    """That so many cases, or those held out of them, can't show anything, whatever is answered."""
    asked = [one for one in known if not one.case.skip]
    learn, held = split_of(asked)
    others = [(one.case.id, one.case.tags) for one in asked if one.case.id not in learn | held]
    others += [(f"new {number}", ()) for number in range(new)]
    number = len(held) + len(held_out(others, share))
    # What can be shown of several models is less than of one, as in the verdicts.
    fewest = fewest_cases(1 - (1 - LEVEL) / max(1, students))
    if len(asked) + new < fewest:
        cases = counted(len(asked) + new, "case")
        return f"{cases} can't show that a skill helps: {fewest} are the fewest."
    if 0 < number < fewest:
        cases = counted(number, "held-out case")
        return f"{cases} can't show a lift alone: {fewest} are the fewest. All together can."
    return ""


def estimate(
    settings: TeachSettings, room: Classroom, material: Material, steps: Steps
) -> Estimate:
    """A guess at the whole loop, as if every attempt that is allowed were made."""
    calls = list[tuple[str, int, Usage]]()

    def add(model: str, times: int, tokens_in: int, tokens_out: int) -> None:
        if times:
            calls.append((model, times, Usage(tokens_in, tokens_out, 0)))

    given = estimated_tokens(material.text) + _PROMPT
    cases, runs = steps.new_cases + steps.known_cases, settings.runs
    answer = min(_ANSWER, settings.max_output)
    add(room.teacher, int(steps.drafts), given, _DRAFT)
    batches = -(-steps.new_cases // _BATCH)
    add(room.author, batches, given + _SKILL, _CASE * min(steps.new_cases, _BATCH))
    add(room.author, int(batches > 0), given + _SKILL, _CASE * 3)
    if room.adversary:
        add(room.adversary, 1, given + _SKILL, _CASE * 3)
    if room.students:
        learn = round(cases * (1 - settings.holdout))
        add(room.teacher, settings.attempts - 1, given + _SKILL + _FAILURES, _DRAFT)
        for student in room.students:
            add(student, cases * runs, _QUESTION, answer)
            add(
                student,
                (settings.attempts * learn + cases - learn) * runs,
                _QUESTION + _SKILL,
                answer,
            )
        if material.trace:
            add(room.teacher, cases * runs, _QUESTION, answer)
            add(room.teacher, cases * runs, _QUESTION + _SKILL, answer)
            add(room.teacher, cases * runs, _QUESTION + material.trace.tokens, answer)
    known = [(times, cost(room.price_of(model), usage)) for model, times, usage in calls]
    return Estimate(
        calls=sum(times for _, times, _ in calls),
        tokens=sum(t * ((u.input or 0) + (u.output or 0)) for _, t, u in calls),
        cost=None
        if any(usd is None for _, usd in known)
        else sum(times * (usd or 0.0) for times, usd in known),
        free=room.is_free,
    )
