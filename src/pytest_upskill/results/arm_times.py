"""When the arms of a skill were asked on a model, and whether they can be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ..options import DAY, age_words
from ..trials.arm import BASELINE, SKILL
from ..trials.records import Record, asked_apart

_SAME_TIME: Final = timedelta(hours=1)
ARM_WORDS: Final = {BASELINE: "without the skill", SKILL: "with the skill"}


@dataclass(frozen=True)
class AskedTimes:
    """The first and the last time that each arm was asked, where it is known."""

    first: Mapping[str, datetime]
    last: Mapping[str, datetime]
    max_age: float = DAY  # seconds between arms that can be compared
    is_apart: bool = False  # whether those of a complete run are further apart

    def words(self, started: datetime) -> str:
        """``asked without the skill 2026-11-10, with the skill 2026-11-17``; empty if
        all were asked at about the same time, on the run's day.
        """
        oldest = min(self.first.values(), default=started)
        is_recent = oldest > started - _SAME_TIME
        is_today = is_recent or oldest.date() == started.astimezone(UTC).date()
        if is_today and self._spread <= _SAME_TIME:
            return ""
        return f"asked {self._spans}"

    @property
    def apart_words(self) -> str:
        return f"asked more than {age_words(self.max_age)} apart: {self._spans}"

    @property
    def _spread(self) -> timedelta:
        """How far apart the arms began, or ended."""
        spread = timedelta()
        for times in (self.first.values(), self.last.values()):
            if times:
                spread = max(spread, max(times) - min(times))
        return spread

    @property
    def _spans(self) -> str:
        """``without the skill 2026-11-10, with the skill 2026-11-17``."""
        days = {time.date() for time in (*self.first.values(), *self.last.values())}
        by_hour = len(days) == 1 and self._spread > _SAME_TIME
        form = "%Y-%m-%d %H:%M UTC" if by_hour else "%Y-%m-%d"
        spans = {}
        for arm, first in self.first.items():
            ends = dict.fromkeys([f"{first:{form}}", f"{self.last[arm]:{form}}"])
            spans[arm] = " to ".join(ends)

        if len(set(spans.values())) == 1:
            return next(iter(spans.values()))
        words = [f"{ARM_WORDS.get(arm, arm)} {span}" for arm, span in spans.items()]
        return ", ".join(words)


def asked_times(records: Iterable[Record], max_age: float) -> AskedTimes:
    """The times of these records, of complete runs."""
    records = list(records)
    times: dict[str, list[int]] = {}
    for record in records:
        if record.asked_at is not None:
            times.setdefault(record.arm, []).append(record.asked_at)
    return AskedTimes(
        first={arm: datetime.fromtimestamp(min(of), UTC) for arm, of in times.items()},
        last={arm: datetime.fromtimestamp(max(of), UTC) for arm, of in times.items()},
        max_age=max_age,
        is_apart=asked_apart(records, max_age),
    )
