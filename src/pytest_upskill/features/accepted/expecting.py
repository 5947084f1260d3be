"""What tests are expected to reach, and accepted results without a test."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from ...plugin.run import Run, is_skipped, planned_of
from ...results.run import RunResults
from ...skills.kinds import kind_of_id
from ...trials.arm import SKILL
from ...trials.plan import FAILURES_OF_A_REGRESSION, PlannedCase, Unmatched, Why
from ...trials.subject import SkillOnSubject
from .results import Accepted, AcceptedFiles, read_results


def expect(test: PlannedCase, files: AcceptedFiles) -> PlannedCase:
    """With its accepted result, and extra runs if it passed in all accepted ones."""
    expected = files.find(test)
    extra_trials = []
    if test.compared and expected and expected.was.share == 1:
        last = [trial for trial in test.trials if trial.arm == SKILL][-1]
        for run in range(last.run + 1, FAILURES_OF_A_REGRESSION + 1):
            question = replace(last.question, run=run)
            extra_trials.append(replace(last, run=run, question=question, extra=True))
    return replace(test, expected=expected, extra_trials=tuple(extra_trials))


class _Present(NamedTuple):
    """A test that the run collected."""

    test: PlannedCase
    is_selected: bool
    has_skip: bool


class _Place(NamedTuple):
    """Where the results of a skill are, and how many of its cases could be asked."""

    folder: Path
    runnable: Counter[str] | None = None  # by noun; None if nobody knows


def find_unmatched(run: Run, selected: Collection[object]) -> Iterator[Unmatched]:
    """Accepted results that no test is compared with."""
    places = _find_places(run)
    present: dict[SkillOnSubject, list[_Present]] = {}
    for item in run.collected:
        if test := planned_of(item):
            tests = present.setdefault(test.pair, [])
            tests.append(_Present(test, item in selected, is_skipped(item)))
            places.setdefault(test.pair, _Place(Path(test.folder)))

    for pair, place in places.items():
        tests = present.get(pair, [])
        try:
            accepted = read_results(place.folder).get(pair.subject.label, {})
        except InputError:  # the error of a test
            continue
        for digest, result in accepted.items():
            if why := _find_why(digest, result.case, tests, place.runnable):
                yield _make_unmatched(pair, place.folder, result, why)


def _find_places(run: Run) -> dict[SkillOnSubject, _Place]:
    places = {}
    for label, subject in run.subjects.by_label.items():
        for source in run.selected.without_cases:
            pair = SkillOnSubject(source.label, subject)
            places[pair] = _Place(source.folder, Counter())
        for file in run.files:
            pair = SkillOnSubject(file.source.label, subject)
            runnable = file.runnable.get(label) if file.siblings else None
            places.setdefault(pair, _Place(file.source.folder, runnable))
    return places


def _find_why(
    digest: str,
    name: str,
    tests: Sequence[_Present],
    runnable: Counter[str] | None,
) -> Why | None:
    """Why an accepted result is not compared; None if it is, or nobody knows."""
    why: Why | None = "gone"
    noun = kind_of_id(name).noun
    asked = 0
    for test, is_selected, has_skip in tests:
        is_compared = test.compared and not has_skip
        if is_compared and test.digest == digest:
            return None
        if test.case == name:
            why = "changed" if is_compared else "skipped"
            if not is_selected:
                why = None
        if is_selected and not has_skip and test.kind.noun == noun:
            asked += 1

    # A run of some cases says nothing of what it has no test for.
    is_part = runnable is None or "::" in name or asked < runnable[noun]
    return None if why == "gone" and is_part else why


def find_skipped(results: RunResults) -> Iterator[Unmatched]:
    """Accepted results of tests that were skipped as they ran."""
    files = AcceptedFiles()
    for test in results.tests:
        word = results.reported.get(test.nodeid)
        if word in ("skipped", "xfailed") and not results.records_of(test):
            if accepted := files.find(test):
                yield _make_unmatched(test.pair, Path(test.folder), accepted, "skipped")


def _make_unmatched(
    pair: SkillOnSubject, folder: Path, accepted: Accepted, why: Why
) -> Unmatched:
    skill, (agent, model) = pair
    return Unmatched(
        skill, model, accepted.case, accepted.was, why, folder=str(folder), agent=agent
    )
