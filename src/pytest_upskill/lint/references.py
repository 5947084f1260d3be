"""References of a SKILL.md to files: what they are, and whether they lead to a file of the skill.

Links of Markdown are taken as such. Of what stands in `inline code`, only that which begins like
the folders of a skill is one. Nothing in a fenced block is.
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
from .finding import Level

_LONGEST_LINE: Final = 10_000  # looking for pairs of backticks takes time by the square of it
_DEEPEST: Final = 2  # references/file.md

_FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}(?!.*`)|~{3,})")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TARGET: Final = r"(?:<([^<>]*)>|([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*))"
_LINK: Final = re.compile(rf"\]\(\s*{_TARGET}|^ {{0,3}}\[[^\]^]+\]:\s*{_TARGET}")
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|$")  # an address, an anchor
_PLACEHOLDER: Final = re.compile(r"[{}<>*$…|]|\.\.\.")
_IN_SKILL: Final = re.compile(r"(?:\./)?(?:references|scripts|assets)/.*\w.*")


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
