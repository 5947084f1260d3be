"""--tool FILE#NAME: the schema of a tool as text."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.teach.sources import read_tool

SCHEMA = {
    "type": "object",
    "properties": {
        "arch": {"type": "string", "enum": ["h100", "a100"], "description": "The\n  GPU."},
        "jobs": {"type": "integer", "default": 4},
        "flags": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}},
        },
    },
    "required": ["arch"],
}
MCP = {"name": "build", "description": "Builds a kernel.", "inputSchema": SCHEMA}
TOLD = """\
tool: build
description: Builds a kernel.
parameters:
  - arch (string; required; one of "h100", "a100"): The GPU.
  - jobs (integer; default 4)
  - flags (array of object)
    - name (string or null)"""
FORMS = [
    {"tools": [MCP, {"name": "clean"}]},
    {"jsonrpc": "2.0", "result": {"tools": [MCP, {"name": "clean"}]}},
    [{"type": "function", "function": {**MCP, "parameters": SCHEMA, "inputSchema": None}}],
    [{"name": "build", "description": MCP["description"], "input_schema": SCHEMA}],
    MCP,
]


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_a_tool(tmp_path: Path, form: Any) -> None:
    file = tmp_path / "a#b.json"
    file.write_text(json.dumps(form))
    assert read_tool(f"{file}#build") == TOLD


def test_the_name_of_an_only_tool_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a#b.json"
    file.write_text(json.dumps(MCP))
    assert read_tool(str(file)) == TOLD
    file.write_text('{"name": "x", "inputSchema": {}}')
    assert read_tool(str(file)) == "tool: x\nparameters: none"


@pytest.mark.parametrize(
    ("text", "reference", "said"),
    [
        (json.dumps(FORMS[0]), "f.json", "has 2 tools"),
        (json.dumps(FORMS[0]), "f.json#bild", "no tool 'bild' (did you mean \"build\"?)"),
        ("{}", "f.json#x", "no tool in"),
        ("{\n,", "f.json#x", "f.json:2 is not JSON"),
        ("[" * 100_000, "f.json#x", "can't be read"),
        ("{}", "other.json#x", "no such file"),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reference: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.json").write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_tool(reference)
    assert said in caught.value.problem
    assert caught.value.where == f"--tool {reference}"
    assert caught.value.hint


def test_a_schema_that_holds_itself_or_no_types_is_no_trouble(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(50):
        deep = {"properties": {"x": deep, "y": None, "z": {"items": 3}}, "required": "x"}
    file = tmp_path / "f.json"
    file.write_text(json.dumps({"name": "t", "inputSchema": deep, "description": ["?"]}))
    assert read_tool(str(file)).count("- x") == 4
