"""Two runs compared, with the statistics of --skill-against.

Cases are paired, and only answers with the skill count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Final, Literal

from .._util.texts import counted, one_line, percent
from ..settings import Score
from ..stats import LEVEL, Lift, holm, paired_lift, plan_level
from ..trials.arm import EARLIER
from ..trials.subject import CHAT, SkillOnSubject, WithPair
from .arm_comparison import Comparison, adjusted_lift, compare_arms
from .contrasts import points_words
from .run import RunResults
from .summary import Summary
from .trigger_summary import QueryRate

TriggerMeasure = Literal["recall", "false alarms"]

_ROUNDING: Final = 1e-9
_MEASURES: Final[Mapping[TriggerMeasure, bool]] = {"recall": True, "false alarms": False}


@dataclass(frozen=True)
class CaseChange:
    """The score of a case in both runs."""

    case: str
    before: float
    after: float


@dataclass(frozen=True)
class UnpairedCases:
    """How many cases have no pair, and why."""

    only_before: int
    only_after: int
    edited: int  # the question or the checks differ
    unanswered: int  # in one of the runs


@dataclass(frozen=True)
class PairComparison(WithPair):
    """A skill on a model that are in both runs."""

    skill: str
    model: str
    cases: int  # in pairs
    score: Score  # of the later run
    before: float | None  # score over these cases; None without any
    after: float | None
    change: Comparison | None
    fell: tuple[CaseChange, ...]
    rose: tuple[CaseChange, ...]
    left_out: UnpairedCases
    same_skill: bool  # SKILL.md and the files beside it
    model_ids: tuple[str, str]
    agent: str = CHAT
    agent_versions: tuple[str, str] = ("", "")
    runs: tuple[int, int] = (0, 0)

    @property
    def differences(self) -> list[str]:
        """What else is not the same, so that a change may come from it."""
        before, after = (one_line(name, 60) for name in self.model_ids)
        lines = [f"the model was {before} and is now {after}"] if before != after else []
        before, after = (one_line(version, 60) for version in self.agent_versions)
        if before and after and before != after:
            lines.append(f"{one_line(self.agent, 60)} was {before} and is now {after}")
        if self.runs[0] != self.runs[1]:
            lines.append(f"each case had {counted(self.runs[0], 'run')} and now has {self.runs[1]}")
        return lines


@dataclass(frozen=True)
class TriggerChange(WithPair):
    """How often a skill was opened, in one run and in the other, for the queries of both."""

    skill: str
    model: str
    measure: TriggerMeasure
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
        return "better" if (self.change.lift > 0) == (self.measure == "recall") else "worse"

    @property
    def words(self) -> str:
        rates = f"{self.measure} {percent(self.before)}, then {percent(self.after)}"
        over = f"over {counted(self.queries, 'query')}"
        out = f"; {counted(self.left_out, 'query')} left out" if self.left_out else ""
        return f"{rates}: {self.word}, {points_words(self.change)} {over}{out}"


@dataclass(frozen=True)
class RunComparison:
    pairs: tuple[PairComparison, ...]
    only_before: tuple[SkillOnSubject, ...]  # skills and models in only one of the runs
    only_after: tuple[SkillOnSubject, ...]
    triggers: tuple[TriggerChange, ...] = ()
    differences: tuple[str, ...] = ()  # of the runs, besides those of pairs

    @property
    def reasons(self) -> list[str]:
        """Why the later run can't be called no worse, one line each."""
        shared = self.pairs or self.triggers
        reasons = [] if shared else ["the runs share no skill on the same model"]
        for trigger in self.triggers:
            if trigger.word == "worse" or trigger.left_out:
                reasons.append(f"{trigger.pair}: {trigger.words}")
        for row in self.pairs:
            if row.change is None:
                reasons.append(f"{row.pair}: no case in common")
            elif row.change.word == "worse":
                reasons.append(f"{row.pair}: {row.change.words}")
            if missing := row.left_out.unanswered:
                reasons.append(f"{row.pair}: {counted(missing, 'case')} not answered in both")
        return reasons


@dataclass(frozen=True)
class _Side:
    """A skill on a model in one run."""

    summary: Summary
    digests: Mapping[str, str]  # the digest of each case, "" if it is not known
    skill_digest: str


def compare_runs(before: RunResults, after: RunResults) -> RunComparison:
    """What changed from one run to the other, adjusted for several models of a skill."""
    old, new = _sides(before), _sides(after)
    level = max(plan_level(run.looks) if run.looks else LEVEL for run in (before, after))
    pairs: list[PairComparison] = []
    for _, group in groupby((pair for pair in new if pair in old), key=lambda pair: pair[0]):
        sides = [(old[pair], new[pair]) for pair in group]
        rows = [_paired(*both) for both in sides]
        changes = compare_arms(rows, EARLIER, level=level)
        for both, row, change in zip(sides, rows, changes, strict=True):
            pairs.append(_comparison(*both, row, change))
    return RunComparison(
        tuple(pairs),
        tuple(pair for pair in old if pair not in new),
        tuple(pair for pair in new if pair not in old),
        trigger_changes(before, after),
        tuple(_differences(before, after)),
    )


