"""One call to a model: the question, the answer, and what a failure means."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from .._util.keys import hide_keys
from .._util.texts import plain
from ..checks.judging import is_worth_keeping
from ..errors import ModelError, Spell
from ..models import Model
from ..models.sdk_errors import MORE_TIME
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.answer_times import dated
from .lane import Job, Lane, adapter_error
from .pace import PATIENCE, pause
from .store import KnownAnswers


@dataclass(frozen=True)
class ModelFacts:
    """What the engine needs of models, each by its name."""

    open: Callable[[str], Awaitable[Model]]
    timeout: Callable[[str], float]  # seconds that an answer may take
    takes_tools: Callable[[str], bool] = lambda _: True
    # Tokens of the shortest prefix that its server caches
    caches_from: Callable[[str], int | None] = lambda _: None


class Retry(NamedTuple):
    """A question is to be asked again; a refused one as soon as the lane allows."""

    seconds: float = 0.0


class ModelCalls:
    """Asks questions, once per call."""

    def __init__(self, models: ModelFacts, answers: KnownAnswers, spell: Spell) -> None:
        self._models = models
        self._answers = answers
        self._spell = spell
        self.random = Random()

    async def make(self, lane: Lane, job: Job) -> Reply | Retry:
        """Ask once."""
        timeout = self._models.timeout(lane.name)
        try:
            answer = await self._ask(lane, job, max(0.0, timeout - job.spent))
        except TimeoutError:
            assert lane.model
            at = f" from {lane.model.address}" if lane.model.address else ""
            problem = f"no answer{at} within {plain(timeout)} s"
            error = ModelError(problem, MORE_TIME, timed_out=True)
            return self._after_error(lane, job, error)
        except ModelError as error:
            job.paid = None if error.paid is None else Usage(*error.paid)
            return self._after_error(lane, job, error)
        except (Exception, SystemExit) as bug:  # a script may call sys.exit()
            return NoAnswer(adapter_error(lane.name, bug))

        job.paid = answer.usage
        now = _now()
        lane.note_answer(job, now)
        seconds = now - job.started_at
        answer = dated(replace(answer, seconds=seconds, retries=job.retries))
        if not job.of_trial and is_worth_keeping(job.question, answer):
            self._answers.put(job.question, answer)
        return answer

    async def _ask(self, lane: Lane, job: Job, timeout: float) -> Answer:
        assert lane.model
        async with lane.limit.deadlines.limit(timeout):
            question = hide_keys(job.question)
            if job.shared:
                question = replace(question, shared=job.shared)
            if job.send:
                answer = await job.send(lane.model)
            elif question.choice:
                answer = await lane.chooser.ask(lane.model, question)
            else:
                answer = await lane.model.ask(question)
        if not isinstance(answer, Answer):
            raise TypeError(f"ask returned {answer!r}, not an Answer")
        return hide_keys(answer)  # before it is stored, graded or shown

    def _after_error(self, lane: Lane, job: Job, error: ModelError) -> Reply | Retry:
        """When to ask again, or why there is no answer.

        A question that runs out of time in a second run has a failed answer.
        """
        now = _now()
        if error.rate_limited or (error.no_connection and lane.waits_for_others()):
            return self._after_refusal(lane, job, error, now)

        lane.note_failure(timed_out=error.timed_out)
        wait = pause(job.attempts, error.retry_after, self.random)
        job.spent += now - job.started_at
        if job.may_retry(wait, error, self._models.timeout(lane.name)):
            job.retries += 1
            job.spent += wait
            return Retry(wait)

        tries = f" ({job.attempts} attempts)" if job.attempts > 1 else ""
        reason = f"{lane.name}: {error.message(self._spell, tries)}"
        # If no server has answered so far, the other questions would fail the same way.
        unreachable = error.unreachable and not lane.answered
        if error.used_up or unreachable or (error.fatal and lane.note_fatal_error()):
            lane.dead = reason
        if error.timed_out and not job.of_trial:
            late = Answer("", stop="time", retries=job.retries)
            if failed := self._answers.put_late(job.question, late):
                return failed
        return NoAnswer(reason, job.retries, error.timed_out)

    def _after_refusal(
        self, lane: Lane, job: Job, error: ModelError, now: float
    ) -> Reply | Retry:
        """Ask again once the server takes calls, or give up on the model."""
        if lane.note_refusal(job, error, now, self.random):
            return Retry()

        detail = f" (no call was taken for {_minutes(PATIENCE)})"
        if error.retry_after and error.retry_after > PATIENCE:
            detail = f" (it asks to wait for {_minutes(error.retry_after)})"
        lane.dead = lane.dead or f"{lane.name}: {error.message(self._spell, detail)}"
        return NoAnswer(lane.dead)


def _minutes(seconds: float) -> str:
    hours = seconds / 3600
    if hours < 2:
        return f"{round(60 * hours)} min"
    return f"{round(hours)} h" if hours < 48 else "days"


def _now() -> float:
    return asyncio.get_running_loop().time()
