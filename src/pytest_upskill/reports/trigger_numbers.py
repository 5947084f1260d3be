"""The numbers of triggers, each defined once, for every table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from .._util.texts import counted, dollars, one_line, percent, whole
from ..results.triggers import MODELS_CHOICE, QueryRate, TriggerSummary
from ..trials.subject import CHAT
from .terminal.tables import KEEP

_MOST_NAMES: Final = 3


@dataclass(frozen=True)
class TriggerNumber:
    """A column of the table of triggers."""

    header: str
    text: Callable[[TriggerSummary], str]  # empty if it is not known
    share: Callable[[TriggerSummary], float | None] = lambda _: None  # to draw
    bounds: Callable[[TriggerSummary], str] = lambda _: ""  # the 95 % interval
    priority: int = KEEP  # columns with the lowest are dropped first if there is no room
    seldom: bool = False  # only shown if a row has it
    alarm: bool = False  # red

    @property
    def drawn(self) -> bool:
        """Whether it is a share, with a bar and an interval."""
        return self.priority == KEEP


NUMBERS: Final = (
    TriggerNumber(
        "recall",
        lambda row: percent(row.recall.rate) if row.recall else "",
        lambda row: row.recall.rate if row.recall else None,
        lambda row: row.recall.bounds if row.recall else "",
    ),
    TriggerNumber(
        "false alarms",
        lambda row: percent(row.false_alarms.rate) if row.false_alarms else "",
        lambda row: row.false_alarms.rate if row.false_alarms else None,
        lambda row: row.false_alarms.bounds if row.false_alarms else "",
    ),
    TriggerNumber(
        "opened instead",
        lambda row: instead_text(row.instead.items()),
        priority=30,
        seldom=True,
    ),
    TriggerNumber(
        "tokens",
        lambda row: "" if row.tokens is None else whole(row.tokens),
        priority=20,
        seldom=True,
    ),
    TriggerNumber(
        "$/1000",
        lambda row: dollars(1000 * row.cost) if row.cost else "",
        priority=10,
        seldom=True,
    ),
    TriggerNumber(
        "errors",
        lambda row: f"{row.errored:,}" if row.errored else "",
        priority=90,
        seldom=True,
        alarm=True,
    ),
    TriggerNumber(
        "not run",
        lambda row: f"{row.not_run:,}" if row.not_run else "",
        priority=90,
        seldom=True,
        alarm=True,
    ),
)


def shown_columns(rows: Sequence[TriggerSummary]) -> list[TriggerNumber]:
    return [one for one in NUMBERS if not one.seldom or any(map(one.text, rows))]


def instead_text(instead: Iterable[tuple[str, int]]) -> str:
    """``docs-writer 6, pdf-tools 1``."""
    known = sorted(instead, key=lambda one: -one[1])
    words = [f"{one_line(name, 40)} {number:,}" for name, number in known[:_MOST_NAMES]]
    more = [f"{len(known) - _MOST_NAMES} more"] if len(known) > _MOST_NAMES else []
    return ", ".join([*words, *more])


def size_words(rows: Sequence[TriggerSummary], times: str = "×") -> str:
    """``20 queries that need pdf, 20 that don't × 3 runs``, over all skills."""
    most = dict[str, TriggerSummary]()  # of each skill, the row with the most queries
    for row in rows:
        known = most.setdefault(row.skill, row)
        most[row.skill] = max(known, row, key=lambda one: len(one.queries))
    kinds = [one.should_trigger for row in most.values() for one in row.queries]
    needs, spares = kinds.count(True), kinds.count(False)
    runs = counted(max(row.runs for row in rows), "run")
    need, lack = "needs" if needs == 1 else "need", "doesn't" if spares == 1 else "don't"
    what = one_line(rows[0].skill, 60) if len(most) == 1 else "their skill"
    return f"{counted(needs, 'query')} that {need} {what}, {spares:,} that {lack} {times} {runs}"


def choice_note(rows: Sequence[TriggerSummary]) -> str:
    """What numbers of chat are of; empty if all are of agents."""
    chats = list(dict.fromkeys(row.model for row in rows if row.agent == CHAT))
    if not chats:
        return ""
    if len(chats) == len({row.model for row in rows}):
        return MODELS_CHOICE
    return f"{', '.join(one_line(model, 60) for model in chats)}: {MODELS_CHOICE}"


def query_text(query: QueryRate, errors: bool = True) -> str:
    """``2 of 3``, and what went wrong."""
    opened = query.count if query.runs else "-"
    return f"{opened}, {counted(query.errored, 'error')}" if errors and query.errored else opened
