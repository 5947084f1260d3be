"""Try agents on a scripted model: do they see a skill, use their tools, and nothing else?"""

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
from ..trials.task import Task, installed
from ..trials.tools import Tool, ToolCall
from ..trials.trial import Question
from .agent import Agent, Send
from .agent_trials import AgentTrials
from .command_agent import CommandAgent
from .sandboxes.sandbox import WORKSPACE, SandboxKind

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
_DONE: Final = "All tools were tried."
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
    """What came of it: yes, no, or None if it never got that far."""

    version: str
    done: Mapping[str, bool | None]
    problem: str = ""

    @property
    def works(self) -> bool:
        return all(self.done.values())


@dataclass(frozen=True)
class Outside:
    """What no agent may find: a key, in the environment and in a file, and a server."""

    key: str
    file: Path
    port: int

    @property
    def spying(self) -> str:
        """A command that prints the key wherever it is found, and whether the server is."""
        places = f"{shlex.quote(str(self.file))} /proc/*/environ"
        return (
            f"{{ env; cat {places} 2>/dev/null; }} | grep -a -o -E 'probe-[0-9a-f]{{32}}'; "
            f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port}' 2>/dev/null"
            " && echo REA''CHED || echo CLO''SED"  # no agent repeats these words with the command
        )


def is_installed(agent: Agent) -> bool:
    """Whether there is a program to try; an agent of our own is always there."""
    return not isinstance(agent, CommandAgent) or shutil.which(agent.program) is not None


async def probes(agents: Iterable[Agent], kind: SandboxKind) -> dict[str, Probe]:
    """Try agents, some of them side by side."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def tried(agent: Agent, outside: Outside) -> Probe:
        async with places:
            return await _probe(agent, kind, outside)

    agents = tuple(agents)
    async with _outside() as outside:
        found = await asyncio.gather(*(tried(agent, outside) for agent in agents))
    return {agent.name: one for agent, one in zip(agents, found, strict=True)}


@asynccontextmanager
async def _outside() -> AsyncIterator[Outside]:
    key = f"probe-{secrets.token_hex(16)}"
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key"
        file.write_text(key)
        os.environ[_VARIABLE] = key
        try:
            yield Outside(key, file, server.getsockname()[1])
        finally:
            del os.environ[_VARIABLE]


async def _probe(agent: Agent, kind: SandboxKind, outside: Outside) -> Probe:
    """A trial with a skill of its own."""
    try:
        version = await asyncio.to_thread(agent.version)
    except SettingsError as error:
        problem = f"{error.problem}. {error.hint}".strip()
        return Probe("", _done([], outside), problem)
    asked = _ProbeModel(agent, outside)
    trials = AgentTrials(lambda _: agent, lambda: kind, _SECONDS, lambda _: _SPEC)
    with tempfile.TemporaryDirectory() as folder:
        try:
            reply = await trials.run(_question(agent, version, Path(folder) / _NAME), asked)
        finally:
            await trials.close()
    done = _done(asked.questions, outside, reply)
    return Probe(version, done, _problem(reply))


class _ProbeModel:
    """A model that has each tool called once, and remembers what it was asked."""

    def __init__(self, agent: Agent, outside: Outside) -> None:
        steps = (
            ScriptStep("skill", _NAME),
            ScriptStep("read", "{skill}/references/word.md"),
            ScriptStep("shell", "sh {skill}/scripts/run.sh"),
            ScriptStep("write", f"{WORKSPACE}/{_FILE}", "written\n"),
            ScriptStep("shell", outside.spying),
            ScriptStep("say", _DONE),
        )
        self._model = ScriptedModel(ToolScript(steps, _NAME, f"{agent.skills_folder}/{_NAME}"))
        self.questions: list[Question] = []  # of the conversation, which has tools

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
    task = Task(agent.name, version, skills=(installed(_NAME, folder, tested=True),))
    return Question("doctor", "", (("user", "Try out your tools."),), 1000, 1, task=task)


def _done(
    questions: Sequence[Question], outside: Outside, reply: Reply | None = None
) -> dict[str, bool | None]:
    """What is known of each step. The first that it did not get to is what it can't do."""
    told = max(([*_results(one)] for one in questions), key=len, default=[])
    opened, read, ran, wrote, spied = (told + [None] * 5)[:5]
    if wrote is not None and isinstance(reply, Answer):
        wrote = _FILE if any(file.path == _FILE for file in reply.files) else ""
    found: list[bool | None] = [
        True if questions else None,
        _NAME in _shown(questions[0]) if questions else None,
        None if opened is None else any("LANTERN" in text for text in told if text),
        None if read is None else "HARBOUR" in read,
        None if ran is None else "ANCHOR" in ran,
        None if wrote is None else bool(wrote),
        None if spied is None else outside.key not in spied,
        None if spied is None else "CLOSED" in spied and "REACHED" not in spied,
    ]
    if None in found:
        found[found.index(None)] = False
    return dict(zip(STEPS, found, strict=True))


def _results(question: Question) -> Iterable[str | None]:
    return (result.text for step in question.steps for result in step.results)


def _shown(question: Question) -> str:
    """All that a model is shown, wherever an agent lists its skills."""
    tools = [text for tool in question.tools for text in (tool.description, tool.schema)]
    return "\n".join([question.system, *(text for _, text in question.messages), *tools])


