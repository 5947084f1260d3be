"""The tables of a run: one per skill, a matrix of many skills, and the lines of ``-q``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from ..._util.texts import harmless, percent, points
from ...results.verdict import Verdict
from ..measured import Measured
from ..numbers import CHANGE, COST, KEEP, LIFT, Number, shown_numbers
from .layout import (
    Look,
    Marks,
    cut,
    cut_middle,
    padded,
    split_name,
    text_width,
    wrapped,
)
from .tables import Cell, Column, Table, first_that_fits

Pair = tuple[str, str]

_COLOURS: Final = {"helps": "green", "hurts": "red", "incomplete": "red"}


def verdict_style(word: str | None) -> dict[str, bool]:
    return {_COLOURS[word]: True, "bold": True} if word in _COLOURS else {}


def change_style(word: str | None) -> dict[str, bool]:
    """Of the skill since the git ref."""
    colours = {"better": "green", "worse": "red"}
    return {colours[word]: True, "bold": True} if word in colours else {}


def lift_style(word: str | None) -> dict[str, bool]:
    """Painted only if the verdict says that the lift is shown: a lift alone may be chance."""
    return verdict_style(word) if word != "incomplete" else {}


# One skill: a row for each model.


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    gap: str = ""  # around an arrow
    between: str = "  "  # the columns
    stacked: bool = False
    split: bool = False  # values without and with the skill on lines of their own
    dropped: frozenset[str] = frozenset()


_INTERVAL: Final = Column("interval", priority=5)
_FIRST_TO_GO: Final = 40  # columns of lower priority go before the rows are stacked
_ROOMY: Final = [*(_Layout(bar, 60, " ") for bar in (20, 16, 12, 10)), _Layout(10, 36, " ")]
_LESS_ROOMY: Final = [_Layout(10, 36, " "), _Layout(6, 36, " ")]
_TIGHT: Final = [_Layout(6, 24), _Layout(5, 16)]
_STACKED: Final = [
    _Layout(8, 14, stacked=True),
    _Layout(4, 9, stacked=True),
    _Layout(4, 9, stacked=True, split=True),
    _Layout(4, 8, between=" ", stacked=True, split=True),
]


def skill_table(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """The table of one skill, with as many columns as there is room for."""
    rows = [Measured.of(verdict) for verdict in verdicts]
    numbers = shown_numbers(rows, details=True)
    tables = (_table(verdicts, rows, numbers, one, look) for one in _layouts(numbers, rows))
    return first_that_fits(tables, look.width).lines(look)


def _layouts(numbers: Sequence[Number], rows: Sequence[Measured]) -> Iterator[_Layout]:
    """From roomy to narrow."""
    may_go = {_INTERVAL.header: _INTERVAL.priority}
    for number in numbers:
        alarming = number.alarm and any(number.amount(row) for row in rows)
        if number.priority < KEEP and not alarming:
            may_go[number.name] = number.priority
    order = sorted(may_go, key=may_go.__getitem__)
    steps = [frozenset(order[: n + 1]) for n in range(len(order))]
    early = [step for step in steps if max(map(may_go.__getitem__, step)) < _FIRST_TO_GO]
    roomy = [step for step in early if max(map(may_go.__getitem__, step)) <= _INTERVAL.priority]
    yield from _ROOMY
    for groups in (product(roomy, _LESS_ROOMY), product(early, _TIGHT)):
        yield from (replace(layout, dropped=step) for step, layout in groups)
    yield from (replace(layout, dropped=step) for layout, step in product(_STACKED, early))
    yield from (replace(_STACKED[-1], dropped=step) for step in steps[len(early) :])


def _table(
    verdicts: Sequence[Verdict],
    rows: Sequence[Measured],
    numbers: Sequence[Number],
    layout: _Layout,
    look: Look,
) -> Table:
    models = [harmless(verdict.summary.model) for verdict in verdicts]
    columns = [Column("model")]
    cells = [[Cell("\n".join(split_name(model, layout.name)))] for model in models]
    for number in numbers:
        if number.name in layout.dropped:
            continue
        width = layout.bar if layout.stacked else layout.bar + 5
        header = harmless(number.header_of(rows))
        if number.of_ref and text_width(header) > width:  # any name of a ref
            header = number.name if number is CHANGE else cut(header, width, look.marks.cut)
        right = not number.bar and len(number.values(rows[0])) == 1
        columns.append(Column(header, right=right))
        for row, own in zip(rows, cells, strict=True):
            own.append(_cell(number, row, layout, look.marks))
        bounds = [number.bounds_text(row) for row in rows] if number.interval else []
        if any(bounds) and _INTERVAL.header not in layout.dropped:
            columns.append(_INTERVAL)
            for text, own in zip(bounds, cells, strict=True):
                own.append(Cell(text or "-"))
    return Table(columns, cells, layout.between)


def _cell(number: Number, row: Measured, layout: _Layout, marks: Marks) -> Cell:
    if number.bar:
        return Cell(_bar(number.amount(row), layout, marks))
    # Costs are long, so that they are the first to take two lines.
    split = layout.split or (layout.stacked and number is COST)
    arrow = f"{marks.arrow}\n" if split else f"{layout.gap}{marks.arrow}{layout.gap}"
    text = number.text(row, arrow) or "-"
    if more := number.growth_text(row, marks.times) or number.gain_text(row, bounds=False):
        text += f"{chr(10) if layout.stacked else ' '}{more}"
    if number is LIFT:
        return Cell(text, lift_style(row.verdict))
    if number is CHANGE:
        return Cell(text, change_style(row.change_word))
    return Cell(text, {"red": True} if number.alarm and number.amount(row) else {})


def _bar(rate: float | None, layout: _Layout, marks: Marks) -> str:
    if rate is None:
        return "-"
    full = round(rate * layout.bar)
    bar = marks.full * full + marks.empty * (layout.bar - full)
    shown = percent(rate).rjust(4)
    return f"{bar}\n{shown.rjust(layout.bar)}" if layout.stacked else f"{bar} {shown}"


# Many skills: rows are skills, columns are models.

_LONGEST_SKILL: Final = 28
_LONGEST_MODEL: Final = (60, 24)  # the second if the models do not fit side by side
_BETWEEN: Final = "  "
_INCOMPLETE: Final = "!"
_BY_CHECKS: Final = "*"


def matrix_lines(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """As many matrices, one below the other, as the models need, and a legend."""
    marks = look.marks
    known = {(verdict.summary.skill, verdict.summary.model): verdict for verdict in verdicts}
    mixed = len({verdict.summary.score for verdict in verdicts}) > 1
    skills = {
        skill: cut_middle(harmless(skill), _LONGEST_SKILL, marks.cut)
        + (_BY_CHECKS if mixed and verdict.summary.score == "checks" else "")
        for (skill, _), verdict in known.items()
    }
    first = max(map(text_width, ("skill", *skills.values())))
    for longest in _LONGEST_MODEL:
        # Like the cells below it, a header ends with a column for the mark.
        heads = {model: cut_middle(harmless(model), longest, marks.cut) + " " for _, model in known}
        widths = {model: text_width(head) for model, head in heads.items()}
        for (_, model), verdict in known.items():
            widths[model] = max(widths[model], _cell_width(verdict, marks))
        groups = list(_groups(widths, look.width - first))
        if len(groups) == 1:
            break
    lines: list[str] = []
    for models in groups:
        head = [padded("skill", first), *(padded(heads[m], widths[m], right=True) for m in models)]
        top = _BETWEEN.join(head).rstrip()
        lines += [*([""] if lines else []), top, marks.rule * text_width(top)]
        for skill, name in skills.items():
            cells = [_matrix_cell(known.get((skill, m)), widths[m], look) for m in models]
            lines.append(_BETWEEN.join([padded(name, first), *cells]).rstrip())
    by_checks = verdicts[0].summary.score == "checks" and not mixed
    what = "Shares of checks" if by_checks else "Pass rates"
    legend = f"{what} in %, without and with the skill, and the lift"
    legend += f"; {_BY_CHECKS} shares of checks" if mixed else ""
    if any(verdict.word == "incomplete" for verdict in verdicts):
        legend += f"; {_INCOMPLETE} is incomplete"
    return [*lines, "", *wrapped(f"{legend}.", look.width, rest="  ")]


def _groups(widths: Mapping[str, int], room: int) -> Iterator[list[str]]:
    """The models in groups that fit the room, at least one in each."""
    group: list[str] = []
    for model in widths:
        taken = sum(len(_BETWEEN) + widths[one] for one in [*group, model])
        if group and taken > room:
            yield group
            group = []
        group.append(model)
    yield group


def _rates(verdict: Verdict, marks: Marks) -> str:
    rates = [verdict.summary.scored("baseline"), verdict.summary.scored("skill")]
    return marks.arrow.join(str(round(100 * rate)) for rate in rates if rate is not None) or "-"


def _cell_width(verdict: Verdict, marks: Marks) -> int:
    lift = verdict.summary.lift
    return text_width(_rates(verdict, marks)) + (len(points(lift)) + 2 if lift is not None else 1)


def _matrix_cell(verdict: Verdict | None, width: int, look: Look) -> str:
    if verdict is None:
        return padded("- ", width, right=True)
    mark = look.paint(_INCOMPLETE, red=True) if verdict.word == "incomplete" else " "
    text = " " * (width - _cell_width(verdict, look.marks)) + _rates(verdict, look.marks)
    if verdict.summary.lift is None:
        return f"{text}{mark}"
    lift, style = points(verdict.summary.lift), lift_style(verdict.word)
    return f"{text} {look.paint(lift, **style) if style else lift}{mark}"
