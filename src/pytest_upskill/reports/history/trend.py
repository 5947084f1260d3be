"""The history on a terminal: a table of runs, and bars with a trend for each skill and model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from tabulate import tabulate

from ..._util.texts import one_line, points
from ..terminal.layout import told_apart
from ..terminal.summary_text import COLOURS, Marks, Paint
from ..terminal.tables import LIFT_COLOURS
from .entries import Entry, Metric, interval_text, money, percent

_COLUMNS: Final = {
    "run": "left",
    "when": "left",
    "commit": "left",
    "skill": "left",
    "model": "left",
    "cases": "right",
    "without": "right",
    "with": "right",
    "lift": "right",
    "tokens": "right",
    "$/1000": "right",
    "verdict": "left",
}
# What is left out where there is little room, first the least important.
_DROPPED: Final = ("cases", "$/1000", "tokens", "commit", "without", "when", "verdict")
_SOME: Final = "* of some of its cases only"
# How long names may be and how many columns may go for that. Names get shorter and never longer
# again, so that less room never shows more of them.
_LAYOUTS: Final = tuple(
    (longest, dropped)
    for longest, most in ((40, 4), (28, 6), (20, 6), (12, 7), (8, 7))
    for dropped in range(most + 1)
)
_STEPS: Final = "▁▂▃▄▅▆▇█"
_ASCII_STEPS: Final = "_.-=+*#"
_BARS: Final = (30, 20, 16, 12, 8, 4)  # how long they may be, tried from the longest


@dataclass(frozen=True)
class Look:
    """Where it is shown: how broad it is, what it can show, and the present time there."""

    width: int
    marks: Marks
    paint: Paint
    now: datetime


def table_lines(entries: Sequence[Entry], look: Look) -> list[str]:
    """One line for each entry; what a run has in common is said once."""
    for longest, dropped in _LAYOUTS:
        headers = [header for header in _COLUMNS if header not in _DROPPED[:dropped]]
        lines = _table(entries, headers, longest, look, unpainted)
        broad = max(map(len, lines))
        if broad <= look.width:
            header, *body = _table(entries, headers, longest, look, look.paint)
            note = ["", _SOME] if _is_marked(entries, headers) else []
            return [header, look.marks.rule * broad, *body, *note]
    return lines


def _is_marked(entries: Sequence[Entry], headers: Sequence[str]) -> bool:
    """Where there is no room for the number of cases, a star says that some were left out."""
    return "cases" not in headers and any(entry.row.subset for entry in entries)


def _table(
    entries: Sequence[Entry], headers: Sequence[str], longest: int, look: Look, paint: Paint
) -> list[str]:
    table = [list(headers)]
    before = None
    skills = told_apart({entry.row.skill: 0 for entry in entries}, longest, look.marks.cut)
    models = told_apart({entry.row.model: 0 for entry in entries}, longest, look.marks.cut)
    for entry in entries:
        cells = _cells(entry, look, paint)
        cells |= {"skill": skills[entry.row.skill], "model": models[entry.row.model]}
        if entry.id == before:
            cells |= {"run": "", "when": "", "commit": ""}
        if _is_marked([entry], headers):
            cells["with"] += "*"
        before = entry.id
        table.append([cells[header] for header in headers])
    align = [_COLUMNS[header] for header in headers]
    text = tabulate(table, tablefmt="plain", disable_numparse=True, colalign=align)
    return [line.rstrip() for line in text.splitlines()]


def _cells(entry: Entry, look: Look, paint: Paint) -> dict[str, str]:
    row = entry.row
    lift = "-" if row.lift is None else points(row.lift)
    lift_colour, colour = (known.get(row.verdict or "") for known in (LIFT_COLOURS, COLOURS))
    return {
        "run": entry.short,
        "when": ago(entry.started, look.now),
        "commit": entry.commit_text,
        "cases": f"{row.cases}/{row.of}" if row.subset else str(row.cases),
        "without": "-" if row.baseline_rate is None else percent(row.baseline_rate),
        "with": "-" if row.skill_rate is None else percent(row.skill_rate),
        "lift": paint(lift, **{lift_colour: True}) if lift_colour else lift,
        "tokens": "-" if row.skill_tokens is None else f"{row.skill_tokens:,.0f}",
        "$/1000": "-" if row.skill_cost is None else money(1000 * row.skill_cost),
        "verdict": paint(one_line(row.verdict or "-", 20), **({colour: True} if colour else {})),
    }


def ago(then: datetime, now: datetime) -> str:
    """How long ago, while that says more than a date."""
    since = now - then
    if timedelta() <= since < timedelta(minutes=1):
        return "just now"
    if timedelta() <= since < timedelta(hours=1):
        return f"{since // timedelta(minutes=1)} min ago"
    if timedelta() <= since < timedelta(days=1):
        return f"{since // timedelta(hours=1)} h ago"
    if timedelta() <= since < timedelta(days=7):
        return f"{since // timedelta(days=1)} d ago"
    return then.astimezone(now.tzinfo).strftime("%Y-%m-%d")


def moment(then: datetime, now: datetime) -> str:
    """Date and time where the reader is; of other years the date alone."""
    local = then.astimezone(now.tzinfo)
    return local.strftime("%b %d %H:%M" if local.year == now.year else "%Y-%m-%d")


def by_pair(entries: Sequence[Entry]) -> Mapping[tuple[str, str], list[Entry]]:
    """The entries of each skill and model, oldest first."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.started, entry.id)):
        found.setdefault((entry.row.skill, entry.row.model), []).append(entry)
    return found


