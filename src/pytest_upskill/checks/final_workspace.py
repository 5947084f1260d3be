"""The workspace of an agent at the end of a trial, as checks see it."""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from .._util.texts import first_few, one_line
from ..errors import CheckError
from ..skills.case import WorkspaceFile
from ..trials.answer import MAX_CHANGED_FILES, Answer, AnswerFile

if TYPE_CHECKING:
    from ..agents.sandboxes.sandbox import CommandResult
    from ..agents.snapshot import Snapshot

TESTS: Final = "/tests"  # the folder of a verifier's files
_ANY_DEPTH: Final = "**"
# Files by which an agent could decide how hidden tests end.
_STEERING: Final = (
    *(
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
    ),
    *("sitecustomize.py", "usercustomize.py", ".npmrc"),
)
# By which git starts no program that an agent named in its settings.
OWN_GIT: Final = {
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_COUNT": "1",
}
_BEFORE_MAKEFILE: Final = ("GNUmakefile", "makefile")  # make reads these first
_MOST_NAMED: Final = 3
_NOT_KEPT: Final = (
    "the workspace was not kept, so no command can be run in it: it is too large, or"
    " the answer is older. Have the agent leave less behind, or ask again"
)


@dataclass(frozen=True)
class Verifier:
    """The script of a verifier, with the files of its folder."""

    script: str  # its path in that folder
    folder: str  # the name of that folder
    files: tuple[WorkspaceFile, ...]
    timeout: float
    env: tuple[tuple[str, str], ...] = ()
    task: str = ""  # the name of the task's folder

    @property
    def name(self) -> str:
        return posixpath.join(self.task, self.folder, self.script)

    @cached_property
    def texts(self) -> dict[str, str]:
        return {
            file.path: text for file in self.files if (text := file.text) is not None
        }

    @property
    def folders(self) -> tuple[str, ...]:
        """Where its files are inside; some packages have them in
        a folder of another name.
        """
        return tuple(dict.fromkeys((TESTS, f"/{self.folder}")))


@dataclass(frozen=True)
class Verified:
    """What a verifier left."""

    output: str = ""  # the end of it
    # By name of the file; None: it is no file
    rewards: tuple[tuple[str, bytes | None], ...] = ()
    problem: str = ""  # why the reward does not count
    missing: str = ""  # the line that says which program or host was not there
    unfinished: str = ""  # why a full reward does not count


def steers(path: str) -> bool:
    """Whether an agent's file at this path could decide how hidden tests end."""
    module = path.replace("/__init__.py", ".py")
    return PurePosixPath(module).name in _STEERING


class WorkspaceCommand(NamedTuple):
    """A command to be run in a copy of a workspace, to which files are added first."""

    run: str
    timeout: float
    hidden: tuple[WorkspaceFile, ...] = ()
    keep: tuple[str, ...] = ()  # files of the agent that may steer it
    left_out: tuple[str, ...] = ()  # files of the agent that must not
    exit: int | None = 0  # the status that it must have; None: any


# In a fresh copy of a packed workspace
Run = Callable[[bytes, WorkspaceCommand], "CommandResult"]
IsFromStart = Callable[[WorkspaceFile], bool]  # whether the agent left a file as it was
Verify = Callable[[bytes, Verifier, IsFromStart], Verified]


