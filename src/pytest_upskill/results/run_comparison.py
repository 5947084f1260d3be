"""Two runs compared, with the statistics of --skill-against.

Cases are paired, and only answers with the skill count. Triggers are compared like
cases, those that should open the skill apart from those that should not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Annotated, Any, Final

from pydantic import PlainSerializer, computed_field

from .._util.texts import counted, one_line, percent
from ..options import DAY
from ..settings import Score
from ..skills.case import OPENS, STAYS_CLOSED
from ..stats import ROUNDING, CasePasses, fell_together
from ..trials.arm import EARLIER
from ..trials.plan import Count
from ..trials.records import Record
from ..trials.subject import CHAT, SkillOnSubject, WithPair
from .arm_comparison import (
    CaseChange,
    Comparison,
    compare_arms,
    compare_versions,
    with_earlier,
)
from .run import RunResults, triggers_as_cases
from .summary import Summary

NOTHING_SHARED: Final = "the runs share no tests of a skill on the same model"
_TAGS: Final = ("", OPENS, STAYS_CLOSED)  # of cases, and of both kinds of triggers
_Key = tuple[SkillOnSubject, str]  # and a tag
_Case = tuple[SkillOnSubject, str]  # and its id


def _change_values(change: Comparison | None) -> dict[str, Any] | None:
    if change is None:
        return None
    lift, versions = change.lift, change.versions
    return {
        "points": lift.lift,
        "low": lift.low,
        "high": lift.high,
        "p_value": lift.p_value,
        "verdict": change.word,
        "worse": versions and versions.worse_cases,
        "better": versions and versions.better_cases,
        "score": change.score,
    }


ChangeValue = Annotated[
    Comparison | None,
    PlainSerializer(_change_values, return_type=dict[str, Any] | None),
]
_Pair = Annotated[
    SkillOnSubject,
    PlainSerializer(
        lambda pair: (pair.skill, pair.subject.label), return_type=tuple[str, str]
    ),
]


@dataclass(frozen=True)
class UnpairedCases:
    """How many cases have no pair, and why."""

    only_before: int
    only_after: int
    edited: int  # the question or the checks differ
    unanswered: int  # in one of the runs


@dataclass(frozen=True)
class PairComparison(WithPair):
    """A skill on a model that are in both runs: its cases, or its triggers of a
    kind.
    """

    skill: str
    model: str
    cases: int  # in pairs
    score: Score  # of the later run
    before: float | None  # score over these cases; None without any
    after: float | None
    change: ChangeValue
    fell: tuple[CaseChange, ...]
    rose: tuple[CaseChange, ...]
    left_out: UnpairedCases
    same_skill: bool  # SKILL.md and the files beside it
    model_ids: tuple[str, str]
    agent: str = CHAT
    agent_versions: tuple[str, str] = ("", "")
    runs: tuple[int, int] = (0, 0)
    # Between the answers with the skill, if more than can be compared
    days_apart: int = 0
    # Its rates: the model got worse, too
    fallen_baseline: tuple[float, float] | None = None
    tag: str = ""  # of its triggers; empty if it is of cases

    @computed_field
    @property
    def tokens(self) -> dict[str, float | None] | None:
        """How much more of them an answer takes, as a share."""
        tokens = self.change and self.change.tokens
        return tokens._asdict() if tokens else None

    @computed_field
    @property
    def title(self) -> str:
        """The agent and model, and what is compared."""
        return f"{self.label} {self.tag}".rstrip()

    @property
    def noun(self) -> str:
        return "query" if self.tag else "case"

    @property
    def drift(self) -> str:
        """That answers without the skill got worse, in words;
        empty if that is not shown.
        """
        if not self.fallen_baseline:
            return ""
        before, after = map(percent, self.fallen_baseline)
        return (
            f"the model got worse without the skill, too (baseline {before} → {after})"
        )

    @computed_field
    @property
    def differences(self) -> list[str]:
        """What else is not the same, so that a change may come from it."""
        before, after = (one_line(name, 60) for name in self.model_ids)
        lines = (
            [f"the model was {before} and is now {after}"] if before != after else []
        )
        lines += [self.drift] if self.drift else []
        if self.days_apart:
            days = counted(self.days_apart, "day")
            lines.append(f"asked {days} apart: a change may come from the model")
        before, after = (one_line(version, 60) for version in self.agent_versions)
        if before and after and before != after:
            lines.append(f"{one_line(self.agent, 60)} was {before} and is now {after}")
        if self.runs[0] != self.runs[1]:
            lines.append(
                f"each {self.noun} had {counted(self.runs[0], 'run')} and now has"
                f" {self.runs[1]}"
            )
        return lines


@dataclass(frozen=True)
class RunComparison:
    pairs: tuple[PairComparison, ...]
    only_before: tuple[_Pair, ...]  # skills and models in only one of the runs
    only_after: tuple[_Pair, ...]
    differences: tuple[str, ...] = ()  # of the runs, besides those of pairs

    @property
    def reasons(self) -> list[str]:
        """Why the later run can't be called no worse, one line each."""
        reasons = [] if self.pairs else [NOTHING_SHARED]
        for row in self.pairs:
            name = f"{row.skill} on {row.title}"
            if row.change is None:
                reasons.append(f"{name}: no {row.noun} in common")
            elif row.change.word == "worse":
                reasons.append(
                    "; ".join(filter(None, [f"{name}: {row.change.words}", row.drift]))
                )
            if missing := row.left_out.unanswered:
                reasons.append(
                    f"{name}: {counted(missing, row.noun)} not answered in both"
                )
        return reasons


