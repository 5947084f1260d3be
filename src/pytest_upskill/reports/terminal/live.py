"""How far a run has come, on one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..._util.texts import counted, dollars, one_line
from ...trials.records import Record
from .layout import Marks


@dataclass(frozen=True)
class Progress:
    """Tokens and cost are those of this run's own calls; None is not known."""

    done: int
    all: int
    in_flight: int
    reused: int
    tokens: int
    cost: float | None
    seconds_left: float | None
    pausing: int = 0


def progress_line(progress: Progress, width: int) -> str:
    """What fits into the width; what matters least is at the end and goes first."""
    parts = [f"upskill: {progress.done:,} of {counted(progress.all, 'answer')}"]
    parts.append(f"{progress.in_flight:,} in flight")
    if progress.pausing:  # else a run that waits for a server looks as if it hung
        parts.append(f"{progress.pausing:,} waiting (limit or fault)")
    if progress.seconds_left is not None:
        parts.append(f"about {_time(progress.seconds_left)} left")
    if progress.reused:
        parts.append(f"{progress.reused:,} re-used")
    parts.append(counted(progress.tokens, "token"))
    if progress.cost is not None:
        parts.append(dollars(progress.cost))
    while len(parts) > 1 and len(", ".join(parts)) > width:
        parts.pop()
    return ", ".join(parts)[:width]


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def item_numbers(records: Sequence[Record], marks: Marks, against: str | None = None) -> str:
    """Runs that passed of those that there are, by arm, and the mean tokens of an answer."""
    arms = {
        arm: [record for record in records if record.arm == arm]
        for arm in ("skill", "baseline", "previous")
    }
    parts = [_passed(arms["skill"])] if arms["skill"] else []
    if arms["baseline"]:
        parts.append(f"baseline {_passed(arms['baseline'])}")
    if arms["previous"]:
        ref = one_line(against or "", 20).replace("…", marks.cut)
        parts.append(f"at {ref} {_passed(arms['previous'])}")
    means = [mean for arm in ("baseline", "skill") if (mean := _tokens(arms[arm])) is not None]
    if means:
        parts.append(f"{f' {marks.arrow} '.join(f'{mean:,.0f}' for mean in means)} tokens")
    return f" {marks.dot} ".join(parts)


def _passed(records: Sequence[Record]) -> str:
    return f"{sum(record.outcome == 'passed' for record in records)}/{len(records)}"


def _tokens(records: Sequence[Record]) -> float | None:
    known = [record.tokens for record in records if record.tokens is not None]
    return fmean(known) if known and len(known) == len(records) else None
