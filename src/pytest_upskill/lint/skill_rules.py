"""Rules for SKILL.md: the specification, and its advice on size."""

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from .._util.texts import counted, one_line
from ..errors import SkillError, shown
from ..skills.context import FilesOnDisk
from ..skills.folder import SKILL_NAMES, is_skill, read_text
from ..skills.frontmatter import parse
from ..skills.references import Folder, Reference, files_named, references_in
from ..skills.skill import estimated_tokens, load_skill
from .finding import Finding, Level, finding_of

MAX_LINES: Final = 500
MAX_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed to files in references/."


def lint_skill_file(file: Path) -> Iterator[Finding]:
    try:
        faults = load_skill(file).warnings
        text = read_text(file)
    except SkillError as error:
        yield finding_of(error, "skill-invalid")
        return
    for fault in faults:
        yield Finding(
            shown(file), fault.line, fault.level, fault.code, fault.message, fault.hint
        )
    lines, start = text.split("\n"), parse(text).body_line - 1
    yield from _size(shown(file), lines, start)
    yield from reference_findings(file, lines[start:], start + 1)


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    long = (
        [f"{number:,} lines (recommended: up to {MAX_LINES})"]
        if number > MAX_LINES
        else []
    )
    if tokens > MAX_TOKENS:
        long.append(f"about {tokens:,} tokens (recommended: up to {MAX_TOKENS:,})")
    if long:
        line = MAX_LINES + 1 if number > MAX_LINES else start + 1
        yield Finding(file, line, "warning", "skill-long", " and ".join(long), _SPLIT)


_MOST_CHAINED: Final = 100  # files of a skill that are searched for further references
_LONGEST_LINE: Final = 10_000
_BEFORE: Final = "(["
_BEHIND: Final = ")],.;:!?\"'"
_HAS_ENDING: Final = re.compile(r".*\w\.\w{1,10}", re.DOTALL)
_PLACEHOLDER: Final = re.compile(
    r"[{}<>*$…|]|\.\.\.|path/to/|\b(?:your|my|some)[-_]"
    r"|(?:^|/)(?:xxx|foo|bar|file|(?:file|script)?_?name|placeholder)(?:\.\w+)?$",
    re.I,
)
_NAVIGATES: Final = re.compile(r"\b(?:read|see|load|follow|consult|refer)\b", re.I)
_ABOUT_THE_SKILL: Final = re.compile(
    r"(?:.*/)?(?:readme|skill|changelog|contributing|sources)(?:\.[\w-]+)?\.md|assets/.*",
    re.I,
)
_ELSEWHERE: Final = re.compile(
    r"\b(?:repo|repository|project|checkout|cloned?|root|upstream|creates?|generates?)\b",
    re.I,
)
_PLUGIN: Final = ".claude-plugin/plugin.json"
_MOST_NEIGHBOURS: Final = 500
_MOST_ABOVE: Final = 6
_IN_SKILL: Final = re.compile(r"(?:\./)?(references?|scripts|assets)/.*\w\.\w{1,10}")
_OUTSIDE: Final = (
    "Copy the file into the skill: only the skill's own folder is installed."
)
_MISSING: Final = "Add the file, or fix the path: it is relative to the skill's folder."
_SPELLING: Final = "Use that spelling: on Linux the other one is not found."
_CHAIN: Final = (
    "Name it in SKILL.md too: agents may see only a part of files further away."
)


class _Problem(NamedTuple):
    level: Level
    code: str
    message: str
    hint: str


def reference_findings(
    file: Path, lines: Sequence[str], first: int
) -> Iterator[Finding]:
    """Each wrong path once, where it occurs first; ``lines`` are the body,
    from line ``first``.
    """
    files = FilesOnDisk(file.parent)
    lookup, findings = Folder(files), dict[str, Finding]()
    for reference in references_in(lines, first):
        around = (
            _around(lines, reference.line - first) if reference.kind == "code" else ""
        )
        problem = _problem(reference, around, lookup, file.parent)
        if not problem:
            continue
        earlier = findings.get(problem.message)
        if not earlier or (earlier.level == "warning" and problem.level == "error"):
            findings[problem.message] = Finding(shown(file), reference.line, *problem)
    yield from sorted(findings.values(), key=lambda finding: finding.line)
    yield from _chains(file.parent, files, lookup, files_named(files, lines))


def _around(lines: Sequence[str], at: int) -> str:
    return " ".join(line[:_LONGEST_LINE] for line in lines[max(0, at - 1) : at + 2])


