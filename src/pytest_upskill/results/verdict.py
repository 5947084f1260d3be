"""What a summary amounts to: one word and one sentence per skill and model, and the gates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from .._util.texts import counted, dollars, one_line
from ..settings import Gates
from ..stats import LEVEL, Lift, cases_needed, detectable_lift, normalised_gain, runs_needed
from ..trials.trial import ARMS, Arm
from .summary import Comparison, Summary, compare_arms, points_words, token_words

Word = Literal["helps", "hurts", "no effect shown", "not needed", "incomplete"]

_PASSES_ALREADY: Final = 0.9
_AS_GOOD: Final = 0.05
_MOST_NAMES: Final = 5
_FORESEEABLE: Final = 10


@dataclass(frozen=True)
class Verdict:
    """What is known of a skill on a model. Without a baseline there is no word for it."""

    summary: Summary
    comparisons: Mapping[Arm, Comparison]  # the skill over each other arm
    word: Word | None
    sentence: str
    detectable_lift: float | None

    def over(self, arm: Arm) -> Comparison | None:
        return self.comparisons.get(arm)

    @property
    def lift(self) -> Lift | None:
        """Over the baseline."""
        over = self.over("baseline")
        return over.lift if over else None

    @property
    def since(self) -> str | None:
        """How the skill does beside itself at the ref of --skill-against."""
        over = self.over("previous")
        ref = one_line(self.summary.against or "", 60)
        return f"since {ref}: {over.words}" if over else None

    @property
    def gain(self) -> float | None:
        """The lift as a share of what the baseline left to gain."""
        baseline, skill = self.summary.arm("baseline").rate, self.summary.arm("skill").rate
        return None if baseline is None or skill is None else normalised_gain(baseline, skill)

    @property
    def worse(self) -> tuple[str, ...]:
        """Cases that do worse with the skill."""
        return self._cases(lambda baseline, skill: skill < baseline)

    @property
    def always_pass(self) -> tuple[str, ...]:
        """Cases that pass even without the skill."""
        return self._cases(lambda baseline, skill: baseline == skill == 1)

    @property
    def always_fail(self) -> tuple[str, ...]:
        """Cases that fail even with the skill."""
        return self._cases(lambda baseline, skill: baseline == skill == 0)

    def _cases(self, wanted: Callable[[float, float], bool]) -> tuple[str, ...]:
        rates = self.summary.pairs("rate", over="baseline")
        named = zip(self.summary.by_case, rates, strict=True) if rates else ()
        return tuple(case.case for case, pair in named if wanted(*pair))


def verdicts_of(summaries: Sequence[Summary], level: float = LEVEL) -> list[Verdict]:
    """One for each summary, in their order, adjusted for several models of a skill."""
    verdicts: list[Verdict] = []
    for _, group in groupby(summaries, key=lambda summary: summary.skill):
        rows = list(group)
        others = [arm for arm in ARMS if arm != "skill"]
        over = {arm: compare_arms(rows, arm, level=level) for arm in others}
        models = sum(found is not None for found in over["baseline"])
        for number, row in enumerate(rows):
            known: dict[Arm, Comparison] = {
                arm: found for arm in others if (found := over[arm][number])
            }
            verdicts.append(_verdict(row, known, level, models))
    return verdicts


def _verdict(
    row: Summary, comparisons: Mapping[Arm, Comparison], level: float, models: int
) -> Verdict:
    # Several models can show less than one: this is the first step of Holm.
    planned = 1 - (1 - level) / max(1, models)
    rates = row.pairs("rate", over="baseline")
    smallest = detectable_lift(rates, planned) if rates else None
    over = comparisons.get("baseline")
    word = _word(row, over.lift if over else None)
    outlook = _outlook(row, smallest, planned, models)
    return Verdict(row, comparisons, word, _sentence(row, word, over, outlook), smallest)


def _word(row: Summary, lift: Lift | None) -> Word | None:
    if row.errored or row.not_run or not row.by_case:
        return "incomplete"
    baseline = row.arm("baseline").rate
    if lift is None or baseline is None:
        return None
    if lift.shown:
        return "helps" if lift.lift > 0 else "hurts"
    harmless_enough = lift.lift >= -_AS_GOOD
    passes = baseline >= _PASSES_ALREADY
    return "not needed" if passes and harmless_enough else "no effect shown"


def _sentence(row: Summary, word: Word | None, over: Comparison | None, outlook: str) -> str:
    parts = []
    if word == "incomplete":
        parts.append(_missing(row))
    rate = row.arm("skill").rate
    if over:
        parts.append(points_words(over.lift))
    elif rate is not None:
        parts.append(f"{rate:.0%} pass with the skill")
    if word == "not needed":
        parts.append(f"{row.arm('baseline').rate:.0%} pass without it")
    if word == "no effect shown":
        parts.append(outlook)
    if over and over.tokens:
        parts.append(token_words(over.tokens))
    if row.most_runs and row.runs < row.most_runs:
        parts.append(f"after {row.runs} of {counted(row.most_runs, 'run')}")
    return ", ".join(parts)


def _missing(row: Summary) -> str:
    parts = [f"{counted(row.errored, 'answer')} missing"] if row.errored else []
    parts += [f"{counted(row.not_run, 'case')} not run"] if row.not_run else []
    return " and ".join(parts) or "nothing was answered"


def _outlook(row: Summary, smallest: float | None, level: float, models: int) -> str:
    """What it would take to know."""
    rates = row.pairs("rate", over="baseline")
    if not rates:
        return ""
    among = f" of one of {models} models" if models > 1 else ""
    if smallest is None:
        return f"{counted(len(rates), 'case')} can't show any lift{among}"
    cases = cases_needed(rates, level)
    runs = runs_needed(rates, row.runs, level)
    # An estimate that is mostly noise says nothing of how many cases it would take.
    if cases is not None and len(rates) < cases <= _FORESEEABLE * len(rates):
        more = f"{counted(cases - len(rates), 'more case')}"
        more += f", or {runs} runs," if runs is not None and runs > row.runs else ""
        return f"{more} would settle it"
    return f"these cases show {round(smallest * 100)} points or more{among}"


def sweet_spot(verdicts: Sequence[Verdict]) -> str | None:
    """Of one skill: the cheapest model that with it is as good as the best, by known prices."""
    if not (spot := _sweet_spot(verdicts)):
        return None
    cheapest, best, is_cheapest_of_all = spot
    told = f"{cheapest.model} with the skill ({cheapest.arm('skill').rate:.0%}) is"
    if cheapest is not best:
        return (
            f"{told} the cheapest that is as good as the best "
            f"({best.model}, {best.arm('skill').rate:.0%}): "
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
        and verdict.summary.arm("skill").cost is not None
        and verdict.summary.arm("skill").rate is not None
    ]
    if len({_cost(row) for row in known}) < 2:
        return None
    best = max(known, key=lambda row: (_rate(row), -_cost(row)))
    good = [row for row in known if _rate(row) >= _rate(best) - _AS_GOOD]
    return min(good, key=_cost), best, _cost(best) == min(map(_cost, known))


def _rate(row: Summary) -> float:
    return row.arm("skill").rate or 0.0


def _cost(row: Summary) -> float:
    return row.arm("skill").cost or 0.0


def _price(row: Summary) -> str:
    return dollars(1000 * _cost(row))


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
    row, lift, skill = verdict.summary, verdict.lift, verdict.summary.arm("skill")
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
        rate = skill.interval and skill.interval.low if gates.confident else skill.rate
        if rate is None or rate < gates.min_pass_rate:
            have, want = _apart(rate or 0.0, gates.min_pass_rate)
            reasons.append(
                f"{_which('pass rate', gates)} {have}%, below {want}% (--skill-min-pass-rate)"
            )
    if gates.max_token_growth is not None:
        over = verdict.over("baseline")
        change = over.tokens if over else None
        growth = change and (change.high if gates.confident else change.change)
        if growth is None:
            reasons.append("the token growth is not known (--skill-max-token-growth)")
        elif growth > gates.max_token_growth:
            have, want = _apart(growth, gates.max_token_growth, "+")
            reasons.append(
                f"{_which('token growth', gates, 'highest')} {have}%, "
                f"above {want}% (--skill-max-token-growth)"
            )
    since = verdict.over("previous")
    if gates.no_worse and since and since.word == "worse":
        reasons.append(f"{verdict.since} (--skill-no-worse)")
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
