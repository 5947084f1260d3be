"""Triggers on the terminal: a table, the rates of queries with -v, and verdicts."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.summary_row import row_of_triggers
from ...results.trigger_summary import TriggerSummary
from ..numbers import TRIGGER_NUMBERS, instead_text
from ..phrases import choice_note, query_text, size_words
from .layout import TerminalLook, cut, wrapped
from .number_tables import number_table
from .tables import Cell, Column, Style, Table, fitted

_RED: Final[Style] = {"red": True, "bold": True}
_MOST_VERDICTS: Final = 12
_QUERIES: Final = (100, 80, 70, 60, 50, 44, 38, 32, 26, 20, 14, 10)  # lengths of a query


def trigger_tables(rows: Sequence[TriggerSummary], look: TerminalLook) -> list[list[str]]:
    """A title, a table with a row for each skill, agent and model, and with -v one of queries."""
    if not rows:
        return []
    dot = look.marks.dot
    facts = ["triggers", size_words(rows, look.marks.times), choice_note(rows)]
    first, *rest = wrapped(f" {dot} ".join(filter(None, facts)), look.width, rest="  ")
    title = [first.replace("triggers", look.paint("triggers", bold=True), 1), *rest]
    names = {"skill": [row.skill for row in rows], "model": [row.label for row in rows]}
    if len(set(names["skill"])) == 1:
        del names["skill"]
    blocks = [title, number_table(names, [*map(row_of_triggers, rows)], TRIGGER_NUMBERS, look)]
    return [*blocks, *(_queries(rows, look) if look.verbosity > 0 else [])]


def _queries(rows: Sequence[TriggerSummary], look: TerminalLook) -> Iterator[list[str]]:
    """How often each query opened the skill."""
    for row in rows:
        name = f"{harmless(row.skill)} on {harmless(row.label)}"
        title = wrapped(name, look.width, rest="  ") if len(rows) > 1 else []
        table = fitted((_query_table(row, longest, look) for longest in _QUERIES), look.width)
        yield [*title, *table.lines(look)]


def _query_table(row: TriggerSummary, longest: int, look: TerminalLook) -> Table:
    instead = any(query.instead for query in row.queries)
    columns = [Column("query"), Column("needs it"), Column("opened", right=True)]
    columns += [Column("opened instead")] if instead else []
    rows = []
    for query in sorted(row.queries, key=lambda query: not query.should_open):
        wrong = _RED if query.right is False or query.errored else {}
        text = cut(one_line(query.query or query.case, longest), longest, look.marks.cut)
        needs = "yes" if query.should_open else "no"
        cells = [Cell(text), Cell(needs), Cell(query_text(query), wrong)]
        if instead:
            names = cut(instead_text(query.instead.items()), max(14, longest // 3), look.marks.cut)
            cells.append(Cell(names or "-"))
        rows.append(cells)
    return Table(columns, rows)


def trigger_verdicts(rows: Sequence[TriggerSummary], look: TerminalLook) -> list[str]:
    """The verdict on each row in words, and what to do about it."""
    several = len({row.skill for row in rows}) > 1
    if len(rows) > _MOST_VERDICTS and look.verbosity <= 0:
        return ["-v shows the verdict on the triggers of each skill."]
    lines: list[str] = []
    for row in rows:
        model = harmless(row.label)
        name = f"{harmless(row.skill)} on {model}" if several else model
        word = f"{row.word}: " if row.word else ""
        first, *rest = wrapped(f"{name}: {word}{harmless(row.sentence)}.", look.width, rest="  ")
        if row.word:
            first = first.replace(f": {word}", f": {look.paint(row.word, **_RED)}: ", 1)
        lines += [first, *rest]
        for advice in row.advice:
            lines += _advice(harmless(advice), look.width)
    return lines


def _advice(line: str, width: int) -> list[str]:
    """A command of several lines can be pasted."""
    if ": pytest-upskill " not in line:
        return wrapped(line, width, first="  ", rest="    ")
    *lines, last = wrapped(line, width - 2, first="  ", rest="    ")
    return [*(f"{part} \\" for part in lines), last]