@dataclass(frozen=True)
class _Side:
    """A skill on a model in one run."""

    summary: Summary
    digests: Mapping[str, str]  # the digest of each case, "" if it is not known
    skill_digest: str


def compare_runs(before: RunResults, after: RunResults) -> RunComparison:
    """What changed from one run to the other, adjusted for all skills and models."""
    old, new = _sides(before), _sides(after)
    pairs: list[PairComparison] = []
    rows = {key: _paired(old[key], new[key]) for key in new if key in old}
    versions = dict(zip(rows, compare_versions([*rows.values()], EARLIER), strict=True))
    baselines = _fallen_baselines(before, after, rows)
    for _, group in groupby(rows, key=lambda key: (key[0].skill, bool(key[1]))):
        keys = list(group)
        changes = compare_arms([rows[key] for key in keys], EARLIER)
        for key, change in zip(keys, changes, strict=True):
            if change:
                versioned = replace(change, versions=versions[key])
            else:
                versioned = None
            compared = _comparison(old[key], new[key], rows[key], versioned)
            pairs.append(
                replace(compared, tag=key[1], fallen_baseline=baselines.get(key))
            )
    pairs_before, pairs_after = (
        dict.fromkeys(pair for pair, _ in sides) for sides in (old, new)
    )
    return RunComparison(
        tuple(pairs),
        tuple(pair for pair in pairs_before if pair not in pairs_after),
        tuple(pair for pair in pairs_after if pair not in pairs_before),
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


def _sides(run: RunResults) -> dict[tuple[SkillOnSubject, str], _Side]:
    """By skill, model and tag, those of a skill together."""
    skill_digests = {skill.name: skill.digest for skill in run.skills}
    sides: dict[tuple[SkillOnSubject, str], _Side] = {}
    for tag in _TAGS:
        # Without the other arms, a missing baseline answer
        # removes no case from the pairs.
        part = replace(run, tests=run.cases, records=run.case_records)
        part = triggers_as_cases(run, tag) if tag else part
        part = replace(part, records=tuple(r for r in part.records if r.arm == "skill"))
        digests: dict[SkillOnSubject, dict[str, str]] = {}
        for test in part.tests:
            digests.setdefault(test.pair, {})[test.case] = test.digest
        for record in part.records:
            digests.setdefault(record.pair, {}).setdefault(record.case, "")
        for row in part.summaries:
            sides[row.pair, tag] = _Side(
                row, digests[row.pair], skill_digests[row.skill]
            )
    order = [skill.name for skill in run.skills]
    return dict(sorted(sides.items(), key=lambda item: order.index(item[0][0].skill)))


def _paired(old: _Side, new: _Side) -> Summary:
    """The later summary over the cases in both runs that were not edited."""
    edited = [case for case in new.digests if _edited(case, old, new)]
    return with_earlier(new.summary, old.summary, edited)


def _fallen_baselines(
    before: RunResults, after: RunResults, rows: Mapping[_Key, Summary]
) -> dict[_Key, tuple[float, float]]:
    """The pass rates without the skill of the same cases in both runs, where they
    fell.
    """
    were, are = (_baselines(run) for run in (before, after))
    groups = {
        key: [
            CasePasses(were[key[0], case.case], are[key[0], case.case], case.question)
            for case in row.by_case
            if (key[0], case.case) in were and (key[0], case.case) in are
        ]
        for key, row in rows.items()
        if not key[1]
    }
    return {
        key: (
            fmean(Count(*case.before).share for case in cases),
            fmean(Count(*case.now).share for case in cases),
        )
        for (key, cases), fell in zip(
            groups.items(), fell_together([*groups.values()]), strict=True
        )
        if fell
    }


def _baselines(run: RunResults) -> dict[_Case, Count]:
    """The passes of each case without the skill."""
    counts = (
        (place, passes_of(records, "baseline"))
        for place, records in run.by_test.items()
    )
    return {place: count for place, count in counts if count}


def passes_of(records: Sequence[Record], arm: str = "skill") -> Count | None:
    """Out of the answered runs of an arm; None without any."""
    runs = [
        record
        for record in records
        if record.arm == arm and record.outcome != "errored"
    ]
    passed = sum(record.outcome == "passed" for record in runs)
    return Count(passed, len(runs)) if runs else None


def _edited(case: str, old: _Side, new: _Side) -> bool:
    before, after = old.digests.get(case), new.digests.get(case)
    return bool(before and after and before != after)


def _comparison(
    old: _Side, new: _Side, row: Summary, change: Comparison | None
) -> PairComparison:
    scores = row.scores(over=EARLIER)
    changes = [
        CaseChange(case, *pair) for case, pair in row.case_scores(over=EARLIER).items()
    ]
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
        fell=tuple(case for case in changes if case.after < case.before - ROUNDING),
        rose=tuple(case for case in changes if case.after > case.before + ROUNDING),
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
        days_apart=_days_apart(old.summary, new.summary),
    )


def _days_apart(old: Summary, new: Summary) -> int:
    last, first = old.arm("skill").asked_last, new.arm("skill").asked_first
    seconds = (first - last).total_seconds() if first and last else 0.0
    return max(1, round(seconds / DAY)) if seconds > new.max_age else 0
