"""What an agent left behind, as checks see it."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from .._util.texts import one_line
from ..trials.answer import Answer, AnswerFile
from ..trials.task import StartFile

_ANY_DEPTH: Final = "**"
_MOST_NAMED: Final = 3


class Workspace:
    """The workspace of one trial at its end."""

    def __init__(self, answer: Answer, start: Sequence[StartFile] = ()) -> None:
        self._answer = answer
        self._start = start

    @cached_property
    def files(self) -> Mapping[str, AnswerFile]:
        """All files that are there at the end, by path."""
        files = {file.path: AnswerFile.of(file.path, file.data) for file in self._start}
        files |= {file.path: file for file in self._answer.files}
        return {path: file for path, file in files.items() if file.change != "deleted"}

    @property
    def touched(self) -> Sequence[AnswerFile]:
        """Files that the agent made, changed or deleted."""
        return self._answer.files

    def matching(self, pattern: str) -> list[AnswerFile]:
        return [file for path, file in sorted(self.files.items()) if matches(path, pattern)]

    def why_missing(self, pattern: str) -> str:
        """That no file matches, and what there is instead."""
        if any(file.change == "deleted" and matches(file.path, pattern) for file in self.touched):
            return f"{pattern}: deleted"
        made = [one_line(file.path, 80) for file in self.touched if file.change == "made"]
        named = ", ".join(made[:_MOST_NAMED])
        more = f" and {len(made) - _MOST_NAMED:,} more" if len(made) > _MOST_NAMED else ""
        what = "no such file" if is_pattern(pattern) else "not there"
        return f"{pattern}: {what} (made: {named or 'nothing'}{more})"


def is_pattern(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def matches(path: str, pattern: str) -> bool:
    """Whether a path is meant: ``*`` and ``?`` stay in a folder, ``**`` stands for any number."""
    if path == pattern:
        return True
    return is_pattern(pattern) and _match(PurePosixPath(path).parts, pattern.split("/"))


def _match(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """In time of the product of their lengths, whatever they are."""
    reached = {0}  # how many parts the patterns so far may stand for
    for pattern in patterns:
        if pattern == _ANY_DEPTH:
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {
                at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], pattern)
            }
    return len(parts) in reached


def relative(path: str) -> str:
    """A path in the workspace as written in a case; ValueError says why it can't be one."""
    shown = path.removeprefix("./").rstrip("/") if path != "./" else ""
    if shown.startswith("/") or "\\" in shown or ":" in shown[:2]:
        raise ValueError("must be a path in the workspace, such as out/report.md")
    if not shown or ".." in shown.split("/") or "\0" in shown:
        raise ValueError("must be a path in the workspace, without ..")
    return shown
