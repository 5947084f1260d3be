"""Whether agents opened the skill, and what came of each opening.

Which trials opened it is the agent's choice, and may depend on how well they go anyway:
so trials that opened it are never compared with others. What came of an opening is the
lift over all trials per opening; no gate and no verdict goes by it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from .._util.texts import first_few, one_line, points, span
from ..stats import RELEVANT_LIFT, ROUNDING, Interval, Lift, wilson
from ..trials.records import Record
from ..trials.transcript import NOT_INVOKED, Sent

_SELDOM: Final = 0.5
_MOSTLY: Final = 0.9
_MOST_OTHERS: Final = 3
_MOST_SKILLS: Final = 6  # of a bundle
MORE_ROOM: Final = "shorten the descriptions of all skills, or install fewer"

Runs = Sequence[Mapping[str, Record]]  # of a case
Samples = Sequence[Sequence[Runs]]  # the cases of a sample together


@dataclass(frozen=True)
class Activation:
    """Over complete runs, as all means of a summary are."""

    count: int  # trials that opened the skill
    trials: int
    shares: tuple[float, ...]  # of the trials of each sample
    untold: int = 0  # trials in which the model did not know that there is such a skill
    not_invoked: int = 0  # trials in which the agent did not take a command to use it
    sent: Mapping[Sent, int] = field(default_factory=dict)  # see sent_counts
    # Other skills that were opened, and in how many
    instead: tuple[tuple[str, int], ...] = ()
    tool_calls: int = 1  # of all arms
    # Of a bundle: trials that opened it
    by_skill: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Mean over samples of the share of trials."""
        return fmean(self.shares)

    @property
    def interval(self) -> Interval:
        """Wilson's, with the case as the sample."""
        return wilson(self.rate, len(self.shares))

    @property
    def opened(self) -> str:
        """``opened in 9 of 10 trials``; of a bundle also which of its skills."""
        trials = "trial" if self.trials == 1 else "trials"
        return (
            f"opened in {self.count:,} of {self.trials:,}"
            f" {trials}{_each(self.by_skill)}"
        )


def _each(by_skill: Mapping[str, int]) -> str:
    """`` (gate in 6, boat in 3; never: pond)``, or nothing."""
    trials = sorted(by_skill.items(), key=lambda item: -item[1])
    opened = [f"{one_line(name, 60)} in {count:,}" for name, count in trials if count]
    never = [one_line(name, 60) for name, count in trials if not count]
    shown = [first_few(opened, _MOST_SKILLS)] if opened else []
    shown += [f"never: {first_few(never, _MOST_SKILLS)}"] if never else []
    return f" ({'; '.join(shown)})" if shown else ""


def activation_of(samples: Samples, members: Sequence[str] = ()) -> Activation | None:
    """None unless all trials with the skill tell whether it was opened.

    ``members`` are the skills of a bundle.
    """
    all_runs = [run for cases in samples for runs in cases for run in runs]
    openings = [_opened(run) for run in all_runs]
    if not openings or None in openings:
        return None
    return Activation(
        count=sum(map(bool, openings)),
        trials=len(openings),
        shares=tuple(
            fmean([fmean(map(_is_opened, runs)) for runs in cases]) for cases in samples
        ),
        untold=sum(map(_untold, all_runs)),
        not_invoked=sum(map(_not_invoked, all_runs)),
        sent=sent_counts(run["skill"] for run in all_runs),
        instead=_instead(all_runs),
        tool_calls=sum(
            record.activity.tool_calls
            for run in all_runs
            for record in run.values()
            if record.activity
        ),
        by_skill={name: sum(_opens(run, name) for run in all_runs) for name in members},
    )


def _opens(run: Mapping[str, Record], name: str) -> bool:
    activity = run["skill"].activity
    return activity is not None and name in activity.opened


def _opened(run: Mapping[str, Record]) -> bool | None:
    activity = run["skill"].activity
    return activity.activated if activity else None


def _is_opened(run: Mapping[str, Record]) -> bool:
    return bool(_opened(run))


def _untold(run: Mapping[str, Record]) -> bool:
    activity = run["skill"].activity
    return activity is not None and activity.untold


def _not_invoked(run: Mapping[str, Record]) -> bool:
    activity = run["skill"].activity
    return activity is not None and NOT_INVOKED in activity.findings


