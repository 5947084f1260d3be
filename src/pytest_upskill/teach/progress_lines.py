"""Show the steps of a run, a line for each, and its sentences."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from .._util.texts import harmless, one_line, points
from ..results.arm_comparison import unit_of
from ..results.run import RunResults
from ..results.summary import Summary

_LEFT: Final = 41  # column of a step's result
_LABEL: Final = 11  # column of the first student
_GAP: Final = "   "

Cell = tuple[str, str]  # a student's name, and numbers


class ProgressScreen:
    """Writes to a terminal or a pipe; without ``write`` nothing is shown.

    ``live``: the step is shown while it runs, and overwritten by its result.
    """

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        *,
        width: int = 80,
        live: bool = False,
        paint: Callable[..., str] = lambda text, **_: text,
    ) -> None:
        self._write = write or (lambda _: None)
        self._width = width
        self._live = live
        self._paint = paint
        self._begun = ""

    def begin(self, step: str) -> None:
        self.drop()
        self._begun = step
        if self._live:
            self._write(step[: self._width - 1])

    def done(self, result: str) -> None:
        """The step and its result."""
        self.line(f"{self._begun + '  ':<{_LEFT}}{result}")

    def row(self, label: str, cells: Sequence[Cell], mark: str = "") -> None:
        """The students' numbers, on one line if they fit."""
        for line in row_lines(label, cells, mark, self._width):
            self.line(line, bold=mark == "best")

    def line(self, text: str, **markup: bool) -> None:
        """A line, which overwrites a step that is shown."""
        over = "\r\x1b[K" if self._live and self._begun else ""
        self._begun = ""
        self._write(f"{over}{self._paint(harmless(text).rstrip(), **markup)}\n")

    def drop(self) -> None:
        """Remove a step that is shown."""
        if self._live and self._begun:
            self._write("\r\x1b[K")
        self._begun = ""


def row_lines(label: str, cells: Sequence[Cell], mark: str, width: int) -> list[str]:
    """All on one line, or one below the other with aligned numbers."""
    end = f"{_GAP}{mark}" if mark else ""
    line = f"{label:<{_LABEL}}{_GAP.join(map('  '.join, cells))}{end}"
    if len(line) <= width or len(cells) < 2:
        return [line.rstrip()]
    longest = max(len(name) for name, _ in cells)
    lines = [f"{'':<{_LABEL}}{name:<{longest}}  {numbers}" for name, numbers in cells]
    lines[0] = f"{label:<{_LABEL}}{lines[0][_LABEL:]}"
    lines[-1] += end
    return [line.rstrip() for line in lines]


def wrapped(sentences: Iterable[str], width: int) -> list[str]:
    """Sentences as lines, each beginning on its own."""
    lines = list[str]()
    for sentence in sentences:
        lines += textwrap.wrap(sentence, min(width, 100), break_long_words=False)
    return lines


def as_sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def cells_of(results: RunResults) -> list[Cell]:
    """For each student: without the skill, with it, lift in points; of cases or of checks."""
    return [(one_line(row.label, 40), _numbers(row)) for row in results.summaries]


def _numbers(row: Summary) -> str:
    without, with_it = row.scored("baseline"), row.scored("skill")
    if without is None or with_it is None:
        return "not known"
    lift = f"({points(row.lift or 0.0)})"
    return f"{without:>4.0%} → {with_it:>4.0%}{unit_of(row.score)}  {lift:<6}"
