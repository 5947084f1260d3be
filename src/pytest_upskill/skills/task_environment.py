"""What a task has of its Dockerfile: files, packages, folders,
and what only an image has.
"""

import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import EXECUTABLE, read_file, reason_of
from .._util.texts import digest
from .case import BuildContext, SandboxNeeds, WorkspaceFile
from .case_files import MOST_BYTES, MOST_FILES
from .docker_commands import RESERVED_FOLDERS, SYSTEM_FOLDERS
from .dockerfile import OWN, Recipe, copied_files, matches, read_dockerfile
from .folder import (
    decoded,
    digest_of,
    is_file,
    is_skill,
    leads_outside,
    mode_of,
    read_skill_file,
    walk,
)
from .task_forms import DEFAULT_WORKDIR, is_requirement

# Images that have nothing but a system or Python,
# so that those of this machine can stand in.
_PLAIN_BASES: Final = frozenset({"ubuntu", "debian", "python", "buildpack-deps"})
IGNORED_NAME: Final = ".dockerignore"
# Characters of a Dockerfile; the time to read one is not linear
_LONGEST: Final = 50_000
_NETWORK: Final = re.compile(
    r"https?://|\b(?:curl|wget|git clone|apt-get|pip3?"
    r" install|requests|urllib|snapshot_download)\b"
)
_NOT_UTF8: Final = re.compile("[\ud800-\udfff]")
_NO_PLACES: Final = (
    SYSTEM_FOLDERS | RESERVED_FOLDERS | {"skills", "programs", "packages", "mcp"}
)
# Of several users or programs
_SHARED: Final = frozenset({"home", "opt", "mnt", "srv", "media"})
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
        """What a case needs, with what its Dockerfile needs; the case's own values
        win.
        """
        recipe = self.recipe
        named = [
            *recipe.folders,
            *(posixpath.dirname(file.path) for file in self.files),
        ]
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
    """The environment of a Dockerfile in ``folder``;
    ValueError says what can't be used.

    ``skills`` is the folder of the task's skills there, which is no part of it.
    ``seconds`` are those that a build may take.
    """
    text = read_skill_file(folder, dockerfile)
    if len(text) > _LONGEST:
        raise ValueError(
            f"{dockerfile!r} has {len(text):,} characters (limit {_LONGEST:,})"
        )
    path = PurePosixPath(dockerfile)
    if len(path.parts) < 2:
        raise ValueError(f"{dockerfile!r} must be in a folder, such as environment/")
    inside = PurePosixPath(skills)
    without = (
        str(inside.relative_to(path.parent))
        if inside.is_relative_to(path.parent)
        else ""
    )
    top = folder / path.parent
    beside = _context(top, without)
    context = {name: file for name, file in beside.items() if _has_content(file, top)}
    executable = [name for name, file in context.items() if mode_of(file) == EXECUTABLE]
    recipe = read_dockerfile(text, without)
    links, folders, others = _without_content(
        recipe, {name: file for name, file in beside.items() if name not in context}
    )
    recipe = replace(
        recipe,
        folders=(*recipe.folders, *folders),
        steps=(*links, *recipe.steps),
        skills_at=(*recipe.skills_at, *_skills_at(recipe, top, without)),
    )
    copied = copied_files(recipe, context)
    files, unreadable = _read(context, copied)
    others += unreadable
    python, unknown = _requirements(recipe, files)
    base = recipe.base.removeprefix("docker.io/").removeprefix("library/")
    if base and base.partition(":")[0] not in _PLAIN_BASES:
        others.append(f"{path.name}: FROM {base}")
    others += [f"{path.name}:{line}: {text}" for line, text in recipe.others]
    missing = [] if recipe.base else [f"{path.name} has no FROM"]
    missing += _missing(recipe, beside, path.name, without)
    others += [*unknown, *missing, *_downloads(recipe, files)]
    build = BuildContext(
        digest(
            path.name,
            digest_of(top, context.values()),
            *executable,
            *links,
            *(() if path.name in context else (text,)),  # it is ignored
        ),
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
    """What is beside a Dockerfile, without the skills and what it ignores.

    These are files, links that lead to no file, and empty folders.
    """
    files = dict[str, Path]()
    for folder, subfolders, names in walk(top):
        inside = "" if folder == top else f"{folder.relative_to(top).as_posix()}/"
        subfolders[:] = [name for name in subfolders if f"{inside}{name}" != without]
        if not (names or subfolders or folder == top):
            files[inside.rstrip("/")] = folder
        for name in [*names, *subfolders]:
            file = folder / name
            if file.is_symlink() or is_file(file):
                files[f"{inside}{name}"] = file
    ignored = files.get(IGNORED_NAME)
    lines = list[str]()
    with suppress(OSError):
        if ignored and _has_content(ignored, top):
            lines = decoded(read_file(ignored, _LONGEST), "replace").splitlines()
    patterns = [line.strip() for line in lines if line.strip() and line[0] != "#"]
    return {
        name: file
        for name, file in sorted(files.items())
        if not _is_ignored(name, patterns)
    }


def _has_content(file: Path, top: Path) -> bool:
    return is_file(file) and not (file.is_symlink() and leads_outside(top, file))


def context_files(top: Path, without: str) -> tuple[WorkspaceFile, ...]:
    """All files that an image is built from, without the skills."""
    return tuple(
        WorkspaceFile(name, read_file(file), mode_of(file))
        for name, file in _context(top, without).items()
        if _has_content(file, top)
    )


def _read(
    context: Mapping[str, Path], copied: Mapping[str, tuple[str, int | None]]
) -> tuple[tuple[WorkspaceFile, ...], list[str]]:
    """The copied files by where they are; none if they are too many, and that is
    said.
    """
    if not_utf8 := [target for target in copied if _NOT_UTF8.search(target)]:
        return (), [f"the name {not_utf8[0]!r} is not UTF-8"]
    try:
        size = sum(context[source].stat().st_size for source, _ in copied.values())
        if size > MOST_BYTES or len(copied) > MOST_FILES:
            most = f"{MOST_FILES:,} files and {MOST_BYTES // 10**6} MB"
            return (), [f"it has more than {most}"]
        files = [
            WorkspaceFile(
                target, read_file(context[source]), mode or mode_of(context[source])
            )
            for target, (source, mode) in copied.items()
        ]
    except OSError as error:
        raise ValueError(f"can't read its files: {reason_of(error)}") from None
    return tuple(files), []


def _is_ignored(path: str, patterns: Iterable[str]) -> bool:
    """As the last of the patterns says that is about a path or a folder above it."""
    is_ignored, parts = False, tuple(path.split("/"))
    for pattern in patterns:
        about = posixpath.normpath(pattern.removeprefix("!").strip()).strip("/")
        if _is_about(parts, tuple(re.sub(r"(\*\*/)+", "**/", about).split("/"))):
            is_ignored = not pattern.startswith("!")
    return is_ignored


@lru_cache(maxsize=10_000)
def _is_about(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern or not parts:
        return not pattern  # all that is below
    if pattern[0] == "**" and _is_about(parts[1:], pattern):
        return True
    after = parts if pattern[0] == "**" else parts[1:]
    return fnmatchcase(parts[0], pattern[0]) and _is_about(after, pattern[1:])


def _skills_at(recipe: Recipe, top: Path, without: str) -> list[str]:
    """Folders that all skills of the task are copied to, one by one."""
    places = defaultdict[str, set[str]](set)
    for copied in recipe.copies:
        place, name = posixpath.split(copied.target.rstrip("/"))
        if without and posixpath.normpath(copied.source) == f"{without}/{name}":
            places[place].add(name)
    skills = {path.name for path in (top / without).glob("*") if is_skill(path)}
    return [place for place, names in places.items() if names == skills]


def _without_content(
    recipe: Recipe, paths: Mapping[str, Path]
) -> tuple[list[str], list[str], list[str]]:
    """Steps for links and empty folders, their folders,
    and what only an image can have.
    """
    steps, folders = list[str](), list[str]()
    for target, (source, _) in copied_files(recipe, paths).items():
        is_link = paths[source].is_symlink()
        folders.append(posixpath.dirname(target) if is_link else target)
        steps.append(f"mkdir -p {shlex.quote(folders[-1])}")
        if is_link:  # as it is, wherever it leads to
            steps[-1] += (
                " && ln -sfn"
                f" {shlex.join(['--', str(paths[source].readlink()), target])}"
            )
    links = [name for name, path in paths.items() if path.is_symlink()]
    followed = [
        f"COPY {copied.source}: it is a link"
        for copied in recipe.copies
        if not all(inside for _, inside in matches(copied.source, links))
    ]
    return steps, folders, followed


def _variables(recipe: Recipe) -> Iterator[tuple[str, str]]:
    for name, value in recipe.env:
        if name == "PATH":  # in front of the usual one
            value = ":".join(
                part for part in value.split(":") if part and "$" not in part
            )
        if name not in OWN and value:
            yield name, value


def _requirements(
    recipe: Recipe, files: Sequence[WorkspaceFile]
) -> tuple[list[str], list[str]]:
    """The requirements in files, and the files that have others."""
    texts = {file.path: file.text for file in files}
    wanted, others = list[str](), list[str]()
    for name in recipe.requirement_files:
        lines = (
            line.partition(" #")[0].strip()
            for line in (texts.get(name) or "").splitlines()
        )
        written = [line for line in lines if line and not line.startswith("#")]
        if name not in texts or not all(map(is_requirement, written)):
            others.append(f"pip install -r {name}")
        else:
            wanted += written
    return wanted, others


def _missing(recipe: Recipe, files: Iterable[str], name: str, skills: str) -> list[str]:
    """Copies of what is not there."""
    known, missing = list(files), list[str]()
    for copied in recipe.copies:
        source = posixpath.normpath(copied.source)
        place, skill = posixpath.split(copied.target.rstrip("/"))
        is_of_skills = bool(skills) and f"{source}/".startswith(f"{skills}/")
        if is_of_skills and source == f"{skills}/{skill}" and place in recipe.skills_at:
            continue
        if not copied_files(Recipe(copies=(copied,)), known):
            why = (
                "an image has no skills of the task" if is_of_skills else "no such file"
            )
            missing.append(f"{name}:{copied.line}: COPY {copied.source}: {why}")
    return missing


def _downloads(recipe: Recipe, files: Sequence[WorkspaceFile]) -> list[str]:
    """Scripts that a step runs and that seem to download something."""
    return [
        f"{file.path} downloads something"
        for file in files
        if any(_runs(step, file.path) for step in recipe.steps)
        and _NETWORK.search(file.text or "")
    ]


def _runs(step: str, path: str) -> bool:
    return (
        re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(path))}(?![\w.-])", step)
        is not None
    )
