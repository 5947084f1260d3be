"""Transcripts of our own trials of agents, as results have them and as they are kept in files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from ...trials.transcript import Transcript, Turn
from .turns import Trace, call_text, without

_HEAD: Final = frozenset({"case", "agent", "model", "arm", "run", "outcome"})


def is_own(entries: Sequence[Any]) -> bool:
    """Whether the first line says which trial it is."""
    return bool(entries) and isinstance(entries[0], dict) and entries[0].keys() >= _HEAD


def read_own(entries: Sequence[Any], skipped: int = 0) -> Trace:
    turns = list[Turn]()
    for entry in entries[1:]:
        try:
            turns.append(Turn.from_json(entry))
        except (ValueError, KeyError, TypeError, AttributeError):
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
