"""Questions that go by batch: gathered, submitted, waited for, collected.

What is submitted is saved on disk first, so that any later run can collect it: a
question that is in a saved batch is never submitted again, even if it is not known
whether the server has the batch. While something else is being asked, questions are
gathered, as a judge's questions follow from answers.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple, cast

from .._util.texts import counted
from ..checks.judging import is_worth_keeping
from ..errors import ModelError, Setting, Spell, Text, shown
from ..models import Model
from ..models.batching import (
    Batching,
    BatchRequest,
    BatchResult,
    BatchState,
    batches_of,
)
from ..trials.answer import Answer, NoAnswer, Usage
from ..trials.trial import Question
from .agent_jobs import Begin
from .batch_files import BatchFiles, SavedBatch
from .budget import Budget
from .lane import GOES_ON, STOPPED, Job, Lane, adapter_error, over_budget
from .pace import PATIENCE, pause
from .prefixes import with_shared
from .store import KnownAnswers

_GATHERING: Final = 0.2  # seconds without a new question before a batch is submitted
_MOST_ATTEMPTS: Final = 5
_MOST_SUBMITTED: Final = 3  # times that a question is submitted, adapted each time
_MOST_INCOMPLETE: Final = 3  # times that results are fetched if some are missing
_FIRST_POLL: Final = 1.0  # seconds
_LAST_POLL: Final = 60.0
_GROWTH: Final = 1.5
_SILENCE: Final = 3600.0  # seconds that a server may be out of reach
_DELETE: Final = "Delete the file to submit its questions again"
_UNKNOWN: Final = "it is not known whether this batch was submitted"


@dataclass(frozen=True)
class BatchOptions:
    """What goes by batch, and how."""

    takes: Callable[[str], bool]  # whether a model has batches
    files: BatchFiles
    waits: bool = True  # or each batch is looked at once
    fallback: bool = False  # ask without a batch what failed in one


class Waiting(NamedTuple):
    """Batches that have not ended."""

    batches: int
    questions: int
    done: int
    since: float  # time.time()
    trouble: str = ""  # why a server could not be reached lately


@dataclass(eq=False)
class _Submitted:
    """A batch, and the questions of this run that are in it."""

    lane: Lane
    saved: SavedBatch
    # By the keys of their answers, which are the ids of their requests
    jobs: dict[str, Job]
    state: BatchState | None = None
    trouble: str = ""
    pending: bool = False  # looked at, and not ended
    incomplete: int = 0  # times that it had ended without all results


@dataclass
class Batches:
    """All batches of a run."""

    options: BatchOptions
    answers: KnownAnswers
    budget: Budget
    spell: Spell
    pump: Callable[[], None]
    lease: Callable[[Job], bool]  # whether to ask a question: no other run is asking it
    planned: set[str] = field(default_factory=set)  # keys of the plan's questions
    submitted: list[_Submitted] = field(default_factory=list)
    pending_jobs: set[Job] = field(default_factory=set)  # neither gathered nor settled
    failed: int = 0  # questions that the next run submits again
    # Until other questions have cost less than the budget reserves for them.
    deferred: list[tuple[Lane, Job]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random()
        self._start: Begin | None = None

    def takes(self, question: Question) -> bool:
        """Whether to gather a question: those of the plan, and the judge's first ones.

        Others come one by one, so that each would be a batch of its own.
        """
        of_judge = question.verdicts is not None and len(question.messages) == 1
        gathered = of_judge or question.key in self.planned
        return gathered and not question.task and self.options.takes(question.model)

    def begin(self, lanes: Iterable[Lane], start: Begin) -> None:
        """Submit what was gathered, now that nothing else is being asked."""
        self._start = start
        if not self.submitted:
            self._gather_deferred()
        for lane in lanes:
            if lane.by_batch and lane.model and not lane.submitting:
                lane.submitting = True
                start(self._flush(lane))

    def stop(self, reason: str) -> None:
        """Wait no longer; the batches go on."""
        jobs, self.pending_jobs, self.deferred = self.pending_jobs, set(), []
        submitted = _jobs_of(self.submitted)
        for job in jobs:
            goes_on = job in submitted and reason == STOPPED
            job.settle(NoAnswer(GOES_ON if goes_on else reason))

    def _gather_deferred(self) -> None:
        deferred, self.deferred = self.deferred, []
        for lane, job in deferred:
            self.pending_jobs.discard(job)
            lane.by_batch.append(job)

    @property
    def waiting(self) -> Waiting | None:
        """What the servers have; None if they have nothing."""
        batches = [batch for batch in list(self.submitted) if batch.jobs]
        if not batches:
            return None
        return Waiting(
            len(batches),
            sum(len(batch.jobs) for batch in batches),
            sum(
                min(batch.state.done, len(batch.jobs))
                for batch in batches
                if batch.state
            ),
            min(batch.saved.created for batch in batches),
            next((batch.trouble for batch in batches if batch.trouble), ""),
        )

    @property
    def pending(self) -> set[Job]:
        """The questions that a later run will find an answer to."""
        not_ended = _jobs_of(batch for batch in self.submitted if batch.pending)
        return not_ended | {job for _, job in self.deferred}

    # Submitting.

    async def _flush(self, lane: Lane) -> None:
        try:
            number = -1
            while number != len(lane.by_batch):  # answers come in one by one
                number = len(lane.by_batch)
                await asyncio.sleep(_GATHERING)
            jobs, lane.by_batch = lane.by_batch, []
            self.pending_jobs.update(jobs)
            await self._send(lane, jobs)
        finally:
            lane.submitting = False
        self.pump()

    async def _send(self, lane: Lane, jobs: Sequence[Job]) -> None:
        keys = {key: job for job in jobs if (key := self.answers.key_of(job.question))}
        started = list[_Submitted]()
        try:
            async with self.options.files.alone():
                # Another run may have collected it just now
                for key, job in list(keys.items()):
                    reply = self.answers.get(job.question)
                    if isinstance(reply, Answer) and job.is_new(reply):
                        self._settle(keys.pop(key), reply)
                for saved in self.options.files.all():
                    in_batch = {key: keys.pop(key) for key in saved.keys if key in keys}
                    if in_batch and not saved.id:
                        self._give_up(
                            lane, in_batch.values(), _unknown(saved, _UNKNOWN)
                        )
                    elif in_batch:
                        started.append(_Submitted(lane, saved, in_batch))
                        for job in in_batch.values():
                            self.budget.hold_paid(job.question)
                for key, job in list(keys.items()):
                    if not self.lease(job):
                        self.pending_jobs.discard(keys.pop(key))
                if keys and (problem := self.options.files.unreadable):
                    hint = "Restore it, or delete it to submit its questions again"
                    raise ModelError(problem, hint)
                await self._submit(lane, keys, started)
        except ModelError as error:
            # Batches that were submitted are waited for all the same.
            submitted = _jobs_of(started)
            self._give_up(lane, [job for job in jobs if job not in submitted], error)
        self.submitted += started
        assert self._start
        for batch in started:
            self._start(self._watch(batch))

    async def _submit(
        self, lane: Lane, jobs: dict[str, Job], started: list[_Submitted]
    ) -> None:
        port, affordable = _port(lane), dict[str, Job]()
        for key, job in jobs.items():
            if refusal := self.budget.refusal_in_batch(job.question):
                self._settle(job, over_budget(refusal, self.spell))
            elif self.budget.hold_worst(job.question):
                affordable[key] = job
            else:
                self.deferred.append((lane, job))
        questions = [job.question for job in affordable.values()]
        questions = with_shared(questions, lane.prefixes.min_tokens)
        requests = [
            port.request(*pair) for pair in zip(affordable, questions, strict=True)
        ]
        assert lane.model
        try:
            for part in batches_of(requests, port.limits):
                keys = [request.id for request in part]
                saved = self.options.files.begin(lane.name, lane.model.address, keys)
                in_batch = {key: affordable.pop(key) for key in keys}
                try:
                    saved.id = await self._id_of(lane, saved, part)
                except ModelError as error:
                    self._release(in_batch.values())
                    self._give_up(lane, in_batch.values(), error)
                    continue
                # First, so that this run collects it even if its id can't be saved.
                started.append(_Submitted(lane, saved, in_batch))
                self.options.files.save(saved)
        finally:
            self._release(affordable.values())

    def _release(self, jobs: Iterable[Job]) -> None:
        """Nothing was paid for these questions."""
        for job in jobs:
            self.budget.settle(job.question, None)

    async def _id_of(
        self, lane: Lane, saved: SavedBatch, requests: Sequence[BatchRequest]
    ) -> str:
        """Submit a batch; again only if the server has certainly refused it."""
        attempt = 0
        while True:
            attempt += 1
            submitting = asyncio.ensure_future(_port(lane).submit(requests))
            try:
                return await asyncio.shield(submitting)
            except asyncio.CancelledError:  # the run is stopped: later ones need the id
                with suppress(ModelError):
                    saved.id = await submitting
                    self.options.files.save(saved)
                raise
            except ModelError as error:
                if error.paid is not None:
                    raise _unknown(saved, f"{error.problem}: {_UNKNOWN}") from None
                wait = pause(attempt, error.retry_after, self._random)
                if not error.transient or attempt == _MOST_ATTEMPTS or wait > PATIENCE:
                    self.options.files.forget(saved)
                    if _is_unknown(error):
                        hint = (
                            "If this server has no batches, drop ",
                            Setting("batch"),
                        )
                        raise ModelError(error.problem, hint, fatal=True) from None
                    raise
                lane.retries += 1
                await asyncio.sleep(wait)

    # Waiting.

    async def _watch(self, batch: _Submitted) -> None:
        """Wait for the end of a batch, and take its results."""
        wait, last_reply = _FIRST_POLL, time.monotonic()
        try:
            while True:
                try:
                    batch.state = await _port(batch.lane).state(batch.saved.id)
                    batch.trouble = ""
                    if batch.state.ended:
                        await self._collect(batch)
                        break
                    last_reply = time.monotonic()
                except ModelError as error:
                    if not error.transient or time.monotonic() - last_reply > _SILENCE:
                        raise
                    batch.trouble = error.problem
                    wait = max(wait, error.retry_after or 0.0)
                if not self.options.waits and (
                    not batch.trouble or wait > 4 * _FIRST_POLL
                ):
                    batch.pending = True
                    return
                await asyncio.sleep(self._random.uniform(0.8, 1.0) * wait)
                wait = min(_LAST_POLL, _GROWTH * wait)
        except ModelError as error:
            saved, unknown = batch.saved, _is_unknown(error)
            problem = (
                f"{error.problem} (batch {saved.id}, saved as {shown(saved.file)})"
            )
            hint = (
                f"Was it submitted with another key? {_DELETE}"
                if unknown
                else error.hint
            )
            jobs, batch.jobs = batch.jobs, {}
            self._release(jobs.values())
            fatal = error.fatal and not unknown
            self._give_up(
                batch.lane, jobs.values(), ModelError(problem, hint, fatal=fatal)
            )
            self.submitted.remove(batch)
        self._gather_deferred()
        self.pump()

    async def _collect(self, batch: _Submitted) -> None:
        """Take the results; ModelError if some are missing,
        after the others were taken.
        """
        saved, port, state = batch.saved, _port(batch.lane), batch.state
        ids, taken = set[str](), set[str]()
        assert state
        try:
            async for result in port.results(saved.id, saved.number):
                ids.add(result.id)
                job = batch.jobs.pop(result.id, None)
                if job and await self._take(batch, job, result):
                    taken.add(result.id)
        except ModelError as error:
            if not (state.problem and _is_unknown(error)):
                raise
        finally:
            saved.keys = [key for key in saved.keys if key not in taken]
        if batch.jobs and not (state.problem and len(ids) >= state.done):
            self._note_incomplete(batch)
        missing, batch.jobs = batch.jobs, {}
        saved.keys = [key for key in saved.keys if key not in missing]
        for key, job in missing.items():
            problem = state.problem or "its batch has no result for it"
            await self._take(batch, job, BatchResult(key, problem=problem))
        self.options.files.save(saved)
        self.submitted.remove(batch)

    def _note_incomplete(self, batch: _Submitted) -> None:
        """The missing results may have been cut off, and are paid for:
        fetch them again.
        """
        self.options.files.save(batch.saved)
        batch.incomplete += 1
        may_retry = batch.incomplete < _MOST_INCOMPLETE
        if may_retry or not self.options.fallback:
            results = counted(len(batch.jobs), "answer")
            problem = f"the batch has ended, but its results lack {results}"
            raise ModelError(problem, _DELETE, transient=may_retry)

    async def _take(self, batch: _Submitted, job: Job, result: BatchResult) -> bool:
        """Settle a question; returns whether its result is not needed any more."""
        lane, asked_at = batch.lane, int(batch.saved.created)
        try:
            answer = await self._answer(lane, job.question, result)
            answer = replace(answer, asked_at=asked_at)
        except ModelError as error:
            paid = (
                None if error.paid is None else replace(Usage(*error.paid), batch=True)
            )
            self.budget.settle(job.question, paid)
            if job.submitted < _MOST_SUBMITTED and _port(lane).adapts(
                job.question, result
            ):
                self._gather(lane, job)
            else:
                self._failed(lane, job, error)
            return True
        except (Exception, SystemExit) as bug:
            self.budget.settle(job.question, None)
            self._settle(job, NoAnswer(adapter_error(lane.name, bug)))
            return False
        self.budget.settle(job.question, answer.usage, answer)
        lane.answered = True
        is_saved = True
        if is_worth_keeping(job.question, answer):
            is_saved = self.answers.put(job.question, answer)
        self._settle(job, answer)
        return is_saved

    async def _answer(
        self, lane: Lane, question: Question, result: BatchResult
    ) -> Answer:
        model, sent = _AnsweredModel(_port(lane), result), question.without_keys()
        if question.choice:
            answer = await lane.chooser.ask(cast(Model, model), sent)
        else:
            answer = await model.ask(sent)
        usage = replace(answer.usage, batch=True)
        # No provider says how long a question took.
        return replace(answer.without_keys(), usage=usage, seconds=None, quotas=())

    def _failed(self, lane: Lane, job: Job, error: ModelError) -> None:
        if self.options.fallback:
            self.pending_jobs.discard(job)
            job.retries += 1
            lane.add(job)
            return
        self.failed += 1
        ask: Text = (
            "Run again, or by ",
            Setting("batch"),
            "=fallback to ask without a batch",
        )
        hinted = ModelError(error.problem, error.hint or ask)
        self._settle(job, NoAnswer(f"{lane.name}: {hinted.message(self.spell)}"))

    def _gather(self, lane: Lane, job: Job) -> None:
        job.submitted += 1
        self.pending_jobs.discard(job)
        lane.by_batch.append(job)

    def _give_up(self, lane: Lane, jobs: Iterable[Job], error: ModelError) -> None:
        reason = f"{lane.name}: {error.message(self.spell)}"
        if error.fatal:
            lane.dead = lane.dead or reason
        for job in jobs:
            if job in self.pending_jobs:
                self._settle(job, NoAnswer(reason))

    def _settle(self, job: Job, reply: Answer | NoAnswer) -> None:
        self.pending_jobs.discard(job)
        job.settle(reply)


def _jobs_of(batches: Iterable[_Submitted]) -> set[Job]:
    return {job for batch in batches for job in batch.jobs.values()}


def _unknown(saved: SavedBatch, problem: str) -> ModelError:
    number = counted(saved.number, "question")
    hint = f"Look for a batch of {number} at the provider. {_DELETE}"
    return ModelError(f"{problem} (saved as {shown(saved.file)})", hint)


def _is_unknown(error: ModelError) -> bool:
    """Whether a server does not know what it is asked about."""
    return error.problem.startswith("404 ")


def _port(lane: Lane) -> Batching:
    assert lane.model
    port: Batching = lane.model.batches()  # type: ignore[attr-defined]
    return port


@dataclass
class _AnsweredModel:
    """A model that has answered already, in a batch."""

    port: Batching
    result: BatchResult | None

    async def ask(self, question: Question) -> Answer:
        result, self.result = self.result, None
        if result is None:
            raise ModelError("its batch can't be asked a second question")
        if result.problem:
            raise ModelError(result.problem)
        return self.port.answer(result.reply, question)
