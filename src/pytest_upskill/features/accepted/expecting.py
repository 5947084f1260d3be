"""What each case is expected to reach, and accepted results without a test."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..._util import grouped
from ...errors import InputError
from ...plugin.run import Run
from ...results.run import RunResults
from ...skills.kinds import CaseKind, case_kinds, kind_of_id
from ...trials.arm import SKILL
from ...trials.plan import (
    FAILURES_OF_A_REGRESSION,
    Expectation,
    PlannedCase,
    Unmatched,
    Why,
)
from ...trials.subject import ORACLE, SkillOnSubject
from .file import CaseResult, ModelResults, is_in_python, read_results


def expect(test: PlannedCase) -> PlannedCase:
    """With its accepted result, and extra runs if it passed in all accepted ones."""
    accepted = read_results(Path(test.folder)).get(test.label)
    if not accepted or test.agent == ORACLE:
        return test
    result = accepted.find(test.case, test.digest)
    if not result:
        return replace(test, new=True)

    extra_trials = []
    if test.compared and result.passes == result.runs:
        last = [trial for trial in test.trials if trial.arm == SKILL][-1]
        for run in range(last.run + 1, FAILURES_OF_A_REGRESSION + 1):
            question = replace(last.question, run=run)
            extra_trials.append(replace(last, run=run, question=question, extra=True))
    expected = Expectation(
        result.count,
        accepted.date,
        version=accepted.agent_version,
        baseline=result.baseline,
        model_id=accepted.model_id,
        setup=result.setup,
    )
    return replace(test, expected=expected, extra_trials=tuple(extra_trials))


# Accepted results that no test is compared with.


class _Place(NamedTuple):
    """Where a skill on a model has accepted results, and its cases in a file."""

    folder: Path
    # Why a case has no test, by name: of other models, or broken
    names: Mapping[str, Why | None] | None = None
    of: Mapping[str, int] = MappingProxyType({})  # by what they are counted as

    def find_kind(self, name: str) -> CaseKind:
        """The kind of an accepted case; where none of its kind is left, another
        tells.
        """
        kind = kind_of_id(name)
        left = [other for other in case_kinds().values() if self.of.get(other.noun)]
        return kind if self.of.get(kind.noun) or not left else left[0]


class Present(NamedTuple):
    """A test of a skill that the run collected."""

    case: PlannedCase
    why: Why | None  # it is not compared
    selected: bool


def find_unmatched(run: Run, tests: Iterable[Present]) -> Iterator[Unmatched]:
    places = _find_places(run)
    by_pair = grouped(tests, lambda test: test.case.pair)
    for pair, of_pair in by_pair.items():
        places.setdefault(pair, _Place(Path(of_pair[0].case.folder)))
    for pair, place in places.items():
        accepted = _read_if_good(place.folder).get(pair.subject.label)
        present = {test.case.case: test for test in by_pair.get(pair, ())}
        for name, result in accepted.cases.items() if accepted else ():
            why = _find_why(name, result, present, place)
            if accepted and why:
                kind = place.find_kind(name)
                yield Unmatched(
                    pair.skill,
                    pair.subject.model,
                    name,
                    result.count,
                    accepted.date,
                    why,
                    of=place.of.get(kind.noun, 0),
                    folder=str(place.folder),
                    agent=pair.subject.agent,
                    kind=kind,
                )


def _read_if_good(folder: Path) -> Mapping[str, ModelResults]:
    """The accepted results; none if they can't be read, which is an error elsewhere."""
    try:
        return read_results(folder)
    except InputError:
        return {}


def _find_places(run: Run) -> dict[SkillOnSubject, _Place]:
    places = {}
    for label, subject in run.subjects.by_label.items():
        for source in run.selected.without_cases:
            places[SkillOnSubject(source.label, subject)] = _Place(source.folder, {})
        for file in run.files:
            names: dict[str, Why | None] = dict.fromkeys(file.siblings)
            for case in file.own_cases:
                is_left_out = file.tested and file.tested.fits(case, label)
                names[case.id] = None if is_left_out else "for other models"
            of: Mapping[str, int] = file.runnable.get(label, {})
            place = _Place(file.source.folder, names if file.siblings else None, of)
            places.setdefault(SkillOnSubject(file.source.label, subject), place)
    return places


def _find_why(
    name: str, result: CaseResult, tests: Mapping[str, Present], place: _Place
) -> Why | None:
    """Why an accepted result is not compared; None if it is, or nobody knows."""
    if not is_in_python(name):
        # A case that has another id now is the same case.
        for test in tests.values():
            if test.case.digest == result.case_digest and not test.why:
                return None
        if name not in tests and place.names is not None:
            return place.names.get(name, "gone")

    if name not in tests or not tests[name].selected:
        return None
    why = tests[name].why
    if why == "marked xfail" and not result.passes:
        return None
    changed = tests[name].case.digest != result.case_digest
    return "changed" if changed and not why else why


def find_skipped(results: RunResults) -> Iterator[Unmatched]:
    """Those of tests that were skipped as they ran."""
    for test in results.tests:
        if results.reported.get(test.nodeid) not in ("skipped", "xfailed"):
            continue
        accepted = read_results(Path(test.folder)).get(test.label)
        was = accepted.cases.get(test.case) if accepted else None
        if accepted and was and not results.records_of(test):
            yield Unmatched(
                test.skill,
                test.model,
                test.case,
                was.count,
                accepted.date,
                "skipped",
                folder=test.folder,
                agent=test.agent,
            )
