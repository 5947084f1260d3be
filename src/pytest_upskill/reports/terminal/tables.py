"""A table for each skill, with a row per model: as much of it as the terminal has room for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, zip_longest
from typing import Final

from ..._util.texts import harmless, points, times_as_much
from ...results.summary import Summary
from ...results.verdict import Verdict
from .layout import Marks, broken, cut, padded, width_of

Paint = Callable[..., str]
Style = dict[str, bool]


@dataclass(frozen=True)
class Cell:
    """Text of a table, perhaps of several lines, and how it is painted when there is colour."""

    text: str
    style: Style = field(default_factory=dict)


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    gap: str = ""  # around an arrow
    between: str = "  "  # the columns
    stacked: bool = False
    split: bool = False  # numbers without and with the skill on lines of their own
    left_out: frozenset[str] = frozenset()


LIFT_COLOURS: Final = {"helps": "green", "hurts": "red"}  # by the word of the verdict
_COST: Final = "$/1000"
_PREVIOUS: Final = "previous"  # its header is the ref
_INTERVAL: Final = "interval"
_ALL: Final = (
    *("model", "without", _PREVIOUS, "with", "lift", _INTERVAL),
    *("checks", "tokens", _COST, "seconds", "errors"),
)
_RIGHT: Final = ("lift", "checks", "errors")

# What may go where there is no room, the least important first; errors only if there are none.
_LESS: Final = [
    frozenset({_INTERVAL}),
    frozenset({_INTERVAL, "seconds"}),
    frozenset({_INTERVAL, "seconds", "checks"}),
    frozenset({_INTERVAL, "seconds", "checks", "errors"}),
]
_ROOMY: Final = [
    *(_Layout(bar, 60, " ") for bar in (20, 16, 12, 10)),
    _Layout(10, 36, " "),
    *(_Layout(bar, 36, " ", left_out=_LESS[0]) for bar in (10, 6)),
]
_TIGHT: Final = [_Layout(6, 24), _Layout(5, 16)]
_STACKED: Final = [
    _Layout(8, 14, stacked=True),
    _Layout(4, 9, stacked=True),
    _Layout(4, 9, stacked=True, split=True),
    _Layout(4, 8, between=" ", stacked=True, split=True),
]
# From roomy to narrow: the first that fits is taken.
_LAYOUTS: Final = [
    *_ROOMY,
    *(replace(layout, left_out=less) for less, layout in product(_LESS, _TIGHT)),
    *(replace(layout, left_out=less) for layout, less in product(_STACKED, _LESS)),
]


def table_lines(verdicts: Sequence[Verdict], width: int, marks: Marks, paint: Paint) -> list[str]:
    """The table of one skill."""
    for layout in _LAYOUTS:
        headers = _headers(verdicts, layout)
        table = [_header_row(headers, verdicts, layout, marks)]
        for verdict in verdicts:
            cells = _cells(verdict, layout, marks)
            table.append([cells[header] for header in headers])
        widths = column_widths(table)
        broad = sum(widths) + len(layout.between) * (len(widths) - 1)
        if broad <= width:
            break
    right = [header in _RIGHT for header in headers]
    top, *rows = (drawn(row, widths, right, layout.between, paint) for row in table)
    return [*top, marks.rule * broad, *(line for row in rows for line in row)]


def column_widths(table: Sequence[Sequence[Cell]]) -> list[int]:
    return [
        max(width_of(line) for cell in column for line in cell.text.split("\n"))
        for column in zip(*table, strict=True)
    ]


def drawn(
    row: Sequence[Cell], widths: Sequence[int], right: Sequence[bool], between: str, paint: Paint
) -> list[str]:
    """The lines of a row. What is painted are the words, not the blanks around them."""
    lines = []
    for parts in zip_longest(*(cell.text.split("\n") for cell in row), fillvalue=""):
        cells = []
        for part, cell, width, to_right in zip(parts, row, widths, right, strict=True):
            blanks = padded("", width - width_of(part))
            text = paint(part, **cell.style) if part and cell.style else part
            cells.append(blanks + text if to_right else text + blanks)
        lines.append(between.join(cells).rstrip())
    return lines


def _headers(verdicts: Sequence[Verdict], layout: _Layout) -> list[str]:
    rows = [verdict.summary for verdict in verdicts]
    nothing = {
        _COST: not any(row.arm("baseline").cost or row.arm("skill").cost for row in rows),
        _PREVIOUS: not any(row.against for row in rows),
        _INTERVAL: not any(verdict.lift for verdict in verdicts),
    }
    errors = {"errors"} if any(row.errored for row in rows) else set()
    left_out = (layout.left_out - errors) | {name for name, empty in nothing.items() if empty}
    return [header for header in _ALL if header not in left_out]


def _header_row(
    headers: Sequence[str], verdicts: Sequence[Verdict], layout: _Layout, marks: Marks
) -> list[Cell]:
    """The ref of the previous text is cut to what its column takes anyway."""
    ref = next((verdict.summary.against for verdict in verdicts if verdict.summary.against), "")
    broad = layout.bar if layout.stacked else layout.bar + 5
    shown = cut(harmless(ref), broad, marks.cut)
    return [Cell(shown if header == _PREVIOUS else header) for header in headers]


def _cells(verdict: Verdict, layout: _Layout, marks: Marks) -> dict[str, Cell]:
    row = verdict.summary
    apart = f"{marks.arrow}\n"
    arrow = apart if layout.split else f"{layout.gap}{marks.arrow}{layout.gap}"
    texts = {
        "model": "\n".join(broken(harmless(row.model), layout.name)),
        "without": _rate(row.arm("baseline").rate, layout, marks),
        _PREVIOUS: _rate(row.arm("previous").rate, layout, marks),
        "with": _rate(row.arm("skill").rate, layout, marks),
        _INTERVAL: interval(verdict) or "-",
        "checks": checks_text(row) or "-",
        "tokens": _tokens(row, arrow, layout, marks),
        _COST: _cost(row, apart if layout.stacked else arrow),
        "seconds": change(row.arm("baseline").seconds, row.arm("skill").seconds, arrow, ".1f"),
    }
    return {
        **{header: Cell(text) for header, text in texts.items()},
        "lift": lift_cell(verdict),
        "errors": Cell(str(row.errored), {"red": True} if row.errored else {}),
    }


def lift_cell(verdict: Verdict) -> Cell:
    """Painted where the verdict says that it is shown: a lift alone may be chance."""
    lift, colour = verdict.summary.lift, LIFT_COLOURS.get(verdict.word or "")
    text = "-" if lift is None else points(lift)
    return Cell(text, {colour: True, "bold": True} if colour else {})


def interval(verdict: Verdict) -> str | None:
    lift = verdict.lift
    return f"{points(lift.low)} to {points(lift.high)}" if lift else None


def _rate(rate: float | None, layout: _Layout, marks: Marks) -> str:
    if rate is None:
        return "-"
    full = round(rate * layout.bar)
    bar = marks.full * full + marks.empty * (layout.bar - full)
    percent = f"{rate:.0%}".rjust(4)
    return f"{bar}\n{percent.rjust(layout.bar)}" if layout.stacked else f"{bar} {percent}"


def checks_text(row: Summary) -> str | None:
    """Checks that a case passes with the skill, of how many it has, on average."""
    skill = row.arm("skill")
    if not skill.graded:
        return None
    passed, total = (n / skill.graded for n in (skill.checks_passed, skill.checks_total))
    return f"{_short(passed)}/{_short(total)}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _tokens(row: Summary, arrow: str, layout: _Layout, marks: Marks) -> str:
    text = change(row.arm("baseline").tokens, row.arm("skill").tokens, arrow, ",.0f")
    if row.token_change is None:
        return text
    grown = growth(row.token_change, marks)
    return f"{text}{chr(10) if layout.stacked else ' '}{grown}"


def growth(change: float, marks: Marks) -> str:
    times = times_as_much(change)
    return f"{marks.times}{times}" if times else f"{change:+.0%}"


def _cost(row: Summary, arrow: str) -> str:
    """What a thousand answers cost: that of one has too many zeros to be read."""
    costs = (row.arm("baseline").cost, row.arm("skill").cost)
    known = [_dollars(1000 * cost) for cost in costs if cost is not None]
    return "0" if set(known) == {"0"} else arrow.join(known) or "-"


def _dollars(amount: float) -> str:
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount >= 1:
        return f"{amount:.1f}"
    if 0 < amount < 0.001:
        return "<0.001"
    return f"{amount:.2g}"


def change(before: float | None, after: float | None, arrow: str, form: str) -> str:
    """What is known of a number without and with the skill."""
    known = [format(value, form) for value in (before, after) if value is not None]
    return arrow.join(known) or "-"
