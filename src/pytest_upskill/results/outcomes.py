"""How each test of a run ended, in one word; everything that counts tests counts these.

There are five words, as many as a reader acts on:

- passed
- failed: the run fails for it. A regression is a failure too, with ``regressed`` set.
- accepted: failed, and the run does not fail for it, an xfail of pytest. It was
  accepted as failing, is marked xfail, or could be chance; the reason says which.
- error: not answered, or not graded
- not run: skipped, or never reached

Where pytest ran the test, its own word decides,
so that counts agree with its last line.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from .._util.texts import counted, one_line
from ..trials.plan import PlannedCase
from ..trials.records import Record
from ..trials.subject import ORACLE
from .accepted import case_result
from .oracle_results import oracle_faults
from .regressions import Standing, reaches

Reported = Literal["passed", "failed", "xfailed", "error", "skipped"]  # by pytest
# In pytest's order
OutcomeWord = Literal["failed", "passed", "accepted", "error", "not run"]
OutcomeCounts = Mapping[OutcomeWord, int]

BAD: Final[tuple[OutcomeWord, ...]] = ("failed", "error")
_LONGEST: Final = 300
_MARKED: Final = "marked xfail"
_WORDS: Final[Mapping[Reported, OutcomeWord]] = {
    "passed": "passed",
    "failed": "failed",
    "error": "error",
    "xfailed": "accepted",
    "skipped": "not run",
}


@dataclass(frozen=True)
class CaseOutcome:
    """How a test ended, and why, on one line; empty if it passed."""

    nodeid: str
    outcome: OutcomeWord
    reason: str = ""
    regressed: bool = False  # a failure that had been accepted as passing


def outcome_of(
    test: PlannedCase,
    records: Sequence[Record],
    standing: Standing | None,
    reported: Reported | None = None,
    broken: str = "",
) -> CaseOutcome:
    """``standing`` is that of the test among the others,
    ``broken`` why it could not be asked.
    """
    regressed = standing is not None and standing.kind == "regressed"
    if regressed:
        word: OutcomeWord = "failed"
    elif reported:
        word = _WORDS[reported]
    else:
        word = _by_records(test, records, standing, broken)
    if word in ("passed", "not run"):
        return CaseOutcome(test.nodeid, word)
    told = broken or ("" if test.agent == ORACLE else _told(test, standing))
    reasons = filter(None, [told, "" if broken else "; ".join(missed(records))])
    return CaseOutcome(
        test.nodeid, word, one_line(": ".join(reasons), _LONGEST), regressed
    )


def _by_records(
    test: PlannedCase, records: Sequence[Record], standing: Standing | None, broken: str
) -> OutcomeWord:
    if not records:
        return "error" if broken else "not run"
    if not (result := case_result(records, test.digest)):
        return "error"
    if test.agent == ORACLE:
        return "failed" if oracle_faults(records) else "passed"
    if standing is None:
        return "passed" if reaches(result.count, test.threshold) else "accepted"
    if standing.kind in ("passed", "better"):
        return "passed"
    return "failed" if standing.kind == "failed" else "accepted"


def _told(test: PlannedCase, standing: Standing | None) -> str:
    if standing:
        return standing.reason
    return "" if test.compared else _MARKED


def missed(records: Iterable[Record]) -> list[str]:
    """Why answers with the skill failed, each reason once; or why answers are
    missing.
    """
    records = list(records)
    errors = [record.error or "" for record in records if record.outcome == "errored"]
    if records and records[0].agent == ORACLE:
        return list(dict.fromkeys(errors or oracle_faults(records)))
    grades = [
        grade for record in records if record.arm == "skill" for grade in record.checks
    ]
    wrong = [grade.reason for grade in grades if grade.required and not grade.passed]
    return list(dict.fromkeys(errors or wrong))


def count_outcomes(outcomes: Iterable[CaseOutcome]) -> dict[OutcomeWord, int]:
    """Those that there are, in pytest's order."""
    counts = Counter(outcome.outcome for outcome in outcomes)
    return {word: counts[word] for word in get_args(OutcomeWord) if counts[word]}


def count_words(counts: OutcomeCounts, *, every: bool = False) -> str:
    """``18 failed, 8 accepted, 1 error``: what did not pass; else, or with ``every``,
    what did.
    """
    failed = {word: number for word, number in counts.items() if word != "passed"}
    listed = counts if every else failed or counts
    return ", ".join(
        counted(number, word) if word == "error" else f"{number:,} {word}"
        for word, number in listed.items()
    )


def failure_words(counts: OutcomeCounts, failed: int | None = None) -> list[str]:
    """The same on one line, if tests failed; ``failed`` counts those
    of others than skills, too.
    """
    own = sum(counts.get(word, 0) for word in BAD)
    others = max(0, (failed or 0) - own)
    lines = [count_words(counts)] if own else []
    return [*lines, *([f"{counted(others, 'other test')} failed"] if others else [])]
