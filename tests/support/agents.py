"""Made-up agents' worlds: a sandbox in memory, scripted models, installed skills."""

import errno
import hashlib
import json
import posixpath
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_upskill.agents.agent import Send
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.sandboxes.sandbox import (
    WORKSPACE,
    CommandResult,
    Sandbox,
    TreeEntry,
)
from pytest_upskill.agents.staging import InstalledSkill
from pytest_upskill.skills.case import WorkspaceFile
from pytest_upskill.trials.answer import Answer, Reply, Usage
from pytest_upskill.trials.transcript import ToolCall
from pytest_upskill.trials.trial import Question, Task

BODY = """# The gate

Read `references/codes.md` for the code of the day before you do anything.
Then run `scripts/open.sh CODE`, and write what it prints to `gate.txt`.
Never open the gate by hand: the motor would break, and the keeper be angry.
"""
CODES = "# Codes\n\nThe code of the day is Walrus-4711, as the keeper wrote it down.\n"
SCRIPT = '#!/bin/sh\necho "The gate is open, said the motor to $1."\n'

Command = Callable[[str], Awaitable[CommandResult]]


async def no_commands(command: str) -> CommandResult:
    return CommandResult(127, f"{command}: command not found".encode())


class MemorySandbox(Sandbox):
    """Files in a dictionary; commands are what a test says they are."""

    def __init__(
        self, files: Mapping[str, bytes | str] = {}, command: Command = no_commands
    ) -> None:
        self.files = dict[str, bytes]()
        self.commands = list[str]()
        self.timeouts = list[float]()
        self._command = command
        for path, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            self.files[posixpath.join(WORKSPACE, path)] = content

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,  # noqa: ARG002
        stdin: bytes = b"",  # noqa: ARG002
    ) -> CommandResult:
        assert isinstance(command, str)
        self.commands.append(command)
        self.timeouts.append(timeout)
        return await self._command(command)

    async def read(self, path: str, most: int) -> bytes:
        full = posixpath.normpath(posixpath.join(WORKSPACE, path))
        if full not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return self.files[full][:most]

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:  # noqa: ARG002
        full = posixpath.normpath(posixpath.join(WORKSPACE, path))
        if not full.startswith(WORKSPACE):
            raise OSError(errno.EROFS, "Read-only file system", path)
        self.files[full] = data

    async def tree(self, path: str = ".") -> list[TreeEntry]:
        start = posixpath.normpath(posixpath.join(WORKSPACE, path)) + "/"
        return [
            TreeEntry(
                full.removeprefix(start), len(data), hashlib.sha256(data).hexdigest()
            )
            for full, data in sorted(self.files.items())
            if full.startswith(start)
        ]

    async def listen(self, port: int) -> socket.socket:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class ScriptedCall:
    """A model that gives these replies in turn; the last again and again."""

    def __init__(self, *replies: Reply | Callable[[Question], Reply]) -> None:
        self._replies = replies
        self.questions = list[Question]()

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:
        assert send is None
        self.questions.append(question)
        reply = self._replies[min(len(self.questions), len(self._replies)) - 1]
        return reply(question) if callable(reply) else reply

    @property
    def results(self) -> list[tuple[str, bool]]:
        """What the model was told of its calls, in order."""
        steps = self.questions[-1].steps
        return [
            (result.text, result.failed) for step in steps for result in step.results
        ]


def calls(
    *made: tuple[str, Any], text: str = "", stop: str = "end", **more: Any
) -> Answer:
    """A reply that calls tools: names, and arguments as an object or as any text."""
    return Answer(
        text,
        Usage(100, 10, 50),
        stop,
        calls=tuple(
            ToolCall(
                f"c{at}", name, args if isinstance(args, str) else json.dumps(args)
            )
            for at, (name, args) in enumerate(made)
        ),
        **more,
    )


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def installed(
    folder: Path,
    name: str = "gate",
    *,
    body: str = BODY,
    files: Mapping[str, str] | None = None,
    description: str = "Opens the <gate> & closes it.",
    tested: bool = True,
) -> InstalledSkill:
    """A skill with a reference and a script, as staged below a folder."""
    if files is None:
        files = {"references/codes.md": CODES, "scripts/open.sh": SCRIPT}
    head = f"---\nname: {name}\ndescription: {description}\n---\n\n"
    write_files(folder / name, {"SKILL.md": head + body, **files})
    return InstalledSkill(
        name,
        description,
        body.strip(),
        tuple(sorted(["SKILL.md", *files])),
        str(folder / name),
        tested=tested,
    )


def recorder_for(
    *skills: InstalledSkill,
    prompt: str = "Open the gate.",
    system: str = "",
    max_turns: int = 30,
    files: Sequence[WorkspaceFile] = (),
) -> Recorder:
    task = Task("loop", "1", tuple(files), max_turns=max_turns)
    question = Question("haiku", system, (("user", prompt),), 1000, 2, task=task)
    return Recorder(question, skills)
