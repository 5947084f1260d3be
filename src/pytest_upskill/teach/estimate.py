"""What a run will cost, estimated before the first call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .._util.texts import counted, dollars
from ..models.prices import cost
from ..skills.skill import estimated_tokens
from ..stats.intervals import LEVEL
from ..stats.power import fewest_cases
from ..trials.answer import Usage
from ..trials.subject import CHAT
from .case_file import held_out, split_of
from .case_writing import UsableCase
from .failures import MOST_TRACES
from .sources import Material
from .teach_models import TeachModels
from .teach_settings import TeachSettings

# Tokens, where nothing better is known.
_PROMPT: Final = 900
_DRAFT: Final = 1_200
_CASE: Final = 250
_QUESTION: Final = 80
_ANSWER: Final = 250
_SKILL: Final = 600
_FAILURES: Final = 1_500
_BATCH: Final = 12
# Of an agent, which sends all that was said before with every turn.
_TURNS: Final = 8
_TURN: Final = 400
_OWN_TEXT: Final = 12_000  # and tools, of a real one
_TEXT_OF_LOOP: Final = 600


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and USD; the cost is None if a price is not known."""

    calls: int
    tokens: int
    cost: float | None
    free: bool
    warning: str = ""  # what to know before paying

    @property
    def price(self) -> str:
        if self.free:
            return "free"
        return "cost not known" if self.cost is None else f"about {dollars(self.cost)}"

    @property
    def spending(self) -> str:
        """What the user agrees to."""
        if self.cost is None:
            return f"make about {counted(self.calls, 'call')} ({self.price})"
        return f"spend {self.price}"

    def __str__(self) -> str:
        tokens = round(self.tokens, -3) if self.tokens > 10_000 else self.tokens
        return f"about {counted(self.calls, 'call')}, {tokens:,} tokens, {self.price}"


def too_few(known: Sequence[UsableCase], new: int, share: float, students: int) -> str:
    """A warning if these cases can't show a lift whatever the answers; "" if they can."""
    asked = [one for one in known if not one.case.skip]
    learn, held = split_of(asked)
    others = [(one.case.id, one.case.tags) for one in asked if one.case.id not in learn | held]
    others += [(f"new {number}", ()) for number in range(new)]
    number = len(held) + len(held_out(others, share))
    # Several models need more cases than one, as in the verdicts.
    fewest = fewest_cases(1 - (1 - LEVEL) / max(1, students))
    cases = len(asked) + new
    if cases < fewest:
        return f"Too few cases: {cases} can't show that a skill helps ({fewest} needed)."
    if 0 < number < fewest:
        needed = f"can't show a lift ({fewest} needed)"
        return f"Too few held-out cases: {number} {needed}; all {cases} cases can."
    return ""


def estimate(
    settings: TeachSettings,
    models: TeachModels,
    material: Material,
    new_cases: int,
    known_cases: int,
    *,
    drafts: bool = False,
) -> Estimate:
    """An upper estimate: as if every attempt were made. ``drafts``: the skill is written too."""
    calls = list[tuple[str, int, Usage]]()

    def add(model: str, times: int, tokens_in: int, tokens_out: int) -> None:
        if times:
            calls.append((model, times, Usage(tokens_in, tokens_out, 0)))

    given = estimated_tokens(material.text) + _PROMPT
    cases, runs = new_cases + known_cases, settings.runs
    answer = min(_ANSWER, models.settings.answer_output)
    add(models.teacher, int(drafts), given, _DRAFT)
    batches = -(-new_cases // _BATCH)
    add(models.author, batches, given + _SKILL, _CASE * min(new_cases, _BATCH))
    add(models.author, int(batches > 0), given + _SKILL, _CASE * 3)
    if models.adversary:
        add(models.adversary, 1, given + _SKILL, _CASE * 3)
    if models.students:
        learn = round(cases * (1 - settings.holdout))
        failures = MOST_TRACES if models.with_agents else _FAILURES
        add(models.teacher, settings.attempts - 1, given + _SKILL + failures, _DRAFT)
        for student in models.students:
            turns, asked = 1, _QUESTION
            if student.agent != CHAT:
                turns = min(_TURNS, settings.max_turns)
                asked += _TEXT_OF_LOOP if student.agent == "loop" else _OWN_TEXT
                asked += _TURN * turns // 2
            add(student.model, turns * cases * runs, asked, answer)
            skilled = settings.attempts * learn + cases - learn
            add(student.model, turns * skilled * runs, asked + _SKILL, answer)
        if material.trace:
            add(models.teacher, cases * runs, _QUESTION, answer)
            add(models.teacher, cases * runs, _QUESTION + _SKILL, answer)
            add(models.teacher, cases * runs, _QUESTION + material.trace.tokens, answer)
    known = [(times, cost(models.price_of(model), usage)) for model, times, usage in calls]
    return Estimate(
        calls=sum(times for _, times, _ in calls),
        tokens=sum(t * ((u.input or 0) + (u.output or 0)) for _, t, u in calls),
        cost=None
        if any(usd is None for _, usd in known)
        else sum(times * (usd or 0.0) for times, usd in known),
        free=models.is_free,
    )
