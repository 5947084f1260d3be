"""Annotations of GitHub Actions: lines of a log that are shown
beside the lines of a file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..._util import grouped
from ..._util.texts import counted, harmless, one_line
from ...results.accepted import case_result
from ...results.causes import same_cause
from ...results.run import RunResults
from ...trials.plan import PlannedCase
from ...trials.records import Record

MOST: Final = 10  # errors that GitHub shows for a step
_MOST_GATES: Final = 3
_MOST_TEXTS: Final = 5  # of one line of a file: a case may fail on many models
_LONGEST_TEXT: Final = 500

Place = tuple[str, int]  # a file, relative to the repository, and a line

# The worst first: GitHub may not show all.
_REGRESSION: Final = "skill regression"
_BROKEN: Final = "skill broken"
_FAILED: Final = "skill failed"
_UNANSWERED: Final = "skill unanswered"
_ORDER: Final = (_REGRESSION, _BROKEN, _FAILED, _UNANSWERED)


@dataclass(frozen=True)
class _Annotation:
    """What is wrong at a line of a file; ``share`` of the runs passed."""

    title: str
    place: Place
    text: str
    share: float = 0.0

    @property
    def rank(self) -> tuple[int, float]:
        return _ORDER.index(self.title), self.share


def annotations(
    results: RunResults,
    moved: Callable[[str], str] = str,
    failed_at: Mapping[str, Place] | None = None,
) -> list[str]:
    """An error for each case that failed, at its line, the worst first,
    and for failed gates.

    ``moved`` makes the path of a file relative to the repository, ``failed_at`` is
    where the tests are that failed. What GitHub would not show is counted.
    """
    other_reasons = {reason for run in results.comparisons for reason in run.reasons}
    other_reasons |= set(results.not_tested)
    gates = [reason for reason in results.gate.reasons if reason not in other_reasons]
    shown_gates = gates[:_MOST_GATES]
    entries = sorted(
        [*_wholes(results), *_failed(results), *_broken(results, failed_at or {})],
        key=lambda entry: entry.rank,
    )
    lines = _by_line(entries)
    limit = MOST - len(shown_gates)
    written = [_error(*texts, moved) for texts in list(lines.items())[:limit]]
    written += [
        f"::error title=skill gate::{_data(_short(reason))}" for reason in shown_gates
    ]
    hidden = [
        counted(number, word)
        for number, word in (
            (len(lines) - limit, "case"),
            (len(gates) - len(shown_gates), "gate"),
        )
        if number > 0
    ]
    if hidden:
        text = f"{' and '.join(hidden)} more failed: see the summary of the job"
        written.append(f"::notice title=skills::{text}")
    return written


def _by_line(entries: Iterable[_Annotation]) -> dict[Place, list[_Annotation]]:
    """Group by line: a case may fail on several models."""
    return grouped(entries, lambda entry: entry.place)


def _wholes(results: RunResults) -> Iterator[_Annotation]:
    """Skills that got worse as a whole, at the beginning of the file of their cases."""
    for comparison in results.comparisons:
        for reason in comparison.of_whole:
            yield _Annotation(_REGRESSION, (comparison.cases[0].test.file, 1), reason)


def _failed(results: RunResults) -> Iterator[_Annotation]:
    unanswered: dict[str, list[PlannedCase]] = {}
    for test in results.failed:
        records = results.records_of(test)
        standing = results.standing(test)
        result = case_result(records, test.digest)
        if result is None:
            unanswered.setdefault(same_cause(_error_of(records)), []).append(test)
        elif standing and standing.kind == "regressed":
            text = f"{_name(test)}: {standing.reason}{_reasons(records)}"
            yield _Annotation(_REGRESSION, _place(test), text, result.count.share)
        else:
            text = (
                f"{_name(test)}: {result.count}"
                f" passed{_without(records)}{_reasons(records)}"
            )
            yield _Annotation(_FAILED, _place(test), text, result.count.share)
    # Else a dead server or an empty budget would fill all annotations with one text.
    for tests in unanswered.values():
        error = _error_of(results.records_of(tests[0]))
        others = (
            f" (and {counted(len(tests) - 1, 'more test')})" if len(tests) > 1 else ""
        )
        yield _Annotation(
            _UNANSWERED, _place(tests[0]), f"{_name(tests[0])}{others}: {error}"
        )


def _broken(results: RunResults, places: Mapping[str, Place]) -> Iterator[_Annotation]:
    for nodeid, reason in results.broken.items():
        yield _Annotation(
            _BROKEN, places.get(nodeid, (nodeid.partition("::")[0], 1)), reason
        )


def _place(test: PlannedCase) -> Place:
    return test.file, test.line


def _name(test: PlannedCase) -> str:
    return f"{test.pair}: {one_line(test.case, 80)}"


def _error_of(records: Iterable[Record]) -> str:
    errors = (
        record.error
        for record in records
        if record.outcome == "errored" and record.error
    )
    return next(errors, "not answered, or not graded")


def _without(records: Iterable[Record]) -> str:
    """A case that fails only with the skill is the skill's fault."""
    passed = [
        record.outcome == "passed" for record in records if record.arm == "baseline"
    ]
    return f", {sum(passed)} of {len(passed)} without the skill" if any(passed) else ""


def _reasons(records: Iterable[Record]) -> str:
    """Why the first failed run with the skill failed."""
    for record in records:
        if record.arm == "skill" and record.outcome == "failed":
            wrong = [
                f"{grade.label}: {grade.reason}"
                for grade in record.checks
                if not grade.passed
            ]
            return f"; {'; '.join(wrong)}" if wrong else ""
    return ""


def _error(
    place: Place, entries: Sequence[_Annotation], moved: Callable[[str], str]
) -> str:
    file, line = place
    position = f"file={_value(harmless(moved(file)))},line={line}"
    texts = [_short(entry.text) for entry in entries[:_MOST_TEXTS]]
    hidden = len(entries) - len(texts)
    texts += [f"and {hidden:,} more"] if hidden else []
    return (
        "::error"
        f" {position},title={_value(entries[0].title)}::{_data(chr(10).join(texts))}"
    )


def _short(text: str) -> str:
    return one_line(text, _LONGEST_TEXT)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
