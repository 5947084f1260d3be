"""Whether agents opened the skill, and what came of each opening.

Which trials opened it is the agent's choice, and may depend on how well they go anyway:
so trials that opened it are never compared with others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from .._util.json_forms import Share
from .._util.texts import counted, first_few, one_line
from ..stats import ROUNDING, Interval, Lift, wilson
from ..trials.arm import SKILL
from ..trials.records import Record
from ..trials.transcript import NOT_INVOKED, Activity, Sent

MORE_ROOM: Final = "shorten the descriptions of all skills, or install fewer"
_SELDOM: Final = 0.5
_MOSTLY: Final = 0.9
_MAX_OTHERS: Final = 3
_MAX_SKILLS: Final = 6  # of a bundle
_SHORTENED: Final[Mapping[Sent, str]] = {
    "cut": "its description was cut",
    "name": "listed by name only",
    "not listed": "not listed",
}

Runs = Sequence[Mapping[str, Record]]  # of a case
Samples = Sequence[Sequence[Runs]]  # the cases of a sample together


@dataclass(frozen=True)
class Activation:
    """Over complete runs, as all means of a summary are."""

    count: int  # trials that opened the skill
    trials: int
    shares: tuple[Share, ...]  # of the trials of each sample
    untold: int = 0  # trials in which the model did not know that there is such a skill
    not_invoked: int = 0  # trials in which the agent did not take a command to use it
    sent: Mapping[Sent, int] = field(default_factory=dict)  # see count_sent
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
        text = f"opened in {self.count:,} of {counted(self.trials, 'trial')}"
        often = sorted(self.by_skill.items(), key=lambda item: -item[1])
        opened = [f"{one_line(name, 60)} in {n:,}" for name, n in often if n]
        never = [one_line(name, 60) for name, n in often if not n]
        parts = []
        if opened:
            parts.append(first_few(opened, _MAX_SKILLS))
        if never:
            parts.append(f"never: {first_few(never, _MAX_SKILLS)}")
        return f"{text} ({'; '.join(parts)})" if parts else text


def find_activation(samples: Samples, members: Sequence[str] = ()) -> Activation | None:
    """None unless all trials with the skill tell whether it was opened.

    ``members`` are the skills of a bundle.
    """
    activities: list[Activity] = []
    shares = []
    tool_calls = 0
    for cases in samples:
        means = []
        for runs in cases:
            of_case = _find_activities(runs)
            if not of_case:
                return None
            means.append(fmean(bool(activity.activated) for activity in of_case))
            activities += of_case
            tool_calls += _count_tool_calls(runs)
        shares.append(fmean(means))
    if not activities:
        return None

    return Activation(
        count=sum(bool(activity.activated) for activity in activities),
        trials=len(activities),
        shares=tuple(shares),
        untold=sum(activity.untold for activity in activities),
        not_invoked=sum(NOT_INVOKED in activity.findings for activity in activities),
        sent=count_sent(activities),
        instead=_find_opened_instead(activities),
        tool_calls=tool_calls,
        by_skill={
            name: sum(name in activity.opened for activity in activities)
            for name in members
        },
    )


def _find_activities(runs: Runs) -> list[Activity]:
    """Those with the skill; empty if one of them does not tell what was opened."""
    activities = []
    for run in runs:
        activity = run[SKILL].activity if SKILL in run else None
        if activity is None or activity.activated is None:
            return []
        activities.append(activity)
    return activities


def _count_tool_calls(runs: Runs) -> int:
    total = 0
    for run in runs:
        for record in run.values():
            total += record.activity.tool_calls if record.activity else 0
    return total


def _find_opened_instead(activities: Iterable[Activity]) -> tuple[tuple[str, int], ...]:
    """The skills that were opened in trials which did not open this one."""
    names = Counter[str]()
    for activity in activities:
        if not activity.activated:
            names.update(activity.opened)
    return tuple(names.most_common())


def count_sent(activities: Iterable[Activity | None]) -> dict[Sent, int]:
    """Trials by how the agent's list showed the skill.

    Where it showed several skills of a bundle in different ways, it was cut.
    """
    counts = Counter[Sent]()
    for activity in activities:
        kinds = set(activity.sent) if activity else set()
        if kinds:
            counts[kinds.pop() if len(kinds) == 1 else "cut"] += 1
    return dict(counts)


def sent_words(sent: Mapping[Sent, int]) -> str:
    """``listed by name only in 4 of 10 trials``; empty if all descriptions were sent
    whole.
    """
    parts = []
    for kind, words in _SHORTENED.items():
        if sent.get(kind):
            parts.append(f"{words} in {sent[kind]:,}")
    if not parts:
        return ""
    return f"{', '.join(parts)} of {counted(sum(sent.values()), 'trial')}"


def activation_words(
    activation: Activation, word: str | None, lift: Lift | None
) -> str:
    """What activation says beside a verdict, and what to do next."""
    instead = _instead_words(activation)
    if not activation.count:
        return _never_opened_words(activation, instead)

    shortened = sent_words(activation.sent)
    listed = f" ({shortened})" if shortened else ""
    return f"{activation.opened}{instead}{listed}{_advice(activation, word, lift)}"


def _never_opened_words(activation: Activation, instead: str) -> str:
    trials = f"{activation.trials:,} trials"
    if activation.trials == 1:
        trials = "its only trial"
    if activation.untold == activation.trials:
        return (
            f"never listed in {trials}: the agent did not tell its model of it, so this"
            " says nothing of the skill. Its list may have no room beside other skills,"
            " or this version of the agent may know no skills, or not take this one"
        )

    never = f"never opened in {trials}"
    if activation.not_invoked:
        return (
            f"{never}, as the agent did not take the command to use it in"
            f" {activation.not_invoked:,}: see that its version knows the skill by this"
            " name"
        )
    if shortened := sent_words(activation.sent):
        return (
            f"{never}{instead}, but {shortened}, so this says nothing of its text:"
            f" {MORE_ROOM}"
        )
    if not activation.tool_calls:
        return (
            f"{never}, and no tool was called at all, with or without it: see that this"
            " model calls tools before you work on the description"
        )
    return (
        f"{never}{instead}, so this says nothing of its text: let the description say"
        " when to use it, or write cases that need it"
    )


def _instead_words(activation: Activation) -> str:
    """What was opened in its place, mostly by an agent with neighbours."""
    named = [
        f"{one_line(name, 60)} in {count:,}"
        for name, count in activation.instead[:_MAX_OTHERS]
    ]
    return f" (instead: {', '.join(named)})" if named else ""


def _advice(activation: Activation, word: str | None, lift: Lift | None) -> str:
    """Only what is shown: by the word, and by how often it is opened."""
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
    if word in ("no effect", "unclear") and at_most < _SELDOM:
        return ": work on the description first, then judge its text"
    if word == "no effect" and lift and lift.lift <= 0:
        return " but did not help: work on its text"
    return ""
