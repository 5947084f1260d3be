"""What the protocols share about tools: calls read from any reply, in a form that can go back.

A server may send anything in place of an id, a name or arguments, and refuse its own words when
they come back: names it would not allow for a tool, arguments that are no JSON object.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ..trials.tools import Step, ToolCall

_MOST_NAME: Final = 128
_ID: Final = re.compile(r"[!-~]{1,256}")
_UNREADABLE: Final = "unreadable_arguments"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class ToolTurn(NamedTuple):
    """What a turn has besides its text."""

    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    raw: str = ""


Found = tuple[object, object, object]  # id, name and arguments, as a server sent them


def calls_from(found: Iterable[Found], steps: Iterable[Step]) -> list[ToolCall]:
    """Calls with ids that no other call of the conversation has."""
    used = {call.id for step in steps for call in step.calls}
    calls = []
    for given, name, arguments in found:
        key = str(given) if isinstance(given, str) and _ID.fullmatch(given) else ""
        if not key or key in used:
            key = _new_id(used)
        used.add(key)
        calls.append(ToolCall(key, _text(name)[:_MOST_NAME], _text(arguments) or "{}"))
    return calls


def _new_id(used: set[str]) -> str:
    number = len(used) + 1
    while f"call_{number}" in used:
        number += 1
    return f"call_{number}"


def _text(value: object) -> str:
    if value is None:
        return ""
    text = _whole(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return "" if text.isspace() else text


def _whole(text: str) -> str:
    """Without halves of characters, which no server takes back."""
    return text.encode("utf-8", "replace").decode()


def object_of(arguments: str) -> dict[str, Any]:
    """Arguments as the JSON object that they must be when they go back."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {_UNREADABLE: arguments}


def object_text(arguments: str) -> str:
    """The same as text, for servers that read it again: as it came, if it is an object."""
    value = object_of(arguments)
    return json.dumps(value) if value == {_UNREADABLE: arguments} else arguments


def name_of(call: ToolCall) -> str:
    """The name of a tool as every server takes it back."""
    return _NO_NAME.sub("_", call.name)[:64] or "unknown"


def dumped(turn: object) -> str:
    """A turn as JSON, to be sent back."""
    return _whole(json.dumps(turn, ensure_ascii=False))


def loaded(step: Step, form: type) -> Any:
    """A turn in its provider's own form; None if it is of another protocol."""
    try:
        turn = json.loads(step.raw)
    except (ValueError, RecursionError):
        return None
    return turn if isinstance(turn, form) else None


def stop_with(stop: str, calls: Iterable[ToolCall]) -> str:
    """Why a turn ended; servers disagree on it where a turn has calls."""
    if calls:
        return "tools" if stop == "end" else stop
    return "end" if stop == "tools" else stop
