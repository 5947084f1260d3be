"""The summary of ``-q``: one line per skill and model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..._util.texts import counted
from ...results.verdict import Verdict
from .columns import told_apart
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
    subset: bool = True  # says how many cases were asked, if not all


_DENSER: Final = (
    _Layout(0),
    _Layout(0, gap=""),
    _Layout(0, gap="", interval=False),
    _Layout(0, gap="", interval=False, tokens=False),
    _Layout(0, gap="", interval=False, tokens=False, subset=False),
)
# Names get shorter and never longer again, so that less room never shows more of them. The last
# layout of a length drops what the next shorter one may have again.
_LAYOUTS: Final = (
    *(_Layout(name) for name in range(60, 24, -4)),
    *(replace(layout, name=name) for name in (24, 20, 16) for layout in _DENSER[:3]),
    *(replace(layout, name=name) for name in (12, 8) for layout in _DENSER[1:]),
)


def quiet_lines(
    verdicts: Sequence[Verdict],
    subsets: Mapping[tuple[str, str], str],
    width: int,
    marks: Marks,
    paint: Paint,
) -> list[str]:
    skills = [verdict.summary.skill for verdict in verdicts]
    models = [verdict.summary.model for verdict in verdicts]
    for layout in _LAYOUTS:
        names = [
            told_apart(dict.fromkeys(given), layout.name, marks.cut) for given in (skills, models)
        ]
        rows = [_row(verdict, names, subsets, layout, marks) for verdict in verdicts]
        table = [[cell for cell, _ in row] for row in rows]
        widths = column_widths(table)
        if sum(widths) + len(_BETWEEN) * (len(widths) - 1) <= width:
            break
    right = [to_right for _, to_right in rows[0]]
    return [line for row in table for line in drawn(row, widths, right, _BETWEEN, paint)]


def _row(
    verdict: Verdict,
    names: Sequence[Mapping[str, str]],
    subsets: Mapping[tuple[str, str], str],
    layout: _Layout,
    marks: Marks,
) -> list[tuple[Cell, bool]]:
    """Each cell, and whether it stands at the right of its column."""
    row, arrow = verdict.summary, f"{layout.gap}{marks.arrow}{layout.gap}"
    lift = lift_cell(verdict)
    likely = interval(verdict) if layout.interval else None
    cells = [
        (Cell(names[0][row.skill]), False),
        (Cell(names[1][row.model]), False),
        (Cell(change(row.baseline_rate, row.skill_rate, arrow, ".0%")), True),
        (Cell(f"{lift.text} ({likely})" if likely else lift.text, lift.style), False),
    ]
    if layout.tokens:
        tokens = change(row.baseline_tokens, row.skill_tokens, arrow, ",.0f")
        cells.append((Cell(f"{tokens} tokens" if tokens != "-" else tokens), True))
    subset = subsets.get((row.skill, row.model)) if layout.subset else None
    return [*cells, (_word(verdict, subset), False)]


def _word(verdict: Verdict, subset: str | None) -> Cell:
    row, word = verdict.summary, verdict.word or ""
    missing = [counted(row.errored, "error")] if row.errored else []
    missing += [f"{row.not_run:,} not run"] if row.not_run else []
    missing += [subset] if subset else []
    text = f"{word} ({', '.join(missing)})".lstrip() if missing else word
    return Cell(text, {COLOURS[word]: True, "bold": True} if word in COLOURS else {})
