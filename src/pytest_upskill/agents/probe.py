"""Try agents on a scripted model: do they see a skill, and can they use their tools?

The model calls whatever tools an agent offers. Agents name their tools differently, so
each is found by its name, and its arguments by their names.
"""

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple

from .._util.texts import one_line
from ..errors import ModelError, SettingsError
from ..models import ModelSpec
from ..models.scripted import ScriptedModel, ScriptedProvider
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.arm import SkillCopy
from ..trials.transcript import Tool, ToolCall
from ..trials.trial import Question, Task
from .agent import Agent, Send
from .agent_trials import AgentTrials
from .command_agent import CommandAgent
from .sandboxes.sandbox import WORKSPACE, SandboxKind
from .task_sandbox import always

_NAME: Final = "doctor-probe"
_SKILL: Final = f"""---
name: {_NAME}
description: Used by the doctor to try out an agent.
---

The word of this skill is LANTERN. Its reference is references/word.md.
"""
_FILES: Final = {
    "SKILL.md": _SKILL,
    "references/word.md": "The word of the reference is HARBOUR.\n",
    "scripts/run.sh": "echo The word of the script is ANCHOR.\n",
}
_FILE: Final = "written.txt"
_FINAL: Final = "All tools were tried."
_SECONDS: Final = 120.0
_AT_ONCE: Final = 2  # agents; some take two gigabytes
_SPEC: Final = ModelSpec("doctor", ScriptedProvider("scripted", ""), "doctor")
_VARIABLE: Final = "PYTEST_UPSKILL_PROBE_KEY"

STEPS: Final = (
    "starts",
    "sees skills",
    "opens one",
    "reads a file",
    "runs a command",
    "writes a file",
    "key invisible",
    "network closed",
)


@dataclass(frozen=True)
class Probe:
    """The outcome of each step: True, False, or None if it was not reached."""

    version: str
    outcomes: Mapping[str, bool | None]
    problem: str = ""

    @property
    def works(self) -> bool:
        return all(self.outcomes.values())


@dataclass(frozen=True)
class PlantedSecrets:
    """What no agent may find: a key in the environment and in a file, and a server."""

    key: str
    file: Path
    port: int

    @property
    def spying(self) -> str:
        """A command that prints the key if it finds it,
        and whether it reaches the server.
        """
        places = f"{shlex.quote(str(self.file))} /proc/*/environ"
        return (
            f"{{ env; cat {places} 2>/dev/null; }} | grep -a -o -E"
            " 'probe-[0-9a-f]{32}'; "
            f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port}' 2>/dev/null"
            # No agent repeats these words with the command
            " && echo REA''CHED || echo CLO''SED"
        )


def is_installed(agent: Agent) -> bool:
    """Whether there is a program to try; our own agent needs none."""
    return (
        not isinstance(agent, CommandAgent) or shutil.which(agent.program) is not None
    )


