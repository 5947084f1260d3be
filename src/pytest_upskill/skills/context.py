"""What a model sees of a skill: SKILL.md, perhaps the files it refers to,
perhaps at a git ref.
"""

import os
import posixpath
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from .._util.files import read_file, reason_of
from .._util.git import repository_of, run_git
from .._util.texts import one_line
from ..errors import SettingsError
from ..settings import MOST_REFERENCE_TOKENS, Settings
from .case import WorkspaceFile
from .folder import (
    MAX_FILE_BYTES,
    SKILL_NAMES,
    decoded,
    is_folder,
    text_of,
    why_not_sent,
    why_unsendable,
)
from .references import Files, files_named
from .skill import Skill, UnseenFile, body_of, estimated_tokens, load_skill, with_files

_MOST_ENTRIES: Final = 10_000
_NO_ROOM: Final = f"no room in {MOST_REFERENCE_TOKENS:,} tokens"


class FilesOnDisk:
    """The files in a skill's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries = cache(self._entries)

    def _entries(self, folder: str) -> Mapping[str, bool]:
        try:
            with os.scandir(self._folder / folder) as entries:
                return {
                    entry.name: is_folder(entry)
                    for entry in islice(entries, _MOST_ENTRIES)
                }
        except OSError:
            return {}

    def text(self, path: str) -> str:
        try:
            file = self._folder / path
            if reason := why_unsendable(self._folder, PurePosixPath(path)):
                raise ValueError(reason)
            return text_of(read_file(file, MAX_FILE_BYTES))
        except OSError as error:
            raise ValueError(reason_of(error)) from None


def load_for_run(file: Path, settings: Settings) -> Skill:
    """The skill of a SKILL.md, with references and the version at a
    git ref if the run has them.
    """
    skill = load_skill(file)
    files = FilesOnDisk(file.parent)
    named = files_named(files, skill.body.split("\n"))
    if settings.references:
        references, unseen = _read(files, named)
        skill = replace(skill, references=references, unseen=unseen)
    else:
        skill = replace(skill, unseen=tuple(map(UnseenFile, named)))
    if (
        settings.against is None
        or (before := at_ref(file.resolve().parent, settings)) is None
    ):
        return skill
    return replace(skill, previous=before.text, previous_file=before.file_text)


class SkillAtRef(NamedTuple):
    """What a model saw of a skill at a git ref, and its whole SKILL.md."""

    text: str
    file_text: str


def at_ref(folder: Path, settings: Settings) -> SkillAtRef | None:
    """The skill of a folder at the ref of a run; None if it is newer."""
    assert settings.against is not None
    files = files_at_ref(folder, settings.against)
    name = next((name for name in SKILL_NAMES if name in files.entries("")), None)
    if name is None:
        return None
    data = files.data(name)
    body = body_of(data)
    named = files_named(files, body.split("\n")) if settings.references else []
    return SkillAtRef(
        with_files(body, _read(files, named)[0]), decoded(data, "replace")
    )


def _read(
    files: Files, named: list[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[UnseenFile, ...]]:
    """The files that fit in context, with their texts, and those that don't."""
    texts, unseen, budget = (
        list[tuple[str, str]](),
        list[UnseenFile](),
        MOST_REFERENCE_TOKENS,
    )
    for path in named:
        try:
            text = files.text(path)
        except ValueError as error:
            unseen.append(UnseenFile(path, str(error)))
            continue
        tokens = estimated_tokens(text)
        if tokens > budget:
            unseen.append(UnseenFile(path, _NO_ROOM))
        elif text.strip():
            texts.append((path, text))
            budget -= tokens
    return tuple(texts), tuple(unseen)


_MOST_LINKS: Final = 40  # as Linux follows


class _Blob(NamedTuple):
    id: str
    size: int
    is_link: bool
    mode: int


