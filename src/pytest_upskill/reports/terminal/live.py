"""Lines that a run shows while it goes on: its progress,
and the numbers of a test with -v.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..._util.texts import counted, dollars, one_line, whole
from ...results.summary import checks_of
from ...skills.suites.triggers import ACTIVATED
from ...trials.records import Record
from ..numbers import short
from .layout import Marks


@dataclass(frozen=True)
class Progress:
    """The progress of a run; tokens and cost are those of its own calls.
    None is unknown.
    """

    done: int
    all: int
    in_flight: int
    reused: int
    tokens: int
    cost: float | None
    seconds_left: float | None
    pausing: int = 0
    agents: int = 0  # at work
    turns: int = 0  # of these
    opening: str = ""  # what must happen before models can be asked
    elsewhere: int = 0  # questions that another run is asking

    @property
    def is_at_work(self) -> bool:
        """Whether an agent has begun to talk with its model."""
        return bool(self.agents and (self.turns or self.in_flight))


def progress_line(progress: Progress, width: int) -> str:
    """``upskill: 34 of 120 answers, 16 in flight, …``: the least important parts come
    last and are dropped first.
    """
    parts = [f"upskill: {progress.done:,} of {counted(progress.all, 'answer')}"]
    tokens = counted(progress.tokens, "token")
    parts += _now(progress)
    if progress.is_at_work:
        parts.append(tokens)
    # A run that waits must not look as if it hung.
    if progress.opening:
        parts.append(progress.opening)
    if progress.elsewhere:
        parts.append(f"{progress.elsewhere:,} asked by another run")
    if progress.pausing:
        parts.append(f"{progress.pausing:,} waiting to retry")
    if len(parts) == 1:
        parts.append(
            "waiting for others" if progress.done > progress.reused else "starting"
        )
    if progress.seconds_left is not None:
        parts.append(f"about {_time(progress.seconds_left)} left")
    if progress.reused:
        parts.append(f"{progress.reused:,} from cache")
    if not progress.is_at_work:
        parts.append(tokens)
    if progress.cost is not None:
        parts.append(dollars(progress.cost))
    if progress.is_at_work and progress.in_flight:
        parts.append(f"{counted(progress.in_flight, 'call')} in flight")
    while len(parts) > 1 and len(", ".join(parts)) > width:
        parts.pop()
    return ", ".join(parts)[:width]


def _now(progress: Progress) -> list[str]:
    """What agents do, or how many calls there are; empty while there is neither."""
    agents = counted(progress.agents, "agent")
    if progress.is_at_work:
        return [f"{agents} at work ({counted(progress.turns, 'turn')})"]
    if progress.agents:
        return [f"{agents} starting"]
    if progress.in_flight:
        return [f"{progress.in_flight:,} in flight"]
    return []


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def item_numbers(
    records: Sequence[Record], marks: Marks, against: str | None = None
) -> str:
    """``5/5 · baseline 1/5 · 812 → 640 tokens``: passed runs of each arm, mean tokens.

    Checks are shown where an answer passes some but not all, turns and whether the
    skill was opened where agents answer.
    """
    if {grade.check for record in records for grade in record.checks} == {ACTIVATED}:
        return _opened([record for record in records if record.arm == "skill"], marks)
    ref = one_line(against or "", 20).replace("…", marks.cut)
    names: dict[str, str] = {"skill": "", "again": "again ", "baseline": "baseline "}
    names["previous"] = f"at {ref} "
    arms = {arm: [record for record in records if record.arm == arm] for arm in names}
    parts = [f"{name}{_passed(arms[arm])}" for arm, name in names.items() if arms[arm]]
    counts = [checks_of(records, "baseline"), checks_of(records, "skill")]
    common = [[grade.passed for grade in record.common_checks] for record in records]
    if any(0 < sum(passed) < len(passed) for passed in common):
        texts = ["/".join(map(short, count)) for count in counts if count]
        parts.append(f"{f' {marks.arrow} '.join(texts)} checks")
    tokens = [_tokens(arms["baseline"]), _tokens(arms["skill"])]
    means = [whole(mean) for mean in tokens if mean is not None]
    if means:
        parts.append(f"{f' {marks.arrow} '.join(means)} tokens")
    turns = [_turns(arms["baseline"]), _turns(arms["skill"])]
    if means_of_turns := [short(mean) for mean in turns if mean is not None]:
        parts.append(f"{f' {marks.arrow} '.join(means_of_turns)} turns")
    opened = [r.activity.activated for r in arms["skill"] if r.activity]
    if opened and None not in opened:
        parts.append(f"opened {sum(map(bool, opened))}/{len(opened)}")
    return f" {marks.dot} ".join(parts)


def _opened(records: Sequence[Record], marks: Marks) -> str:
    """``opened 1/3 · docs instead 2``: the result of a query."""
    activities = [record.activity for record in records if record.activity]
    instead = Counter(
        name
        for activity in activities
        if not activity.activated
        for name in activity.opened
    )
    opened = sum(bool(activity.activated) for activity in activities)
    parts = [f"opened {opened}/{len(activities)}"]
    parts += [f"{one_line(name, 40)} instead {n}" for name, n in instead.most_common(2)]
    tokens = _tokens(records)
    return f" {marks.dot} ".join(
        [*parts, *([f"{whole(tokens)} tokens"] if tokens else [])]
    )


def _passed(records: Sequence[Record]) -> str:
    return f"{sum(record.outcome == 'passed' for record in records)}/{len(records)}"


def _turns(records: Sequence[Record]) -> float | None:
    turns = [record.activity.turns for record in records if record.activity]
    return fmean(turns) if turns and len(turns) == len(records) else None


def _tokens(records: Sequence[Record]) -> float | None:
    tokens = [record.tokens for record in records if record.tokens is not None]
    return fmean(tokens) if tokens and len(tokens) == len(records) else None
