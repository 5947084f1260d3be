"""Files of containers as tar streams, which may be hostile: nothing is extracted."""

import hashlib
import io
import os
import posixpath
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence

from .sandbox import FileToWrite, TreeEntry

_Member = tuple[tarfile.TarFile, tarfile.TarInfo]


def read_archive(command: Sequence[str]) -> Iterator[_Member]:
    """The members of the archive that a command writes; TarError if it is none."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as client:
        try:
            with tarfile.open(fileobj=client.stdout, mode="r|") as archive:
                for member in archive:
                    yield archive, member
        finally:
            client.kill()


def write_archive(files: Sequence[FileToWrite], workdir: str) -> bytes:
    """A tar of files, by their paths from the root."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data, mode in files:
            member = tarfile.TarInfo(posixpath.join(workdir, path).lstrip("/"))
            member.size = len(data)
            member.mode = mode
            member.mtime = int(time.time())
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def entry_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> TreeEntry | None:
    """A file, link or folder below the top of an archive."""
    path = posixpath.normpath(member.name)
    if path.startswith(("/", "..")) or path == ".":
        return None

    if member.isdir():
        digest = hashlib.sha256().hexdigest()
        return TreeEntry(path, 0, digest, folder=True)

    target = os.fsencode(member.linkname)
    if member.issym():
        digest = hashlib.sha256(target).hexdigest()
        return TreeEntry(path, len(target), digest, link=member.linkname)

    mode = member.mode & 0o777
    if member.islnk():
        digest = hashlib.sha256(target).hexdigest()
        return TreeEntry(path, member.size, digest, mode)

    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        return None
    digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    return TreeEntry(path, member.size, digest, mode)
