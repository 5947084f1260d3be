"""What a run of teach will cost, and whether its cases can show anything."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from .._util.texts import counted, points
from ..measure.estimate import (
    ANSWER,
    QUESTION,
    SKILL,
    Calls,
    Estimate,
    calls_of_trials,
    estimate_of,
)
from ..skills.skill import Skill, estimated_tokens
from ..skills.triggers import Trigger
from ..stats import cases_within
from ..stats.intervals import LEVEL
from ..stats.power import fewest_cases
from ..trials.answer import Usage
from ..trials.subject import Subject
from ..trials.trial import sample_of
from .attempts import MOST_TRACES
from .case_file import held_out, split_of
from .case_writing import UsableCase
from .query_writing import BATCH
from .shortening import MOST_SIZES
from .sources import Material
from .teach_models import TeachModels
from .teach_settings import TeachSettings
from .wordings import MOST_BODY

# Tokens, where nothing better is known.
_PROMPT: Final = 900
_DRAFT: Final = 1_200
_CASE: Final = 250
_FAILURES: Final = 1_500
_BATCH: Final = 12
# Tokens, where nothing better is known.
_DESCRIPTION_PROMPT: Final = 900
_DESCRIPTION: Final = 300
_QUERY: Final = 60
_LISTED_SKILL: Final = 100  # of a skill in a list
_CHOICE: Final = 100
_CHOICE_TURNS: Final = 2  # of an agent, until it is decided
# Tokens of what a teacher gets besides the skill, where nothing better is known.
_SHORTEN_PROMPT: Final = 900
_SHORTEN_FAILURES: Final = 3_000
_QUERY_PROMPT: Final = 600  # tokens, as is known from experience
_WRITTEN_QUERY: Final = 60


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


def estimate_teaching(
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


def too_few_queries(held: Sequence[Trigger], attempts: int) -> str:
    """A warning if a change in one kind of query can't be shown, whatever the students do."""
    should = sum(one.should_trigger for one in held)
    kinds = should, len(held) - should
    needed = fewest_cases(1 - (1 - LEVEL) / max(1, attempts - 1))
    if min(kinds) >= needed:
        return ""
    what = f"Few queries: {kinds[0]} that should open the skill and {kinds[1]} others are held out."
    if len(held) < needed:
        return f"{what}\nThey can't show that a description is better ({needed} needed)."
    return f"{what}\nIf only one of the two gets better, it takes {needed} of it to show that."


def estimate_descriptions(
    settings: TeachSettings, models: TeachModels, skill: Skill, queries: int
) -> Estimate:
    """An upper estimate: as if every version were written."""
    listed = _LISTED_SKILL * (1 + len(models.others(skill)))
    given = (
        _DESCRIPTION_PROMPT + estimated_tokens(skill.body[:MOST_BODY]) + _QUERY * queries + listed
    )
    calls = [Calls(models.teacher, settings.attempts - 1, Usage(given, _DESCRIPTION, 0))]
    trials, asked = settings.attempts * queries * settings.runs, listed + _QUERY
    for one in models.students:
        calls.append(calls_of_trials(one.agent, one.model, trials, asked, _CHOICE, _CHOICE_TURNS))
    return estimate_of(calls, models.price_of, free=models.is_free)


def estimate_distillation(
    settings: TeachSettings,
    models: TeachModels,
    tokens: int,
    parts: Mapping[Subject, int],
    learn: Sequence[UsableCase],
    rest: Sequence[UsableCase],
) -> Estimate:
    """An upper estimate: as if every version were written and measured.

    ``parts``: how many parts of the skill are left out, one at a time, with each student.
    """
    most, whole = settings.attempts, tokens
    failures = MOST_TRACES if models.with_agents else _SHORTEN_FAILURES
    asked = _SHORTEN_PROMPT + 2 * whole + failures
    calls = [Calls(models.teacher, most, Usage(asked, settings.max_skill_tokens, 0))]
    answer = min(ANSWER, models.settings.answer_output)
    sizes = min(MOST_SIZES, most)
    bare = len(learn) + len(rest)
    for student, number in parts.items():
        skilled = (number + 1 + most) * len(learn) + (1 + sizes) * len(rest)
        for times, tokens in ((bare, QUESTION), (skilled, QUESTION + whole)):
            trials = student.agent, student.model, times * settings.runs, tokens, answer
            calls.append(calls_of_trials(*trials, settings.max_turns))
    guess = estimate_of(calls, models.price_of, free=models.is_free)
    return replace(guess, warning=too_few_to_distill(rest, settings.margin))


def too_few_to_distill(rest: Sequence[UsableCase], margin: float) -> str:
    """A warning if the held-out cases can't rule out a loss, whatever the answers."""
    held = len({sample_of(one.case) for one in rest})  # those that ask the same count as one
    needed = cases_within([(1.0, 1.0)] * held, margin)
    if needed is not None and held >= needed:
        return ""
    least = next(
        one / 100
        for one in range(1, 101)
        if (cases_within([(1.0, 1.0)], one / 100) or held + 1) <= held
    )
    told = f"they can rule out {points(least).lstrip('+')} points or more"
    fewest = f" ({needed:,} needed)" if needed else ""
    lost = points(margin).lstrip("+")
    cases = counted(held, "held-out case")
    return f"Too few cases: {cases} can't rule out a loss of {lost} points{fewest}; {told}."


def estimate_queries(models: TeachModels, material: Material, queries: int) -> Estimate:
    """As if one more reply were needed to replace rejected queries."""
    replies = -(-queries // BATCH) + 1
    start = material.start.text if material.start else ""
    given = (
        _QUERY_PROMPT
        + estimated_tokens(material.text)
        + estimated_tokens(start)
        + _WRITTEN_QUERY * queries
    )
    usage = Usage(given, _WRITTEN_QUERY * min(queries, BATCH), 0)
    calls = Calls(models.author, replies, usage)
    return estimate_of([calls], models.price_of, free=models.is_free)
