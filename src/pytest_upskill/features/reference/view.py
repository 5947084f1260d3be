"""How the results of references are shown."""

from collections.abc import Iterator
from typing import Final

from ..._util.texts import harmless, one_line
from ...reports.terminal.closing_lines import Mark, Point
from ...reports.terminal.layout import TerminalLook
from ...reports.terminal.summary_text import MAX_SKILLS
from .results import References, count_sound, is_sound

_MAX_NAME_LENGTH: Final = 60


def block(references: References) -> None:
    """No table: the page has the rows."""


def points(references: References) -> Iterator[Point]:
    """The last lines of a run."""
    for row in references.rows:
        mark: Mark = "good" if is_sound(row) else "bad"
        yield Point(mark, f"{row.skill}: {count_sound(row)}")


def lines(references: References, look: TerminalLook) -> list[str]:
    """A sentence for each skill; of many skills, what is wrong."""
    rows = references.rows
    every = len(rows) <= MAX_SKILLS or look.verbosity > 0
    lines = []
    for row in rows:
        if every or row.verdict or not is_sound(row):
            name = one_line(row.skill, _MAX_NAME_LENGTH)
            lines += look.wrap(f"{name}: {harmless(row.sentence)}")
    return lines
