"""Condense a trace to what teaches, within a budget of tokens.

Every turn gets a rank. Ranks are served in order, each with a share of the budget first
and then with what is left; within a rank all turns get the same, so that none can crowd
out the others. A text that is too long keeps its start and its end.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from ..._util.secrets import masked
from ..._util.texts import counted
from ...skills.skill import estimated_tokens
from ...trials.transcript import Transcript, Turn


class Rank(IntEnum):
    """What is kept first when a trace is condensed."""

    ASKED = 0  # what the user wanted
    ANSWERED = 1  # the last message, and the last with code in it
    FAILED = 2  # failed calls, their errors and fixes
    WRITTEN = 3  # the last version of each file
    DECIDED = 4  # what the agent said in between
    CALLED = 5
    REPLACED = 6  # calls that wrote an earlier version of a file
    SEEN = 7
    THOUGHT = 8


_CONTROLS: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*\x07?|[\x00-\x08\x0b-\x1f\x7f]"
)
_BETWEEN: Final = "\n\0\n"  # no secret pattern matches across it
_LEAST: Final = 90  # bytes; a shorter text says nothing
_SHARE: Final = 0.4  # of the remaining budget, that a rank may take in the first round
# Bytes of a turn, before all others had theirs.
_AT_FIRST: Final = {
    Rank.CALLED: 300,
    Rank.REPLACED: 300,
    Rank.SEEN: 1500,
    Rank.THOUGHT: 1500,
}
_MARK: Final = "[… {:,} characters left out …]"
# Which turns teach most.
_OF_KIND: Final[dict[str, Rank]] = {
    "user": Rank.ASKED,
    "assistant": Rank.DECIDED,
    "thinking": Rank.THOUGHT,
    "call": Rank.CALLED,
}
_SHELLS: Final = frozenset(
    {
        "bash",
        "shell",
        "exec_command",
        "shell_command",
        "local_shell",
        "container.exec",
        "exec",
    }
    | {
        "run_command",
        "run_terminal_cmd",
        "terminal",
        "execute_command",
        "run_shell_command",
    }
)
_PATH_LINE: Final = re.compile(
    r"(?:file_path|path|notebook_path|filename|filePath|target_file): (\S[^\n]{0,500})"
)
_PATCHED: Final = re.compile(r"^\*\*\* (Add|Update) File: (\S[^\n]{0,500})", re.M)
_HEREDOC: Final = re.compile(
    r"\b(?:cat|tee)\s{1,3}(?:>\s{0,3})?([\w./~<>-]{1,300})\s{1,3}(?:>\s*\S+\s+)?<<"
)
_WRITERS: Final = re.compile(r"(?i)write|create|save|add_file")
_EDITORS: Final = re.compile(r"(?i)edit|patch|replace|update|insert")
_BEFORE_COMMAND: Final = re.compile(
    r"(?:\s*(?:cd\s[^;&|\n]{1,300}(?:&&|;)|(?:sudo|time|env|nohup|exec)\s|timeout\s+\S+\s"
    r"|[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]*)\s))+"
)
_WORD: Final = re.compile(r"\s*([^\s;&|<>()]{1,200})")


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
    # Four bytes a token, as in estimated_tokens
    sizes = _allot(items, max(0, budget) * 4)
    lines = [item.fitted(size) for item, size in zip(items, sizes, strict=True)]
    text = "\n".join(line for line in lines if line is not None)
    return Condensed(
        text, estimated_tokens(text) if text else 0, _left_out(items, lines)
    )


def _left_out(items: Sequence[_Item], lines: Sequence[str | None]) -> str:
    """What is not shown, in one sentence."""
    texts = [item.head + item.text for item in items]
    if list(lines) == texts:
        return ""
    missing = f"{lines.count(None):,} of {counted(len(items), 'turn')}"
    total, shown = sum(map(len, texts)), sum(len(line or "") for line in lines)
    return f"left out: {missing}, {total - shown:,} of {counted(total, 'character')}"


def _cleaned(turns: Sequence[Turn]) -> list[Turn]:
    """Clean and mask all texts at once: a secret of one turn is masked in all of
    them.
    """
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
    return _CONTROLS.sub(
        "", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


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
    of_rank = {
        rank: [p for p, item in enumerate(items) if item.rank is rank] for rank in Rank
    }
    for share, largest in ((_SHARE, 0.2), (1, 0.2), (1, 0.5)):
        for rank, places in of_rank.items():
            most = int(limit * largest)
            if largest == 0.2 or rank is Rank.REPLACED:
                most = min(most, _AT_FIRST.get(rank, most))
            before = sum(sizes[place] for place in places)
            after = allotted(
                [
                    max(sizes[p], min(full[p], max(most, _LEAST) + heads[p]))
                    for p in places
                ],
                [heads[p] + _LEAST for p in places],
                before
                + int(budget * (0 if share < 1 and rank is Rank.THOUGHT else share)),
            )
            for place, size in zip(places, after, strict=True):
                sizes[place] = size
            budget += before - sum(after)
    for place, item in enumerate(items):  # a result says nothing without its call
        of_call = (
            item.turn.kind == "result"
            and place
            and items[place - 1].number == item.number
        )
        sizes[place] = 0 if of_call and not sizes[place - 1] else sizes[place]
    return sizes


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def allotted(wishes: Sequence[int], floors: Sequence[int], budget: int) -> list[int]:
    """Share out the budget: each gets its wish, or else all get the same.

    If it is too small for all floors, it is given from both ends,
    and the middle gets none.
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
    return [
        place // 2 if place % 2 == 0 else number - 1 - place // 2
        for place in range(number)
    ]


