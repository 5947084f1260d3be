"""MCP servers around a trial, answered outside of its sandbox."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file
from ...agents.line_server import LineAddress, answering
from ...agents.part import PartTool, Prepared, ServerProgram, TrialPart
from ...agents.sandboxes.sandbox import HOME, Sandbox
from ...checks.check import Check
from ...trials.answer import Answer
from ...trials.transcript import Activity, Tool
from . import stand_in
from .answers import answer_call, respond
from .checks import MCP_EXPECTED
from .server import McpServer, allowed, name_in_plugin, parsed, spellings, tool_name

_STAND_IN: Final = f"{HOME}/.local/mcp_server.py"
# Some providers refuse them at the top of a schema
_UNIONS: Final = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class McpServers(TrialPart):
    """The MCP servers of a case."""

    mocked: tuple[McpServer, ...]

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(server.name for server in self.mocked)

    def tool_name(self, written: str) -> str:
        spelled = spellings(self.mocked).get(written)
        return spelled[0] if spelled else written

    @property
    def checks(self) -> tuple[Check, ...]:
        for server in self.mocked:
            if any(mock["expect"] for mock in parsed(server)["mocks"].values()):
                return (Check(MCP_EXPECTED, self.mocked, written=True),)
        return ()

    @asynccontextmanager
    async def around(self, sandbox: Sandbox) -> AsyncIterator[Prepared]:
        numbered = {b"%d" % at: server for at, server in enumerate(self.mocked)}
        # A trial must not take the threads of all others.
        turn = asyncio.Lock()

        async def answer_line(line: bytes) -> bytes:
            number, _, message = line.partition(b" ")
            if number not in numbered:
                raise ValueError("no such server")
            async with turn:
                reply = await asyncio.to_thread(
                    respond, numbered[number], message.strip()
                )
            return (b"" if reply is None else json.dumps(reply).encode()) + b"\n"

        async with answering(sandbox, answer_line) as address:
            await sandbox.write(_STAND_IN, read_file(Path(stand_in.__file__)))
            programs = self._programs(sandbox, address)
            tools = self._tools(turn)
            yield Prepared(self._add_to, tuple(tools), tuple(programs))

    def _programs(
        self, sandbox: Sandbox, address: LineAddress
    ) -> Iterator[ServerProgram]:
        code = sandbox.path(_STAND_IN)
        for number, server in enumerate(self.mocked):
            yield ServerProgram(
                allowed(server.name),
                name_in_plugin(server),
                sandbox.python,
                ("-I", "-S", code, str(address.port), address.token, str(number)),
            )

    def _tools(self, turn: asyncio.Lock) -> Iterator[PartTool]:
        """The tools of our own agent, which starts no servers."""

        async def call(
            server: McpServer, name: str, arguments: dict[str, Any], _: int
        ) -> tuple[str, bool]:
            async with turn:
                return await asyncio.to_thread(answer_call, server, name, arguments)

        taken: set[str] = set()
        for server in self.mocked:
            for listed in parsed(server)["tools"]:
                name = tool_name(server, listed["name"])
                if name in taken:
                    continue
                taken.add(name)
                schema = dict(listed["inputSchema"])
                for union in _UNIONS:
                    schema.pop(union, None)
                text = listed.get("description", "")
                tool = Tool(name, text, json.dumps(schema))
                yield PartTool(tool, partial(call, server, listed["name"]))

    def _add_to(self, answer: Answer) -> Answer:
        """Calls under the same names for all agents, and those that no mock answers."""
        spelled = spellings(self.mocked)
        turns = []
        unanswered: dict[str, None] = {}
        for turn in answer.transcript:
            if turn.tool not in spelled:
                turns.append(turn)
                continue
            name, server, tool = spelled[turn.tool]
            turns.append(replace(turn, tool=name))
            if tool not in parsed(server)["mocks"]:
                unanswered[f"no mock answers the MCP tool {server.name}/{tool}"] = None
        activity = answer.activity or Activity()
        activity = replace(activity, findings=(*activity.findings, *unanswered))
        return replace(answer, transcript=tuple(turns), activity=activity)
