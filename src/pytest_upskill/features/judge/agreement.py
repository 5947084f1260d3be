"""Answers that people labelled, and how well a judge agrees with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from statistics import fmean
from typing import Final

from ..._util.files import read_file, reason_of
from ..._util.json_forms import FormError, Strict, form_of, read_form
from ..._util.texts import counted, one_line
from ...checks.judging import JUDGE, Rulings
from ...errors import InputError, shown
from ...stats import Interval, Ruled, corrected_rate, kappa_of, wilson
from ...trials.records import Record

_EXAMPLE: Final = (
    'One per line: {"question": "…", "answer": "…", "judge": "what a good answer does",'
    ' "passed": true}.'
)


class LabelledForm(Strict):
    """One answer with a label for each criterion of the rubric."""

    question: str
    answer: str
    judge: str | list[str]
    passed: bool | list[bool]


@dataclass(frozen=True)
class Labelled:
    """An answer, the criteria of its rubric, and whether people passed each of them."""

    place: str
    question: str
    answer: str
    texts: tuple[str, ...]
    passed: tuple[bool, ...]


@dataclass(frozen=True)
class Agreement:
    """How well a judge and people agree; None is not defined."""

    labels: int
    answers: int  # the sample: labels of one answer are not independent
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    votes_agree: float | None  # all of them, on a label
    votes_agree_low: float | None
    votes_agree_high: float | None
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None
    false_passes: int
    failed_by_people: int
    false_fails: int
    passed_by_people: int
    answers_failed: int  # with a criterion that people failed
    answers_passed: int
    differ: tuple[str, ...]
    no_ruling: tuple[str, ...]

    def corrected(self, passed: Ruled) -> tuple[float, Interval] | None:
        """The share that people would pass of what this judge passed."""
        if not self.passed_by_people or not self.failed_by_people:
            return None
        sensitivity = Ruled(
            1 - self.false_fails / self.passed_by_people, self.answers_passed
        )
        specificity = Ruled(
            1 - self.false_passes / self.failed_by_people, self.answers_failed
        )
        return corrected_rate(passed, sensitivity, specificity)


@dataclass(frozen=True)
class JudgedShare:
    """What a judge passed in an arm of a run, as a mean over cases,
    and what people would.
    """

    skill: str
    model: str
    arm: str
    cases: int
    passed: float
    corrected: float | None  # None if the labels don't tell
    corrected_low: float | None
    corrected_high: float | None


def load_labels(file: Path) -> list[Labelled]:
    """The examples in a file, or an error with its place."""
    try:
        text = read_file(file).decode("utf-8")
    except OSError as error:
        raise InputError(file, reason_of(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            file, f"not UTF-8 (byte {error.start})", "Save it as UTF-8."
        ) from None
    examples = [
        _labelled(f"{shown(file)}:{number}", line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not examples:
        raise InputError(file, "no examples", _EXAMPLE)
    return examples


def _labelled(place: str, line: str) -> Labelled:
    try:
        form: LabelledForm = read_form(form_of(LabelledForm), json.loads(line))
    except (ValueError, RecursionError):
        raise InputError(place, "invalid JSON", _EXAMPLE) from None
    except FormError as error:
        raise InputError(place, str(error), _EXAMPLE) from None
    texts = [form.judge] if isinstance(form.judge, str) else form.judge
    passed = [form.passed] if isinstance(form.passed, bool) else form.passed
    if not texts or len(texts) != len(passed):
        problem = f"{counted(len(texts), 'text')} and {counted(len(passed), 'label')}"
        raise InputError(place, problem, "Give one label for each text of the rubric.")
    return Labelled(place, form.question, form.answer, tuple(texts), tuple(passed))


def compared(examples: Sequence[Labelled], rulings: Sequence[Rulings]) -> Agreement:
    """The numbers of the agreement, and every label where judge and people differ."""
    people: list[bool] = []
    judged: list[bool] = []
    differ: list[str] = []
    silent: list[str] = []
    with_label: dict[bool, set[str]] = {True: set(), False: set()}
    split = 0
    for example, ruling in zip(examples, rulings, strict=True):
        if ruling.problem:
            silent.append(f"{example.place}: {ruling.problem}")
            continue
        for text, label in zip(example.texts, example.passed, strict=True):
            passed, reason = ruling.by_text[text]
            people.append(label)
            with_label[label].add(example.place)
            split += text in ruling.split
            judged.append(passed)
            if passed != label:
                differ.append(_difference(example.place, reason, passed=passed))
    agreed = sum(map(eq, people, judged)) / len(people) if people else None
    answers = len(with_label[True] | with_label[False])
    low, high = (None, None) if agreed is None else wilson(agreed, answers)
    alike = 1 - split / len(people) if people else None
    votes_low, votes_high = (None, None) if alike is None else wilson(alike, answers)
    return Agreement(
        labels=len(people),
        answers=answers,
        agreement=agreed,
        agreement_low=low,
        agreement_high=high,
        votes_agree=alike,
        votes_agree_low=votes_low,
        votes_agree_high=votes_high,
        kappa=kappa_of(agreed, people, judged),
        kappa_low=kappa_of(low, people, judged),
        kappa_high=kappa_of(high, people, judged),
        false_passes=_false(judged, people),
        failed_by_people=people.count(False),
        false_fails=_false(people, judged),
        passed_by_people=people.count(True),
        answers_failed=len(with_label[False]),
        answers_passed=len(with_label[True]),
        differ=tuple(differ),
        no_ruling=tuple(silent),
    )


def _difference(place: str, reason: str, *, passed: bool) -> str:
    kind = "false pass" if passed else "false fail"
    return f"{place}: {kind}: {one_line(reason, 300)}"


def _false(claims: Sequence[bool], truths: Sequence[bool]) -> int:
    return sum(claim and not truth for claim, truth in zip(claims, truths, strict=True))


def judged_shares(records: Sequence[Record], labels: Agreement) -> list[JudgedShare]:
    """Of each arm of a skill on a model that has criteria for a judge."""
    by_arm: dict[tuple[str, str, str], dict[str, list[bool]]] = {}
    for record in records:
        grades = [grade.passed for grade in record.checks if grade.check == JUDGE.name]
        if grades and record.outcome != "errored":
            cases = by_arm.setdefault((record.skill, record.label, record.arm), {})
            cases.setdefault(record.case, []).extend(grades)
    shares = []
    for arm, cases in by_arm.items():
        passed = fmean(map(fmean, cases.values()))
        corrected = labels.corrected(Ruled(passed, len(cases)))
        rate, (low, high) = corrected or (None, (None, None))
        shares.append(JudgedShare(*arm, len(cases), passed, rate, low, high))
    return shares
