"""Read a trace of any known format, recognised by its content and not by its name."""

import codecs
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file, reason_of
from ..._util.json_forms import form_of
from ...errors import TraceError, shown
from ...trials.transcript import Transcript, Turn
from .json_traces import read_entries
from .text_traces import read_transcript
from .turns import Turns

MAX_BYTES: Final = 200_000_000
FORMATS: Final = (
    "Supported: a Claude Code session (~/.claude/projects/…/*.jsonl), a Codex rollout "
    "(~/.codex/sessions/…/rollout-*.jsonl), messages of the OpenAI or Anthropic API as JSON or "
    "JSON lines, a trial of an agent as pytest-upskill keeps it, and a transcript in Markdown or "
    "text with headings or labels such as 'User:' and 'Assistant:'."
)
_HEAD: Final = frozenset({"case", "agent", "model", "arm", "run", "outcome"})  # of a kept trial


def read_trace(file: Path) -> Transcript:
    """The turns of a trace; TraceError if its format is not known."""
    text = _text(file)
    is_json = text.lstrip()[:1] in ("{", "[")
    try:
        turns = (_read_json(file, text) if is_json else ()) or read_transcript(text)
    except RecursionError:
        raise TraceError(file, "the JSON is nested too deeply", FORMATS) from None
    if not turns:
        raise TraceError(file, "not a trace in a known format, or nothing was said in it", FORMATS)
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
    """The turns of a document, or of JSON lines; lines that are cut off are left out."""
    try:
        document = json.loads(text)
        entries = document if isinstance(document, list) else [document]
    except ValueError as error:
        entries = list(_parsed_lines(text))
        if not entries and not read_transcript(text):
            where = f"{shown(file)}:{getattr(error, 'lineno', 1)}"
            raise TraceError(where, f"neither JSON nor JSON lines: {error}", FORMATS) from None
    return _read_kept_trial(entries) or read_entries(entries)


def _parsed_lines(text: str) -> Iterable[Any]:
    for line in text.split("\n"):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _read_kept_trial(entries: Sequence[Any]) -> Transcript:
    """The turns of a trial that ``--skill-transcripts`` kept: its first line says which it is."""
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
    """A transcript without what the agent itself tells its model, and with calls to be read."""
    turns = Turns()
    for turn in transcript:
        match turn.kind:
            case "call":
                turns.call(None, turn.tool, turn.text)
            case "result":
                turns.result(None, turn.text, failed=turn.failed, tool=turn.tool)
            case "user" | "assistant" | "thinking":
                turns.say(turn.kind, turn.text)
    return turns.transcript
