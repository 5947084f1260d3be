"""Find skills below a folder, say which were left out, and give them labels."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from .._util import grouped
from .._util.files import read_file
from .._util.texts import first_few, guess, one_line
from ..errors import SkillError, shown
from .folder import (
    MAX_FILE_BYTES,
    SKILL_NAMES,
    TOOL_FOLDERS,
    cases_files,
    digest_of,
    installed_files,
    is_worktree,
    walk,
)
from .loaded_cases import numbered
from .skill import LONGEST_NAME, fields_of, name_of

COPY: Final = "a copy of another skill here"
WORKSPACE: Final = "a workspace of skill-creator"
PACKAGES: Final = "installed packages"
ENVIRONMENT: Final = "a virtual environment"
BROKEN: Final = "SKILL.md is a broken link"
WORKTREE: Final = "another git worktree"

_WORKSPACE_SUFFIX: Final = "-workspace"
_REPORTED_FOLDERS: Final = {  # folders of tools that may have skills
    "node_modules": PACKAGES,
    "bower_components": PACKAGES,
    "site-packages": PACKAGES,
    ".venv": ENVIRONMENT,
}
_MOST_NAMED: Final = 3
# Levels below a link out of the folder, which may lead to a whole disk
_DEEPEST_LINKED: Final = 3
_MOST_LISTED: Final = 2000  # folders that are searched for skills that were left out


class SkippedFolder(NamedTuple):
    path: Path
    reason: str


@dataclass(frozen=True)
class FoundSkills:
    """The SKILL.md files of a path, and the folders with others that were left out."""

    files: tuple[Path, ...]
    left_out: tuple[SkippedFolder, ...] = ()
    notes: tuple[str, ...] = ()  # which of them are tested as one, or why they are not


def left_out_lines(left_out: Iterable[SkippedFolder]) -> list[str]:
    """A line for each reason why folders were left out."""
    folders: dict[str, list[str]] = {}
    for path, reason in left_out:
        folders.setdefault(reason, []).append(one_line(shown(path), 100))
    return [
        f"left out ({reason}): {first_few(paths, _MOST_NAMED)}"
        for reason, paths in sorted(folders.items())
    ]


def find_skills(path: Path) -> FoundSkills:
    """The skills of a path: a file, a skill's folder, or a folder of skills,
    at any depth.
    """
    if not path.exists():
        raise no_such_path(path)
    if path.is_file():
        if path.name in SKILL_NAMES:
            return FoundSkills((path,))
        raise SkillError(
            path,
            "not a SKILL.md",
            "Name the skill's folder, its SKILL.md, or a folder of skills.",
        )
    walk = _Walk(path)
    files, workspaces = _without_workspaces(path, walk.files)
    files, copies = _without_copies(path, files)
    left_out = sorted([*walk.left_out, *workspaces, *copies])
    if not files and left_out:
        problem = f"no skill but those {'; '.join(left_out_lines(left_out))}"
        raise SkillError(path, problem, "To use one of them, name its folder.")
    if not files:
        raise SkillError(
            path,
            "no SKILL.md in this folder or below",
            "A skill is a folder with a SKILL.md: frontmatter with name and"
            " description, then the instructions for the model.",
        )
    return FoundSkills(tuple(sorted(files)), tuple(left_out))


def no_such_path(path: Path) -> SkillError:
    """With the entry beside it that may be meant."""
    try:
        beside = os.listdir(path.parent)  # noqa: PTH208
    except OSError:
        beside = []
    return SkillError(
        path, f"no such file or folder{guess(path.name, beside)}", "Check the path."
    )


class _Walk:
    """All skills below a folder, each under its real path if that is below it too.

    Follows links, since agents' folders often link to skills kept elsewhere.
    """

    def __init__(self, top: Path) -> None:
        self.files = list[Path]()
        self.left_out = list[SkippedFolder]()
        self._top = top
        self._listings_left = _MOST_LISTED
        self._seen = set[str]()
        self._links = deque[Path]()
        self._walk(top, None)
        while self._links:
            link = self._links.popleft()
            # A folder above would lead to everything else there.
            if not Path(os.path.realpath(top)).is_relative_to(os.path.realpath(link)):
                self._walk(link, _DEEPEST_LINKED)

    def _walk(self, start: Path, deepest: int | None) -> None:
        for here, subfolders, names in walk(start):
            real = os.path.realpath(here)
            foreign = None if here == self._top else _foreign(here, names)
            if foreign:
                self._leave_out(here, foreign)
            if foreign or real in self._seen:
                subfolders.clear()
                continue
            self._seen.add(real)
            files = [here / name for name in SKILL_NAMES if name in names]
            self.files += list(filter(_is_meant, files))[:1]
            self.left_out += [
                SkippedFolder(here, BROKEN) for file in files if not file.exists()
            ]
            subfolders[:] = list(self._followed(here, sorted(subfolders)))
            if deepest is not None and len(here.relative_to(start).parts) >= deepest:
                subfolders.clear()

    def _followed(self, folder: Path, subfolders: Sequence[str]) -> Iterator[str]:
        for name in subfolders:
            if name in TOOL_FOLDERS:
                if reason := _REPORTED_FOLDERS.get(name):
                    self._leave_out(folder / name, reason)
            elif (folder / name).is_symlink():
                self._links.append(folder / name)
            else:
                yield name

    def _leave_out(self, folder: Path, reason: str) -> None:
        """Report a folder if a bounded search finds a skill in it."""
        folders = deque([folder])
        while folders and self._listings_left:
            self._listings_left -= 1
            try:
                entries = sorted(
                    os.scandir(folders.popleft()), key=lambda entry: entry.name
                )
            except OSError:
                continue
            if any(entry.name in SKILL_NAMES and entry.is_file() for entry in entries):
                self.left_out.append(SkippedFolder(folder, reason))
                return
            folders.extend(
                Path(entry.path)
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
            )


def _is_meant(file: Path) -> bool:
    """Whether a file is a skill; a skill.md may be a page about skills."""
    if not file.is_file() or file.name == SKILL_NAMES[0]:
        return file.is_file()
    try:
        return not {"name", "description"}.isdisjoint(fields_of(file))
    except SkillError:
        return False


def _foreign(folder: Path, names: Sequence[str]) -> str | None:
    """Why the skills of a folder are left out; None if they are not."""
    if "pyvenv.cfg" in names:
        return ENVIRONMENT
    return WORKTREE if ".git" in names and is_worktree(folder) else None


def _without_workspaces(
    top: Path, files: Sequence[Path]
) -> tuple[list[Path], list[SkippedFolder]]:
    """skill-creator keeps snapshots and results of a skill X in X-workspace."""
    skills = {file.parent.name for file in files}
    skills_kept, left_out = list[Path](), dict[Path, None]()
    for file in files:
        workspace = next(
            (
                folder
                for folder in [file.parent, *file.parent.parents]
                if folder.is_relative_to(top)
                and folder != top
                and folder.name.endswith(_WORKSPACE_SUFFIX)
                and _is_workspace(folder, file, skills)
            ),
            None,
        )
        if workspace:
            left_out[workspace] = None
        else:
            skills_kept.append(file)
    return skills_kept, [SkippedFolder(folder, WORKSPACE) for folder in left_out]


def _is_workspace(folder: Path, file: Path, skills: set[str]) -> bool:
    """Not the folder of a skill named google-workspace, nor a folder of its skills."""
    skill = folder.name.removesuffix(_WORKSPACE_SUFFIX)
    if name_of(file) == skill:
        return True
    return file.parent != folder and (
        skill in skills or any(folder.glob("iteration-*"))
    )


def _without_copies(
    top: Path, files: Sequence[Path]
) -> tuple[list[Path], list[SkippedFolder]]:
    """One of several equal skills: with cases, not in a hidden folder, the least
    deep.
    """

    def rank(file: Path) -> tuple[bool, bool, int, Path]:
        parts = file.parent.relative_to(top).parts
        hidden = any(part.startswith(".") for part in parts)
        return not cases_files(file.parent), hidden, len(parts), file

    originals, copies = list[Path](), list[SkippedFolder]()
    for same_text in grouped(files, _text_key).values():
        # Reading all files is worth it only if the texts are equal.
        for same in (
            grouped(same_text, _files_key).values()
            if len(same_text) > 1
            else [same_text]
        ):
            first, *duplicates = sorted(same, key=rank)
            originals.append(first)
            copies += [SkippedFolder(file.parent, COPY) for file in duplicates]
    return originals, copies


def _text_key(file: Path) -> str:
    """A digest of the text; the path if it can't be read."""
    try:
        return hashlib.sha256(read_file(file, MAX_FILE_BYTES)).hexdigest()
    except OSError:
        return f"!{file}"


