"""Rank the turns of a trace by how much they teach."""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from ...trials.transcript import Turn


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


_OF_KIND: Final[dict[str, Rank]] = {
    **{"user": Rank.ASKED, "assistant": Rank.DECIDED},
    **{"thinking": Rank.THOUGHT, "call": Rank.CALLED},
}
_SHELLS: Final = frozenset(
    {"bash", "shell", "exec_command", "shell_command", "local_shell", "container.exec", "exec"}
    | {"run_command", "run_terminal_cmd", "terminal", "execute_command", "run_shell_command"}
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
    """Failed calls with their errors, and the next calls of the same sort that succeeded."""
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
