"""Studies on a terminal: a table and what it means, details, and sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.contrasts import Study
from ..columns import KEEP, Column
from ..study_tables import Block, StudyTable, arm_table, study_block
from .layout import TerminalLook, spaced
from .tables import table_lines

Styles = Mapping[str, Mapping[str, bool]]  # by the last word of a row
_STYLES: Final[Styles] = {
    "hurts": {"red": True, "bold": True},
    "helps": {"green": True, "bold": True},
    "no loss shown": {"green": True},
    "incomplete": {"red": True},
}
_MAX_CONTRASTS: Final = 12  # with -v all
_PRIORITIES: Final = {"runs": 5, "cases": 6, "tokens": 10, "opened": 20}
_RIGHT: Final = ("tokens", "right", "cases", "runs")


def study_lines(studies: Sequence[Study], look: TerminalLook) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    lines = []
    for study in studies:
        block = study_block(study, max_rows(look))
        arms = arm_table(study, every=look.verbosity > 0)
        lines += ["", *block_lines(block, look, [study_table(arms, look)])]

    return lines


def max_rows(look: TerminalLook) -> int | None:
    return None if look.verbosity > 0 else _MAX_CONTRASTS


def block_lines(
    block: Block,
    look: TerminalLook,
    details: Sequence[list[str]] = (),
    *,
    styles: Styles = _STYLES,
    priorities: Mapping[str, int] = _PRIORITIES,
) -> list[str]:
    """A title, a table and what it means, details, then sentences."""
    title = harmless(f"{one_line(block.title, 200)} · {block.facts}")
    first, *more = look.wrap(title)
    notes = []
    if block.table.folded:
        notes.append(f"{block.table.folded} (-v shows them)")
    if notes or block.table.rows:
        notes.append(block.legend)

    lines = spaced(
        [
            [look.paint(first, bold=True), *more],
            study_table(block.table, look, styles=styles, priorities=priorities),
            sentences(notes, look),
            *details,
            sentences(block.conclusions, look),
        ]
    )
    return [look.show(line) for line in lines]


def study_table(
    table: StudyTable,
    look: TerminalLook,
    *,
    styles: Styles = _STYLES,
    priorities: Mapping[str, int] = _PRIORITIES,
) -> list[str]:
    if not table.rows:
        return []

    columns = []
    for number, header in enumerate(table.headers):
        column = Column(header, priority=priorities.get(header, KEEP))
        is_right = header in _RIGHT
        columns.append(replace(column, right=is_right, is_name=number == 0))

    rows = []
    for name, *values in table.rows:
        cells = [harmless(value) for value in values]
        if table.words:
            cells[-1] = look.paint(cells[-1], **styles.get(values[-1], {}))
        rows.append([name, *cells])

    return table_lines(columns, rows, look)


def sentences(lines: Sequence[str], look: TerminalLook) -> list[str]:
    parts = []
    for sentence in lines:
        parts += look.wrap(f"{harmless(sentence)}.")

    return parts
