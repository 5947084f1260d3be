"""One comparison of two sets of results, paired by case.

The lift, --skill-against, accepted results, ``report A B``, studies and every version
that a teacher writes are calls of `compare` and `find_fallen`. In a comparison, the
case is the sample: this says whether a skill helps. In a fall, runs are the sample:
this says which cases got worse.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import fmean
from typing import Annotated, Final, Literal, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, Field, PlainSerializer

from .._util import grouped
from .._util.json_forms import MOST, Share
from .._util.texts import first_few, one_line, times_as_much
from ..settings import Score
from ..stats import (
    LEVEL,
    CasePasses,
    Change,
    Worsening,
    holm_lifts,
    paired_lift,
    paired_ratio,
    worsened,
)
from ..trials.plan import FAILURES_OF_A_REGRESSION, Count, CountSum, CountValue
from .contrasts import LiftValue, points_words

Key = TypeVar("Key", bound=Hashable)
AmountName = Literal["tokens", "cost", "turns", "seconds"]
AMOUNTS: Final[tuple[AmountName, ...]] = get_args(AmountName)
SCORE_WORDS: Final[Mapping[Score, str]] = {
    "pass": "pass rate of cases",
    "checks": "share of checks passed",
}


def _check_change(change: Change) -> Change:
    for number in change:
        if number is not None and not abs(number) <= MOST:
            raise ValueError("number too large")
    return change


ChangeValue = Annotated[
    Change,
    AfterValidator(_check_change),
    PlainSerializer(Change._asdict, return_type=dict[str, float | None]),
]
_UNITS: Final[Mapping[Score, str]] = {"pass": "", "checks": " of checks"}
_ABOUT_THE_SAME: Final = 0.02
_MOST_NAMES: Final = 5


# Two sets of results, where cases are the sample.


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case in one of the sets, in means over its runs."""

    score: float
    amounts: Mapping[AmountName, float | None]
    sample: str  # the same for all cases that count as one


Cases = Mapping[str, CaseResult]


class PairedSample(NamedTuple):
    """A case in both sets, or all cases of a group, in means over models."""

    before: float
    after: float
    # How much more of an amount, as the logarithm of the ratio, where it is known
    logs: Mapping[AmountName, float]

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Comparison:
    """How the results of one set differ from those of another."""

    lift: LiftValue
    changes: Mapping[AmountName, ChangeValue]
    samples: Annotated[tuple[PairedSample, ...], Field(exclude=True)] = ()
    # Of two versions of a skill: the cases that got worse
    fallen: "Fallen | None" = None

    @property
    def tokens(self) -> Change | None:
        return self.changes.get("tokens")

    @property
    def differences(self) -> list[float]:
        return [sample.difference for sample in self.samples]

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        """A version is worse if cases fell; anything else is shown by the lift."""
        if self.fallen or self.lift.high < 0:
            return "worse"
        return "better" if self.lift.low > 0 else "no change shown"

    @property
    def words(self) -> str:
        """``better, +20 points (+5 to +35), 12% fewer tokens``, then what fell."""
        words = f"{self.word}, {points_words(self.lift)}"
        if self.tokens:
            words += f", {token_words(self.tokens)}"
        if self.fallen:
            words += f"; {self.fallen.words}"
        return words


def compare(
    before: Sequence[Cases],
    after: Sequence[Cases],
    *,
    level: float = LEVEL,
    reach: float = 1.0,
) -> Comparison | None:
    """Compare the cases of one or several models; None if they share no case.

    Differences are averaged over the models of each case, then paired over cases, so
    that another model adds evidence. ``reach`` is the largest possible difference.
    """
    samples = paired_samples(before, after)
    if not samples:
        return None

    differences = [sample.difference for sample in samples]
    changes: dict[AmountName, Change] = {}
    for amount in AMOUNTS:
        logs = [sample.logs[amount] for sample in samples if amount in sample.logs]
        change = paired_ratio(logs, level)
        if change and len(logs) == len(samples):
            changes[amount] = change

    return Comparison(
        lift=paired_lift(differences, level, reach),
        changes=changes,
        samples=tuple(samples),
    )


def paired_samples(
    before: Sequence[Cases], after: Sequence[Cases]
) -> list[PairedSample]:
    """The samples of the cases that are in both sets."""
    by_sample: dict[str, list[PairedSample]] = {}
    for cases_before, cases_after in zip(before, after, strict=True):
        pairs = _pair_cases(cases_before, cases_after)
        for sample, members in grouped(pairs, lambda pair: pair[0]).items():
            mean = _mean_sample([pair for _, pair in members])
            by_sample.setdefault(sample, []).append(mean)
    return [_mean_sample(models) for models in by_sample.values()]


def lift_results(with_skill: Cases, without: Cases) -> Cases:
    """The lift of each case in place of its score, to compare lifts."""
    return {
        case: replace(result, score=result.score - without[case].score)
        for case, result in with_skill.items()
        if case in without
    }


def _pair_cases(before: Cases, after: Cases) -> list[tuple[str, PairedSample]]:
    pairs = []
    for case, was in before.items():
        if now := after.get(case):
            pair = PairedSample(was.score, now.score, _logs(was, now))
            pairs.append((now.sample, pair))
    return pairs


def _logs(before: CaseResult, after: CaseResult) -> dict[AmountName, float]:
    logs: dict[AmountName, float] = {}
    for amount in AMOUNTS:
        was = before.amounts.get(amount)
        now = after.amounts.get(amount)
        if was and now:
            logs[amount] = log(now / was)
    return logs


