"""How a trial is carried out: stage skills, open a sandbox, run the agent, keep what it left."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from .._util.files import read_file
from .._util.keys import without_keys
from .._util.texts import one_line
from ..errors import NoAnswerError
from ..models import ModelSpec
from ..models.prices import Price, cost
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.task import Needs, Task, files_to_install
from ..trials.transcript import Activity
from ..trials.trial import Question
from .agent import Agent, Call, Send
from .needs import mounts_for
from .recorder import PriceOf, Recorder
from .run_folder import remove, run_folder
from .sandboxes.sandbox import Mount, Sandbox, SandboxError, SandboxKind, SandboxSpec, TreeEntry
from .skill_use import keys_of
from .snapshot import WorkspaceChanges, collect_changes, fill
from .staging import FilesOf, Setups, Staging, StartState, close_sandbox

_GRACE: Final = 5.0  # seconds for an agent to end
_COLLECTING: Final = 120.0  # seconds to furnish a sandbox, and to read what is left in it
_LOOK: Final = 0.05
_AT_ONCE: Final = 2
_NO_WORDS: Final = "the skill has no words, so nothing would tell whether it is opened"
_ENDED: Final = ("decided", "max_turns", "time")  # by us


class AgentTrials:
    """Carries out the trials of a run, in the engine's loop."""

    places: Final = None  # as many as there is room for
    at_work: Final = None  # all
    note: Final = ""

    def __init__(
        self,
        agent_named: Callable[[str], Agent],
        sandbox_kind: Callable[[], SandboxKind],
        timeout: float,
        spec_of: Callable[[str], ModelSpec],
        price_of: Callable[[str], Price | None] = lambda _: None,
        files_of: FilesOf = files_to_install,
    ) -> None:
        self._agent_named = agent_named
        self._sandbox_kind = sandbox_kind
        self._timeout = timeout
        self._spec_of = spec_of
        self._price_of = price_of
        self._files_of = files_of
        self._agents: dict[str, Agent] = {}
        self._workshop: TrialResources | None = None

    def memory_of(self, agent: str) -> int:
        """Megabytes that a trial takes."""
        return self._agent(agent).memory

    async def run(self, question: Question, call: Call) -> Reply:
        """What came of a trial; nothing is raised but cancellation."""
        assert question.task
        agent = self._agent(question.task.agent)
        price = partial(cost, self._price_of(question.model))
        spec = self._spec_of(question.model)
        return await run_trial(agent, question, call, self._open_workshop(), spec, price)

    async def close(self) -> None:
        for agent in self._agents.values():
            with suppress(Exception):  # an agent that can't close must not lose the run
                await agent.close()
        if self._workshop:
            await self._workshop.close()

    async def set_up(self, task: Task) -> Reply:
        """Run the setup of a task, for trials on other machines: the workspace that it made."""
        try:
            start = await self._open_workshop().setups.start_of(task)
            made = await asyncio.to_thread(read_file, start.file) if start.file else b""
        except NoAnswerError as error:
            return NoAnswer(str(error))
        except SandboxError as error:
            return NoAnswer(f"{task.agent}: {one_line(without_keys(str(error)), 500)}")
        return Answer("", seconds=start.seconds, workspace=made)

    def start_from(self, task: Task, made: Answer) -> None:
        """Trials of a task start from what its setup made on another machine."""
        setups = self._open_workshop().setups
        setups.know(task, made.workspace, made.seconds or 0.0)

    def _open_workshop(self) -> "TrialResources":
        if self._workshop is None:
            self._workshop = TrialResources(self._sandbox_kind(), self._timeout, self._files_of)
        return self._workshop

    def _agent(self, name: str) -> Agent:
        if name not in self._agents:
            self._agents[name] = self._agent_named(name)
        return self._agents[name]


class TrialResources:
    """What the trials of a run share."""

    def __init__(
        self, kind: SandboxKind, timeout: float, files_of: FilesOf = files_to_install
    ) -> None:
        self.kind = kind
        self.timeout = timeout
        self._folder = Path(mkdtemp(dir=run_folder()))
        self.staging = Staging(self._folder, files_of)
        self.setups = Setups(kind, self._folder, timeout, self.room_of)
        # Workspaces that are read at once: each may take a hundred megabytes.
        self.collecting = asyncio.Semaphore(_AT_ONCE)
        self._mounts: dict[Needs, asyncio.Future[tuple[Mount, ...]]] = {}

    async def room_of(self, task: Task) -> SandboxSpec:
        """A sandbox as a task needs it, without a skill. SandboxError if that can't be had."""
        needs = task.needs
        if needs not in self._mounts:
            self._mounts[needs] = asyncio.ensure_future(mounts_for(needs))
        mounts = await asyncio.shield(self._mounts[needs])
        return SandboxSpec(mounts, network=needs.network, image=task.image)

    async def close(self) -> None:
        await self.setups.close()
        await asyncio.gather(self.staging.close(), *self._mounts.values(), return_exceptions=True)
        remove(self._folder)


