"""Show the steps of a run, a line for each, and its sentences."""

from collections.abc import Callable, Sequence
from typing import Final

from ..._util.texts import harmless, one_line, points
from ...results.row import Row
from ...results.run import RunResults
from .layout import cut, wrap_all

_LEFT: Final = 41  # column of a step's result
_LABEL: Final = 11  # column of the first student
_GAP: Final = "   "
_MAX_WIDTH: Final = 100  # of sentences

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
        self._begun = harmless(step)
        if self._live:
            self._write(self._begun[: self._width - 1])

    def done(self, result: str) -> None:
        """The step and its result."""
        self.text(f"{self._begun + '  ':<{_LEFT}}{result}")

    def row(self, label: str, cells: Sequence[Cell], mark: str = "") -> None:
        """The students' numbers, on one line if they fit."""
        for line in row_lines(label, cells, mark, self._width):
            self.line(line, bold=mark == "best")

    def line(self, text: str, **markup: bool) -> None:
        """A line, which overwrites a step that is shown."""
        over = "\r\x1b[K" if self._live and self._begun else ""
        self._begun = ""
        self._write(f"{over}{self._paint(harmless(text).rstrip(), **markup)}\n")

    def text(self, text: str) -> None:
        """Sentences, on as many lines as they need."""
        width = min(self._width, _MAX_WIDTH)
        for line in wrap_all(harmless(text).split("\n"), width, rest=""):
            self.line(line)

    def drop(self) -> None:
        """Remove a step that is shown."""
        if self._live and self._begun:
            self._write("\r\x1b[K")
        self._begun = ""


def row_lines(label: str, cells: Sequence[Cell], mark: str, width: int) -> list[str]:
    """All on one line, or one below the other with aligned numbers."""
    texts = ["  ".join(cell) for cell in cells]
    end = f"{_GAP}{mark}" if mark else ""
    line = f"{label:<{_LABEL}}{_GAP.join(texts)}{end}"
    if len(line) <= width:
        return [line.rstrip()]

    room = width - _LABEL - 2 - max(len(numbers) for _, numbers in cells)
    names = [cut(name, max(_LABEL, room), "…") for name, _ in cells]
    longest = max(map(len, names))
    lines: list[str] = []
    for name, (_, numbers) in zip(names, cells, strict=True):
        start = "" if lines else label
        lines.append(f"{start:<{_LABEL}}{name:<{longest}}  {numbers}".rstrip())

    if len(lines[-1] + end) <= width:
        lines[-1] += end
    else:
        lines.append(f"{'':<{_LABEL}}{mark}")
    return lines


def as_sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def cells_of(results: RunResults) -> list[Cell]:
    """For each student: without the skill, with it, lift in points;
    of cases or of checks.
    """
    return [(one_line(row.label, 40), _numbers(row)) for row in results.rows]


def _numbers(row: Row) -> str:
    without, with_it = row.scored("baseline"), row.scored("skill")
    if without is None or with_it is None:
        return "not known"
    unit = "" if row.score == "pass" else " of checks"
    lift = f"({points(row.lift or 0.0)})"
    return f"{without:>4.0%} → {with_it:>4.0%}{unit}  {lift:<6}"
