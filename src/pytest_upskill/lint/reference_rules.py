"""Rules for references to files: is each there, under that name, and named by SKILL.md itself?

A missing file is reported only if the text clearly means a file of the skill: no placeholder, no
example, nothing in a fence.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._util.texts import one_line
from ..errors import shown
from ..skills.context import FilesOnDisk
from ..skills.folder import SKILL_NAMES
from ..skills.references import Folder, Reference, files_named, references_in
from .finding import Finding, Level

_MOST_CHAINED: Final = 100  # files of a skill that are searched for further references
_BEFORE: Final = "([\"'"
_BEHIND: Final = ")],.;:!?\"'"
_HAS_ENDING: Final = re.compile(r".*\w\.\w{1,10}", re.DOTALL)
_PLACEHOLDER: Final = re.compile(
    r"[{}<>*$…|]|\.\.\.|path/to/|\b(?:xxx|foo|bar|placeholder)\b|\byour[-_]|\bmy[-_]", re.I
)
_IN_SKILL: Final = re.compile(r"(?:\./)?(references?|scripts|assets)/.*\w\.\w{1,10}")
_OUTSIDE: Final = "Copy the file into the skill: only the skill's own folder is installed."
_MISSING: Final = "Add the file, or fix the path: it is relative to the skill's folder."
_SPELLING: Final = "Use that spelling: on Linux the other one is not found."
_CHAIN: Final = "Name it in SKILL.md too: agents may see only a part of files further away."


@dataclass(frozen=True)
class _Problem:
    level: Level
    code: str
    message: str
    hint: str


def reference_findings(file: Path, lines: Sequence[str], first: int) -> Iterator[Finding]:
    """Each wrong path once, where it occurs first; ``lines`` are the body, from line ``first``."""
    files = FilesOnDisk(file.parent)
    lookup, reported = Folder(files), set[_Problem]()
    for reference in references_in(lines, first):
        problem = _problem(reference, lookup, file.parent)
        if problem and problem not in reported:
            reported.add(problem)
            yield Finding(
                shown(file),
                reference.line,
                problem.level,
                problem.code,
                problem.message,
                problem.hint,
            )
    yield from _chains(file.parent, files, lookup, files_named(files, lines))


def _problem(reference: Reference, lookup: Folder, folder: Path) -> _Problem | None:
    """What is wrong with a reference, if it is clear that it means a file of the skill."""
    is_link = reference.kind == "link"
    written = reference.path if is_link else reference.path.lstrip(_BEFORE).rstrip(_BEHIND)
    if reference.kind == "fence" or not written or _PLACEHOLDER.search(written):
        return None
    path, name = posixpath.normpath(written), repr(one_line(written, 200))
    level: Level = "error" if is_link else "warning"
    if path.startswith(("../", "/")) or path == "..":
        outside = is_link and not _is_other_skill(folder, path)
        message = f"{name} is outside the skill's folder"
        return _Problem("warning", "reference-outside", message, _OUTSIDE) if outside else None
    spelling = lookup.spelling(path)
    if spelling == path:
        return None
    if spelling and (is_link or _HAS_ENDING.fullmatch(path)):
        message = f"{name} is spelled {one_line(spelling, 200)!r} in the skill"
        return _Problem(level, "reference-broken", message, _SPELLING)
    if spelling is None and _means_a_file(reference, written, lookup):
        return _Problem(level, "reference-broken", f"{name} not found in the skill", _MISSING)
    return None


def _means_a_file(reference: Reference, written: str, lookup: Folder) -> bool:
    if reference.kind == "link":
        return bool(_HAS_ENDING.fullmatch(written)) or written.endswith("/")
    own = _IN_SKILL.fullmatch(written) if reference.kind == "code" else None
    return bool(own and not reference.example and lookup.spelling(own[1]))


def _is_other_skill(folder: Path, path: str) -> bool:
    """Whether a path is in the folder of a skill next to this one, where agents have it too."""
    match path.split("/"):
        case ["..", name, *_]:
            there = (folder.resolve().parent / name / one for one in SKILL_NAMES)
            return any(one.is_file() for one in there)
    return False


def _chains(
    folder: Path, files: FilesOnDisk, lookup: Folder, named: Sequence[str]
) -> Iterator[Finding]:
    """Files that SKILL.md names only through another file."""
    reported = set(named)
    for path in [one for one in named if one.endswith(".md")][:_MOST_CHAINED]:
        try:
            lines = files.text(path).split("\n")
        except ValueError:
            continue
        for reference in references_in(lines):
            written = reference.path
            if reference.kind not in ("link", "code") or not written.endswith(".md"):
                continue
            for start in (posixpath.dirname(path), ""):
                target = posixpath.normpath(posixpath.join(start, written))
                there = not target.startswith("..") and lookup.spelling(target) == target
                if there and _is_page(target, lookup) and target not in reported:
                    reported.add(target)
                    message = f"{one_line(target, 200)!r} is named here, but not in SKILL.md"
                    where = shown(folder / path)
                    yield Finding(
                        where, reference.line, "warning", "reference-deep", message, _CHAIN
                    )


def _is_page(path: str, lookup: Folder) -> bool:
    return not lookup.is_folder(path) and lookup.is_of_the_skill(path)
