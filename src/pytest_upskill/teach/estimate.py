"""What a run will cost, estimated before the first call."""

from collections.abc import Sequence
from typing import Final

from ..measure.estimate import (
    ANSWER,
    QUESTION,
    SKILL,
    Calls,
    Estimate,
    calls_of_trials,
    estimate_of,
)
from ..skills.skill import estimated_tokens
from ..stats.intervals import LEVEL
from ..stats.power import fewest_cases
from ..trials.answer import Usage
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
_FAILURES: Final = 1_500
_BATCH: Final = 12


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
    calls = list[Calls]()

    def add(model: str, times: int, tokens_in: int, tokens_out: int) -> None:
        calls.append(Calls(model, times, Usage(tokens_in, tokens_out, 0)))

    given = estimated_tokens(material.text) + _PROMPT
    cases, runs = new_cases + known_cases, settings.runs
    answer = min(ANSWER, models.settings.answer_output)
    add(models.teacher, int(drafts), given, _DRAFT)
    batches = -(-new_cases // _BATCH)
    add(models.author, batches, given + SKILL, _CASE * min(new_cases, _BATCH))
    add(models.author, int(batches > 0), given + SKILL, _CASE * 3)
    if models.adversary:
        add(models.adversary, 1, given + SKILL, _CASE * 3)
    if models.students:
        learn = round(cases * (1 - settings.holdout))
        failures = MOST_TRACES if models.with_agents else _FAILURES
        add(models.teacher, settings.attempts - 1, given + SKILL + failures, _DRAFT)
        for student in models.students:
            skilled = settings.attempts * learn + cases - learn
            for times, asked in ((cases, QUESTION), (skilled, QUESTION + SKILL)):
                given_to = (student.agent, student.model, times * runs, asked, answer)
                calls.append(calls_of_trials(*given_to, settings.max_turns))
        if material.trace:
            add(models.teacher, cases * runs, QUESTION, answer)
            add(models.teacher, cases * runs, QUESTION + SKILL, answer)
            add(models.teacher, cases * runs, QUESTION + material.trace.tokens, answer)
    return estimate_of(calls, models.price_of, free=models.is_free)
