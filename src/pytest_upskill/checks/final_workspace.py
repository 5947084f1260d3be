"""What an agent left behind, as checks see it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from .._util.texts import one_line
from ..agents.sandboxes.sandbox import CommandResult
from ..agents.snapshot import MOST_CHANGED_FILES, Snapshot, unpack
from ..errors import CheckError
from ..trials.answer import Answer, AnswerFile
from ..trials.task import StartFile

_ANY_DEPTH: Final = "**"
_MOST_NAMED: Final = 3
_NOT_KEPT: Final = (
    "the workspace was not kept, so no command can be run in it: it is too large, or the answer "
    "is older. Have the agent leave less behind, or ask again"
)


Run = Callable[[bytes, "WorkspaceCommand"], CommandResult]  # in a fresh copy of a packed workspace


class WorkspaceCommand(NamedTuple):
    """A command to be run in a copy of a workspace, to which files are added first."""

    run: str
    timeout: float
    hidden: tuple[StartFile, ...] = ()


class Workspace:
    """The workspace of one trial at its end."""

    def __init__(
        self,
        answer: Answer,
        start: Sequence[StartFile] = (),
        *,
        has_setup: bool = False,
        run: Run | None = None,
    ) -> None:
        self._answer = answer
        self._start = () if has_setup else start  # what a setup makes of them is not known
        self._run = run
        self._ran = dict[WorkspaceCommand, CommandResult]()

    @cached_property
    def files(self) -> Mapping[str, AnswerFile]:
        """All files that are there at the end, by path."""
        files = {file.path: AnswerFile.of(file.path, file.data) for file in self._start}
        if self._kept:
            links = [AnswerFile(one.path, None, len(one.target), "") for one in self._kept.links]
            whole = [AnswerFile.of(one.path, one.data) for one in self._kept.files]
            files = {file.path: file for file in (*whole, *links)}
        files |= {file.path: file for file in self._answer.files}
        return {path: file for path, file in files.items() if file.change != "deleted"}

    @cached_property
    def _kept(self) -> Snapshot | None:
        """All of it, if it was kept; there are only so many files in an answer."""
        try:
            return unpack(self._answer.workspace) if self._answer.workspace else None
        except ValueError:
            return None

    @property
    def touched(self) -> Sequence[AnswerFile]:
        """Files that the agent made, changed or deleted."""
        return self._answer.files

    @property
    def changed(self) -> Iterator[AnswerFile]:
        """Files of the start that the agent changed or deleted."""
        told = [file for file in self.touched if file.change != "made"]
        yield from told
        known = {file.path for file in told}
        for file in self._start if self._kept else ():
            there = self.files.get(file.path)
            if file.path in known or (there and there.digest == _digest(file)):
                continue
            yield AnswerFile(file.path, None, 0, "", "changed" if there else "deleted")

    @property
    def is_cut(self) -> bool:
        """Whether there may be files that nobody knows of."""
        return not self._kept and len(self.touched) >= MOST_CHANGED_FILES

    @property
    def changes_are_cut(self) -> bool:
        """Whether a file of the start may have changed unseen. Those are kept before new ones."""
        changes = sum(file.change != "made" for file in self.touched)
        return not (self._kept and self._start) and changes >= MOST_CHANGED_FILES

    def run(self, command: WorkspaceCommand) -> CommandResult:
        """What came of a command after the agent; CheckError if it can't be run."""
        if command not in self._ran:
            if not self._run:
                raise CheckError("there is no sandbox to run a command in")
            if not self._answer.workspace:
                raise CheckError(_NOT_KEPT)
            self._ran[command] = self._run(self._answer.workspace, command)
        return self._ran[command]

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


def _digest(file: StartFile) -> str:
    return sha256(file.data).hexdigest()


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
