"""Why answers are missing: the same error of many trials is one cause, told once with a
count.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from .._util.texts import counted, one_line
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.written_calls import ADVICE, PROBLEM

BUDGET_ENDED: Final = "the budget ended the run"
_MAX_CAUSES: Final = 3
_MAX_LENGTH: Final = 500  # of what is shown
_MAX_COMPARED: Final = 2000  # characters

# What differs from call to call while the cause is the same.
_BUDGET: Final = re.compile(
    r"(?:budget reached|this (?:call|trial) could exceed the budget) \([^)]*\)"
)
_ATTEMPTS: Final = re.compile(r" \(\d+ attempts?\)")
_REQUEST: Final = re.compile(
    r"\brequest[ _-]?id\W{1,4}[\w-]+"
    r"|\b(?=[\w-]{0,200}\d)(?:req|request|msg|chatcmpl|resp|trace)[_-][\w-]+"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,40}\b"
    r"|\b(?=[a-z]{0,40}\d)[0-9a-f]{12,}\b",
    re.IGNORECASE,
)
# A number by itself, perhaps with a unit: an amount, a port, a time. Not a part of a
# name or of an address, and not a status or code, by which errors are told apart. The
# port of a server is a part of its address, unless it is one that systems choose.
_NUMBER: Final = re.compile(
    r"://(?:\[[^\]\s]{1,60}\]|[^\s/:]{1,300}):(?:[12]?\d{1,4}|3[01]\d{3})(?!\d)"
    r"|\b(?:HTTP|status|code|errno|error|signal)[ :=]{1,2}\d{1,5}(?![\d,.]*\d)"
    r"|(?P<number>(?<![\w./-])<?\$?\d[\d,.]*(?! from )"
    r"(?:(?: ?(?:ms|s|min|h|seconds?|minutes?))?(?![\w-])))",
    re.IGNORECASE,
)


def same_cause(reason: str) -> str:
    """What all messages of a cause have in common, whatever sums, ports, ids or tries
    they name.
    """
    text = _BUDGET.sub("budget", reason[:_MAX_COMPARED])
    text = _ATTEMPTS.sub("", text)
    text = _REQUEST.sub("#", text)
    return _NUMBER.sub(lambda match: "#" if match["number"] else match[0], text)


@dataclass
class Cause:
    """Why answers are missing, in the words of the first; ``tests`` are those that it
    concerns.
    """

    reason: str  # without the name of the model
    # That it begins with, in order
    models: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    subjects: set[Subject] = field(default_factory=set)
    answers: int = 0
    trials: int = 0  # with tools, of the same agents and models

    @property
    def text(self) -> str:
        return ": ".join(filter(None, [", ".join(self.models), self.reason]))

    @property
    def sentence(self) -> str:
        """``20 answers are missing in 10 tests: m: can't connect to …``"""
        if self.reason.startswith(PROBLEM):
            models = one_line(", ".join(self.models), _MAX_LENGTH)
            share = f"in {self.answers:,} of {counted(self.trials, 'trial')}"
            return f"{models}: {PROBLEM} {share}. {ADVICE}."

        missing = "1 answer is missing"
        if self.answers > 1:
            tests = counted(len(self.tests), "test")
            missing = f"{self.answers:,} answers are missing in {tests}"
        text = one_line(self.text, _MAX_LENGTH)
        end = "" if text.endswith((".", "?")) else "."
        return f"{missing}: {text}{end}"


def find_causes(records: Iterable[tuple[str, Record]]) -> list[Cause]:
    """The causes of errors, in order; each record comes with its test."""
    causes: dict[str, Cause] = {}
    trials = Counter[Subject]()
    for test, record in records:
        trials[record.subject] += bool(record.activity or record.error)
        if record.error is None:
            continue

        reason = record.error.removeprefix(f"{record.model}: ")
        cause = causes.setdefault(same_cause(reason), Cause(reason))
        if reason != record.error:
            cause.models[record.model] = None
        cause.tests[test] = None
        cause.subjects.add(record.subject)
        cause.answers += 1

    for cause in causes.values():
        cause.trials = sum(trials[subject] for subject in cause.subjects)
    return list(causes.values())


def cause_lines(causes: Sequence[Cause]) -> list[str]:
    """A sentence for each of the causes that most tests have."""
    ranked = sorted(causes, key=lambda cause: -len(cause.tests))
    sentences = [cause.sentence for cause in ranked[:_MAX_CAUSES]]
    if hidden := ranked[_MAX_CAUSES:]:
        answers = sum(cause.answers for cause in hidden)
        others = counted(len(hidden), "other reason")
        sentences.append(f"{answers:,} more for {others}.")
    return sentences


def budget_words(done: int, over_budget: int, noun: str = "case") -> str:
    """``the budget ended the run after 6 of 10 cases``."""
    if not over_budget:
        return BUDGET_ENDED
    return f"{BUDGET_ENDED} after {done:,} of {counted(done + over_budget, noun)}"
