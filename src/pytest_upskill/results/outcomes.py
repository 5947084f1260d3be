"""How each test of a run ended, in one word; everything that counts tests counts these.

There are five words, as many as a reader acts on:

- passed
- failed: the run fails for it. A regression is a failure too, with ``regressed`` set.
- accepted: failed, and the run does not fail for it, an xfail of pytest. It was
  accepted as failing, is marked xfail, or could be chance; the reason says which.
- error: not answered, or not graded
- not run: skipped, or never reached

Where pytest ran the test, its own word decides, so that counts agree with its last
line.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from .._util.texts import counted, one_line
from ..skills.kinds import kinds_by_agent, rules_of
from ..trials.arm import SKILL
from ..trials.plan import Count, PlannedCase
from ..trials.records import Record
from ..trials.trial import Trial
from .standings import Standing

Reported = Literal["passed", "failed", "xfailed", "error", "skipped"]  # by pytest
# In pytest's order
OutcomeWord = Literal["failed", "passed", "accepted", "error", "not run"]
OutcomeCounts = Mapping[OutcomeWord, int]

BAD: Final[tuple[OutcomeWord, ...]] = ("failed", "error")
_MAX_REASON_LENGTH: Final = 300
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


def reaches(count: Count, threshold: float | None) -> bool:
    """Whether enough runs of a case passed."""
    return count.share > 0.5 if threshold is None else count.share >= threshold


def count_passes(records: Iterable[Record], arm: str = SKILL) -> Count | None:
    """The runs of an arm; None if it has none, or any answer is missing."""
    passes = []
    for record in records:
        if record.outcome == "errored":
            return None
        if record.arm == arm:
            passes.append(record.outcome == "passed")
    return Count(sum(passes), len(passes)) if passes else None


def next_trial(test: PlannedCase, records: Iterable[Record]) -> Trial | None:
    """The extra trial that a test needs after these records.

    There is one as long as all runs failed: one pass, or an error, ends it.
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


def find_outcome(
    test: PlannedCase,
    records: Sequence[Record],
    standing: Standing | None,
    *,
    reported: Reported | None = None,
    broken: str = "",
) -> CaseOutcome:
    """``standing`` is that beside an accepted result, ``broken`` why the test could not
    be asked.
    """
    regressed = standing is not None and standing.kind == "regressed"
    word = _find_word(test, records, standing)
    if regressed:
        word = "failed"
    elif reported:
        word = _WORDS[reported]
    elif broken and not records:
        word = "error"
    if word in ("passed", "not run"):
        return CaseOutcome(test.nodeid, word)

    reasons = [broken]
    if not broken:
        reasons = [_describe(test, standing), "; ".join(missed(records))]
    reason = one_line(": ".join(filter(None, reasons)), _MAX_REASON_LENGTH)
    return CaseOutcome(test.nodeid, word, reason, regressed)


def _find_word(
    test: PlannedCase, records: Sequence[Record], standing: Standing | None
) -> OutcomeWord:
    if not records:
        return "not run"
    count = count_passes(records)
    if count is None:
        return "error"
    faults = find_faults(records)
    if faults is not None:
        return "failed" if faults else "passed"
    if standing:
        return "passed" if standing.kind in ("passed", "better") else "accepted"
    if reaches(count, test.threshold):
        return "passed"
    return "failed" if test.compared else "accepted"


def _describe(test: PlannedCase, standing: Standing | None) -> str:
    if standing:
        return standing.reason
    return "" if test.compared or test.kind.agent else "marked xfail"


def find_faults(records: Sequence[Record]) -> list[str] | None:
    """What is wrong with a case that no model was asked; None of any other case."""
    kind = kinds_by_agent().get(records[0].agent) if records else None
    return rules_of(kind).find_faults(records) if kind else None


def missed(records: Sequence[Record]) -> list[str]:
    """Why answers with the skill failed, each reason once; or why answers are
    missing.
    """
    reasons = [record.error or "" for record in records if record.outcome == "errored"]
    if not reasons:
        faults = find_faults(records)
        if faults is not None:
            return faults

        for record in records:
            if record.arm == SKILL:
                reasons += [grade.reason for grade in record.checks if grade.fails]
    return list(dict.fromkeys(reasons))


def count_outcomes(outcomes: Iterable[CaseOutcome]) -> dict[OutcomeWord, int]:
    """Those that there are, in pytest's order."""
    counts = Counter(outcome.outcome for outcome in outcomes)
    return {word: counts[word] for word in get_args(OutcomeWord) if counts[word]}


def count_words(counts: OutcomeCounts, *, every: bool = False) -> str:
    """``18 failed, 8 accepted, 1 error``: what did not pass; else, or with ``every``,
    what did.
    """
    words = []
    only_passed = counts.keys() <= {"passed"}
    for word, number in counts.items():
        if word == "error":
            words.append(counted(number, word))
        elif word != "passed" or every or only_passed:
            words.append(f"{number:,} {word}")
    return ", ".join(words)


def failure_words(counts: OutcomeCounts, failed: int | None = None) -> list[str]:
    """The same on one line, if tests failed; ``failed`` counts those of others than
    skills, too.
    """
    own = sum(counts.get(word, 0) for word in BAD)
    lines = []
    if own:
        lines.append(count_words(counts))
    if failed and failed > own:
        lines.append(f"{counted(failed - own, 'other test')} failed")
    return lines
