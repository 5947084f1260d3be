"""The teacher itself with the trace that a skill was written from, and with the
skill.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from .._util.texts import counted
from ..checks import why_agent
from ..errors import BudgetError
from ..trials.arm import BASELINE, SKILL, TRACE
from .case_writing import UsableCase
from .improvement import measure
from .outcome import Taught
from .teach_run import TeachRun

_AS_GOOD: Final = 0.05
_MORE_TOKENS: Final = 0.02


def compared_with_trace(
    run: TeachRun, taught: Taught, cases: Sequence[UsableCase]
) -> Taught:
    """With the teacher's own answers, without anything,
    with the trace and with the skill.
    """
    trace, best = run.material.trace, taught.best
    plain = [usable for usable in cases if not why_agent(usable.case, usable.checks)]
    if not trace or not plain or not best.learning:
        return taught
    models, screen = run.models, run.screen
    screen.begin(f"Comparing the skill with the trace on {models.teacher}…")
    try:
        results = measure(run, best.draft, plain, models.as_student, trace=trace.text)
    except BudgetError:
        note = f"The skill was not compared with the trace: it {models.past_budget()}."
        return replace(taught, sentences=(*taught.sentences, note))
    finally:
        screen.drop()
    taught = replace(taught, teacher=results, trace_tokens=trace.tokens)
    return replace(taught, sentences=(*taught.sentences, *trace_sentences(taught)))


def trace_sentences(taught: Taught) -> Iterator[str]:
    """A good skill does as well as the trace, in fewer tokens."""
    if not taught.teacher or not taught.trace_tokens:
        return
    row = taught.teacher.rows[0]
    growth = row.token_change or 0.0
    skill, trace, bare = (row.scored(arm) or 0.0 for arm in (SKILL, TRACE, BASELINE))
    word = "as good as"
    if abs(skill - trace) > _AS_GOOD:
        word = "better than" if skill > trace else "not as good as"
    yield (
        f"With {row.label} the skill is {word} the trace: {skill:.0%} with the skill "
        f"({counted(taught.best.draft.tokens, 'token')}), {trace:.0%} with the trace "
        f"({counted(taught.trace_tokens, 'token')})."
    )
    if word == "not as good as":
        yield "The skill does not cover the whole task yet."
    if skill <= bare + _AS_GOOD and growth > _MORE_TOKENS:
        yield (
            f"Do not use it with {row.label}: {skill:.0%} with the skill, {bare:.0%}"
            f" without, for {growth:.0%} more tokens."
        )
