"""MCP servers of agents: a stand-in for each, inside the sandbox,
that answers from mocks.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file
from ..skills.case import McpServer
from ..trials.mcp_names import parsed, tool_name
from ..trials.transcript import Tool
from . import mcp_stand_in
from .sandboxes.sandbox import MCP, Sandbox, SandboxError

_STAND_IN: Final = "stand_in.py"
# Some providers refuse them at the top of a schema
_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_SECONDS: Final = 60.0  # for an answer


def write_servers(folder: Path, servers: Sequence[McpServer]) -> Path:
    """Write what a sandbox has at /mcp."""
    folder.mkdir()
    files = {_STAND_IN: read_file(Path(mcp_stand_in.__file__))}
    files |= {
        f"{at}.json": server.content.encode() for at, server in enumerate(servers)
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o444)
    folder.chmod(0o555)
    return folder


@dataclass(frozen=True)
class StandIn:
    """How to start the stand-in for a server."""

    command: str
    args: tuple[str, ...]

    @classmethod
    def of(cls, number: int, sandbox: Sandbox) -> "StandIn":
        """That of a server of a task, by its number."""
        files = (
            sandbox.path(f"{MCP}/{name}") for name in (_STAND_IN, f"{number}.json")
        )
        return cls(sandbox.python, ("-I", "-S", *files))

    @property
    def config(self) -> dict[str, Any]:
        """As most agents have it under ``mcpServers``."""
        return {"command": self.command, "args": list(self.args)}


class LoopServers:
    """The servers of a trial of our own agent: each call starts a stand-in anew."""

    def __init__(self, servers: Sequence[McpServer], sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        # Of servers, and their tools, by name
        self._numbers = dict[str, tuple[int, str]]()
        self.tools = tuple(self._offered(servers))

    def _offered(self, servers: Sequence[McpServer]) -> Iterator[Tool]:
        for number, server in enumerate(servers):
            for tool in parsed(server)["tools"]:
                name = tool_name(server, tool["name"])
                if name not in self._numbers:
                    self._numbers[name] = number, tool["name"]
                    schema = {
                        k: v for k, v in tool["inputSchema"].items() if k not in _UNIONS
                    }
                    yield Tool(name, tool.get("description", ""), json.dumps(schema))

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The text that answers a call, and whether it is an error."""
        number, tool = self._numbers[name]
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        stand_in = StandIn.of(number, self._sandbox)
        words, line = (
            [stand_in.command, *stand_in.args],
            json.dumps(request).encode() + b"\n",
        )
        ran = await self._sandbox.run(words, timeout=_SECONDS, stdin=line)
        if ran.timed_out:
            return f"{name} did not answer.", True
        try:
            result = json.loads(ran.output)["result"]
            return result["content"][0]["text"], result["isError"]
        except (ValueError, KeyError, TypeError, IndexError):
            output = ran.output.decode("utf-8", "replace").strip()[-300:]
            problem = f"The stand-in for an MCP server ended with {ran.status}"
            raise SandboxError(f"{problem}: {output or 'no output'}") from None
