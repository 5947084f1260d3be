"""A trial of an agent: stage skills, open a sandbox, run the agent, keep its
workspace.
"""

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final

from .._util.files import read_file
from .._util.keys import without_keys
from .._util.texts import one_line
from ..errors import NoAnswerError
from ..models import ModelSpec
from ..models.prices import PriceOf, cost
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.arm import SkillCopy
from ..trials.transcript import Activity
from ..trials.trial import Question, Task
from ..trials.written_calls import ADVICE, PROBLEM
from .agent import NO_MCP, Agent, Call, Send
from .recorder import Recorder
from .sandboxes.sandbox import (
    Mount,
    Sandbox,
    SandboxError,
    SandboxSpec,
    TreeEntry,
)
from .skill_use import keys_of
from .snapshot import Snapshot, WorkspaceChanges, collect_changes, fill, tree_of
from .staging import (
    SandboxFor,
    Staging,
    StartState,
    close_sandbox,
    plugin_folder,
)
from .task_sandbox import TaskSandbox

_END_SECONDS: Final = 5.0  # for an agent to end
_FILES_SECONDS: Final = 120.0  # to prepare a sandbox, and to read its files at the end
_POLL: Final = 0.05
_SNAPSHOTS_AT_ONCE: Final = 2
_NO_TEXT: Final = "the skill has no words, so nothing would show whether it is opened"


