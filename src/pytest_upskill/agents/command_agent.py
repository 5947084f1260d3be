"""Agents that are programs: they run in the sandbox and reach
their model by the gateway.
"""

import asyncio
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .._util.keys import HIDDEN, without_keys
from .._util.texts import one_line
from ..errors import NoAnswerError, SettingsError
from ..models import ModelSpec
from ..models.model import ProtocolName
from ..trials.answer import Answer
from ..trials.trial import Question
from .agent import Agent, Call
from .gateway.endpoint import Endpoint, Gateway
from .logins import LoginProvider
from .part import ServerProgram
from .program import Program, find_program, version_of
from .recorder import Recorder
from .sandboxes.sandbox import HOME, CommandResult, Mount, Sandbox
from .skill_content import invoked_skill, skill_content
from .staging import InstalledSkill, plugin_folder
from .user_turns import UserTurns

# seconds; the time limit of the trial ends the program
_UNLIMITED: Final = 7 * 86_400.0
_NOT_FOUND: Final = 127  # the exit status of a shell that did not find a program
# tokens, for agents that need a number: most models take as many
CONTEXT: Final = 128_000


@dataclass(frozen=True)
class AgentJob:
    """The task of an agent, and the address of its model."""

    prompt: str
    model: str
    url: str  # of the gateway, without a version such as /v1
    key: str  # for the gateway
    protocol: ProtocolName
    max_turns: int
    max_output: int  # tokens
    # Whether the gateway asks on the vendor's login, not with a key
    login: bool = False
    judges: bool = False  # it only has to reply: tools are of no use
    # As most agents have them under ``mcpServers``
    mcp_servers: Mapping[str, Any] = field(default_factory=dict)
    has_user: bool = False  # who may answer it: its session has to be kept
    answer: str = ""  # of the user; the session goes on with it, in place of the prompt
    plugin: str = ""  # the folder of a plugin that is under test
    # The prompt is a command of the agent's, by which a skill is invoked
    command: bool = False

    @property
    def text(self) -> str:
        """What it is told."""
        return self.answer or self.prompt


@dataclass(frozen=True)
class Launch:
    """How to start an agent in its workspace."""

    arguments: Sequence[str]  # after its name
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # text by path in its home
    stdin: bytes = b""


