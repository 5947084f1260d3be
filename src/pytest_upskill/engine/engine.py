"""The one place that calls models: an asyncio loop on one background thread.

It starts on the whole plan at once, in order, and keeps as many calls in flight as the
limits allow; callers wait for their own replies. A question that failed for a temporary
reason is asked again after a pause; one that a busy server refused is asked again when
the server takes calls. The SDKs' own retries are off.
"""

import asyncio
import threading
import time
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Sequence,
    Set,
)
from concurrent.futures import Future
from contextlib import suppress
from functools import partial, wraps
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple, ParamSpec, TypeVar

from ..checks.judging import first_questions
from ..errors import ModelError, Spell, UpskillError
from ..models import Model
from ..models.choosing import Chooser
from ..options import FOREVER
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.answer_times import renewed
from ..trials.plan import Plan
from ..trials.trial import Question, Rubric
from .agent_jobs import AgentJobs, Trials
from .budget import Budget, PaidCall
from .lane import STOPPED, Job, Lane, adapter_error, over_budget, unexpected
from .model_calls import ModelCalls
from .pace import Limit, is_near
from .prefixes import Prefixes
from .store import KnownAnswers

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
OpenModel = Callable[[str], Awaitable[Model]]
_GRACE: Final = 1.2  # seconds that calls in flight have at the end: they are paid for
_LEASE_POLL: Final = 0.25
_INTERRUPT_POLL: Final = 1.0


