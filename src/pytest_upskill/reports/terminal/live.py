"""Lines that a run shows while it goes on: its progress,
and the numbers of a test with -v.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from ..._util.texts import counted, dollars, one_line, whole
from ...trials.records import Record
from ..columns import short
from .layout import Marks, TerminalLook

_MANY_CHECKS: Final = 3


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


Arms = dict[str, list[Record]]


def item_numbers(
    records: Sequence[Record], marks: Marks, against: str | None = None
) -> str:
    """``5/5 · without 1/5 · 812 → 640 tokens``: passed runs of each arm, mean tokens.

    Checks are shown where an answer passes some but not all, turns and whether the
    skill was opened where agents answer.
    """
    names = {
        "skill": "",
        "again": "again ",
        "baseline": "without ",
        "previous": f"at {one_line(against or '', 20)} ",
    }
    arms: Arms = {arm: [] for arm in names}
    for record in records:
        arms[record.arm].append(record)

    checks = {grade.check for record in records for grade in record.checks}
    if checks == {"skill_activated"}:
        parts = _opened(arms["skill"])
    else:
        parts = []
        for arm, name in names.items():
            if arms[arm]:
                passed = sum(record.outcome == "passed" for record in arms[arm])
                parts.append(f"{name}{passed}/{len(arms[arm])}")
        if any(0 < _share(record) < 1 for record in records):
            parts.append(_checks(arms))
        parts.append(_means(arms, "turns", short, _turns))
        opened = [r.activity.activated for r in arms["skill"] if r.activity]
        if opened and None not in opened:
            parts.append(f"opened {sum(map(bool, opened))}/{len(opened)}")

    parts.append(_means(arms, "tokens", whole, lambda record: record.tokens))
    return TerminalLook(marks=marks).show(" · ".join(filter(None, parts)))


def _share(record: Record) -> float:
    """Of the checks that passed."""
    passed = [grade.passed for grade in record.common_checks]
    return sum(map(bool, passed)) / len(passed) if passed else 0.0


def _turns(record: Record) -> int | None:
    return record.activity.turns if record.activity else None


def _checks(arms: Arms) -> str:
    texts = []
    for arm in ("baseline", "skill"):
        if counts := checks_of(arms[arm], arm):
            texts.append("/".join(map(short, counts)))

    return f"{' → '.join(texts)} checks"


def _means(
    arms: Arms,
    unit: str,
    write: Callable[[float], str],
    value: Callable[[Record], float | None],
) -> str:
    """``812 → 640 tokens``; without what is not known of every answer."""
    texts = []
    for arm in ("baseline", "skill"):
        values = [value(record) for record in arms[arm]]
        known = [number for number in values if number is not None]
        if known and len(known) == len(values):
            texts.append(write(fmean(known)))

    return f"{' → '.join(texts)} {unit}" if texts else ""


def _opened(records: Sequence[Record]) -> list[str]:
    """``opened 1/3``, ``docs instead 2``: the result of a query."""
    opened = 0
    instead = Counter[str]()
    for record in records:
        if record.activity and record.activity.activated:
            opened += 1
        elif record.activity:
            instead.update(record.activity.opened)

    parts = [f"opened {opened}/{len(records)}"]
    for name, number in instead.most_common(2):
        parts.append(f"{one_line(name, 40)} instead {number}")

    return parts


def checks_of(records: Iterable[Record], arm: str) -> tuple[float, float] | None:
    """Checks passed, and all checks, of an answer on average; None if there are
    none.
    """
    graded = []
    for record in records:
        if record.arm == arm and record.common_checks:
            graded.append(record.common_checks)
    if not graded:
        return None

    passed = fmean(sum(grade.passed for grade in checks) for checks in graded)
    return passed, fmean(map(len, graded))


def checks_words(records: Iterable[Record], arm: str) -> str:
    """``, 6 of 7 checks``: means over answers; empty for few checks."""
    counts = checks_of(records, arm)
    if not counts or counts[1] < _MANY_CHECKS:
        return ""

    return f", {short(counts[0])} of {short(counts[1])} checks"
