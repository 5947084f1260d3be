"""Questions that go by batch: gathered, submitted, waited for, collected.

What was submitted is kept on disk before and after, so that any later run can collect it: a
question that is in a kept batch is never submitted again. While something else is being asked,
questions are gathered, as a judge's follow from answers.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple, cast

from .._util.texts import counted
from ..checks.judging import is_worth_keeping
from ..errors import ModelError, Setting, Spell, Text, shown, spelled
from ..models import Model
from ..models.batching import (
    Batching,
    BatchRequest,
    BatchResult,
    BatchState,
    batches_of,
    first_results,
)
from ..trials.answer import Answer, NoAnswer, Usage
from ..trials.trial import Question
from .agent_jobs import Begin
from .batch_files import BatchFiles, KeptBatch
from .budget import Budget
from .lane import GOES_ON, STOPPED, Job, Lane, adapter_error
from .pace import PATIENCE, pause
from .prefixes import with_shared
from .store import KnownAnswers

_QUIET: Final = 0.2  # seconds without a new question before a batch is submitted
_MOST_ATTEMPTS: Final = 5
_MOST_SUBMITTED: Final = 3  # times that a question is submitted, each time without what was refused
_MOST_LACKING: Final = 3  # times that results are taken, if some are not there
_FIRST_POLL: Final = 1.0  # seconds
_LAST_POLL: Final = 60.0
_GROWTH: Final = 1.5
_SETTLED: Final = 30.0  # seconds after which a server lists a batch that it got
_SILENCE: Final = 3600.0  # seconds for which a server may not be reached
_DELETE: Final = "Delete the file to submit its questions again"


@dataclass(frozen=True)
class ByBatch:
    """What goes by batch, and how."""

    takes: Callable[[str], bool]  # whether a model has batches
    files: BatchFiles
    waits: bool = True  # or each batch is looked at once
    fallback: bool = False  # ask in the ordinary way what failed in a batch


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
    kept: KeptBatch
    jobs: dict[str, Job]  # by the ids of their requests
    state: BatchState | None = None
    trouble: str = ""
    pending: bool = False  # looked at, and not ended
    lacking: int = 0  # times that it had ended, without all results


@dataclass
class Batches:
    """All batches of a run."""

    way: ByBatch
    answers: KnownAnswers
    budget: Budget
    spell: Spell
    pump: Callable[[], None]
    planned: set[str] = field(default_factory=set)  # keys of questions that are known before
    submitted: list[_Submitted] = field(default_factory=list)
    out: set[Job] = field(default_factory=set)  # neither gathered nor settled
    failed: int = 0  # questions that the next run submits again
    # Until others have cost less than they could, as far as the budget is concerned.
    deferred: list[tuple[Lane, Job]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random()
        self._start: Begin | None = None

    def takes(self, question: Question) -> bool:
        """Whether to gather a question. Others come one by one, each would be a batch of its own.

        A judge's first question follows from an answer, its second from an unusable reply.
        """
        of_judge = question.verdicts is not None and len(question.messages) == 1
        known = of_judge or question.key in self.planned
        return known and not question.task and self.way.takes(question.model)

    def begin(self, lanes: Iterable[Lane], start: Begin) -> None:
        """Submit what was gathered, now that nothing else is being asked."""
        self._start = start
        if not self.submitted:
            self._take_up()
        for lane in lanes:
            if lane.by_batch and lane.model and not lane.submitting:
                lane.submitting = True
                start(self._flush(lane))

    def stop(self, reason: str) -> None:
        """Wait no longer; the batches go on."""
        out, self.out, self.deferred = self.out, set(), []
        there = {job for one in self.submitted for job in one.jobs.values()}
        for job in out:
            goes_on = job in there and reason == STOPPED
            job.settle(NoAnswer(GOES_ON if goes_on else reason))

    def _take_up(self) -> None:
        """Gather what was deferred."""
        deferred, self.deferred = self.deferred, []
        for lane, job in deferred:
            self.out.discard(job)
            lane.by_batch.append(job)

    @property
    def waiting(self) -> Waiting | None:
        """What is at the servers; None if nothing is."""
        there = [one for one in list(self.submitted) if one.jobs]
        if not there:
            return None
        done = [min(one.state.done, len(one.jobs)) for one in there if one.state]
        trouble = next((one.trouble for one in there if one.trouble), "")
        since = min(one.kept.made for one in there)
        return Waiting(len(there), sum(len(one.jobs) for one in there), sum(done), since, trouble)

    @property
    def pending(self) -> set[Job]:
        """The questions that a later run will find an answer to."""
        found = {job for one in self.submitted if one.pending for job in one.jobs.values()}
        return found | {job for _, job in self.deferred}

    # Submitting.

    async def _flush(self, lane: Lane) -> None:
        try:
            seen = -1
            while seen != len(lane.by_batch):  # answers come in one by one
                seen = len(lane.by_batch)
                await asyncio.sleep(_QUIET)
            jobs, lane.by_batch = lane.by_batch, []
            self.out.update(jobs)
            await self._send(lane, jobs)
        finally:
            lane.submitting = False
        self.pump()

    async def _send(self, lane: Lane, jobs: Sequence[Job]) -> None:
        keys = {key: job for job in jobs if (key := self.answers.key_of(job.question))}
        started = list[_Submitted]()
        try:
            async with self.way.files.alone():
                for key, job in list(keys.items()):  # another run may have collected it just now
                    if known := self.answers.get(job.question):
                        self._settle(keys.pop(key), known)
                for kept in self.way.files.all():
                    own = {own: keys[key] for own, key in kept.keys.items() if key in keys}
                    if own and not (kept.id or await self._look_for(lane, kept, kept.made)):
                        self.way.files.forget(kept)
                    elif own:
                        started.append(_Submitted(lane, kept, own))
                        for job in own.values():
                            keys.pop(self.answers.key_of(job.question) or "", None)
                            self.budget.hold_paid(job.question)
                if keys and (unread := self.way.files.unread):
                    raise ModelError(
                        unread, "Restore it, or delete it to submit its questions again"
                    )
                await self._submit(lane, keys, started)
        except ModelError as error:
            # Those that got a batch are waited for all the same.
            taken = {job for one in started for job in one.jobs.values()}
            self._give_up(lane, [job for job in jobs if job not in taken], error)
        self.submitted += started
        assert self._start
        for one in started:
            self._start(self._watch(one))

    async def _look_for(self, lane: Lane, kept: KeptBatch, since: float) -> bool:
        """Look for a batch that the server may have got then, and lists a little later."""
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            try:
                if await self._find(lane, kept):
                    return True
            except ModelError as error:
                if not error.transient or attempt == _MOST_ATTEMPTS:
                    raise
                await asyncio.sleep(pause(attempt, error.retry_after, self._random))
                continue
            left = since + _SETTLED - time.time()
            if left <= 0:
                break
            await asyncio.sleep(min(left, _SETTLED / 3))
        return False

    async def _find(self, lane: Lane, kept: KeptBatch) -> bool:
        of_others = {one.id for one in self.way.files.all() if one.id and one.sure}
        others = {*kept.others, *of_others}
        found = await _port(lane).find(kept.mark, kept.number, kept.made, others)
        if found:
            kept.id, kept.sure = found
            self.way.files.save(kept)
        return bool(found)

    async def _submit(self, lane: Lane, jobs: dict[str, Job], started: list[_Submitted]) -> None:
        port, asked = _port(lane), dict[str, Job]()
        for key, job in jobs.items():
            if self.budget.hold_worst(job.question):
                asked[key] = job
            elif self.budget.is_held:
                self.deferred.append((lane, job))
            else:
                self._settle(job, NoAnswer(spelled(self.budget.why_not(job.question), self.spell)))
        whole = with_shared([job.question for job in asked.values()], lane.prefixes.min_tokens)
        requests = [port.request(key, one) for key, one in zip(asked, whole, strict=True)]
        try:
            for part in batches_of(requests, port.limits):
                kept = self._begun(lane, part)
                own = {kept.own_id(one.id): asked.pop(one.id) for one in part}
                try:
                    kept.id, kept.sure = await self._id_of(lane, kept, part)
                except ModelError as error:
                    for job in own.values():
                        self.budget.settle(job.question, None)
                    self._give_up(lane, own.values(), error)
                    continue
                self.way.files.save(kept)
                started.append(_Submitted(lane, kept, own))
        finally:
            for job in asked.values():
                self.budget.settle(job.question, None)

    def _begun(self, lane: Lane, part: Sequence[BatchRequest]) -> KeptBatch:
        assert lane.model
        return self.way.files.begin(lane.name, lane.model.address, (one.id for one in part))

    async def _id_of(
        self, lane: Lane, kept: KeptBatch, part: Sequence[BatchRequest]
    ) -> tuple[str, bool]:
        """Submit a batch, once: after an error, it may be there all the same."""
        port, attempt, lost = _port(lane), 0, 0.0
        asked = [replace(one, id=kept.own_id(one.id)) for one in part]
        while True:
            attempt += 1
            if lost and await self._look_for(lane, kept, lost):
                return kept.id, kept.sure
            try:
                return await port.submit(asked, kept.mark), True
            except ModelError as error:
                refused = error.rate_limited or error.unreachable or not error.transient
                if not refused or error.paid is not None:
                    lost = time.time()
                wait = pause(attempt, error.retry_after, self._random)
                if not error.transient or attempt == _MOST_ATTEMPTS or wait > PATIENCE:
                    if not lost:
                        self.way.files.forget(kept)
                    if _is_unknown(error):
                        hint = ("Has this server batches? Else drop ", Setting("batch"))
                        raise ModelError(error.problem, hint, fatal=True) from None
                    raise
                lane.retries += 1
                await asyncio.sleep(wait)

    # Waiting.

    async def _watch(self, batch: _Submitted) -> None:
        """Wait for the end of a batch, and take its results."""
        wait, heard = _FIRST_POLL, time.monotonic()
        try:
            while True:
                try:
                    batch.state = await _port(batch.lane).state(batch.kept.id)
                    batch.trouble = ""
                    if batch.state.ended:
                        await self._collect(batch)
                        break
                    heard = time.monotonic()
                except ModelError as error:
                    silent = time.monotonic() - heard > _SILENCE
                    if not error.transient or silent:
                        raise
                    batch.trouble = error.problem
                    wait = max(wait, error.retry_after or 0.0)
                if not self.way.waits and (not batch.trouble or wait > 4 * _FIRST_POLL):
                    batch.pending = True
                    return
                await asyncio.sleep(self._random.uniform(0.8, 1.0) * wait)
                wait = min(_LAST_POLL, _GROWTH * wait)
        except ModelError as error:
            where = f"{error.problem} (batch {batch.kept.id}, kept as {shown(batch.kept.file)})"
            hint = f"Was it submitted with another key? {_DELETE}"
            unknown = _is_unknown(error)
            fatal = error.fatal and not unknown
            again = ModelError(where, hint if unknown else error.hint, fatal=fatal)
            jobs, batch.jobs = batch.jobs, {}
            for job in jobs.values():
                self.budget.settle(job.question, None)
            self._give_up(batch.lane, jobs.values(), again)
            self.submitted.remove(batch)
        self._take_up()
        self.pump()

    async def _collect(self, batch: _Submitted) -> None:
        """Take the results; ModelError if some are not there: what was taken stays so."""
        kept, port, ours, others = batch.kept, _port(batch.lane), batch.kept.sure, False
        state, there = batch.state, 0
        assert state
        try:
            async for result in first_results(port.results(kept.id, kept.number)):
                known = result.id.startswith(f"{kept.mark}-")
                there += known
                ours, others = ours or known, others or bool(result.id and not known)
                job = batch.jobs.pop(result.id, None)
                if job and await self._take(batch.lane, job, result):
                    kept.keys.pop(result.id, None)
        except ModelError as error:
            if not (state.problem and _is_unknown(error)):
                raise
        explained = (state.problem and there >= state.done) or (others and not ours)
        if batch.jobs and not explained:
            self._say_lacking(batch, ours=ours)
        if not ours:  # another batch of the same size, from the same time
            kept.others.append(kept.id)
            kept.id, kept.sure = "", True
        missing, batch.jobs = batch.jobs, {}
        for own, job in missing.items():
            if ours:
                why = state.problem or "its batch has no result for it"
                kept.keys.pop(own, None)
                await self._take(batch.lane, job, BatchResult(own, problem=why))
            else:
                self.budget.settle(job.question, None)
                self._gather(batch.lane, job)
        self.way.files.save(kept)
        self.submitted.remove(batch)

    def _say_lacking(self, batch: _Submitted, *, ours: bool) -> None:
        """Results may have been cut on their way, and are paid for: take them again."""
        self.way.files.save(batch.kept)
        batch.lacking += 1
        tries_left = batch.lacking < _MOST_LACKING
        if tries_left or not (ours and self.way.fallback):
            results = counted(len(batch.jobs), "answer")
            problem = f"the batch has ended, but its results lack {results}"
            raise ModelError(problem, _DELETE, transient=tries_left)

    async def _take(self, lane: Lane, job: Job, result: BatchResult) -> bool:
        """Whether nothing of a result is needed any more."""
        try:
            answer = await self._answer(lane, job.question, result)
        except ModelError as error:
            paid = None if error.paid is None else replace(Usage(*error.paid), batch=True)
            self.budget.settle(job.question, paid, answered=False)
            if job.submitted < _MOST_SUBMITTED and _port(lane).adapts(job.question, result):
                self._gather(lane, job)
            else:
                self._failed(lane, job, error)
            return True
        except (Exception, SystemExit) as bug:
            self.budget.settle(job.question, None)
            self._settle(job, NoAnswer(adapter_error(lane.name, bug)))
            return False
        self.budget.settle(job.question, answer.usage)
        lane.answered = True
        worth = is_worth_keeping(job.question, answer)
        done = self.answers.put(job.question, answer) if worth else True
        self._settle(job, answer)
        return done

    async def _answer(self, lane: Lane, question: Question, result: BatchResult) -> Answer:
        given, asked = _Given(_port(lane), result), question.without_keys()
        if question.choice:
            answer = await lane.chooser.ask(cast(Model, given), asked)
        else:
            answer = await given.ask(asked)
        usage = replace(answer.usage, batch=True)
        # How long it took in the batch is nowhere told.
        return replace(answer.without_keys(), usage=usage, seconds=None, quotas=())

    def _failed(self, lane: Lane, job: Job, error: ModelError) -> None:
        if self.way.fallback:
            self.out.discard(job)
            lane.add(job)
            return
        self.failed += 1
        ask: Text = ("Run again, or add ", Setting("batch_fallback"), " to ask without a batch")
        again = ModelError(error.problem, error.hint or ask)
        self._settle(job, NoAnswer(f"{lane.name}: {again.message(self.spell)}"))

    def _gather(self, lane: Lane, job: Job) -> None:
        job.submitted += 1
        self.out.discard(job)
        lane.by_batch.append(job)

    def _give_up(self, lane: Lane, jobs: Iterable[Job], error: ModelError) -> None:
        reason = f"{lane.name}: {error.message(self.spell)}"
        if error.fatal:
            lane.dead = lane.dead or reason
        for job in jobs:
            if job in self.out:
                self._settle(job, NoAnswer(reason))

    def _settle(self, job: Job, reply: Answer | NoAnswer) -> None:
        self.out.discard(job)
        job.settle(reply)


def _is_unknown(error: ModelError) -> bool:
    """Whether a server does not know what it is asked about."""
    return error.problem.startswith("404 ")


def _port(lane: Lane) -> Batching:
    assert lane.model
    port: Batching = lane.model.batches()  # type: ignore[attr-defined]
    return port


@dataclass
class _Given:
    """A model that has replied already, in a batch."""

    port: Batching
    result: BatchResult | None

    async def ask(self, question: Question) -> Answer:
        result, self.result = self.result, None
        if result is None:
            raise ModelError("its batch can't be asked a second question")
        if result.problem:
            raise ModelError(result.problem)
        return self.port.answer(result.reply, question)
