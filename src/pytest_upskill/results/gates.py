"""The gates of a run: which numbers miss their limits, and whether that could be
chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from .._util.texts import apart
from ..settings import Gates
from ..stats import ROUNDING
from ..trials.arm import BASELINE, PREVIOUS, SKILL
from .row import Row, missing_words, since_words
from .trigger_summary import NO_QUERY, TriggerSummary


def gate_reasons(rows: Sequence[Row], gates: Gates) -> list[str]:
    """Why the run fails the gates of its cases; empty if it passes."""
    if not gates.of_cases:
        return []

    reasons = []
    for row in rows:
        if not row.is_of_oracle:
            reasons += [f"{row.pair}: {reason}" for reason in _case_reasons(row, gates)]
    return reasons


def trigger_reasons(
    rows: Sequence[TriggerSummary], gates: Gates, skills: Iterable[str]
) -> list[str]:
    """Why the run fails its gates of triggers; ``skills`` are all that it tests."""
    if not gates.of_triggers:
        return []

    reasons = []
    for row in rows:
        reasons += [f"{row.pair}: {reason}" for reason in query_reasons(row, gates)]
    tested = {row.skill for row in rows}
    for skill in skills:
        if skill not in tested:
            reasons.append(f"{skill}: can't pass: {NO_QUERY}")
    if not rows and not reasons:
        return [f"can't pass: {NO_QUERY}"]
    return reasons


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


def _case_reasons(row: Row, gates: Gates) -> Iterator[str]:
    if row.incomplete or row.budget_words:
        yield f"can't pass: {missing_words(row)}"
        return

    over = row.over(BASELINE)
    if gates.min_lift is not None:
        if over is None:
            yield "lift unknown: there is no baseline"
        else:
            yield from _find_missed(
                "lift" if row.score == "pass" else "lift of checks",
                over.lift.lift,
                bounds=(over.lift.low, over.lift.high),
                limit=gates.min_lift,
                gates=gates,
                sign="+",
                unit=" points",
            )
    if gates.min_pass_rate is not None:
        skill = row.arm(SKILL)
        yield from _find_missed(
            "pass rate",
            skill.rate or 0.0,
            bounds=skill.interval or (0.0, 1.0),
            limit=gates.min_pass_rate,
            gates=gates,
        )
    if gates.max_token_growth is not None:
        growth = over.tokens if over else None
        if growth is None or (gates.confident and growth.high is None):
            yield "token growth unknown"
        else:
            yield from _find_missed(
                "token growth",
                growth.change,
                bounds=(growth.low, growth.high),
                limit=gates.max_token_growth,
                gates=gates,
                sign="+",
                is_maximum=True,
            )
    since = row.over(PREVIOUS)
    if gates.no_worse and since and since.word == "worse":
        yield since_words(row, since)


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
            yield from _find_missed(
                "recall",
                row.recall.rate,
                bounds=row.recall.interval,
                limit=gates.min_recall,
                gates=gates,
            )
    if gates.max_false_alarms is not None:
        if row.false_alarms is None:
            yield "false alarms unknown: no query without need of one was asked"
        else:
            yield from _find_missed(
                "share of false alarms",
                row.false_alarms.rate,
                bounds=row.false_alarms.interval,
                limit=gates.max_false_alarms,
                gates=gates,
                is_maximum=True,
            )


def _find_missed(
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
    worst, best = bounds
    kind = "minimum"
    side = 1
    if is_maximum:
        best, worst = bounds
        kind = "maximum"
        side = -1

    reached = estimate
    if gates.confident:
        if worst is None:
            return
        reached = worst
        name = f"{'highest' if is_maximum else 'lowest'} likely {name}"
    if side * (reached - limit) >= -ROUNDING:
        return

    is_shown = best is not None and side * (best - limit) < -ROUNDING
    evidence = "shown" if is_shown else "could be chance"
    mark = "%" if unit == "%" else ""
    low, high = bounds
    if low is not None and high is not None:
        ends = [f"{apart(end, limit, sign)[0]}{mark}" for end in (low, high)]
        evidence += f": {' to '.join(ends)}"
    have, want = apart(reached, limit, sign)
    yield f"{name} is {have}{unit} ({kind} {want}{mark}; {evidence})"