async def probes(agents: Iterable[Agent], kind: SandboxKind) -> dict[str, Probe]:
    """Try agents, a few in parallel."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def tried(agent: Agent, planted: PlantedSecrets) -> Probe:
        async with places:
            return await _probe(agent, kind, planted)

    agents = tuple(agents)
    async with _planted_secrets() as planted:
        results = await asyncio.gather(*(tried(agent, planted) for agent in agents))
    return {agent.name: result for agent, result in zip(agents, results, strict=True)}


@asynccontextmanager
async def _planted_secrets() -> AsyncIterator[PlantedSecrets]:
    key = f"probe-{secrets.token_hex(16)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        file = Path(folder) / "key"
        file.write_text(key)
        os.environ[_VARIABLE] = key
        try:
            yield PlantedSecrets(key, file, server.getsockname()[1])
        finally:
            del os.environ[_VARIABLE]


async def _probe(agent: Agent, kind: SandboxKind, planted: PlantedSecrets) -> Probe:
    """A trial with a skill of its own."""
    try:
        version = await asyncio.to_thread(agent.version)
    except SettingsError as error:
        problem = f"{error.problem}. {error.hint}".strip()
        return Probe("", _outcomes([], planted), problem)
    model = _ProbeModel(agent, planted)
    trials = AgentTrials(lambda _: agent, always(kind), _SECONDS, lambda _: _SPEC)
    with tempfile.TemporaryDirectory() as folder:
        try:
            reply = await trials.run(
                _question(agent, version, Path(folder) / _NAME), model
            )
        finally:
            await trials.close()
    outcomes = _outcomes(model.questions, planted, reply)
    return Probe(version, outcomes, _problem(reply))


class _ProbeModel:
    """A model that calls each tool once, and remembers its questions."""

    def __init__(self, agent: Agent, planted: PlantedSecrets) -> None:
        steps = (
            ScriptStep("skill", _NAME),
            ScriptStep("read", "{skill}/references/word.md"),
            ScriptStep("shell", "sh {skill}/scripts/run.sh"),
            ScriptStep("write", f"{WORKSPACE}/{_FILE}", "written\n"),
            ScriptStep("shell", planted.spying),
            ScriptStep("say", _FINAL),
        )
        self._model = ScriptedModel(
            ToolScript(steps, _NAME, f"{agent.skills_folder}/{_NAME}")
        )
        # With tools: the others are beside the conversation
        self.questions: list[Question] = []

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:
        if question.tools:
            self.questions.append(question)
        try:
            return await (send(self._model) if send else self._model.ask(question))
        except ModelError as error:
            return NoAnswer(str(error))


def _question(agent: Agent, version: str, folder: Path) -> Question:
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    task = Task(
        agent.name, version, skills=(SkillCopy.of(_NAME, folder),), tested=(_NAME,)
    )
    return Question("doctor", "", (("user", "Try out your tools."),), 1000, task=task)


def _outcomes(
    questions: Sequence[Question], planted: PlantedSecrets, reply: Reply | None = None
) -> dict[str, bool | None]:
    """The outcome of each step. The first that was not reached has failed."""
    answered = ([r.text for step in q.steps for r in step.results] for q in questions)
    results: list[str | None] = [*max(answered, key=len, default=[])]
    opened, read, ran, wrote, spied = (results + [None] * 5)[:5]
    if wrote is not None and isinstance(reply, Answer):
        wrote = _FILE if any(file.path == _FILE for file in reply.files) else ""
    outcomes: list[bool | None] = [
        True if questions else None,
        _NAME in _prompt_text(questions[0]) if questions else None,
        None if opened is None else any("LANTERN" in text for text in results if text),
        None if read is None else "HARBOUR" in read,
        None if ran is None else "ANCHOR" in ran,
        None if wrote is None else bool(wrote),
        None if spied is None else planted.key not in spied,
        None if spied is None else "CLOSED" in spied and "REACHED" not in spied,
    ]
    if None in outcomes:
        outcomes[outcomes.index(None)] = False
    return dict(zip(STEPS, outcomes, strict=True))


def _prompt_text(question: Question) -> str:
    """All texts of a request: any of them may have the list of skills."""
    tools = [
        text for tool in question.tools for text in (tool.description, tool.schema)
    ]
    return "\n".join(
        [question.system, *(text for _, text in question.messages), *tools]
    )


def _problem(reply: Reply) -> str:
    if isinstance(reply, NoAnswer):
        return reply.reason
    if reply.stop == "time":
        return f"it did not finish within {_SECONDS:.0f} s"
    return "" if _FINAL in reply.text else f"it ended with: {one_line(reply.text, 200)}"


Kind = Literal["skill", "read", "shell", "write", "say"]

# Names of tools, the likeliest first, without the prefix of a server.
_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "skill": ("skill", "activate_skill"),
    "shell": ("bash", "shell", "exec_command", "shell_command", "run_shell_command"),
    "read": ("read", "read_file", "view"),
    "write": ("write", "write_file", "create"),
}
_COMMAND: Final = ("command", "cmd")
_PATH: Final = ("filepath", "path", "absolutepath")
_CONTENT: Final = ("content", "filetext")
_SKILL_KEYS: Final = ("skill", "name")
_EMPTY: Final = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": False,
    "array": [],
}


class ScriptStep(NamedTuple):
    """A tool to use: ``ScriptStep("write", "out.txt", "hello")``.

    A path may begin with ``{skill}``, the folder of the skill.
    """

    kind: Kind
    argument: str  # a skill, a path, a command or a text
    text: str = ""  # of a file to write


class ToolScript:
    """A script for a model: one step after each result,
    and the last one again and again.
    """

    def __init__(
        self, steps: Sequence[ScriptStep], skill: str = "", folder: str = ""
    ) -> None:
        self._steps = steps
        self._skill = skill
        self._folder = folder  # of the skill, if the agent names none

    def __call__(self, question: Question) -> Answer:
        if not question.tools:
            return Answer("A title", Usage(1, 1, 0))
        results = [result.text for step in question.steps for result in step.results]
        seen = "\n".join(
            [question.system, *(text for _, text in question.messages), *results]
        )
        step = self._steps[min(len(results), len(self._steps) - 1)]
        return self._answer(step, question.tools, seen, len(results))

    def _answer(
        self, step: ScriptStep, tools: Sequence[Tool], seen: str, number: int
    ) -> Answer:
        kind, argument, text = step
        argument = argument.replace("{skill}", self._folder_of(self._skill, seen))
        if kind == "say":
            return Answer(argument, Usage(1, 1, 0))
        tool = _tool_for(kind, tools)
        if tool is None and kind == "skill":
            file = f"{self._folder_of(argument, seen)}/SKILL.md"
            return self._answer(ScriptStep("read", file), tools, seen, number)
        if tool is None:
            heredoc = f"> {argument} <<'EOF'\n{text}\nEOF"
            argument = f"cat {argument if kind == 'read' else heredoc}"
            kind, tool = "shell", _tool_for("shell", tools)
        if tool is None:
            return Answer(
                f"no tool for {kind} among {', '.join(each.name for each in tools)}"
            )
        arguments = json.dumps(_filled(tool, kind, argument, text))
        call = ToolCall(f"call_{number:02d}", tool.name, arguments)
        return Answer("", Usage(1, 1, 0), "tools", calls=(call,))

    def _folder_of(self, skill: str, seen: str) -> str:
        """The folder of a skill as the agent names it."""
        match = re.search(
            rf"([\w./~-]*/{re.escape(skill)})(?=/SKILL\.md|\s|<|`|$)", seen
        )
        if not skill or not match:
            return self._folder or skill
        root, slash, path = match[1].partition("/")
        table = re.search(rf"`{re.escape(root)}` = `([^`\n]+)`", seen) if root else None
        # Codex shortens paths: r0/NAME
        return f"{table[1]}{slash}{path}" if table else match[1]


def _tool_for(kind: str, tools: Iterable[Tool]) -> Tool | None:
    by_name = {
        re.split(r"__|\.|-", tool.name)[-1].lower(): tool for tool in reversed([*tools])
    }
    return next((by_name[name] for name in _TOOLS[kind] if name in by_name), None)


def _filled(tool: Tool, kind: str, argument: str, text: str) -> dict[str, Any]:
    schema = json.loads(tool.schema or "{}")
    schema = schema if isinstance(schema, dict) else {}
    filled = dict[str, Any]()
    for name, form in (schema.get("properties") or {}).items():
        plain_name = name.lower().replace("_", "")
        if kind == "shell" and plain_name in _COMMAND:
            filled[name] = argument
        elif kind in ("read", "write") and plain_name in _PATH:
            wants_absolute = "absolute" in f"{name} {form.get('description')}".lower()
            filled[name] = (
                str(PurePosixPath(WORKSPACE, argument)) if wants_absolute else argument
            )
        elif kind == "write" and plain_name in _CONTENT:
            filled[name] = text
        elif kind == "skill" and plain_name in _SKILL_KEYS:
            filled[name] = argument
        elif name in (schema.get("required") or ()):
            filled[name] = (form.get("enum") or [_EMPTY.get(form.get("type"), "x")])[0]
    return filled
