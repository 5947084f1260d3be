"""The gates of a run: which numbers miss their limits,
and whether that could be chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from .._util.texts import apart
from ..settings import Gates
from ..stats import ROUNDING
from .arm_comparison import unit_of
from .trigger_summary import NO_QUERY, TriggerSummary
from .verdict import Verdict, missing_words


def gate_reasons(verdicts: Sequence[Verdict], gates: Gates) -> list[str]:
    """Why the run fails the gates of its cases; empty if it passes."""
    return [
        f"{verdict.summary.pair}: {reason}"
        for verdict in verdicts
        if gates.of_cases and not verdict.is_of_oracle
        for reason in _of_cases(verdict, gates)
    ]


def trigger_reasons(
    rows: Sequence[TriggerSummary], gates: Gates, skills: Iterable[str]
) -> list[str]:
    """Why the run fails its gates of triggers; ``skills`` are all that it tests."""
    if not gates.of_triggers:
        return []
    reasons = [
        f"{row.pair}: {reason}" for row in rows for reason in query_reasons(row, gates)
    ]
    tested = {row.skill for row in rows}
    reasons += [
        f"{skill}: can't pass: {NO_QUERY}" for skill in skills if skill not in tested
    ]
    return reasons or ([] if rows else [f"can't pass: {NO_QUERY}"])


class Queries(Protocol):
    """What came of queries that should open a skill, or none."""

    @property
    def missing_words(self) -> str: ...
    @property
    def recall(self) -> "QueryShare | None": ...
    @property
    def false_alarms(self) -> "QueryShare | None": ...


class QueryShare(Protocol):
    """A share of queries, with its interval."""

    @property
    def rate(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...


def _of_cases(verdict: Verdict, gates: Gates) -> Iterator[str]:
    row, lift, skill = verdict.summary, verdict.lift, verdict.summary.arm("skill")
    if verdict.word == "incomplete" or row.budget_words:
        yield f"can't pass: {missing_words(row)}"
        return
    if gates.min_lift is not None:
        if lift is None:
            yield "lift unknown: there is no baseline"
        else:
            name, bounds = f"lift{unit_of(row.score)}", (lift.low, lift.high)
            yield from _missed(
                name,
                lift.lift,
                bounds=bounds,
                limit=gates.min_lift,
                gates=gates,
                sign="+",
                unit=" points",
            )
    if gates.min_pass_rate is not None:
        bounds, rate = skill.interval or (0.0, 1.0), skill.rate or 0.0
        yield from _missed(
            "pass rate", rate, bounds=bounds, limit=gates.min_pass_rate, gates=gates
        )
    if gates.max_token_growth is not None:
        over = verdict.over("baseline")
        growth = over.tokens if over else None
        if growth is None or (gates.confident and growth.high is None):
            yield "token growth unknown"
        else:
            name, most = "token growth", gates.max_token_growth
            span = (growth.low, growth.high)
            yield from _missed(
                name,
                growth.change,
                bounds=span,
                limit=most,
                gates=gates,
                sign="+",
                is_maximum=True,
            )
    since = verdict.over("previous")
    if gates.no_worse and since and since.word == "worse":
        yield verdict.since or ""


def query_reasons(row: Queries, gates: Gates) -> Iterator[str]:
    """Why queries fail the gates of triggers, if there are any."""
    if not gates.of_triggers:
        return
    if row.missing_words:
        yield f"can't pass: {row.missing_words}"
        return
    if gates.min_recall is not None:
        if row.recall is None:
            yield "recall unknown: no query that needs a skill was asked"
        else:
            recall = row.recall
            yield from _missed(
                "recall",
                recall.rate,
                bounds=recall.interval,
                limit=gates.min_recall,
                gates=gates,
            )
    if gates.max_false_alarms is not None:
        if row.false_alarms is None:
            yield "false alarms unknown: no query without need of one was asked"
        else:
            alarms, name, most = (
                row.false_alarms,
                "share of false alarms",
                gates.max_false_alarms,
            )
            yield from _missed(
                name,
                alarms.rate,
                bounds=alarms.interval,
                limit=most,
                gates=gates,
                is_maximum=True,
            )


def _missed(
    name: str,
    estimate: float,
    *,
    bounds: tuple[float | None, float | None],
    limit: float,
    gates: Gates,
    sign: str = "",
    unit: str = "%",
    is_maximum: bool = False,
) -> Iterator[str]:
    """``lift is +12 points (minimum +20; could be chance: -3 to +27)``, if it is.

    It is shown that the limit is missed if all of the interval misses it.
    """
    side = -1 if is_maximum else 1
    worst, best = reversed(bounds) if is_maximum else bounds
    reached = worst if gates.confident else estimate
    if reached is None or side * (reached - limit) >= -ROUNDING:
        return
    if gates.confident:
        name = f"{'highest' if is_maximum else 'lowest'} likely {name}"
    is_shown = best is not None and side * (best - limit) < -ROUNDING
    evidence = "shown" if is_shown else "could be chance"
    mark = "%" if unit == "%" else ""
    if worst is not None and best is not None:
        ends = [
            f"{apart(end, limit, sign)[0]}{mark}" for end in bounds if end is not None
        ]
        evidence += f": {' to '.join(ends)}"
    have, want = apart(reached, limit, sign)
    kind = "maximum" if is_maximum else "minimum"
    yield f"{name} is {have}{unit} ({kind} {want}{mark}; {evidence})"
