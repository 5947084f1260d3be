"""Commands in the sandbox of an agent, answered outside of it."""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from ..._util.files import EXECUTABLE, read_file
from ..._util.json_forms import Strict
from ..._util.keys import without_keys
from ..._util.texts import one_line, shortened
from ...agents.line_server import answering
from ...agents.part import Prepared, TrialPart
from ...agents.sandboxes.sandbox import HOME, Sandbox
from ...trials.answer import Answer
from ...trials.transcript import Activity, CommandCall
from . import stand_in
from .answers import BY_COMMAND, AnswerForm, fits

_COMMANDS: Final = f"{HOME}/.local/bin"
_STAND_IN: Final = f"{HOME}/.local/stand_in.py"
# The shell of some agents is a login shell, which sets PATH anew.
_PROFILE: Final = b'PATH="$HOME/.local/bin:$PATH"\n'
_MAX_CALLS: Final = 1_000
_MAX_WORDS: Final = 200
_MAX_WORD_LENGTH: Final = 2_000
_MAX_FINDINGS: Final = 20


class _CallForm(Strict):
    words: Annotated[list[str], Field(min_length=1)]
    stdin: int


_CALL: Final = TypeAdapter(_CallForm)


@dataclass(frozen=True)
class Commands(TrialPart):
    """The commands of a case, and what they answer."""

    content: str  # JSON

    path = _COMMANDS

    @cached_property
    def answers(self) -> dict[str, list[AnswerForm]]:
        return BY_COMMAND.validate_json(self.content)

    @asynccontextmanager
    async def around(self, sandbox: Sandbox) -> AsyncIterator[Prepared]:
        calls = _Calls(self.answers)
        async with answering(sandbox, calls.answer) as (port, token):
            code = read_file(Path(stand_in.__file__))
            await sandbox.write(_STAND_IN, code)
            await sandbox.write(f"{HOME}/.profile", _PROFILE)
            ask = [sandbox.python, "-I", "-S", sandbox.path(_STAND_IN)]
            for name in self.answers:
                words = shlex.join([*ask, str(port), token, name])
                script = f'#!/bin/sh\nexec {words} "$@"\n'
                file = f"{_COMMANDS}/{name}"
                await sandbox.write(file, script.encode(), mode=EXECUTABLE)
            yield Prepared(calls.add_to)


class _Calls:
    """The calls of a trial, answered and written down."""

    def __init__(self, answers: dict[str, list[AnswerForm]]) -> None:
        self._answers = answers
        self._calls: list[CommandCall] = []
        self._findings: dict[str, None] = {}

    async def answer(self, line: bytes) -> bytes:
        """The answer to a call; ValueError if it is none."""
        call = _CALL.validate_json(line)
        name, *args = call.words
        fitting = [one for one in self._answers.get(name, ()) if fits(one.args, args)]
        if fitting:
            answer = fitting[0]
        else:
            asked = one_line(without_keys(shlex.join(args)), 200)
            answer = AnswerForm(stderr=f"{name}: no answer to: {asked}\n", exit=1)
            self._note(f"no answer of evals/commands fits: {name} {asked}")
        if len(self._calls) < _MAX_CALLS:
            words = [_shorten(word) for word in call.words[:_MAX_WORDS]]
            self._calls.append(CommandCall(tuple(words), answer.exit, call.stdin))
        else:
            self._note(f"only the first {_MAX_CALLS:,} calls of commands are kept")
        return answer.model_dump_json(exclude={"args"}).encode() + b"\n"

    def _note(self, finding: str) -> None:
        if len(self._findings) < _MAX_FINDINGS:
            self._findings[finding] = None

    def add_to(self, answer: Answer) -> Answer:
        activity = answer.activity or Activity()
        findings = (*activity.findings, *self._findings)
        activity = replace(activity, commands=tuple(self._calls), findings=findings)
        return replace(answer, activity=activity)


def _shorten(word: str) -> str:
    return shortened(without_keys(word), _MAX_WORD_LENGTH)
