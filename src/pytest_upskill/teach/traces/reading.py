"""Read a trace of any known format, recognised by its content and not by its name."""

import codecs
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file, reason_of
from ...errors import TraceError, shown
from .labelled_text import read_transcript
from .messages import is_item, is_message, messages_in, read_messages
from .own import is_own, read_own
from .sessions import is_claude_code, is_codex, is_old_codex, read_claude_code, read_codex
from .turns import Trace

MAX_BYTES: Final = 200_000_000
FORMATS: Final = (
    "Supported: a Claude Code session (~/.claude/projects/…/*.jsonl), a Codex rollout "
    "(~/.codex/sessions/…/rollout-*.jsonl), messages of the OpenAI or Anthropic API as JSON or "
    "JSON lines, a trial of an agent as pytest-upskill keeps it, and a transcript in Markdown or "
    "text with headings or labels such as 'User:' and 'Assistant:'."
)


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
        messages = [message for found in documents for message in found or ()]
        return read_messages(messages, skipped + sum(not found for found in documents))
    return None


def _some_objects(text: str) -> bool:
    """Whether the lines are JSON, but not of a trace."""
    first = text.lstrip().split("\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
