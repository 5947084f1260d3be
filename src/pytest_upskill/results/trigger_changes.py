"""Recall and false alarms of two runs compared, paired by query."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from .._util.texts import counted, percent
from ..stats import LEVEL, Lift, holm, paired_lift
from ..trials.subject import CHAT, WithPair
from .arm_comparison import points_words
from .run import RunResults
from .trigger_summary import QueryRate

What = Literal["recall", "false alarms"]


@dataclass(frozen=True)
class TriggerChange(WithPair):
    """How often a skill was opened, in one run and in the other, for the queries of both."""

    skill: str
    model: str
    what: What
    queries: int  # in pairs; those that ask the same count once
    before: float
    after: float
    change: Lift  # adjusted for all changes of the two runs
    left_out: int  # queries that are in one run only, were edited, or lack a result
    agent: str = CHAT

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        if not self.change.shown:
            return "no change shown"
        return "better" if (self.change.lift > 0) == (self.what == "recall") else "worse"

    @property
    def words(self) -> str:
        rates = f"{self.what} {percent(self.before)}, then {percent(self.after)}"
        over = f"over {counted(self.queries, 'query')}"
        out = f"; {counted(self.left_out, 'query')} left out" if self.left_out else ""
        return f"{rates}: {self.word}, {points_words(self.change)} {over}{out}"


def trigger_changes(before: RunResults, after: RunResults) -> tuple[TriggerChange, ...]:
    """For each skill, agent and model with queries in both runs."""
    found = list(_changes(before, after))
    adjusted = holm([one.change.p_value for one in found])
    return tuple(
        replace(one, change=_adjusted(one.change, p_value))
        for one, p_value in zip(found, adjusted, strict=True)
    )


def _changes(before: RunResults, after: RunResults) -> Iterator[TriggerChange]:
    old = {row.pair: row for row in before.trigger_summaries}
    digests = [
        {(test.pair, test.case): test.digest for test in run.triggers} for run in (before, after)
    ]
    for row in after.trigger_summaries:
        if row.pair not in old:
            continue
        earlier = {query.case: query for query in old[row.pair].queries}
        kinds: tuple[tuple[What, bool], ...] = (("recall", True), ("false alarms", False))
        for what, should in kinds:
            own = {one.case: one for one in row.queries if one.should_trigger == should}
            theirs = {case: one for case, one in earlier.items() if one.should_trigger == should}
            samples: dict[str, list[tuple[float, float]]] = {}
            for case in (one for one in own if one in theirs):  # in the order of the run
                one, two = _whole(theirs[case]), _whole(own[case])
                asked = {known.get((row.pair, case)) for known in digests}
                if one is not None and two is not None and len(asked) == 1:
                    samples.setdefault(own[case].sample or case, []).append((one, two))
            pairs = [
                (fmean(one for one, _ in some), fmean(two for _, two in some))
                for some in samples.values()
            ]
            if pairs:
                paired = sum(map(len, samples.values()))
                yield TriggerChange(
                    row.skill,
                    row.model,
                    what,
                    len(pairs),
                    fmean(one for one, _ in pairs),
                    fmean(two for _, two in pairs),
                    paired_lift(pairs, max(row.runs, old[row.pair].runs)),
                    len(own.keys() | theirs.keys()) - paired,
                    row.agent,
                )


def _whole(query: QueryRate) -> float | None:
    """The rate of a query of which no run is missing."""
    return None if query.errored else query.rate


def _adjusted(lift: Lift, p_value: float) -> Lift:
    if p_value >= 1 - LEVEL:  # no evidence, as one of several
        lift = lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))
    return lift._replace(p_value=p_value)