class AgentTrials:
    """Carries out the trials of a run, in the engine's loop."""

    def __init__(
        self,
        agent_named: Callable[[str], Agent],
        sandbox_for: SandboxFor,
        timeout: float,
        spec_of: Callable[[str], ModelSpec],
        *,
        price_of: PriceOf = lambda _: None,
    ) -> None:
        self._agent_named = agent_named
        self._sandbox_for = sandbox_for
        self._timeout = timeout
        self._spec_of = spec_of
        self._price_of = price_of
        self._agents: dict[str, Agent] = {}
        # Each snapshot may take a hundred megabytes.
        self._snapshots = asyncio.Semaphore(_SNAPSHOTS_AT_ONCE)

    def memory_of(self, task: Task) -> int:
        """Megabytes that a trial takes: as many as the task asks for, if it does."""
        return max(self._agent(task.agent).memory, task.needs.memory_mb or 0)

    async def run(self, question: Question, call: Call) -> Reply:
        """Carry out a trial. Raises nothing but cancellation."""
        task = question.task
        assert task
        agent, price = self._agent(task.agent), self._price_of(question.model)
        if not agent.mcp and any(part.servers for part in task.parts):
            return NoAnswer(f"{task.agent}: {NO_MCP}")
        try:
            if answer := await asyncio.to_thread(agent.answer_at_once, task):
                return _by(task, answer)
            staging = self._staging
            await staging.sandbox_of(task)  # an image may have to be built
            async with asyncio.timeout(self._seconds(task) + _FILES_SECONDS):
                staged = {copy: await staging.skill(copy) for copy in task.skills}
                start = await staging.start_of(task)
            skills = [
                replace(
                    staged[copy],
                    skills_folder=agent.skills_folder,
                    tested=copy.name in task.tested,
                    in_plugin=_place_in_plugin(copy, task),
                )
                for copy in task.skills
                if not copy.plugin
            ]
            plugin = staged[task.plugin].host if task.plugin else ""
            tested = (skill for skill in skills if skill.tested)
            if task.until_opened and not any(keys_of(skill.body) for skill in tested):
                return NoAnswer(_NO_TEXT)
            recorder = Recorder(question, skills, partial(cost, price))
            return await self._in_sandbox(
                agent, task, call, recorder=recorder, start=start, plugin=plugin
            )
        except NoAnswerError as error:
            return NoAnswer(str(error))
        except SandboxError as error:
            return _broken_sandbox(task, error)
        except TimeoutError:
            return NoAnswer(f"{task.agent}: the sandbox was not ready in time")
        except Exception as bug:  # an agent of a conftest.py may raise anything
            return NoAnswer(f"{task.agent}: the agent raised {_shown_bug(bug)}")

    async def set_up(self, task: Task) -> Reply:
        """Run the setup of a task for trials on other machines;
        the answer has the workspace.
        """
        try:
            start = await self._staging.start_of(task)
            workspace = (
                await asyncio.to_thread(read_file, start.file) if start.file else b""
            )
        except NoAnswerError as error:
            return NoAnswer(str(error))
        except SandboxError as error:
            return _broken_sandbox(task, error)
        return Answer("", seconds=start.seconds, workspace=workspace)

    def start_from(self, task: Task, prepared: Answer) -> None:
        """Let trials of a task start from the workspace of
        ``set_up`` on another machine.
        """
        self._staging.add_start(task, prepared.workspace, prepared.seconds or 0.0)

    async def close(self) -> None:
        for agent in self._agents.values():
            with suppress(Exception):  # an agent of a conftest.py may raise anything
                await agent.close()
        if "_staging" in self.__dict__:
            await self._staging.close()

    @cached_property
    def _staging(self) -> Staging:
        return Staging(self._sandbox_for, self._timeout)

    def _seconds(self, task: Task) -> float:
        return self._timeout if task.timeout is None else task.timeout

    def _agent(self, name: str) -> Agent:
        if name not in self._agents:
            self._agents[name] = self._agent_named(name)
        return self._agents[name]

    async def _in_sandbox(
        self,
        agent: Agent,
        task: Task,
        call: Call,
        *,
        recorder: Recorder,
        start: StartState,
        plugin: str,
    ) -> Answer:
        """``plugin`` is the staged copy of the plugin under test, if there is one."""
        spec = await self._staging.spec_for(task)
        apart = (skill for skill in recorder.skills if not skill.in_plugin)
        skill_mounts = [Mount(skill.host, skill.inside) for skill in apart]
        skill_mounts += [Mount(plugin, plugin_folder(task))] if plugin else []
        skill_mounts += await self._staging.solution_mounts(task)
        mounts = (*spec.mounts, *await asyncio.to_thread(agent.mounts), *skill_mounts)
        place = await self._staging.sandbox_of(task)
        spec = replace(spec, mounts=mounts, env=_env_of(task, spec))
        sandbox = await place.kind.open(spec)
        try:
            async with asyncio.timeout(_FILES_SECONDS):
                workspace = await start.workspace()
                await fill(sandbox, workspace)
                known = _known_to_checks(place, task, workspace)
                del workspace  # it may be large
                before = () if task.until_opened else await tree_of(sandbox)
            clock = _Clock(call, max(0.0, self._seconds(task) - start.seconds))
            model = self._spec_of(recorder.question.asked_as)
            answer = await _amid_parts(
                recorder,
                sandbox,
                lambda: _within(clock, agent.run(sandbox, clock, recorder, model)),
            )
            if recorder.ends_with_written_call:
                raise NoAnswerError(f"{recorder.question.model}: {PROBLEM}. {ADVICE}")
            is_late = answer.stop == "time"
            seconds = self._seconds(task) if is_late else clock.seconds + start.seconds
            answer = replace(answer, seconds=seconds)
            # Of no use if only opening the skill was tested
            changes = WorkspaceChanges()
            if not task.until_opened:
                async with self._snapshots:
                    changes = await _changes(sandbox, before, known, is_late)
        finally:
            await close_sandbox(sandbox)
        answer = replace(answer, files=changes.files, workspace=changes.workspace)
        return _by(task, answer, *changes.findings)


def _env_of(task: Task, spec: SandboxSpec) -> dict[str, str]:
    """The commands of parts come before those of the case, and of the system."""
    env = dict(spec.env)
    path = [part.path for part in task.parts if part.path]
    if path and "PATH" in env:
        path.append(env["PATH"])
    if path:
        env["PATH"] = ":".join(path)
    return env


