"""Sessions of Claude Code and Codex: the JSON lines that they keep or print."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .messages import ITEM_TYPES, add_item, add_message, is_summary, spoken
from .turns import Trace, Turns, call_text, command_text, result_text, word_of

_CODEX_WRAPPED: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_CODEX_STREAMED: Final = frozenset({"item.started", "item.updated", "item.completed"})
_OLD_CODEX: Final = ITEM_TYPES | {"message"}


def is_codex(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    return (
        (word_of(entry, "type") in _CODEX_WRAPPED and isinstance(entry.get("payload"), dict))
        or (word_of(entry, "type") in _CODEX_STREAMED and isinstance(entry.get("item"), dict))
        or entry.get("record_type") == "state"
    )


def is_old_codex(entries: Sequence[Any]) -> bool:
    """Before items were wrapped, a rollout began with a line about the session."""
    first = entries[0] if entries and isinstance(entries[0], dict) else {}
    opens = first.keys() >= {"id", "timestamp"} and not first.keys() & {"role", "type"}
    return opens and any(_codex_item(entry) for entry in entries)


def read_codex(entries: Sequence[Any], skipped: int = 0) -> Trace:
    """Its turns. Events only repeat the items, and count only if there are no items."""
    turns = Turns()
    turns.skipped += skipped
    items = [_codex_item(entry) for entry in entries]
    has_messages = any(item and word_of(item, "type") == "message" for item in items)
    for entry, item in zip(entries, items, strict=True):
        if item is not None:
            add_item(turns, item)
        elif is_codex(entry) and word_of(entry, "type") == "item.completed":
            _add_codex_streamed(turns, entry["item"])
        elif is_codex(entry) and word_of(entry, "type") == "event_msg" and not has_messages:
            _add_codex_event(turns, entry["payload"])
        else:
            turns.skipped += 1
    return turns.trace("Codex rollout")


def _codex_item(entry: Any) -> Mapping[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    if word_of(entry, "type") == "response_item" and isinstance(entry.get("payload"), dict):
        payload: Mapping[str, Any] = entry["payload"]
        return payload
    return entry if word_of(entry, "type") in _OLD_CODEX else None


def _add_codex_event(turns: Turns, event: Mapping[str, Any]) -> None:
    text = str(event.get("message") or event.get("text") or "")
    match word_of(event, "type"):
        case "user_message":
            turns.say("user", spoken(text))
        case "agent_message":
            turns.say("assistant", text)
        case "agent_reasoning":
            turns.say("thinking", text)
        case _:
            turns.skipped += 1


def _add_codex_streamed(turns: Turns, item: Mapping[str, Any]) -> None:
    kind, item_id = word_of(item, "type") or word_of(item, "item_type"), item.get("id")
    text = str(item.get("text") or "")
    match kind:
        case "agent_message" | "assistant_message":
            turns.say("assistant", text)
        case "reasoning":
            turns.say("thinking", text)
        case "command_execution":
            turns.call(item_id, "shell", command_text(item.get("command")))
            failed = item.get("exit_code") not in (0, None) or item.get("status") == "failed"
            turns.result(item_id, result_text(item.get("aggregated_output")), failed=failed)
        case "file_change":
            turns.call(item_id, "apply_patch", call_text(item.get("changes")))
        case "mcp_tool_call":
            turns.call(item_id, item.get("tool"), call_text(item.get("arguments")))
            result = item.get("error") or item.get("result")
            turns.result(item_id, result_text(result), failed=bool(item.get("error")))
        case "web_search":
            turns.call(item_id, "web_search", str(item.get("query") or ""))
        case _:
            turns.skipped += 1


def is_claude_code(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and word_of(entry, "type") in ("user", "assistant")
        and isinstance(entry.get("message"), dict)
        and "content" in entry["message"]
    )


def read_claude_code(entries: Sequence[Any], skipped: int = 0) -> Trace:
    """Its turns, without those of subagents, whose results are in the main session."""
    turns, seen = Turns(), set[str]()
    turns.skipped += skipped
    spoken_by = [entry for entry in entries if is_claude_code(entry)]
    # A subagent's own file has no other turns.
    only_aside = all(entry.get("isSidechain") for entry in spoken_by)
    for entry in entries:
        uuid = str(entry.get("uuid") or "") if isinstance(entry, dict) else ""
        aside = isinstance(entry, dict) and entry.get("isSidechain") and not only_aside
        if aside or not is_claude_code(entry) or _says_nothing(entry) or uuid in seen:
            turns.skipped += 1
            continue
        if uuid:
            seen.add(uuid)  # a resumed session begins with a copy of the old one
        _add_claude_code(turns, entry)
    return turns.trace("Claude Code session")


def _says_nothing(entry: dict[str, Any]) -> bool:
    return bool(entry.get("isMeta") or entry.get("isApiErrorMessage"))


def _add_claude_code(turns: Turns, entry: dict[str, Any]) -> None:
    message = {"role": entry["type"], **entry["message"]}
    content = message["content"]
    if entry.get("isCompactSummary") or (isinstance(content, str) and is_summary(content)):
        # It repeats turns that are in the file.
        if len(turns):
            turns.skipped += 1
        else:
            add_message(turns, {**message, "role": "assistant"})
        return
    add_message(turns, message)
