"""Condense a trace to what teaches, within a budget of tokens.

Every turn gets a rank. Ranks are served in order, each with a share of the budget first and then
with what is left; within a rank all turns get the same, so that none can crowd out the others. A
text that is too long keeps its start and its end. What is left out is summed up in one sentence.
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

# JSON may contain lone surrogates, and any tool control characters.
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_CONTROLS: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*\x07?|[\x00-\x08\x0b-\x1f\x7f]"
)

_SHARE: Final = 0.4  # of the remaining budget, that a rank may take in the first round
_BETWEEN: Final = "\n\0\n"  # no secret pattern matches across it
_LEAST: Final = 90  # bytes; a shorter text says nothing
_ONE_LINE: Final = 300
_SOME_LINES: Final = 1500


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
    text: str  # indented
    short: str
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

    def size(self, text: str) -> int:
        """Its size in bytes, as a line."""
        return _bytes(self.head) + _bytes(text) + 1

    def fitted(self, size: int) -> str | None:
        """Its text in this many bytes; None if it is left out."""
        limit = size - _bytes(self.head) - 1
        if limit < 0:
            return None
        return fitted(self.short if size <= self.size(self.short) else self.text, limit)


def condensed(trace: Transcript, budget: int) -> Condensed:
    """The trace in at most ``budget`` tokens (estimated)."""
    turns = _cleaned(trace)
    items = _items(turns)
    limit = max(0, budget) * 4  # four bytes a token, as in estimated_tokens
    sizes = _allot(items, limit)
    texts = [item.fitted(size) for item, size in zip(items, sizes, strict=True)]
    pairs = zip(items, texts, strict=True)
    text = "\n".join(item.head + text for item, text in pairs if text is not None)
    return Condensed(text, estimated_tokens(text) if text else 0, _left_out(items, texts))


def _cleaned(turns: Sequence[Turn]) -> list[Turn]:
    """Clean and mask all texts at once: a secret of one turn is masked in all of them."""
    texts = [_CONTROLS.sub("", _without_surrogates(turn.text)) for turn in turns]
    parted = masked(_BETWEEN.join(texts)).split(_BETWEEN)
    if len(parted) != len(texts):
        parted = [masked(text) for text in texts]
    names = {turn.tool for turn in turns}
    tools = {name: masked(_CONTROLS.sub("", _without_surrogates(name))) for name in names}
    return [
        replace(turn, text=text.strip(), tool=tools[turn.tool])
        for turn, text in zip(turns, parted, strict=True)
    ]


def _without_surrogates(text: str) -> str:
    if not _SURROGATES.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
        if indices := first.get(step):
            for index in indices:
                items[index] = replace(items[index], times=items[index].times + 1)
        else:
            first[step] = [len(items) + offset for offset in range(width)]
            for offset in range(width):
                turn, rank = step[offset], ranks[place + offset]
                text = turn.text.replace("\n", "\n   ")
                short = _short(text, rank)
                text = short if rank is Rank.REPLACED else text
                items.append(_Item(number, turn, rank, text, short))
        place += width
    return items


def _short(text: str, rank: Rank) -> str:
    if rank in (Rank.CALLED, Rank.REPLACED):
        line = " ".join(text[: _ONE_LINE * 4].split())
        return line if len(line) <= _ONE_LINE else line[: _ONE_LINE - 1] + "…"
    return fitted(text, _SOME_LINES) if rank in (Rank.SEEN, Rank.THOUGHT) else text


def _allot(items: Sequence[_Item], limit: int) -> list[int]:
    """How many bytes each item gets; 0 if it is left out."""
    sizes, budget = [0] * len(items), limit
    short = [item.size(item.short) for item in items]
    full = [item.size(item.text) for item in items]
    floors = [_bytes(item.head) + _LEAST for item in items]
    of_rank = {rank: [p for p, item in enumerate(items) if item.rank is rank] for rank in Rank}
    for wishes, share, largest in ((short, _SHARE, 0.2), (short, 1, 0.2), (full, 1, 0.5)):
        most = int(limit * largest)
        for rank, places in of_rank.items():
            before = sum(sizes[place] for place in places)
            after = allotted(
                [max(sizes[p], min(wishes[p], max(most, floors[p]))) for p in places],
                [floors[p] for p in places],
                before + int(budget * (0 if share < 1 and rank is Rank.THOUGHT else share)),
            )
            for place, size in zip(places, after, strict=True):
                sizes[place] = size
            budget += before - sum(after)
    return _without_lone_results(items, sizes)


def _without_lone_results(items: Sequence[_Item], sizes: list[int]) -> list[int]:
    """A result says nothing without its call, and is left out with it."""
    for place in range(1, len(items)):
        before, item = items[place - 1], items[place]
        of_call = item.turn.kind == "result" and before.number == item.number
        if of_call and not sizes[place - 1]:
            sizes[place] = 0
    return sizes


def _left_out(items: Sequence[_Item], texts: Sequence[str | None]) -> str:
    """What is not shown, in one sentence."""
    lost = sum(_lost(item.turn.text, text) for item, text in zip(items, texts, strict=True))
    if not lost and None not in texts:
        return ""
    missing = f"{texts.count(None):,} of {counted(len(items), 'turn')}"
    total = counted(sum(len(item.turn.text) for item in items), "character")
    return f"left out: {missing}, {lost:,} of {total}"


def _lost(full: str, text: str | None) -> int:
    """Characters that are not shown; differences in spacing do not count."""
    if text is None:
        return len(full)
    return 0 if text.split() == full.split() else max(1, len(full) - len(text))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


_MARK: Final = "[… {:,} characters left out …]"


def allotted(wishes: Sequence[int], floors: Sequence[int], budget: int) -> list[int]:
    """Share out the budget: each gets its wish, or else all get the same.

    If it is too small for all floors, it is given from both ends, and the middle gets none.
    """
    floors = [min(wish, floor) for wish, floor in zip(wishes, floors, strict=True)]
    chosen = _affordable(floors, budget)
    sizes = [0] * len(wishes)
    spare = budget - sum(floors[place] for place in chosen)
    level = _level([wishes[place] - floors[place] for place in chosen], spare)
    for place in chosen:
        sizes[place] = floors[place] + min(wishes[place] - floors[place], level)
    return sizes


def _affordable(floors: Sequence[int], budget: int) -> list[int]:
    if sum(floors) <= budget:
        return list(range(len(floors)))
    chosen: list[int] = []
    low, high = 0, len(floors) - 1
    while low <= high:
        place = low if len(chosen) % 2 == 0 else high
        budget -= floors[place]
        if budget < 0:
            break
        chosen.append(place)
        low, high = (low + 1, high) if place == low else (low, high - 1)
    return sorted(chosen)


def _level(wishes: Sequence[int], budget: int) -> int:
    """The most that each may get within the budget."""
    for place, wish in enumerate(sorted(wishes)):
        unserved = len(wishes) - place
        if wish * unserved > budget:
            return max(0, budget // unserved)
        budget -= wish
    return max(wishes, default=0)


def fitted(text: str, limit: int) -> str:
    """The start and end of a text within ``limit`` bytes, cut between lines if possible."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    size = limit - len(_MARK.format(len(text)).encode()) - 2
    if size < 24:
        return _decoded(data[: max(0, limit - 3)]) + "…" if limit >= 3 else ""
    head, tail = _decoded(data[: size * 2 // 3]), _decoded(data[len(data) - size // 3 :])
    # Cut lines mislead; they stay only where there is hardly anything else.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    mark = _MARK.format(len(text) - len(head) - len(tail))
    return f"{head}\n{mark}\n{tail}"


def _decoded(data: bytes) -> str:
    """A piece of UTF-8, without broken characters at its ends."""
    return data.decode("utf-8", "ignore")
