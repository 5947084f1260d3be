"""What an agent did in a trial, for a failure on the terminal: numbers, files, its last turns."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..._util.texts import counted, one_line, shortened, visible
from ...trials.answer import AnswerFile
from ...trials.records import Record
from ...trials.transcript import Transcript, Turn
from ..numbers import activity_words
from .layout import Look

Line = tuple[str, str, str]  # a prefix, the text, the prefix of its other lines if it is wrapped

_SHOWN_PATH: Final = 200


@dataclass(frozen=True)
class _Room:
    """How much is shown."""

    replies: int
    turns: int
    characters: int  # of a turn, or of a file
    files: int
    whole: bool  # texts as they are, not on a line each


_ROOM: Final = {1: _Room(3, 12, 300, 20, whole=False), 2: _Room(30, 100, 1500, 50, whole=True)}


def activity_line(record: Record) -> Iterator[Line]:
    if record.activity:
        yield "  ", f"Agent: {activity_words(record.activity)}", "    "


def trial_lines(record: Record, look: Look) -> Iterator[Line]:
    """With -v: findings, files and the last turns; with -vv, more of them."""
    if look.verbosity < 1:
        return
    room = _ROOM[min(look.verbosity, 2)]
    for lines in (_findings(record, room), _files(record.files, room), _turns(record, room)):
        for first, text, rest in lines:
            yield first, text.replace("…", look.marks.cut), rest


def _findings(record: Record, room: _Room) -> Iterator[Line]:
    for finding in record.activity.findings if record.activity else ():
        yield "  ", f"Note: {one_line(finding, room.characters)}", "    "


def _files(files: Sequence[AnswerFile], room: _Room) -> Iterator[Line]:
    if files:
        yield "  ", "Files:", "  "
    for file in files[: room.files]:
        size = "" if file.change == "deleted" else f" ({counted(file.size, 'byte')})"
        yield "    ", f"{file.change} {one_line(file.path, _SHOWN_PATH)}{size}", "      "
        if room.whole and file.text:
            yield from _text(file.text, room, "      | ")
    if len(files) > room.files:
        yield "    ", f"and {counted(len(files) - room.files, 'more file')}", "      "


def _turns(record: Record, room: _Room) -> Iterator[Line]:
    turns = _without_answer(record)
    if not room.whole:  # what it was told and asked is known
        turns = tuple(turn for turn in turns if turn.kind not in ("system", "user"))
    last = max((turn.reply for turn in turns), default=0)
    shown = [turn for turn in turns if turn.reply > last - room.replies][-room.turns :]
    if not shown:
        return
    which = "All" if len(shown) == len(turns) else f"The last {len(shown):,} of"
    yield "  ", f"{which} {counted(len(turns), 'step')}:", "  "
    for turn in shown:
        first, text = _said(turn)
        if room.whole:
            yield "    ", f"{first}:", "      "
            yield from _text(text, room, "      | ")
        else:
            yield "    ", f"{first}: {one_line(text, room.characters)}", "      "


def _without_answer(record: Record) -> Transcript:
    """Without the last words, which stand above."""
    turns = record.transcript
    if turns and turns[-1].kind == "assistant" and turns[-1].text == record.output:
        return turns[:-1]
    return turns


def _said(turn: Turn) -> tuple[str, str]:
    tool = one_line(turn.tool, 60)
    if turn.kind == "call":
        return f"calls {tool}", _argument(turn.text)
    if turn.kind == "result":
        return f"{tool} {'failed' if turn.failed else 'gave'}", turn.text
    words = {"thinking": "thinks", "assistant": "says", "user": "is asked", "system": "is told"}
    return words[turn.kind], turn.text


def _argument(text: str) -> str:
    """The only argument of a call without braces and quotes, since most have just one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    values = list(found.values()) if isinstance(found, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text


def _text(text: str, room: _Room, prefix: str) -> Iterator[Line]:
    for line in visible(shortened(text, room.characters)).split("\n"):
        yield prefix, line, prefix
