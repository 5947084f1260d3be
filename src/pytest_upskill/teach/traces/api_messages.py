"""Messages of the Anthropic API, of OpenAI's Chat Completions and of OpenAI's Responses.

Claude Code keeps its turns in the first format, Codex in the last.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .turns import (
    Trace,
    Turns,
    call_text,
    command_text,
    exit_status,
    looks_failed,
    parsed_json,
    result_text,
    without,
    word_of,
)

ROLES: Final = frozenset({"user", "human", "assistant", "model", "tool", "function"})
_UNSEEN_ROLES: Final = frozenset({"system", "developer"})  # instructions, not turns
_ANTHROPIC_BLOCKS: Final = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}
)


def is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and word_of(value, "role") in ROLES | _UNSEEN_ROLES
        and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def read_messages(entries: Iterable[Any], skipped: int = 0) -> Trace:
    """Messages or items of OpenAI's Responses, perhaps mixed."""
    turns, forms = Turns(), set[str]()
    turns.skipped += skipped
    for entry in entries:
        if is_item(entry):
            forms.add("OpenAI messages")
            add_item(turns, entry)
        elif is_message(entry):
            forms |= _form_of(entry)
            add_message(turns, entry)
        else:
            turns.skipped += 1
    return turns.trace(
        "Anthropic messages" if forms == {"Anthropic messages"} else "OpenAI messages"
    )


def _form_of(message: Mapping[str, Any]) -> set[str]:
    """The format, if something in the message gives it away."""
    if message.keys() & {"tool_calls", "function_call", "tool_call_id"}:
        return {"OpenAI messages"}
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = {word_of(block, "type") for block in blocks}
    if kinds & _ANTHROPIC_BLOCKS or word_of(message, "type") == "message":
        return {"Anthropic messages"}
    return {"OpenAI messages"} if word_of(message, "role") in _UNSEEN_ROLES | {"tool"} else set()


def add_message(turns: Turns, message: Mapping[str, Any]) -> None:
    role, content = word_of(message, "role"), message.get("content")
    if role in _UNSEEN_ROLES:
        turns.skipped += 1
        return
    if role in ("tool", "function"):
        text = result_text(content)
        turns.result(
            message.get("tool_call_id"), text, failed=looks_failed(text), tool=message.get("name")
        )
        return
    by_user = role in ("user", "human")
    for key in ("reasoning_content", "reasoning"):
        if isinstance(thought := message.get(key), str) and thought.strip():
            turns.say("thinking", thought)
            break
    if isinstance(content, str) and (content.strip() or not message.get("tool_calls")):
        _say(turns, content, by_user=by_user)
    elif isinstance(content, list):
        for block in content:
            _add_block(turns, block, by_user=by_user)
    for call in _calls_of(message):
        function = call.get("function", call.get("custom", call))
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", function.get("input"))
        turns.call(call.get("id"), function.get("name"), call_text(arguments))


def _calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    old = message.get("function_call")
    entries = calls if isinstance(calls, list) else [old] if old else []
    return [call for call in entries if isinstance(call, dict)]


def _say(turns: Turns, text: str, *, by_user: bool) -> None:
    if by_user:
        turns.say("user", spoken(text))
    else:
        turns.say("assistant", text)


def _add_block(turns: Turns, block: Any, *, by_user: bool) -> None:
    if isinstance(block, str):
        return _say(turns, block, by_user=by_user)
    if not isinstance(block, dict):
        turns.skipped += 1
        return None
    kind = word_of(block, "type")
    match kind:
        case "thinking" | "reasoning":
            turns.say("thinking", str(block.get("thinking") or block.get("text") or ""))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            turns.call(block.get("id"), block.get("name"), call_text(block.get("input")))
        case _ if kind.endswith("tool_result"):
            text = result_text(block.get("content"))
            turns.result(block.get("tool_use_id"), text, failed=bool(block.get("is_error")))
        case _ if isinstance(block.get("text"), str):
            _say(turns, block["text"], by_user=by_user)
        case _:
            turns.skipped += 1
    return None


def messages_in(value: Any) -> list[Any] | None:
    """The messages in a JSON document, wherever common tools put them; None if there are none."""
    if isinstance(value, list):
        return value if any(is_message(entry) or is_item(entry) for entry in value) else None
    if not isinstance(value, dict):
        return None
    entries: list[Any] = []
    for key in ("messages", "input", "items", "conversation", "history", "output"):
        if isinstance(inner := value.get(key), list):
            entries += inner
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            entries.append(choice.get("message"))
    for key in ("request", "response", "body"):  # a logged call
        entries += messages_in(value.get(key)) or []
    if not entries and (is_message(value) or is_item(value)):
        entries = [value]
    return entries if any(is_message(entry) or is_item(entry) for entry in entries) else None


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
    """Whether it is an item, and not a message of another format."""
    if not isinstance(value, dict) or word_of(value, "type") != "message":
        return word_of(value, "type") in ITEM_TYPES
    # A reply of the Anthropic API has the type message too, with other blocks.
    content = value.get("content")
    blocks = content if isinstance(content, list) else []
    return any(word_of(block, "type") in ("input_text", "output_text") for block in blocks)


def add_item(turns: Turns, item: Mapping[str, Any]) -> None:
    """Add the turn of an item; unreadable ones are counted as skipped."""
    kind = word_of(item, "type")
    if kind == "message":
        _add_item_message(turns, item)
    elif kind == "reasoning":
        turns.say("thinking", _thought(item))
    elif kind in _CALLS:
        _add_call(turns, item)
    elif kind in _OUTPUTS:
        _add_output(turns, item)
    else:
        turns.skipped += 1


def _add_item_message(turns: Turns, item: Mapping[str, Any]) -> None:
    text = result_text(item.get("content"))
    match word_of(item, "role"):
        case "user":
            turns.say("user", spoken(text))
        case "assistant":
            turns.say("assistant", text)
        case _:
            turns.skipped += 1


def _thought(item: Mapping[str, Any]) -> str:
    """The summary, or the reasoning itself; often neither, since it is encrypted."""
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


_ADDED: Final = (
    # Claude Code
    *("system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat"),
    *("user-prompt-submit-hook", "ide_opened_file", "ide_selection", "ide_diagnostics"),
    *("bash-stdout", "bash-stderr", "task-notification", "command-message"),
    # Codex
    *("environment_context", "user_instructions", "INSTRUCTIONS", "permissions instructions"),
    *(
        "collaboration_mode",
        "skill",
        "skills_instructions",
        "turn_aborted",
        "subagent_notification",
    ),
)
_TYPED: Final = re.compile(r"<(command-name|command-args|bash-input)>([^<]*)</\1>")
_SUMMARY: Final = "This session is being continued from a previous conversation"
_NOT_SAID: Final = (
    "Caveat: The messages below were generated by the user while running local commands",
    "Base directory for this skill:",
    "# AGENTS.md instructions for",
)


def spoken(text: str) -> str:
    """The user's own words in a user's turn, without what the agent added."""
    if text.startswith(_NOT_SAID):
        return ""
    text = without(text, *_ADDED)
    return _TYPED.sub(lambda match: match[2].strip() + " ", text).strip()


def is_summary(text: str) -> bool:
    """Whether it is an agent's summary of earlier turns, made when its context was full."""
    return text.startswith(_SUMMARY)
