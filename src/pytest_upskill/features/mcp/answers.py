"""What MCP servers answer from mocks.

An agent may send anything. An answer depends on nothing but the call.
"""

import json
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..._util.texts import one_line
from ...checks.matching import search
from ...checks.time_budget import LimitReachedError
from .server import McpServer, parsed

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_LONGEST_ANSWER = 100_000  # bytes
_PARSE_ERROR = -32700
_BAD_REQUEST = -32600
_NO_METHOD = -32601
_MAX_PROBLEM_LENGTH = 300
_FIELD = r"input((?:\.[\w-]+)+)"
_IN_PATH = re.compile(r"\{" + _FIELD + r"\}")
_INSERT = re.compile(r"\{\{\s*(?:" + _FIELD + r"|file:((?:[^{}]|\{[^{}]*\})+?))\s*\}\}")
_TYPES: dict[str, Any] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_MISSING = object()


def why_refused(rules: dict[str, Any], arguments: object) -> str:
    """The first rule that arguments break, in words; empty if they break none."""
    for path, rule in rules.items():
        value = _at(arguments, path.split("."))
        if value is _MISSING:
            return f"{path} is missing"
        if "type" in rule:
            number = rule["type"] == "number" and isinstance(value, bool)
            if number or not isinstance(value, _TYPES[rule["type"]]):
                return f"{path} must be of the type {rule['type']}, not {_shown(value)}"
        elif "pattern" in rule:
            if not _matches(rule, _text(value)):
                return (
                    f"{path} must match /{rule['pattern']}/{rule['flags']}, not"
                    f" {_shown(value)}"
                )
        elif not any(_same(value, choice) for choice in rule["choices"]):
            choices = " or ".join(map(_text, rule["choices"]))
            return f"{path} must be {choices}, not {_shown(value)}"
    return ""


def _matches(rule: dict[str, Any], text: str) -> bool:
    pattern = rule["pattern"]
    if rule["flags"]:
        pattern = f"(?{rule['flags']}){pattern}"
    return search(pattern, text, case_sensitive=True) is not None


def answer_call(server: McpServer, tool: str, arguments: object) -> tuple[str, bool]:
    """The text that answers a call, and whether it is an error."""
    name = f"{server.name}/{tool[:200]}"
    mocks = parsed(server)
    mock = mocks["mocks"].get(tool)
    if mock is None:
        return f"No mock answers {name}.", True
    try:
        if reason := why_refused(mock["expect"], arguments):
            return f"The mock of {name} refuses this call: {reason}.", True
        for answer in mock["answers"]:
            if not why_refused(answer["when"], arguments):
                text = _filled(answer["text"], arguments, mocks["files"])
                return text, answer["error"]
    except KeyError as error:
        reason = f"{error.args[0]} is missing"
        return f"No mock answers this call of {name}: {reason}.", True
    except LimitReachedError as error:
        return f"The mock of {name} can't check this call: {error}.", True
    return f"No mock answers {name} with these arguments.", True


def _filled(text: str, arguments: object, files: dict[str, Any]) -> str:
    """A text with arguments and files inserted; what was
    inserted is not looked at again.
    """

    def argument(match: re.Match[str]) -> str:
        value = _at(arguments, match[1].split(".")[1:])
        return "" if value is _MISSING else _text(value)[:_LONGEST_ANSWER]

    def inserted(match: re.Match[str]) -> str:
        if match[1]:
            return argument(match)
        path = _IN_PATH.sub(argument, match[2])
        if path not in files:
            raise KeyError(path[:200])
        return str(files[path])

    data = _INSERT.sub(inserted, text).encode("utf-8", "replace")
    if len(data) <= _LONGEST_ANSWER:
        return data.decode()
    return (
        data[:_LONGEST_ANSWER].decode("utf-8", "ignore") + "\n[cut off here: too long]"
    )


def _at(value: object, steps: list[str]) -> object:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdecimal() and len(step) < 9:
            value = value[int(step)] if int(step) < len(value) else _MISSING
        else:
            return _MISSING
    return value


def _same(value: object, choice: object) -> bool:
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


# JSON-RPC.


class _Request(BaseModel):
    model_config = ConfigDict(strict=True)

    jsonrpc: Literal["2.0"]
    id: str | int
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class _Call(BaseModel):
    name: str
    arguments: dict[str, Any] | None = None


def respond(server: McpServer, line: bytes) -> dict[str, Any] | None:
    """The response to a line, which may be anything; None if there is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, _PARSE_ERROR, "not a JSON text on one line")
    if isinstance(message, dict) and ("id" not in message or "result" in message):
        return None  # a notification, or a response to a request that was never sent

    number = None
    try:
        request = _Request.model_validate(message)
        number = request.id
        result = _result_of(server, request)
    except ValidationError as error:
        return _error(number, _BAD_REQUEST, one_line(str(error), _MAX_PROBLEM_LENGTH))
    except RecursionError:
        return _error(number, _BAD_REQUEST, "nested too deeply")
    if result is None:
        return _error(number, _NO_METHOD, f"no such method: {request.method[:100]}")
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _result_of(server: McpServer, request: _Request) -> dict[str, Any] | None:
    match request.method:
        case "initialize":
            asked = request.params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": server.name, "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": parsed(server)["tools"]}
        case "tools/call":
            call = _Call.model_validate(request.params)
            text, failed = answer_call(server, call.name, call.arguments or {})
            return {"content": [{"type": "text", "text": text}], "isError": failed}
    return None


def _error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
