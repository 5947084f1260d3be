"""Try an agent on a scripted model: does it see a skill, use its tools, and nothing else?"""

import json
import os
import re
import secrets
import shlex
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..models import ModelSpec
from ..models.scripted import ScriptedProvider
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.installing import installed
from ..trials.task import Task
from ..trials.tools import ToolCall
from ..trials.trial import Question
from .port import Agent, SandboxKind, Send
from .trial import AgentTrials

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
_SECONDS: Final = 60.0
_SPEC: Final = ModelSpec("doctor", ScriptedProvider("scripted", ""), "doctor")
_KEY: Final = "PYTEST_UPSKILL_PROBE_KEY"


@dataclass(frozen=True)
class Probe:
    """What came of it: yes, no, or None if it never got that far."""

    version: str
    done: Mapping[str, bool | None]
    problem: str = ""

    @property
    def works(self) -> bool:
        return all(self.done.values())


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


class _Script:
    """A model that calls each tool once, and remembers what it was told."""

    def __init__(self, key_file: Path, port: int) -> None:
        self._spy = f"env; cat {shlex.quote(str(key_file))} /proc/*/environ 2>/dev/null"
        self._reach = f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo REACHED"
        self.system = ""
        self.told: list[str] = []

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:  # noqa: ARG002
        self.system = question.system
        self.told = [result.text for step in question.steps for result in step.results]
        done, plan = len(self.told), self._plan()
        if done >= len(plan):
            return Answer("done", Usage(1, 1, 0))
        tool, arguments = plan[done]
        call = ToolCall(f"call-{done}", tool, json.dumps(arguments))
        return Answer("", Usage(1, 1, 0), "tools", calls=(call,))

    def _plan(self) -> list[tuple[str, dict[str, str]]]:
        found = re.search(r"(/[^\s<>]+)/SKILL\.md", self.system)
        folder = found[1] if found else _NAME
        return [
            ("skill", {"name": _NAME}),
            ("read", {"path": f"{folder}/references/word.md"}),
            ("bash", {"command": f"sh {folder}/scripts/run.sh"}),
            ("write", {"path": _FILE, "content": "written\n"}),
            ("bash", {"command": f"{self._spy}; {self._reach} || echo CLOSED"}),
        ]


async def probe(agent: Agent, kind: SandboxKind) -> Probe:
    """A trial with a skill of its own, and a key and a server outside that it must not reach."""
    key = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "key"
        key_file.write_text(key)
        script = _Script(key_file, server.getsockname()[1])
        trials = AgentTrials(lambda _: agent, lambda: kind, _SECONDS, lambda _: _SPEC)
        os.environ[_KEY] = key
        try:
            reply = await trials.run(_question(agent, Path(folder) / _NAME), script)
        finally:
            await trials.close()
            del os.environ[_KEY]
    return Probe(agent.version(), _done(script, reply, key), _problem(reply))


def _question(agent: Agent, folder: Path) -> Question:
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    task = Task(agent.name, agent.version(), skills=(installed(_NAME, folder, tested=True),))
    return Question("doctor", "", (("user", "Try out your tools."),), 1000, 1, task=task)


def _done(script: _Script, reply: Reply, key: str) -> dict[str, bool | None]:
    told: list[str | None] = [*script.told, *[None] * 5]
    opened, read, ran, _, spied = told[:5]
    written = isinstance(reply, Answer) and any(file.path == _FILE for file in reply.files)
    found = (
        bool(script.system),
        _NAME in script.system,
        opened and "LANTERN" in opened,
        read and "HARBOUR" in read,
        ran and "ANCHOR" in ran,
        written,
        spied and key not in spied,
        spied and "CLOSED" in spied and "REACHED" not in spied,
    )
    return {
        step: None if one is None else bool(one) for step, one in zip(STEPS, found, strict=True)
    }


def _problem(reply: Reply) -> str:
    return reply.reason if isinstance(reply, NoAnswer) else ""
