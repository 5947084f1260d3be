"""Why answers are missing: the same error of many trials is one cause,
told once with a count.
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

_MOST_CAUSES: Final = 3
_LONGEST: Final = 500  # characters that are shown
_COMPARED: Final = 2000

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
    """What all messages of a cause have in common, whatever sums, ports,
    ids or tries they name.
    """
    text = _ATTEMPTS.sub("", _BUDGET.sub("budget", reason[:_COMPARED]))
    return _NUMBER.sub(
        lambda match: "#" if match["number"] else match[0], _REQUEST.sub("#", text)
    )


@dataclass
class Cause:
    """Why answers are missing, in the words of the first;
    ``tests`` are those that it concerns.
    """

    reason: str  # without the name of the model
    # That it begins with, in order
    models: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    answers: int = 0
    trials: int = 0  # with tools, of the same agents and models

    @property
    def text(self) -> str:
        return (
            f"{', '.join(self.models)}: {self.reason}" if self.models else self.reason
        )

    @property
    def sentence(self) -> str:
        """``20 answers are missing in 10 tests: m: can't connect to …``"""
        if self.reason.startswith(PROBLEM):
            share = f"in {self.answers:,} of {counted(self.trials, 'trial')}"
            return (
                f"{one_line(', '.join(self.models), _LONGEST)}: {PROBLEM} {share}."
                f" {ADVICE}."
            )
        missing = "answer is missing" if self.answers == 1 else "answers are missing"
        of = f" in {counted(len(self.tests), 'test')}" if self.answers > 1 else ""
        text = one_line(self.text, _LONGEST)
        return (
            f"{self.answers:,} {missing}{of}:"
            f" {text}{'' if text.endswith(('.', '?')) else '.'}"
        )


def causes_of(records: Iterable[tuple[str, Record]]) -> list[Cause]:
    """The causes of errors, in order; each record comes with its test."""
    causes: dict[str, Cause] = {}
    subjects: dict[str, set[Subject]] = {}
    trials = Counter[Subject]()
    for test, record in records:
        trials[record.subject] += bool(record.activity or record.error)
        if record.error is None:
            continue
        model, reason = _split(record.error, record)
        cause = causes.setdefault(key := same_cause(reason), Cause(reason))
        subjects.setdefault(key, set()).add(record.subject)
        cause.answers += 1
        cause.models |= {model: None} if model else {}
        cause.tests[test] = None
    for key, cause in causes.items():
        cause.trials = sum(trials[subject] for subject in subjects[key])
    return list(causes.values())


def _split(reason: str, record: Record) -> tuple[str, str]:
    """The model that a reason begins with, and the rest of it."""
    prefix = f"{record.model}: "
    return (
        (record.model, reason[len(prefix) :])
        if reason.startswith(prefix)
        else ("", reason)
    )


def cause_lines(causes: Sequence[Cause]) -> list[str]:
    """A sentence for each of the causes that most tests have."""
    ranked = sorted(causes, key=lambda cause: -len(cause.tests))
    sentences = [cause.sentence for cause in ranked[:_MOST_CAUSES]]
    if hidden := ranked[_MOST_CAUSES:]:
        answers = sum(cause.answers for cause in hidden)
        sentences.append(
            f"{answers:,} more for {counted(len(hidden), 'other reason')}."
        )
    return sentences
