"""A workspace as one value, packed, and what an agent changed in it.

Paths are relative to the workdir; those of other places that a task has are absolute.
An agent wrote it, so nothing in it is trusted: neither paths nor links nor sizes.
"""

import asyncio
import base64
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from shlex import quote
from typing import Annotated, Final

from pydantic import Field

from .._util.files import inflated
from .._util.json_forms import Whole, form_of, json_values, parse_limited
from .._util.texts import counted, one_line, visible
from ..skills.case import WorkspaceFile
from ..skills.folder import TOOL_FOLDERS
from ..trials.answer import MAX_CHANGED_FILES, MAX_FILE_BYTES, AnswerFile
from .sandboxes.sandbox import Sandbox, SandboxError, TreeEntry

MOST_BYTES: Final = 64 * 2**20  # of all files
MOST_PACKED: Final = 8 * 2**20  # compressed
MOST_FILES: Final = 20_000
# Of a workspace at the start: an image may be large
MOST_START_BYTES: Final = 240 * 2**20
MOST_START_FILES: Final = 100_000
_LONGEST_PATH: Final = 4000
_FILL_SECONDS: Final = 60.0
_GROWN: Final = 65536  # bytes
# Bytes of files of the start that are packed, although they did not change
_SMALL: Final = 2**20


class TooLargeError(Exception):
    """A workspace is too large for a snapshot."""


@dataclass(frozen=True)
class Link:
    """A symbolic link of a workspace."""

    path: str
    target: str


@dataclass(frozen=True)
class Snapshot:
    """The contents of a workspace."""

    files: tuple[WorkspaceFile, ...] = ()
    links: tuple[Link, ...] = ()
    folders: tuple[str, ...] = ()  # that are empty


def is_safe(path: str) -> bool:
    """Whether a path has no steps out of its folder, and can be encoded."""
    if not path or len(path) > _LONGEST_PATH or "\0" in path:
        return False
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return all(
        step not in ("", ".", "..") for step in path.removeprefix("/").split("/")
    )


def _is_kept(sandbox: Sandbox, entry: TreeEntry) -> bool:
    return is_safe(entry.path) and sandbox.spec.keeps(entry.path)


async def tree_of(sandbox: Sandbox) -> list[TreeEntry]:
    """The files of a task, in its workdir and its places."""
    entries = await sandbox.tree()
    for place in sandbox.spec.kept[1:]:
        listed = await sandbox.tree(place)
        entries += [replace(entry, path=f"{place}/{entry.path}") for entry in listed]
    return entries


async def take_snapshot(sandbox: Sandbox, entries: Sequence[TreeEntry]) -> Snapshot:
    """Read a whole workspace; TooLargeError beyond the limits."""
    safe = [entry for entry in entries if _is_kept(sandbox, entry)]
    if len(safe) > MOST_FILES:
        raise TooLargeError(f"{len(safe):,} files (limit {MOST_FILES:,})")
    if (size := sum(entry.size for entry in safe)) > MOST_BYTES:
        raise TooLargeError(f"{size:,} bytes (limit {MOST_BYTES:,})")
    links = [Link(entry.path, entry.link) for entry in safe if entry.link is not None]
    folders = [entry.path for entry in safe if entry.folder]
    regular = [entry for entry in safe if entry.link is None and not entry.folder]
    # Since it was listed
    sizes = {entry.path: entry.size + _GROWN for entry in regular}
    contents = await sandbox.read_all(sizes, MOST_BYTES)
    if sum(map(len, contents.values())) > MOST_BYTES:
        raise TooLargeError(f"more than {MOST_BYTES:,} bytes")
    files = [
        WorkspaceFile(entry.path, contents[entry.path], entry.mode)
        for entry in regular
        if entry.path in contents
    ]
    return Snapshot(tuple(files), tuple(links), tuple(folders))


@dataclass(frozen=True)
class _PackedFile:
    path: str
    size: Whole
    mode: Annotated[int, Field(strict=True, ge=0, le=0o777)]


@dataclass(frozen=True)
class _Contents:
    """The first line of a packed workspace; the bytes of its files follow.

    An archive format could claim more than there is:
    a sparse tar of 7 kB unpacks to gigabytes.
    """

    files: tuple[_PackedFile, ...]
    links: tuple[Link, ...]
    folders: tuple[str, ...]
    unchanged: tuple[str, ...] = ()  # files of the start, which are not packed again


