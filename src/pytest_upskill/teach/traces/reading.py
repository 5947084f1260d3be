"""Read a trace of any known format, recognised by its content and not by its name.

Sessions of Claude Code and Codex, and messages of the APIs that they use, say the same
in other words, so one reader serves them. An entry is unwrapped until it is a message
or an item of OpenAI's Responses; a message has a role and blocks; a block, like an
item, is a text, a thought, a call or a result.
"""

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from ..._util.files import read_file, reason_of
from ..._util.json_forms import form_of
from ...errors import TraceError, shown
from ...trials.transcript import Transcript, Turn
from .text_traces import read_transcript
from .turns import Turns, parsed_json, result_text, word_of

MAX_BYTES: Final = 200_000_000
FORMATS: Final = (
    "Supported: a Claude Code session (~/.claude/projects/…/*.jsonl), a Codex rollout"
    " (~/.codex/sessions/…/rollout-*.jsonl), messages of the OpenAI or Anthropic API as"
    " JSON or JSON lines, a trial of an agent as pytest-upskill keeps it, and a"
    " transcript in Markdown or text with headings or labels such as 'User:' and"
    " 'Assistant:'."
)
# Of a kept trial
_HEAD: Final = frozenset({"case", "agent", "model", "arm", "run", "outcome"})
_SPEAKERS: Final[dict[str, Literal["user", "assistant"]]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
}
_ROLES: Final = {*_SPEAKERS, "tool", "system", "developer"}
# Where messages are in a document, a logged request or a line of an agent's session.
_LISTS: Final = (
    "messages",
    "input",
    "items",
    "conversation",
    "history",
    "output",
    "choices",
)
_WRAPPED: Final = ("request", "response", "body", "message")
_DEEPEST: Final = 5  # wrappers
_THOUGHTS: Final = ("thinking", "reasoning")
# Calls with their own results
_RAN: Final = ("command_execution", "mcp_call", "mcp_tool_call")
_CALLS: Final = (*_RAN, "tool_use", "function", "custom", "file_change", "web_search")
_ARGUMENTS: Final = (
    "arguments",
    "input",
    "operation",
    "action",
    "command",
    "changes",
    "query",
)
_RESULTS: Final = ("error", "aggregated_output", "output", "result", "content", "tools")
_SUMMARY: Final = "This session is being continued from a previous conversation"


def read_trace(file: Path) -> Transcript:
    """The turns of a trace; TraceError if its format is not known."""
    text = _text(file)
    is_json = text.lstrip()[:1] in ("{", "[")
    try:
        turns = (_read_json(file, text) if is_json else ()) or read_transcript(text)
    except RecursionError:
        raise TraceError(file, "the JSON is nested too deeply", FORMATS) from None
    if not turns:
        raise TraceError(
            file, "not a trace in a known format, or nothing was said in it", FORMATS
        )
    return turns


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


def _read_json(file: Path, text: str) -> Transcript:
    """The turns of a document, or of JSON lines; lines that are cut off are left
    out.
    """
    try:
        document = json.loads(text)
        entries = document if isinstance(document, list) else [document]
    except ValueError as error:
        entries = list(_parsed_lines(text))
        if not entries and not read_transcript(text):
            where = f"{shown(file)}:{getattr(error, 'lineno', 1)}"
            raise TraceError(
                where, f"neither JSON nor JSON lines: {error}", FORMATS
            ) from None
    return _read_kept_trial(entries) or _read_entries(entries)


def _parsed_lines(text: str) -> Iterable[Any]:
    for line in text.split("\n"):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _read_kept_trial(entries: Sequence[Any]) -> Transcript:
    """The turns of a trial that ``report --transcripts`` wrote:
    its first line says which it is.
    """
    if not (entries and isinstance(entries[0], dict) and entries[0].keys() >= _HEAD):
        return ()
    turns = list[Turn]()
    for entry in entries[1:]:
        try:
            turns.append(form_of(Turn).validate_python(entry))
        except ValueError:
            continue
    return teaching_turns(turns)


def teaching_turns(transcript: Iterable[Turn]) -> Transcript:
    """A transcript without what the agent itself tells its model,
    and with calls to be read.
    """
    turns = Turns()
    for turn in transcript:
        match turn.kind:
            case "call":
                turns.call(None, turn.tool, turn.text)
            case "result":
                turns.result(None, turn.text, failed=turn.failed, tool=turn.tool)
            case "user" | "assistant" | "thinking":
                turns.say(turn.kind, turn.text)
            case "answer":
                turns.say("user", turn.text)
    return turns.transcript


def _read_entries(entries: Sequence[Any]) -> Transcript:
    """The turns of messages, items or lines of a session;
    what is nothing of it is left out.
    """
    turns = Turns()
    for entry in _of_main_session(entries):
        for said in _unwrapped(entry):
            if not _is_message(said):
                _add_block(turns, said, "assistant")
            elif not _is_summary(said) and not entry.get("isCompactSummary"):
                _add_message(turns, said)
            elif not turns.transcript:  # else it repeats turns that are in the file
                _add_message(turns, {**said, "role": "assistant"})
    return turns.transcript


