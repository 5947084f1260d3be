"""A workspace as one value: a compressed tar, made from a sandbox and unpacked into another.

What is inside was written by an agent, so nothing in it is trusted: not its paths, its links or
its sizes.
"""

import io
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from ..trials.task import StartFile
from .port import Entry, Sandbox

MOST_BYTES: Final = 64 * 2**20  # of all files
MOST_PACKED: Final = 8 * 2**20  # compressed
MOST_FILES: Final = 20_000
_LONGEST_PATH: Final = 4000
_LEVEL: Final = 6
_LINK_SECONDS: Final = 10.0


class TooLargeError(Exception):
    """A workspace is too large to be kept."""


@dataclass(frozen=True)
class Link:
    """A symbolic link of a workspace."""

    path: str
    target: str


@dataclass(frozen=True)
class Workspace:
    """What a workspace held."""

    files: tuple[StartFile, ...] = ()
    links: tuple[Link, ...] = ()


def is_safe(path: str) -> bool:
    """Whether a path stays inside of the workspace, and can be written down."""
    if not path or len(path) > _LONGEST_PATH or "\0" in path or path.startswith("/"):
        return False
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return all(step not in ("", ".", "..") for step in path.split("/"))


async def pack(sandbox: Sandbox, entries: Sequence[Entry]) -> bytes:
    """A compressed tar of these files and links; TooLargeError if that is too much."""
    kept = [entry for entry in entries if is_safe(entry.path)]
    if len(kept) > MOST_FILES:
        raise TooLargeError(f"{len(kept):,} files (limit {MOST_FILES:,})")
    if (size := sum(entry.size for entry in kept)) > MOST_BYTES:
        raise TooLargeError(f"{size:,} bytes (limit {MOST_BYTES:,})")
    files, links = list[StartFile](), list[Link]()
    left = MOST_BYTES
    for entry in kept:
        if entry.link is not None:
            links.append(Link(entry.path, entry.link))
            continue
        try:
            data = await sandbox.read(entry.path, left + 1)
        except OSError:
            continue  # unreadable, or gone in the meantime
        left -= len(data)
        if left < 0:
            raise TooLargeError(f"more than {MOST_BYTES:,} bytes")
        files.append(StartFile(entry.path, data, entry.executable))
    return packed(Workspace(tuple(files), tuple(links)))


def packed(workspace: Workspace) -> bytes:
    """TooLargeError if it is too large even when compressed."""
    compress = zlib.compressobj(_LEVEL)
    pieces = list[bytes]()

    class Sink(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            chunk = bytes(data)  # type: ignore[call-overload]
            pieces.append(compress.compress(chunk))
            return len(chunk)

    with tarfile.open(fileobj=Sink(), mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for file in workspace.files:
            info = tarfile.TarInfo(file.path)
            info.size, info.mode = len(file.data), 0o755 if file.executable else 0o644
            tar.addfile(info, io.BytesIO(file.data))
        for link in workspace.links:
            info = tarfile.TarInfo(link.path)
            info.type, info.linkname = tarfile.SYMTYPE, link.target
            tar.addfile(info)
    pieces.append(compress.flush())
    if (size := sum(map(len, pieces))) > MOST_PACKED:
        raise TooLargeError(f"{size:,} bytes compressed (limit {MOST_PACKED:,})")
    return b"".join(pieces)


def unpack(data: bytes) -> Workspace:
    """What a packed workspace holds; ValueError if this is none. No bytes are an empty one."""
    if not data:
        return Workspace()
    files, links = list[StartFile](), list[Link]()
    try:
        unpacking = zlib.decompressobj()
        whole = unpacking.decompress(data, MOST_BYTES * 2)
        if unpacking.unconsumed_tail:
            raise ValueError("too large")
        with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as tar:
            for info in tar:
                path = PurePosixPath(info.name).as_posix()
                if not is_safe(path):
                    continue
                if info.issym():
                    links.append(Link(path, info.linkname))
                elif info.isreg() and (stream := tar.extractfile(info)):
                    files.append(StartFile(path, stream.read(), bool(info.mode & 0o100)))
    except (zlib.error, tarfile.TarError, EOFError) as error:
        raise ValueError(f"not a workspace: {error}") from None
    return Workspace(tuple(files), tuple(links))


async def fill(sandbox: Sandbox, workspace: Workspace) -> None:
    """Write all of it into a sandbox's workspace."""
    for file in workspace.files:
        await sandbox.write(file.path, file.data, executable=file.executable)
    for link in workspace.links:
        folder = PurePosixPath(link.path).parent.as_posix()
        command = 'mkdir -p -- "$1" && ln -sfn -- "$2" "$3"'
        words = ["sh", "-c", command, "sh", folder, link.target, link.path]
        await sandbox.run(words, timeout=_LINK_SECONDS)