class Workspace:
    """The workspace of one trial at its end."""

    def __init__(
        self,
        answer: Answer,
        start: Sequence[WorkspaceFile] = (),
        *,
        has_setup: bool = False,
        run: Run | None = None,
        verify: Verify | None = None,
    ) -> None:
        self._answer = answer
        self._start = () if has_setup else start  # a setup may change them
        self._given = {file.path: file for file in start}
        self._has_setup = has_setup
        self._run = run
        self._ran = dict[WorkspaceCommand, "CommandResult"]()
        self._verify = verify
        self._verified = dict[Verifier, Verified]()

    @cached_property
    def files(self) -> Mapping[str, AnswerFile]:
        """All files that are there at the end, by path."""
        files = {file.path: AnswerFile.of(file.path, file.data) for file in self._start}
        if snapshot := self._snapshot:
            files = {
                file.path: AnswerFile.of(file.path, file.data)
                for file in snapshot.files
            }
            for link in snapshot.links:
                files[link.path] = AnswerFile(link.path, None, len(link.target), "")
        files |= {file.path: file for file in self._answer.files}
        return {path: file for path, file in files.items() if file.change != "deleted"}

    @cached_property
    def _snapshot(self) -> "Snapshot | None":
        """All of its files, if they were stored: an answer has only the first ones."""
        packed = self._answer.workspace
        if not packed:
            return None

        from ..agents.snapshot import unpack

        try:
            return unpack(packed, self._start)
        except ValueError:
            return None

    @property
    def touched(self) -> Sequence[AnswerFile]:
        """Files that the agent made, changed or deleted."""
        return self._answer.files

    @property
    def changed(self) -> Iterator[AnswerFile]:
        """Files of the start that the agent changed or deleted."""
        reported = [file for file in self.touched if file.change != "made"]
        yield from reported
        paths = {file.path for file in reported}
        for file in self._start if self._snapshot else ():
            file_now = self.files.get(file.path)
            if file.path in paths or (file_now and file_now.digest == _digest(file)):
                continue
            yield AnswerFile(
                file.path, None, 0, "", "changed" if file_now else "deleted"
            )

    @property
    def is_cut(self) -> bool:
        """Whether there may be more files than the answer has."""
        return not self._snapshot and len(self.touched) >= MAX_CHANGED_FILES

    @property
    def changes_are_cut(self) -> bool:
        """Whether a file of the start may have changed unseen;
        an answer has those first.
        """
        changes = sum(file.change != "made" for file in self.touched)
        return not (self._snapshot and self._start) and changes >= MAX_CHANGED_FILES

    def run(self, command: WorkspaceCommand) -> "CommandResult":
        """The result of a command after the agent; CheckError if it can't be run."""
        if command not in self._ran:
            if not self._run:
                raise CheckError("there is no sandbox to run a command in")
            if not self._answer.workspace:
                raise CheckError(_NOT_KEPT)
            left_out = self.left_out(command)
            given = tuple(self._given[path] for path in left_out if path in self._given)
            whole = command._replace(
                hidden=(*given, *command.hidden), left_out=left_out
            )
            self._ran[command] = self._run(self._answer.workspace, whole)
        return self._ran[command]

    def verify(self, verifier: Verifier) -> Verified:
        """What a verifier finds after the agent; CheckError if it can't be run."""
        if verifier not in self._verified:
            if not self._verify:
                raise CheckError("there is no sandbox to run a verifier in")
            if not self._answer.workspace:
                raise CheckError(_NOT_KEPT)
            packed = self._answer.workspace
            self._verified[verifier] = self._verify(
                packed, verifier, self._is_from_start
            )
        return self._verified[verifier]

    def left_out(self, command: WorkspaceCommand) -> tuple[str, ...]:
        """Files of the agent that would steer a command with hidden files."""
        if not command.hidden or not self._snapshot:
            return ()
        hidden = {file.path for file in command.hidden}
        ours = {file.path for file in self._snapshot.files if self._is_from_start(file)}
        paths = {file.path for file in self._snapshot.files}
        paths |= {link.path for link in self._snapshot.links}

        def is_left_out(path: str) -> bool:
            name = PurePosixPath(path).name
            makefile = path.removesuffix(name) + "Makefile"
            return steers(path) or (name in _BEFORE_MAKEFILE and makefile in hidden)

        of_agent = paths - ours - hidden - {*command.keep}
        return tuple(sorted(filter(is_left_out, of_agent)))

    def _is_from_start(self, file: WorkspaceFile) -> bool:
        if (given := self._given.get(file.path)) and given.data == file.data:
            return True
        if not self._has_setup or len(self.touched) >= MAX_CHANGED_FILES:
            return False
        return file.path not in {touched.path for touched in self.touched}

    def matching(self, pattern: str) -> list[AnswerFile]:
        return [
            file for path, file in sorted(self.files.items()) if matches(path, pattern)
        ]

    def why_missing(self, pattern: str) -> str:
        """That no file matches, and what there is instead."""
        if any(
            file.change == "deleted" and matches(file.path, pattern)
            for file in self.touched
        ):
            return f"{pattern}: deleted"
        new_files = [
            one_line(file.path, 80) for file in self.touched if file.change == "made"
        ]
        named = first_few(new_files, _MOST_NAMED) or "nothing"
        state = "no such file" if is_pattern(pattern) else "not there"
        return f"{pattern}: {state} (made: {named})"


def _digest(file: WorkspaceFile) -> str:
    return sha256(file.data).hexdigest()


def is_pattern(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches; ``*`` and ``?`` stay in a folder,
    ``**`` is any number of them.
    """
    if path == pattern:
        return True
    return is_pattern(pattern) and _match(PurePosixPath(path).parts, pattern.split("/"))


def _match(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Takes time proportional to the product of their lengths."""
    reached = {0}  # how many parts the patterns so far may stand for
    for pattern in patterns:
        if pattern == _ANY_DEPTH:
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {
                at + 1
                for at in reached
                if at < len(parts) and fnmatchcase(parts[at], pattern)
            }
    return len(parts) in reached


def relative(path: str) -> str:
    """A path in the workspace as written in a case;
    ValueError says why it can't be one.
    """
    plain_path = path.removeprefix("./").rstrip("/") if path != "./" else ""
    if plain_path.startswith("/") or "\\" in plain_path or ":" in plain_path[:2]:
        raise ValueError("must be a path in the workspace, such as out/report.md")
    if not plain_path or ".." in plain_path.split("/") or "\0" in plain_path:
        raise ValueError("must be a path in the workspace, without ..")
    return plain_path
