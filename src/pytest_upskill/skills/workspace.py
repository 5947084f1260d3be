"""The files that a case's workspace starts with, read from the skill's folder."""

import os
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from .._util.files import read_file, reason_of
from .folder import TOOL_FOLDERS, is_private, walk

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 50_000_000  # of all files together


class WorkspaceFile(NamedTuple):
    """A file as it is: binary or not, executable or not."""

    path: str  # relative to the workspace, with forward slashes
    data: bytes
    executable: bool = False

    @property
    def text(self) -> str | None:
        """None if it is binary."""
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text


def workspace_files(folder: Path, name: str) -> tuple[WorkspaceFile, ...]:
    """All files of a folder in the skill's folder, sorted; ValueError says what is wrong."""
    root = Path(os.path.realpath(folder))
    top = _top(root, name)
    files, size = list[WorkspaceFile](), 0
    for inside, subfolders, names in walk(top):
        # git keeps no empty folder, and what tools keep is not part of a task.
        subfolders[:] = sorted(set(subfolders) - TOOL_FOLDERS)
        linked = [one for one in subfolders if (inside / one).is_symlink()]
        for one in sorted([*names, *linked]):
            file = inside / one
            path = file.relative_to(top)
            files.append(_read(top, path))
            size += len(files[-1].data)
            if len(files) > MOST_FILES or size > MOST_BYTES:
                most = f"{MOST_FILES:,} files and {MOST_BYTES // 10**6} MB"
                raise ValueError(f"{name!r} has more than {most}; make it smaller")
    return tuple(sorted(files))


def is_executable(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o111)


def is_path(name: str) -> bool:
    """Whether a file of this name can be in a workspace."""
    parts = PurePosixPath(name).parts
    good = name and "\0" not in name and "\\" not in name and not name.endswith("/")
    return bool(good and parts and not name.startswith("/") and ".." not in parts)


def _top(root: Path, name: str) -> Path:
    try:
        if "\0" in name:
            raise ValueError(f"invalid name {name!r}")
        top = Path(os.path.realpath(root / name))
        if not top.is_relative_to(root):
            raise ValueError(f"{name!r} is outside the skill's folder; copy it there")
        if top == root:
            raise ValueError(f"{name!r} is the skill itself, which the baseline must not see")
        if is_private(top.relative_to(root)) or is_private(PurePath(name)):
            raise ValueError(f"{name!r} may hold secrets, so it is not read; rename or copy it")
        if not top.is_dir():
            what = "is a file" if top.exists() else "not found"
            raise ValueError(f"{name!r} {what}; name a folder, relative to the skill's folder")
    except (OSError, UnicodeEncodeError):
        raise ValueError(f"invalid name {name!r}") from None
    return top


def _read(top: Path, path: Path) -> WorkspaceFile:
    file, name = top / path, path.as_posix()
    try:
        name.encode()
        real = Path(os.path.realpath(file))
        if not real.is_relative_to(top):
            raise ValueError(f"{name!r} is a link out of the workspace; copy the file")
        if is_private(path) or is_private(real.relative_to(top)):
            raise ValueError(f"{name!r} may hold secrets, so it is not read; rename or remove it")
        if real.is_dir():
            raise ValueError(f"{name!r} is a link to a folder; copy it")
        data = read_file(real, MOST_BYTES)
        return WorkspaceFile(name, data, is_executable(real))
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not a name in UTF-8; rename it") from None
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {reason_of(error)}") from None
