"""The history on a terminal: a table of runs, and bars for each skill and model."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from ..._util.texts import one_line
from ...results.arm_comparison import SCORE_WORDS, unit_of
from ...results.history import KeptRow
from ...results.verdict import Word
from ..history_rows import by_pair, short_commit
from ..numbers import KEEP, LIFT, Number, shown_numbers
from .layout import Marks, TerminalLook, distinct_names
from .number_tables import lift_style, word_style
from .tables import Cell, Column, Table, fitted

_BY_CHECKS: Final = f"lift and verdict are of the {SCORE_WORDS['checks']}"
_MARK: Final = "c"
_SOME_BY_CHECKS: Final = f"{_MARK} of the {SCORE_WORDS['checks']}, not of the pass rate"
# The length of names, and which columns may be dropped then. Names only ever get
# shorter, so that less room never shows more of them.
_LAYOUTS: Final = ((40, 65), (28, 71), (20, 71), (12, KEEP), (8, KEEP))
_SHORTER: Final[Mapping[Word, str]] = {"too few cases to tell": "too few cases"}
_BARS: Final = (30, 20, 16, 12, 8, 4)  # lengths, tried from the longest


def history_lines(
    kept_rows: Sequence[KeptRow], look: TerminalLook, now: datetime
) -> list[str]:
    """A line for each row; what the rows of a run share is shown once."""
    table = fitted(
        (_table(kept_rows, *layout, look, now) for layout in _LAYOUTS), look.width
    )
    scores = {kept.row.score for kept in kept_rows}
    notes = (
        [_BY_CHECKS if len(scores) == 1 else _SOME_BY_CHECKS]
        if "checks" in scores
        else []
    )
    notes += _version_notes(kept_rows)
    return [*table.lines(look), *([""] if notes else []), *notes]


def _version_notes(kept_rows: Sequence[KeptRow]) -> list[str]:
    """Where the version of an agent changed from one run to the next."""
    notes = dict[str, None]()
    for runs in by_pair(kept_rows).values():
        for before, after in pairwise(kept for kept in runs if kept.row.agent_version):
            old, new = (
                one_line(run.row.agent_version or "", 60) for run in (before, after)
            )
            if old != new:
                agent = one_line(after.row.agent, 60)
                notes[
                    f"{agent} was {old} in {before.run.short} and {new} in"
                    f" {after.run.short}"
                ] = None
    return list(notes)


def _table(
    kept_rows: Sequence[KeptRow],
    longest: int,
    drop_below: int,
    look: TerminalLook,
    now: datetime,
) -> Table:
    numbers = shown_numbers([kept.row for kept in kept_rows], details=False)
    skills = distinct_names(
        {kept.row.skill: 0 for kept in kept_rows}, longest, look.marks.cut
    )
    models = distinct_names(
        {kept.row.label: 0 for kept in kept_rows}, longest, look.marks.cut
    )
    has_commits = any(kept.run.head.commit for kept in kept_rows)
    some_cases = any(kept.row.subset for kept in kept_rows)
    columns = [
        Column("run"),
        Column("when", priority=71),
        *([Column("commit", priority=55)] if has_commits else []),
        Column("skill"),
        Column("model"),
        Column("cases", right=True, priority=KEEP if some_cases else 34),
        *(
            Column(number.header, right=True, priority=number.priority)
            for number in numbers
        ),
        *(
            [Column("verdict", priority=71)]
            if any(kept.row.verdict for kept in kept_rows)
            else []
        ),
    ]
    mixed = len({kept.row.score for kept in kept_rows}) > 1
    rows, before = [], None
    for kept in kept_rows:
        row = kept.row
        cells = {
            "run": Cell(kept.run.short),
            "when": Cell(ago(kept.run.head.started, now)),
            "commit": Cell(short_commit(kept.run.head.commit)),
            "skill": Cell(skills[row.skill]),
            "model": Cell(models[row.label]),
            "cases": Cell(
                f"{row.cases}/{row.all_cases}" if row.subset else str(row.cases)
            ),
            "verdict": Cell(_word(kept), word_style(row.verdict)),
        }
        cells |= {n.header: Cell(n.skill_text(kept.row) or "-") for n in numbers}
        mark = _MARK if mixed and row.score == "checks" else ""
        cells[LIFT.header] = Cell(
            f"{cells[LIFT.header].text}{mark}", lift_style(row.verdict)
        )
        if kept.run.id == before:
            cells |= dict.fromkeys(("run", "when", "commit"), Cell(""))
        before = kept.run.id
        rows.append([cells[column.header] for column in columns])
    return Table(columns, rows, drop_below=drop_below)


def _word(kept: KeptRow) -> str:
    """The verdict in at most 15 characters, so that 80 columns
    have room for the commit.
    """
    if kept.row.interrupted and kept.row.verdict == "incomplete":
        return "interrupted"
    return _SHORTER.get(kept.row.verdict, kept.row.verdict) if kept.row.verdict else "-"


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
    kept_rows: Sequence[KeptRow], metric: Number, look: TerminalLook, now: datetime
) -> list[str]:
    """A block for each skill and model, with a bar for each run, oldest first."""
    groups = by_pair(kept_rows)
    lines: list[str] = []
    for skill, pairs in groupby(sorted(groups), key=lambda pair: pair[0]):
        for _, model in pairs:
            title = f"{one_line(skill, 60)} on {one_line(model, 60)}"
            lines += [look.paint(title, bold=True) + f": {metric.title}"]
            lines += [*_bars(groups[skill, model], metric, look, now), ""]
    return lines[:-1]


def _bars(
    kept_rows: Sequence[KeptRow], metric: Number, look: TerminalLook, now: datetime
) -> list[str]:
    values = [
        value for kept in kept_rows if (value := metric.amount(kept.row)) is not None
    ]
    if not values:
        return ["  not known of any run"]
    top = metric.unit.top or max(values) or 1.0
    low = -top if min(values) < 0 else 0.0
    columns = [Column(right=number == 4) for number in range(6)]
    tables = (
        Table(
            columns,
            [
                _bar_row(kept, metric, scale=(low, top), bar=bar, look=look, now=now)
                for kept in kept_rows
            ],
        )
        for bar in _BARS
    )
    table = fitted(tables, look.width - 2)
    lines = [f"  {line}" for line in table.body(look.paint)]
    # A run of a few cases says little about all of them.
    of_all_cases = [
        metric.amount(kept.row) for kept in kept_rows if not kept.row.subset
    ]
    known = [value for value in of_all_cases if value is not None]
    if len(known) < 2:
        return lines
    text = (
        f"{metric.unit.text(known[0])} {look.marks.arrow} {metric.unit.text(known[-1])}"
    )
    return [*lines, f"  trend  {text} ({metric.unit.change(known[0], known[-1])})"]


def _bar_row(
    kept: KeptRow,
    metric: Number,
    *,
    scale: tuple[float, float],
    bar: int,
    look: TerminalLook,
    now: datetime,
) -> list[Cell]:
    row, value = kept.row, metric.amount(kept.row)
    bounds = metric.bounds_text(kept.row)
    notes = [f"({bounds})"] if bounds else []
    notes += (
        [unit_of(row.score).strip()] if metric is LIFT and row.score == "checks" else []
    )
    notes += [f"{row.cases}/{row.all_cases} cases"] if row.subset else []
    texts = [
        kept.run.short,
        moment(kept.run.head.started, now),
        short_commit(kept.run.head.commit),
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
    return (
        marks.empty * first
        + marks.full * (last - first)
        + marks.empty * (length - last)
    )
