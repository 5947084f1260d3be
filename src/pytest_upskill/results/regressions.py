"""How the cases of a run compare with their accepted results, alone and together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .._util import grouped
from .._util.texts import first_few, one_line, points, span
from ..stats import CasePasses, fell_together, lift_change
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Count, Expectation, Group, PlannedCase, Unmatched, Why
from ..trials.records import Record
from ..trials.subject import CHAT, WithPair
from ..trials.trial import Trial
from .accepted import PYTHON_MARK, ModelResults
from .comparison import CasePair, Fallen, find_fallen
from .row import SinceAccepted

_NOT_KNOWN: Final[Mapping[str, str]] = MappingProxyType({})
_SHOWN: Final = 0.05  # a fall of the lift has at most this p value
_MAX_NAMES: Final = 10
_UNMATCHED_WORDS: Final[Mapping[Why, str]] = {
    "gone": "accepted, but gone from the file",
    "skipped": "accepted, but skipped now",
    "marked xfail": "accepted, but marked xfail now",
    "for other models": "accepted, but not for this model now",
    "changed": "changed since accepted",
}

CaseState = Literal["tested", "left out", "skipped", "marked xfail", "for other models"]
StandingKind = Literal[
    "passed", "failed", "better", "accepted as failing", "could be chance", "regressed"
]


# One case.


@dataclass(frozen=True)
class Standing:
    """A case compared with its accepted result."""

    kind: StandingKind
    reason: str = ""


def reaches(count: Count, threshold: float | None) -> bool:
    """Whether enough runs of a case passed."""
    return count.share > 0.5 if threshold is None else count.share >= threshold


def fell(now: Count, expected: Expectation | None) -> bool:
    """Whether fewer runs pass than accepted: alone or with other cases it may be a
    regression.
    """
    return expected is not None and now.share < expected.was.share


def next_trial(test: PlannedCase, records: Sequence[Record]) -> Trial | None:
    """The extra trial that a test needs after these records.

    There is one as long as all runs failed of a case that had always passed: one pass,
    or an error, ends it.
    """
    asked = set()
    for record in records:
        if record.arm == SKILL:
            asked.add(record.run)
            if record.outcome != "failed":
                return None

    for trial in test.extra_trials:
        if trial.run not in asked:
            return trial
    return None


def standing_of(
    now: Count, threshold: float | None, expected: Expectation | None
) -> Standing:
    """What one case shows without the others. With them there may be more evidence:
    see `compare_groups`.
    """
    good = reaches(now, threshold)
    if expected is None:
        return Standing("passed" if good else "failed")

    beside = expected.beside(now)
    if CasePair("", expected.was, now).is_regression:
        return Standing("regressed", f"regression: {beside}")

    was_good = reaches(expected.was, threshold)
    if good:
        return Standing("passed" if was_good else "better")
    if was_good:
        return Standing("could be chance", f"{beside}; could be chance")
    reason = f"accepted as failing on {expected.date} ({expected.was})"
    return Standing("accepted as failing", reason)


@dataclass(frozen=True)
class Compared:
    """A case that ran, with its accepted result."""

    test: PlannedCase
    now: Count  # with the skill, in extra runs too
    baseline: Count | None = None
    extra_runs: int = 0

    @property
    def expected(self) -> Expectation | None:
        return self.test.expected

    @property
    def alone(self) -> Standing:
        """What it shows without the other cases."""
        return standing_of(self.now, self.test.threshold, self.expected)

    @property
    def numbers(self) -> str:
        """Its present result and the accepted one."""
        return f"{one_line(self.test.case, 80)}: {self.counts}"

    @property
    def counts(self) -> str:
        """With those of the baseline, if it fell too: perhaps the model changed."""
        if not self.expected:
            return f"{self.now} passed"

        words = self.expected.beside(self.now)
        if self.baseline_fell:
            words += f"; without the skill {self.baseline}"
            words += f" (accepted: {self.expected.baseline})"
        return words

    @property
    def planned(self) -> Count:
        """With the skill, without extra runs: there are some if all others failed."""
        if not self.extra_runs:
            return self.now
        return Count(0, self.now.runs - self.extra_runs)

    @property
    def fell(self) -> bool:
        return fell(self.now, self.expected)

    @property
    def baseline_fell(self) -> bool:
        was = self.expected.baseline if self.expected else None
        return bool(was and self.baseline and self.baseline.share < was.share)

    @property
    def passes(self) -> CasePair | None:
        """With the skill, then and now; None without an accepted result."""
        if not self.expected:
            return None
        return CasePair(self.test.case, self.expected.was, self.now, self.test.sample)

    @property
    def arms(self) -> tuple[CasePasses, CasePasses] | None:
        """With the skill and without, then and now; None if a baseline is not known."""
        expected = self.expected
        if not expected or not expected.baseline or not self.baseline:
            return None
        sample = self.test.sample
        return (
            CasePasses(expected.was, self.planned, sample),
            CasePasses(expected.baseline, self.baseline, sample),
        )


def compare_case(test: PlannedCase, records: Sequence[Record]) -> Compared | None:
    """None for a case without all answers, or with an xfail mark."""
    if not test.compared or any(record.outcome == "errored" for record in records):
        return None

    now = _count(records, SKILL)
    if now is None:
        return None
    return Compared(
        test,
        now,
        baseline=_count(records, BASELINE),
        extra_runs=sum(record.extra for record in records),
    )


def _count(records: Sequence[Record], arm: str) -> Count | None:
    passes = [record.outcome == "passed" for record in records if record.arm == arm]
    return Count(sum(passes), len(passes)) if passes else None


# All cases of a skill on a model.


@dataclass(frozen=True)
class ModelDrift(WithPair):
    """A model that got worse since its results were accepted, which the baseline shows.

    Rates and lifts are means over the cases.
    """

    skill: str
    model: str
    agent: str
    model_id_before: str
    model_id: str
    baseline_before: float
    baseline_rate: float
    lift_before: float
    lift: float
    lift_change_low: float
    lift_change_high: float
    explains: bool  # that cases with the skill got worse: no fall of the lift is shown

    @property
    def words(self) -> str:
        baseline = f"{100 * self.baseline_before:.0f} → {100 * self.baseline_rate:.0f}"
        text = f"the model got worse (baseline {baseline}), {self._lift_words}"
        if self.model_id_before and self.model_id not in ("", self.model_id_before):
            before = one_line(self.model_id_before, 60)
            now = one_line(self.model_id, 60)
            text += f"; it was {before}, and is now {now}"
        return text

    @property
    def _lift_words(self) -> str:
        before = points(self.lift_before)
        now = points(self.lift)
        if not self.explains:
            return f"the skill's lift was {before} and is now {now}"
        change = span(self.lift_change_low, self.lift_change_high)
        return f"no change of the lift is shown ({before} → {now}; change {change})"


@dataclass(frozen=True, kw_only=True)
class AcceptedComparison(WithPair):
    """A skill on a model compared with its accepted results."""

    skill: str
    model: str
    agent: str = CHAT
    cases: tuple[Compared, ...]
    fallen: Fallen | None = None  # what got worse, also if the model explains it
    drift: ModelDrift | None = None
    explained: frozenset[str] = frozenset()  # cases that fell because the model did

    @cached_property
    def worse(self) -> tuple[Compared, ...]:
        """The cases that regressed by evidence of their own."""
        alone = {pair.case for pair in self.fallen.alone} if self.fallen else set()
        names = alone - self.explained
        return tuple(case for case in self.cases if case.test.case in names)

    @property
    def together(self) -> bool:
        """Whether the other cases regressed together."""
        is_of_model = self.drift is not None and self.drift.explains
        return self.fallen is not None and self.fallen.together and not is_of_model

    @cached_property
    def regressed(self) -> tuple[Compared, ...]:
        """The cases whose tests fail: those that are worse, and if all together are,
        all that fell.

        A test that failed stays one, also in a run that was stopped before the others.
        """
        return self.of_kind("regressed")

    def standing(self, case: Compared) -> Standing:
        """What a case shows among the others."""
        if case in self.worse:
            return Standing("regressed", f"regression: {case.counts}")
        if case.test.regression:
            return Standing("regressed", case.test.regression)
        if self.together and case.fell:
            return Standing("regressed", f"regression of {self._whole}: {case.counts}")
        if case.test.case in self.explained:
            reason = f"the model got worse, without the skill, too: {case.counts}"
            return Standing("regressed", reason)
        return case.alone

    def of_kind(self, kind: StandingKind) -> tuple[Compared, ...]:
        return tuple(case for case in self.cases if self.standing(case).kind == kind)

    @cached_property
    def since(self) -> SinceAccepted | None:
        """None if no case has both results."""
        before = []
        now = []
        dates = []
        for case in self.cases:
            if case.expected:
                before.append(case.expected.was.share)
                now.append(case.planned.share)
                dates.append(case.expected.date)
        if not dates:
            return None
        return SinceAccepted(
            rate=fmean(before),
            now=fmean(now),
            date=max(dates),
            worse=len(self.regressed),
        )

    @property
    def unknown(self) -> tuple[Compared, ...]:
        """Cases without an accepted result: new or changed."""
        return tuple(case for case in self.cases if case.expected is None)

    @property
    def reasons(self) -> list[str]:
        """Why the run fails."""
        reasons = []
        for case in self.worse:
            name = one_line(case.test.case, 80)
            reasons.append(f"{self.pair}: regression: {name}: {case.counts}")
        if whole := self.of_whole:
            return [*reasons, *whole]

        for case in self.cases:
            if case.test.regression and case not in self.worse:
                reasons.append(f"{self.pair}: {case.test.case}: {case.test.regression}")
        return reasons

    @property
    def of_whole(self) -> list[str]:
        """Why the run fails, of all cases together."""
        reasons = []
        if self.fallen and self.together:
            words = self.fallen.together_words("accepted")
            reasons.append(f"{self.pair}: regression of {self._whole}: {words}")
            if any(_lacks_baseline(case) for case in self.cases):
                reasons[0] += "; it may be the model, as the baseline was not asked"
        if self.drift and self.drift.explains:
            reasons.append(f"{self.pair}: {self.drift.words}")
        return reasons

    @property
    def _whole(self) -> str:
        if self.of_triggers:
            return f"{'the other' if self.worse else 'all'} queries together"
        return "the other cases together" if self.worse else "the skill as a whole"

    @property
    def of_triggers(self) -> bool:
        """Whether these are queries of triggers; cases are compared apart from them."""
        return any(case.test.is_trigger for case in self.cases)


def _lacks_baseline(case: Compared) -> bool:
    return bool(case.expected and case.expected.baseline and not case.arms)


def compare_all(
    tests: Iterable[PlannedCase],
    records_of: Callable[[PlannedCase], Sequence[Record]],
    model_ids: Mapping[str, str] = _NOT_KNOWN,
) -> list[AcceptedComparison]:
    """One for each group of tests with accepted results."""
    groups: dict[Group, list[Compared]] = {}
    for group, of_group in grouped(tests, lambda test: test.group).items():
        if not any(test.expected or test.new for test in of_group):
            continue

        groups[group] = []
        for test in of_group:
            if case := compare_case(test, records_of(test)):
                groups[group].append(case)
    return compare_groups(groups, model_ids)


def compare_groups(
    groups: Mapping[Group, Sequence[Compared]],
    model_ids: Mapping[str, str] = _NOT_KNOWN,
) -> list[AcceptedComparison]:
    """All groups of a run together: the more there are, the more evidence it takes."""
    passes = {}
    baselines = []
    for group, cases in groups.items():
        passes[group] = [case.passes for case in cases if case.passes]
        baselines.append([case.arms[1] for case in cases if case.arms])

    fallen = find_fallen(passes)
    comparisons = []
    for group, baseline_fell in zip(groups, fell_together(baselines), strict=True):
        cases = groups[group]
        drift = None
        if baseline_fell:
            has_fallen = fallen[group] is not None
            drift = _find_drift(group, cases, model_ids, has_fallen=has_fallen)
        comparisons.append(
            AcceptedComparison(
                skill=group.pair.skill,
                model=group.pair.subject.model,
                agent=group.pair.subject.agent,
                cases=tuple(cases),
                fallen=fallen[group],
                drift=drift,
                explained=_find_explained(cases, fallen[group], drift),
            )
        )
    return comparisons


def _find_drift(
    group: Group,
    cases: Sequence[Compared],
    model_ids: Mapping[str, str],
    *,
    has_fallen: bool,
) -> ModelDrift:
    """Of a group whose baseline fell."""
    by_sample = {}
    for case in cases:
        if case.arms:
            by_sample[case.test.sample or case.test.nodeid] = case.arms

    arms = list(by_sample.values())
    skill_before = fmean(_share(skill.before) for skill, _ in arms)
    skill_now = fmean(_share(skill.now) for skill, _ in arms)
    baseline_before = fmean(_share(baseline.before) for _, baseline in arms)
    baseline_now = fmean(_share(baseline.now) for _, baseline in arms)
    expected = next(case.expected for case in cases if case.expected)
    change = lift_change(arms)
    return ModelDrift(
        skill=group.pair.skill,
        model=group.pair.subject.model,
        agent=group.pair.subject.agent,
        model_id_before=expected.model_id,
        model_id=model_ids.get(group.pair.subject.label, ""),
        baseline_before=baseline_before,
        baseline_rate=baseline_now,
        lift_before=skill_before - baseline_before,
        lift=skill_now - baseline_now,
        lift_change_low=change.low,
        lift_change_high=change.high,
        explains=has_fallen and change.p_fell > _SHOWN,
    )


def _share(passes: tuple[int, int]) -> float:
    return Count(*passes).share


def _find_explained(
    cases: Sequence[Compared], fallen: Fallen | None, drift: ModelDrift | None
) -> frozenset[str]:
    """The cases that got worse because the model did: not those that fell more than
    without the skill.
    """
    if fallen is None or drift is None or not drift.explains:
        return frozenset()

    alone = {pair.case for pair in fallen.alone}
    level = _SHOWN / max(1, len(alone))
    explained = set()
    for case in cases:
        is_explained = fallen.together and case.fell
        if case.test.case in alone:
            is_explained = case.baseline_fell and _p_of_lift(case) > level
        if is_explained:
            explained.add(case.test.case)
    return frozenset(explained)


def _p_of_lift(case: Compared) -> float:
    """The p value of a fall of its lift alone; it counts as fallen if that is not
    known.
    """
    return lift_change([case.arms]).p_fell if case.arms else 0.0


# Accepted results that no test is compared with: their cases are gone or changed.


class Present(NamedTuple):
    """A case that a skill has now; one that the command line left out is still
    there.
    """

    digest: str
    state: CaseState


def unmatched_in(
    accepted: ModelResults, present: Mapping[str, Present], *, all_listed: bool
) -> Iterator[tuple[str, Why]]:
    """The accepted cases that are not compared, and why.

    A case that has another id now is the same case. Unless all cases are listed, none
    is known to be gone; of tests in Python, that is never known.
    """
    alive = {
        case.digest for case in present.values() if case.state in ("tested", "left out")
    }
    for name, result in accepted.cases.items():
        in_python = PYTHON_MARK in name
        if not in_python and result.case_digest in alive:
            continue

        case = present.get(name)
        if case is None:
            if all_listed and not in_python:
                yield name, "gone"
        elif case.state == "tested":
            if case.digest != result.case_digest:
                yield name, "changed"
        elif case.state == "marked xfail":
            # Otherwise it was accepted as failing.
            if result.passes:
                yield name, case.state
        elif case.state != "left out":
            yield name, case.state


def unmatched_reasons(unmatched: Iterable[Unmatched]) -> list[str]:
    """Why a run fails: one line for each skill, model and reason."""
    order = list(_UNMATCHED_WORDS)
    rows = sorted(
        unmatched, key=lambda row: (row.skill, row.label, order.index(row.why))
    )
    reasons = []
    for (pair, why), group in grouped(rows, lambda row: (row.pair, row.why)).items():
        cases = [f"{one_line(row.case, 60)} ({row.was})" for row in group]
        accept = "accept that they are dropped"
        if why == "changed":
            accept = "accept the new results"
        reasons.append(
            f"{pair}: {_UNMATCHED_WORDS[why]}: {first_few(cases, _MAX_NAMES)};"
            f" undo that, or {accept}"
        )
    return reasons