def _problem(reply: Reply) -> str:
    if isinstance(reply, NoAnswer):
        return reply.reason
    if reply.stop == "time":
        return f"it was not done in {_SECONDS:.0f} s"
    return "" if _DONE in reply.text else f"it ended with: {one_line(reply.text, 200)}"


Kind = Literal["skill", "read", "shell", "write", "say"]

# Names of tools, the likeliest first; a server's prefix before them does not matter.
_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "skill": ("skill", "skills", "activate_skill", "use_skill", "load_skill", "read_skill"),
    "shell": (
        *("bash", "shell", "exec_command", "shell_command", "run_shell_command", "execute"),
        *("run_command", "run_commands", "execute_command", "run_terminal_cmd"),
        *("run_terminal_command",),
    ),
    "read": ("read", "read_file", "view", "read_text_file", "read_files"),
    "write": ("write", "write_file", "create", "write_text_file", "create_file"),
}
_COMMAND: Final = ("command", "cmd", "commands", "script")
_PATH: Final = ("filepath", "path", "absolutepath", "file", "filename", "targetfile")
_CONTENT: Final = ("content", "filetext", "contents", "text")
_SKILL_KEYS: Final = ("skill", "name", "skillname")
_EMPTY: Final = {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": []}


class ScriptStep(NamedTuple):
    """What to do next: ``Step("write", "out.txt", "hello")``.

    A path may begin with ``{skill}``, the folder of the skill as the agent tells it.
    """

    kind: Kind
    what: str  # a skill, a path, a command or a text
    text: str = ""  # of a file that is written


class ToolScript:
    """Takes one step for each result that it was told; the last step is repeated."""

    def __init__(self, steps: Sequence[ScriptStep], skill: str = "", folder: str = "") -> None:
        self._steps = steps
        self._skill = skill
        self._folder = folder  # of the skill, if nothing that was said tells

    def __call__(self, question: Question) -> Answer:
        if not question.tools:
            return Answer("A title", Usage(1, 1, 0))
        told = [result.text for step in question.steps for result in step.results]
        said = "\n".join([question.system, *(text for _, text in question.messages), *told])
        step = self._steps[min(len(told), len(self._steps) - 1)]
        return self._play(step, question.tools, said, len(told))

    def _play(self, step: ScriptStep, tools: Sequence[Tool], said: str, number: int) -> Answer:
        kind, what, text = step
        what = what.replace("{skill}", self._folder_of(self._skill, said))
        if kind == "say":
            return Answer(what, Usage(1, 1, 0))
        tool = _tool_for(kind, tools)
        if tool is None and kind == "skill":
            file = f"{self._folder_of(what, said)}/SKILL.md"
            return self._play(ScriptStep("read", file), tools, said, number)
        if tool is None:
            command = f"cat {what}" if kind == "read" else f"cat > {what} <<'EOF'\n{text}\nEOF"
            kind, what, tool = "shell", command, _tool_for("shell", tools)
        if tool is None:
            return Answer(f"no tool for {kind} among {', '.join(one.name for one in tools)}")
        arguments = json.dumps(_filled(tool, kind, what, text))
        call = ToolCall(f"call_{number:02d}", tool.name, arguments)
        return Answer("", Usage(1, 1, 0), "tools", calls=(call,))

    def _folder_of(self, skill: str, said: str) -> str:
        """Where an agent says that a skill is."""
        found = re.search(rf"([\w./~-]*/{re.escape(skill)})(?=/SKILL\.md|\s|<|`|$)", said)
        if not skill or not found:
            return self._folder or skill
        root, slash, rest = found[1].partition("/")
        table = re.search(rf"`{re.escape(root)}` = `([^`\n]+)`", said) if root else None
        return f"{table[1]}{slash}{rest}" if table else found[1]  # Codex shortens paths: r0/NAME


def _tool_for(kind: str, tools: Iterable[Tool]) -> Tool | None:
    named = {re.split(r"__|\.|-", tool.name)[-1].lower(): tool for tool in reversed([*tools])}
    return next((named[name] for name in _TOOLS[kind] if name in named), None)


def _filled(tool: Tool, kind: str, what: str, text: str) -> dict[str, Any]:
    schema = json.loads(tool.schema or "{}")
    schema = schema if isinstance(schema, dict) else {}
    filled = dict[str, Any]()
    for name, form in (schema.get("properties") or {}).items():
        low = name.lower().replace("_", "")
        if kind == "shell" and low in _COMMAND:
            filled[name] = [what] if form.get("type") == "array" else what
        elif kind in ("read", "write") and low in _PATH:
            wants_absolute = "absolute" in f"{name} {form.get('description')}".lower()
            filled[name] = str(PurePosixPath(WORKSPACE, what)) if wants_absolute else what
        elif kind == "read" and low == "files":  # several at once, each of a form of its own
            filled[name] = [{"path": what}]
        elif kind == "write" and low in _CONTENT:
            filled[name] = text
        elif kind == "skill" and low in _SKILL_KEYS:
            filled[name] = what
        elif name in (schema.get("required") or ()):
            filled[name] = (form.get("enum") or [_EMPTY.get(form.get("type"), "x")])[0]
    return filled
