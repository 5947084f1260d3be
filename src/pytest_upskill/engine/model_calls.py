"""One call to a model: the question, the answer, and what a failure means."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from .._util.texts import plain
from ..checks.judging import is_worth_keeping
from ..errors import ModelError, Spell
from ..models.sdk_errors import MORE_TIME
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.answer_times import dated
from .lane import Job, Lane, adapter_error
from .pace import PATIENCE, pause
from .store import KnownAnswers


class ModelCalls:
    """Asks questions, once per call.

    ``retry`` schedules a question to be asked again after some seconds;
    returns whether it did.
    """

    def __init__(
        self,
        timeout_of: Callable[[str], float],
        answers: KnownAnswers,
        spell: Spell,
        retry: Callable[[Lane, Job, float], bool],
    ) -> None:
        self._timeout_of = timeout_of
        self._answers = answers
        self._spell = spell
        self._retry = retry
        self.random = Random()

    async def make(self, lane: Lane, job: Job) -> Reply | None:
        """Ask once; None if the question will be asked again."""
        assert lane.model is not None
        assert lane.limit is not None
        timeout = self._timeout_of(lane.name)
        try:
            async with lane.limit.deadlines.limit(max(0.0, timeout - job.spent)):
                question = job.question.without_keys()
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
            answer = answer.without_keys()  # before it is stored, graded or shown
        except TimeoutError:
            at = f" from {lane.model.address}" if lane.model.address else ""
            problem = f"no answer{at} within {plain(timeout)} s"
            return self._failed(
                lane, job, ModelError(problem, MORE_TIME, timed_out=True)
            )
        except ModelError as error:
            job.paid = None if error.paid is None else Usage(*error.paid)
            return self._failed(lane, job, error)
        except (Exception, SystemExit) as bug:  # a script may call sys.exit()
            return NoAnswer(adapter_error(lane.name, bug))
        job.paid = answer.usage
        now = _now()
        seconds = now - job.started_at
        lane.note_answer(job, answer, now)
        answer = dated(replace(answer, seconds=seconds, quotas=(), retries=job.retries))
        if not job.of_trial and is_worth_keeping(job.question, answer):
            self._answers.put(job.question, answer)
        return answer

    def _failed(self, lane: Lane, job: Job, error: ModelError) -> Reply | None:
        """Schedule a retry (None), or say why there is no answer.

        A question that runs out of time in a second run has a failed answer.
        """
        now = _now()
        if error.rate_limited or (error.no_connection and lane.waits_for_others()):
            return self._refused(lane, job, error, now)
        lane.note_failure(timed_out=error.timed_out)
        wait = pause(job.attempts, error.retry_after, self.random)
        job.spent += now - job.started_at
        if job.may_retry(wait, error, self._timeout_of(lane.name)) and self._retry(
            lane, job, wait
        ):
            lane.retries += 1
            job.retries += 1
            job.spent += wait
            return None
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

    def _refused(
        self, lane: Lane, job: Job, error: ModelError, now: float
    ) -> NoAnswer | None:
        """Queue the question again (None), or give up on the model."""
        if lane.note_refusal(job, error, now, self.random):
            lane.retries += 1
            lane.enqueue(job)
            return None
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