def _problem(
    reference: Reference, around: str, lookup: Folder, folder: Path
) -> _Problem | None:
    """What is wrong with a reference, if it is clear that it means a file of the
    skill.
    """
    is_link = reference.kind == "link"
    written = (
        reference.path if is_link else reference.path.lstrip(_BEFORE).rstrip(_BEHIND)
    )
    if reference.kind == "fence" or not written or _PLACEHOLDER.search(written):
        return None
    path, name = posixpath.normpath(written), repr(one_line(written, 200))
    level: Level = "error" if is_link else "warning"
    if path.startswith(("../", "/")) or path == "..":
        return _outside(folder, path, name) if is_link else None
    spelling = lookup.spelling(path)
    if spelling == path or path in SKILL_NAMES:
        return None
    if spelling and (is_link or _HAS_ENDING.fullmatch(path)):
        message = f"{name} is spelled {one_line(spelling, 200)!r} in the skill"
        return _Problem(level, "reference-broken", message, _SPELLING)
    if spelling is None and _means_a_file(reference, written, around, lookup):
        if not is_link and _is_around(folder, path):
            return None
        return _Problem(
            level, "reference-broken", f"{name} not found in the skill", _MISSING
        )
    return None


def _means_a_file(
    reference: Reference, written: str, around: str, lookup: Folder
) -> bool:
    """Hidden folders are of the project that the skill works on,
    and so may scripts/ be.
    """
    if reference.kind == "link":
        hidden = written.removeprefix("./").startswith(".")
        return not hidden and bool(
            _HAS_ENDING.fullmatch(written) or written.endswith("/")
        )
    in_skill = _IN_SKILL.fullmatch(written) if reference.kind == "code" else None
    if not in_skill or reference.example or not lookup.spelling(in_skill[1]):
        return False
    return in_skill[1].startswith("reference") or not _ELSEWHERE.search(around)


def _outside(folder: Path, path: str, name: str) -> _Problem | None:
    """Fine is what is installed too: skills beside this one, its plugin, its
    project.
    """
    real, parts = folder.resolve(), path.split("/")
    there = os.path.exists(os.path.join(real, path))  # noqa: PTH110, PTH118
    if path.startswith("/") and not there and not _HAS_ENDING.fullmatch(path):
        return None  # a command, or a page of a site
    beside = len(parts) > 1 and parts[1] != ".." and is_skill(real.parent / parts[1])
    in_project = any(part.startswith(".") for part in real.parts)  # .claude/skills
    if there and (beside or in_project or _is_of_the_plugin(real, path)):
        return None
    missing = "" if there else ", and not there"
    message = f"{name} is outside the skill's folder{missing}"
    return _Problem("warning", "reference-outside", message, _OUTSIDE)


def _is_of_the_plugin(folder: Path, path: str) -> bool:
    target = Path(os.path.realpath(folder / path))
    above = (parent for parent in folder.parents if (parent / _PLUGIN).is_file())
    plugin = next(above, None)
    return plugin is not None and target.is_relative_to(plugin)


def _is_around(folder: Path, path: str) -> bool:
    """Whether a folder above, or a skill beside this one, has such a file:
    the text may mean it.
    """
    real = folder.resolve()
    try:
        with os.scandir(real.parent) as entries:
            beside = [entry.path for entry in islice(entries, _MOST_NEIGHBOURS)]
    except OSError:
        beside = []
    places = [*map(str, real.parents[:_MOST_ABOVE]), *beside]
    return any(os.path.exists(os.path.join(place, path)) for place in places)  # noqa: PTH110, PTH118


def _chains(
    folder: Path, files: FilesOnDisk, lookup: Folder, named: Sequence[str]
) -> Iterator[Finding]:
    """Files that SKILL.md names only through another file,
    as one finding at the first of them.
    """
    named_files, chained = set(named), list[tuple[str, str, int]]()
    pages = [
        page
        for page in named
        if page.endswith(".md") and not _ABOUT_THE_SKILL.fullmatch(page)
    ]
    for path in pages[:_MOST_CHAINED]:
        try:
            lines = files.text(path).split("\n")
        except ValueError:
            continue
        for reference in references_in(lines):
            written = reference.path
            if not written.endswith(".md") or not _leads_on(reference, lines):
                continue
            for start in (posixpath.dirname(path), ""):
                target = posixpath.normpath(posixpath.join(start, written))
                there = (
                    not target.startswith("..") and lookup.spelling(target) == target
                )
                if there and target not in named_files and _is_page(target, lookup):
                    named_files.add(target)
                    chained.append((target, path, reference.line))
    if chained:
        target, path, line = chained[0]
        further = len(chained) - 1
        and_more = f", and {counted(further, 'file')} more like it" if further else ""
        message = (
            f"{one_line(target, 200)!r} is named here, but not in SKILL.md{and_more}"
        )
        yield Finding(
            shown(folder / path), line, "warning", "reference-deep", message, _CHAIN
        )


def _leads_on(reference: Reference, lines: Sequence[str]) -> bool:
    """A link does; a path in code only if the line says to read it."""
    if reference.kind == "link":
        return not reference.example
    says_so = reference.kind == "code" and _NAVIGATES.search(
        lines[reference.line - 1][:_LONGEST_LINE]
    )
    return bool(says_so) and not reference.example


def _is_page(path: str, lookup: Folder) -> bool:
    is_page = not lookup.is_folder(path) and lookup.is_of_the_skill(path)
    return is_page and not _ABOUT_THE_SKILL.fullmatch(path)
