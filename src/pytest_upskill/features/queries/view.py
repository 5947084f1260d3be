"""How the results of queries are shown, in each report."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..._util.texts import counted, harmless, one_line, percent, span
from ...reports.columns import Column
from ...reports.study_tables import Block, StudyTable
from ...reports.terminal.closing_lines import Point
from ...reports.terminal.layout import TerminalLook, spaced, wrapped
from ...reports.terminal.summary_text import MAX_SKILLS, title_lines
from ...reports.terminal.tables import table_lines
from ...results.row import QueryShare
from ...trials.subject import CHAT
from .common import MODELS_CHOICE
from .results import Queries, QuerySummary

_MAX_NAME_LENGTH: Final = 60
_MAX_SENTENCES: Final = 8


def block(queries: Queries) -> Block | None:
    summaries = queries.trigger_summaries
    if not summaries:
        return None

    rows = []
    for row in summaries:
        size = f"{len(row.queries)} × {row.runs}"
        shares = (row.recall, row.false_alarms)
        rows.append([str(row.pair), *map(_describe_share, shares), size])
    return Block(
        title="Triggers",
        facts=_size_words(summaries),
        conclusions=(),
        table=StudyTable.of(("skill", "recall", "false alarms", "queries"), rows),
        legend=". ".join(
            f"{row.pair}: {row.sentence}" for row in summaries[:_MAX_SENTENCES]
        ),
    )


def points(queries: Queries) -> Iterator[Point]:
    """The last lines of a run."""
    for row in queries.trigger_summaries:
        if row.incomplete:
            yield Point("warn", f"{row.pair}: triggers: {row.missing_words}")
            continue

        rates = [f"{name} {percent(share.rate)}" for name, share in row.shares.items()]
        is_wrong = row.wrong(should_open=True) or row.wrong(should_open=False)
        yield Point("open" if is_wrong else "good", f"{row.pair}: {', '.join(rates)}")


def lines(queries: Queries, look: TerminalLook) -> list[str]:
    """A row for each skill, agent and model, and what to do about it."""
    summaries = queries.trigger_summaries
    if not summaries:
        return []

    facts = ["triggers", _size_words(summaries)]
    if all(row.agent == CHAT for row in summaries):
        facts.append(MODELS_CHOICE)
    columns = [
        Column("skill", is_name=True, priority=90),
        Column("model", is_name=True),
        Column("recall", right=True),
        Column("interval", right=True, priority=70),
        Column("false alarms", right=True),
        Column("interval", right=True, priority=60),
    ]
    cells = []
    for row in summaries:
        shares = [*_share(row.recall), *_share(row.false_alarms)]
        cells.append([row.skill, row.label, *shares])
    table = table_lines(columns, cells, look)
    advice = []
    if len(summaries) > MAX_SKILLS and look.verbosity < 1:
        table.append("what to do about each skill: -v")
    else:
        for row in summaries:
            advice += _advise(row, look, is_only=len(summaries) == 1)
    return spaced([title_lines(facts, look), table, advice])


def _describe_share(share: QueryShare | None) -> str:
    """``82% (69% to 90%)``."""
    return "-" if share is None else "{} ({})".format(*_share(share))


def _share(share: QueryShare | None) -> tuple[str, str]:
    if share is None:
        return "-", "-"
    return percent(share.rate), span(*share.interval, percent)


def _advise(row: QuerySummary, look: TerminalLook, *, is_only: bool) -> list[str]:
    lines = []
    name = one_line(str(row.pair), _MAX_NAME_LENGTH)
    if row.incomplete or look.verbosity > 0:
        lines += look.wrap(f"{name}: {harmless(row.sentence)}")
    if row.advice and not is_only:
        lines.append(f"{name}:")
    for advice in row.advice:
        lines += _wrap_advice(harmless(advice), look.width)
    return lines


def _wrap_advice(advice: str, width: int) -> list[str]:
    """A command of several lines can be pasted."""
    if ": pytest-upskill " not in advice:
        return wrapped(advice, width, rest="  ")

    *lines, last = wrapped(advice, width - len(" \\"), rest="  ")
    return [*(f"{line} \\" for line in lines), last]


def _size_words(rows: Sequence[QuerySummary]) -> str:
    """``20 queries that need pdf, 20 that don't × 3 runs``, over all skills."""
    # Of each skill, the row with the most queries
    largest: dict[str, QuerySummary] = {}
    for row in rows:
        before = largest.setdefault(row.skill, row)
        if len(row.queries) > len(before.queries):
            largest[row.skill] = row

    queries = [query for row in largest.values() for query in row.queries]
    needs = sum(query.should_open for query in queries)
    spares = len(queries) - needs
    need = "needs" if needs == 1 else "need"
    lack = "doesn't" if spares == 1 else "don't"
    skill = one_line(rows[0].skill, 60) if len(largest) == 1 else "their skill"
    runs = counted(max(row.runs for row in rows), "run")
    return (
        f"{counted(needs, 'query')} that {need} {skill}, {spares:,} that {lack} ×"
        f" {runs}"
    )
