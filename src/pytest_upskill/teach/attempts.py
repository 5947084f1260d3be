"""Measure a skill, let the teacher improve it by what fails, measure again; keep the best."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util.texts import counted, one_line, shortened
from ..checks import CheckedCase
from ..errors import BudgetError, UnusableError
from ..results.arm_comparison import unit_of
from ..results.run import RunResults
from ..skills.skill import Skill
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.trial import ARMS, Arm
from .case_writing import UsableCase
from .drafts import Draft, Wanted, ask_for_draft, loaded
from .failures import report_for_teacher
from .progress_lines import Screen, cells_of
from .prompts import Version, refine_prompt
from .replies import no_answer
from .teach_models import TeachModels
from .teach_settings import TeachSettings

_MOST_TRIED: Final = 8_000  # characters of an earlier version that the teacher is shown
_PLATEAU: Final = 2  # stop after this many attempts without a better one


@dataclass(frozen=True)
class Attempt:
    """A version measured on the learning cases, or why it could not be."""

    number: int
    draft: Draft
    results: RunResults | None
    problem: str | None = None
    written: bool = True  # False: the skill as it was before this run
    most_tokens: int | None = None

    @property
    def too_long(self) -> bool:
        """The current skill never is: somebody chose its length."""
        return self.written and self.draft.tokens > (self.most_tokens or self.draft.tokens)

    @property
    def label(self) -> str:
        return f"attempt {self.number}" if self.written else "current"

    @property
    def lift(self) -> float:
        """Mean over the students."""
        return mean_lift(self.results) if self.results else float("-inf")

    @property
    def worst_score(self) -> float:
        """Of the weakest student: its pass rate, or its share of checks."""
        rows = self.results.summaries if self.results else []
        return min((row.scored("skill") or 0.0 for row in rows), default=0.0)

    @property
    def merit(self) -> tuple[bool, float, int, int]:
        """What makes it the best: it helps and is not too long; lift; fewer tokens; being first."""
        fits = self.lift > 0 and not self.too_long
        return fits, self.lift, -self.draft.tokens, -self.number


def mean_lift(results: RunResults) -> float:
    lifts = [row.lift for row in results.summaries if row.lift is not None]
    return fmean(lifts) if lifts else 0.0


def checked(cases: Sequence[UsableCase]) -> list[CheckedCase]:
    return [(one.case, one.checks) for one in cases]


def measure(
    models: TeachModels,
    draft: Draft,
    cases: Sequence[UsableCase],
    measured: Mapping[Subject, str],
    scratch: Path,
    *,
    arms: Sequence[Arm] = ARMS,
    trace: str | None = None,
) -> RunResults:
    """All cases on the ``measured`` students; TeachError if one could not be asked.

    With a trace there is one more arm, which has the trace instead of the skill.
    """
    with loaded(draft, scratch) as skill:
        return measure_skill(models, replace(skill, trace=trace), cases, measured, arms)


def measure_skill(
    models: TeachModels,
    skill: Skill,
    cases: Sequence[UsableCase],
    measured: Mapping[Subject, str],
    arms: Sequence[Arm] = ARMS,
) -> RunResults:
    """The same for a skill in a folder."""
    results = models.evaluate(skill, checked(cases), measured, arms)
    require_answers(models, results.records)
    return results


def require_answers(models: TeachModels, records: Iterable[Record]) -> None:
    """TeachError if a trial has no answer."""
    for record in records:
        if record.outcome == "errored":
            raise no_answer(models, record.error or "no answer")


def passed_by_all(results: RunResults) -> set[str]:
    """The cases that every model passes in every run without the skill."""
    failed = {
        record.case
        for record in results.records
        if record.arm == "baseline" and record.outcome != "passed"
    }
    return {test.case for test in results.tests} - failed


KeepAttempt = Callable[[Attempt, list[Attempt]], None]


@dataclass(frozen=True)
class AttemptLoop:
    """What all attempts share."""

    models: TeachModels
    settings: TeachSettings
    material: str
    wanted: Wanted
    cases: Sequence[UsableCase]  # only the learning ones
    session: int
    screen: Screen
    keep: KeepAttempt

    def run(self, first: Draft) -> tuple[list[Attempt], str]:
        """All attempts, and why they ended."""
        attempts, stop = self._attempts(first)
        best = best_of(attempts)
        if len(attempts) > 1 and best.number == 1 and best.results:  # its row does not say so yet
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
            if self.models.out_of_budget:
                return attempts, f"another version {self.models.past_budget()}"
            if stop := why_stop(attempts, self.settings):
                return attempts, stop
            draft = self._next(attempts)
            if draft and any(self._same(draft, former.draft) for former in attempts):
                return attempts, "the teacher wrote nothing new"

    def _measured(self, draft: Draft, attempts: Sequence[Attempt]) -> Attempt:
        written = draft is not self.wanted.base
        most = self.wanted.most_tokens
        attempt = Attempt(len(attempts) + 1, draft, None, written=written, most_tokens=most)
        self.screen.begin(f"{attempt.label}…")
        try:
            results = measure(
                self.models, draft, self.cases, self.models.students, self.wanted.scratch
            )
        except BudgetError as error:
            return replace(attempt, problem=str(error))
        return replace(attempt, results=results)

    def _next(self, attempts: list[Attempt]) -> Draft | None:
        """A new version of the best; None if it is unusable, which counts as an attempt."""
        best = best_of(attempts)
        assert best.results, "the best attempt is a measured one"
        tried = [_tried_text(one) for one in attempts if one.number > best.number]
        prompt = refine_prompt(
            self.settings.task,
            self.material,
            Version(best.draft.description, best.draft.body, best.draft.files),
            report_for_teacher(best.results),
            tried,
            self.settings.max_skill_tokens,
            agents=self.models.with_agents,
        )
        number = len(attempts) + 1
        self.screen.begin(f"attempt {number}: {self.models.teacher} rewrites the skill…")
        try:
            return ask_for_draft(self.models, prompt, self.wanted, self.session)
        except BudgetError:
            self.screen.drop()
            return None
        except UnusableError as error:
            attempt = Attempt(number, best.draft, None, str(error))
            attempts.append(attempt)
            self._show(attempts)
            self.keep(attempt, attempts)
            return None

    def _same(self, one: Draft, other: Draft) -> bool:
        """Whether students could not tell them apart: only agents see a description."""
        if self.models.with_agents and one.description != other.description:
            return False
        return (one.body, one.files) == (other.body, other.files)

    def _show(self, attempts: list[Attempt]) -> None:
        latest = attempts[-1]
        if not latest.results:
            self.screen.line(f"{latest.label:<11}{one_line(latest.problem or '', 120)}")
            return
        better = len(attempts) > 1 and best_of(attempts) is latest
        self.screen.row(latest.label, cells_of(latest.results), "best" if better else "")


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    return max(attempts, key=lambda attempt: attempt.merit)


def why_stop(attempts: Sequence[Attempt], settings: TeachSettings) -> str | None:
    best = best_of(attempts)
    if best.worst_score >= settings.target and not best.too_long:
        how = "" if best.written else " with the current skill"
        unit = unit_of(best.results.skills[0].score) if best.results else ""
        return f"every student reached {settings.target:.0%}{unit}{how}"
    if len(attempts) >= settings.attempts:
        return f"limit of {counted(settings.attempts, 'attempt')} reached"
    if len(attempts) - best.number >= _PLATEAU:
        return f"{_PLATEAU} attempts in a row were no better"
    return None


def _tried_text(attempt: Attempt) -> str:
    """A version that was no better, or why there was none."""
    if attempt.results:
        return shortened(attempt.draft.body, _MOST_TRIED)
    return f"(attempt {attempt.number} could not be used: {attempt.problem})"
