"""Stands in for an MCP server: answers calls of tools from mocks,
over standard input and output.

One file that needs nothing but a Python, since it runs in the sandbox of an agent,
which may send anything. Its only argument is a JSON file, which ``skills/mcp_mocks.py``
writes. An answer depends on nothing but the call.
"""

from __future__ import annotations  # an image may have an old Python

import json
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_LONGEST_LINE = 4 * 2**20  # bytes of a message
_LONGEST_ANSWER = 100_000  # bytes
_PARSE_ERROR, _BAD_REQUEST, _NO_METHOD, _BAD_PARAMS, _BUG = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
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


def searched(pattern: str, flags: str, text: str) -> bool:
    """Whether a pattern is found."""
    return re.search(f"(?{flags}){pattern}" if flags else pattern, text) is not None


def why_refused(
    rules: dict[str, Any],
    arguments: object,
    search: Callable[[str, str, str], bool] = searched,
) -> str:
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
            if not search(rule["pattern"], rule["flags"], _text(value)):
                return (
                    f"{path} must match /{rule['pattern']}/{rule['flags']}, not"
                    f" {_shown(value)}"
                )
        elif not any(_same(value, choice) for choice in rule["choices"]):
            choices = " or ".join(map(_text, rule["choices"]))
            return f"{path} must be {choices}, not {_shown(value)}"
    return ""


def answered(server: dict[str, Any], tool: str, arguments: object) -> tuple[str, bool]:
    """The text that answers a call, and whether it is an error."""
    name = f"{server['name']}/{tool}"
    mock = server["mocks"].get(tool)
    if mock is None:
        return f"No mock answers {name[:200]}.", True
    if reason := why_refused(mock["expect"], arguments):
        return f"The mock of {name} refuses this call: {reason}.", True
    for answer in mock["answers"]:
        if not why_refused(answer["when"], arguments):
            try:
                return (
                    _filled(answer["text"], arguments, server["files"]),
                    answer["error"],
                )
            except KeyError as error:
                return (
                    f"No mock answers this call of {name}: {error.args[0]} is missing.",
                    True,
                )
    return f"No mock answers {name} with these arguments.", True


def _filled(text: str, arguments: object, files: dict[str, Any]) -> str:
    """A text with arguments and files inserted; what was
    inserted is not looked at again.
    """

    def argument(match: re.Match[str]) -> str:
        value = _at(arguments, match[1].split(".")[1:])
        return "" if value is _MISSING else _text(value)

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


def response(server: dict[str, Any], line: bytes) -> object:
    """The response to a line, which may be anything; None if there is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, _PARSE_ERROR, "not a JSON text on one line")
    if isinstance(message, list) and message:  # a batch, as of 2025-03-26
        responses = [_to_message(server, part) for part in message]
        return [part for part in responses if part is not None] or None
    return _to_message(server, message)


def _to_message(server: dict[str, Any], message: object) -> object:
    if not isinstance(message, dict):
        return _error(None, _BAD_REQUEST, "a request is an object")
    number, method, params = (
        message.get("id"),
        message.get("method"),
        message.get("params", {}),
    )
    is_response = "method" not in message and (
        "result" in message or "error" in message
    )
    if "id" not in message or is_response:
        return None  # a notification, or a response to a request that was never sent
    if not isinstance(number, (str, int)) or isinstance(number, bool):
        return _error(None, _BAD_REQUEST, "an id is a string or a whole number")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        return _error(
            number, _BAD_REQUEST, 'a request has "jsonrpc": "2.0" and a method'
        )
    if not isinstance(params, dict):
        return _error(number, _BAD_PARAMS, "params must be an object")
    try:
        return _to_request(server, number, method, params)
    except Exception as bug:  # whatever comes in, it goes on
        return _error(number, _BUG, f"the stand-in failed: {type(bug).__name__}")


def _to_request(
    server: dict[str, Any], number: object, method: str, params: dict[str, Any]
) -> object:
    if method == "initialize":
        asked = params.get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": server["name"], "version": "1"},
        }
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {"tools": server["tools"]}
    elif method == "tools/call":
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return _error(
                number, _BAD_PARAMS, "a call has a name, and arguments in an object"
            )
        text, failed = answered(server, name, arguments)
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
    else:
        return _error(number, _NO_METHOD, f"no such method: {method[:100]}")
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        server = json.load(file)
    lines, output = sys.stdin.buffer, sys.stdout.buffer
    while line := lines.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            while (line := lines.readline(_LONGEST_LINE)) and not line.endswith(b"\n"):
                pass
            reply: object = _error(None, _PARSE_ERROR, "the line is too long")
        elif not line.strip():
            continue
        else:
            reply = response(server, line)
        if reply is not None:
            output.write(json.dumps(reply).encode() + b"\n")
            output.flush()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr = None  # nobody reads it