def pack(
    workspace: Snapshot, unchanged: Iterable[str] = (), *, limited: bool = True
) -> bytes:
    """As compressed bytes; TooLargeError if they are too many."""
    files = [
        _PackedFile(file.path, len(file.data), file.mode) for file in workspace.files
    ]
    contents = _Contents(
        tuple(files), workspace.links, workspace.folders, tuple(unchanged)
    )
    first_line = json.dumps(json_values(contents)).encode()
    packed = zlib.compress(
        b"\n".join((first_line, b"".join(f.data for f in workspace.files)))
    )
    if limited and len(packed) > MOST_PACKED:
        raise TooLargeError(f"more than {MOST_PACKED:,} bytes compressed")
    return packed


def unpack(
    data: bytes,
    start: Iterable[WorkspaceFile] = (),
    most_bytes: int = MOST_BYTES,
    most_files: int = MOST_FILES,
) -> Snapshot:
    """The contents of a packed workspace, none for no bytes;
    ValueError if it is broken.

    ``start`` has the files that the trial started with.
    """
    if not data:
        return Snapshot()
    try:
        first_line, _, content = inflated(data, most_bytes * 2).partition(b"\n")
        contents = form_of(_Contents).validate_python(
            parse_limited(first_line.decode())
        )
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"not a workspace: {one_line(str(error), 200)}") from None
    number = sum(map(len, (contents.files, contents.links, contents.folders)))
    if number > most_files or len(content) > most_bytes:
        raise ValueError(f"not a workspace: {number:,} files of {len(content):,} bytes")
    if sum(file.size for file in contents.files) != len(content):
        raise ValueError("not a workspace: the sizes of its files are wrong")
    files, at = list[WorkspaceFile](), 0
    for file in contents.files:
        files.append(WorkspaceFile(file.path, content[at : at + file.size], file.mode))
        at += file.size
    packed, unchanged = {file.path for file in files}, {*contents.unchanged}
    files += [file for file in start if file.path in unchanged - packed]
    return Snapshot(
        tuple(file for file in files if is_safe(file.path)),
        tuple(link for link in contents.links if is_safe(link.path)),
        tuple(folder for folder in contents.folders if is_safe(folder)),
    )


async def fill(sandbox: Sandbox, workspace: Snapshot) -> None:
    """Write a snapshot into the workdir and places of a sandbox;
    SandboxError if it can't.
    """
    keeps = sandbox.spec.keeps
    files = [file for file in workspace.files if keeps(file.path)]
    try:
        await sandbox.write_all([(file.path, file.data, file.mode) for file in files])
    except OSError as error:
        raise SandboxError(
            f"a file of the workspace can't be written: {error}"
        ) from None
    folders = [
        *filter(keeps, workspace.folders),
        *{*sandbox.spec.places} - {*sandbox.spec.kept},
    ]
    lines = [f"mkdir -p -- {quote(sandbox.path(folder))}" for folder in folders]
    for link in (link for link in workspace.links if keeps(link.path)):
        path = PurePosixPath(sandbox.path(link.path))
        lines.append(f"mkdir -p -- {quote(path.parent.as_posix())}")
        lines.append(f"ln -sfn -- {quote(link.target)} {quote(path.as_posix())}")
    if lines:
        # No programs that an agent left in a folder of PATH.
        script = "\n".join(["PATH=/usr/bin:/bin:$PATH", *lines]).encode(
            "utf-8", "surrogateescape"
        )
        await sandbox.run(["/bin/sh"], timeout=_FILL_SECONDS, stdin=script)


MOST_TEXT: Final = 10_000_000  # bytes of all texts
MOST_IMAGE: Final = 256 * 1024
_IMAGES: Final = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


@dataclass(frozen=True)
class WorkspaceChanges:
    """Changed files and the packed workspace; ``findings`` say what was left out."""

    files: tuple[AnswerFile, ...] = ()
    workspace: bytes = b""
    findings: tuple[str, ...] = ()


