"""The trend over commits as one page: no script, nothing fetched, light and dark."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from html import escape
from itertools import groupby
from typing import Final

from ..._util.texts import harmless
from ...results.arm_comparison import unit_of
from ...results.history import KeptRow
from ..history_rows import by_pair, short_commit
from ..numbers import LIFT, Number, shown_numbers
from .markup import Header, resource, shell, table, ticks

_UNKNOWN: Final = "–"
_COLOURS: Final = 6  # further lines start again, with another shape for their points
_WIDTH: Final = 760
_HEIGHT: Final = 300
_LEFT: Final = 64
_RIGHT: Final = 16
_ROOM: Final = _WIDTH - _LEFT - _RIGHT
_TOP: Final = 16
_BOTTOM: Final = 84
_MOST_LABELS: Final = 24


def trend_page(entries: Sequence[KeptRow], metric: Number) -> str:
    """A section for each skill: a drawing, then its runs as a table, newest first."""
    title = f"Skills: {metric.title}"
    parts = [f"<main><h1>{escape(title)}</h1>"]
    if any(metric.bounds_of(entry.row) for entry in entries):
        parts.append("<p>Vertical lines are 95 % intervals. +: uncommitted changes.</p>")
    for skill, group in groupby(
        sorted(entries, key=lambda entry: entry.row.skill), key=lambda entry: entry.row.skill
    ):
        parts.append(_section(skill, list(group), metric))
    return shell(
        title,
        "\n".join([*parts, "</main>"]),
        style=resource("overview.css") + resource("trend.css"),
    )


def _section(skill: str, entries: Sequence[KeptRow], metric: Number) -> str:
    name = harmless(skill)
    models = [model for _, model in by_pair(entries)]
    legend = "".join(
        f'<li><b class="c{number % _COLOURS}">{"●■"[number // _COLOURS % 2]}</b> '
        f"{escape(harmless(model))}</li>"
        for number, model in enumerate(models)
    )
    if any(entry.row.subset for entry in entries):
        legend += "<li><b>○</b> only some of the cases, not part of the line</li>"
    drawing = _drawing(entries, metric, f"{name}: {metric.title}, over runs")
    return "\n".join(
        [
            f'<section class="trend"><h2>{escape(name)}</h2>',
            f'<ul class="models">{legend}</ul>',
            f'<div class="wide" tabindex="0" role="region" aria-label="Trend of {escape(name)}">'
            f"{drawing}</div>"
            if drawing
            else f"<p>Not known of any run: {escape(metric.title)}.</p>",
            f"{_table(name, entries)}</section>",
        ]
    )


def _table(skill: str, entries: Sequence[KeptRow]) -> str:
    numbers = shown_numbers([entry.row for entry in entries], details=False)
    headers: list[Header] = [(name, "") for name in ("run", "when (UTC)", "commit", "model")]
    headers += [("cases", "num"), *((number.header, "num") for number in numbers), ("verdict", "")]
    newest = sorted(entries, key=lambda entry: (entry.run.head.started, entry.run.id), reverse=True)
    rows = [(run, cells) for run, *cells in (_cells(entry, numbers) for entry in newest)]
    return table("numbers", f"Runs of {skill}", headers, rows)


def _cells(entry: KeptRow, numbers: Sequence[Number]) -> list[str]:
    row = entry.row
    return [
        f"<code>{escape(entry.run.short)}</code>",
        f"{entry.run.head.started.astimezone(UTC):%Y-%m-%d %H:%M}",
        f"<code>{escape(short_commit(entry.run.head.commit))}</code>",
        escape(harmless(row.label)),
        f"{row.cases} of {row.all_cases}" if row.subset else str(row.cases),
        *(escape(_cell(number, entry)) for number in numbers),
        escape(harmless(row.verdict or _UNKNOWN)),
    ]


def _cell(number: Number, entry: KeptRow) -> str:
    bounds = number.bounds_text(entry.row) if number.interval_priority else None
    text = number.skill_text(entry.row) or _UNKNOWN
    text += unit_of(entry.row.score) if number is LIFT else ""
    return f"{text} ({bounds})" if bounds else text


# The drawing: a line for each model, with intervals.


@dataclass(frozen=True)
class _Scale:
    """From runs and values to places in the drawing."""

    runs: dict[str, int]  # the order of the runs, by id
    low: float
    high: float

    def x(self, entry: KeptRow) -> float:
        return round(_LEFT + _ROOM * (self.runs[entry.run.id] + 0.5) / len(self.runs), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP), 1)


def _drawing(entries: Sequence[KeptRow], metric: Number, title: str) -> str:
    """The drawing of one skill; empty if the metric is not known of any run."""
    lines = {model: runs for (_, model), runs in by_pair(entries).items()}
    values = [value for entry in entries if (value := metric.amount(entry.row)) is not None]
    if not values:
        return ""
    bounds = [bound for entry in entries for bound in metric.bounds_of(entry.row) or ()]
    order = sorted(entries, key=lambda entry: (entry.run.head.started, entry.run.id))
    ids = list(dict.fromkeys(entry.run.id for entry in order))
    low, high = min(0.0, *values, *bounds), max(metric.unit.top or 0.0, *values, *bounds)
    scale = _Scale({run: number for number, run in enumerate(ids)}, low, high or 1.0)
    parts = [*_axis(scale, metric), *_labels(order, scale)]
    for number, runs in enumerate(lines.values()):
        # A few pixels apart, so that the intervals of models do not hide each other.
        aside = (number - (len(lines) - 1) / 2) * min(4, _ROOM / len(ids) / 2 / len(lines))
        parts += _line(runs, metric, scale, number, aside)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _axis(scale: _Scale, metric: Number) -> list[str]:
    parts = []
    for value in ticks(scale.low, scale.high):
        y, kind = scale.y(value), "zero" if value == 0 else "grid"
        parts.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        )
        text = escape(metric.unit.text(value))
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}">{text}</text>')
    return parts


def _labels(entries: Sequence[KeptRow], scale: _Scale) -> list[str]:
    """Commits below the axis; if there are many, not all of them."""
    every = -(-len(scale.runs) // _MOST_LABELS)
    once = {entry.run.id: entry for entry in entries}
    parts = []
    for number, entry in enumerate(once.values()):
        if number % every == 0:
            x, y = scale.x(entry), _HEIGHT - _BOTTOM + 16
            head = entry.run.head
            time_text = f"{head.started.astimezone(UTC):%m-%d %H:%M}"
            text = escape(short_commit(head.commit) if head.commit else time_text)
            turn = f"rotate(-50 {x} {y})"
            parts.append(f'<text class="label" x="{x}" y="{y}" transform="{turn}">{text}</text>')
    return parts


def _line(
    entries: Sequence[KeptRow], metric: Number, scale: _Scale, number: int, aside: float
) -> list[str]:
    points = [(e, value) for e in entries if (value := metric.amount(e.row)) is not None]
    places = [(round(scale.x(e) + aside, 1), scale.y(value)) for e, value in points]
    # A run of some cases says little about all of them, so it is not part of the line.
    on_line = [place for (e, _), place in zip(points, places, strict=True) if not e.row.subset]
    path = " ".join(f"{x},{y}" for x, y in on_line)
    parts = [f'<polyline points="{path}"/>'] if on_line else []
    for (entry, value), (x, y) in zip(points, places, strict=True):
        if bounds := metric.bounds_of(entry.row):
            low, high = map(scale.y, bounds)
            parts.append(f'<line class="interval" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>')
        commit = short_commit(entry.run.head.commit)
        title = f"{harmless(entry.row.label)}, {commit}, {entry.run.short}: "
        title += metric.unit.text(value)
        title += f" ({metric.bounds_text(entry.row)})" if bounds else ""
        title += f", {entry.row.cases} of {entry.row.all_cases} cases" if entry.row.subset else ""
        point = _point(x, y, number, hollow=entry.row.subset)
        parts.append(f"{point}<title>{escape(title)}</title></{_shape(number)}>")
    return [f'<g class="line c{number % _COLOURS}">', *parts, "</g>"]


def _shape(number: int) -> str:
    return "circle" if number // _COLOURS % 2 == 0 else "rect"


def _point(x: float, y: float, number: int, *, hollow: bool) -> str:
    kind = ' class="some"' if hollow else ""
    if _shape(number) == "circle":
        return f'<circle{kind} cx="{x}" cy="{y}" r="4">'
    return f'<rect{kind} x="{x - 4}" y="{y - 4}" width="8" height="8">'
