"""The history on a terminal: a table of runs, and bars for each skill and model."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from ..._util.texts import one_line
from ...results.arm_comparison import SCORE_WORDS, unit_of
from ..history_entries import Entry, by_pair
from ..numbers import LIFT, Number, shown_numbers
from .layout import Marks, TerminalLook, distinct_names
from .number_tables import lift_style, word_style
from .tables import KEEP, Cell, Column, Table, fitted

_BY_CHECKS: Final = f"lift and verdict are of the {SCORE_WORDS['checks']}"
_MARK: Final = "c"
_SOME_BY_CHECKS: Final = f"{_MARK} of the {SCORE_WORDS['checks']}, not of the pass rate"
# The length of names, and which columns may be dropped then. Names only ever get shorter, so that
# less room never shows more of them.
_LAYOUTS: Final = ((40, 65), (28, 70), (20, 70), (12, KEEP), (8, KEEP))
_BARS: Final = (30, 20, 16, 12, 8, 4)  # lengths, tried from the longest


def history_lines(entries: Sequence[Entry], look: TerminalLook, now: datetime) -> list[str]:
    """A line for each entry; what the entries of a run share is shown once."""
    table = fitted((_table(entries, *layout, look, now) for layout in _LAYOUTS), look.width)
    scores = {entry.row.score for entry in entries}
    notes = [_BY_CHECKS if len(scores) == 1 else _SOME_BY_CHECKS] if "checks" in scores else []
    notes += _version_notes(entries)
    return [*table.lines(look), *([""] if notes else []), *notes]


def _version_notes(entries: Sequence[Entry]) -> list[str]:
    """Where the version of an agent changed from one run to the next."""
    notes = dict[str, None]()
    for runs in by_pair(entries).values():
        for before, after in pairwise(entry for entry in runs if entry.row.agent_version):
            old, new = (one_line(run.row.agent_version or "", 60) for run in (before, after))
            if old != new:
                agent = one_line(after.row.agent, 60)
                notes[f"{agent} was {old} in {before.short} and {new} in {after.short}"] = None
    return list(notes)


def _table(
    entries: Sequence[Entry], longest: int, drop_below: int, look: TerminalLook, now: datetime
) -> Table:
    numbers = shown_numbers([entry.row for entry in entries], details=False)
    skills = distinct_names({entry.row.skill: 0 for entry in entries}, longest, look.marks.cut)
    models = distinct_names({entry.row.label: 0 for entry in entries}, longest, look.marks.cut)
    some_cases = any(entry.row.subset for entry in entries)
    columns = [
        Column("run"),
        Column("when", priority=65),
        *([Column("commit", priority=55)] if any(entry.commit for entry in entries) else []),
        Column("skill"),
        Column("model"),
        Column("cases", True, KEEP if some_cases else 34),
        *(Column(number.header, True, number.priority) for number in numbers),
        *([Column("verdict", priority=70)] if any(entry.row.verdict for entry in entries) else []),
    ]
    mixed = len({entry.row.score for entry in entries}) > 1
    rows, before = [], None
    for entry in entries:
        row = entry.row
        cells = {
            "run": Cell(entry.short),
            "when": Cell(ago(entry.started, now)),
            "commit": Cell(entry.commit_text),
            "skill": Cell(skills[row.skill]),
            "model": Cell(models[row.label]),
            "cases": Cell(f"{row.cases}/{row.all_cases}" if row.subset else str(row.cases)),
            "verdict": Cell(_word(entry), word_style(row.verdict)),
        }
        cells |= {n.header: Cell(n.skill_text(entry.row) or "-") for n in numbers}
        mark = _MARK if mixed and row.score == "checks" else ""
        cells[LIFT.header] = Cell(f"{cells[LIFT.header].text}{mark}", lift_style(row.verdict))
        if entry.id == before:
            cells |= dict.fromkeys(("run", "when", "commit"), Cell(""))
        before = entry.id
        rows.append([cells[column.header] for column in columns])
    return Table(columns, rows, drop_below=drop_below)


def _word(entry: Entry) -> str:
    """The verdict in at most 15 characters, so that 80 columns have room for the commit."""
    if entry.row.interrupted and entry.row.verdict == "incomplete":
        return "interrupted"
    return one_line(entry.row.verdict or "-", 30).removesuffix(" to tell")


def ago(then: datetime, now: datetime) -> str:
    """``3 h ago``, or the date if that says more."""
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
    """Local date and time; for other years only the date."""
    local = then.astimezone(now.tzinfo)
    return local.strftime("%b %d %H:%M" if local.year == now.year else "%Y-%m-%d")


def plot_lines(
    entries: Sequence[Entry], metric: Number, look: TerminalLook, now: datetime
) -> list[str]:
    """A block for each skill and model, with a bar for each run, oldest first."""
    groups = by_pair(entries)
    lines: list[str] = []
    for skill, pairs in groupby(sorted(groups), key=lambda pair: pair[0]):
        for _, model in pairs:
            title = f"{one_line(skill, 60)} on {one_line(model, 60)}"
            lines += [look.paint(title, bold=True) + f": {metric.title}"]
            lines += [*_bars(groups[skill, model], metric, look, now), ""]
    return lines[:-1]


def _bars(entries: Sequence[Entry], metric: Number, look: TerminalLook, now: datetime) -> list[str]:
    values = [value for entry in entries if (value := metric.amount(entry.row)) is not None]
    if not values:
        return ["  not known of any run"]
    top = metric.unit.top or max(values) or 1.0
    low = -top if min(values) < 0 else 0.0
    columns = [Column(right=number == 4) for number in range(6)]
    tables = (
        Table(columns, [_bar_row(entry, metric, (low, top), bar, look, now) for entry in entries])
        for bar in _BARS
    )
    table = fitted(tables, look.width - 2)
    lines = [f"  {line}" for line in table.body(look.paint)]
    # A run of a few cases says little about all of them.
    of_all_cases = [metric.amount(entry.row) for entry in entries if not entry.row.subset]
    known = [value for value in of_all_cases if value is not None]
    if len(known) < 2:
        return lines
    text = f"{metric.unit.text(known[0])} {look.marks.arrow} {metric.unit.text(known[-1])}"
    return [*lines, f"  trend  {text} ({metric.unit.change(known[0], known[-1])})"]


def _bar_row(
    entry: Entry,
    metric: Number,
    scale: tuple[float, float],
    bar: int,
    look: TerminalLook,
    now: datetime,
) -> list[Cell]:
    row, value = entry.row, metric.amount(entry.row)
    bounds = metric.bounds_text(entry.row)
    notes = [f"({bounds})"] if bounds else []
    notes += [unit_of(row.score).strip()] if metric is LIFT and row.score == "checks" else []
    notes += [f"{row.cases}/{row.all_cases} cases"] if row.subset else []
    texts = [
        entry.short,
        moment(entry.started, now),
        entry.commit_text,
        "" if value is None else _bar(value, scale, bar, look.marks),
        "-" if value is None else metric.unit.text(value),
        " ".join(notes),
    ]
    return [Cell(text) for text in texts]


def _bar(value: float, scale: tuple[float, float], length: int, marks: Marks) -> str:
    """From zero to the value; zero is in the middle if some values are negative."""
    low, top = scale
    zero = round(length * -low / (top - low))
    end = round(length * (min(max(value, low), top) - low) / (top - low))
    first, last = min(zero, end), max(zero, end)
    return marks.empty * first + marks.full * (last - first) + marks.empty * (length - last)