class CommandAgent(Agent):
    """A program. Its transcript is what went through the gateway.

    Its exit status counts only without an answer: some agents
    exit with 0 after an error.
    """

    program: str  # its name on PATH
    install: str  # the command that installs it
    skills_folder = f"{HOME}/.agents/skills"
    memory = 400

    def __init__(self) -> None:
        self._gateway = Gateway()
        self._located: Program | None = None

    @abstractmethod
    def launch(self, job: AgentJob) -> Launch:
        """How to start it."""

    def require(self) -> None:
        self.version()

    def version(self) -> str:
        program = self._program()
        try:
            return version_of(program.host, self.cache())
        except ValueError as error:
            problem = f"{self.program} --version failed: {error}"
            raise self.error(problem, f"Try {self.program} --version.") from None

    def cache(self) -> str:
        """A folder of the host for what it unpacks at its first start; none by
        default.
        """
        return ""

    def how_to_install(self, version: str) -> str:
        return (
            f"{self.install}{'@' if self.install.startswith('npm ') else '=='}{version}"
        )

    def mounts(self) -> tuple[Mount, ...]:
        return self._program().mounts

    async def run(
        self, sandbox: Sandbox, call: Call, recorder: Recorder, spec: ModelSpec
    ) -> Answer:
        endpoint: Endpoint | None = None
        try:
            listener = await sandbox.listen(0)
            trial = (recorder.question, spec, call, listener, recorder.skills)
            async with self._gateway.endpoint(*trial) as endpoint:
                prompt, command = self._prompt(recorder, sandbox)
                job = self._job(recorder, spec, endpoint, sandbox)
                job = replace(job, prompt=prompt, command=command)
                launch = self.launch(job)
                for path, text in launch.files.items():
                    await sandbox.write(f"{HOME}/{path}", text.encode())
                user = UserTurns(recorder, call)
                try:
                    ran = await self._run_program(sandbox, launch, endpoint)
                    while said := await _answer_of(user, endpoint, ran):
                        launch = self.launch(replace(job, answer=said))
                        ran = await self._resume_program(sandbox, launch, endpoint)
                finally:  # also if its time is up
                    final = endpoint.write_to(recorder)
        except asyncio.CancelledError:  # its time is up, perhaps because of its model
            if endpoint and endpoint.no_answer:
                raise NoAnswerError(endpoint.no_answer) from None
            if endpoint is None or not endpoint.has_requests:
                nothing = f"{self.name} asked its model nothing in all its time"
                raise NoAnswerError(nothing) from None
            raise
        return self._answer(endpoint, ran, recorder, final)

    def server_name(self, server: ServerProgram) -> str:
        """What it is to call an MCP server."""
        return server.name

    def command(self, skill: InstalledSkill, arguments: str) -> str:  # noqa: ARG002
        """What a user types to invoke a skill; empty if the agent has no such way."""
        return ""

    def _prompt(self, recorder: Recorder, sandbox: Sandbox) -> tuple[str, bool]:
        """What the agent is told, and whether it is a command of its own.

        An agent without commands gets the text of the skill that the user invokes. So
        does any if something comes before: a command has to be first.
        """
        question, skill = (
            recorder.question,
            invoked_skill(recorder.question, recorder.skills),
        )
        if not (skill and question.task and question.task.invoke):
            return prompt_of(question), False
        invoke = question.task.invoke
        is_alone = not question.system and len(question.messages) == 1
        command = self.command(skill, invoke.arguments) if is_alone else ""
        text = command or skill_content(skill, sandbox, invoke)
        invoked = replace(question, messages=(*question.messages[:-1], ("user", text)))
        return prompt_of(invoked), bool(command)

    def _job(
        self, recorder: Recorder, spec: ModelSpec, endpoint: Endpoint, sandbox: Sandbox
    ) -> AgentJob:
        question = recorder.question
        speaks = spec.provider.protocols(spec)  # the best one first
        servers = {}
        for prepared in recorder.prepared:
            for server in prepared.servers:
                start = {"command": server.command, "args": list(server.arguments)}
                servers[self.server_name(server)] = start
        plugin = plugin_folder(question.task)
        return AgentJob(
            prompt_of(question),
            endpoint.model,
            endpoint.url,
            endpoint.token,
            next(protocol for protocol in speaks if protocol in self.protocols),
            question.task.max_turns if question.task else 1,
            question.max_output,
            isinstance(spec.provider, LoginProvider),
            question.verdicts is not None,
            servers,
            bool(question.task and question.task.user),
            plugin=plugin and sandbox.path(plugin),
        )

    async def _start(self, sandbox: Sandbox, launch: Launch) -> CommandResult:
        program = self._program()
        arguments = [sandbox.path(program.path), *launch.arguments]
        if program.folders:  # to be found before those of the system
            path = ":".join(map(sandbox.path, program.folders))
            arguments = ["/bin/sh", "-c", 'PATH="$0:$PATH" exec "$@"', path, *arguments]
        return await sandbox.run(
            arguments, timeout=_UNLIMITED, env=launch.env, stdin=launch.stdin
        )

    async def _run_program(
        self, sandbox: Sandbox, launch: Launch, endpoint: Endpoint
    ) -> CommandResult | None:
        """How it ended; None if it went on after the gateway
        refused all further requests.
        """
        running = asyncio.ensure_future(self._start(sandbox, launch))
        over = asyncio.ensure_future(endpoint.finished.wait())
        try:
            await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
            return running.result() if running.done() else None
        finally:
            running.cancel()
            over.cancel()
            await asyncio.gather(running, over, return_exceptions=True)

    async def _resume_program(
        self, sandbox: Sandbox, launch: Launch, endpoint: Endpoint
    ) -> CommandResult | None:
        """The same for one that goes on; NoAnswerError if it does
        not ask its model anything.
        """
        turns = endpoint.log.turns
        ran = await self._run_program(sandbox, launch, endpoint)
        if (
            ran
            and endpoint.log.turns == turns
            and not (endpoint.stop or endpoint.no_answer)
        ):
            problem = "did not go on with the user's answer"
            raise NoAnswerError(f"{self.name} {problem} ({_ending(ran)})")
        return ran

    def _answer(
        self,
        endpoint: Endpoint,
        ran: CommandResult | None,
        recorder: Recorder,
        final: str,
    ) -> Answer:
        last, asked = endpoint.log.last, endpoint.has_requests
        if ran and (problem := self.why_not_installed(ran.output)):
            raise NoAnswerError(f"{self.name}: {problem}")
        if endpoint.stop:
            return recorder.answer(endpoint.stop, final)
        if endpoint.no_answer:
            raise NoAnswerError(endpoint.no_answer)
        assert ran  # or the endpoint has a reason
        if last is None:
            problem = (
                "ended before its model answered"
                if asked
                else "asked its model nothing"
            )
            refused = () if asked else recorder.activity.findings[:2]
            reason = f"{self.name} {problem} ({'; '.join([_ending(ran), *refused])})"
            if ran.exit == _NOT_FOUND and not asked:  # mostly a script of the user's
                reason += (
                    f". If {self._program().host} only starts another program, that one"
                    " is not in the sandbox: put the folder of that program first on"
                    " PATH"
                )
            raise NoAnswerError(reason)
        if last.calls:
            problem = "ended after a tool call, without an answer"
            raise NoAnswerError(f"{self.name} {problem} ({_ending(ran)})")
        return recorder.answer(last.stop, final)

    def why_not_installed(self, output: bytes) -> str:  # noqa: ARG002
        """Why it did not take the plugin under test, by what it printed;
        empty if it did.
        """
        return ""

    def with_needs(self, program: Program) -> Program:
        """Add programs that it starts; SettingsError if one of them is missing."""
        return program

    def _program(self) -> Program:
        if self._located is None:
            try:
                program = find_program(self.program)
            except ValueError as error:
                hint = (
                    "Put the folder of the program itself before that of the shim on"
                    " PATH."
                )
                raise self.error(str(error), hint) from None
            if program is None:
                hint = f"Install it: {self.install}"
                raise self.error(f"{self.program} is not installed", hint)
            self._located = self.with_needs(program)
        return self._located

    def error(self, problem: str, hint: str) -> SettingsError:
        return SettingsError("agents", problem, hint, value=self.name)

    async def close(self) -> None:
        await self._gateway.close()