class FilesAtRef:
    """The files of a folder at a commit."""

    def __init__(self, ref: str, top: Path, blobs: Mapping[str, _Blob]) -> None:
        self._ref = ref
        self._top = top
        self._blobs = blobs
        self._entries: dict[str, dict[str, bool]] = {"": {}}
        for path in blobs:
            above = ""
            *folders, name = path.split("/")
            for step in folders:
                self._entries[above][step] = True
                above = f"{above}/{step}" if above else step
                self._entries.setdefault(above, {})
            self._entries[above][name] = False

    def entries(self, folder: str) -> Mapping[str, bool]:
        return self._entries.get(folder, {})

    @property
    def paths(self) -> list[str]:
        return list(self._blobs)

    def data(self, path: str) -> bytes:
        return _git(self._ref, self._top, "cat-file", "blob", self._blobs[path].id)

    def file(self, path: str, real: str) -> WorkspaceFile:
        """A file by the path of its link, which may be itself."""
        return WorkspaceFile(path, self.data(real), self._blobs[real].mode)

    def real(self, path: str) -> str:
        """The file that a path leads to; ValueError if that is not in the folder."""
        if not self._blobs[path].is_link:
            return path
        links, at, steps = 0, "", path.split("/")
        while steps:
            step = steps.pop(0)
            if step == ".." and at:
                at = posixpath.dirname(at)
                continue
            here = at if step in ("", ".") else posixpath.join(at, step)
            if here in self._blobs and self._blobs[here].is_link:
                links += 1
                target = self.data(here).decode("utf-8", "surrogateescape")
                steps = [*target.split("/"), *steps]
                if links > _MOST_LINKS or target.startswith("/"):
                    break
            else:
                at = here
        if at not in self._blobs or steps:
            raise ValueError("a link out of the skill's folder")
        return at

    def text(self, path: str) -> str:
        """The text of a file; ValueError says why it has none."""
        named, path = path, self.real(path)
        blob = self._blobs[path]
        if reason := why_not_sent(PurePosixPath(named), PurePosixPath(path)):
            raise ValueError(reason)
        if blob.size > MAX_FILE_BYTES:
            raise ValueError(f"{blob.size:,} bytes")
        return text_of(self.data(path))


def files_at_ref(folder: Path, ref: str) -> FilesAtRef:
    """The files of a skill's folder at a ref; none if the skill is newer."""
    commit = require_ref(ref, folder)
    top = _top_of(ref, folder)
    inside = "" if folder == top else f"{folder.relative_to(top).as_posix()}/"
    only = ["--", inside] if inside else []
    listed = _git(ref, top, "ls-tree", "-r", "-l", "-z", commit, *only)
    blobs = {}
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, kind, blob, size = facts.split()
        if kind == b"blob":
            name = path.decode("utf-8", "surrogateescape").removeprefix(inside)
            blobs[name] = _Blob(
                blob.decode(), int(size), mode == b"120000", int(mode, 8) & 0o777
            )
    return FilesAtRef(ref, top, blobs)


@lru_cache(maxsize=256)
def require_ref(ref: str, folder: Path) -> str:
    """The commit of a ref in the repository of a folder."""
    if ref.startswith("-"):  # git would take it for an option
        raise _wrong(ref, "not a git ref", "Name a branch, a tag or a commit.")
    top = _top_of(ref, folder)
    commit = _git(
        ref, top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", may_fail=1
    )
    if not commit:
        raise _wrong(
            ref,
            f"no such ref in the repository of {folder}",
            "Name a branch, a tag or a commit; in a shallow clone, fetch it first.",
        )
    return commit.decode().strip()


def _top_of(ref: str, folder: Path) -> Path:
    top = repository_of(folder)
    if top is None:
        raise _wrong(
            ref, f"{folder} is in no git repository", "Put the skill under git."
        )
    return top


def _git(ref: str, top: Path, *args: str, may_fail: int = 0) -> bytes:
    """The output of git; empty if it exits with ``may_fail``."""
    try:
        process = run_git(top, *args)
    except TimeoutError as error:
        raise _wrong(ref, f"{error} in {top}", "Check the repository.") from None
    except OSError as error:
        raise _wrong(ref, f"can't run git: {error}", "Install git.") from None
    if process.returncode not in (0, may_fail):
        message = one_line(
            process.stderr.decode("utf-8", "replace").removeprefix("fatal: "), 300
        )
        raise _wrong(
            ref,
            f"git failed in {top}: {message}",
            "Check the repository; in a partial clone, fetch the files of the ref"
            " first.",
        )
    return process.stdout if process.returncode == 0 else b""


def _wrong(ref: str, problem: str, hint: str) -> SettingsError:
    return SettingsError("against", problem, hint, value=one_line(ref, 100))
