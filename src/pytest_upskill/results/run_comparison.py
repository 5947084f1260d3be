"""Two runs compared: ``report A B``.

Cases are paired. Where both runs have a baseline, it is the lifts that are compared: a
model that got better lifts both arms, and says nothing about the skill. What is not
called a case, such as queries, is compared apart, by its first tag.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field, PlainSerializer, computed_field

from .._util import grouped
from .._util.texts import counted, one_line, percent
from ..options import DAY
from ..settings import Score
from ..skills.kinds import CASE
from ..stats import ROUNDING, fell_together
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Count, PlannedCase
from ..trials.records import Record
from ..trials.subject import CHAT, SkillOnSubject, WithPair
from .comparison import (
    CaseChange,
    CasePair,
    Cases,
    Comparison,
    Fallen,
    adjust_for_models,
    compare,
    find_fallen,
    find_risen,
    lift_results,
    with_fallen,
)
from .row import Row
from .run import RunResults

NOTHING_SHARED: Final = "the runs share no tests of a skill on the same model"
_Key = tuple[SkillOnSubject, str]  # and a tag
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


@dataclass(frozen=True, kw_only=True)
class PairComparison(WithPair):
    """A skill on a model that are in both runs: its cases, or others of a tag."""

    skill: str
    model: str
    agent: str = CHAT
    tag: str = ""  # empty if it is of cases
    noun: Annotated[str, Field(exclude=True)] = CASE.noun
    cases: int  # in pairs
    score: Score  # of the later run
    # Scores with the skill over these cases; None without any
    before: float | None
    after: float | None
    # Without it, where both runs asked that
    without: tuple[float, float] | None
    change: Comparison | None
    of_lift: bool  # whether the lifts are compared, else only answers with the skill
    risen: Fallen | None  # the cases that got better
    fell: tuple[CaseChange, ...]
    rose: tuple[CaseChange, ...]
    left_out: UnpairedCases
    same_skill: bool  # SKILL.md and the files beside it
    model_ids: tuple[str, str]
    agent_versions: tuple[str, str]
    runs: tuple[int, int]
    # Between the answers with the skill, if more than can be compared
    days_apart: int
    baseline_fell: bool = False

    @computed_field
    @property
    def title(self) -> str:
        """The agent and model, and what is compared."""
        return f"{self.label} {self.tag}".rstrip()

    @computed_field
    @property
    def words(self) -> str:
        """``better, +20 points (+5 to +35)``, and whether that is of the lift."""
        if self.change is None:
            return f"no {self.noun} in common"
        if not self.of_lift:
            return self.change.words
        return f"lift {self.change.words}"

    @property
    def drift(self) -> str:
        """That answers without the skill got worse, in words; empty if that is not
        shown.
        """
        if not self.baseline_fell or not self.without:
            return ""
        before, after = map(percent, self.without)
        return (
            f"the model got worse without the skill, too (without it {before} →"
            f" {after})"
        )

    @computed_field
    @property
    def differences(self) -> list[str]:
        """What else is not the same, so that a change may come from it."""
        lines = []
        before, after = (one_line(name, 60) for name in self.model_ids)
        if before != after:
            lines.append(f"the model was {before} and is now {after}")
        if self.drift:
            lines.append(self.drift)
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
        if not self.pairs:
            return [NOTHING_SHARED]

        reasons = []
        for pair in self.pairs:
            name = f"{pair.skill} on {pair.title}"
            if pair.change is None or pair.change.word == "worse":
                words = [pair.words, pair.drift] if pair.drift else [pair.words]
                reasons.append(f"{name}: {'; '.join(words)}")
            if missing := pair.left_out.unanswered:
                reasons.append(
                    f"{name}: {counted(missing, pair.noun)} not answered in both"
                )
        return reasons


@dataclass(frozen=True)
class _Side:
    """A skill on a model in one run: its cases, or others of a tag."""

    noun: str
    with_skill: Row
    without: Row | None
    digests: Mapping[str, str]  # the digest of each case, "" if it is not known

    def passes(self, arm: str) -> dict[str, Count]:
        row = self.with_skill if arm == SKILL else self.without
        if row is None:
            return {}
        return {case.case: case.arm(arm).count for case in row.by_case}

    @property
    def lifts(self) -> Cases:
        """The lift of each case; none without a baseline."""
        if self.without is None:
            return {}
        return lift_results(
            self.with_skill.case_results(SKILL), self.without.case_results(BASELINE)
        )


@dataclass(frozen=True)
class _Sides:
    """The same skill on the same model in both runs."""

    old: _Side
    new: _Side

    def is_edited(self, case: str) -> bool:
        before = self.old.digests.get(case)
        after = self.new.digests.get(case)
        return bool(before and after and before != after)

    @property
    def results(self) -> tuple[Cases, Cases]:
        """With the skill, then and now: the cases of both runs that are the same."""
        return self._find_same(
            self.old.with_skill.case_results(SKILL),
            self.new.with_skill.case_results(SKILL),
        )

    @property
    def lifts(self) -> tuple[Cases, Cases] | None:
        """The lift of each case, then and now; None if a case lacks a baseline."""
        before, after = self._find_same(self.old.lifts, self.new.lifts)
        compared, _ = self.results
        if not before or len(before) < len(compared):
            return None
        return before, after

    def _find_same(self, before: Cases, after: Cases) -> tuple[Cases, Cases]:
        same = {case for case in before if case in after and not self.is_edited(case)}
        return (
            {case: result for case, result in before.items() if case in same},
            {case: result for case, result in after.items() if case in same},
        )

    def pairs(self, arm: str) -> list[CasePair]:
        """How often each case passes in an arm, then and now."""
        before = self.old.passes(arm)
        pairs = []
        questions = {case.case: case.question for case in self.new.with_skill.by_case}
        for case, now in self.new.passes(arm).items():
            if case in before and not self.is_edited(case):
                pair = CasePair(case, before[case], now, questions.get(case, ""))
                pairs.append(pair)
        return pairs


def compare_runs(before: RunResults, after: RunResults) -> RunComparison:
    """What changed from one run to the other, adjusted for all skills and models."""
    old = _find_sides(_score_like(before, after))
    new = _find_sides(after)
    shared = {key: _Sides(old[key], new[key]) for key in new if key in old}
    passes = {key: sides.pairs(SKILL) for key, sides in shared.items()}
    fallen = find_fallen(passes)
    risen = find_risen(passes)
    baselines = _find_fallen_baselines(shared)

    pairs: list[PairComparison] = []
    for group in grouped(shared, lambda key: (key[0].skill, bool(key[1]))).values():
        changes = [_compare_sides(shared[key]) for key in group]
        for key, change in zip(group, adjust_for_models(changes), strict=True):
            pair = _describe_pair(key, shared[key], change)
            pair = replace(pair, risen=risen[key], baseline_fell=key in baselines)
            pairs.append(_add_fallen(pair, fallen[key]))
    pairs_before = dict.fromkeys(pair for pair, _ in old)
    pairs_after = dict.fromkeys(pair for pair, _ in new)
    return RunComparison(
        pairs=tuple(pairs),
        only_before=tuple(pair for pair in pairs_before if pair not in pairs_after),
        only_after=tuple(pair for pair in pairs_after if pair not in pairs_before),
        differences=tuple(_find_differences(before, after)),
    )


def _compare_sides(sides: _Sides) -> Comparison | None:
    """The lifts compared, where both runs have a baseline; else the answers with the
    skill.
    """
    before, after = sides.results
    change = compare([before], [after])
    if change and sides.lifts:
        lifts_before, lifts_after = sides.lifts
        of_lift = compare([lifts_before], [lifts_after], reach=2.0)
        if of_lift:
            change = replace(change, lift=of_lift.lift, samples=of_lift.samples)
    return change


def _describe_pair(
    key: _Key, sides: _Sides, change: Comparison | None
) -> PairComparison:
    old = sides.old.with_skill
    new = sides.new.with_skill
    before, after = sides.results
    changes = [
        CaseChange(case, before[case].score, result.score)
        for case, result in after.items()
    ]
    both = sides.old.digests.keys() & sides.new.digests.keys()
    edited = sum(map(sides.is_edited, both))
    return PairComparison(
        skill=new.skill,
        model=new.model,
        agent=new.agent,
        tag=key[1],
        noun=sides.new.noun,
        cases=len(changes),
        score=new.score,
        before=fmean(case.before for case in changes) if changes else None,
        after=fmean(case.after for case in changes) if changes else None,
        without=_rates_without(sides),
        change=change,
        of_lift=change is not None and sides.lifts is not None,
        risen=None,
        fell=tuple(case for case in changes if case.after < case.before - ROUNDING),
        rose=tuple(case for case in changes if case.after > case.before + ROUNDING),
        left_out=UnpairedCases(
            only_before=len(sides.old.digests.keys() - both),
            only_after=len(sides.new.digests.keys() - both),
            edited=edited,
            unanswered=len(both) - edited - len(changes),
        ),
        same_skill=old.skill_digest == new.skill_digest,
        model_ids=(old.model_id, new.model_id),
        agent_versions=(old.agent_version, new.agent_version),
        runs=(old.runs, new.runs),
        days_apart=_count_days_apart(old, new),
    )


def _add_fallen(pair: PairComparison, fallen: Fallen | None) -> PairComparison:
    """Cases that fell make a version worse, unless the model explains it: it got worse
    without the skill, too, and no fall of the lift is shown.
    """
    if pair.change is None:
        return pair
    if pair.baseline_fell and pair.of_lift and pair.change.lift.high >= 0:
        fallen = None
    return replace(pair, change=with_fallen(pair.change, fallen))


def _rates_without(sides: _Sides) -> tuple[float, float] | None:
    pairs = sides.pairs(BASELINE)
    if not pairs:
        return None
    return (
        fmean(pair.before.share for pair in pairs),
        fmean(pair.now.share for pair in pairs),
    )


def _find_fallen_baselines(shared: Mapping[_Key, _Sides]) -> set[_Key]:
    """Where answers without the skill got worse."""
    groups = {
        key: [pair.passes for pair in sides.pairs(BASELINE)]
        for key, sides in shared.items()
        if not key[1]
    }
    fell = fell_together(list(groups.values()))
    return {key for key, has_fallen in zip(groups, fell, strict=True) if has_fallen}


def _find_differences(before: RunResults, after: RunResults) -> Iterator[str]:
    if before.judge and after.judge and before.judge != after.judge:
        was, now = (one_line(name, 60) for name in (before.judge, after.judge))
        yield f"the judge was {was} and is now {now}"
    if before.with_skills != after.with_skills:
        were, are = (_join(run.with_skills) for run in (before, after))
        yield f"other skills installed: {were}, and now {are}"
    if before.noise != after.noise:
        yield (f"unrelated skills installed: {before.noise:,}, and now {after.noise:,}")


def _join(names: Sequence[str]) -> str:
    return one_line(", ".join(names), 100) or "none"


def _score_like(run: RunResults, other: RunResults) -> RunResults:
    """The run with the scores of another: pass rates, or shares of checks."""
    scores = {skill.name: skill.score for skill in other.skills}
    skills = [
        replace(skill, score=scores.get(skill.name, skill.score))
        for skill in run.skills
    ]
    return replace(run, skills=tuple(skills))


def _find_sides(run: RunResults) -> dict[_Key, _Side]:
    """By skill, model and tag, those of a skill together."""
    sides: dict[_Key, _Side] = {}
    parts = {"": replace(run, tests=run.cases, records=run.case_records)}
    by_tag = grouped(run.no_cases, lambda test: test.tags[0] if test.tags else "other")
    nouns = {"": CASE.noun}
    for tag, tests in by_tag.items():
        parts[tag] = _only_tests(run, tests)
        nouns[tag] = tests[0].kind.noun
    for tag, part in parts.items():
        digests = _find_digests(part)
        # Apart, so that a missing baseline answer removes no case from the pairs
        baselines = {row.pair: row for row in _only(part, BASELINE).rows}
        for row in _only(part, SKILL).rows:
            sides[row.pair, tag] = _Side(
                noun=nouns[tag],
                with_skill=row,
                without=baselines.get(row.pair),
                digests=digests[row.pair],
            )
    order = [skill.name for skill in run.skills]
    return dict(sorted(sides.items(), key=lambda item: order.index(item[0][0].skill)))


def _only_tests(run: RunResults, tests: Iterable[PlannedCase]) -> RunResults:
    """A run that has only these tests, as if they were cases."""
    as_cases = tuple(replace(test, kind=CASE) for test in tests)
    records: list[Record] = []
    for test in as_cases:
        records += run.planned_records_of(test)
    return replace(run, tests=as_cases, records=tuple(records))


def _only(run: RunResults, arm: str) -> RunResults:
    records = tuple(record for record in run.records if record.arm == arm)
    return replace(run, records=records)


def _find_digests(run: RunResults) -> dict[SkillOnSubject, dict[str, str]]:
    digests: dict[SkillOnSubject, dict[str, str]] = {}
    for test in run.tests:
        digests.setdefault(test.pair, {})[test.case] = test.digest
    for record in run.records:
        digests.setdefault(record.pair, {}).setdefault(record.case, "")
    return digests


def _count_days_apart(old: Row, new: Row) -> int:
    last = old.asked.last.get(SKILL) if old.asked else None
    first = new.asked.first.get(SKILL) if new.asked else None
    if not last or not first or not new.asked:
        return 0
    seconds = (first - last).total_seconds()
    return max(1, round(seconds / DAY)) if seconds > new.asked.max_age else 0


def passes_of(records: Sequence[Record], arm: str = SKILL) -> Count | None:
    """Out of the answered runs of an arm; None without any."""
    runs = [
        record
        for record in records
        if record.arm == arm and record.outcome != "errored"
    ]
    passed = sum(record.outcome == "passed" for record in runs)
    return Count(passed, len(runs)) if runs else None