def _mean_sample(pairs: Sequence[PairedSample]) -> PairedSample:
    """The mean of several cases or models; amounts only where all are known."""
    if len(pairs) == 1:
        return pairs[0]

    logs: dict[AmountName, float] = {}
    for amount in AMOUNTS:
        if all(amount in pair.logs for pair in pairs):
            logs[amount] = fmean(pair.logs[amount] for pair in pairs)
    return PairedSample(
        before=fmean(pair.before for pair in pairs),
        after=fmean(pair.after for pair in pairs),
        logs=logs,
    )


def adjust_for_models(
    comparisons: Sequence[Comparison | None],
) -> list[Comparison | None]:
    """Claims about single models, adjusted for their number."""
    lifts = [comparison.lift for comparison in comparisons if comparison]
    adjusted = iter(holm_lifts(lifts))
    results: list[Comparison | None] = []
    for comparison in comparisons:
        if comparison:
            results.append(replace(comparison, lift=next(adjusted)))
        else:
            results.append(None)
    return results


# Two versions, where runs are the sample.


@dataclass(frozen=True)
class CaseChange:
    """A case with another score than before."""

    case: str
    before: Share
    after: Share


class CasePair(NamedTuple):
    """How often a case passed, then and now."""

    case: str
    before: CountValue
    now: CountValue
    sample: str = ""  # the same for cases that ask the same; unknown if empty

    @property
    def is_regression(self) -> bool:
        """Whether it fell by itself: it always passed, and now fails five times."""
        always_passed = self.before.passes == self.before.runs
        has_failed = self.now.passes == 0 and self.now.runs >= FAILURES_OF_A_REGRESSION
        return always_passed and has_failed

    @property
    def passes(self) -> CasePasses:
        return CasePasses(self.before, self.now, self.sample)

    @property
    def turned(self) -> "CasePair":
        """The same in the other direction."""
        return self._replace(before=self.now, now=self.before)


@dataclass(frozen=True)
class Fallen:
    """Cases that got worse by more than chance explains."""

    alone: tuple[CasePair, ...]  # by evidence of their own
    fell: tuple[str, ...]  # all cases that pass less often
    # The others, if they got worse together: runs of all of them
    before: CountSum | None = None
    now: CountSum | None = None
    p_value: Share | None = None

    @property
    def together(self) -> bool:
        return self.p_value is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The cases that count as worse."""
        if self.together:
            return self.fell
        return tuple(pair.case for pair in self.alone)

    @property
    def words(self) -> str:
        """``a: 0 of 3 runs passed (before: 3 of 3)``, and the others together."""
        drops = [
            f"{one_line(pair.case, 60)}: {pair.now} runs passed (before: {pair.before})"
            for pair in self.alone
        ]
        words = []
        if drops:
            words.append(first_few(drops, _MOST_NAMES, "; "))
        if self.together:
            which = "the others together" if drops else "all together"
            words.append(f"{which}: {self.together_words()}")
        return "; ".join(words)

    def together_words(self, since: str = "before") -> str:
        return (
            f"{self.now} runs passed ({since}: {self.before}, p = {self.p_value:.2g})"
        )


def find_fallen(
    groups: Mapping[Key, Sequence[CasePair]],
) -> dict[Key, Fallen | None]:
    """What fell in each group of a run, such as the cases of a skill on a model.

    All groups are judged together: the more there are, the more evidence it takes.
    Cases that are regressions by themselves are no evidence about the others.
    """
    others = {
        key: [pair for pair in pairs if not pair.is_regression]
        for key, pairs in groups.items()
    }
    drops = worsened([[pair.passes for pair in pairs] for pairs in others.values()])
    return {
        key: _fallen_in(groups[key], others[key], drop)
        for key, drop in zip(groups, drops, strict=True)
    }


def _fallen_in(
    pairs: Sequence[CasePair], others: Sequence[CasePair], drop: Worsening
) -> Fallen | None:
    evident = {others[index].case for index in drop.cases}
    alone = [pair for pair in pairs if pair.is_regression or pair.case in evident]
    if not alone and not drop.together:
        return None

    fell = [pair.case for pair in pairs if pair.now.share < pair.before.share]
    fallen = Fallen(alone=tuple(alone), fell=tuple(fell))
    if not drop.together:
        return fallen
    return replace(
        fallen,
        before=Count(*drop.before),
        now=Count(*drop.now),
        p_value=drop.p_value,
    )


def find_risen(groups: Mapping[Key, Sequence[CasePair]]) -> dict[Key, Fallen | None]:
    """The same of cases that got better."""
    return find_fallen(
        {key: [pair.turned for pair in pairs] for key, pairs in groups.items()}
    )


def with_fallen(comparison: Comparison, fallen: Fallen | None) -> Comparison:
    """Compare versions: a loss is only evidence where cases fell."""
    lift = comparison.lift
    if fallen is None and lift.high < 0:
        lift = lift._replace(high=0.0, p_value=max(lift.p_value, 1 - LEVEL))
    return replace(comparison, lift=lift, fallen=fallen)


# Words.


def unit_of(score: Score) -> str:
    """What points of a lift are of; those of pass rates are just points."""
    return _UNITS[score]


def token_words(change: Change) -> str:
    """``12% fewer tokens``."""
    if abs(change.change) < _ABOUT_THE_SAME:
        return "the same number of tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    direction = "more" if change.change > 0 else "fewer"
    return f"{abs(change.change):.0%} {direction} tokens"
