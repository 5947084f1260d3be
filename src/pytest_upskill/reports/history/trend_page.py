"""How a number changed from run to run, as a drawing: a line for each model, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from html import escape
from itertools import groupby
from math import floor, log10
from typing import Final

from ..._util.texts import harmless, points
from ..html.markup import resource, shell
from .entries import Entry, Metric, interval_text, money, percent
from .trend import by_pair

COLOURS: Final = 6  # lines beyond begin anew, with another shape of their points
_WIDTH: Final = 760
_HEIGHT: Final = 300
_LEFT: Final = 64
_RIGHT: Final = 16
_ROOM: Final = _WIDTH - _LEFT - _RIGHT
_TOP: Final = 16
_BOTTOM: Final = 84
_MOST_LABELS: Final = 24
_STEPS: Final = (1, 2, 5, 10)


@dataclass(frozen=True)
class _Scale:
    """From the runs and the values to places in the drawing."""

    runs: dict[str, int]  # by id, in their order
    low: float
    high: float

    def x(self, entry: Entry) -> float:
        return round(_LEFT + _ROOM * (self.runs[entry.id] + 0.5) / len(self.runs), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP), 1)


def trend_svg(entries: Sequence[Entry], metric: Metric, title: str) -> str:
    """The drawing of one skill; where there is nothing to draw, nothing."""
    lines = {model: own for (_, model), own in by_pair(entries).items()}
    known = [value for entry in entries if (value := metric.value(entry.row)) is not None]
    if not known:
        return ""
    bounds = [bound for e in entries for bound in metric.interval(e.row) if bound is not None]
    order = sorted(entries, key=lambda entry: (entry.started, entry.id))
    ids = list(dict.fromkeys(entry.id for entry in order))
    low, high = min(0.0, *known, *bounds), max(metric.top or 0.0, *known, *bounds)
    scale = _Scale({run: number for number, run in enumerate(ids)}, low, high or 1.0)
    parts = [*_axis(scale, metric), *_labels(order, scale)]
    for number, own in enumerate(lines.values()):
        # A little beside each other, so that the intervals of models can be told apart.
        aside = (number - (len(lines) - 1) / 2) * min(4, _ROOM / len(ids) / 2 / len(lines))
        parts += _line(own, metric, scale, number, aside)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _axis(scale: _Scale, metric: Metric) -> list[str]:
    parts = []
    for value in ticks(scale.low, scale.high):
        y, kind = scale.y(value), "zero" if value == 0 else "grid"
        parts.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        )
        text = escape(metric.text(value))
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}">{text}</text>')
    return parts


def ticks(low: float, high: float) -> list[float]:
    """Some round numbers within."""
    rough = (high - low) / 5
    size = 10 ** floor(log10(rough))
    step = next(size * number for number in _STEPS if size * number >= rough * 0.999)
    first, last = floor(low / step + 0.999), floor(high / step + 0.001)
    return [number * step for number in range(first, last + 1)]


def _labels(entries: Sequence[Entry], scale: _Scale) -> list[str]:
    """Commits below the axis, where there are many not each of them."""
    every = -(-len(scale.runs) // _MOST_LABELS)
    once = {entry.id: entry for entry in entries}
    parts = []
    for number, entry in enumerate(once.values()):
        if number % every == 0:
            x, y = scale.x(entry), _HEIGHT - _BOTTOM + 16
            text = (
                entry.commit_text
                if entry.commit
                else f"{entry.started.astimezone(UTC):%m-%d %H:%M}"
            )
            turn = f"rotate(-50 {x} {y})"
            parts.append(
                f'<text class="label" x="{x}" y="{y}" transform="{turn}">{escape(text)}</text>'
            )
    return parts


def _line(
    entries: Sequence[Entry], metric: Metric, scale: _Scale, number: int, aside: float
) -> list[str]:
    known = [(e, value) for e in entries if (value := metric.value(e.row)) is not None]
    points = [(round(scale.x(e) + aside, 1), scale.y(value)) for e, value in known]
    # Some of the cases are no measure of all of them: such runs stand beside the line.
    on_line = [place for (e, _), place in zip(known, points, strict=True) if not e.row.subset]
    path = " ".join(f"{x},{y}" for x, y in on_line)
    parts = [f'<polyline points="{path}"/>'] if on_line else []
    for (entry, value), (x, y) in zip(known, points, strict=True):
        low, high = metric.interval(entry.row)
        if low is not None and high is not None:
            ends = f'x1="{x}" x2="{x}" y1="{scale.y(low)}" y2="{scale.y(high)}"'
            parts.append(f'<line class="interval" {ends}/>')
        where = f"{harmless(entry.row.model)}, {entry.commit_text}, {entry.short}"
        told = f"{where}: {metric.text(value)} {interval_text(metric, entry.row)}".rstrip()
        told += f", {entry.row.cases} of {entry.row.of} cases" if entry.row.subset else ""
        point = _point(x, y, number, hollow=entry.row.subset)
        parts.append(f"{point}<title>{escape(told)}</title></{_shape(number)}>")
    return [f'<g class="line c{number % COLOURS}">', *parts, "</g>"]


def _shape(number: int) -> str:
    return "circle" if number // COLOURS % 2 == 0 else "rect"


def _point(x: float, y: float, number: int, *, hollow: bool) -> str:
    kind = ' class="some"' if hollow else ""
    if _shape(number) == "circle":
        return f'<circle{kind} cx="{x}" cy="{y}" r="4">'
    return f'<rect{kind} x="{x - 4}" y="{y - 4}" width="8" height="8">'


_UNKNOWN: Final = "–"
_HEADERS: Final = (
    *("run", "when (UTC)", "commit", "model", "cases"),
    *("without", "with", "lift", "tokens", "$/1000", "verdict"),
)


def trend_page(entries: Sequence[Entry], metric: Metric) -> str:
    """The whole page."""
    title = f"Skills: {metric.title}"
    return shell(title, trend_body(entries, metric), style=resource("trend.css"))


def trend_body(entries: Sequence[Entry], metric: Metric) -> str:
    """A section for each skill: its drawing, then its runs as a table, newest first."""
    parts = [f"<h1>Skills: {escape(metric.title)}</h1>"]
    if any(interval_text(metric, entry.row) for entry in entries):
        parts.append("<p>Upright lines are 95 % intervals. A plus: not all was committed.</p>")
    for skill, group in groupby(
        sorted(entries, key=lambda entry: entry.row.skill), key=lambda entry: entry.row.skill
    ):
        parts.append(_section(skill, list(group), metric))
    return "\n".join(parts)


def _section(skill: str, entries: Sequence[Entry], metric: Metric) -> str:
    name = harmless(skill)
    models = [model for _, model in by_pair(entries)]
    legend = "".join(
        f'<li><b class="c{number % COLOURS}">{"●■"[number // COLOURS % 2]}</b> '
        f"{escape(harmless(model))}</li>"
        for number, model in enumerate(models)
    )
    if any(entry.row.subset for entry in entries):
        legend += "<li><b>○</b> some of the cases only, not part of the line</li>"
    drawing = trend_svg(entries, metric, f"{name}: {metric.title}, over runs")
    newest = sorted(entries, key=lambda entry: (entry.started, entry.id), reverse=True)
    return "\n".join(
        [
            f'<section class="trend"><h2>{escape(name)}</h2>',
            f'<ul class="models">{legend}</ul>',
            f'<div class="wide" tabindex="0">{drawing}</div>'
            if drawing
            else f"<p>Not known of any run: {escape(metric.title)}.</p>",
            '<div class="runs wide" tabindex="0"><table>',
            f"<thead>{_row('th', _HEADERS)}</thead><tbody>",
            *(_row("td", _cells(entry)) for entry in newest),
            "</tbody></table></div></section>",
        ]
    )


def _cells(entry: Entry) -> Sequence[str]:
    row = entry.row
    lift = [points(value) for value in (row.lift, row.lift_low, row.lift_high) if value is not None]
    return (
        entry.short,
        f"{entry.started.astimezone(UTC):%Y-%m-%d %H:%M}",
        entry.commit_text,
        harmless(row.model),
        f"{row.cases} of {row.of}" if row.subset else str(row.cases),
        _UNKNOWN if row.baseline_rate is None else percent(row.baseline_rate),
        _UNKNOWN if row.skill_rate is None else percent(row.skill_rate),
        f"{lift[0]} ({lift[1]} to {lift[2]})" if len(lift) == 3 else "".join(lift) or _UNKNOWN,
        _UNKNOWN if row.skill_tokens is None else f"{row.skill_tokens:,.0f}",
        _UNKNOWN if row.skill_cost is None else money(1000 * row.skill_cost),
        harmless(row.verdict or _UNKNOWN),
    )


def _row(tag: str, cells: Sequence[str]) -> str:
    made = []
    for header, cell in zip(_HEADERS, cells, strict=True):
        text = escape(cell)
        shown = f"<code>{text}</code>" if header in ("run", "commit") and tag == "td" else text
        kind = "" if header in ("run", "when (UTC)", "commit", "model", "verdict") else ' class="n"'
        made.append(f"<{tag}{kind}>{shown}</{tag}>")
    return f"<tr>{''.join(made)}</tr>"
