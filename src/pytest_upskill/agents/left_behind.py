"""What an agent left in its workspace: made, changed and deleted files."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from .._util.texts import counted, visible
from ..skills.folder import TOOL_FOLDERS
from ..trials.answer import MAX_FILE_BYTES, AnswerFile
from .port import Entry, Sandbox
from .snapshot import TooLargeError, contents, is_safe, packed

MOST_FILES: Final = 200
MOST_TEXT: Final = 10_000_000  # bytes of all texts
MOST_IMAGE: Final = 256 * 1024
_IMAGES: Final = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


@dataclass(frozen=True)
class Left:
    """What there is to keep of a workspace; ``findings`` say what is not kept."""

    files: tuple[AnswerFile, ...] = ()
    workspace: bytes = b""
    findings: tuple[str, ...] = ()


async def left_behind(sandbox: Sandbox, before: Sequence[Entry]) -> Left:
    """What differs from an earlier look at a workspace, and all of it, packed."""
    findings = list[str]()
    after = await sandbox.tree()
    data, snapshot = dict[str, bytes](), b""
    try:
        whole = await contents(sandbox, after)
        data = {file.path: file.data for file in whole.files}
        snapshot = await asyncio.to_thread(packed, whole)
    except TooLargeError as error:
        findings.append(f"the workspace is too large for checks by a command: {error}")
    files = await _files(sandbox, before, after, data, findings)
    return Left(files, snapshot, tuple(findings))


async def _files(
    sandbox: Sandbox,
    before: Sequence[Entry],
    after: Sequence[Entry],
    data: Mapping[str, bytes],
    findings: list[str],
) -> tuple[AnswerFile, ...]:
    old, new = _safe(before, []), _safe(after, findings)
    changed = [path for path, entry in new.items() if not _same(entry, old.get(path))]
    deleted = [path for path in old if path not in new]
    # First what was there before: no flood of new files hides that it was changed.
    differing = sorted([*changed, *deleted], key=lambda path: (path not in old, *_rank(path)))
    if (more := len(differing) - MOST_FILES) > 0:
        findings.append(f"{counted(more, 'changed file')} not kept (limit {MOST_FILES})")
    room, dropped, files = MOST_TEXT, 0, list[AnswerFile]()
    for path in differing[:MOST_FILES]:
        if path not in new:
            files.append(AnswerFile(written_path(path), None, 0, "", "deleted"))
            continue
        file = await _file(sandbox, new[path], data.get(path))
        size = len(file.text.encode("utf-8", "replace")) if file.text else 0
        if size > room:
            file, size, dropped = replace(file, text=None), 0, dropped + 1
        room -= size
        files.append(replace(file, change="changed" if path in old else "made"))
    if dropped:
        findings.append(
            f"the text of {counted(dropped, 'file')} not kept (limit {MOST_TEXT:,} bytes in all)"
        )
    return tuple(sorted(files, key=lambda file: file.path))


def _safe(entries: Sequence[Entry], findings: list[str]) -> Mapping[str, Entry]:
    """Files and links by path."""
    there = [entry for entry in entries if not entry.folder]
    kept = {entry.path: entry for entry in there if is_safe(entry.path)}
    if odd := len(there) - len(kept):
        findings.append(f"{counted(odd, 'file')} not kept: their names can't be used")
    return kept


def _same(one: Entry, other: Entry | None) -> bool:
    facts = [(e.digest, e.executable, e.link) for e in (one, other) if e]
    return len(facts) == 2 and facts[0] == facts[1]


def written_path(path: str) -> str:
    """A path in one line, safe to show."""
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")


def _rank(path: str) -> tuple[bool, str]:
    """What tools leave comes last, if there is not room for all."""
    pure = PurePosixPath(path)
    return any(part in TOOL_FOLDERS or part.startswith(".") for part in pure.parts), path


async def _file(sandbox: Sandbox, entry: Entry, data: bytes | None) -> AnswerFile:
    known = AnswerFile(written_path(entry.path), None, entry.size, entry.digest)
    if entry.link is not None or entry.size > MAX_FILE_BYTES:
        return known
    try:
        data = await sandbox.read(entry.path, MAX_FILE_BYTES + 1) if data is None else data
    except OSError:
        return known
    if len(data) > MAX_FILE_BYTES:  # it has grown
        return known
    file = AnswerFile.of(known.path, data)
    image = PurePosixPath(entry.path).suffix.casefold() in _IMAGES
    if image and file.text is None and len(data) <= MOST_IMAGE:
        file = replace(file, data=base64.b64encode(data).decode())
    return file
