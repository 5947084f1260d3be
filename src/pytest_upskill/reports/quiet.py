"""The summary of ``-q``: one line per skill and model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..texts import counted, harmless
from ..verdict import Verdict
from .columns import cut_inside
from .marks import Marks
from .tables import LIFT_COLOURS, Cell, Paint, change, column_widths, drawn, interval, lift_cell

COLOURS: Final = {**LIFT_COLOURS, "incomplete": "red"}
_BETWEEN: Final = "  "


@dataclass(frozen=True)
class _Layout:
    name: int  # the most that a name may take
    gap: str = " "
    interval: bool = True
    tokens: bool = True


_LAYOUTS: Final = (
    *(_Layout(name) for name in range(60, 15, -4)),
    *(_Layout(name, gap="") for name in range(24, 11, -2)),
    *(_Layout(name, gap="", interval=False) for name in range(24, 11, -2)),
    *(_Layout(name, gap="", interval=False, tokens=False) for name in range(24, 6, -2)),
)


def quiet_lines(verdicts: Sequence[Verdict], width: int, marks: Marks, paint: Paint) -> list[str]:
    for layout in _LAYOUTS:
        rows = [_row(verdict, layout, marks) for verdict in verdicts]
        table = [[cell for cell, _ in row] for row in rows]
        widths = column_widths(table)
        if sum(widths) + len(_BETWEEN) * (len(widths) - 1) <= width:
            break
    right = [to_right for _, to_right in rows[0]]
    return [line for row in table for line in drawn(row, widths, right, _BETWEEN, paint)]


def _row(verdict: Verdict, layout: _Layout, marks: Marks) -> list[tuple[Cell, bool]]:
    """Each cell, and whether it stands at the right of its column."""
    row, arrow = verdict.summary, f"{layout.gap}{marks.arrow}{layout.gap}"
    lift = lift_cell(verdict)
    likely = interval(verdict) if layout.interval else None
    cells = [
        (Cell(cut_inside(harmless(row.skill), layout.name, marks.cut)), False),
        (Cell(cut_inside(harmless(row.model), layout.name, marks.cut)), False),
        (Cell(change(row.baseline_rate, row.skill_rate, arrow, ".0%")), True),
        (Cell(f"{lift.text} ({likely})" if likely else lift.text, lift.style), False),
    ]
    if layout.tokens:
        tokens = change(row.baseline_tokens, row.skill_tokens, arrow, ",.0f")
        cells.append((Cell(f"{tokens} tokens" if tokens != "-" else tokens), True))
    return [*cells, (_word(verdict), False)]


def _word(verdict: Verdict) -> Cell:
    row, word = verdict.summary, verdict.word or ""
    missing = [counted(row.errored, "error")] if row.errored else []
    missing += [f"{row.not_run:,} not run"] if row.not_run else []
    text = f"{word} ({', '.join(missing)})" if missing else word
    return Cell(text, {COLOURS[word]: True, "bold": True} if word in COLOURS else {})
