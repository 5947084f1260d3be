"""Condense a trace to what teaches, within a budget of tokens.

Every turn gets a rank. Ranks are served in order, each with a share of the budget first and then
with what is left; within a rank all turns get the same, so that none can crowd out the others. A
text that is too long keeps its start and its end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..._util.texts import counted
from ...skills.skill import estimated_tokens
from ...trials.transcript import Transcript, Turn
from ..secrets import masked
from .ranking import Rank, ranked

_CONTROLS: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*\x07?|[\x00-\x08\x0b-\x1f\x7f]"
)
_BETWEEN: Final = "\n\0\n"  # no secret pattern matches across it
_LEAST: Final = 90  # bytes; a shorter text says nothing
_SHARE: Final = 0.4  # of the remaining budget, that a rank may take in the first round
# Bytes of a turn, before all others had theirs.
_AT_FIRST: Final = {Rank.CALLED: 300, Rank.REPLACED: 300, Rank.SEEN: 1500, Rank.THOUGHT: 1500}
_MARK: Final = "[… {:,} characters left out …]"


@dataclass(frozen=True)
class Condensed:
    """A trace as the teacher reads it."""

    text: str  # masked, in numbered steps
    tokens: int  # estimated
    left_out: str  # one sentence, "" if nothing was


@dataclass(frozen=True)
class _Item:
    """A turn as it is shown: once, however often it occurred."""

    number: int
    turn: Turn
    rank: Rank
    times: int = 1

    @property
    def head(self) -> str:
        times = f" ×{self.times}" if self.times > 1 else ""
        match self.turn.kind:
            case "call":
                return f"{self.number}. call {self.turn.tool[:60] or 'tool'}{times}: "
            case "result":
                return f"   {'FAILED' if self.turn.failed else 'result'}{times}: "
            case kind:
                return f"{self.number}. {kind}{times}: "

    @property
    def text(self) -> str:
        return self.turn.text.replace("\n", "\n   ")

    def fitted(self, size: int) -> str | None:
        """Its line in this many bytes; None if it is left out."""
        limit = size - _bytes(self.head) - 1
        return None if limit < 0 else self.head + fitted(self.text, limit)


def condensed(trace: Transcript, budget: int) -> Condensed:
    """The trace in at most ``budget`` tokens (estimated)."""
    items = _items(_cleaned(trace))
    sizes = _allot(items, max(0, budget) * 4)  # four bytes a token, as in estimated_tokens
    lines = [item.fitted(size) for item, size in zip(items, sizes, strict=True)]
    text = "\n".join(line for line in lines if line is not None)
    return Condensed(text, estimated_tokens(text) if text else 0, _left_out(items, lines))


def _left_out(items: Sequence[_Item], lines: Sequence[str | None]) -> str:
    """What is not shown, in one sentence."""
    texts = [item.head + item.text for item in items]
    if list(lines) == texts:
        return ""
    missing = f"{lines.count(None):,} of {counted(len(items), 'turn')}"
    total, shown = sum(map(len, texts)), sum(len(line or "") for line in lines)
    return f"left out: {missing}, {total - shown:,} of {counted(total, 'character')}"


def _cleaned(turns: Sequence[Turn]) -> list[Turn]:
    """Clean and mask all texts at once: a secret of one turn is masked in all of them."""
    texts = [_printable(turn.text) for turn in turns]
    parted = masked(_BETWEEN.join(texts)).split(_BETWEEN)
    if len(parted) != len(texts):
        parted = [masked(text) for text in texts]
    tools = {name: masked(_printable(name)) for name in {turn.tool for turn in turns}}
    return [
        replace(turn, text=text.strip(), tool=tools[turn.tool])
        for turn, text in zip(turns, parted, strict=True)
    ]


def _printable(text: str) -> str:
    """Without control characters; JSON may contain lone surrogates, too."""
    return _CONTROLS.sub("", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _items(turns: Sequence[Turn]) -> list[_Item]:
    """The turns with their ranks; repeated ones are merged into the first."""
    items: list[_Item] = []
    first: dict[tuple[Turn, ...], list[int]] = {}
    number = place = 0
    ranks = ranked(turns)
    while place < len(turns):
        # A call and its result are one step: with another result it is another step.
        has_result = turns[place].kind == "call" and turns[place + 1 : place + 2]
        width = 2 if has_result and turns[place + 1].kind == "result" else 1
        step = tuple(turns[place : place + width])
        number += 1
        if step in first:
            for index in first[step]:
                items[index] = replace(items[index], times=items[index].times + 1)
        else:
            first[step] = [len(items) + offset for offset in range(width)]
            items += map(_Item, [number] * width, step, ranks[place : place + width])
        place += width
    return items


def _allot(items: Sequence[_Item], limit: int) -> list[int]:
    """How many bytes each item gets; 0 if it is left out."""
    sizes, budget = [0] * len(items), limit
    heads = [_bytes(item.head) + 1 for item in items]
    full = [head + _bytes(item.text) for head, item in zip(heads, items, strict=True)]
    of_rank = {rank: [p for p, item in enumerate(items) if item.rank is rank] for rank in Rank}
    for share, largest in ((_SHARE, 0.2), (1, 0.2), (1, 0.5)):
        for rank, places in of_rank.items():
            most = int(limit * largest)
            if largest == 0.2 or rank is Rank.REPLACED:
                most = min(most, _AT_FIRST.get(rank, most))
            before = sum(sizes[place] for place in places)
            after = allotted(
                [max(sizes[p], min(full[p], max(most, _LEAST) + heads[p])) for p in places],
                [heads[p] + _LEAST for p in places],
                before + int(budget * (0 if share < 1 and rank is Rank.THOUGHT else share)),
            )
            for place, size in zip(places, after, strict=True):
                sizes[place] = size
            budget += before - sum(after)
    for place, item in enumerate(items):  # a result says nothing without its call
        of_call = item.turn.kind == "result" and place and items[place - 1].number == item.number
        sizes[place] = 0 if of_call and not sizes[place - 1] else sizes[place]
    return sizes


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def allotted(wishes: Sequence[int], floors: Sequence[int], budget: int) -> list[int]:
    """Share out the budget: each gets its wish, or else all get the same.

    If it is too small for all floors, it is given from both ends, and the middle gets none.
    """
    floors = [min(wish, floor) for wish, floor in zip(wishes, floors, strict=True)]
    sizes, chosen = [0] * len(wishes), list[int]()
    for place in _from_both_ends(len(wishes)):
        if floors[place] > budget:
            break
        budget -= floors[place]
        chosen.append(place)
    extras = {place: wishes[place] - floors[place] for place in chosen}
    for served, place in enumerate(sorted(chosen, key=extras.__getitem__)):
        extra = min(extras[place], budget // (len(chosen) - served))
        sizes[place] = floors[place] + extra
        budget -= extra
    return sizes


def _from_both_ends(number: int) -> list[int]:
    return [place // 2 if place % 2 == 0 else number - 1 - place // 2 for place in range(number)]


def fitted(text: str, limit: int) -> str:
    """The start and end of a text within ``limit`` bytes, cut between lines if possible."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    size = limit - len(_MARK.format(len(text)).encode()) - 2
    if size < 24:
        return data[: max(0, limit - 3)].decode("utf-8", "ignore") + "…" if limit >= 3 else ""
    head = data[: size * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - size // 3 :].decode("utf-8", "ignore")
    # Cut lines mislead; they stay only where there is hardly anything else.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    return f"{head}\n{_MARK.format(len(text) - len(head) - len(tail))}\n{tail}"
