"""The trend over commits as one page: no script, nothing fetched, light and dark."""

from collections.abc import Sequence
from datetime import UTC
from html import escape
from itertools import groupby
from typing import Final

from ..._util.texts import harmless, points
from ..html.shell import resource, shell
from .entries import Entry, Metric, interval_text, money, percent
from .svg import COLOURS, trend_svg
from .trend import by_pair

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
