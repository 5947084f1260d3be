"""Items of OpenAI's Responses API, which Codex keeps in its rollouts too."""

from collections.abc import Mapping
from typing import Any, Final

from .spoken import spoken
from .turns import (
    Turns,
    call_text,
    command_text,
    exit_status,
    looks_failed,
    parsed_json,
    result_text,
    word_of,
)

_CALLS: Final = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "web_search_call"}
    | {"apply_patch_call", "mcp_call", "tool_search_call", "file_search_call", "computer_call"}
)
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
    | {"shell_call_output", "apply_patch_call_output", "tool_search_output"}
    | {"mcp_tool_call_output", "computer_call_output"}
)
ITEM_TYPES: Final = _CALLS | _OUTPUTS | {"reasoning"}


def is_item(value: Any) -> bool:
    """Whether it is an item that no message of another form looks like."""
    if not isinstance(value, dict) or word_of(value, "type") != "message":
        return word_of(value, "type") in ITEM_TYPES
    # An answer of the Anthropic API is of the type message too, with other blocks.
    content = value.get("content")
    blocks = content if isinstance(content, list) else []
    return any(word_of(block, "type") in ("input_text", "output_text") for block in blocks)


def add_item(turns: Turns, item: Mapping[str, Any]) -> None:
    """Add what an item says; what says nothing that can be read is counted."""
    kind = word_of(item, "type")
    if kind == "message":
        _add_message(turns, item)
    elif kind == "reasoning":
        turns.say("thinking", _thought(item))
    elif kind in _CALLS:
        _add_call(turns, item)
    elif kind in _OUTPUTS:
        _add_output(turns, item)
    else:
        turns.skipped += 1


def _add_message(turns: Turns, item: Mapping[str, Any]) -> None:
    text = result_text(item.get("content"))
    match word_of(item, "role"):
        case "user":
            turns.say("user", spoken(text))
        case "assistant":
            turns.say("assistant", text)
        case _:
            turns.skipped += 1


def _thought(item: Mapping[str, Any]) -> str:
    """The summary, or the reasoning itself; mostly there is neither, it is encrypted."""
    return result_text(item.get("summary") or None) or result_text(item.get("content") or None)


def _add_call(turns: Turns, item: Mapping[str, Any]) -> None:
    kind, action = str(item["type"]), item.get("action")
    action = action if isinstance(action, dict) else {}
    call_id = item.get("call_id") or item.get("id")
    if "command" in action or "commands" in action:
        commands = action.get("commands")
        lines = commands if isinstance(commands, list) else [action.get("command")]
        turns.call(call_id, "shell", "\n".join(map(command_text, lines)))
    else:
        arguments = item.get("arguments", item.get("input", item.get("operation", action)))
        turns.call(call_id, item.get("name") or kind.removesuffix("_call"), call_text(arguments))
    if kind == "mcp_call" and item.keys() & {"output", "error"}:
        failed = bool(item.get("error"))
        turns.result(call_id, result_text(item.get("error") or item.get("output")), failed=failed)


def _add_output(turns: Turns, item: Mapping[str, Any]) -> None:
    output = item.get("output", item.get("result", item.get("tools")))
    parsed = parsed_json(output) if isinstance(output, str) else output
    failed = None
    if isinstance(parsed, dict) and (parsed.keys() & {"output", "content"}):
        failed, output = exit_status(parsed), parsed
    text = result_text(output)
    turns.result(item.get("call_id"), text, failed=looks_failed(text) if failed is None else failed)
