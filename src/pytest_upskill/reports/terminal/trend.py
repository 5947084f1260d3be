"""The history on a terminal: a table of runs, and bars with a trend for each skill and model."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from ..._util.texts import one_line
from ...results.arm_comparison import SCORE_WORDS, unit_of
from ..history_entries import Entry, by_pair
from ..numbers import KEEP, LIFT, WITH, Number, shown_numbers
from .layout import Look, Marks, distinct_names
from .summary_text import lift_style, verdict_style
from .tables import Cell, Column, Table, first_that_fits

_SUBSET: Final = "* only some of the cases"
_BY_CHECKS: Final = f"lift and verdict are of the {SCORE_WORDS['checks']}"
_MARK: Final = "c"
_SOME_BY_CHECKS: Final = f"{_MARK} of the {SCORE_WORDS['checks']}, not of the pass rate"
_BEFORE: Final = (
    Column("run", priority=KEEP),
    Column("when", priority=65),
    Column("commit", priority=55),
    Column("skill", priority=KEEP),
    Column("model", priority=KEEP),
    Column("cases", right=True, priority=35),
)
_VERDICT: Final = Column("verdict", priority=70)
# How long names may be, and how many of the columns that may be dropped must stay. Names only
# ever get shorter, so that less room never shows more of them.
_LAYOUTS: Final = ((40, 3), (28, 1), (20, 1), (12, 0), (8, 0))
_STEPS: Final = "▁▂▃▄▅▆▇█"
_ASCII_STEPS: Final = "_.-=+*#"
_BARS: Final = (30, 20, 16, 12, 8, 4)  # lengths, tried from the longest


def history_lines(entries: Sequence[Entry], look: Look, now: datetime) -> list[str]:
    """A line for each entry; what the entries of a run share is shown once."""
    table = first_that_fits(_tables(entries, look, now), look.width)
    dropped = "cases" not in [column.header for column in table.columns]
    notes = [_SUBSET] if dropped and any(entry.row.subset for entry in entries) else []
    scores = {entry.row.score for entry in entries}
    notes += [_BY_CHECKS if len(scores) == 1 else _SOME_BY_CHECKS] if "checks" in scores else []
    notes += _version_notes(entries)
    return [*table.lines(look), *([""] if notes else []), *notes]


def _version_notes(entries: Sequence[Entry]) -> list[str]:
    """Where an agent has another version than in the run before."""
    found = dict[str, None]()
    for own in by_pair(entries).values():
        for before, after in pairwise(entry for entry in own if entry.row.agent_version):
            was, now = (one_line(one.row.agent_version or "", 60) for one in (before, after))
            if was != now:
                agent = one_line(after.row.agent, 60)
                found[f"{agent} was {was} in {before.short} and {now} in {after.short}"] = None
    return list(found)


def _tables(entries: Sequence[Entry], look: Look, now: datetime) -> Iterator[Table]:
    numbers = shown_numbers([entry.measured for entry in entries], details=False)
    before = [c for c in _BEFORE if c.header != "commit" or any(e.commit for e in entries)]
    after = [_VERDICT] if any(entry.row.verdict for entry in entries) else []
    columns = [*before, *(Column(n.header, True, n.priority) for n in numbers), *after]
    order = sorted(
        (column for column in columns if column.priority < KEEP),
        key=lambda column: column.priority,
    )
    for longest, kept in _LAYOUTS:
        for dropped in range(len(order) - kept + 1):
            shown = [column for column in columns if column not in order[:dropped]]
            yield _table(entries, shown, numbers, longest, look, now)


def _table(
    entries: Sequence[Entry],
    columns: Sequence[Column],
    numbers: Sequence[Number],
    longest: int,
    look: Look,
    now: datetime,
) -> Table:
    skills = distinct_names({entry.row.skill: 0 for entry in entries}, longest, look.marks.cut)
    models = distinct_names({entry.row.label: 0 for entry in entries}, longest, look.marks.cut)
    headers = [column.header for column in columns]
    mixed = len({entry.row.score for entry in entries}) > 1
    rows, before = [], None
    for entry in entries:
        row = entry.row
        mark = _MARK if mixed and row.score == "checks" else ""
        cells = {n.header: Cell(n.skill_text(entry.measured) or "-") for n in numbers}
        cells |= {
            "run": Cell(entry.short),
            "when": Cell(ago(entry.started, now)),
            "commit": Cell(entry.commit_text),
            "skill": Cell(skills[row.skill]),
            "model": Cell(models[row.label]),
            "cases": Cell(f"{row.cases}/{row.all_cases}" if row.subset else str(row.cases)),
            LIFT.header: Cell(f"{cells[LIFT.header].text}{mark}", lift_style(row.verdict)),
            "verdict": Cell(_word(entry), verdict_style(row.verdict)),
        }
        if entry.id == before:
            cells |= dict.fromkeys(("run", "when", "commit"), Cell(""))
        if row.subset and "cases" not in headers:
            cells[WITH.header] = Cell(f"{cells[WITH.header].text}*")
        before = entry.id
        rows.append([cells[header] for header in headers])
    return Table(columns, rows)


def _word(entry: Entry) -> str:
    stopped = entry.row.interrupted and entry.row.verdict == "incomplete"
    return "interrupted" if stopped else one_line(entry.row.verdict or "-", 20)


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


def plot_lines(entries: Sequence[Entry], metric: Number, look: Look, now: datetime) -> list[str]:
    """A block for each skill and model, with a bar for each run, oldest first."""
    groups = by_pair(entries)
    lines: list[str] = []
    for skill, pairs in groupby(sorted(groups), key=lambda pair: pair[0]):
        for _, model in pairs:
            title = f"{one_line(skill, 60)} on {one_line(model, 60)}"
            lines += [look.paint(title, bold=True) + f": {metric.title}"]
            lines += [*_bars(groups[skill, model], metric, look, now), ""]
    return lines[:-1]


def _bars(entries: Sequence[Entry], metric: Number, look: Look, now: datetime) -> list[str]:
    known = [value for entry in entries if (value := metric.amount(entry.measured)) is not None]
    if not known:
        return ["  not known of any run"]
    top = metric.unit.top or max(known) or 1.0
    low = -top if min(known) < 0 else 0.0
    columns = [Column(right=number == 4) for number in range(6)]
    tables = (
        Table(columns, [_bar_row(entry, metric, (low, top), bar, look, now) for entry in entries])
        for bar in _BARS
    )
    table = first_that_fits(tables, look.width - 2)
    lines = [f"  {line}" for line in table.body(look.paint)]
    # A run of some cases says little about all of them.
    whole = [metric.amount(entry.measured) for entry in entries if not entry.row.subset]
    ends = [value for value in whole if value is not None]
    if len(ends) < 2:
        return lines
    trend = spark(whole[-look.width // 2 :], low, top, look.marks)
    first, last = ends[0], ends[-1]
    text = f"{metric.unit.text(first)} {look.marks.arrow} {metric.unit.text(last)}"
    return [*lines, f"  trend  {trend}  {text} ({metric.unit.change(first, last)})"]


def _bar_row(
    entry: Entry, metric: Number, scale: tuple[float, float], bar: int, look: Look, now: datetime
) -> list[Cell]:
    row, value = entry.row, metric.amount(entry.measured)
    bounds = metric.bounds_text(entry.measured)
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


def spark(values: Sequence[float | None], low: float, top: float, marks: Marks) -> str:
    """A character for each value, by its height; a blank if it is not known."""
    steps = _STEPS if marks.full == "█" else _ASCII_STEPS
    heights = [
        None if value is None else (min(max(value, low), top) - low) / (top - low)
        for value in values
    ]
    return "".join(" " if h is None else steps[round(h * (len(steps) - 1))] for h in heights)
