"""The gates of a run: which numbers miss their limits, and whether that could be
chance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from .._util import grouped
from .._util.texts import apart, first_few, one_line
from ..settings import Gates
from ..stats import ROUNDING
from ..trials.arm import BASELINE, PREVIOUS, SKILL
from ..trials.plan import Unmatched, Why
from .row import Row, missing_words, since_words

_MAX_NAMES: Final = 10
_UNMATCHED_WORDS: Final[Mapping[Why, str]] = {
    "gone": "accepted, but gone from the file or not for this model now",
    "skipped": "accepted, but skipped or marked xfail now",
    "changed": "changed since accepted",
}


def gate_reasons(rows: Sequence[Row], gates: Gates) -> list[str]:
    """Why the run fails the gates of its cases; empty if it passes."""
    if not gates.of_cases:
        return []

    reasons = []
    for row in rows:
        reasons += [f"{row.pair}: {reason}" for reason in _case_reasons(row, gates)]
    return reasons


def unmatched_reasons(unmatched: Iterable[Unmatched]) -> list[str]:
    """Why accepted results that no test is compared with fail a run: one line for each
    skill, model and reason.
    """
    order = list(_UNMATCHED_WORDS)
    rows = sorted(
        unmatched, key=lambda row: (row.skill, row.label, order.index(row.why))
    )
    reasons = []
    for (pair, why), group in grouped(rows, lambda row: (row.pair, row.why)).items():
        cases = [f"{one_line(row.case, 60)} ({row.was})" for row in group]
        accept = "accept that they are dropped"
        if why == "changed":
            accept = "accept the new results"
        reasons.append(
            f"{pair}: {_UNMATCHED_WORDS[why]}: {first_few(cases, _MAX_NAMES)};"
            f" undo that, or {accept}"
        )
    return reasons


def _case_reasons(row: Row, gates: Gates) -> Iterator[str]:
    if row.incomplete or row.budget_words:
        yield f"can't pass: {missing_words(row)}"
        return

    over = row.over(BASELINE)
    if gates.min_lift is not None:
        if over is None:
            yield "lift unknown: there is no baseline"
        else:
            yield from find_missed(
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
        yield from find_missed(
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
            yield from find_missed(
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


def find_missed(
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