async def _amid_parts(
    recorder: Recorder, sandbox: Sandbox, run: Callable[[], Awaitable[Answer | None]]
) -> Answer:
    """What an agent answers while the parts of its task stand around it."""
    task = recorder.question.task
    async with AsyncExitStack() as stack:
        for part in task.parts if task else ():
            prepared = await stack.enter_async_context(part.around(sandbox))
            recorder.prepared.append(prepared)
        answer = await run()

    answer = answer or recorder.answer("time")
    for prepared in recorder.prepared:
        answer = prepared.add_to(answer)
    return answer


def _by(task: Task, answer: Answer, *findings: str) -> Answer:
    """An answer with its agent, and with what was left out."""
    activity = answer.activity or Activity()
    findings, agents = (*activity.findings, *findings), ((task.agent, task.version),)
    return replace(answer, activity=replace(activity, findings=findings, agents=agents))


def _known_to_checks(place: TaskSandbox, task: Task, start: Snapshot) -> frozenset[str]:
    """Files of the start that checks have, too: no setup is run again for them."""
    if place.is_own:
        has_setup = task.setup
        return frozenset(() if has_setup else (file.path for file in start.files))
    given = {file.digest for file in task.files}
    return frozenset(file.path for file in start.files if file.digest in given)


def _broken_sandbox(task: Task, error: SandboxError) -> NoAnswer:
    return NoAnswer(f"{task.agent}: {one_line(without_keys(str(error)), 1000)}")


def _shown_bug(bug: BaseException) -> str:
    try:
        return one_line(without_keys(repr(bug)), 300)
    except Exception:  # its repr may raise, too
        return type(bug).__name__


async def _changes(
    sandbox: Sandbox, before: Sequence[TreeEntry], known: Collection[str], is_late: bool
) -> WorkspaceChanges:
    try:
        async with asyncio.timeout(_FILES_SECONDS):
            return await collect_changes(sandbox, before, known)
    except (SandboxError, TimeoutError) as error:
        if not is_late:
            raise
        # It was stopped by the time limit: what it did before that counts.
        finding = f"its files could not be read: {one_line(str(error), 200)}"
        return WorkspaceChanges(findings=(finding,))


@dataclass
class _Clock:
    """The time of a trial, without the time that a single call waits for its turn.

    Of parallel calls, all time counts. Once the time is up, no call is begun, so that
    an agent with a steady stream of calls ends, too.
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
        began, parallel = loop.time(), self.calling
        self.calling += 1
        self._begun += 1
        number = self._begun
        try:
            reply = await self.call(question, send)
        finally:
            self.calling -= 1
        alone = not parallel and number == self._begun
        if alone and isinstance(reply, Answer) and reply.seconds is not None:
            self._waited += max(0.0, loop.time() - began - reply.seconds)
        return reply


async def _within(
    clock: _Clock, running: Coroutine[None, None, Answer]
) -> Answer | None:
    """The agent's answer; None if its time is over.

    A running call has its own time limit, and is waited for. NoAnswerError if the agent
    says that its model took all the time.
    """
    task = asyncio.get_running_loop().create_task(running)
    # Retrieve the exception, or asyncio would print it when a run is stopped.
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        while not task.done():
            remaining = clock.limit - clock.seconds
            if remaining <= 0 and not clock.calling:
                await _cancelled(task)
                failed = task.done() and not task.cancelled() and task.exception()
                if isinstance(failed, NoAnswerError):
                    raise failed
                return None
            await asyncio.wait({task}, timeout=max(remaining, _POLL))
        return task.result()
    finally:
        await _cancelled(task)


async def _cancelled(task: "asyncio.Task[Answer]") -> None:
    task.cancel()
    with suppress(Exception, asyncio.CancelledError):
        await asyncio.wait({task}, timeout=_END_SECONDS)


def _place_in_plugin(copy: SkillCopy, task: Task) -> str | None:
    if copy.in_plugin is None or task.plugin is None:
        return None
    return posixpath.normpath(f"{plugin_folder(task)}/{copy.in_plugin}")
