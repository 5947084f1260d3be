"""What queries and descriptions cost at most, and whether the queries can show
anything.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...measure.estimate import Calls, Estimate
from ...skills.skill import Skill, estimated_tokens
from ...stats import FEWEST_CASES
from ...teach.case_writing import Author, UsableCase
from ...teach.failures import MOST_BODY
from ...teach.teach_costs import (
    PROMPT,
    calls_of_author,
    calls_of_students,
    estimate_of,
    prompt_tokens,
)
from ...teach.teach_run import TeachRun

# Typical sizes in tokens.
_QUERY: Final = 60
_DESCRIPTION: Final = 300
_LISTED_SKILL: Final = 100
_CHOICE: Final = 100
_CHOICE_TURNS: Final = 2  # of an agent, until it opened a skill or not


def estimate_descriptions(
    run: TeachRun,
    skill: Skill,
    learning: Sequence[UsableCase],
    held_out: Sequence[UsableCase],
) -> Estimate:
    """An upper estimate: as if every version were written."""
    models = run.models
    attempts = run.settings.attempts
    queries = len(learning) + len(held_out)
    listed = _LISTED_SKILL * (1 + len(models.neighbours(skill)))
    body = estimated_tokens(skill.body[:MOST_BODY])
    prompt = PROMPT + body + _QUERY * queries + listed
    calls = [Calls(models.teacher, attempts, prompt, _DESCRIPTION)]
    calls += calls_of_students(
        models,
        (attempts + 1) * queries,
        listed + _QUERY,
        answer=_CHOICE,
        max_turns=_CHOICE_TURNS,
    )
    return replace(estimate_of(models, calls), warning=_too_few_queries(held_out))


def estimate_queries(run: TeachRun, author: type[Author], queries: int) -> Estimate:
    start = run.material.start.text if run.material.start else ""
    prompt = prompt_tokens(run) + estimated_tokens(start) + _QUERY * queries
    calls = calls_of_author(author, run.models.author, queries, prompt, _QUERY)
    return estimate_of(run.models, [calls])


def _too_few_queries(held: Sequence[UsableCase]) -> str:
    """A warning if a change in one kind of query can't be shown,
    whatever the students do.
    """
    should = sum(usable.case.should_open for usable in held)
    kinds = should, len(held) - should
    if min(kinds) >= FEWEST_CASES:
        return ""
    few = (
        f"Few queries: {kinds[0]} that should open the skill and {kinds[1]} others are"
        " held out."
    )
    if len(held) < FEWEST_CASES:
        return (
            f"{few}\nThey can't show that a description is better"
            f" ({FEWEST_CASES} needed)."
        )
    return (
        f"{few}\nIf only one of the two kinds gets better, {FEWEST_CASES} of it are"
        " needed to show that."
    )
