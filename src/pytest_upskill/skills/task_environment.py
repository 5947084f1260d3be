"""What a task has of its Dockerfile: files, packages, folders, and what only an image has."""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import EXECUTABLE, read_file, reason_of
from .._util.texts import digest
from .case import BuildContext, SandboxNeeds, WorkspaceFile
from .case_files import MOST_BYTES, MOST_FILES
from .docker_commands import RESERVED_FOLDERS, SYSTEM_FOLDERS
from .dockerfile import Recipe, copied_files, read_dockerfile
from .folder import decoded, digest_of, is_file, mode_of, read_skill_file, walk
from .task_forms import DEFAULT_WORKDIR, is_requirement

# Images that have nothing but a system or Python, so that those of this machine can stand in.
_PLAIN_BASES: Final = frozenset({"ubuntu", "debian", "python", "buildpack-deps"})
IGNORED_NAME: Final = ".dockerignore"
_LONGEST: Final = 50_000  # characters of a Dockerfile; the time to read one is not linear
_NETWORK: Final = re.compile(
    r"https?://|\b(?:curl|wget|git clone|apt-get|pip3? install|requests|urllib|snapshot_download)\b"
)
_OWN: Final = frozenset({"HOME", "USER", "TMPDIR", "DEBIAN_FRONTEND"})  # variables of a sandbox
_NO_PLACES: Final = SYSTEM_FOLDERS | RESERVED_FOLDERS | {"skills", "programs", "packages", "mcp"}
_SHARED: Final = frozenset({"home", "opt", "mnt", "srv", "media"})  # of several users or programs
_PATH: Final = re.compile(r"(?<![\w./~:$}<-])/(?:[\w.@+-]+/)*[\w.@+-]*[\w@+-]/?")


@dataclass(frozen=True)
class TaskEnvironment:
    """The start of a task, as its Dockerfile says."""

    build: BuildContext
    recipe: Recipe
    files: tuple[WorkspaceFile, ...] = ()  # by their absolute paths
    python: tuple[str, ...] = ()  # requirements of packages

    @property
    def workdir(self) -> str:
        return DEFAULT_WORKDIR if self.recipe.workdir == "/" else self.recipe.workdir

    def needs(self, needs: SandboxNeeds, workdir: str) -> SandboxNeeds:
        """What a case needs, with what its Dockerfile needs; the case's own values win."""
        recipe = self.recipe
        named = [*recipe.folders, *(posixpath.dirname(file.path) for file in self.files)]
        places = (*needs.places, *places_of(named, workdir))
        return needs._replace(
            build=self.build,
            workdir=workdir,
            python=tuple(dict.fromkeys((*needs.python, *self.python))),
            packages=tuple(dict.fromkeys((*needs.packages, *recipe.packages))),
            env=tuple({**dict(_variables(recipe)), **dict(needs.env)}.items()),
            places=tuple(dict.fromkeys(places)),
        )


def environment_of(
    folder: Path, dockerfile: str, skills: str, seconds: float | None
) -> TaskEnvironment:
    """The environment of a Dockerfile in ``folder``; ValueError says what can't be used.

    ``skills`` is the folder of the task's skills there, which is no part of it. ``seconds`` are
    those that a build may take.
    """
    text = read_skill_file(folder, dockerfile)
    if len(text) > _LONGEST:
        raise ValueError(f"{dockerfile!r} has {len(text):,} characters (limit {_LONGEST:,})")
    path = PurePosixPath(dockerfile)
    if len(path.parts) < 2:
        raise ValueError(f"{dockerfile!r} must be in a folder, such as environment/")
    inside = PurePosixPath(skills)
    without = str(inside.relative_to(path.parent)) if inside.is_relative_to(path.parent) else ""
    top = folder / path.parent
    context = _context(top, without)
    executable = [name for name, file in context.items() if mode_of(file) == EXECUTABLE]
    recipe = read_dockerfile(text, without)
    copied = copied_files(recipe, context)
    files, others = _read(context, copied)
    python, unknown = _requirements(recipe, files)
    base = recipe.base.removeprefix("docker.io/").removeprefix("library/")
    others += [] if base.partition(":")[0] in _PLAIN_BASES else [f"{path.name}: FROM {base}"]
    others += [f"{path.name}:{line}: {text}" for line, text in recipe.others]
    missing = _missing(recipe, context, path.name)
    others += [*unknown, *missing, *_downloads(recipe, files)]
    build = BuildContext(
        digest(path.name, digest_of(top, context.values()), *executable),
        path.name,
        str(top),
        without,
        600.0 if seconds is None else seconds,
        tuple(others),
        tuple(copied),
        recipe.platform,
        recipe.steps,
        tuple(missing),
    )
    return TaskEnvironment(build, recipe, files, (*recipe.python, *python))


