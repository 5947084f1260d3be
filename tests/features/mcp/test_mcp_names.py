"""What agents and people call the tools of MCP servers."""

import json

import pytest

from pytest_upskill.features.mcp.server import (
    McpServer,
    name_in_plugin,
    spellings,
    tool_name,
)


def server(name: str, *tools: str, plugin: str = "") -> McpServer:
    content = {"tools": [{"name": tool} for tool in tools], "mocks": {}}
    return McpServer(name, json.dumps(content), plugin)


LAMPS = server("lamp-tracker", "create.it", plugin="my.plug")


@pytest.mark.parametrize(
    "spelling",
    [
        "mcp__lamp-tracker__create_it",
        "mcp__lamp-tracker__create.it",
        "mcp__plugin_my_plug_lamp-tracker__create_it",
        "mcp__lamp_tracker.create_it",
        "mcp_lamp-tracker_create_it",
        "lamp-tracker/create.it",
        "lamp-tracker-create_it",
    ],
)
def test_one_name_for_all_spellings(spelling: str) -> None:
    assert spellings((LAMPS,))[spelling] == (
        "mcp__lamp-tracker__create_it",
        LAMPS,
        "create.it",
    )


def test_other_names_are_no_tools_of_a_server() -> None:
    names = spellings((LAMPS, server("wiki", "find"), server("read", "file")))
    others = {
        "create.it",
        "find",
        "mcp__other__find",
        "mcp__wiki__create.it",
        "read_file",
    }
    assert not others & set(names)


def test_names_in_a_plugin() -> None:
    assert name_in_plugin(LAMPS) == "plugin_my_plug_lamp-tracker"
    assert name_in_plugin(server("a b")) == "a_b"


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one, other = (tool_name(server("s" * 60), f"{'t' * 100}{last}") for last in "ab")
    assert len(one) == len(other) == 64
    assert one != other
