"""Studies on a terminal: a table and what it means, details, and sentences."""

from collections.abc import Mapping, Sequence
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.contrasts import Study
from ..numbers import KEEP
from ..study_tables import Block, StudyTable, arm_table, study_block
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .tables import Cell, Column, Style, Table, fitted

_STYLES: Final[Mapping[str, Style]] = {  # of the words of contrasts
    "hurts": {"red": True, "bold": True},
    "helps": {"green": True, "bold": True},
    "no loss shown": {"green": True},
    "no change shown": {"light": True},
    "not known": {"light": True},
    "incomplete": {"red": True},
}
_MOST_CONTRASTS: Final = 12  # with -v all
WIDE: Final = 100  # columns, for intervals of tokens
# The length of names, and which columns may be dropped then.
_LAYOUTS: Final = (
    *((length, 0) for length in range(48, 25, -2)),
    *((length, 20) for length in range(48, 17, -2)),
    (12, 30),
)
_PRIORITIES: Final = {
    "runs": 5,
    "cases": 6,
    "tokens": 10,
    "opened": 20,
}


def study_lines(studies: Sequence[Study], look: TerminalLook) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    return [line for study in studies for line in ("", *_study(study, look))]


def _study(study: Study, look: TerminalLook) -> list[str]:
    """A table of contrasts, one of arms, then sentences; with -v all rows."""
    block = study_block(study, most_rows(look), brief=look.width < WIDE)
    arms = arm_table(study, every=look.verbosity > 0)
    return block_lines(block, look, [study_table(arms, look)])


def most_rows(look: TerminalLook) -> int | None:
    return None if look.verbosity > 0 else _MOST_CONTRASTS


def block_lines(
    block: Block,
    look: TerminalLook,
    details: Sequence[list[str]],
    styles: Mapping[str, Style] = _STYLES,
    priorities: Mapping[str, int] = _PRIORITIES,
) -> list[str]:
    """A title, a table and what it means, details, then sentences."""
    title = harmless(f"{one_line(block.title, 200)} · {block.facts}")
    title = title.replace("×", look.marks.times).replace("·", look.marks.dot)
    first, *more = wrapped(title, look.width, rest="  ")
    table = block.table
    notes = [f"{table.folded} (-v shows them)"] if table.folded else []
    if table.rows or table.folded:
        notes.append(block.legend)
    blocks = [
        [look.paint(first, bold=True), *more],
        study_table(table, look, styles, priorities),
        sentences(notes, look),
        *details,
        sentences(block.conclusions, look),
    ]
    marks = look.marks
    return [
        line.replace("…", marks.cut).replace("→", marks.arrow)
        for line in spaced(blocks)
    ]


def study_table(
    table: StudyTable,
    look: TerminalLook,
    styles: Mapping[str, Style] = _STYLES,
    priorities: Mapping[str, int] = _PRIORITIES,
) -> list[str]:
    """With names as long as there is room for."""
    if not table.rows:
        return []
    columns = [
        Column(name, name in ("tokens", "right"), priorities.get(name, KEEP))
        for name in table.headers
    ]
    of_rows = [styles[word] for word in table.words] or [{}] * len(table.rows)

    def layout(longest: int, drop_below: int) -> Table:
        names = distinct_names([row[0] for row in table.rows], longest, look.marks.cut)
        rows = [
            [
                Cell(names[name]),
                *(Cell(harmless(value)) for value in values),
                Cell(last, style),
            ]
            for (name, *values, last), style in zip(table.rows, of_rows, strict=True)
        ]
        return Table(columns, rows, drop_below=drop_below)

    return fitted((layout(*each) for each in _LAYOUTS), look.width).lines(look)


def sentences(lines: Sequence[str], look: TerminalLook) -> list[str]:
    return [
        line
        for sentence in lines
        for line in wrapped(f"{harmless(sentence)}.", look.width, rest="  ")
    ]