def sent_counts(records: Iterable[Record]) -> dict[Sent, int]:
    """Trials by how the agent's list showed the skill;
    several skills of a bundle may differ.
    """
    sent = (set(record.activity.sent) for record in records if record.activity)
    return dict(
        Counter(kinds.pop() if len(kinds) == 1 else "cut" for kinds in sent if kinds)
    )


def sent_words(sent: Mapping[Sent, int]) -> str:
    """``listed by name only in 4 of 10 trials``; empty if all
    descriptions were sent whole.
    """
    total = sum(sent.values())
    trials = "trial" if total == 1 else "trials"
    parts = [
        f"{words} in {sent[kind]:,}"
        for kind, words in _SHORTENED.items()
        if sent.get(kind)
    ]
    return f"{', '.join(parts)} of {total:,} {trials}" if parts else ""


_SHORTENED: Final[Mapping[Sent, str]] = {
    "cut": "its description was cut",
    "name": "listed by name only",
    "not listed": "not listed",
}


def _instead(runs: Runs) -> tuple[tuple[str, int], ...]:
    """The skills that were opened in trials which did not open this one."""
    activities = [run["skill"].activity for run in runs if not _opened(run)]
    names = Counter(
        name for activity in activities if activity for name in activity.opened
    )
    return tuple(names.most_common())


def activation_words(
    activation: Activation, word: str | None, lift: Lift | None, effect: Lift | None
) -> str:
    """What activation says beside a verdict, and what to do next."""
    if not activation.count:
        trials = (
            "its only trial"
            if activation.trials == 1
            else f"{activation.trials:,} trials"
        )
        if activation.untold == activation.trials:
            return (
                f"never listed in {trials}: the agent did not tell its model of it, so"
                " this says nothing of the skill. Its list may have no room beside"
                " other skills, or this version of the agent may know no skills, or"
                " not take this one"
            )
        if activation.not_invoked:
            return (
                f"never opened in {trials}, as the agent did not take the command to"
                f" use it in {activation.not_invoked:,}: see that its version knows the"
                " skill by this name"
            )
        if shortened := sent_words(activation.sent):
            return (
                f"never opened in {trials}{_opened_instead(activation)}, but"
                f" {shortened}, so this says nothing of its text: {MORE_ROOM}"
            )
        if not activation.tool_calls:
            return (
                f"never opened in {trials}, and no tool was called at all, with or"
                " without it: see that this model calls tools before you work on the"
                " description"
            )
        return (
            f"never opened in {trials}{_opened_instead(activation)}, so this says"
            " nothing of its text: let the description say when to use it, or write"
            " cases that need it"
        )
    rivals, advice = (
        _opened_instead(activation),
        _advice(activation, word, lift, effect),
    )
    per_opening = (
        f", {points(effect.lift)} points per opening ({span(effect.low, effect.high)})"
        if effect
        else ""
    )
    shortened = sent_words(activation.sent)
    listed = f" ({shortened})" if shortened else ""
    return f"{activation.opened}{rivals}{listed}{per_opening}{advice}"


def _opened_instead(activation: Activation) -> str:
    """What was opened in its place, mostly by an agent with neighbours."""
    named = [
        f"{one_line(name, 60)} in {count:,}"
        for name, count in activation.instead[:_MOST_OTHERS]
    ]
    return f" (instead: {', '.join(named)})" if named else ""


def _advice(
    activation: Activation, word: str | None, lift: Lift | None, effect: Lift | None
) -> str:
    """Only what is shown: by the word, and by intervals: how often it is opened,
    and helps then.
    """
    if word == "hurts" and lift and -lift.lift > activation.rate + ROUNDING:
        # More is lost than the trials that opened it could lose.
        return (
            ": answers got worse where it was not opened, too, so look at those first"
        )
    if word == "hurts":
        return ": what it says makes answers worse, so work on its text"
    if word == "not needed":
        return ": the cases pass without it, so write harder ones"
    at_most = activation.interval.high
    if word == "helps" and at_most < _MOSTLY:
        return ": a description that says when to use it may help more often"
    if word in ("no effect shown", "too few cases to tell") and at_most < _SELDOM:
        return ": work on the description first, then judge its text"
    per_opening = effect or lift
    excludes_help = per_opening is not None and per_opening.high < RELEVANT_LIFT
    if word == "no effect shown" and lift and lift.lift <= 0 and excludes_help:
        return " but did not help: work on its text"
    return ""