async def collect_changes(
    sandbox: Sandbox, before: Sequence[TreeEntry], known: Collection[str] = ()
) -> WorkspaceChanges:
    """Compare a workspace with its tree at the start, and pack it.

    ``known`` are files of the start that checks have as well.
    """
    findings = list[str]()
    after = await tree_of(sandbox)
    data, packed = dict[str, bytes](), b""
    same = {*before} & {entry for entry in after if entry.path in known}
    unchanged = same if sum(entry.size for entry in same) > _SMALL else set()
    try:
        taken = await take_snapshot(
            sandbox, [entry for entry in after if entry not in unchanged]
        )
        data = {file.path: file.data for file in taken.files}
        packed = await asyncio.to_thread(
            pack, taken, sorted(entry.path for entry in unchanged)
        )
    except TooLargeError as error:
        findings.append(f"the workspace is too large for checks by a command: {error}")
    files = await _files(sandbox, before, after, data, findings)
    return WorkspaceChanges(files, packed, tuple(findings))


async def _files(
    sandbox: Sandbox,
    before: Sequence[TreeEntry],
    after: Sequence[TreeEntry],
    data: Mapping[str, bytes],
    findings: list[str],
) -> tuple[AnswerFile, ...]:
    old, new = _safe(sandbox, before, []), _safe(sandbox, after, findings)
    changed = [path for path, entry in new.items() if entry != old.get(path)]
    deleted = [path for path in old if path not in new]
    # Changes of earlier files first: no flood of new files may hide them.
    differing = sorted(
        [*changed, *deleted], key=lambda path: (path not in old, *_rank(path))
    )
    if (dropped_files := len(differing) - MAX_CHANGED_FILES) > 0:
        number = counted(dropped_files, "changed file")
        findings.append(f"{number} not kept (limit {MAX_CHANGED_FILES})")
    remaining, dropped, files = MOST_TEXT, 0, list[AnswerFile]()
    for path in differing[:MAX_CHANGED_FILES]:
        if path not in new:
            files.append(AnswerFile(written_path(path), None, 0, "", "deleted"))
            continue
        file = await _file(sandbox, new[path], data.get(path))
        size = len(file.text.encode("utf-8", "replace")) if file.text else 0
        if size > remaining:
            file, size, dropped = replace(file, text=None), 0, dropped + 1
        remaining -= size
        files.append(replace(file, change="changed" if path in old else "made"))
    if dropped:
        number = counted(dropped, "file")
        findings.append(
            f"the text of {number} not kept (limit {MOST_TEXT:,} bytes in all)"
        )
    return tuple(sorted(files, key=lambda file: file.path))


def _safe(
    sandbox: Sandbox, entries: Sequence[TreeEntry], findings: list[str]
) -> Mapping[str, TreeEntry]:
    """Files and links with safe paths."""
    listed = [entry for entry in entries if not entry.folder]
    kept = [entry for entry in listed if _is_kept(sandbox, entry)]
    safe = {entry.path: replace(entry, mode=entry.mode & 0o100) for entry in kept}
    if odd := len(listed) - len(safe):
        findings.append(f"{counted(odd, 'file')} not kept: their names can't be used")
    return safe


def written_path(path: str) -> str:
    """A path in one line, safe to show."""
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")


def _rank(path: str) -> tuple[bool, str]:
    """Sort files of tools to the end, where the limit cuts."""
    pure = PurePosixPath(path)
    return (
        any(part in TOOL_FOLDERS or part.startswith(".") for part in pure.parts),
        path,
    )


async def _file(sandbox: Sandbox, entry: TreeEntry, data: bytes | None) -> AnswerFile:
    unread = AnswerFile(written_path(entry.path), None, entry.size, entry.digest)
    if entry.link is not None or entry.size > MAX_FILE_BYTES:
        return unread
    try:
        data = (
            await sandbox.read(entry.path, MAX_FILE_BYTES + 1) if data is None else data
        )
    except OSError:
        return unread
    if len(data) > MAX_FILE_BYTES:  # it has grown since
        return unread
    file = AnswerFile.of(unread.path, data)
    image = PurePosixPath(entry.path).suffix.casefold() in _IMAGES
    if image and file.text is None and len(data) <= MOST_IMAGE:
        file = replace(file, data=base64.b64encode(data).decode())
    return file