def _apart_from_signals(
    method: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Carry out a method in a thread of its own, and wait for it.

    Ctrl-C is raised in the main thread between any two steps, also right after a Future
    has taken its lock. The lock would stay taken, and the engine wait for it forever.
    """

    @wraps(method)
    def carried_out(*args: Parameters.args, **values: Parameters.kwargs) -> Result:
        def work() -> None:
            outcome = Future[Result]()
            try:
                outcome.set_result(method(*args, **values))
            except BaseException as error:
                outcome.set_exception(error)
            outcomes.put(outcome)

        outcomes = SimpleQueue[Future[Result]]()
        threading.Thread(target=work, daemon=True).start()
        while True:
            # Python does not notice a signal that comes just before a
            # wait until the wait ends.
            with suppress(Empty):
                outcome = outcomes.get(timeout=_INTERRUPT_POLL)
                break
        return outcome.result()

    return carried_out


class KnownBefore(NamedTuple):
    """Keys of questions that have an answer before a run."""

    used: Set[str] = frozenset()
    outdated: Set[str] = frozenset()  # too old to be compared: asked again


class Engine:
    """Asks questions and hands out replies; safe to use from any thread."""

    def __init__(
        self,
        open_model: OpenModel,
        *,
        concurrency: int,
        timeout: float,
        timeout_of: Callable[[str], float] | None = None,  # by the name of a model
        answers: KnownAnswers | None = None,
        budget: Budget | None = None,
        spell: Spell = str,
        open_trials: Callable[[], Trials] | None = None,
        agents_at_once: int | None = None,
        takes_tools: Callable[[str], bool] = lambda _: True,
        caches_from: Callable[[str], int | None] = lambda _: None,
        max_age: float = FOREVER,
    ) -> None:
        self._open_model = open_model
        self.budget = budget or Budget()
        self._answers = answers or KnownAnswers()
        self._concurrency = concurrency
        self._takes_tools = takes_tools
        self._caches_from = caches_from
        self._spell = spell
        self._max_age = max_age
        self._jobs: dict[str, Job] = {}
        # Of questions that are compared
        self._groups: dict[Hashable, list[Question]] = {}
        self._settled: list[Job] = []
        self._lanes: dict[str, Lane] = {}
        self._limits: dict[str, Limit] = {}
        self._with_answers = set[str]()  # models that have stored answers
        # Asked by another run; the keys of their answers
        self._elsewhere: dict[Job, str] = {}
        self._lease_timer: asyncio.TimerHandle | None = None
        # Whether answers could not be stored; known after ``close``
        self.not_kept = False
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._stopped = False
        self._reason = STOPPED
        self._calls = ModelCalls(
            timeout_of or (lambda _: timeout), self._answers, spell, self._retry
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._agents = AgentJobs(
            open_trials,
            at_once=agents_at_once,
            lane_of=self._lane,
            pump=self._pump_soon,
            lease=self._lease,
            answers=self._answers,
            budget=self.budget,
            spell=spell,
        )
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Called from any thread.

    @_apart_from_signals
    def start(self, plan: Plan) -> None:
        """Start asking everything in a plan, and the judge about
        each answer as it arrives.
        """
        trials = list(plan.trials())
        for trial in [*trials, *plan.extra_trials()]:
            if trial.rubric:
                self.budget.expect_ruling(trial.question, trial.rubric)

        def judge(replies: Sequence[Future[Reply]]) -> None:
            for trial, reply in zip(trials, replies, strict=True):
                if trial.rubric:
                    reply.add_done_callback(
                        partial(self._judge, trial.rubric, trial.question)
                    )

        self._submit(self._renewed([trial.question for trial in trials]), judge)

    @_apart_from_signals
    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Wait for the replies to these questions; each is asked once per run."""
        return [reply.result() for reply in self._submit(self._renewed(questions))]

    def submit(self, question: Question) -> "Future[Reply]":
        """Ask without waiting."""
        return self._submit([question])[0]

    def end(self, key: str) -> None:
        """End a trial, if it is still running."""
        if self._loop and (job := self._jobs.get(key)):
            self._loop.call_soon_threadsafe(self._safely, self._end, job)

    def forget(self, key: str) -> None:
        """Forget a question that has its reply: it may be asked again."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._safely, self._forget, key)

    def replies_to(self, keys: Sequence[str]) -> "list[Future[Reply]] | None":
        """The replies to questions given by key; None if one of them is unknown."""
        with self._lock:
            jobs = [self._jobs.get(key) for key in keys]
        return [job.reply for job in jobs if job] if all(jobs) else None

    @_apart_from_signals
    def has_settled(self, questions: Iterable[Question]) -> bool:
        """Whether all of these have a reply already."""
        return all(self.known_reply(question.key) for question in questions)

    def known_reply(self, key: str) -> Reply | None:
        """The reply to a question, if there is one already."""
        job = self._jobs.get(key)
        return job.reply.result() if job and job.reply.done() else None

    @_apart_from_signals
    def known_before(self, questions: Sequence[Question]) -> KnownBefore:
        """The keys of questions with stored or recorded answers."""

        async def look_up() -> set[str]:
            get = self._answers.get
            return {
                question.key for question in marked if isinstance(get(question), Answer)
            }

        marked = self._renewed(questions)
        with self._lock:
            loop = self._running_loop()
        known = asyncio.run_coroutine_threadsafe(look_up(), loop).result()
        outdated = {question.key for question in marked if question.renew}
        return KnownBefore(known - outdated, known & outdated)

    @property
    def not_renewed(self) -> list[str]:
        """Why outdated answers were used: each could not be asked again."""
        return [job.not_renewed for job in list(self._jobs.values()) if job.not_renewed]

    @property
    def questions(self) -> int:
        """How many questions there are so far, answered or not."""
        return len(self._jobs)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def elsewhere(self) -> int:
        """How many questions another run is asking."""
        return len(self._elsewhere)

    @property
    def opening(self) -> list[str]:
        """Models that can't be asked yet: their SDK is being imported,
        or their server started.
        """
        lanes = list(self._lanes.values())
        return [
            lane.name
            for lane in lanes
            if lane.opening and not (lane.model or lane.dead)
        ]

    @property
    def agents_at_work(self) -> tuple[int, list[PaidCall]]:
        """How many agents are running, and all replies that they have got."""
        return self._agents.at_work, self._agents.spent

    @property
    def agents_note(self) -> str:
        """What kept agents waiting, if anything did."""
        return self._agents.note

    @property
    def pausing(self) -> int:
        """How many questions are waiting for a retry."""
        return sum(lane.to_retry for lane in list(self._lanes.values()))

    def settled(self, since: int = 0) -> list[tuple[str, Reply]]:
        """Models and replies in order of arrival, without the first ``since``."""
        return [
            (job.question.model, job.reply.result()) for job in self._settled[since:]
        ]

    def retries(self) -> dict[str, int]:
        """The number of retries, by model."""
        return {name: lane.retries for name, lane in self._lanes.items()}

    def stop(self, reason: str = STOPPED) -> None:
        """Ask nothing more; calls in flight may still finish."""
        self._reason, self._stopped = reason, True
        if self._loop:
            self._loop.call_soon_threadsafe(self._safely, self._pump)

    def close(self) -> None:
        """Stop, wait a little for calls in flight, close the models, end the thread."""
        self._stopped = True
        if self._loop and self._thread:
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    def _judge(
        self, rubric: Rubric, question: Question, reply: "Future[Reply]"
    ) -> None:
        answer = reply.result()
        if isinstance(answer, Answer):
            self._submit(first_questions(rubric, question, answer))

    def _renewed(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Mark what has to be asked again, so that arms that
        are compared are of one day.
        """

        async def mark() -> Sequence[Question]:
            groups = {question.compared for question in questions}
            others = [
                other for group in groups for other in self._groups.get(group, ())
            ]
            return renewed([*questions, *others], self._asked_at, self._max_age)[
                : len(questions)
            ]

        jobs = [self._jobs.get(question.key) for question in questions]
        settled = all(job and not job.used_stored for job in jobs)
        if settled or self._stopped or self._max_age >= FOREVER:
            return questions
        with self._lock:
            loop = self._running_loop()
        return asyncio.run_coroutine_threadsafe(mark(), loop).result()

    def _submit(
        self,
        questions: Iterable[Question],
        watch: "Callable[[Sequence[Future[Reply]]], None]" = lambda _: None,
    ) -> "list[Future[Reply]]":
        """Ask questions; ``watch`` gets their replies before
        the first of them is asked.
        """
        new: list[Job] = []
        futures: list[Future[Reply]] = []
        with self._lock:
            for question in questions:
                job = self._jobs.get(question.key)
                if job is None or (question.renew and job.used_stored):
                    self._groups.setdefault(question.compared, []).append(question)
                    # A judge comes first: an answer without a ruling is worth nothing.
                    number = len(self._jobs) if question.verdicts is None else 0
                    job = self._jobs[question.key] = Job(question, number)
                    job.reply.add_done_callback(partial(self._note_settled, job))
                    if self._stopped:
                        job.settle(NoAnswer(self._reason))
                    else:
                        new.append(job)
                futures.append(job.reply)
            loop = self._running_loop() if new else None
        watch(futures)
        # A judge, after an answer
        if loop and threading.current_thread() is self._thread:
            self._safely(self._queue, new)
            self._pump_soon()
        elif loop:
            loop.call_soon_threadsafe(self._safely, self._enqueue, new)
        return futures

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._serve,
                args=(self._loop,),
                name="upskill-engine",
                daemon=True,
            )
            self._thread.start()
        return self._loop

    # Called on the engine's thread.

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                return loop.run_forever()
            except BaseException as bug:  # sys.exit() in a callback ends the loop
                self._give_up(bug)

    def _safely(self, step: Callable[..., None], *values: object) -> None:
        try:
            step(*values)
        except Exception as bug:
            self._give_up(bug)

    def _give_up(self, bug: BaseException) -> None:
        """A bug of ours: settle everything with an error, so that nobody waits
        forever.
        """
        self._reason, self._stopped = unexpected(bug), True
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.settle(NoAnswer(self._reason))

    def _note_settled(self, job: Job, _: "Future[Reply]") -> None:
        self._settled.append(job)
        # On this thread: only a job that was not begun is settled by another
        if job.lease:
            self._answers.release(job.lease)

    def _end(self, job: Job) -> None:
        if self._elsewhere.pop(job, None):
            job.settle(NoAnswer(STOPPED))
        self._agents.end(job)

    def _forget(self, key: str) -> None:
        with self._lock:
            if job := self._jobs.pop(key, None):
                self._settled.remove(job)

    def _asked_at(self, question: Question) -> int | None:
        """When the answer was given that a question has;
        None if it is asked in this run.
        """
        if (job := self._jobs.get(question.key)) is None:
            return self._answers.asked_at(question)
        reply = job.reply.result() if job.reply.done() else None
        return reply.asked_at if isinstance(reply, Answer) else None

    def _is_outdated(self, job: Job, stored: Answer) -> bool:
        if job.outdated and job.is_new(stored):  # another run has asked it again
            return False
        # A clock may have been wrong
        judged_at = min(job.question.judged_at or 0, time.time())
        return job.question.renew or judged_at - (stored.asked_at or 0) > self._max_age

    def _use_stored(self, job: Job) -> bool:
        """Settle a question with its stored answer; False if it has none,
        or one too old.
        """
        reply = self._answers.get(job.question)
        if isinstance(reply, Answer) and self._is_outdated(job, reply):
            job.outdated = reply
        elif reply:
            job.settle(reply)
            self._with_answers.add(job.question.model)
            return True
        return False

    def _lease(self, job: Job) -> bool:
        """Whether to ask a question now: it is not stored,
        and no other run is asking it.
        """
        if job.lease or job.of_trial:
            return True
        if (key := self._answers.key_of(job.question)) is None:
            return True
        if self._lease_timer is None:
            self._watch_leases()
        if not self._answers.lease(key):
            self._elsewhere[job] = key
            return False
        job.lease = key
        return not self._use_stored(job)  # another run may have asked it just now

    def _watch_leases(self) -> None:
        """Keep our leases, and go on with questions that other
        runs are not asking any more.
        """
        loop = asyncio.get_running_loop()
        self._lease_timer = loop.call_later(
            _LEASE_POLL, self._safely, self._watch_leases
        )
        self._answers.renew()
        if not self._elsewhere:
            return
        leased = self._answers.leased()
        ended = [job for job, key in self._elsewhere.items() if key not in leased]
        for job in ended:
            del self._elsewhere[job]
        self._enqueue(ended)

    def _enqueue(self, jobs: list[Job]) -> None:
        self._queue(jobs)
        self._pump()

    def _queue(self, jobs: list[Job]) -> None:
        for job in jobs:
            if self._use_stored(job):
                continue
            name = job.question.model
            if job.question.task:
                self._agents.add(job)
            else:
                self._lane(name).add(job)
        for name in self._with_answers & self._lanes.keys():
            self._lanes[name].skip_first_alone()

    def _lane(self, name: str) -> Lane:
        if name not in self._lanes:
            chooser = Chooser(takes_tools=self._takes_tools(name))
            self._lanes[name] = Lane(
                name, chooser, prefixes=Prefixes(self._caches_from(name))
            )
        return self._lanes[name]

    def _pump(self) -> None:
        """Start as many calls and agents as the limits allow,
        in the order of the questions.
        """
        if not self._stopped and (trouble := self._answers.trouble):
            self._reason, self._stopped = (
                f"not asked: answers can't be kept: {trouble}",
                True,
            )
            self.not_kept = True
        for lane in self._lanes.values():
            if self._stopped or lane.dead:
                lane.settle_all(lane.dead or self._reason)
            elif lane.waiting and lane.model is None and not lane.opening:
                lane.opening = True
                self._begin(self._open(lane))
        if self._stopped:
            elsewhere, self._elsewhere = self._elsewhere, {}
            for job in elsewhere:
                job.settle(NoAnswer(self._reason))
            self._agents.stop(self._reason)
        dead = {name: lane.dead for name, lane in self._lanes.items() if lane.dead}
        self._agents.begin(dead, self._begin, self._waits_for_judge)
        # Until calls in flight have spent less than they reserved
        waiting = set[Lane]()
        now = self._now()
        while self._in_flight < self._concurrency:
            lanes = [lane for lane in self._lanes.values() if lane not in waiting]
            ready = [lane for lane in lanes if lane.ready(now)]
            if not ready:
                break
            lane = min(ready, key=lambda lane: lane.next.number)
            job = lane.next
            if not self._lease(job):
                lane.waiting.remove(job)  # a judge of the answer may be first by now
                continue
            refusal_of = (
                self.budget.refusal if job.of_trial else self.budget.refusal_of_case
            )
            if refusal := refusal_of(job.question):
                lane.drop().settle(over_budget(refusal, self._spell))
                continue
            if self._waits_for_judge(job) or not self.budget.hold(job.question):
                waiting.add(lane)
                continue
            self._in_flight += 1
            job = lane.take(now)
            job.task = self._begin(self._run(lane, job))
        self._set_timer(now)

    def _waits_for_judge(self, job: Job) -> bool:
        """Whether a new question could take what the judge of other answers needs."""
        if (
            not self.budget.is_limited
            or job.of_trial
            or job.question.verdicts is not None
        ):
            return False
        lanes = self._lanes.values()
        queued = (
            other for lane in lanes for other in (*lane.waiting[:1], *lane.pausing)
        )
        first = (*queued, *self._agents.next)  # a judge would be
        return any(other.question.verdicts is not None for other in first)

    def _pump_soon(self) -> None:
        """Once all that has just ended is counted."""
        asyncio.get_running_loop().call_soon(self._safely, self._pump)

    def _set_timer(self, now: float) -> None:
        """Come back when the first lane that waits may go on."""
        if self._timer:
            self._timer.cancel()
        lanes = self._lanes.values()
        times = [lane.opens_at(now) for lane in lanes if lane.has_room()]
        times += [lane.held_until for lane in lanes if lane.held]
        first = min((time for time in times if time > now), default=None)
        self._timer = None
        if first is not None:
            self._timer = asyncio.get_running_loop().call_at(
                first, self._safely, self._pump
            )

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()):
            self._give_up(bug)

    async def _open(self, lane: Lane) -> None:
        try:
            lane.model = await self._open_model(lane.name)
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
        self._pump()

    async def _run(self, lane: Lane, job: Job) -> None:
        job.paid = Usage()  # unless told otherwise: the server may have charged for it
        try:
            reply = await self._calls.make(lane, job)
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        except BaseException as bug:
            reply = NoAnswer(f"{lane.name}: {unexpected(bug)}")
        lane.end_call(job)
        self._in_flight -= 1
        self.budget.settle(
            job.question, job.paid, reply if isinstance(reply, Answer) else None
        )
        if reply is not None:
            lane.tried = True
            job.settle(reply)
        self._pump_soon()

    def _retry(self, lane: Lane, job: Job, wait: float) -> bool:
        """Whether a question will be asked again."""
        if self._stopped:
            return False
        lane.pausing.add(job)
        asyncio.get_running_loop().call_later(
            wait, self._safely, self._ask_again, lane, job
        )
        return True

    def _ask_again(self, lane: Lane, job: Job) -> None:
        if job in lane.pausing:  # else the lane was settled meanwhile
            lane.pausing.remove(job)
            lane.enqueue(job)
            self._pump()

    async def _shut_down(self) -> None:
        self._safely(self._pump)
        calls = [job.task for job in list(self._jobs.values()) if job.task]
        if calls:
            await asyncio.wait(calls, timeout=_GRACE)
        if self._lease_timer:
            self._lease_timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(Exception):
            await self._agents.close()
        for lane in self._lanes.values():
            if lane.model:
                # An adapter that can't close must not lose the run.
                with suppress(Exception, SystemExit):
                    await lane.model.close()
        with suppress(Exception):  # each answer was stored when it arrived
            self.not_kept |= not self._answers.close()
