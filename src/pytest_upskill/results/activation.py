"""Whether agents opened the skill, and what came of it where they did.

Which trials opened it is the agent's choice, so "where opened" is a selection: it tells where to
look, and no gate and no verdict goes by it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from .._util.texts import one_line, points, span
from ..settings import Score
from ..stats import Interval, Lift, paired_lift, wilson
from ..trials.records import Record

ENOUGH: Final = 5  # samples with an opened skill: fewer say nothing of a lift among them
_SELDOM: Final = 0.5
_MOSTLY: Final = 0.9
_ROUNDING: Final = 1e-9
_MOST_OTHERS: Final = 3

Runs = Sequence[Mapping[str, Record]]  # of a case
Samples = Sequence[Sequence[Runs]]  # of several cases, those of a sample together


@dataclass(frozen=True)
class Activation:
    """Over complete runs, as all means of a summary are."""

    count: int  # trials that opened the skill
    trials: int
    rate: float  # mean over samples of the share of trials
    samples: int
    runs: int  # the most that a sample has among those that opened it
    # Score of the baseline and with the skill, of each sample that opened it in some run: the
    # means of just these runs.
    pairs: tuple[tuple[float, float], ...] = ()
    untold: int = 0  # trials in which the model did not know that there is such a skill
    instead: tuple[tuple[str, int], ...] = ()  # other skills that were opened, and in how many

    @property
    def interval(self) -> Interval:
        """Wilson's, with the case as the sample."""
        return wilson(self.rate, self.samples)

    @property
    def lift(self) -> Lift | None:
        """Over the baseline of the same cases and runs, where opened; None of few samples."""
        return paired_lift(self.pairs, self.runs) if len(self.pairs) >= ENOUGH else None

    @property
    def opened(self) -> str:
        """``opened in 9 of 10 trials``."""
        trials = "trial" if self.trials == 1 else "trials"
        return f"opened in {self.count:,} of {self.trials:,} {trials}"


def activation_of(samples: Samples, score: Score) -> Activation | None:
    """None unless all trials with the skill tell whether it was opened."""
    all_runs = [run for cases in samples for runs in cases for run in runs]
    openings = [_opened(run) for run in all_runs]
    if not openings or None in openings:
        return None
    opened = [[[run for run in runs if _opened(run)] for runs in cases] for cases in samples]
    shares = [fmean([bool(_opened(run)) for runs in cases for run in runs]) for cases in samples]
    means = [[pair for runs in cases if (pair := _means(runs, score))] for cases in opened]
    return Activation(
        count=sum(map(bool, openings)),
        trials=len(openings),
        rate=fmean(shares),
        samples=len(samples),
        runs=max((len(runs) for cases in opened for runs in cases), default=0),
        pairs=tuple(
            (fmean(pair[0] for pair in cases), fmean(pair[1] for pair in cases))
            for cases in means
            if cases
        ),
        untold=sum(map(_untold, all_runs)),
        instead=_instead(all_runs),
    )


def _opened(run: Mapping[str, Record]) -> bool | None:
    activity = run["skill"].activity
    return activity.activated if activity else None


def _untold(run: Mapping[str, Record]) -> bool:
    activity = run["skill"].activity
    return activity is not None and activity.untold


def _instead(runs: Runs) -> tuple[tuple[str, int], ...]:
    """The skills that were opened in trials which did not open this one."""
    activities = [run["skill"].activity for run in runs if not _opened(run)]
    names = Counter(name for activity in activities if activity for name in activity.opened)
    return tuple(names.most_common())


def _means(runs: Runs, score: Score) -> tuple[float, float] | None:
    """Of both arms over these runs of a case; None if a value is unknown."""
    pairs = [(_value(run.get("baseline"), score), _value(run["skill"], score)) for run in runs]
    numbers = [(before, after) for before, after in pairs if not (before is None or after is None)]
    if not numbers or len(numbers) < len(pairs):
        return None
    return fmean(before for before, _ in numbers), fmean(after for _, after in numbers)


def _value(record: Record | None, score: Score) -> float | None:
    if record is None or score == "checks":
        return record.score if record else None
    return float(record.outcome == "passed")


def activation_words(activation: Activation, word: str | None, lift: float | None) -> str:
    """What activation says beside a verdict, and what to do next."""
    if not activation.count:
        trials = "its only trial" if activation.trials == 1 else f"{activation.trials:,} trials"
        if activation.untold == activation.trials:
            return (
                f"never opened in {trials}, as the agent never told its model of it: this version "
                "of the agent may know no skills, or not take this one"
            )
        return (
            f"never opened in {trials}{_opened_instead(activation)}, so this says nothing of its "
            "text: let the description say when to use it, or write cases that need it"
        )
    rivals, advice = _opened_instead(activation), _advice(activation, word, lift)
    return f"{activation.opened}{rivals}{_where_opened(activation)}{advice}"


def _opened_instead(activation: Activation) -> str:
    """What was opened in its place, mostly by an agent with neighbours."""
    named = [
        f"{one_line(name, 60)} in {count:,}" for name, count in activation.instead[:_MOST_OTHERS]
    ]
    return f" (instead: {', '.join(named)})" if named else ""


def _where_opened(activation: Activation) -> str:
    """Only if some trials did not open it: else it is the lift over all."""
    if activation.count == activation.trials or not (lift := activation.lift):
        return ""
    return (
        f", {points(lift.lift)} points where opened "
        f"({span(lift.low, lift.high)}, {len(activation.pairs):,} cases)"
    )


def _advice(activation: Activation, word: str | None, lift: float | None) -> str:
    if word == "hurts" and lift is not None and -lift > activation.rate + _ROUNDING:
        # More is lost than the trials that opened it could lose.
        return ": answers got worse where it was not opened, too, so look at those first"
    if word == "hurts":
        return ": what it says makes answers worse, so work on its text"
    if word == "not needed":
        return ": the cases pass without it, so write harder ones"
    helped = word == "helps" or (activation.lift is not None and activation.lift.low > 0)
    if activation.rate < _MOSTLY and helped:
        return ": a description that says when to use it may help more often"
    if word in ("no effect shown", "too few cases to tell") and activation.rate < _SELDOM:
        return ": work on the description first, then judge its text"
    if word == "no effect shown" and lift is not None and lift <= 0:
        return " but did not help: work on its text"
    return ""
