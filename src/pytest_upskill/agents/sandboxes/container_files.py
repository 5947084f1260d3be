"""The files of a container as a tar: every image has tar,
and it has all that is needed.
"""

import hashlib
import io
import os
import posixpath
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence

from .sandbox import FileToWrite, SandboxError, SandboxLimits, TreeEntry


def archived(
    command: Sequence[str], folder: str, limits: SandboxLimits
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The files of a folder, as many as the limits allow;
    ``command`` runs another inside.
    """
    call = (*command, "tar", "-c", "-C", folder, ".")
    number, size = 0, 0
    with subprocess.Popen(
        call,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as client:
        try:
            with tarfile.open(fileobj=client.stdout, mode="r|") as archive:
                for member in archive:
                    number, size = number + 1, size + member.size
                    if number > limits.files or size > 4 * limits.disk:
                        break
                    yield archive, member
        except (tarfile.TarError, OSError, ValueError):
            raise SandboxError(f"The sandbox did not list {folder}.") from None
        finally:
            client.kill()


def archive_of(files: Sequence[FileToWrite], workdir: str) -> bytes:
    """A tar of files, by their paths from the root."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data, mode in files:
            member = tarfile.TarInfo(posixpath.join(workdir, path).lstrip("/"))
            member.size, member.mode = len(data), mode
            member.mtime = int(time.time())
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def entry_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> TreeEntry | None:
    path = os.path.normpath(member.name)
    if path.startswith(("/", "..")) or path == ".":
        return None
    if member.issym():
        digest = hashlib.sha256(os.fsencode(member.linkname)).hexdigest()
        return TreeEntry(
            path, len(os.fsencode(member.linkname)), digest, link=member.linkname
        )
    if member.isdir():
        return TreeEntry(path, 0, hashlib.sha256().hexdigest(), folder=True)
    if not (member.isreg() or member.islnk()):
        return None
    if content := archive.extractfile(member) if member.isreg() else None:
        digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    else:  # a hard link
        digest = hashlib.sha256(os.fsencode(member.linkname)).hexdigest()
    return TreeEntry(path, member.size, digest, member.mode & 0o777)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