def _of_main_session(entries: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Without what Claude Code says itself, and turns of subagents:
    their results are in the rest.

    A resumed session begins with a copy of the old one,
    and a subagent's file has no other turns.
    """
    objects = [entry for entry in entries if isinstance(entry, dict)]
    turns = [entry for entry in objects if isinstance(entry.get("message"), dict)]
    is_subagent = all(entry.get("isSidechain") for entry in turns)
    uuids = set[str]()
    for entry in objects:
        uuid = str(entry.get("uuid") or "")
        is_aside = entry.get("isSidechain") and not is_subagent
        if (
            is_aside
            or entry.get("isMeta")
            or entry.get("isApiErrorMessage")
            or uuid in uuids
        ):
            continue
        uuids |= {uuid} if uuid else set()
        yield entry


def _unwrapped(entry: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The messages and items in an entry, wherever agents,
    APIs and their logs put them.
    """
    if not isinstance(entry, dict) or depth > _DEEPEST:
        return
    kind = word_of(entry, "type")
    if _is_message(entry) or kind in _THOUGHTS or kind.endswith(("_call", "_output")):
        yield entry
    elif kind == "response_item":  # Codex; its events repeat the items
        yield from _unwrapped(entry.get("payload"), depth + 1)
    elif kind == "item.completed":  # codex exec --json
        yield from [entry["item"]] if isinstance(entry.get("item"), dict) else []
    else:
        for key in _LISTS:
            value = entry.get(key)
            for part in value if isinstance(value, list) else []:
                yield from _unwrapped(part, depth + 1)
        for key in _WRAPPED:
            yield from _unwrapped(entry.get(key), depth + 1)


def _is_message(entry: Mapping[str, Any]) -> bool:
    return word_of(entry, "role") in _ROLES and (
        "content" in entry or "tool_calls" in entry
    )


def _is_summary(message: Mapping[str, Any]) -> bool:
    """Whether it is an agent's summary of earlier turns,
    made when its context was full.
    """
    return word_of(message, "content").startswith(_SUMMARY)


def _add_message(turns: Turns, message: Mapping[str, Any]) -> None:
    role, content, calls = (
        message["role"],
        message.get("content"),
        message.get("tool_calls"),
    )
    if role == "tool":
        turns.result(
            message.get("tool_call_id"), content, tool=word_of(message, "name")
        )
    if role not in _SPEAKERS:
        return
    thought = word_of(message, "reasoning_content") or word_of(message, "reasoning")
    turns.say("thinking", thought)
    for block in content if isinstance(content, list) else [content]:
        _add_block(turns, block, _SPEAKERS[role])
    for call in calls if isinstance(calls, list) else []:
        _add_block(turns, call, "assistant")


def _add_block(turns: Turns, block: Any, speaker: Literal["user", "assistant"]) -> None:
    if isinstance(block, str):
        turns.say(speaker, block)
    if not isinstance(block, dict):
        return
    kind = word_of(block, "type")
    if kind in _THOUGHTS:  # often neither, since it is encrypted
        keys = ("thinking", "text", "summary", "content")
        turns.say(
            "thinking", result_text(next(filter(None, map(block.get, keys)), None))
        )
    elif kind.endswith((*_CALLS, "_call")):
        _add_call(turns, block, kind)
    elif kind.endswith(("tool_result", "_output")):
        _add_result(turns, block)
    else:
        turns.say(speaker, word_of(block, "text"))


def _add_call(turns: Turns, block: Mapping[str, Any], kind: str) -> None:
    call_id = block.get("call_id") or block.get("id")
    inner = block.get(kind)
    call = inner if isinstance(inner, dict) else block
    name = word_of(call, "name") or word_of(call, "tool") or kind.removesuffix("_call")
    arguments = next((call[key] for key in _ARGUMENTS if key in call), None)
    turns.call(call_id, "shell" if kind == "command_execution" else name, arguments)
    if kind in _RAN and block.keys() & set(_RESULTS):
        _add_result(turns, {**block, "call_id": call_id})


def _add_result(turns: Turns, block: Mapping[str, Any]) -> None:
    content = next((block[key] for key in _RESULTS if block.get(key)), None)
    parsed = parsed_json(content) if isinstance(content, str) else content
    content = (
        parsed if isinstance(parsed, dict) and parsed.keys() & {*_RESULTS} else content
    )
    call_id = block.get("call_id") or block.get("tool_use_id") or block.get("id")
    turns.result(call_id, content, failed=_has_failed(block, content))


def _has_failed(block: Mapping[str, Any], content: Any) -> bool | None:
    """Whether a result says that it is an error; None if it does not say."""
    if word_of(block, "type").endswith("tool_result"):
        return bool(block.get("is_error"))
    if block.get("error"):
        return True
    inner = content if isinstance(content, dict) else {}
    for place in (block, inner, inner.get("metadata")):
        if isinstance(place, dict) and isinstance(code := place.get("exit_code"), int):
            return code != 0
        if isinstance(place, dict) and isinstance(
            success := place.get("success"), bool
        ):
            return not success
    return None
