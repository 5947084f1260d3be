"""How far a run has come, on one line."""

from dataclasses import dataclass

from ..._util.texts import counted, dollars


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