def _files_key(file: Path) -> str:
    """Equal for copies, and for a SKILL.md that links to another one."""
    folder = Path(os.path.realpath(file)).parent
    # Without a name in it, the same text in another folder is another skill.
    return f"{name_of(file)}/{digest_of(folder, installed_files(folder).values())}"


def labels_of(
    files: Sequence[Path], name_of: Callable[[Path], str] = name_of
) -> dict[Path, str]:
    """The name of each skill, after a folder above it where skills share a name."""
    groups = grouped(files, name_of)
    labels = {
        file: f"{prefix}/{name}" if prefix else name
        for name, group in groups.items()
        for file, prefix in zip(group, _prefixes(name, group), strict=True)
    }
    ordered = sorted(labels)
    # A name may have a slash itself.
    return dict(zip(ordered, numbered([labels[file] for file in ordered]), strict=True))


def _prefixes(name: str, files: Sequence[Path]) -> list[str]:
    """The nearest folders that tell skills of the same name apart."""
    if len(files) == 1:
        return [""]
    above = [_folders_above(file, name) for file in files]
    depths = range(max(map(len, above)))
    one_folder = ([folders[depth : depth + 1] for folders in above] for depth in depths)
    several = ([folders[: depth + 1] for folders in above] for depth in depths)
    tries = [*map(_joined, one_folder), *map(_joined, several)]
    return next((names for names in tries if len(set(names)) == len(files)), tries[-1])


def _folders_above(file: Path, name: str) -> list[str]:
    """The folders above a skill, from its own, unless that has the skill's name."""
    folders = [
        one_line(folder.name, LONGEST_NAME) for folder in file.parents if folder.name
    ]
    return folders[1:] if folders[:1] == [name] else folders


def _joined(parts: Iterable[Sequence[str]]) -> list[str]:
    return ["/".join(reversed(part)) for part in parts]
