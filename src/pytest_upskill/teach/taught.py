"""All that came of a lesson, as plain data."""

from dataclasses import dataclass, replace
from pathlib import Path

from ..results.run import RunResults
from .loop import best_of
from .measuring import Attempt
from .sources import TraceText
from .trying import GoodCase


@dataclass(frozen=True)
class Taught:
    """The attempts, the cases and how they were split, and what decided."""

    attempts: tuple[Attempt, ...]
    cases: tuple[GoodCase, ...]
    held: frozenset[str]  # the ids of the cases that no teacher saw failing
    stop: str  # why there was no further attempt
    held_out: RunResults | None = None
    before: RunResults | None = None  # the skill as it was, on the learning part
    teacher: RunResults | None = None  # in three arms, where there was a trace
    trace: TraceText | None = None
    no_signal: tuple[str, ...] = ()  # cases that every student passes without the skill
    notes: tuple[str, ...] = ()
    folder: Path | None = None  # where it was saved
    unsaved: str | None = None  # why it could not be saved, and where the best version is
    cost: float | None = None
    kept: Path | None = None  # where the skill is that was there before

    @property
    def best(self) -> Attempt:
        return best_of(self.attempts)

    @property
    def name(self) -> str:
        return self.best.draft.name

    @property
    def learning(self) -> RunResults | None:
        """The best attempt on the learning part."""
        return self.best.results

    @property
    def helps(self) -> bool:
        """Whether it is shown for any student that it is better with it, by all cases."""
        whole = self.together
        return whole is not None and any(verdict.word == "helps" for verdict in whole.verdicts)

    @property
    def together(self) -> RunResults | None:
        """The best attempt on all cases, learning and held out."""
        learning, held = self.learning, self.held_out
        if not learning or not held:
            return learning
        return replace(
            learning,
            tests=(*learning.tests, *held.tests),
            records=(*learning.records, *held.records),
            questions={**learning.questions, **held.questions},
        )
