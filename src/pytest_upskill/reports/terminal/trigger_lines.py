"""Triggers in the summary of a run: a table, the rates of queries with -v, and the verdicts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..._util.texts import harmless, one_line
from ...errors import without_commands
from ...results.triggers import QueryRate, TriggerSummary
from ...trials.records import Record
from ..trigger_numbers import (
    TriggerNumber,
    choice_note,
    instead_text,
    query_text,
    shown_columns,
    size_words,
)
from .layout import Look, Marks, cut, split_name, wrapped
from .tables import Cell, Column, Table, first_that_fits

Pair = tuple[str, str]

_RED: Final = {"red": True, "bold": True}
_MOST_VERDICTS: Final = 12
_BARS: Final = (16, 10, 6, 0)
_NAMES: Final = (60, 36, 24, 16, 10)
_QUERIES: Final = (100, 80, 70, 60, 50, 44, 38, 32, 26, 20, 14, 10)


def trigger_tables(rows: Sequence[TriggerSummary], look: Look) -> list[list[str]]:
    """A title, a table with a row for each skill, agent and model, and with -v one of queries."""
    if not rows:
        return []
    dot = look.marks.dot
    facts = [size_words(rows, look.marks.times), choice_note(rows)]
    first, *rest = wrapped(
        f"triggers {dot} {f' {dot} '.join(filter(None, facts))}", look.width, rest="  "
    )
    title = [first.replace("triggers", look.paint("triggers", bold=True), 1), *rest]
    tables = (_table(rows, layout, look) for layout in _layouts(shown_columns(rows)))
    blocks = [title, first_that_fits(tables, look.width).lines(look)]
    return [*blocks, *(_queries(rows, look) if look.verbosity > 0 else [])]


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    dropped: frozenset[str] = frozenset()
    bounds: bool = True


def _layouts(columns: Sequence[TriggerNumber]) -> Iterator[_Layout]:
    """From roomy to narrow: bars get shorter, then columns go, then intervals."""
    may_go = sorted((one for one in columns if not one.drawn), key=lambda one: one.priority)
    steps = [frozenset(one.header for one in may_go[:n]) for n in range(len(may_go) + 1)]
    for bar in _BARS[:2]:
        yield _Layout(bar, _NAMES[0])
    for dropped in steps[:3]:
        yield from (_Layout(bar, name, dropped) for bar in _BARS[1:] for name in _NAMES[:3])
    for dropped in steps:
        yield from (_Layout(0, name, dropped) for name in _NAMES)
    yield _Layout(0, _NAMES[-1], steps[-1], bounds=False)


def _table(rows: Sequence[TriggerSummary], layout: _Layout, look: Look) -> Table:
    several = len({row.skill for row in rows}) > 1
    columns = [*([Column("skill")] if several else []), Column("model")]
    cells = [
        [
            Cell("\n".join(split_name(harmless(name), layout.name)))
            for name in ([row.skill, row.model] if several else [row.model])
        ]
        for row in rows
    ]
    for number in shown_columns(rows):
        if number.header in layout.dropped:
            continue
        columns.append(Column(number.header, right=not number.drawn))
        for row, own in zip(rows, cells, strict=True):
            own.append(_cell(number, row, layout, look.marks))
        if number.drawn and layout.bounds:
            columns.append(Column("interval"))
            for row, own in zip(rows, cells, strict=True):
                own.append(Cell(number.bounds(row) or "-"))
    return Table(columns, cells)


def _cell(number: TriggerNumber, row: TriggerSummary, layout: _Layout, marks: Marks) -> Cell:
    text, share = number.text(row) or "-", number.share(row)
    if share is not None and layout.bar:
        full = round(share * layout.bar)
        text = f"{marks.full * full}{marks.empty * (layout.bar - full)} {text.rjust(4)}"
    return Cell(text, _RED if number.alarm and number.text(row) else {})


def _queries(rows: Sequence[TriggerSummary], look: Look) -> Iterator[list[str]]:
    """With -v: how often each query opened the skill."""
    several = len(rows) > 1
    for row in rows:
        name = f"{harmless(row.skill)} on {harmless(row.model)}"
        title = wrapped(name, look.width, rest="  ") if several else []
        tables = (_query_table(row, longest, look) for longest in _QUERIES)
        yield [*title, *first_that_fits(tables, look.width).lines(look)]


def _query_table(row: TriggerSummary, longest: int, look: Look) -> Table:
    instead = any(query.instead for query in row.queries)
    columns = [Column("query"), Column("needs it"), Column("opened", right=True)]
    columns += [Column("opened instead")] if instead else []
    rows = []
    for query in sorted(row.queries, key=lambda one: not one.should_trigger):
        wrong = _RED if query.right is False or query.errored else {}
        text = cut(one_line(query.query or query.case, longest), longest, look.marks.cut)
        needs = "yes" if query.should_trigger else "no"
        cells = [Cell(text), Cell(needs), Cell(query_text(query), wrong)]
        if instead:
            names = cut(instead_text(query.instead.items()), max(14, longest // 3), look.marks.cut)
            cells.append(Cell(names or "-"))
        rows.append(cells)
    return Table(columns, rows)


def trigger_verdicts(rows: Sequence[TriggerSummary], look: Look) -> list[str]:
    """What came of each, in words, and what to do about it."""
    several = len({row.skill for row in rows}) > 1
    if len(rows) > _MOST_VERDICTS and look.verbosity <= 0:
        return ["-v shows the verdict on the triggers of each skill."]
    lines: list[str] = []
    for row in rows:
        name = harmless(row.model)
        where = f"{harmless(row.skill)} on {name}" if several else name
        word = f"{row.word}: " if row.word else ""
        own = wrapped(f"{where}: {word}{harmless(row.sentence)}.", look.width, rest="  ")
        if row.word:
            mark = f": {row.word}:"
            own[0] = own[0].replace(mark, f": {look.paint(row.word, **_RED)}:", 1)
        lines += own
        for line in row.advice:
            lines += _advice(harmless(line), look.width)
    return lines


def _advice(line: str, width: int) -> list[str]:
    """A command of several lines can be pasted."""
    if ": pytest-upskill " not in line:
        return wrapped(line, width, first="  ", rest="    ")
    *lines, last = wrapped(line, width - 2, first="  ", rest="    ")
    return [*(f"{one} \\" for one in lines), last]


_QUERY: Final = 600
_REASON: Final = 200


def trigger_failure(
    rate: QueryRate, records: Sequence[Record], *, standing: str, where: str
) -> str:
    """A few lines; the first one is for pytest's short summary."""
    wanted = "should be at least half" if rate.should_trigger else "should be less than half"
    headline = f"opened in {rate.count}, {wanted}"
    lines = [f"{standing}: {headline}" if standing else headline]
    kind = "should open the skill" if rate.should_trigger else "should not open the skill"
    lines += [f"Query ({where}, {kind}):", f"  {one_line(rate.query, _QUERY)}"]
    decided: dict[str, list[int]] = {}
    for record in records:
        for grade in record.checks:
            decided.setdefault(one_line(grade.reason, _REASON), []).append(record.run)
    for reason, runs in decided.items():
        word = "run" if len(runs) == 1 else "runs"
        lines.append(f"  {word} {', '.join(map(str, runs))}: {reason}")
    return without_commands("\n".join(lines))
