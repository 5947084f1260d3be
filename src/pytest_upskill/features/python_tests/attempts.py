"""A test's function, called once in every arm and run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import pytest

from ..._util import grouped
from ..._util.texts import one_line
from ...results.outcomes import next_trial
from ...settings import Settings
from ...trials.answer import Answer, NoAnswer, joined
from ...trials.answer_times import outdated
from ...trials.plan import PlannedCase
from ...trials.records import (
    Grade,
    Record,
    make_record,
)
from ...trials.trial import Question, Trial

NOTHING_ASKED: Final = "this test never called ask, so it says nothing about the skill"
_MAX_REASON_LENGTH: Final = 300


class AskFailed(BaseException):
    """No answer. Not an Exception, so that no ``except`` of a test catches it."""

    def __init__(self, reason: str, *, over_budget: bool = False) -> None:
        super().__init__(reason)
        self.over_budget = over_budget


@dataclass
class Attempt:
    """What came of a test's function in an arm and run."""

    trial: Trial
    renew: bool = False  # it may use no stored answer
    questions: list[Question] = field(default_factory=list)  # that were answered
    answers: list[Answer] = field(default_factory=list)
    failure: BaseException | None = None

    @property
    def asked_at(self) -> int | None:
        """When the oldest of its answers was given."""
        times = [answer.asked_at for answer in self.answers]
        return min((time for time in times if time is not None), default=None)

    def record(self) -> Record:
        """One record of everything that was asked."""
        failure = self.failure
        if isinstance(failure, AskFailed):
            # With an answer the test has begun, and is not left out for the budget.
            over_budget = failure.over_budget and not self.answers
            reply = NoAnswer(str(failure), over_budget=over_budget)
            return make_record(self.trial, reply)

        if not self.answers:
            return make_record(self.trial, NoAnswer(NOTHING_ASKED))

        reason = "all asserts passed"
        if failure is not None:
            is_assert = isinstance(failure, AssertionError) and str(failure)
            text = str(failure) if is_assert else repr(failure)
            reason = one_line(text, _MAX_REASON_LENGTH)
        grade = Grade("assert", failure is None, reason)
        return make_record(self.trial, joined(self.answers), (grade,))


def make_attempts(
    planned: PlannedCase, call: Callable[[Attempt], None], settings: Settings
) -> list[Attempt]:
    """One attempt in every arm and run.

    A skip, an exit or Ctrl-C passes through. Any other failure is kept.
    """

    def attempt(trial: Trial, *, renew: bool = False) -> Attempt:
        made = Attempt(trial, renew)
        try:
            call(made)
        except (Exception, pytest.fail.Exception, AskFailed) as failure:
            made.failure = failure
        return made

    attempts = {trial: attempt(trial) for trial in planned.trials}
    if not settings.replay_file:
        for trial in _find_outdated(attempts.values(), settings.max_age):
            attempts[trial] = attempt(trial, renew=True)

    records = [made.record() for made in attempts.values()]
    while extra := next_trial(planned, records):
        attempts[extra] = attempt(extra)
        records.append(attempts[extra].record())

    return list(attempts.values())


def _find_outdated(attempts: Iterable[Attempt], max_age: float) -> list[Trial]:
    """Trials whose answers are too old to be compared with those of other arms."""
    trials = []
    for of_run in grouped(attempts, lambda attempt: attempt.trial.run).values():
        times = {attempt.trial: attempt.asked_at for attempt in of_run}
        known = {trial: time for trial, time in times.items() if time is not None}
        trials += outdated(known, max_age)
    return trials