def _differences(before: RunResults, after: RunResults) -> Iterator[str]:
    if before.judge and after.judge and before.judge != after.judge:
        names = [one_line(name, 60) for name in (before.judge, after.judge)]
        yield f"the judge was {names[0]} and is now {names[1]}"
    for setting, *values in (
        ("other skills installed", before.with_skills, after.with_skills),
        ("unrelated skills installed", (str(before.noise),), (str(after.noise),)),
    ):
        if values[0] != values[1]:
            were, are = (one_line(", ".join(names), 100) or "none" for names in values)
            yield f"{setting}: {were}, and now {are}"


def _sides(run: RunResults) -> dict[SkillOnSubject, _Side]:
    # Without the other arms, a missing baseline answer removes no case from the pairs.
    skill_only = replace(run, records=tuple(r for r in run.case_records if r.arm == "skill"))
    skill_digests = {skill.name: skill.digest for skill in run.skills}
    digests: dict[SkillOnSubject, dict[str, str]] = {}
    for test in run.cases:
        digests.setdefault(test.pair, {})[test.case] = test.digest
    for record in run.case_records:
        digests.setdefault(record.pair, {}).setdefault(record.case, "")
    return {
        row.pair: _Side(row, digests[row.pair], skill_digests[row.skill])
        for row in skill_only.summaries
    }


def _paired(old: _Side, new: _Side) -> Summary:
    """The later summary over the cases in both runs; the other run is the arm ``earlier``."""
    earlier = {case.case: case for case in old.summary.by_case}
    cases = [
        replace(case, arms={EARLIER: earlier[case.case].arm("skill"), **case.arms})
        for case in new.summary.by_case
        if case.case in earlier and not _edited(case.case, old, new)
    ]
    runs = max(old.summary.runs, new.summary.runs)
    return replace(new.summary, by_case=tuple(cases), runs=runs)


def _edited(case: str, old: _Side, new: _Side) -> bool:
    before, after = old.digests.get(case), new.digests.get(case)
    return bool(before and after and before != after)


def _comparison(old: _Side, new: _Side, row: Summary, change: Comparison | None) -> PairComparison:
    scores = row.scores(over=EARLIER)
    changes = [CaseChange(case, *pair) for case, pair in row.case_scores(over=EARLIER).items()]
    both = old.digests.keys() & new.digests.keys()
    edited = sum(_edited(case, old, new) for case in both)
    return PairComparison(
        skill=row.skill,
        model=row.model,
        cases=len(changes),
        score=row.score,
        before=fmean(before for before, _ in scores) if scores else None,
        after=fmean(after for _, after in scores) if scores else None,
        change=change,
        fell=tuple(case for case in changes if case.after < case.before - _ROUNDING),
        rose=tuple(case for case in changes if case.after > case.before + _ROUNDING),
        left_out=UnpairedCases(
            only_before=len(old.digests.keys() - both),
            only_after=len(new.digests.keys() - both),
            edited=edited,
            unanswered=len(both) - edited - len(changes),
        ),
        same_skill=old.skill_digest == new.skill_digest,
        model_ids=(old.summary.model_id, new.summary.model_id),
        agent=new.summary.agent,
        agent_versions=(old.summary.agent_version, new.summary.agent_version),
        runs=(old.summary.runs, new.summary.runs),
    )


# Triggers.


def trigger_changes(before: RunResults, after: RunResults) -> tuple[TriggerChange, ...]:
    """For each skill, agent and model with queries in both runs."""
    changes = list(_trigger_changes(before, after))
    p_values = holm([change.change.p_value for change in changes])
    return tuple(
        replace(change, change=adjusted_lift(change.change, p_value))
        for change, p_value in zip(changes, p_values, strict=True)
    )


def _trigger_changes(before: RunResults, after: RunResults) -> Iterator[TriggerChange]:
    old = {row.pair: row for row in before.trigger_summaries}
    digests = [
        {(test.pair, test.case): test.digest for test in run.triggers} for run in (before, after)
    ]
    for row in after.trigger_summaries:
        if row.pair not in old:
            continue
        for measure, should in _MEASURES.items():
            earlier, later = (
                {query.case: query for query in summary.queries if query.should_open == should}
                for summary in (old[row.pair], row)
            )
            samples: dict[str, list[tuple[float, float]]] = {}
            for case in (case for case in later if case in earlier):  # in the order of the run
                rates = _complete_rate(earlier[case]), _complete_rate(later[case])
                same = len({of_run.get((row.pair, case)) for of_run in digests}) == 1
                if rates[0] is not None and rates[1] is not None and same:
                    samples.setdefault(later[case].sample or case, []).append((rates[0], rates[1]))
            pairs = [
                (fmean(rate for rate, _ in sample), fmean(rate for _, rate in sample))
                for sample in samples.values()
            ]
            if pairs:
                paired = sum(map(len, samples.values()))
                yield TriggerChange(
                    row.skill,
                    row.model,
                    measure,
                    len(pairs),
                    fmean(rate for rate, _ in pairs),
                    fmean(rate for _, rate in pairs),
                    paired_lift(pairs, max(row.runs, old[row.pair].runs)),
                    len(earlier.keys() | later.keys()) - paired,
                    row.agent,
                )


def _complete_rate(query: QueryRate) -> float | None:
    """The rate of a query of which no run is missing."""
    return None if query.errored else query.rate
