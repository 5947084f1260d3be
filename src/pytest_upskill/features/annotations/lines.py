"""Annotations of GitHub Actions: lines of a log that are shown beside the lines of a
file.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..._util.texts import counted, harmless, one_line
from ...results.causes import cause_lines
from ...results.run import RunResults

MAX_ERRORS: Final = 10  # that GitHub shows of a step
_MAX_TEXTS: Final = 5  # at one line of a file: a case may fail on many models
_MAX_TEXT_LENGTH: Final = 500

Place = tuple[str, int]  # a file, relative to the repository, and a line


def annotations(
    results: RunResults,
    moved: Callable[[str], str] = str,
    failed_at: Mapping[str, Place] | None = None,
) -> list[str]:
    """An error for each line with a case that failed, regressions first, then for gates
    and missing answers.

    ``moved`` makes the path of a file relative to the repository, ``failed_at`` is
    where the tests are that failed.
    """
    failed_at = failed_at or {}
    regressed: dict[Place, list[str]] = {}
    failed: dict[Place, list[str]] = {}
    for test in results.failed:
        outcome = results.outcome_of(test)
        # Else a dead server would fill all annotations with one text.
        if outcome.outcome != "error":
            lines = regressed if outcome.regressed else failed
            text = f"{test.pair}: {test.case}: {outcome.reason}"
            lines.setdefault((test.file, test.line), []).append(text)
    for nodeid, reason in results.broken.items():
        place = failed_at.get(nodeid, (nodeid.partition("::")[0], 1))
        failed.setdefault(place, []).append(reason)

    errors = []
    for title, lines in (("skill regression", regressed), ("skill failed", failed)):
        for place, texts in lines.items():
            errors.append(_error(title, texts, place=place, moved=moved))
    for reason in _other_reasons(results):
        errors.append(_error("skills", [reason]))

    if len(errors) <= MAX_ERRORS:
        return errors
    more = counted(len(errors) - MAX_ERRORS, "more error")
    notice = f"::notice title=skills::{more}: see the summary of the job"
    return [*errors[:MAX_ERRORS], notice]


def _other_reasons(results: RunResults) -> list[str]:
    """Why the run fails, besides its cases."""
    of_cases = set(results.not_tested)
    for comparison in results.comparisons:
        of_cases.update(comparison.case_reasons)

    reasons = [reason for reason in results.gate.reasons if reason not in of_cases]
    return reasons + cause_lines(results.causes)


def _error(
    title: str,
    texts: Sequence[str],
    *,
    place: Place | None = None,
    moved: Callable[[str], str] = str,
) -> str:
    lines = [one_line(text, _MAX_TEXT_LENGTH) for text in texts[:_MAX_TEXTS]]
    if len(texts) > _MAX_TEXTS:
        lines.append(f"and {len(texts) - _MAX_TEXTS:,} more")
    position = ""
    if place:
        file, line = place
        position = f"file={_escape_value(harmless(moved(file)))},line={line},"
    text = _escape("\n".join(lines))
    return f"::error {position}title={title}::{text}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_value(text: str) -> str:
    """The value of a property, where more signs separate."""
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
