"""The image of a task: the Dockerfile in its folder, and where an agent works in it."""

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.texts import digest
from .case import BuildContext
from .case_files import SYSTEM_FOLDERS
from .folder import digest_of, is_file, mode_of, read_skill_file, walk
from .task_forms import DEFAULT_WORKDIR

_WORKDIR: Final = re.compile(r"""(?im)^\s*WORKDIR\s+["']?(/[^\s"']+?)/?["']?\s*$""")
_NO_PLACES: Final = SYSTEM_FOLDERS | {
    "logs",
    "tests",
    "solution",
    "oracle",
    "verifier",
    "skills",
    "programs",
    "packages",
}
# Of several users or programs
_SHARED: Final = frozenset({"home", "opt", "mnt", "srv", "media"})
_PATH: Final = re.compile(r"(?<![\w./~:$}<-])/(?:[\w.@+-]+/)*[\w.@+-]*[\w@+-]/?")


def environment_of(
    folder: Path, dockerfile: str, skills: str, seconds: float | None
) -> tuple[BuildContext, str]:
    """What an image is built from, and the folder that an agent works in there.

    ValueError says what is wrong with the Dockerfile.
    """
    path = PurePosixPath(dockerfile)
    text = read_skill_file(folder, dockerfile)
    if len(path.parts) < 2:
        raise ValueError(f"{dockerfile!r} must be in a folder, such as environment/")

    without = ""
    if PurePosixPath(skills).is_relative_to(path.parent):
        without = str(PurePosixPath(skills).relative_to(path.parent))
    top = folder / path.parent
    context = digest(text, *_context(top, without))
    build = BuildContext(context, path.name, str(top), without)
    if seconds is not None:
        build = replace(build, seconds=seconds)

    workdirs = _WORKDIR.findall(text)
    return build, workdirs[-1] if workdirs else DEFAULT_WORKDIR


def _context(top: Path, without: str) -> list[str]:
    """Digests of the files that a build can copy, with their modes, and of links."""
    files, marks = list[Path](), list[str]()
    for place, folders, names in walk(top):
        if without and place == top / without:
            folders.clear()
            continue
        for name in (*folders, *names):
            file = place / name
            inside = file.relative_to(top).as_posix()
            if file.is_symlink():
                marks.append(f"{inside} -> {file.readlink()}")
            elif is_file(file):
                files.append(file)
                marks.append(f"{inside} {mode_of(file):o}")
    return [digest_of(top, sorted(files)), *sorted(marks)]


def places_in(instruction: str, workdir: str) -> list[str]:
    """Folders outside of the workspace that hold the paths in a text."""
    places = dict[str, None]()
    for match in _PATH.findall(instruction):
        path = match.rstrip("/")
        is_folder = path.count("/") > 1 or f"{path}/" in instruction
        if not is_folder or f"{path}/".startswith(f"{workdir}/"):
            continue
        parts = PurePosixPath(path).parts[1:]
        if not parts or parts[0] in _NO_PLACES:
            continue
        depth = 2 if parts[0] in _SHARED else 1
        if len(parts) >= depth:
            places["/" + "/".join(parts[:depth])] = None
    return list(places)
