"""An MCP server that mocks stand in for, and the names of its tools: each agent has its
own, a transcript has ``mcp__server__tool``.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final

from ..._util.texts import digest

_LONGEST: Final = 64  # characters of a tool's name that all providers take
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
# Of Claude Code, Codex, Gemini CLI, Copilot, and people. An agent's own tools may
# well be called read_file.
_FORMS: Final = (
    "mcp__{}__{}",
    "mcp__{}.{}",
    "mcp__{}__.{}",
    "mcp_{}_{}",
    "{}-{}",
    "{}/{}",
)


@dataclass(frozen=True)
class McpServer:
    """An MCP server that mocks stand in for."""

    name: str
    content: str  # JSON: tools, mocks and files
    plugin: str = ""  # the name of the plugin that has this server


def allowed(name: str) -> str:
    """A name with nothing but what models and agents take."""
    return _OTHER.sub("_", name)


def name_in_plugin(server: McpServer) -> str:
    """What Claude Code calls a server: that of a plugin has the plugin's name, too."""
    return allowed(
        f"plugin_{server.plugin}_{server.name}" if server.plugin else server.name
    )


def tool_name(server: McpServer, tool: str) -> str:
    """The name in transcripts, and for our own agent."""
    name = f"mcp__{allowed(server.name)}__{allowed(tool)}"
    return (
        name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}_{digest(name)[:8]}"
    )


@lru_cache(maxsize=64)
def parsed(server: McpServer) -> Any:
    """Tools, mocks and files."""
    return json.loads(server.content)


@lru_cache(maxsize=64)
def spellings(servers: tuple[McpServer, ...]) -> dict[str, tuple[str, McpServer, str]]:
    """What agents and people may call the tools: the name in transcripts,
    server and tool.
    """
    names = dict[str, tuple[str, McpServer, str]]()
    for server in servers:
        for tool in (tool["name"] for tool in parsed(server)["tools"]):
            for spelling in _spelled(server, tool):
                names.setdefault(spelling, (tool_name(server, tool), server, tool))
    return names


def _spelled(server: McpServer, tool: str) -> Iterator[str]:
    yield tool_name(server, tool)
    servers = _variants(server.name) | _variants(name_in_plugin(server))
    for form, name, own in product(_FORMS, sorted(servers), sorted(_variants(tool))):
        yield form.format(name, own)


def _variants(name: str) -> set[str]:
    """Some agents take no hyphens either."""
    return {name, allowed(name), allowed(name).replace("-", "_")}