async def _answer_of(
    user: UserTurns, endpoint: Endpoint, ran: CommandResult | None
) -> str:
    """What the user says to an agent that has ended its turn;
    empty if that was its last.
    """
    last = endpoint.log.last
    is_over = ran is None or last is None or endpoint.stop or endpoint.no_answer
    return "" if is_over or last is None else await user.answer_to(last)


def prompt_of(question: Question) -> str:
    """All messages of a question as one text, as agents take only one."""
    *before, (_, last) = question.messages
    earlier = [
        f"{'You' if role == 'assistant' else 'I'} said: {text}" for role, text in before
    ]
    return "\n\n".join(filter(None, [question.system, *earlier, last]))


def _ending(ran: CommandResult) -> str:
    """How a program ended, and its last error."""
    error = last_error(ran.output)
    return f"{ran.status}: {error}" if error else ran.status


_LINES: Final = 60  # at the end
_LONGEST_LINE: Final = 20_000
_LONGEST: Final = 250
_SEARCHED: Final = 2_000  # characters of a message: patterns take long on hostile ones
_DEEPEST: Final = 6  # levels of an event
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>()].?)"
)
_SANDBOX_NOTE: Final = re.compile(r"\[(?:The sandbox stopped|Stopped:|A file grew)")
_TRACE: Final = re.compile(
    r"\s+at |\s*File \"|Node\.js v|Bun v|\s*\d+ \||note: run with|Traceback"
    r" \(|[\W_]*$|throw "
)
_TROUBLE: Final = re.compile(
    r"error|exception|fail|fatal|panic|abort|killed|denied|refused|invalid|unknown|unsupported|"
    r"not (?:found|supported|installed|logged)|no such|can(?:no|')t|could"
    r" ?n.t|unable|must|"
    r"require|missing|exceed|expired|too old|log ?in|limit|timed out",
    re.I,
)
_KIND_KEYS: Final = ("type", "subtype", "status", "level")
# Keys of errors in events, the likeliest first.
_KEYS: Final = (
    "error",
    "errors",
    "errorMessage",
    "error_message",
    "message",
    "result",
    "reason",
)
_KEYS_WITHIN: Final = (
    *_KEYS,
    "data",
    "details",
    "detail",
    "description",
    "name",
    "text",
    "code",
)
_VARIABLE_PARTS: Final = (  # different in each trial
    (
        re.compile(r"^[\[(]?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?[\])]?\s*"),
        "",
    ),
    (re.compile(r"\btrialkey-[\w-]{20,}"), HIDDEN),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.I), "…"),
    (re.compile(r"\d{4}-\d\d-\d\d[T_ ]\d\d[:-]\d\d[\d:.,-]*Z?"), "…"),
    (re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,}\b"), "…"),
    (re.compile(r"(?<![\w.])\d{5,}(?![\w.]*\w)"), "…"),
)


