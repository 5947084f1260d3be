"""How the routing of a catalogue is shown, in each report."""

import sys
from collections import Counter
from typing import Final

from ..._util.texts import counted, dollars, one_line
from ...reports.columns import Column
from ...reports.study_tables import Block, StudyTable
from ...reports.terminal.layout import TerminalLook, distinct_names, text_width
from ...reports.terminal.study_lines import block_lines, max_rows, sentences
from ...reports.terminal.tables import table_lines
from .routing import Routing, RoutingTable, SkillRouting

_LEGEND: Final = (
    "Recall is over the queries for a skill, precision over those that opened it; the"
    " skill that is opened first decides"
)
_UNKNOWN: Final = "-"
_MAX_COLUMNS: Final = 12
_MAX_NAMES: Final = 3
_LONGEST_COLUMN: Final = 16


def block(routing: Routing, most: int | None = None) -> Block:
    facts = (one_line(routing.label, 60), _size(routing), _spent(routing))
    return Block(
        title=routing.title,
        facts=" · ".join(facts),
        conclusions=routing.conclusions,
        table=skill_table(routing, most),
        legend=_LEGEND,
    )


def _size(routing: Routing) -> str:
    """``24 skills, 61 queries × 3 runs``."""
    runs = [query.runs + len(query.errors) for query in routing.queries]
    skills = counted(len(routing.skills), "skill")
    queries = counted(len(routing.queries), "query")
    return f"{skills}, {queries} × {counted(max(runs, default=0), 'run')}"


def _spent(routing: Routing) -> str:
    """``480 trials, 3 without a result, $1.20``."""
    words = [counted(routing.trials, "trial")]
    if routing.errors:
        words.append(f"{len(routing.errors):,} without a result")
    if routing.cost:
        words.append(dollars(routing.cost))
    return ", ".join(words)


def lines(routing: Routing, look: TerminalLook) -> list[str]:
    """Skills, what was confused, and sentences; with -v all rows."""
    most = max_rows(look)
    details = _confusions(routing, look, most)
    # What was opened instead is in the other table, too, so it goes first.
    priorities = {"opened instead": 10, "precision": 20}
    shown = block(routing, most)
    return block_lines(shown, look, details, styles={}, priorities=priorities)


# The skills.


def skill_table(routing: Routing, most: int | None = None) -> StudyTable:
    """The skills, the worst first; of more than ``most``,
    only those with something wrong.
    """
    skills = sorted(routing.by_skill, key=_rank)
    rows = skills
    if most is not None and len(skills) > most:
        rows = [skill for skill in skills if _is_wrong(skill)][:most]
    hidden = skills[len(rows) :]
    counts = Counter(map(_describe, hidden))
    words = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    if not rows:
        return StudyTable((), (), folded=f"{len(hidden):,} skills: {words}")

    headers = ("skill", "right", "recall", "precision", "opened instead")
    folded = f"{len(hidden):,} more: {words}" if hidden else ""
    return StudyTable.of(headers, [_cells(row) for row in rows], folded=folded)


def _describe(skill: SkillRouting) -> str:
    if _is_wrong(skill):
        return "wrong"
    if skill.recall:
        return "right"
    return "without a result" if skill.queries else "without a query"


def _is_wrong(skill: SkillRouting) -> bool:
    return any(share.rate < 1 for share in (skill.recall, skill.precision) if share)


def _rank(skill: SkillRouting) -> tuple[bool, float, str]:
    """By the lower of recall and precision, as far as so many queries show them."""
    shares = (skill.recall, skill.precision)
    bounds = [share.interval.high for share in shares if share]
    return not _is_wrong(skill), min(bounds, default=1.0), skill.name


def _cells(skill: SkillRouting) -> tuple[str, ...]:
    """``pdf``, ``3 of 5``, ``60% (23% to 88%)``, ``75% (30% to 95%)``, ``docx 1,
    (none) 1``.
    """
    instead = []
    for name, runs in skill.instead.items():
        instead.append(f"{one_line(name, 30)} {runs:,}")
    if len(instead) > _MAX_NAMES:
        instead[_MAX_NAMES:] = [f"{len(instead) - _MAX_NAMES:,} more"]
    return (
        skill.name,
        f"{skill.right:,} of {skill.queries:,}" if skill.queries else _UNKNOWN,
        skill.recall.words if skill.recall else _UNKNOWN,
        skill.precision.words if skill.precision else _UNKNOWN,
        ", ".join(instead) or _UNKNOWN,
    )


# What was confused.


def _confusions(
    routing: Routing, look: TerminalLook, most: int | None
) -> list[list[str]]:
    """What should be opened × what was, where that was wrong,
    with as many columns as fit.
    """
    if not routing.confusions:
        return []
    hidden = len({pair.expected for pair in routing.confusions}) - (most or sys.maxsize)
    more = f" ({hidden:,} more rows: -v shows them)" if hidden > 0 else ""
    title = f"Trials, by what should be opened and what was{more}"
    for number in range(_MAX_COLUMNS, 0, -1):
        matrix = _matrix(wrong_table(routing, most, number), look)
        if max(map(text_width, matrix)) <= look.width:
            break

    return [sentences([title], look), matrix]


def wrong_table(
    routing: Routing, most_rows: int | None, most_columns: int
) -> RoutingTable:
    """The rows with something wrong: what was opened wrongly, the most frequent first.

    What was right is the first column, and what there is no room for is the last.
    """
    rows = list(dict.fromkeys(pair.expected for pair in routing.confusions))[:most_rows]
    wrong: dict[str, Counter[str]] = {row: Counter() for row in rows}
    for pair in routing.confusions:
        if pair.expected in wrong:
            wrong[pair.expected][pair.opened] += pair.runs

    often = [name for name, _ in sum(wrong.values(), Counter[str]()).most_common()]
    names = often[:most_columns]
    others = often[most_columns:]
    columns = ["right", *names]
    if others:
        columns.append(counted(len(others), "other"))

    cells = {}
    for row, runs in wrong.items():
        numbers = [runs[name] for name in names]
        if others:
            numbers.append(runs.total() - sum(numbers))
        right = sum(routing.table.rows[row]) - sum(numbers)
        cells[row] = (right, *numbers)
    return RoutingTable(tuple(columns), cells)


def _matrix(contents: RoutingTable, look: TerminalLook) -> list[str]:
    names = distinct_names(contents.opened, _LONGEST_COLUMN, look.marks.cut)
    columns = [Column("expected", is_name=True)]
    for name in contents.opened:
        columns.append(Column(names[name], right=True))

    rows = []
    for name, runs in contents.rows.items():
        rows.append([name, _cell(runs[0], look, green=True)])
        rows[-1] += [_cell(number, look, red=True) for number in runs[1:]]

    return table_lines(columns, rows, look)


def _cell(number: int, look: TerminalLook, **style: bool) -> str:
    return look.paint(f"{number:,}", **style) if number else "."
