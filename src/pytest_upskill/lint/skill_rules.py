"""Rules for SKILL.md: the specification, its size advice, and references to files.

Markdown links count as references. Inline code counts if it starts with a skill's own folders
(``scripts/run.py``). Fenced blocks do not count.
"""

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

MAX_LINES: Final = 500
MAX_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed to files in references/."
_LONGEST_LINE: Final = 10_000  # matching backticks takes quadratic time
_MAX_DEPTH: Final = 2  # references/file.md
_FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}(?!.*`)|~{3,})")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TARGET: Final = r"(?:<([^<>]*)>|([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*))"
_LINK: Final = re.compile(rf"\]\(\s*{_TARGET}|^ {{0,3}}\[[^\]^]+\]:\s*{_TARGET}")
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|$")  # a URL or an anchor
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
        return  # already among the violations
    start = _start_of_body(lines)
    yield from _size(shown(file), lines, start)
    for line, reference in references_in(lines[start:], start + 1):
        if problem := check_reference(reference, file.parent):
            yield Finding(shown(file), line, *problem)


def _start_of_body(lines: list[str]) -> int:
    """The number of lines before the body; 0 without a complete frontmatter."""
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return number + 1
    return 0


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    if number > MAX_LINES:
        what = f"{number:,} lines (recommended: up to {MAX_LINES})"
        yield Finding(file, MAX_LINES + 1, "warning", "skill-long", what, _SPLIT)
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    if tokens > MAX_TOKENS:
        what = f"about {tokens:,} tokens (recommended: up to {MAX_TOKENS:,})"
        yield Finding(file, start + 1, "warning", "skill-long", what, _SPLIT)


@dataclass(frozen=True)
class Reference:
    """``path`` is as written, without query and anchor."""

    path: str
    is_link: bool


def references_in(lines: Iterable[str], first: int) -> Iterator[tuple[int, Reference]]:
    """References with their lines; ``first`` is the number of the first line."""
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


def check_reference(reference: Reference, folder: Path) -> tuple[Level, str, str, str] | None:
    """Level, code, message and hint; None if the reference is fine."""
    path, name = posixpath.normpath(reference.path), repr(one_line(reference.path, 200))
    if path.startswith(("../", "/")) or path == "..":
        hint = "Copy the file into the skill: only the skill's own folder is installed."
        return "error", "reference-outside", f"{name} is outside the skill's folder", hint
    # Path.exists raises on names that no file can have.
    if not os.path.exists(os.path.join(folder, path)):  # noqa: PTH110, PTH118
        hint = "Add the file, or fix the path: it is relative to the skill's folder."
        level: Level = "error" if reference.is_link else "warning"
        return level, "reference-broken", f"{name} not found in the skill", hint
    if path.count("/") + 1 > _MAX_DEPTH:
        hint = "Agents look one level deep: use references/FILE, scripts/FILE or assets/FILE."
        return "warning", "reference-deep", f"{name} is nested more than one level deep", hint
    return None
