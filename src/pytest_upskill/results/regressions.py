"""How the cases of a run compare with their accepted results, alone and together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import comb
from statistics import fmean
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .._util import grouped
from .._util.texts import counted, first_few, one_line, points, span
from ..stats import (
    RELEVANT_LIFT,
    CasePasses,
    Worsening,
    fell_together,
    lift_change,
    worsened,
)
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import (
    FAILURES_OF_A_REGRESSION,
    Count,
    Expectation,
    Group,
    PlannedCase,
    Unmatched,
    Why,
)
from ..trials.records import Record
from ..trials.subject import CHAT, WithPair
from ..trials.trial import Trial
from .accepted import PYTHON_MARK, ModelResults

# That a case ends otherwise the next time, to call it flaky
_LIKELY_ENOUGH: Final = 0.05

_NOT_KNOWN: Final[Mapping[str, str]] = MappingProxyType({})
_SHOWN: Final = 0.05  # a fall of the lift has at most this p value
_OF_THE_MODEL: Final = "the model got worse, without the skill, too"

_MOST_NAMES: Final = 10
_UNMATCHED_WORDS: Final[Mapping[Why, str]] = {
    "gone": "accepted, but gone from the file",
    "skipped": "accepted, but skipped now",
    "marked xfail": "accepted, but marked xfail now",
    "for other models": "accepted, but not for this model now",
    "changed": "changed since accepted",
}
_IF_CHANGED: Final = "undo that, or accept the new results"
_IF_MISSING: Final = "undo that, or accept that they are dropped"

CaseState = Literal["tested", "left out", "skipped", "marked xfail", "for other models"]
StandingKind = Literal[
    "passed",
    "failed",
    "better",
    "accepted as failing",
    "could be chance",
    "drifted",
    "regressed",
]


@dataclass(frozen=True)
class Standing:
    """A case compared with its accepted result."""

    kind: StandingKind
    reason: str = ""


def reaches(count: Count, threshold: float | None) -> bool:
    """Whether enough runs of a case passed."""
    return count.share > 0.5 if threshold is None else count.share >= threshold


def could_flip(count: Count, threshold: float | None) -> bool:
    """Whether as many new runs may well end on the other side of the threshold."""
    passes, runs = count
    if passes in (0, runs):
        return False
    good, share = reaches(count, threshold), count.share
    chance = sum(
        comb(runs, number) * share**number * (1 - share) ** (runs - number)
        for number in range(runs + 1)
        if reaches(Count(number, runs), threshold) != good
    )
    return chance >= _LIKELY_ENOUGH


def fell(now: Count, expected: Expectation | None) -> bool:
    """Whether fewer runs pass than accepted: alone or with other
    cases it may be a regression.
    """
    return expected is not None and now.share < expected.was.share


def next_trial(test: PlannedCase, records: Sequence[Record]) -> Trial | None:
    """The extra trial that a test needs after these records.

    There is one as long as all runs failed of a case that had always passed: one pass,
    or an error, ends it.
    """
    with_skill = [record for record in records if record.arm == SKILL]
    if any(record.outcome != "failed" for record in with_skill):
        return None

    asked = {record.run for record in with_skill}
    return next((trial for trial in test.extra_trials if trial.run not in asked), None)


def is_regression(now: Count, expected: Expectation | None) -> bool:
    """Whether a case regressed whatever the others show: it had always passed, and
    has failed often enough in a row.
    """
    if expected is None or not expected.always_passed:
        return False
    return now.passes == 0 and now.runs >= FAILURES_OF_A_REGRESSION


def standing_of(
    now: Count, threshold: float | None, expected: Expectation | None
) -> Standing:
    """What one case shows without the others. With them there may be more evidence:
    see ``compare``.
    """
    good = reaches(now, threshold)
    if expected is None:
        return Standing("passed" if good else "failed")
    if is_regression(now, expected):
        return Standing("regressed", f"regression: {expected.beside(now)}")
    was = expected.was
    was_good = reaches(was, threshold)
    if good:
        return Standing("passed" if was_good else "better")
    if not was_good:
        return Standing(
            "accepted as failing", f"accepted as failing on {expected.date} ({was})"
        )
    return Standing("could be chance", f"{expected.beside(now)}; could be chance")


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

    @cached_property
    def alone(self) -> Standing:
        """What it shows without the other cases."""
        return standing_of(self.now, self.test.threshold, self.expected)

    @property
    def numbers(self) -> str:
        """Its present result and the accepted one."""
        return f"{one_line(self.test.case, 80)}: {self.counts}"

    @property
    def counts(self) -> str:
        if not self.expected:
            return f"{self.now} passed"
        return self.expected.beside(self.now)

    @property
    def counts_of_arms(self) -> str:
        """With those of the baseline, if it fell too: perhaps the model changed."""
        if not self.baseline_fell or not self.expected:
            return self.counts
        return (
            f"{self.counts}; without the skill {self.baseline}"
            f" (accepted: {self.expected.baseline})"
        )

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
    def is_regression(self) -> bool:
        return is_regression(self.now, self.expected)

    @cached_property
    def passes(self) -> CasePasses | None:
        """With the skill, then and now; None without an accepted result."""
        was = self.expected
        return CasePasses(was.was, self.now, self.test.sample) if was else None

    @cached_property
    def arms(self) -> tuple[CasePasses, CasePasses] | None:
        """With the skill and without, then and now; None if a baseline is not known."""
        was, sample = self.expected, self.test.sample
        if not was or not was.baseline or not self.baseline:
            return None
        return (
            CasePasses(was.was, self.planned, sample),
            CasePasses(was.baseline, self.baseline, sample),
        )

    @property
    def lift_fell(self) -> float:
        """The p value of its lift alone; if that is not known, it counts as fallen."""
        return lift_change([self.arms]).p_fell if self.arms else 0.0


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
    fails: bool  # the run: it explains that, and is not just to be warned of

    @property
    def words(self) -> str:
        baseline = f"{100 * self.baseline_before:.0f} → {100 * self.baseline_rate:.0f}"
        text = f"the model got worse (baseline {baseline}), {self._lift_words}"
        if self.model_id_before and self.model_id not in ("", self.model_id_before):
            before, now = (
                one_line(self.model_id_before, 60),
                one_line(self.model_id, 60),
            )
            text += f"; it was {before}, and is now {now}"
        return text

    @property
    def _lift_words(self) -> str:
        before, now = points(self.lift_before), points(self.lift)
        if not self.explains:
            return f"the skill's lift was {before} and is now {now}"
        low, high = self.lift_change_low, self.lift_change_high
        is_narrow = low > -RELEVANT_LIFT and high < RELEVANT_LIFT
        words = (
            "the skill's lift is unchanged"
            if is_narrow
            else "no change of the lift is shown"
        )
        return f"{words} ({before} → {now}; change {span(low, high)})"


@dataclass(frozen=True)
class SinceAccepted:
    """The cases of a skill on a model that have an accepted result, then and now.

    Rates are means over the cases.
    """

    rate: float  # that was accepted
    now: float
    date: str
    worse: int  # cases that regressed

    @property
    def change(self) -> float:
        return self.now - self.rate

    @property
    def fall(self) -> str:
        """``67 → 17``; or ``in 1 case``, if others rose. Empty unless that is shown."""
        before, now = round(100 * self.rate), round(100 * self.now)
        fall = (
            f"{before} → {now}" if now < before else f"in {counted(self.worse, 'case')}"
        )
        return fall if self.worse else ""

    @property
    def words(self) -> str:
        """``fell 67 → 17 since 2026-11-01``."""
        return f"fell {self.fall} since {self.date}" if self.fall else ""


@dataclass(frozen=True)
class AcceptedComparison(WithPair):
    """A skill on a model compared with its accepted results."""

    skill: str
    model: str
    cases: tuple[Compared, ...]
    worse: tuple[Compared, ...]  # by evidence of their own
    together: str  # if the other cases together got worse, too: their passes, in words
    agent: str = CHAT
    drift: ModelDrift | None = None
    explained: tuple[Compared, ...] = ()  # cases that got worse because the model did

    @cached_property
    def regressed(self) -> tuple[Compared, ...]:
        """The cases whose tests fail: those that are worse, and if all together are,
        all that fell.

        A test that failed stays one, also in a run that was stopped before the others.
        """
        return self.of_kind("regressed")

    def standing(self, case: Compared) -> Standing:
        """What a case shows among the others."""
        if self._is_worse(case):
            return Standing("regressed", f"regression: {case.counts_of_arms}")
        if case.test.regression:
            return Standing("regressed", case.test.regression)
        if self.together and case.fell:
            return Standing(
                "regressed", f"regression of {self._together}: {case.counts}"
            )
        if self.drift and case.test.case in self._names_of_explained:
            if self.drift.fails:
                return Standing("regressed", f"{_OF_THE_MODEL}: {case.counts}")
            if case.alone.kind in ("could be chance", "regressed"):
                return Standing("drifted", f"{_OF_THE_MODEL}: {case.counts}")
        return case.alone

    def of_kind(self, *kinds: StandingKind) -> tuple[Compared, ...]:
        return tuple(case for case in self.cases if self.standing(case).kind in kinds)

    @cached_property
    def since(self) -> SinceAccepted | None:
        """None if no case has both results."""
        both = [case for case in self.cases if case.expected]
        expected = [case.expected for case in both if case.expected]
        if not expected:
            return None
        return SinceAccepted(
            fmean(was.was.share for was in expected),
            fmean(case.planned.share for case in both),
            max(was.date for was in expected),
            len(self.regressed),
        )

    @property
    def unknown(self) -> tuple[Compared, ...]:
        """Cases without an accepted result: new or changed."""
        return tuple(case for case in self.cases if case.expected is None)

    @property
    def reasons(self) -> list[str]:
        """Why the run fails."""
        reasons = [
            f"{self.pair}: regression: {one_line(case.test.case, 80)}:"
            f" {case.counts_of_arms}"
            for case in self.worse
        ]
        if self.of_whole:
            return [*reasons, *self.of_whole]
        decided = (
            case
            for case in self.cases
            if case.test.regression and not self._is_worse(case)
        )
        reasons += [
            f"{self.pair}: {case.test.case}: {case.test.regression}" for case in decided
        ]
        return reasons

    @property
    def of_whole(self) -> list[str]:
        """Why the run fails, of all cases together."""
        reasons = (
            [f"regression of {self._together}: {self.together}"]
            if self.together
            else []
        )
        reasons += [self.drift.words] if self.drift and self.drift.fails else []
        return [f"{self.pair}: {reason}" for reason in reasons]

    def _is_worse(self, case: Compared) -> bool:
        return case.test.case in self._names_of_worse

    @cached_property
    def _names_of_worse(self) -> frozenset[str]:
        return frozenset(case.test.case for case in self.worse)

    @cached_property
    def _names_of_explained(self) -> frozenset[str]:
        return frozenset(case.test.case for case in self.explained)

    @property
    def _together(self) -> str:
        if self.of_triggers:
            return f"{'the other' if self.worse else 'all'} queries together"
        return "the other cases together" if self.worse else "the skill as a whole"

    @property
    def of_triggers(self) -> bool:
        """Whether these are queries of triggers; cases are compared apart from them."""
        return any(case.test.is_trigger for case in self.cases)


def compared(test: PlannedCase, records: Sequence[Record]) -> Compared | None:
    """None for a case without all answers, or with an xfail mark."""
    if not test.compared or any(record.outcome == "errored" for record in records):
        return None

    now, baseline = _count(records, SKILL), _count(records, BASELINE)
    extra_runs = sum(record.extra for record in records)
    return Compared(test, now, baseline, extra_runs) if now else None


def _count(records: Sequence[Record], arm: str) -> Count | None:
    passes = [record.outcome == "passed" for record in records if record.arm == arm]
    return Count(sum(passes), len(passes)) if passes else None


def compare_all(
    tests: Iterable[PlannedCase],
    records_of: Callable[[PlannedCase], Sequence[Record]],
    model_ids: Mapping[str, str] = _NOT_KNOWN,
) -> list[AcceptedComparison]:
    """One for each group of tests with accepted results."""
    groups = grouped(tests, lambda test: test.group)
    return compare(
        {
            group: [case for test in of if (case := compared(test, records_of(test)))]
            for group, of in groups.items()
            if any(test.expected or test.new for test in of)
        },
        model_ids,
    )


def compare(
    groups: Mapping[Group, Sequence[Compared]],
    model_ids: Mapping[str, str] = _NOT_KNOWN,
) -> list[AcceptedComparison]:
    """All groups of a run together: the more there are, the more evidence it takes.

    Cases that are regressions by themselves are no evidence about the others.
    """
    skills = [
        [case.passes for case in cases if case.passes and not case.is_regression]
        for cases in groups.values()
    ]
    baselines = [
        [case.arms[1] for case in cases if case.arms] for cases in groups.values()
    ]
    comparisons = []
    for (group, cases), drop, baseline_fell in zip(
        groups.items(), worsened(skills), fell_together(baselines), strict=True
    ):
        worse = _worse_alone(cases, drop)
        drift = None
        if baseline_fell:
            found = drop.together or bool(worse)
            drift = _drift(group, cases, model_ids, got_worse=found)
        comparisons.append(_comparison(group, cases, worse, drop, drift))
    return comparisons


def _worse_alone(cases: Sequence[Compared], drop: Worsening) -> list[Compared]:
    """The cases that got worse by evidence of their own."""
    others = [case for case in cases if case.passes and not case.is_regression]
    evident = {others[index].test.case for index in drop.cases}
    return [case for case in cases if case.is_regression or case.test.case in evident]


def _comparison(
    group: Group,
    cases: Sequence[Compared],
    worse: list[Compared],
    drop: Worsening,
    drift: ModelDrift | None,
) -> AcceptedComparison:
    explained: list[Compared] = []
    together = drop.together
    if drift and drift.explains:
        # Not cases that fell more than without the skill
        level = _SHOWN / max(1, len(worse))
        explained = [
            case for case in worse if case.baseline_fell and case.lift_fell > level
        ]
        worse = [case for case in worse if case not in explained]
        if together:
            explained = [case for case in cases if case.fell and case not in worse]
        together = False
    passes = (
        f"{Count(*drop.now)} runs passed (accepted: {Count(*drop.before)}, p ="
        f" {drop.p_value:.2g})"
    )
    if any(
        case.expected and case.expected.baseline and not case.arms for case in cases
    ):
        passes += "; it may be the model, as the baseline was not asked"
    return AcceptedComparison(
        group.pair.skill,
        group.pair.subject.model,
        tuple(cases),
        tuple(worse),
        passes if together else "",
        group.pair.subject.agent,
        drift,
        tuple(explained),
    )


def _drift(
    group: Group,
    cases: Sequence[Compared],
    model_ids: Mapping[str, str],
    *,
    got_worse: bool,
) -> ModelDrift:
    """Of a group whose baseline fell."""
    by_sample = {
        case.test.sample or case.test.nodeid: case.arms for case in cases if case.arms
    }
    arms = list(by_sample.values())
    expected = next(case.expected for case in cases if case.expected)
    before = [fmean(Count(*arm[side].before).share for arm in arms) for side in (0, 1)]
    now = [fmean(Count(*arm[side].now).share for arm in arms) for side in (0, 1)]
    subject, change = group.pair.subject, lift_change(arms)
    explains = got_worse and change.p_fell > _SHOWN
    return ModelDrift(
        group.pair.skill,
        subject.model,
        subject.agent,
        expected.model_id,
        model_ids.get(subject.label, ""),
        before[1],
        now[1],
        before[0] - before[1],
        now[0] - now[1],
        change.low,
        change.high,
        explains,
        fails=explains and expected.drift == "fail",
    )


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
        in_python, case = PYTHON_MARK in name, present.get(name)
        if not in_python and result.case_digest in alive:
            continue
        if case is None:
            if all_listed and not in_python:
                yield name, "gone"
        elif case.state == "tested":
            if case.digest != result.case_digest:
                yield name, "changed"
        elif case.state == "marked xfail":
            if result.passes:  # else it was accepted as failing
                yield name, case.state
        elif case.state != "left out":
            yield name, case.state


def unmatched_reasons(unmatched: Iterable[Unmatched]) -> list[str]:
    """Why a run fails: one line for each skill, model and reason."""
    order = list(_UNMATCHED_WORDS)
    rows = sorted(
        unmatched, key=lambda row: (row.skill, row.label, order.index(row.why))
    )
    return [
        f"{pair}: {_UNMATCHED_WORDS[why]}: {_names(group)}; "
        f"{_IF_CHANGED if why == 'changed' else _IF_MISSING}"
        for (pair, why), group in groupby(
            rows, lambda accepted: (accepted.pair, accepted.why)
        )
    ]


def _names(cases: Iterable[Unmatched]) -> str:
    return first_few(
        [f"{one_line(case.case, 60)} ({case.was})" for case in cases], _MOST_NAMES
    )
