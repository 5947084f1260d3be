"""Tool calls in replies of any protocol, read into a form that can be sent back.

A server may send anything as id, name or arguments, and refuse it when it comes back:
names that it would not allow for a tool, arguments that are no JSON object.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ..trials.transcript import Step, ToolCall

_MOST_NAME: Final = 128
_ID: Final = re.compile(r"[!-~]{1,256}")
_UNREADABLE: Final = "unreadable_arguments"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class ToolTurn(NamedTuple):
    """What a turn has besides its text."""

    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    raw: str = ""


RawCall = tuple[object, object, object]  # id, name and arguments, as a server sent them


def calls_from(raw_calls: Iterable[RawCall], steps: Iterable[Step]) -> list[ToolCall]:
    """Calls with ids that no other call of the conversation has."""
    used = {call.id for step in steps for call in step.calls}
    calls = []
    for raw_id, name, arguments in raw_calls:
        call_id = raw_id if isinstance(raw_id, str) and _ID.fullmatch(raw_id) else ""
        if not call_id or call_id in used:
            call_id = _new_id(used)
        used.add(call_id)
        calls.append(
            ToolCall(call_id, _text(name)[:_MOST_NAME], _text(arguments) or "{}")
        )
    return calls


def dicts_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list that a server sent, which may be anything."""
    return (
        [item for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def _new_id(used: set[str]) -> str:
    number = len(used) + 1
    while f"call_{number}" in used:
        number += 1
    return f"call_{number}"


def _text(value: object) -> str:
    if value is None:
        return ""
    text = _without_surrogates(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )
    return "" if text.isspace() else text


def _without_surrogates(text: str) -> str:
    """Half characters become question marks: no server takes them back."""
    return text.encode("utf-8", "replace").decode()


def object_of(arguments: str) -> dict[str, Any]:
    """Arguments as the JSON object that they must be when they go back."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {_UNREADABLE: arguments}


def object_text(arguments: str) -> str:
    """The same as text; unchanged if it is an object."""
    value = object_of(arguments)
    return json.dumps(value) if value == {_UNREADABLE: arguments} else arguments


def name_of(call: ToolCall) -> str:
    """The name of a tool as every server takes it back."""
    return _NO_NAME.sub("_", call.name)[:64] or "unknown"


def dumped(turn: object) -> str:
    """A turn as JSON, to be sent back."""
    return _without_surrogates(json.dumps(turn, ensure_ascii=False))


def loaded(step: Step, form: type) -> Any:
    """A turn in its provider's own form; None if it is of another protocol."""
    try:
        turn = json.loads(step.raw)
    except (ValueError, RecursionError):
        return None
    return turn if isinstance(turn, form) else None


def stop_with(stop: str, calls: Iterable[ToolCall]) -> str:
    """Why a turn ended; servers disagree about turns with calls."""
    if calls:
        return "tools" if stop == "end" else stop
    return "end" if stop == "tools" else stop
