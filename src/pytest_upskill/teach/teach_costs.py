"""What a run will cost at most, and whether its cases or queries
are enough to show anything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from .._util.texts import counted, unsigned_points
from ..measure.estimate import (
    ANSWER,
    QUESTION,
    SKILL,
    Calls,
    Estimate,
    calls_of_trials,
    estimate_calls,
)
from ..skills.case import Case
from ..skills.skill import estimated_tokens
from ..stats import FEWEST_CASES, cases_to_rule_out, worst_loss
from ..trials.trial import lift_sample_of
from .case_file import ids_held_out, split_cases
from .case_writing import Author, CaseAuthor, UsableCase, adversarial_cases
from .failures import MOST_TRACES
from .shorter import MOST_SIZES
from .teach_models import TeachModels
from .teach_run import TeachRun
from .teach_settings import TeachSettings

# Typical sizes in tokens.
PROMPT: Final = 900
_DRAFT: Final = 1_200
_CASE: Final = 250
_FAILURES: Final = 1_500


def estimate_cases(run: TeachRun, number: int) -> Estimate:
    """Of new cases for a skill."""
    return estimate_of(run.models, _calls_for_cases(run, number))


def estimate_teaching(
    run: TeachRun,
    new_cases: int,
    old_cases: Sequence[UsableCase],
    *,
    drafts: bool = False,
) -> Estimate:
    """An upper estimate: as if every version were written. ``drafts``:
    the first one is, too.
    """
    settings = run.settings
    models = run.models
    prompt = prompt_tokens(run)
    calls = _calls_for_cases(run, new_cases)
    calls.append(Calls(models.teacher, int(drafts), prompt, _DRAFT))
    if not models.students:
        return estimate_of(models, calls)

    prompt += SKILL + (MOST_TRACES if models.with_agents else _FAILURES)
    rewrites = settings.attempts - int(drafts)
    calls.append(Calls(models.teacher, rewrites, prompt, _DRAFT))

    active = [usable for usable in old_cases if not usable.case.skip]
    if settings.max_skill_tokens is not None and not drafts:
        compared = min(settings.attempts, MOST_SIZES)
        warning = _too_few_to_shorten(active, settings)
    else:
        compared = 1
        warning = _too_few_cases(active, new_cases, settings)
    cases = new_cases + len(old_cases)
    learning = round(cases * (1 - settings.holdout))
    # The skill before is measured too, if there is one.
    before = int(not drafts or run.material.start is not None)
    measured = (settings.attempts + before) * learning
    measured += (compared + before) * (cases - learning)
    calls += calls_of_students(models, cases, QUESTION)
    calls += calls_of_students(models, measured, QUESTION + SKILL)
    if trace := run.material.trace:
        for context in (0, SKILL, trace.tokens):
            trials = cases * settings.runs
            calls.append(Calls(models.teacher, trials, QUESTION + context, ANSWER))
    return replace(estimate_of(models, calls), warning=warning)


def prompt_tokens(run: TeachRun) -> int:
    return PROMPT + estimated_tokens(run.material.text)


def _calls_for_cases(run: TeachRun, number: int) -> list[Calls]:
    """Of the authors, and of the students, on whom new cases are tried."""
    models = run.models
    prompt = prompt_tokens(run) + SKILL
    calls = [calls_of_author(CaseAuthor, models.author, number, prompt, _CASE)]
    if models.adversary:
        attacks = adversarial_cases(run.settings)
        calls.append(
            calls_of_author(CaseAuthor, models.adversary, attacks, prompt, _CASE)
        )
    if models.students and number:
        # Cases that show nothing are replaced once, and tried again.
        calls.append(Calls(models.author, 1, prompt, _CASE))
        calls += calls_of_students(models, 2 * number, QUESTION)
    return calls


def calls_of_author(
    author: type[Author], model: str, number: int, prompt: int, size: int
) -> Calls:
    """As if all replies were needed, to replace what is rejected."""
    replies = author.rounds(number)
    return Calls(model, replies, prompt, size * min(number, author.batch))


def calls_of_students(
    models: TeachModels,
    cases: int,
    prompt: int,
    *,
    answer: int = ANSWER,
    max_turns: int | None = None,
) -> list[Calls]:
    calls = []
    for agent, model in models.students:
        calls.append(
            calls_of_trials(
                agent,
                model,
                trials=cases * models.settings.runs,
                prompt=prompt,
                answer=min(answer, models.settings.answer_output(model)),
                max_turns=max_turns or models.settings.max_turns,
            )
        )
    return calls


def estimate_of(models: TeachModels, calls: Iterable[Calls]) -> Estimate:
    return estimate_calls(calls, models.price_of, is_free=models.is_free)


def _too_few_cases(
    active: Sequence[UsableCase], new: int, settings: TeachSettings
) -> str:
    """A warning if these cases can't show a lift whatever the answers; "" if they
    can.
    """
    cases = [usable.case for usable in active]
    cases += [Case(f"new {number}", f"new {number}") for number in range(new)]
    number, total = len(ids_held_out(cases, settings.holdout)), len(cases)
    if total < FEWEST_CASES:
        return (
            f"Too few cases: {total} can't show that a skill helps"
            f" ({FEWEST_CASES} needed)."
        )
    if 0 < number < FEWEST_CASES:
        needed = f"can't show a lift ({FEWEST_CASES} needed)"
        return f"Too few held-out cases: {number} {needed}; all {total} cases can."
    return ""


def _too_few_to_shorten(active: Sequence[UsableCase], settings: TeachSettings) -> str:
    """A warning if the held-out cases can't rule out a loss, whatever the answers."""
    held_out, margin = split_cases(active, settings.holdout)[1], settings.margin
    # A group counts as one
    held = len({lift_sample_of(usable.case) for usable in held_out})
    needed = cases_to_rule_out(margin)
    if held >= needed:
        return ""
    loss = unsigned_points(margin)
    cases_held = counted(held, "held-out case")
    possible = 100
    if held:
        possible = int(100 * worst_loss([0.0] * held)) + 1
    return (
        f"Too few cases: {cases_held} can't rule out a loss of {loss} points"
        f" ({needed:,} needed); they can rule out {possible} points or more."
    )
