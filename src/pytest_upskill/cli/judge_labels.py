"""Answers that people labelled: JSON lines, or the notes that a page exported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from .._util.files import read_file, reason_of
from .._util.json_forms import FormError, Strict, read_form
from .._util.texts import counted, one_line
from ..checks.judging import JUDGE
from ..errors import InputError, shown

_EXAMPLE: Final = (
    'One per line: {"question": "…", "answer": "…", "judge": "what a good answer does", '
    '"passed": true}.'
)
_EXPORT: Final = "Export the notes again, from the page of the run."


class LabelledForm(Strict):
    """One answer with a label for each criterion of the rubric."""

    question: str
    answer: str
    judge: str | list[str]
    passed: bool | list[bool]


class _Note(BaseModel):
    """Later versions may write more keys."""

    model_config = ConfigDict(extra="ignore", strict=True)

    skill: str
    case: str
    model: str
    note: str = ""


class NoteForm(_Note):
    """What a reader thinks of a case."""

    kind: Literal["note"]


class GradeForm(_Note):
    """A grade of a check, and what it should have been."""

    kind: Literal["grade"]
    arm: str
    run: int
    check: str
    passed: bool  # as the reader sees it
    graded: bool  # as the check did
    agent: bool = False
    criterion: str | None = None
    question: str | None = None
    answer: str | None = None
    cut: bool = False


class NotesForm(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    schema_: Annotated[Literal[1], Field(alias="schema")]
    notes: list[Annotated[NoteForm | GradeForm, Field(discriminator="kind")]]


_LABELLED: Final[TypeAdapter[LabelledForm]] = TypeAdapter(LabelledForm)
_NOTES: Final[TypeAdapter[NotesForm]] = TypeAdapter(NotesForm)


@dataclass(frozen=True)
class Labelled:
    """An answer, the criteria of its rubric, and whether people passed each of them."""

    place: str
    question: str
    answer: str
    texts: tuple[str, ...]
    passed: tuple[bool, ...]


@dataclass(frozen=True)
class Labels:
    """What a judge is measured by, and what it can't be measured by, with the reason."""

    examples: list[Labelled]
    unused: list[str] = field(default_factory=list)
    warning: str = ""


def load_labels(file: Path) -> Labels:
    """The examples in a file, or an error with its place."""
    try:
        text = read_file(file).decode("utf-8")
    except OSError as error:
        raise InputError(file, reason_of(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise InputError(file, f"not UTF-8 (byte {error.start})", "Save it as UTF-8.") from None
    if (notes := _exported(text)) is not None:
        return _from_notes(file, notes)
    examples = [
        _labelled(f"{shown(file)}:{number}", line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not examples:
        raise InputError(file, "no examples", _EXAMPLE)
    return Labels(examples)


def _labelled(place: str, line: str) -> Labelled:
    try:
        form: LabelledForm = read_form(_LABELLED, json.loads(line))
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


def _exported(text: str) -> dict[str, Any] | None:
    """The JSON of a page's notes; None if it is something else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and "notes" in data else None


def _from_notes(file: Path, data: dict[str, Any]) -> Labels:
    """All marked grades of an answer are one example."""
    try:
        form: NotesForm = read_form(_NOTES, data)
    except FormError as error:
        raise InputError(file, str(error), _EXPORT) from None
    labels: dict[tuple[Any, ...], dict[str, bool]] = {}  # of each answer, by criterion
    answers: dict[tuple[Any, ...], tuple[str, str]] = {}
    unused, corrected = list[str](), list[bool]()
    grades = [note for note in form.notes if isinstance(note, GradeForm)]
    for grade in grades:
        trial = (grade.skill, grade.case, grade.model, grade.arm, grade.run)
        if problem := _why_unusable(grade):
            unused.append(f"{_named(trial)}: {problem}")
            continue
        text = grade.criterion or ""
        if labels.setdefault(trial, {}).setdefault(text, grade.passed) != grade.passed:
            unused.append(f"{_named(trial)}: marked as right and as wrong: {one_line(text, 80)!r}")
            continue
        answers[trial] = (grade.question or "", grade.answer or "")
        corrected.append(grade.passed != grade.graded)
    graded = {(grade.skill, grade.case, grade.model) for grade in grades}
    unused += [
        f"{_named((note.skill, note.case, note.model))}: a note without a grade"
        for note in form.notes
        if isinstance(note, NoteForm) and (note.skill, note.case, note.model) not in graded
    ]
    examples = [
        Labelled(_named(trial), *answers[trial], tuple(passed), tuple(passed.values()))
        for trial, passed in labels.items()
    ]
    return Labels(examples, unused, _ONLY_WRONG if corrected and all(corrected) else "")


_ONLY_WRONG: Final = (
    "All labels are grades that were marked as wrong, so the agreement is only about answers that "
    "are hard for a judge. Mark grades that are right, too."
)


def _why_unusable(grade: GradeForm) -> str:
    if grade.check != JUDGE.name:
        return f"the check {one_line(grade.check, 60)} is not a rubric, so no judge decides it"
    if not grade.criterion:
        return "the page has no text of the criterion"
    if grade.agent:
        return "an agent's answer: its judge saw files and steps too, which notes don't have"
    if grade.cut:
        return "the page has only a part of the question or the answer"
    if not grade.question or not (grade.answer or "").strip():
        return "no answer" if grade.question else "no question"
    return ""


def _named(trial: Sequence[Any]) -> str:
    skill, case, model, *arm_and_run = (one_line(str(name), 80) for name in trial)
    suffix = " ({}, run {})".format(*arm_and_run) if arm_and_run else ""
    return f"{skill}: {case} on {model}{suffix}"