def fitted(text: str, limit: int) -> str:
    """The start and end of a text within ``limit`` bytes,
    cut between lines if possible.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    size = limit - len(_MARK.format(len(text)).encode()) - 2
    if size < 24:
        return (
            data[: max(0, limit - 3)].decode("utf-8", "ignore") + "…"
            if limit >= 3
            else ""
        )
    head = data[: size * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - size // 3 :].decode("utf-8", "ignore")
    # Cut lines mislead; they stay only where there is hardly anything else.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    return f"{head}\n{_MARK.format(len(text) - len(head) - len(tail))}\n{tail}"


def ranked(turns: Sequence[Turn]) -> list[Rank]:
    """The rank of each turn."""
    ranks = [_OF_KIND.get(turn.kind, Rank.SEEN) for turn in turns]
    for place in _answers(turns):
        ranks[place] = Rank.ANSWERED
    last, earlier = _versions(turns)
    for place in earlier:
        ranks[place] = Rank.REPLACED
    for place in last:
        ranks[place] = Rank.WRITTEN
    for place in _failures_and_fixes(turns):
        # A fix that is the last version of a file keeps its rank.
        ranks[place] = min(ranks[place], Rank.FAILED)
    return ranks


def _answers(turns: Sequence[Turn]) -> set[int]:
    messages = [place for place, turn in enumerate(turns) if turn.kind == "assistant"]
    with_code = [place for place in messages if "```" in turns[place].text]
    return {*messages[-1:], *with_code[-1:]}


def _result_of(turns: Sequence[Turn], place: int) -> Turn | None:
    after = turns[place + 1] if place + 1 < len(turns) else None
    return after if after and after.kind == "result" else None


def _versions(turns: Sequence[Turn]) -> tuple[set[int], set[int]]:
    """The last calls that wrote or edited each file, and the earlier ones."""
    written: dict[str, int] = {}
    edited: dict[str, int] = {}
    places = set[int]()
    for place, turn in enumerate(turns):
        result = _result_of(turns, place)
        if turn.kind != "call" or (result and result.failed):
            continue
        for path, is_complete in _files_of(turn):
            places.add(place)
            if is_complete:
                written[path] = place
                edited.pop(path, None)
            else:
                edited[path] = place
    last = {*written.values(), *edited.values()}
    return last, places - last


def _files_of(call: Turn) -> Iterator[tuple[str, bool]]:
    """The files that a call changes, and whether it writes them completely."""
    if "*** Begin Patch" in call.text:
        for verb, path in _PATCHED.findall(call.text):
            yield path.strip(), verb == "Add"
    elif call.tool.lower() in _SHELLS:
        if match := _HEREDOC.search(call.text[:2000]):
            yield match[1], True
    elif match := _PATH_LINE.match(call.text):
        if _WRITERS.search(call.tool):
            yield match[1].strip(), True
        elif _EDITORS.search(call.tool):
            yield match[1].strip(), False


def _failures_and_fixes(turns: Sequence[Turn]) -> set[int]:
    """Failed calls with their errors, and the next calls of the
    same sort that succeeded.
    """
    places = set[int]()
    waiting = set[str]()  # sorts of calls that failed and are not fixed yet
    failed_last = ""  # the tool of the previous call, if that failed
    for place, turn in enumerate(turns):
        if turn.kind == "result" and turn.failed:
            places.add(place)
        if turn.kind != "call":
            continue
        result, sort = _result_of(turns, place), _sort_of(turn)
        if result and result.failed:
            places.add(place)
            waiting.add(sort)
            failed_last = turn.tool or "?"
            continue
        # Another command right after it may be the fix: python3 after python.
        if sort in waiting or failed_last == (turn.tool or "?"):
            places.add(place)
            waiting.discard(sort)
        failed_last = ""
    return places


def _sort_of(call: Turn) -> str:
    """Calls of one sort try the same thing: a program, or a tool on a file."""
    if call.tool.lower() in _SHELLS:
        start = _BEFORE_COMMAND.match(call.text[:2000])
        word = _WORD.match(call.text, start.end() if start else 0)
        return f"$ {word[1].rpartition('/')[2]}" if word else "$"
    path = _PATH_LINE.match(call.text)
    return f"{call.tool} {path[1]}" if path else call.tool
