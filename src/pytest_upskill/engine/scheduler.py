"""What is asked next, and when: a lane of questions for each model, and agents."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Final

from ..errors import ModelError, Spell, UpskillError
from ..models.choosing import Chooser
from ..trials.answer import Answer, NoAnswer, Usage
from .agent_jobs import AgentJobs, AgentPlaces
from .budget import Budget
from .known_replies import KnownReplies
from .lane import STOPPED, Job, Lane, adapter_error, over_budget, unexpected
from .model_calls import ModelCalls, ModelFacts, Retry
from .pace import Limit, is_near
from .prefixes import Prefixes

# Calls in flight at the end get a moment: they are paid for.
_GRACE_SECONDS: Final = 1.2
_LEASE_POLL_SECONDS: Final = 0.25


class Scheduler:
    """Starts calls and agents as limits, budget and leases allow.

    A question that failed for a temporary reason is asked again after a pause; one that
    a busy server refused is asked again when the server takes calls. The SDKs' own
    retries are off. All of it runs on the engine's loop.
    """

    def __init__(
        self,
        models: ModelFacts,
        known: KnownReplies,
        budget: Budget,
        *,
        concurrency: int,
        agents: AgentPlaces,
        spell: Spell,
    ) -> None:
        self.stopped = ""  # why nothing more is asked
        self.in_flight = 0
        self.lanes: dict[str, Lane] = {}
        self.agents = AgentJobs(self, agents, known, budget, spell)
        self.calls = ModelCalls(models, known.answers, spell)
        self._models = models
        self._known = known
        self._budget = budget
        self._concurrency = concurrency
        self._spell = spell
        self._limits: dict[str, Limit] = {}
        self._tasks = set[asyncio.Task[None]]()
        self._timer: asyncio.TimerHandle | None = None
        self._watches_leases = False
        self._pumps_soon = False

    def queue(self, jobs: Iterable[Job]) -> None:
        """Queue questions, but for those that have a stored answer."""
        for job in jobs:
            if self.stopped:
                job.settle(NoAnswer(self.stopped))
            elif self._known.use_stored(job):
                continue
            elif job.question.task:
                self.agents.add(job)
            else:
                self.lane(job.question.model).add(job)
        self.pump_soon()

    def lane(self, name: str) -> Lane:
        if name not in self.lanes:
            chooser = Chooser(takes_tools=self._models.takes_tools(name))
            prefixes = Prefixes(self._models.caches_from(name))
            limit = Limit(self._concurrency)
            self.lanes[name] = Lane(name, limit, chooser, prefixes=prefixes)
        return self.lanes[name]

    def pump_soon(self) -> None:
        """Go on once all that has just ended is counted."""
        if not self._pumps_soon:
            self._pumps_soon = True
            asyncio.get_running_loop().call_soon(self.safely, self.pump)

    def pump(self) -> None:
        """Start as many calls and agents as limits allow."""
        self._pumps_soon = False
        # A killed run loses nothing else.
        self._known.save()
        trouble = self._known.trouble
        if trouble and not self.stopped:
            self.stopped = f"not asked: answers can't be kept: {trouble}"

        # A judge of what is settled here may get a lane.
        for lane in list(self.lanes.values()):
            if self.stopped or lane.dead:
                lane.settle_all(lane.dead or self.stopped)
            elif lane.waiting and not lane.opening:
                lane.opening = True
                self.begin(self._open(lane))
        if self.stopped:
            self._known.stop(self.stopped)
            self.agents.stop(self.stopped)
        else:
            self.agents.begin()
            now = _now()
            self._start_calls(now)
            self._set_timer(now)

    def lease(self, jobs: Sequence[Job]) -> set[Job]:
        """Take leases for questions that are asked next; those that must not be."""
        gone = self._known.lease(jobs)
        if self._known.store and not self._watches_leases:
            self._watches_leases = True
            self.begin(self._watch_leases())
        return gone

    def waits_for_judge(self, job: Job) -> bool:
        """Whether a new question could take what the judge of other answers needs."""
        is_judge = job.question.verdicts is not None
        if not self._budget.is_limited or job.of_trial or is_judge:
            return False

        first = [*self.agents.next]
        for lane in self.lanes.values():
            first += [*lane.waiting[:1], *lane.pausing]
        return any(other.question.verdicts is not None for other in first)

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_ended)
        return task

    def safely(self, step: Callable[..., None], *values: object) -> None:
        try:
            step(*values)
        except Exception as bug:
            self.give_up(bug)

    def give_up(self, bug: BaseException) -> None:
        """A bug of ours: settle everything with an error, so that nobody waits
        forever.
        """
        self.stopped = unexpected(bug)
        for job in list(self._known.jobs.values()):
            job.settle(NoAnswer(self.stopped))

    async def close(self) -> None:
        """Wait a little for calls in flight; close the models."""
        self.safely(self.pump)
        calls = [job.task for job in self._known.jobs.values() if job.task]
        if calls:
            await asyncio.wait(calls, timeout=_GRACE_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

        with suppress(Exception):
            await self.agents.close()
        for lane in self.lanes.values():
            if lane.model:
                # An adapter that can't close must not lose the run.
                with suppress(Exception, SystemExit):
                    await lane.model.close()
        with suppress(Exception):  # each answer was stored when it arrived
            self._known.close()

    def _start_calls(self, now: float) -> None:
        # Until calls in flight have spent less than they reserved
        waiting = set[Lane]()
        while self.in_flight < self._concurrency:
            lanes = [lane for lane in self.lanes.values() if lane not in waiting]
            ready = [lane for lane in lanes if lane.ready(now)]
            if not ready:
                break
            lane = min(ready, key=lambda lane: lane.next.number)
            job = lane.next
            refusal_of = self._budget.refusal_of_case
            if job.of_trial:
                refusal_of = self._budget.refusal
            if job.lease is None:
                # Several at a time, as each write of the store takes as long as a call,
                # but no more than can be asked together: other runs may ask the rest.
                assert lane.model
                places = lane.model.most_in_flight or self._concurrency
                gone = self.lease(lane.waiting[: min(places, self._concurrency)])
                lane.waiting = [job for job in lane.waiting if job not in gone]
            elif refusal := refusal_of(job.question):
                lane.drop().settle(over_budget(refusal, self._spell))
            elif self.waits_for_judge(job) or not self._budget.hold(job.question):
                waiting.add(lane)
            else:
                self.in_flight += 1
                lane.take(now)
                job.task = self.begin(self._call(lane, job))

    async def _call(self, lane: Lane, job: Job) -> None:
        job.paid = Usage()  # unless told otherwise: the server may have charged for it
        try:
            reply = await self.calls.make(lane, job)
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        except BaseException as bug:
            reply = NoAnswer(f"{lane.name}: {unexpected(bug)}")

        lane.end_call(job)
        self.in_flight -= 1
        answer = reply if isinstance(reply, Answer) else None
        self._budget.settle(job.question, job.paid, answer)
        if isinstance(reply, Retry):
            lane.retries += 1
            self._ask_again(lane, job, reply)
        else:
            lane.tried = True
            job.settle(reply)
        self.pump_soon()

    def _ask_again(self, lane: Lane, job: Job, retry: Retry) -> None:
        if not retry.seconds:
            lane.enqueue(job)
            return

        def end_pause() -> None:
            if job in lane.pausing:  # else the lane was settled meanwhile
                lane.pausing.remove(job)
                lane.enqueue(job)
                self.pump_soon()

        lane.pausing.add(job)
        asyncio.get_running_loop().call_later(retry.seconds, self.safely, end_pause)

    async def _open(self, lane: Lane) -> None:
        try:
            lane.model = await self._models.open(lane.name)
            may_queue = is_near(lane.model.address)
            limit = Limit(self._concurrency, may_queue=may_queue)
            lane.limit = self._limits.setdefault(lane.model.endpoint, limit)
        except ModelError as error:
            lane.dead = f"{lane.name}: {error.message(self._spell)}"
        except UpskillError as error:
            lane.dead = error.message(self._spell)
        except asyncio.CancelledError:
            lane.dead = STOPPED
        except (Exception, SystemExit) as bug:  # a script may call sys.exit()
            lane.dead = adapter_error(lane.name, bug)
        self.pump_soon()

    async def _watch_leases(self) -> None:
        """Go on with questions that other runs are not asking any more."""
        while True:
            await asyncio.sleep(_LEASE_POLL_SECONDS)
            if ended := self._known.watch_leases():
                self.queue(ended)

    def _set_timer(self, now: float) -> None:
        """Come back when the first lane that waits may go on."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        times = []
        for lane in self.lanes.values():
            if lane.has_room():
                times.append(lane.pace.opens_at)
            if lane.held:
                times.append(lane.held_until)
        later = [time for time in times if time > now]
        if later:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(min(later), self.safely, self.pump)

    def _note_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()):
            self.give_up(bug)


def _now() -> float:
    return asyncio.get_running_loop().time()
