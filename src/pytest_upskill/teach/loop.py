"""The loop: measure, show the teacher what fails, measure its next version; the best is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .._util.texts import one_line, shortened
from ..errors import BudgetError, UnusableError
from .classroom import Classroom
from .drafting import Draft, Wanted, ask_for_draft
from .lesson import Lesson
from .measuring import Attempt, measure, told_to_teacher
from .prompts import refine_prompt
from .screen import Screen, cells_of
from .trying import GoodCase

_PLATEAU: Final = 2  # so many attempts without a better one are enough
_MOST_TRIED: Final = 8_000  # characters of a version that did no better

KeepAttempt = Callable[[Attempt, list[Attempt]], None]


@dataclass(frozen=True)
class Loop:
    """What stays the same from attempt to attempt."""

    room: Classroom
    lesson: Lesson
    material: str
    wanted: Wanted
    cases: Sequence[GoodCase]  # those of the learning part, and no others
    session: int
    screen: Screen
    keep: KeepAttempt

    def run(self, first: Draft) -> tuple[list[Attempt], str]:
        """All attempts, and why there were no more."""
        attempts, stop = self._attempts(first)
        best = best_of(attempts)
        if len(attempts) > 1 and best.number == 1 and best.results:  # its row did not say so yet
            self.screen.row(best.label, cells_of(best.results), "best")
        return attempts, stop

    def _attempts(self, first: Draft) -> tuple[list[Attempt], str]:
        attempts: list[Attempt] = []
        draft: Draft | None = first
        while True:
            attempt = self._measured(draft, attempts) if draft else None
            if attempt:
                attempts.append(attempt)
                self._show(attempts)
                self.keep(attempt, attempts)
            if self.room.out_of_budget:
                return attempts, f"another version {self.room.past_budget()}"
            if stop := why_stop(attempts, self.lesson):
                return attempts, stop
            draft = self._next(attempts)
            if draft and any(_same(draft, former.draft) for former in attempts):
                return attempts, "the teacher had nothing new to write"

    def _measured(self, draft: Draft, attempts: Sequence[Attempt]) -> Attempt:
        written = draft is not self.wanted.base
        most = self.wanted.most_tokens
        attempt = Attempt(len(attempts) + 1, draft, None, written=written, most_tokens=most)
        self.screen.begin(f"{attempt.label}…")
        try:
            results = measure(self.room, draft, self.cases, self.room.students, self.wanted.scratch)
        except BudgetError as error:
            return replace(attempt, problem=str(error))
        return replace(attempt, results=results)

    def _next(self, attempts: list[Attempt]) -> Draft | None:
        """A new version of the best; None if it is none, which counts as an attempt."""
        best = best_of(attempts)
        assert best.results, "a best attempt is one that was measured"
        tried = [_told(one) for one in attempts if one.number > best.number]
        prompt = refine_prompt(
            self.lesson.task,
            self.material,
            best.draft.body,
            told_to_teacher(best.results),
            tried,
            self.lesson.max_skill_tokens,
        )
        number = len(attempts) + 1
        self.screen.begin(f"attempt {number}: {self.room.teacher} rewrites the skill…")
        try:
            return ask_for_draft(self.room, prompt, self.wanted, self.session)
        except BudgetError:
            self.screen.drop()
            return None
        except UnusableError as error:
            attempt = Attempt(number, best.draft, None, str(error))
            attempts.append(attempt)
            self._show(attempts)
            self.keep(attempt, attempts)
            return None

    def _show(self, attempts: list[Attempt]) -> None:
        latest = attempts[-1]
        if not latest.results:
            self.screen.line(f"{latest.label:<11}{one_line(latest.problem or '', 120)}")
            return
        better = len(attempts) > 1 and best_of(attempts) is latest
        self.screen.row(latest.label, cells_of(latest.results), "best" if better else "")


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    return max(attempts, key=lambda attempt: attempt.merit)


def why_stop(attempts: Sequence[Attempt], lesson: Lesson) -> str | None:
    best = best_of(attempts)
    if best.worst_rate >= lesson.target and not best.too_long:
        how = "" if best.written else " with the skill as it is"
        return f"every student reached {lesson.target:.0%}{how}"
    if len(attempts) >= lesson.attempts:
        return f"no more than {lesson.attempts} were allowed (--attempts)"
    if len(attempts) - best.number >= _PLATEAU:
        return f"{_PLATEAU} attempts in a row did no better"
    return None


def _same(one: Draft, other: Draft) -> bool:
    return (one.body, one.files) == (other.body, other.files)


def _told(attempt: Attempt) -> str:
    """A version that did no better, or why there was none."""
    if attempt.results:
        return shortened(attempt.draft.body, _MOST_TRIED)
    return f"(attempt {attempt.number} could not be used: {attempt.problem})"
