"""Two runs compared, with the statistics of --skill-against.

Cases are paired, and only answers with the skill count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Final

from .._util.texts import counted, one_line
from ..settings import Score
from ..stats import LEVEL, plan_level
from ..trials.subject import CHAT, SkillOnSubject, WithPair
from .arm_comparison import Comparison, compare_arms
from .run import RunResults
from .summary import Summary
from .trigger_changes import TriggerChange, trigger_changes

_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class CaseChange:
    """The score of a case in both runs."""

    case: str
    before: float
    after: float


@dataclass(frozen=True)
class LeftOut:
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
    left_out: LeftOut
    same_skill: bool  # SKILL.md and the files beside it
    model_ids: tuple[str, str]
    agent: str = CHAT
    agent_versions: tuple[str, str] = ("", "")
    runs: tuple[int, int] = (0, 0)

    @property
    def differences(self) -> list[str]:
        """What else is not the same, so that a change may come from it."""
        before, after = (one_line(name, 60) for name in self.model_ids)
        found = [f"the model was {before} and is now {after}"] if before != after else []
        before, after = (one_line(version, 60) for version in self.agent_versions)
        if before and after and before != after:
            found.append(f"{one_line(self.agent, 60)} was {before} and is now {after}")
        if self.runs[0] != self.runs[1]:
            found.append(f"each case had {counted(self.runs[0], 'run')} and now has {self.runs[1]}")
        return found


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
        found = [] if shared else ["the runs share no skill on the same model"]
        for one in self.triggers:
            if one.word == "worse" or one.left_out:
                found.append(f"{one.pair}: {one.words}")
        for pair in self.pairs:
            where, lacking = f"{pair.pair}", pair.left_out.unanswered
            if pair.change is None:
                found.append(f"{where}: no case in common")
            elif pair.change.word == "worse":
                found.append(f"{where}: {pair.change.words}")
            if lacking:
                found.append(f"{where}: {counted(lacking, 'case')} not answered in both")
        return found


@dataclass(frozen=True)
class _Side:
    """A skill on a model in one run."""

    summary: Summary
    asked: Mapping[str, str]  # the digest of each case, "" if it is not known
    skill_digest: str


def compare_runs(before: RunResults, after: RunResults) -> RunComparison:
    """What changed from one run to the other, adjusted for several models of a skill."""
    old, new = _sides(before), _sides(after)
    level = max(plan_level(run.looks) if run.looks else LEVEL for run in (before, after))
    pairs: list[PairComparison] = []
    for _, group in groupby((pair for pair in new if pair in old), key=lambda pair: pair[0]):
        sides = [(old[pair], new[pair]) for pair in group]
        rows = [_paired(one, two) for one, two in sides]
        changes = compare_arms(rows, "earlier", level=level)
        for (one, two), row, change in zip(sides, rows, changes, strict=True):
            pairs.append(_comparison(one, two, row, change))
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
    for what, one, two in (
        ("other skills installed", before.with_skills, after.with_skills),
        ("unrelated skills installed", (str(before.noise),), (str(after.noise),)),
    ):
        if one != two:
            were, are = (one_line(", ".join(names), 100) or "none" for names in (one, two))
            yield f"{what}: {were}, and now {are}"


def _sides(run: RunResults) -> dict[SkillOnSubject, _Side]:
    # Without the other arms, a missing baseline answer removes no case from the pairs.
    skill_only = replace(run, records=tuple(r for r in run.records if r.arm == "skill"))
    digests = {skill.name: skill.digest for skill in run.skills}
    asked: dict[SkillOnSubject, dict[str, str]] = {}
    for test in run.tests:
        asked.setdefault(test.pair, {})[test.case] = test.digest
    for record in run.records:
        asked.setdefault(record.pair, {}).setdefault(record.case, "")
    return {
        row.pair: _Side(row, asked[row.pair], digests[row.skill]) for row in skill_only.summaries
    }


def _paired(old: _Side, new: _Side) -> Summary:
    """The later summary over the cases in both runs; the other run is the arm ``earlier``."""
    known = {case.case: case for case in old.summary.by_case}
    cases = [
        replace(case, arms={"earlier": known[case.case].arm("skill"), **case.arms})
        for case in new.summary.by_case
        if case.case in known and not _edited(case.case, old, new)
    ]
    runs = max(old.summary.runs, new.summary.runs)
    return replace(new.summary, by_case=tuple(cases), runs=runs)


def _edited(case: str, old: _Side, new: _Side) -> bool:
    one, two = old.asked.get(case), new.asked.get(case)
    return bool(one and two and one != two)


def _comparison(old: _Side, new: _Side, row: Summary, change: Comparison | None) -> PairComparison:
    scores = row.scores(over="earlier")
    changes = [CaseChange(case, *pair) for case, pair in row.case_scores(over="earlier").items()]
    both = old.asked.keys() & new.asked.keys()
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
        left_out=LeftOut(
            only_before=len(old.asked.keys() - both),
            only_after=len(new.asked.keys() - both),
            edited=edited,
            unanswered=len(both) - edited - len(changes),
        ),
        same_skill=old.skill_digest == new.skill_digest,
        model_ids=(old.summary.model_id, new.summary.model_id),
        agent=new.summary.agent,
        agent_versions=(old.summary.agent_version, new.summary.agent_version),
        runs=(old.summary.runs, new.summary.runs),
    )
