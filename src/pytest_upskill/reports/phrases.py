"""Phrases that several reports use: arms, checks, what an agent did, caching, triggers."""

from collections.abc import Iterable, Sequence
from typing import Final

from .._util.texts import counted, dollars, one_line
from ..results.summary import checks_of
from ..results.trigger_summary import TriggerSummary
from ..trials.arm import BASELINE, PREVIOUS, SKILL, TRACE
from ..trials.records import Record
from ..trials.transcript import Activity
from .numbers import short

_CENT: Final = 0.01
_MANY: Final = 3  # checks


def arm_words(arm: str, against: str | None = None) -> str:
    """``with the skill at main``: what is there in an arm; others are known by their names."""
    words = {
        SKILL: "with the skill",
        BASELINE: "without the skill",
        PREVIOUS: f"with the skill at {one_line(against or 'the git ref', 60)}",
        TRACE: "with a trace instead of the skill",
    }
    return words.get(arm, f"in the arm {one_line(arm, 60)}")


def checks_words(records: Iterable[Record], arm: str) -> str:
    """``, 6 of 7 checks``: means over answers; empty for few checks."""
    counts = checks_of(records, arm)
    if not counts or counts[1] < _MANY:
        return ""
    return f", {short(counts[0])} of {short(counts[1])} checks"


def activity_words(activity: Activity) -> str:
    """``5 turns, 4 tool calls, opened the skill``: what an agent did in a trial."""
    words = [counted(activity.turns, "turn"), counted(activity.tool_calls, "tool call")]
    if activity.activated:
        words.append("opened the skill")
    elif activity.activated is not None:
        others = one_line(", ".join(activity.opened), 100)
        words.append(f"did not open the skill{f', but {others}' if others else ''}")
    return ", ".join(words)


def cache_words(usd: float) -> str:
    """What the providers' caches saved, or cost; empty if that is not worth a cent."""
    if usd <= -_CENT:
        return f"prompt caching cost {dollars(-usd)} more than it saved"
    return f"prompt caching saved {dollars(usd)}" if usd >= _CENT else ""


# Triggers.


def size_words(rows: Sequence[TriggerSummary], times: str = "×") -> str:
    """``20 queries that need pdf, 20 that don't × 3 runs``, over all skills."""
    most = dict[str, TriggerSummary]()  # of each skill, the row with the most queries
    for row in rows:
        most[row.skill] = max(most.get(row.skill, row), row, key=lambda row: len(row.queries))
    kinds = [query.should_open for row in most.values() for query in row.queries]
    needs, spares = kinds.count(True), kinds.count(False)
    runs = counted(max(row.runs for row in rows), "run")
    need, lack = "needs" if needs == 1 else "need", "doesn't" if spares == 1 else "don't"
    skill = one_line(rows[0].skill, 60) if len(most) == 1 else "their skill"
    return f"{counted(needs, 'query')} that {need} {skill}, {spares:,} that {lack} {times} {runs}"