def places_of(paths: Iterable[str], workdir: str) -> list[str]:
    """Folders outside of the workspace that hold some paths."""
    places = dict[str, None]()
    for path in paths:
        parts = PurePosixPath(path).parts[1:]
        if not parts or parts[0] in _NO_PLACES:
            continue
        depth = 2 if parts[0] in _SHARED else 1
        place = "/" + "/".join(parts[:depth])
        if len(parts) >= depth and not f"{path}/".startswith(f"{workdir}/"):
            places[place] = None
    return list(places)


def places_in(instruction: str, workdir: str) -> list[str]:
    """Folders outside of the workspace that a text names."""
    paths = [path.rstrip("/") for path in _PATH.findall(instruction)]
    deep = (path for path in paths if path.count("/") > 1 or f"{path}/" in instruction)
    return places_of(deep, workdir)


def _context(top: Path, without: str) -> dict[str, Path]:
    """The files beside a Dockerfile, without the skills and those that it ignores."""
    files, real = dict[str, Path](), os.path.realpath(top)
    for folder, subfolders, names in walk(top):
        inside = "" if folder == top else f"{folder.relative_to(top).as_posix()}/"
        subfolders[:] = [name for name in subfolders if f"{inside}{name}" != without]
        for name in names:
            file = folder / name
            inside_top = Path(os.path.realpath(file)).is_relative_to(real)
            if is_file(file) and (inside_top or not file.is_symlink()):
                files[f"{inside}{name}"] = file
    ignored = files.get(IGNORED_NAME)
    lines = list[str]()
    with suppress(OSError):
        lines = decoded(read_file(ignored, _LONGEST), "replace").splitlines() if ignored else []
    patterns = [line.strip().strip("/") for line in lines if line.strip() and line[0] not in "#!"]
    return {
        name: file
        for name, file in sorted(files.items())
        if not any(_is_ignored(name, pattern) for pattern in patterns)
    }


def context_files(top: Path, without: str) -> tuple[WorkspaceFile, ...]:
    """All files that an image is built from, without the skills."""
    return tuple(
        WorkspaceFile(name, read_file(file), mode_of(file))
        for name, file in _context(top, without).items()
    )


def _read(
    context: Mapping[str, Path], copied: Mapping[str, tuple[str, int | None]]
) -> tuple[tuple[WorkspaceFile, ...], list[str]]:
    """The copied files by where they are; none if they are too many, and that is said."""
    try:
        size = sum(context[source].stat().st_size for source, _ in copied.values())
        if size > MOST_BYTES or len(copied) > MOST_FILES:
            most = f"{MOST_FILES:,} files and {MOST_BYTES // 10**6} MB"
            return (), [f"it has more than {most}"]
        files = [
            WorkspaceFile(target, read_file(context[source]), mode or mode_of(context[source]))
            for target, (source, mode) in copied.items()
        ]
    except OSError as error:
        raise ValueError(f"can't read its files: {reason_of(error)}") from None
    return tuple(files), []


def _is_ignored(path: str, pattern: str) -> bool:
    parts = PurePosixPath(path)
    above = [str(parent) for parent in (parts, *parts.parents)]
    return any(fnmatchcase(name, pattern.removeprefix("**/")) for name in above) or (
        pattern.startswith("**/") and any(fnmatchcase(p, pattern[3:]) for p in parts.parts)
    )


def _variables(recipe: Recipe) -> Iterator[tuple[str, str]]:
    for name, value in recipe.env:
        if name == "PATH":  # in front of the usual one
            value = ":".join(part for part in value.split(":") if part and "$" not in part)
        if name not in _OWN and value:
            yield name, value


def _requirements(recipe: Recipe, files: Sequence[WorkspaceFile]) -> tuple[list[str], list[str]]:
    """The requirements in files, and the files that have others."""
    texts = {file.path: file.text for file in files}
    wanted, others = list[str](), list[str]()
    for name in recipe.requirement_files:
        lines = (line.partition(" #")[0].strip() for line in (texts.get(name) or "").splitlines())
        written = [line for line in lines if line and not line.startswith("#")]
        if name not in texts or not all(map(is_requirement, written)):
            others.append(f"pip install -r {name}")
        else:
            wanted += written
    return wanted, others


def _missing(recipe: Recipe, files: Iterable[str], name: str) -> list[str]:
    """Copies of what is not there."""
    known = list(files)
    return [
        f"{name}:{copied.line}: COPY {copied.source}: no such file"
        for copied in recipe.copies
        if not copied_files(Recipe(copies=(copied,)), known)
    ]


def _downloads(recipe: Recipe, files: Sequence[WorkspaceFile]) -> list[str]:
    """Scripts that a step runs and that seem to download something."""
    return [
        f"{file.path} downloads something"
        for file in files
        if any(_runs(step, file.path) for step in recipe.steps) and _NETWORK.search(file.text or "")
    ]


def _runs(step: str, path: str) -> bool:
    return (
        re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(path))}(?![\w.-])", step) is not None
    )