async def run_trial(
    agent: Agent,
    question: Question,
    call: Call,
    workshop: TrialResources,
    spec: ModelSpec,
    price: PriceOf,
) -> Reply:
    asked_at, task = time.time(), question.task
    assert task
    try:
        async with asyncio.timeout(workshop.timeout + _COLLECTING):
            staged = [await workshop.staging.installed_skill(one) for one in task.skills]
            start = await workshop.setups.start_of(task)
        skills = [replace(skill, among=agent.skills_folder) for skill in staged]
        tested = (skill for skill in skills if skill.installed.tested)
        if task.until_opened and not any(keys_of(skill.body) for skill in tested):
            return NoAnswer(_NO_WORDS)
        recorder = Recorder(question, skills, price)
        answer = await _in_sandbox(agent, spec, call, workshop, recorder, start)
        return replace(answer, asked_at=asked_at)
    except NoAnswerError as error:
        return NoAnswer(str(error))
    except SandboxError as error:
        return NoAnswer(f"{task.agent}: {one_line(without_keys(str(error)), 500)}")
    except TimeoutError:
        return NoAnswer(f"{task.agent}: the sandbox was not ready in time")
    except Exception as bug:  # an agent of a conftest.py may raise anything
        return NoAnswer(f"{task.agent}: the agent raised {_told(bug)}")


def _told(bug: BaseException) -> str:
    try:
        return one_line(without_keys(repr(bug)), 300)
    except Exception:  # foreign code may raise what can't even be shown
        return type(bug).__name__


async def _in_sandbox(
    agent: Agent,
    spec: ModelSpec,
    call: Call,
    workshop: TrialResources,
    recorder: Recorder,
    start: StartState,
) -> Answer:
    task = recorder.question.task
    assert task
    room = await workshop.room_of(task)
    own = [Mount(skill.host, skill.inside) for skill in recorder.skills]
    mounts = (*room.mounts, *await asyncio.to_thread(agent.mounts), *own)
    sandbox = await workshop.kind.open(replace(room, mounts=mounts))
    try:
        async with asyncio.timeout(_COLLECTING):
            await fill(sandbox, await start.workspace())
            before = () if task.until_opened else await sandbox.tree()
        clock = _Clock(call, max(0.0, workshop.timeout - start.seconds))
        answer = await _within(clock, agent.run(sandbox, clock, recorder, spec))
        answer = answer or recorder.answer("time")
        answer = replace(answer, seconds=clock.seconds + start.seconds)
        if answer.stop == "time":
            answer = replace(answer, seconds=workshop.timeout)
        if task.until_opened and _is_void(answer):
            raise NoAnswerError(f"{task.agent}: {answer.nothing}")
        left = WorkspaceChanges()  # nobody asks what an agent left that was to open a skill, or not
        if not task.until_opened:
            async with workshop.collecting:
                left = await _left(sandbox, before, answer)
        refused = tuple(map(without_keys, sandbox.findings))
    finally:
        await close_sandbox(sandbox)
    activity = answer.activity or Activity()
    findings, by = (*activity.findings, *refused, *left.findings), (task.agent, task.version)
    activity = replace(activity, findings=findings, agents=(by,))
    return replace(answer, files=left.files, workspace=left.workspace, activity=activity)


def _is_void(answer: Answer) -> bool:
    """Whether a model said nothing at all, or thought until it was cut off: that decides nothing.

    After a call, many a model ends without a word.
    """
    activity = answer.activity
    if activity is None or activity.activated or answer.refused or not answer.is_empty:
        return False
    return answer.stop == "length" or (answer.stop not in _ENDED and not activity.tool_calls)


async def _left(sandbox: Sandbox, before: Sequence[TreeEntry], answer: Answer) -> WorkspaceChanges:
    try:
        async with asyncio.timeout(_COLLECTING):
            return await collect_changes(sandbox, before)
    except (SandboxError, TimeoutError) as error:
        if answer.stop != "time":
            raise
        # It was ended, whatever it was doing: what it did before counts.
        return WorkspaceChanges(
            findings=(f"its files could not be read: {one_line(str(error), 200)}",)
        )


@dataclass
class _Clock:
    """A trial's time. The wait for a place among the calls is not the agent's, so not in it.

    Of calls side by side nobody can say who waits for whom: all their time counts. Once the time
    is up, no call is begun any more, or an agent that always has one would never end.
    """

    call: Call
    limit: float
    calling: int = 0
    _begun: int = 0
    _waited: float = 0.0
    _began: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    @property
    def seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._began - self._waited

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:
        loop = asyncio.get_running_loop()
        if self.seconds >= self.limit:
            await loop.create_future()  # until the agent is ended
        began, others = loop.time(), self.calling
        self.calling += 1
        self._begun += 1
        number = self._begun
        try:
            reply = await self.call(question, send)
        finally:
            self.calling -= 1
        alone = not others and number == self._begun
        if alone and isinstance(reply, Answer) and reply.seconds is not None:
            self._waited += max(0.0, loop.time() - began - reply.seconds)
        return reply


async def _within(clock: _Clock, running: Coroutine[None, None, Answer]) -> Answer | None:
    """The agent's answer; None if its time is over.

    A call has a time limit of its own: it ends before the agent's limit is looked at. NoAnswerError
    if the agent knows that its model is why it took so long.
    """
    task = asyncio.get_running_loop().create_task(running)
    # Of a run that is stopped nobody asks what an agent raised, and asyncio would print it.
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        while not task.done():
            left = clock.limit - clock.seconds
            if left <= 0 and not clock.calling:
                await _ended(task)
                failed = task.done() and not task.cancelled() and task.exception()
                if isinstance(failed, NoAnswerError):
                    raise failed
                return None
            await asyncio.wait({task}, timeout=max(left, _LOOK))
        return task.result()
    finally:
        await _ended(task)


async def _ended(task: "asyncio.Task[Answer]") -> None:
    task.cancel()
    with suppress(Exception, asyncio.CancelledError):
        await asyncio.wait({task}, timeout=_GRACE)
