"""Read a trace of any known format, recognised by its content and not by its name."""

import codecs
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file, reason_of
from ..._util.json_forms import form_of
from ...errors import TraceError, shown
from ...trials.transcript import Transcript, Turn
from .api_messages import (
    ITEM_TYPES,
    add_item,
    add_message,
    is_item,
    is_message,
    is_summary,
    messages_in,
    read_messages,
    spoken,
)
from .labelled_text import read_transcript
from .turns import Trace, Turns, call_text, command_text, result_text, without, word_of

MAX_BYTES: Final = 200_000_000
FORMATS: Final = (
    "Supported: a Claude Code session (~/.claude/projects/…/*.jsonl), a Codex rollout "
    "(~/.codex/sessions/…/rollout-*.jsonl), messages of the OpenAI or Anthropic API as JSON or "
    "JSON lines, a trial of an agent as pytest-upskill keeps it, and a transcript in Markdown or "
    "text with headings or labels such as 'User:' and 'Assistant:'."
)

_CODEX_WRAPPED: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_CODEX_STREAMED: Final = frozenset({"item.started", "item.updated", "item.completed"})
_OLD_CODEX: Final = ITEM_TYPES | {"message"}

_HEAD: Final = frozenset({"case", "agent", "model", "arm", "run", "outcome"})


def read_trace(file: Path) -> Trace:
    """The turns of a trace; TraceError if its format is not known."""
    text = _text(file)
    try:
        trace = _parsed(file, text)
    except RecursionError:
        raise TraceError(file, "the JSON is nested too deeply", FORMATS) from None
    if trace is None:
        raise TraceError(file, "not a trace in a known format", FORMATS)
    if not trace.turns:
        raise TraceError(
            file,
            f"this {trace.form} is empty: nothing was said or done",
            "Use one with a task and its solution.",
        )
    return trace


def _text(file: Path) -> str:
    try:
        if file.is_dir():
            raise TraceError(
                file, "this is a folder without a SKILL.md; a trace is a file", FORMATS
            )
        size = file.stat().st_size
        if size > MAX_BYTES:
            problem = f"{size:,} bytes (limit {MAX_BYTES:,})"
            raise TraceError(file, problem, "Use the part of it that matters.")
        data = read_file(file, MAX_BYTES)
    except OSError as error:
        raise TraceError(file, reason_of(error), "Check the path.") from None
    except ValueError as error:  # a null character in the path
        raise TraceError(file, f"can't be read: {error}") from None
    if not data.strip():
        raise TraceError(file, "the file is empty", FORMATS)
    # PowerShell's > writes UTF-16.
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in data and not utf_16:
        raise TraceError(file, "not a text file", FORMATS)
    return data.decode("utf-16" if utf_16 else "utf-8-sig", "replace")


def _parsed(file: Path, text: str) -> Trace | None:
    if text.lstrip()[:1] not in ("{", "["):
        return read_transcript(text)
    try:
        return _of_document(json.loads(text))
    except json.JSONDecodeError as error:
        broken = error
    except ValueError as error:
        raise TraceError(file, f"invalid JSON: {error}") from None
    trace = _of_lines(text) or read_transcript(text)
    if trace is None and not _some_objects(text):
        raise TraceError(
            f"{shown(file)}:{broken.lineno}",
            f"neither JSON nor JSON lines: {broken.msg}",
            FORMATS,
        )
    return trace


def _of_document(value: Any) -> Trace | None:
    """One JSON document: a list of messages, or an object that contains one."""
    if isinstance(value, dict) and "session" in value and isinstance(value.get("items"), list):
        return read_codex(value["items"])  # the first Codex wrote one document
    return _of_entries(value if isinstance(value, list) else [value], 0)


def _of_lines(text: str) -> Trace | None:
    """JSON lines; broken ones are skipped, such as the last line of a file still being written."""
    entries, skipped = list[Any](), 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError):
            skipped += 1
    return _of_entries(entries, skipped)


def _of_entries(entries: Sequence[Any], skipped: int) -> Trace | None:
    if is_own(entries):
        return read_own(entries, skipped)
    if any(map(is_codex, entries)) or is_old_codex(entries):
        return read_codex(entries, skipped)
    if any(map(is_claude_code, entries)):
        return read_claude_code(entries, skipped)
    if any(is_message(entry) or is_item(entry) for entry in entries):
        return read_messages(entries, skipped)
    documents = [messages_in(entry) for entry in entries]
    if any(documents):
        messages = [message for document in documents for message in document or ()]
        return read_messages(messages, skipped + sum(not document for document in documents))
    return None


def _some_objects(text: str) -> bool:
    """Whether the lines are JSON, but not of a trace."""
    first = text.lstrip().split("\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


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
    turns, uuids = Turns(), set[str]()
    turns.skipped += skipped
    spoken_by = [entry for entry in entries if is_claude_code(entry)]
    # A subagent's own file has no other turns.
    only_aside = all(entry.get("isSidechain") for entry in spoken_by)
    for entry in entries:
        uuid = str(entry.get("uuid") or "") if isinstance(entry, dict) else ""
        aside = isinstance(entry, dict) and entry.get("isSidechain") and not only_aside
        if aside or not is_claude_code(entry) or _says_nothing(entry) or uuid in uuids:
            turns.skipped += 1
            continue
        if uuid:
            uuids.add(uuid)  # a resumed session begins with a copy of the old one
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


def is_own(entries: Sequence[Any]) -> bool:
    """Whether the first line says which trial it is."""
    return bool(entries) and isinstance(entries[0], dict) and entries[0].keys() >= _HEAD


def read_own(entries: Sequence[Any], skipped: int = 0) -> Trace:
    turns = list[Turn]()
    for entry in entries[1:]:
        try:
            turns.append(form_of(Turn).validate_python(entry))
        except ValueError:
            skipped += 1
    return trace_of(turns, skipped)


def trace_of(transcript: Iterable[Turn], skipped: int = 0) -> Trace:
    """A transcript without what the agent itself tells its model, and with calls to be read."""
    turns = list[Turn]()
    for turn in transcript:
        text = call_text(turn.text) if turn.kind == "call" else turn.text
        if turn.kind == "user":
            text = without(text, "system-reminder")
        if turn.kind == "system" or not (text.strip() or turn.kind in ("call", "result")):
            skipped += 1
        else:
            turns.append(replace(turn, text=text.strip()))
    return Trace("transcript of a trial", _plain(turns), skipped)


def _plain(turns: Iterable[Turn]) -> Transcript:
    """Without numbers, by which two turns that say the same would differ."""
    return tuple(Turn(turn.kind, turn.text, turn.tool, turn.failed) for turn in turns)
