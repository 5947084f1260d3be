"""The history on a terminal: a table of runs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from ..._util import grouped
from ..._util.texts import one_line
from ...results.history import KeptRow
from ..columns import VERDICT, Column, choose_columns
from ..history_rows import short_commit
from .layout import TerminalLook
from .summary_text import paint_word
from .tables import table_lines


def history_lines(
    kept_rows: Sequence[KeptRow], look: TerminalLook, now: datetime
) -> list[str]:
    """A line for each row; what the rows of a run share is shown once."""
    numbers = choose_columns([kept.row for kept in kept_rows])
    columns = [
        Column("run"),
        Column("when", priority=71),
        Column("commit", priority=46),
        Column("skill", is_name=True),
        Column("model", is_name=True),
        Column("cases", right=True, priority=34),
        *numbers,
    ]
    rows = []
    before = ""
    for kept in kept_rows:
        head = kept.run.head
        of_run = [kept.run.short, ago(head.started, now), short_commit(head.commit)]
        if kept.run.id == before:
            of_run = ["", "", ""]
        before = kept.run.id
        row = kept.row
        cases = f"{row.cases}/{row.all_cases}" if row.subset else str(row.cases)
        cells = [*of_run, row.skill, row.label, cases]
        for column in numbers:
            text = column.text(row) or "-"
            if column is VERDICT:
                text = paint_word(row.verdict, _verdict(kept), look)
            cells.append(text)
        rows.append(cells)

    lines = table_lines(columns, rows, look)
    if notes := _version_notes(kept_rows):
        lines += ["", *notes]

    return [look.show(line) for line in lines]


def _verdict(kept: KeptRow) -> str:
    if kept.row.interrupted and kept.row.verdict == "incomplete":
        return "interrupted"

    return kept.row.verdict or "-"


def _version_notes(kept_rows: Sequence[KeptRow]) -> list[str]:
    """Where the version of an agent changed from one run to the next."""
    notes = dict[str, None]()
    oldest_first = sorted(kept_rows, key=lambda kept: kept.run.head.started)
    versioned = [kept for kept in oldest_first if kept.row.agent_version]
    for runs in grouped(versioned, lambda kept: kept.row.pair).values():
        for before, after in pairwise(runs):
            old = one_line(before.row.agent_version, 60)
            new = one_line(after.row.agent_version, 60)
            if old != new:
                agent = one_line(after.row.agent, 60)
                was = f"{agent} was {old} in {before.run.short}"
                notes[f"{was} and {new} in {after.run.short}"] = None

    return list(notes)


def ago(then: datetime, now: datetime) -> str:
    """``3 h ago``, or the date if that says more."""
    since = now - then
    if since < timedelta() or since >= timedelta(days=7):
        return then.astimezone(now.tzinfo).strftime("%Y-%m-%d")
    if since < timedelta(minutes=1):
        return "just now"
    if since < timedelta(hours=1):
        return f"{since // timedelta(minutes=1)} min ago"
    if since < timedelta(days=1):
        return f"{since // timedelta(hours=1)} h ago"

    return f"{since.days} d ago"
