"""The one place that calls models: an asyncio loop on one background thread.

It starts on the whole plan at once, in order, and keeps as many calls in flight as the
limits allow; callers wait for their own replies. All that it knows belongs to its
thread. Other threads hand it their work and wait for the outcome.
"""

import _thread
import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from ..checks.judging import first_questions
from ..errors import Spell, UpskillError
from ..options import FOREVER
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.plan import Plan
from ..trials.trial import Question, Rubric
from .agent_jobs import AgentPlaces
from .budget import Budget
from .known_replies import KnownReplies
from .lane import STOPPED, Job
from .model_calls import ModelFacts
from .progress import Progress
from .scheduler import Scheduler
from .store import KnownAnswers

Result = TypeVar("Result")

_INTERRUPT_POLL_SECONDS: Final = 1.0
_LAST_ANSWERS_SECONDS: Final = 1.0


class Engine:
    """Asks questions and hands out replies; safe to use from any thread."""

    def __init__(
        self,
        models: ModelFacts,
        *,
        concurrency: int,
        answers: KnownAnswers | None = None,
        budget: Budget | None = None,
        agents: AgentPlaces | None = None,
        spell: Spell = str,
        max_age: float = FOREVER,
    ) -> None:
        self.budget = budget or Budget()
        self._known = KnownReplies(answers or KnownAnswers(), max_age)
        self._scheduler = Scheduler(
            models,
            self._known,
            self.budget,
            concurrency=concurrency,
            agents=agents or AgentPlaces(),
            spell=spell,
        )
        self.progress = Progress(self._known, self._scheduler)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waiting = set[asyncio.Task[Any]]()
        self._ended = SimpleQueue[None]()
        self._is_closed = False

    # Called from any thread.

    def start(self, plan: Plan) -> None:
        """Start asking everything in a plan, and the judge about
        each answer as it arrives.
        """
        self._post(self._start, plan)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Wait for the replies to these questions; each is asked once per run."""
        if replies := self._known.final_replies(questions):
            return replies
        try:
            return self._call(self._ask(questions))
        except UpskillError:  # the run has ended
            unasked = NoAnswer(self._scheduler.stopped)
            return [self.known_reply(question.key) or unasked for question in questions]

    def submit(self, question: Question) -> "Future[Reply]":
        """Ask without waiting."""

        async def submit() -> Future[Reply]:
            [job] = self._submit([question])
            return job.future()

        return self._call(submit())

    def has_settled(self, questions: Iterable[Question]) -> bool:
        """Whether all of these have a reply already."""
        return all(self.known_reply(question.key) for question in questions)

    def known_reply(self, key: str) -> Reply | None:
        """The reply to a question, if there is one already."""
        job = self._known.jobs.get(key)
        return job.reply if job else None

    @property
    def not_kept(self) -> bool:
        """Whether answers could not be stored; known after ``close``."""
        return self._known.not_kept

    def stop(self, reason: str = STOPPED) -> None:
        """Ask nothing more; calls in flight may still finish."""
        self._scheduler.stopped = reason
        if self._loop:
            self._post(self._scheduler.pump)

    def close(self) -> None:
        """Stop, wait a little for calls in flight, close the models, end the thread."""
        self._scheduler.stopped = self._scheduler.stopped or STOPPED
        if self._loop and self._thread and not self._is_closed:
            self._call(self._scheduler.close())
            with self._lock:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
            _wait_for(self._ended)
            self._thread.join()

    def _post(self, step: Callable[..., None], *values: object) -> bool:
        """Take a step on the engine's thread, without waiting for it; False if that
        has ended.
        """
        with self._lock:
            if self._is_closed:
                return False
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._serve, args=(loop,), name="upskill-engine", daemon=True
                )
                # Thread.start takes locks that Ctrl-C could leave taken in this thread.
                _thread.start_new_thread(thread.start, ())
                self._loop = loop
                self._thread = thread
            self._loop.call_soon_threadsafe(self._scheduler.safely, step, *values)
        return True

    def _call(self, work: Coroutine[None, None, Result]) -> Result:
        """Wait for work on the engine's thread."""
        outcomes = SimpleQueue[asyncio.Task[Result]]()

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(work)
            # The loop itself would not keep it from being collected.
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
            task.add_done_callback(outcomes.put)

        if not self._post(begin):
            work.close()
            raise UpskillError("the run has ended")
        return _wait_for(outcomes).result()

    # Called on the engine's thread.

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._is_closed:
            try:
                loop.run_forever()
            except BaseException as bug:  # sys.exit() in a callback ends the loop
                self._scheduler.give_up(bug)
        with suppress(Exception):
            loop.run_until_complete(self._finish())
        loop.close()
        self._ended.put(None)

    async def _finish(self) -> None:
        """Answer those who asked just before the end."""
        await asyncio.sleep(0)
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=_LAST_ANSWERS_SECONDS)
        await asyncio.sleep(0)

    def _start(self, plan: Plan) -> None:
        trials = list(plan.trials())
        for trial in [*trials, *plan.extra_trials()]:
            if trial.rubric:
                self.budget.expect_ruling(trial.question, trial.rubric)

        questions = [trial.question for trial in trials]
        jobs = self._submit(self._known.mark_outdated(questions))
        for trial, job in zip(trials, jobs, strict=True):
            if trial.rubric:
                judge = partial(self._judge, trial.rubric, trial.question)
                job.when_settled(partial(self._scheduler.safely, judge))

    async def _ask(self, questions: Sequence[Question]) -> list[Reply]:
        if not self._scheduler.stopped:
            questions = self._known.mark_outdated(questions)
        jobs = self._submit(questions)
        return [await job.wait() for job in jobs]

    def _judge(self, rubric: Rubric, question: Question, reply: Reply) -> None:
        if isinstance(reply, Answer):
            self._submit(first_questions(rubric, question, reply))

    def _submit(self, questions: Iterable[Question]) -> list[Job]:
        jobs = self._known.add(questions)
        self._scheduler.safely(self._scheduler.queue, jobs.new)
        return jobs.all


def _wait_for(outcomes: SimpleQueue[Result]) -> Result:
    """Wait for what another thread puts into a queue.

    Ctrl-C is raised in the main thread between any two steps, also right after a Future
    has taken its lock, and then the engine would wait for that lock forever. A
    SimpleQueue takes none that Python's steps could leave taken.
    """
    while True:
        # Python does not notice a signal that comes just before a wait until it ends.
        with suppress(Empty):
            return outcomes.get(timeout=_INTERRUPT_POLL_SECONDS)
