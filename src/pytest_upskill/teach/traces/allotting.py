"""Room shared out among texts, and a text made to fit its room: bytes in, bytes out."""

from collections.abc import Sequence
from typing import Final

_MARK: Final = "[… {:,} characters left out …]"


def allotted(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """How much each gets of the room: as much as it wants, or all the same.

    Where not even the least would do for all, the first and the last get it, by turns, and those
    in the middle nothing.
    """
    floors = [min(want, low) for want, low in zip(wanted, least, strict=True)]
    chosen = _affordable(floors, room)
    sizes = [0] * len(wanted)
    spare = room - sum(floors[place] for place in chosen)
    level = _level([wanted[place] - floors[place] for place in chosen], spare)
    for place in chosen:
        sizes[place] = floors[place] + min(wanted[place] - floors[place], level)
    return sizes


def _affordable(floors: Sequence[int], room: int) -> list[int]:
    if sum(floors) <= room:
        return list(range(len(floors)))
    chosen: list[int] = []
    low, high = 0, len(floors) - 1
    while low <= high:
        place = low if len(chosen) % 2 == 0 else high
        room -= floors[place]
        if room < 0:
            break
        chosen.append(place)
        low, high = (low + 1, high) if place == low else (low, high - 1)
    return sorted(chosen)


def _level(wishes: Sequence[int], room: int) -> int:
    """The most that each may get so that all together stay within the room."""
    left = len(wishes)
    for wish in sorted(wishes):
        if wish * left > room:
            return max(0, room // left)
        room -= wish
        left -= 1
    return max(wishes, default=0)


def fitted(text: str, limit: int) -> str:
    """The beginning and the end of a text within so many bytes, cut between lines if it can be."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    room = limit - len(_MARK.format(len(text)).encode()) - 2
    if room < 24:
        return _decoded(data[: max(0, limit - 3)]) + "…" if limit >= 3 else ""
    head, tail = _decoded(data[: room * 2 // 3]), _decoded(data[len(data) - room // 3 :])
    # A line that is cut in the middle misleads, unless nothing else would be left of the text.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    mark = _MARK.format(len(text) - len(head) - len(tail))
    return f"{head}\n{mark}\n{tail}"


def _decoded(data: bytes) -> str:
    """A piece of UTF-8, without the halves of characters at its ends."""
    return data.decode("utf-8", "ignore")
