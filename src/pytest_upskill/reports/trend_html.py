"""The trend over commits as one page: no script, nothing fetched, light and dark."""

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC
from html import escape
from itertools import groupby
from typing import Final

from ..texts import harmless, points
from .entries import Entry, Metric, interval_text, money, percent
from .trend import by_pair
from .trend_svg import COLOURS, trend_svg

_UNKNOWN: Final = "–"
_HEADERS: Final = (
    *("run", "when (UTC)", "commit", "model", "cases"),
    *("without", "with", "lift", "tokens", "$/1000", "verdict"),
)
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --faint: #6a6f76; --rule: #d9dce0;
  --c0: #0b62c4; --c1: #b4560a; --c2: #1a7f45; --c3: #8a3fb0; --c4: #b0274b; --c5: #5d6470; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #16181b; --faint: #9aa0a8;
  --rule: #363b42; --c0: #6cb0ff; --c1: #f0a35e; --c2: #5fce8f; --c3: #cf94f0; --c4: #ff8aa5;
  --c5: #b4bac4; } }
body { margin: 2rem auto; max-width: 66rem; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
p, .legend { color: var(--faint); } svg { width: 100%; height: auto; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.legend b { font-size: 1.2em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--rule);
  white-space: nowrap; } .n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 12px ui-monospace, monospace; }
.grid { stroke: var(--rule); } .zero { stroke: var(--faint); } text { fill: var(--faint);
  font: 12px system-ui, sans-serif; } .tick, .label { text-anchor: end; }
.line { fill: none; stroke-width: 2; } .interval { stroke-width: 1.5; opacity: .45; }
circle, rect { stroke: var(--paper); stroke-width: 1.5; }
""" + "\n".join(
    f".c{n} {{ stroke: var(--c{n}); color: var(--c{n}); }} "
    f".c{n} circle, .c{n} rect {{ fill: var(--c{n}); }}"
    for n in range(COLOURS)
)


def trend_page(entries: Sequence[Entry], metric: Metric) -> str:
    """The whole page."""
    return _shell(f"Skills: {metric.title}", trend_body(entries, metric))


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
    drawing = trend_svg(entries, metric, f"{name}: {metric.title}, over runs")
    newest = sorted(entries, key=lambda entry: (entry.started, entry.id), reverse=True)
    return "\n".join(
        [
            f"<section><h2>{escape(name)}</h2>",
            f'<ul class="legend">{legend}</ul>',
            drawing or f"<p>Not known of any run: {escape(metric.title)}.</p>",
            f'<div class="scroll"><table><thead>{_row("th", _HEADERS)}</thead><tbody>',
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


def _shell(title: str, body: str) -> str:
    """A page that may do nothing but look as it does."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )
