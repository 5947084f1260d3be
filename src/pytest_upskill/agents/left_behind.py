"""What an agent left in its workspace: made, changed and deleted files."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from .._util.texts import counted, visible
from ..skills.folder import TOOL_FOLDERS
from ..trials.answer import MAX_FILE_BYTES, AnswerFile
from .port import Entry, Sandbox
from .snapshot import TooLargeError, is_safe, pack

MOST_FILES: Final = 200
MOST_TEXT: Final = 10_000_000  # bytes of all texts
MOST_IMAGE: Final = 256 * 1024
_IMAGES: Final = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


async def files_left(
    sandbox: Sandbox, before: Sequence[Entry], after: Sequence[Entry], findings: list[str]
) -> tuple[AnswerFile, ...]:
    """What differs between two looks at a workspace; what is left out is told as findings."""
    old, new = _safe(before, []), _safe(after, findings)
    changed = [path for path, entry in new.items() if not _same(entry, old.get(path))]
    deleted = [path for path in old if path not in new]
    differing = sorted([*changed, *deleted], key=_rank)
    if (more := len(differing) - MOST_FILES) > 0:
        findings.append(f"{counted(more, 'changed file')} not kept (limit {MOST_FILES})")
    room, dropped, files = MOST_TEXT, 0, list[AnswerFile]()
    for path in differing[:MOST_FILES]:
        if path not in new:
            files.append(AnswerFile(visible(path), None, 0, "", "deleted"))
            continue
        file = await _read(sandbox, new[path])
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


async def snapshot_of(sandbox: Sandbox, entries: Sequence[Entry], findings: list[str]) -> bytes:
    """The whole workspace, packed; empty if it is too large, which is told."""
    try:
        return await pack(sandbox, entries)
    except TooLargeError as error:
        findings.append(f"the workspace is too large to run commands in a copy of it: {error}")
        return b""


def _safe(entries: Sequence[Entry], findings: list[str]) -> Mapping[str, Entry]:
    kept = {entry.path: entry for entry in entries if is_safe(entry.path)}
    if odd := len(entries) - len(kept):
        findings.append(f"{counted(odd, 'file')} not kept, as their names are no text or unsafe")
    return kept


def _same(one: Entry, other: Entry | None) -> bool:
    facts = [(e.digest, e.executable, e.link) for e in (one, other) if e]
    return len(facts) == 2 and facts[0] == facts[1]


def _rank(path: str) -> tuple[bool, str]:
    """What tools leave comes last, if there is not room for all."""
    pure = PurePosixPath(path)
    return any(part in TOOL_FOLDERS or part.startswith(".") for part in pure.parts), path


async def _read(sandbox: Sandbox, entry: Entry) -> AnswerFile:
    known = AnswerFile(visible(entry.path), None, max(entry.size, 0), entry.digest)
    image = PurePosixPath(entry.path).suffix.casefold() in _IMAGES
    if entry.link is not None or entry.size > MAX_FILE_BYTES:
        return known
    try:
        data = await sandbox.read(entry.path, MAX_FILE_BYTES + 1)
    except OSError:
        return known
    if len(data) > MAX_FILE_BYTES:  # it has grown
        return known
    file = AnswerFile.of(known.path, data)
    if image and file.text is None and len(data) <= MOST_IMAGE:
        file = replace(file, data=base64.b64encode(data).decode())
    return file
