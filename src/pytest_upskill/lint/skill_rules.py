"""SKILL.md: the specification's rules, its advice on size, references to files."""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from .._util.texts import one_line
from ..errors import SkillError, shown
from ..skills.skill import estimated_tokens, read_text, review_skill
from .finding import Finding, Level, finding_of

MOST_LINES: Final = 500
MOST_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed into files of references/."

_LONGEST_LINE: Final = 10_000  # looking for pairs of backticks takes time by the square of it
_DEEPEST: Final = 2  # references/file.md

_FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}(?!.*`)|~{3,})")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TARGET: Final = r"(?:<([^<>]*)>|([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*))"
_LINK: Final = re.compile(rf"\]\(\s*{_TARGET}|^ {{0,3}}\[[^\]^]+\]:\s*{_TARGET}")
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|$")  # an address, an anchor
_PLACEHOLDER: Final = re.compile(r"[{}<>*$…|]|\.\.\.")
_IN_SKILL: Final = re.compile(r"(?:\./)?(?:references|scripts|assets)/.*\w.*")


def lint_skill_file(file: Path) -> Iterator[Finding]:
    violations, warnings = review_skill(file)
    for error in violations:
        yield finding_of(error, "skill-invalid")
    for line, text in warnings:
        yield Finding(shown(file), line, "warning", "skill-unknown-key", text)
    try:
        lines = read_text(file).split("\n")
    except (SkillError, OSError):
        return  # which is among the violations
    start = _start_of_body(lines)
    yield from _size(shown(file), lines, start)
    for line, reference in references_in(lines[start:], start + 1):
        if problem := what_is_wrong(reference, file.parent):
            yield Finding(shown(file), line, *problem)


def _start_of_body(lines: list[str]) -> int:
    """The number of lines before the body; none, if the frontmatter is not one."""
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return number + 1
    return 0


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    if number > MOST_LINES:
        what = f"this file has {number:,} lines; {MOST_LINES} are advised at most"
        yield Finding(file, MOST_LINES + 1, "warning", "skill-long", what, _SPLIT)
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    if tokens > MOST_TOKENS:
        what = f"the text has about {tokens:,} tokens; {MOST_TOKENS:,} are advised at most"
        yield Finding(file, start + 1, "warning", "skill-long", what, _SPLIT)


@dataclass(frozen=True)
class Reference:
    """``path`` is as written, without the part of the file that it points to."""

    path: str
    is_link: bool


def references_in(lines: Iterable[str], first: int) -> Iterator[tuple[int, Reference]]:
    """Each with its line, counted from ``first`` on."""
    fence = ""
    for number, line in enumerate(lines, start=first):
        opening = _FENCE.match(line)
        if fence:
            bare = line.strip().lstrip("> ")
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening[1]
        else:
            for reference in _references_of(line[:_LONGEST_LINE]):
                yield number, reference


def _references_of(line: str) -> Iterator[Reference]:
    for match in _LINK.finditer(_CODE.sub(" code ", line)):
        target = next(group for group in match.groups() if group is not None)
        if not _NO_FILE.match(target) and not _PLACEHOLDER.search(target):
            path = unquote(re.split(r"[?#]", target)[0])
            yield Reference(path, is_link=True)
    for match in _CODE.finditer(line):
        for word in match[2].split():
            if _IN_SKILL.fullmatch(word) and not _PLACEHOLDER.search(word):
                yield Reference(word, is_link=False)


def what_is_wrong(reference: Reference, folder: Path) -> tuple[Level, str, str, str] | None:
    """Level, code, message and how to fix it; None if the reference is a good one."""
    path, name = posixpath.normpath(reference.path), repr(one_line(reference.path, 200))
    if path.startswith(("../", "/")) or path == "..":
        hint = "Put a copy of the file into the skill: nothing else goes where the skill goes."
        return "error", "reference-outside", f"{name} leads out of the skill's folder", hint
    # Not Path.exists, which raises at names that no file can have.
    if not os.path.exists(os.path.join(folder, path)):  # noqa: PTH110, PTH118
        hint = "Add the file, or hint the path: it starts at the skill's folder."
        level: Level = "error" if reference.is_link else "warning"
        return level, "reference-broken", f"there is no {name} in the skill", hint
    if path.count("/") + 1 > _DEEPEST:
        hint = "Agents look one level deep: keep it as references/file, scripts/file, assets/file."
        return "warning", "reference-deep", f"{name} is nested deeper than one level", hint
    return None