def plot_lines(entries: Sequence[Entry], metric: Metric, look: Look) -> list[str]:
    """A block for each skill and model, with a bar for each run, oldest first."""
    groups = by_pair(entries)
    lines: list[str] = []
    for skill, pairs in groupby(sorted(groups), key=lambda pair: pair[0]):
        for _, model in pairs:
            title = f"{one_line(skill, 60)} on {one_line(model, 60)}"
            lines += [look.paint(title, bold=True) + f": {metric.title}"]
            lines += [*_bars(groups[skill, model], metric, look), ""]
    return lines[:-1]


def _bars(entries: Sequence[Entry], metric: Metric, look: Look) -> list[str]:
    values = [metric.value(entry.row) for entry in entries]
    known = [value for value in values if value is not None]
    if not known:
        return ["  not known of any run"]
    top = metric.top or max(known) or 1.0
    low = -top if min(known) < 0 else 0.0
    for bar in _BARS:
        table = [_bar_row(entry, metric, (low, top), bar, look) for entry in entries]
        align = ("left", "left", "left", "left", "right", "left")
        text = tabulate(table, tablefmt="plain", disable_numparse=True, colalign=align)
        lines = [f"  {line}".rstrip() for line in text.splitlines()]
        if max(map(len, lines)) <= look.width:
            break
    # Some of the cases are no measure of all of them.
    whole = [metric.value(entry.row) for entry in entries if not entry.row.subset]
    ends = [value for value in whole if value is not None]
    if len(ends) < 2:
        return lines
    trend = spark(whole[-look.width // 2 :], low, top, look.marks)
    told = f"{metric.text(ends[0])} {look.marks.arrow} {metric.text(ends[-1])}"
    return [*lines, f"  trend  {trend}  {told} ({metric.change(ends[0], ends[-1])})"]


def _bar_row(
    entry: Entry, metric: Metric, scale: tuple[float, float], bar: int, look: Look
) -> list[str]:
    row, value = entry.row, metric.value(entry.row)
    note = f"{row.cases}/{row.of} cases" if row.subset else ""
    return [
        entry.short,
        moment(entry.started, look.now),
        entry.commit_text,
        "" if value is None else _bar(value, scale, bar, look.marks),
        "-" if value is None else metric.text(value),
        " ".join(filter(None, [interval_text(metric, row), note])),
    ]


def _bar(value: float, scale: tuple[float, float], length: int, marks: Marks) -> str:
    """From zero to the value; where some are below zero, that is in the middle."""
    low, top = scale
    zero = round(length * -low / (top - low))
    end = round(length * (min(max(value, low), top) - low) / (top - low))
    first, last = min(zero, end), max(zero, end)
    return marks.empty * first + marks.full * (last - first) + marks.empty * (length - last)


def spark(values: Sequence[float | None], low: float, top: float, marks: Marks) -> str:
    """A character for each value, by its height; a blank for what is not known."""
    steps = _STEPS if marks.full == "█" else _ASCII_STEPS
    heights = [
        None if value is None else (min(max(value, low), top) - low) / (top - low)
        for value in values
    ]
    return "".join(" " if h is None else steps[round(h * (len(steps) - 1))] for h in heights)


def unpainted(text: str, **_: bool) -> str:
    return text
