"""The result of generate, refine, describe and cases: the versions,
and what cases say of them.

`Taught` is also the JSON: what is written of it follows from its fields.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import PlainSerializer

from .._util.json_forms import json_values
from .._util.texts import counted, dollars, message_line, one_line
from ..errors import shown
from ..reports.terminal.layout import wrap_all
from ..results.comparison import unit_of
from ..results.contrasts import Contrast, points_words
from ..results.run import RunResults
from ..settings import Score
from ..skills.kinds import CASE
from ..stats import Lift
from .drafts import Draft

Part = Literal["learn", "holdout"]
LEARNING: Final = "learning"
HELD_OUT: Final = "held out"
NEW_CASES: Final = "new"
OLD_CASES: Final = "old"
CURRENT: Final = "current"


def _draft_values(draft: Draft) -> dict[str, Any]:
    return {"description": draft.description, "tokens": draft.tokens}


def _summary_rows(results: RunResults | None) -> list[dict[str, Any]] | None:
    return [json_values(row) for row in results.summary] if results else None


DraftValue = Annotated[Draft, PlainSerializer(_draft_values)]
Rows = Annotated[RunResults | None, PlainSerializer(_summary_rows)]


@dataclass(frozen=True)
class Attempt:
    """A version of a skill, measured on cases; or why it could not be."""

    number: int
    draft: DraftValue
    learning: Rows = None
    held_out: Rows = None
    problem: str | None = None
    is_new: bool = True  # False: the skill as it was before this run
    most_tokens: int | None = None  # that it was asked to have

    @property
    def label(self) -> str:
        return f"attempt {self.number}" if self.is_new else CURRENT

    @property
    def too_long(self) -> bool:
        """The current skill never is: somebody chose its length."""
        return self.is_new and self.draft.tokens > (
            self.most_tokens or self.draft.tokens
        )

    @property
    def all_cases(self) -> RunResults | None:
        """What is known of it, on learning and held-out cases together."""
        if self.learning and self.held_out:
            return joined_results(self.learning, self.held_out)
        return self.learning


def attempt_text(attempt: Attempt) -> str:
    """The report.txt that is kept with a version."""
    tokens, limit = counted(attempt.draft.tokens, "token"), attempt.most_tokens
    lines = [
        f"{attempt.label}: SKILL.md of {tokens}"
        + (f" (limit {limit:,})" if limit else "")
    ]
    if attempt.all_cases:
        for measured in attempt.all_cases.rows:
            word = measured.verdict or "no verdict"
            lines.append(f"{measured.label}: {word}: {measured.sentence}")
        for section in attempt.all_cases.kind_sections:
            lines += section.details
    else:
        lines.append(message_line(attempt.problem or "", 500) or "not measured")
    return "\n".join(lines)


@dataclass(frozen=True)
class AttemptChange:
    """A version less another, or less no skill at all:
    a contrast on a part of the cases.
    """

    attempt: int
    part: str  # learning or held out; new or old, if a task asked to change a skill
    student: str  # empty: the mean over all of them
    contrast: Contrast
    score: Score = "pass"

    @property
    def lift(self) -> Lift | None:
        return self.contrast.lift

    @property
    def words(self) -> str:
        """``+20 points (-12 to +52)``."""
        return (
            points_words(self.lift, unit_of(self.score)) if self.lift else "not known"
        )


@dataclass(frozen=True)
class Taught:
    """The result of generate, refine, describe or cases."""

    name: str
    attempts: tuple[Attempt, ...]
    # The version that the skill is now; the current one if it stays as it is
    chosen: int
    # No teacher saw those held out
    cases: Mapping[str, Part] = field(default_factory=dict)
    stop: str = ""  # why no more versions were written
    changes: tuple[AttemptChange, ...] = ()
    # Exit status 0, if it could be saved; also all answers that it cost
    succeeded: bool = True
    before: Attempt | None = None  # the previous skill, if it is none of the versions
    teacher: Rows = None  # the teacher itself on all cases: baseline, trace and skill
    trace_tokens: int | None = None
    no_signal: tuple[str, ...] = ()  # cases that every student passes without the skill
    sentences: tuple[str, ...] = ()
    folder: Path | None = None  # where it was saved
    kept: Path | None = None  # a copy of the previous skill
    # Why it could not be saved, and where the best version is
    unsaved: str | None = None
    cost: float | None = None  # USD
    seconds: float = 0.0  # since somebody agreed to the cost
    schema: Literal[1] = 1

    @property
    def best(self) -> Attempt:
        return next(
            attempt for attempt in self.attempts if attempt.number == self.chosen
        )

    @property
    def helps(self) -> bool:
        """Whether all cases together show that it helps at least one student."""
        results = self.best.all_cases
        return any(row.verdict == "helps" for row in results.rows) if results else False

    @property
    def status(self) -> int:
        return 0 if self.succeeded and not self.unsaved else 1


def joined_results(learning: RunResults, held_out: RunResults) -> RunResults:
    """The results of both parts of the cases."""
    return replace(
        learning,
        tests=(*learning.tests, *held_out.tests),
        records=(*learning.records, *held_out.records),
        questions={**learning.questions, **held_out.questions},
    )


def report_lines(taught: Taught, width: int) -> list[str]:
    """The table of changes, the sentences, and what was done to the skill."""
    lines = [*_table(taught, width), *wrap_all(taught.sentences, width, rest="")]
    return [*([""] if lines else []), *lines, *_saved_lines(taught)]


def _table(taught: Taught, width: int) -> list[str]:
    """What the best version changes: a row for each student, a column for each part."""
    changes = [change for change in taught.changes if change.student]
    if not changes:
        return []
    parts = {change.part: change.contrast.cases for change in changes}
    learning = taught.best.learning
    noun = learning.tests[0].kind.noun if learning and learning.tests else CASE.noun
    heads = [f"{part} ({counted(cases, noun)})" for part, cases in parts.items()]
    rows: dict[str, list[str]] = {change.student: [] for change in changes}
    for change in changes:
        rows[change.student].append(change.words)
    columns = [
        max(len(head), *(len(cells[number]) for cells in rows.values())) + 3
        for number, head in enumerate(heads)
    ]
    longest = max(len(student) for student in rows) + 2
    first = max(11, min(longest, width - sum(columns) + 3))
    table = [
        ("", heads),
        *((one_line(name, first - 2), cells) for name, cells in rows.items()),
    ]
    return [
        f"{name:<{first}}"
        + "".join(
            f"{cell:<{size}}" for cell, size in zip(cells, columns, strict=True)
        ).rstrip()
        for name, cells in table
    ]


def _saved_lines(taught: Taught) -> Iterator[str]:
    cost = f"   (cost {dollars(taught.cost)})" if taught.cost else ""
    if taught.kept:
        yield f"The previous skill is kept in {shown(taught.kept)}"
    if taught.unsaved:
        yield from f"{taught.unsaved}{cost}".splitlines()
    elif taught.folder:
        path = shown(taught.folder.absolute())
        yield f"Saved to {path if path.startswith('/') else f'./{path}'}{cost}"
    else:
        yield f"The skill is unchanged.{cost}"
