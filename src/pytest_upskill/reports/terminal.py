"""The summary at the end of a run, as lines of text."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tabulate import tabulate

from ..summary import Summary
from ..texts import counted, harmless
from ..trials import SkillInfo
from ..verdict import Verdict, signal_lines, sweet_spot

Paint = Callable[..., str]


@dataclass(frozen=True)
class Marks:
    """The characters that drawings are made of."""

    full: str = "█"
    empty: str = "░"
    arrow: str = "→"
    dot: str = "·"
    times: str = "×"
    rule: str = "─"
    cut: str = "…"


ASCII_MARKS: Final = Marks("#", ".", "->", "-", "x", "-", "~")


def marks_for(encoding: str) -> Marks:
    """Block characters where the terminal has them, else plain ASCII."""
    try:
        "█░→·×─…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII_MARKS
    return Marks()


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    gap: str = " "
    stacked: bool = False
    split: bool = False  # numbers without and with the skill on lines of their own


# From roomy to narrow: the first that fits is taken.
_LAYOUTS: Final = (
    _Layout(bar=10, name=36),
    _Layout(bar=6, name=24),
    _Layout(bar=5, name=16, gap=""),
    _Layout(bar=8, name=14, gap="", stacked=True),
    _Layout(bar=4, name=9, gap="", stacked=True),
    _Layout(bar=4, name=9, gap="", stacked=True, split=True),
)
_COST: Final = "$/1000"
_PREVIOUS: Final = "previous"  # its header is the ref
_ALIGN: Final = {
    "model": "left",
    "without": "left",
    _PREVIOUS: "left",
    "with": "left",
    "lift": "right",
    "checks": "right",
    "tokens": "left",
    _COST: "left",
    "seconds": "left",
    "errors": "right",
}


def summary_lines(
    skills: Sequence[SkillInfo],
    verdicts: Sequence[Verdict],
    *,
    width: int,
    marks: Marks,
    paint: Paint,
) -> list[str]:
    """One block per skill: its name and size, then a table with a row per model."""
    lines: list[str] = []
    for name, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        own = list(group)
        rows = [verdict.summary for verdict in own]
        skill = next(skill for skill in skills if skill.name == name)
        lines += [*_title(skill, rows, width, marks, paint), ""]
        lines += [*_table(rows, width, marks, paint), ""]
        lines += [*_verdict_lines(own, width, paint), ""]
    return lines


def _title(
    skill: SkillInfo, rows: Sequence[Summary], width: int, marks: Marks, paint: Paint
) -> list[str]:
    cases, runs = max(row.cases for row in rows), sorted(_runs_in(rows))
    name = harmless(skill.name)
    span = (f"{runs[0]} to " if len(runs) > 1 else "") + counted(runs[-1], "run")
    size = f"{counted(cases, 'case')} {marks.times} {span}"
    rest = f"about {counted(skill.tokens, 'token')} {marks.dot} {size}"
    if len(name) + 3 + len(rest) > width:
        return [*(paint(part, bold=True) for part in _broken(name, width)), rest]
    return [f"{paint(name, bold=True)} {marks.dot} {rest}"]


def _runs_in(rows: Sequence[Summary]) -> set[int]:
    """How many runs there are, which may differ from case to case."""
    return {row.runs for row in rows} | {case.runs for row in rows for case in row.by_case}


def _table(rows: Sequence[Summary], width: int, marks: Marks, paint: Paint) -> list[str]:
    for layout in _LAYOUTS:
        broad = max(map(len, _render(rows, layout, marks, _no_paint)))
        if broad <= width:
            break
    header, *body = _render(rows, layout, marks, paint)
    return [header, marks.rule * broad, *body]


def _render(rows: Sequence[Summary], layout: _Layout, marks: Marks, paint: Paint) -> list[str]:
    paid = any(row.baseline_cost or row.skill_cost for row in rows)
    ref = next((row.against for row in rows if row.against), None)
    left_out = {*([] if paid else [_COST]), *([] if ref else [_PREVIOUS])}
    headers = [header for header in _ALIGN if header not in left_out]
    shown = _short_ref(ref or "", layout, marks)
    table = [[shown if header == _PREVIOUS else header for header in headers]]
    for row in rows:
        cells = _cells(row, layout, marks, paint)
        table.append([cells[header] for header in headers])
    # The headers are a row like any other: as headers, tabulate would pad each by two.
    align = [_ALIGN[header] for header in headers]
    text = tabulate(table, tablefmt="plain", disable_numparse=True, colalign=align)
    return [line.rstrip() for line in text.splitlines()]


def _cells(row: Summary, layout: _Layout, marks: Marks, paint: Paint) -> dict[str, str]:
    broken = f"{marks.arrow}\n"
    arrow = broken if layout.split else f"{layout.gap}{marks.arrow}{layout.gap}"
    return {
        "model": "\n".join(_broken(harmless(row.model), layout.name)),
        "without": _rate(row.baseline_rate, layout, marks),
        _PREVIOUS: _rate(row.previous_rate, layout, marks),
        "with": _rate(row.skill_rate, layout, marks),
        "lift": _lift(row.lift, paint),
        "checks": _checks(row),
        "tokens": _tokens(row, arrow, layout),
        _COST: _cost(row, broken if layout.stacked else arrow),
        "seconds": _change(row.baseline_seconds, row.skill_seconds, arrow, ".1f"),
        "errors": paint(str(row.errored), red=True) if row.errored else "0",
    }


def _short_ref(ref: str, layout: _Layout, marks: Marks) -> str:
    """As broad as the column is anyway."""
    broad = layout.bar if layout.stacked else layout.bar + 5
    name = harmless(ref)
    return name if len(name) <= broad else name[: broad - len(marks.cut)] + marks.cut


def _rate(rate: float | None, layout: _Layout, marks: Marks) -> str:
    if rate is None:
        return "-"
    full = round(rate * layout.bar)
    bar = marks.full * full + marks.empty * (layout.bar - full)
    percent = f"{rate:.0%}".rjust(4)
    return f"{bar}\n{percent.rjust(layout.bar)}" if layout.stacked else f"{bar} {percent}"


def _lift(lift: float | None, paint: Paint) -> str:
    if lift is None:
        return "-"
    points = round(lift * 100)
    if points == 0:
        return "0"
    return paint(f"{points:+d}", green=points > 0, red=points < 0, bold=True)


def _checks(row: Summary) -> str:
    """Checks that a case passes with the skill, of how many it has, on average."""
    if not row.graded:
        return "-"
    return f"{_short(row.checks_passed / row.graded)}/{_short(row.checks_total / row.graded)}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _tokens(row: Summary, arrow: str, layout: _Layout) -> str:
    text = _change(row.baseline_tokens, row.skill_tokens, arrow, ",.0f")
    if row.token_change is None:
        return text
    return f"{text}{chr(10) if layout.stacked else ' '}{row.token_change:+.0%}"


def _cost(row: Summary, arrow: str) -> str:
    """What a thousand answers cost: that of one has too many zeros to be read."""
    known = [_dollars(1000 * c) for c in (row.baseline_cost, row.skill_cost) if c is not None]
    return "0" if set(known) == {"0"} else arrow.join(known) or "-"


def _dollars(amount: float) -> str:
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount >= 1:
        return f"{amount:.1f}"
    if 0 < amount < 0.001:
        return "<0.001"
    return f"{amount:.2g}"


def _change(before: float | None, after: float | None, arrow: str, form: str) -> str:
    known = [format(value, form) for value in (before, after) if value is not None]
    return arrow.join(known) or "-"


def _broken(name: str, width: int) -> list[str]:
    """A long name on several lines, broken where its own punctuation allows it."""
    lines = []
    while len(name) > width:
        at = max((name.rfind(mark, 0, width) for mark in "/:-_."), default=-1) + 1
        at = at if at > width // 3 else width
        lines.append(name[:at])
        name = name[at:]
    return [*lines, name]


def _verdict_lines(verdicts: Sequence[Verdict], width: int, paint: Paint) -> list[str]:
    """What it amounts to, model by model, and over all of them."""
    lines: list[str] = []
    for verdict in verdicts:
        word = f"{verdict.word}: " if verdict.word else ""
        text = f"{harmless(verdict.summary.model)}: {word}{verdict.sentence}."
        wrapped = textwrap.wrap(text, width, subsequent_indent="  ")
        colours = {"helps": "green", "hurts": "red", "incomplete": "red"}
        if verdict.word in colours:
            painted = paint(verdict.word, bold=True, **{colours[verdict.word]: True})
            wrapped[0] = wrapped[0].replace(f": {verdict.word}:", f": {painted}:", 1)
        lines += wrapped
        since = [verdict.since.sentence] if verdict.since else []
        for line in [*since, *signal_lines(verdict)]:
            lines += textwrap.wrap(line, width, initial_indent="  ", subsequent_indent="    ")
    if spot := sweet_spot(verdicts):
        lines += textwrap.wrap(f"Sweet spot: {harmless(spot)}", width, subsequent_indent="  ")
    return lines


def _no_paint(text: str, **_: bool) -> str:
    return text
