"""How the cases of a run compare with their accepted results, alone and together."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, NamedTuple

from ..._util.texts import first_few, one_line, plural
from ...results.comparison import CasePair, Fallen, find_fallen
from ...results.outcomes import count_passes, reaches
from ...results.row import SinceAccepted
from ...results.run import RunResults
from ...results.standings import AcceptedComparison, Standing, StandingKind
from ...skills.kinds import CASE
from ...trials.arm import BASELINE
from ...trials.plan import Count, Expectation, Group, PlannedCase
from ...trials.records import Record

MAX_NAMES: Final = 10


class Compared(NamedTuple):
    """A case with its accepted result and what came of it."""

    test: PlannedCase
    was: Expectation
    now: Count  # with the skill, in extra runs too
    planned: Count  # without them
    baseline: Count | None

    @property
    def pair(self) -> CasePair:
        return CasePair(self.test.case, self.was.was, self.now, self.test.sample)

    @property
    def baselines(self) -> CasePair | None:
        if not self.was.baseline or not self.baseline:
            return None
        return self.pair._replace(before=self.was.baseline, now=self.baseline)

    @property
    def words(self) -> str:
        return f"{one_line(self.test.case, 80)}: {self.was.beside(self.now)}"

    @property
    def standing(self) -> Standing:
        """What it shows without the other cases."""
        words = self.was.beside(self.now)
        if self.pair.is_regression:
            return Standing("regressed", f"regression: {words}")

        was_good = reaches(self.was.was, self.test.threshold)
        if reaches(self.now, self.test.threshold):
            return Standing("passed" if was_good else "better")
        if was_good:
            return Standing("could be chance", f"{words}; could be chance")
        reason = f"accepted as failing on {self.was.date} ({self.was.was})"
        return Standing("accepted as failing", reason)


def compare_case(test: PlannedCase, records: Sequence[Record]) -> Compared | None:
    """None without an accepted result, or without all answers."""
    now = count_passes(records)
    planned = count_passes(record for record in records if not record.extra)
    if not now or not planned or not test.expected or not test.compared:
        return None
    baseline = count_passes(records, BASELINE)
    return Compared(test, test.expected, now, planned, baseline)


def compare(results: RunResults) -> Iterable[AcceptedComparison]:
    """One for each group of tests with accepted results.

    They are judged together: the more there are, the more evidence it takes.
    """
    groups: dict[Group, list[Compared]] = {}
    new: dict[Group, list[str]] = {}
    changed = {(result.pair, result.case) for result in results.unmatched}
    for test in results.tests:
        records = results.records_of(test)
        if test.expected or test.new:
            groups.setdefault(test.group, [])
        if case := compare_case(test, records):
            groups[test.group].append(case)
        elif test.new and test.compared and count_passes(records):
            if (test.pair, test.case) not in changed:
                new.setdefault(test.group, []).append(one_line(test.case, 60))

    passes = {}
    baselines = {}
    for group, cases in groups.items():
        passes[group] = [case.pair for case in cases]
        baselines[group] = [case.baselines for case in cases if case.baselines]
    fallen = find_fallen(passes)
    without_skill = find_fallen(baselines)
    for group, cases in groups.items():
        comparison = _compare_group(group, cases, fallen[group], without_skill[group])
        if group in new:
            names = first_few(new[group], MAX_NAMES)
            note = f"{group.pair}: no accepted result yet: {names}."
            comparison = replace(comparison, notes=(*comparison.notes, note))
        yield comparison


def _compare_group(
    group: Group,
    cases: Sequence[Compared],
    fallen: Fallen | None,
    without_skill: Fallen | None,
) -> AcceptedComparison:
    regressed = [case for case in cases if fallen and case.test.case in fallen.names]
    others = [case for case in cases if case not in regressed]
    since = None
    if cases:
        since = SinceAccepted(
            rate=fmean(case.was.was.share for case in cases),
            now=fmean(case.planned.share for case in cases),
            date=max(case.was.date for case in cases),
            worse=len(regressed),
        )

    of_cases: list[str] = []
    of_group: list[str] = []
    alone = [pair.case for pair in fallen.alone] if fallen else []
    for case in cases:
        if case.test.case in alone:
            reasons = of_cases if case.pair.is_regression else of_group
            reasons.append(f"{group.pair}: regression: {case.words}")
    if fallen and fallen.together:
        whole = "the other cases together" if alone else "the skill as a whole"
        if group.noun != CASE.noun:
            nouns = plural(group.noun)
            whole = f"{'the other' if alone else 'all'} {nouns} together"
        reason = f"regression of {whole}: {fallen.together_words('accepted')}"
        if without_skill and without_skill.together:
            words = without_skill.together_words("accepted")
            reason += f"; the model got worse, too: without the skill, {words}"
        elif any(case.was.baseline and not case.baseline for case in cases):
            reason += "; it may be the model, as the baseline was not asked"
        of_group.append(f"{group.pair}: {reason}")

    return AcceptedComparison(
        skill=group.pair.skill,
        model=group.pair.subject.model,
        agent=group.pair.subject.agent,
        noun=group.noun,
        standings={case.test.case: case.standing for case in cases},
        regressed=tuple(case.pair for case in regressed),
        since=since,
        case_reasons=tuple(of_cases),
        group_reasons=tuple(of_group),
        notes=_list(others, "better", f"{group.pair}: better than accepted"),
        warnings=_list(
            others, "could be chance", f"{group.pair}: below accepted; could be chance"
        ),
    )


def _list(cases: Sequence[Compared], kind: StandingKind, title: str) -> tuple[str, ...]:
    words = [case.words for case in cases if case.standing.kind == kind]
    if not words:
        return ()
    return (f"{title}: {first_few(words, MAX_NAMES, '; ')}.",)
