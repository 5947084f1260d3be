"""A file told apart by what it holds, and read: what it is called does not matter."""

import codecs
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ...errors import TraceError, shown
from .labelled_text import read_transcript
from .messages import is_item, is_message, messages_in, read_messages
from .sessions import is_claude_code, is_codex, is_old_codex, read_claude_code, read_codex
from .turns import Trace

MAX_BYTES: Final = 200_000_000
READ: Final = (
    "These are read: a session of Claude Code (~/.claude/projects/…/*.jsonl), a rollout of Codex "
    "(~/.codex/sessions/…/rollout-*.jsonl), messages of the OpenAI or the Anthropic API as JSON or "
    "JSON lines, and a transcript in Markdown or text, in which headings or labels such as 'User:' "
    "and 'Assistant:' say who speaks."
)


def read_trace(file: Path) -> Trace:
    """What an agent did, as one of the forms has it; TraceError if it is none of them."""
    text = _text(file)
    try:
        trace = _parsed(file, text)
    except RecursionError:
        raise TraceError(file, "this JSON is nested too deeply", READ) from None
    if trace is None:
        raise TraceError(file, "this is no trace of a form that is known", READ)
    if not trace.turns:
        raise TraceError(
            file,
            f"this is a {trace.form} in which nothing was said or done",
            "Give one with a task and what came of it.",
        )
    return trace


def _text(file: Path) -> str:
    try:
        if file.is_dir():
            raise TraceError(
                file, "this is a folder without a SKILL.md, and a trace is a file", READ
            )
        size = file.stat().st_size
        if size > MAX_BYTES:
            hint = "Give the part of it that matters."
            raise TraceError(file, f"this has {size:,} bytes; a trace may have {MAX_BYTES:,}", hint)
        data = file.read_bytes()
    except FileNotFoundError:
        raise TraceError(file, "there is no such file", "Check the path.") from None
    except (OSError, ValueError) as error:
        raise TraceError(file, f"this can't be read: {error}") from None
    if not data.strip():
        raise TraceError(file, "this file is empty", READ)
    # The > of PowerShell writes UTF-16.
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in data and not utf_16:
        raise TraceError(file, "this is not a text", READ)
    return data.decode("utf-16" if utf_16 else "utf-8-sig", "replace")


def _parsed(file: Path, text: str) -> Trace | None:
    if text.lstrip()[:1] not in ("{", "["):
        return read_transcript(text)
    try:
        return _of_document(json.loads(text))
    except json.JSONDecodeError as error:
        broken = error
    except ValueError as error:
        raise TraceError(file, f"this JSON can't be read: {error}") from None
    trace = _of_lines(text) or read_transcript(text)
    if trace is None and not _some_objects(text):
        raise TraceError(
            f"{shown(file)}:{broken.lineno}",
            f"this is neither JSON nor JSON lines: {broken.msg}",
            READ,
        )
    return trace


def _of_document(value: Any) -> Trace | None:
    """One JSON document: a list of messages, or what holds one; a file of a single line too."""
    if isinstance(value, dict) and "session" in value and isinstance(value.get("items"), list):
        return read_codex(value["items"])  # the first Codex wrote one document
    return _of_entries(value if isinstance(value, list) else [value], 0)


def _of_lines(text: str) -> Trace | None:
    """JSON lines. One that can't be read is skipped, such as the last of a file in the making."""
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
    if any(map(is_codex, entries)) or is_old_codex(entries):
        return read_codex(entries, skipped)
    if any(map(is_claude_code, entries)):
        return read_claude_code(entries, skipped)
    if any(is_message(entry) or is_item(entry) for entry in entries):
        return read_messages(entries, skipped)
    documents = [messages_in(entry) for entry in entries]
    if any(documents):
        messages = [message for found in documents for message in found or ()]
        return read_messages(messages, skipped + sum(not found for found in documents))
    return None


def _some_objects(text: str) -> bool:
    """Whether the lines are JSON, only not of a trace."""
    first = text.lstrip().split("\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
