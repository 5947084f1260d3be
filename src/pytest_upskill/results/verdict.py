"""What a summary amounts to: one word and one sentence per skill and model, and the gates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal

from .._util.texts import counted, dollars, one_line
from ..settings import Gates
from ..stats import (
    LEVEL,
    Change,
    Lift,
    cases_needed,
    detectable_lift,
    holm,
    normalised_gain,
    paired_lift,
    paired_ratio,
    runs_needed,
)
from .comparison import Comparison, adjusted_lift, comparisons_of, points_words, token_words
from .summary import Summary

Word = Literal["helps", "hurts", "no effect shown", "not needed", "incomplete"]

_PASSES_ALREADY: Final = 0.9
_AS_GOOD: Final = 0.05
_MOST_NAMES: Final = 5
_FORESEEABLE: Final = 10


@dataclass(frozen=True)
class Verdict:
    """What is known of a skill on a model. Without a baseline there is no word for it."""

    summary: Summary
    word: Word | None
    sentence: str
    lift: Lift | None
    p_value: float | None  # adjusted for there being several models
    tokens: Change | None
    detectable_lift: float | None
    score: Lift | None  # the lift of the scores, which have partial credit
    gain: float | None  # the lift as a share of what the baseline left to gain
    worse: tuple[str, ...]  # cases that fail with the skill and pass without
    always_pass: tuple[str, ...]  # without the skill too
    always_fail: tuple[str, ...]  # with the skill too
    since: Comparison | None = None  # the ref of --skill-against


def verdicts_of(summaries: Sequence[Summary], level: float = LEVEL) -> list[Verdict]:
    """One for each summary, in their order; models of a skill are adjusted for being several."""
    verdicts: list[Verdict] = []
    for _, group in groupby(summaries, key=lambda summary: summary.skill):
        rows = list(group)
        lifts = [paired_lift(row.rates, row.runs, level) if row.rates else None for row in rows]
        known = [lift.p_value for lift in lifts if lift]
        adjusted = iter(holm(known))
        # What can be shown of several models is less than of one: as Holm's first step has it.
        planned = 1 - (1 - level) / max(1, len(known))
        for row, lift, since in zip(rows, lifts, comparisons_of(rows, level), strict=True):
            p_value = next(adjusted) if lift else None
            told = adjusted_lift(lift, p_value, level)
            verdict = _verdict(row, told, p_value, level, planned, len(known))
            verdicts.append(replace(verdict, since=since))
    return verdicts


def _verdict(
    row: Summary,
    lift: Lift | None,
    p_value: float | None,
    level: float,
    planned: float,
    models: int,
) -> Verdict:
    """``planned`` is the level that a lift has to be shown at, one of so many models."""
    change = paired_ratio(row.tokens, level) if row.tokens else None
    smallest = detectable_lift(row.rates, planned) if row.rates else None
    word = _word(row, lift)
    return Verdict(
        summary=row,
        word=word,
        sentence=_sentence(row, word, lift, change, _outlook(row, smallest, planned, models)),
        lift=lift,
        p_value=p_value,
        tokens=change,
        detectable_lift=smallest,
        score=paired_lift(row.scores, row.runs, level) if row.scores else None,
        gain=_gain(row),
        worse=tuple(c.case for c in row.by_case if c.baseline is not None and c.skill < c.baseline),
        always_pass=tuple(c.case for c in row.by_case if c.baseline == 1 and c.skill == 1),
        always_fail=tuple(c.case for c in row.by_case if c.baseline == 0 and c.skill == 0),
    )


def _gain(row: Summary) -> float | None:
    if row.baseline_rate is None or row.skill_rate is None:
        return None
    return normalised_gain(row.baseline_rate, row.skill_rate)


def _word(row: Summary, lift: Lift | None) -> Word | None:
    if row.errored or row.not_run or not row.by_case:
        return "incomplete"
    if lift is None or row.baseline_rate is None:
        return None
    if lift.shown:
        return "helps" if lift.lift > 0 else "hurts"
    harmless_enough = lift.lift >= -_AS_GOOD
    passes = row.baseline_rate >= _PASSES_ALREADY
    return "not needed" if passes and harmless_enough else "no effect shown"


def _sentence(
    row: Summary,
    word: Word | None,
    lift: Lift | None,
    change: Change | None,
    outlook: str,
) -> str:
    parts = []
    if word == "incomplete":
        parts.append(_missing(row))
    if lift is None:
        parts += [f"{row.skill_rate:.0%} pass with the skill"] if row.skill_rate is not None else []
    else:
        parts.append(points_words(lift))
    if word == "not needed":
        parts.append(f"{row.baseline_rate:.0%} pass without it")
    if word == "no effect shown":
        parts.append(outlook)
    if change:
        parts.append(token_words(change))
    if row.most_runs and row.runs < row.most_runs:
        parts.append(f"after {row.runs} of {counted(row.most_runs, 'run')}")
    return ", ".join(parts)


def _missing(row: Summary) -> str:
    parts = [f"{counted(row.errored, 'answer')} missing"] if row.errored else []
    parts += [f"{counted(row.not_run, 'case')} not run"] if row.not_run else []
    return " and ".join(parts) or "nothing was answered"


def _outlook(row: Summary, smallest: float | None, level: float, models: int) -> str:
    """What it would take to know."""
    if not row.rates:
        return ""
    among = f" of one of {models} models" if models > 1 else ""
    if smallest is None:
        return f"{counted(len(row.rates), 'case')} can't show any lift{among}"
    cases = cases_needed(row.rates, level)
    runs = runs_needed(row.rates, row.runs, level)
    # An estimate that is mostly noise says nothing of how many cases it would take.
    if cases is not None and len(row.rates) < cases <= _FORESEEABLE * len(row.rates):
        more = f"{counted(cases - len(row.rates), 'more case')}"
        more += f", or {runs} runs," if runs is not None and runs > row.runs else ""
        return f"{more} would settle it"
    return f"these cases show {round(smallest * 100)} points or more{among}"


def sweet_spot(verdicts: Sequence[Verdict]) -> str | None:
    """Of one skill: the cheapest model that with it is as good as the best, by known prices."""
    if not (spot := _sweet_spot(verdicts)):
        return None
    cheapest, best, is_cheapest_of_all = spot
    told = f"{cheapest.model} with the skill ({cheapest.skill_rate:.0%}) is"
    if cheapest is not best:
        return (
            f"{told} the cheapest that is as good as the best "
            f"({best.model}, {best.skill_rate:.0%}): "
            f"{_price(cheapest)} instead of {_price(best)} per 1000 answers."
        )
    if is_cheapest_of_all:
        return f"{told} the best and the cheapest."
    return f"{told} the best, and none that is cheaper comes within {_AS_GOOD:.0%} of it."


def sweet_spot_model(verdicts: Sequence[Verdict]) -> str | None:
    """The model that the sentence above names."""
    spot = _sweet_spot(verdicts)
    return spot[0].model if spot else None


def _sweet_spot(verdicts: Sequence[Verdict]) -> tuple[Summary, Summary, bool] | None:
    """The cheapest good one, the best one, and whether that is the cheapest of all too."""
    known = [
        verdict.summary
        for verdict in verdicts
        if verdict.word != "incomplete"
        and verdict.summary.skill_cost is not None
        and verdict.summary.skill_rate is not None
    ]
    if len({row.skill_cost for row in known}) < 2:
        return None
    best = max(known, key=lambda row: (row.skill_rate or 0.0, -(row.skill_cost or 0.0)))
    good = [row for row in known if (row.skill_rate or 0.0) >= (best.skill_rate or 0.0) - _AS_GOOD]
    cheapest = min(good, key=lambda row: row.skill_cost or 0.0)
    return cheapest, best, best.skill_cost == min(row.skill_cost or 0.0 for row in known)


def _price(row: Summary) -> str:
    return dollars(1000 * (row.skill_cost or 0.0))


def signal_lines(verdict: Verdict) -> list[str]:
    """Cases that tell nothing, or the wrong thing: those to look at come first."""
    lines = []
    if verdict.worse:
        lines.append(f"worse with the skill: {_names(verdict.worse)}")
    if verdict.always_pass:
        lines.append(f"no signal, pass without it: {_names(verdict.always_pass)}")
    if verdict.always_fail:
        lines.append(f"no signal, fail with it too: {_names(verdict.always_fail)}")
    return lines


def _names(cases: Sequence[str]) -> str:
    shown = ", ".join(one_line(case, 60) for case in cases[:_MOST_NAMES])
    more = len(cases) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def gate_reasons(verdicts: Sequence[Verdict], gates: Gates) -> list[str]:
    """Why the run does not pass its gates; none if it does."""
    return [
        f"{verdict.summary.skill} on {verdict.summary.model}: {reason}"
        for verdict in verdicts
        for reason in _reasons(verdict, gates)
    ]


def _reasons(verdict: Verdict, gates: Gates) -> list[str]:
    row, lift, change = verdict.summary, verdict.lift, verdict.tokens
    if not gates.any():
        return []
    if verdict.word == "incomplete":
        return [f"incomplete ({_missing(row)}), so no gate can pass"]
    reasons = []
    if gates.min_lift is not None:
        reached = lift and (lift.low if gates.confident else lift.lift)
        if reached is None:
            reasons.append("the lift is not known without a baseline (--skill-min-lift)")
        elif reached < gates.min_lift:
            have, want = _apart(reached, gates.min_lift, "+")
            reasons.append(
                f"{_which('lift', gates)} {have} points, below {want} (--skill-min-lift)"
            )
    if gates.min_pass_rate is not None:
        rate = row.skill_low if gates.confident else row.skill_rate
        if rate is None or rate < gates.min_pass_rate:
            have, want = _apart(rate or 0.0, gates.min_pass_rate)
            reasons.append(
                f"{_which('pass rate', gates)} {have}%, below {want}% (--skill-min-pass-rate)"
            )
    if gates.max_token_growth is not None:
        growth = change and (change.high if gates.confident else change.change)
        if growth is None:
            reasons.append("the token growth is not known (--skill-max-token-growth)")
        elif growth > gates.max_token_growth:
            have, want = _apart(growth, gates.max_token_growth, "+")
            reasons.append(
                f"{_which('token growth', gates, 'highest')} {have}%, "
                f"above {want}% (--skill-max-token-growth)"
            )
    if gates.no_worse and verdict.since and verdict.since.word == "worse":
        reasons.append(f"{verdict.since.sentence} (--skill-no-worse)")
    return reasons


def _apart(one: float, other: float, sign: str = "") -> tuple[str, str]:
    """Two shares in percent or points, with so many digits that they differ."""
    for digits in range(4):
        shown = (f"{100 * one:{sign}.{digits}f}", f"{100 * other:{sign}.{digits}f}")
        if shown[0] != shown[1]:
            break
    return (shown[0] if one else "0", shown[1] if other else "0")


def _which(what: str, gates: Gates, bound: str = "lowest") -> str:
    return f"{bound} likely {what} is" if gates.confident else f"{what} is"