def last_error(output: bytes) -> str:
    """The most telling line about why a program ended; empty if there is none.

    CLIs print events as JSON, stack traces, colours and progress, all of it hostile
    text. The same cause gives the same line.
    """
    text = output.decode("utf-8", "replace")[-_LINES * _LONGEST_LINE :]
    lines = [line[:_LONGEST_LINE] for line in text.splitlines() if line.strip()][
        -_LINES:
    ]
    messages = [message for message in map(_message, lines) if message]
    by_sandbox = (
        message for message in reversed(messages) if _SANDBOX_NOTE.match(message)
    )
    troubled = (message for message in reversed(messages) if _TROUBLE.search(message))
    return (
        next(by_sandbox, None)
        or next(troubled, None)
        or (messages[-1] if messages else "")
    )


def _message(line: str) -> str:
    """The message of a line; empty for a part of a trace, or an event that is no
    error.
    """
    line = _ESCAPES.sub("", line)
    if line.lstrip().startswith("{"):
        line = next(_in_event(line), "")
    elif _TRACE.match(line):
        return ""
    line = without_keys(line.strip())[:_SEARCHED]
    for pattern, instead in _VARIABLE_PARTS:
        line = pattern.sub(instead, line)
    return one_line(line, _LONGEST)


def _in_event(line: str) -> Iterator[str]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        yield line  # cut off, or no JSON
        return
    if isinstance(event, dict) and _is_error(event):
        yield from _texts(event, (*_KEYS, "data"), _DEEPEST)


def _is_error(event: dict[str, object]) -> bool:
    kinds = " ".join(str(event.get(key, ""))[:100] for key in _KIND_KEYS)
    keys = ("error", "errors", "errorMessage", "error_message", "is_error")
    return any(event.get(key) for key in keys) or bool(
        re.search("error|fail|fatal", kinds, re.I)
    )


def _texts(value: object, keys: tuple[str, ...], depth: int) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield " ".join(value.split())
    elif isinstance(value, list) and depth:
        for item in value[:5]:
            yield from _texts(item, keys, depth - 1)
    elif isinstance(value, dict) and depth:
        for key in keys:
            yield from _texts(value.get(key), _KEYS_WITHIN, depth - 1)
