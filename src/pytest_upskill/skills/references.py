"""Which files of its folder a SKILL.md refers to.

Markdown links, inline code and plain words count alike where such a file exists.
The linter judges missing files, so a reference says how it is written and
whether it is an example.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol
from urllib.parse import unquote

from .folder import SKILL_NAMES, is_taught

ReferenceKind = Literal["link", "code", "prose", "fence"]

MOST_FILES: Final = 1000
_LONGEST_LINE: Final = 10_000  # matching backticks takes quadratic time
_LONGEST_PATH: Final = 300
_MOST_STARS: Final = 3  # of a pattern: more take too long to match
_MOST_PATTERNS: Final = 200
_FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}+(?!.*`)|~{3,})")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TARGET: Final = r"(?:<([^<>]*)>|([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*))"
_LINK: Final = re.compile(rf"\]\(\s*{_TARGET}|^ {{0,3}}\[[^\]^]+\]:\s*{_TARGET}")
_WORD: Final = re.compile(r"\S+")
_URL: Final = re.compile(r"\W*[a-zA-Z][a-zA-Z0-9+.-]*://|\W*www\.")
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|$")  # a URL or an anchor
_HEADING: Final = re.compile(r" {0,3}(#{1,6})\s")
_EXAMPLE: Final = re.compile(
    r"\b(?:examples?|for instance|such"
    r" as|hypothetical|imagine)\b|\be\.g\.|例如|示例|✅|❌",
    re.I,
)
_LETTER: Final = re.compile(r"\w")
_ANYTHING: Final = re.compile(r"\$?\{[^{}]*\}|<[^<>]*>|\$\w+|\*+")  # a placeholder
_PATHS: Final = re.compile(r"[^\s\"'`()\[\]<>{}|,;:=$@…│├└─]+")
_NAMES_A_FILE: Final = re.compile(
    r"(?:[^/]*+/\W*+\w.*|.*\w\.\w{1,10}|.*\w/)", re.DOTALL
)
_LICENCE: Final = re.compile(
    r"(?:licen[cs]e|copying|notice)(?:[-_.].*)?|(?:.*[-_])?OFL\.txt", re.I
)


@dataclass(frozen=True)
class Reference:
    """A word of a SKILL.md that may name a file; ``path`` is as written,
    without an anchor.
    """

    line: int
    path: str
    kind: ReferenceKind
    example: bool = False


class Files(Protocol):
    """The files of a skill, on disk or at a git ref."""

    def entries(self, folder: str) -> Mapping[str, bool]:
        """The names in a folder, and whether each is a folder;
        empty if there is no such folder.
        """
        ...

    def text(self, path: str) -> str:
        """The text of a file; ValueError says why it has none."""
        ...


# Finding words that may name files.


def references_in(lines: Iterable[str], first: int = 1) -> Iterator[Reference]:
    """References in order; ``first`` is the number of the first line."""
    fence, examples = "", _Examples()
    for number, whole_line in enumerate(lines, start=first):
        line = whole_line[:_LONGEST_LINE]
        opening = _FENCE.match(line)
        if fence:
            bare = line.strip().lstrip("> ")
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
            else:
                yield from (
                    Reference(number, word, "fence", example=True)
                    for word in _split(line)
                )
        elif opening:
            fence = opening[1]
        else:
            example = examples.covers(line)
            if any(mark in line for mark in ("/", ".", "](")):
                words = sorted(_words(line), key=itemgetter(0))
                yield from (
                    Reference(number, path, kind, example) for _, path, kind in words
                )


class _Examples:
    """Which lines belong to an example, by their heading, introduction or own words."""

    def __init__(self) -> None:
        self._heading = 0  # its level
        self._introduced = False
        self._started = False
        self._comment = False

    def covers(self, line: str) -> bool:
        if heading := _HEADING.match(line):
            level = len(heading[1])
            if _EXAMPLE.search(line):
                self._heading = min(self._heading or level, level)
            elif level <= self._heading:
                self._heading = 0
            self._introduced = False
        commented = self._in_comment(line)
        if not line.strip():
            self._introduced = self._introduced and not self._started
            return False
        is_example = bool(_EXAMPLE.search(line))
        inside = bool(self._heading) or self._introduced or is_example or commented
        self._started = True
        if is_example and line.rstrip(" *_").endswith(":"):
            self._introduced, self._started = True, False
        return inside

    def _in_comment(self, line: str) -> bool:
        inside = self._comment or "<!--" in line
        opened, closed = line.rfind("<!--"), line.rfind("-->")
        self._comment = opened > closed or (self._comment and closed < 0)
        return inside


def _words(line: str) -> Iterator[tuple[int, str, ReferenceKind]]:
    """Position, path and kind."""
    prose = _CODE.sub(lambda match: " " * len(match[0]), line)
    for match in _LINK.finditer(prose):
        target = next(group for group in match.groups() if group is not None)
        if not _NO_FILE.match(target):
            yield match.start(), unquote(re.split(r"[?#]", target)[0]), "link"
    for match in _CODE.finditer(line):
        for word in _split(match[2]):
            yield match.start(), word, "code"
    for match in _WORD.finditer(_LINK.sub(_blank, prose)):
        if _may_name_a_file(match[0]):
            yield match.start(), match[0], "prose"


def _split(text: str) -> list[str]:
    return list(filter(_may_name_a_file, text.split()))


def _may_name_a_file(word: str) -> bool:
    return ("/" in word or "." in word[:-1]) and not _URL.match(word)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


# Finding the files they name.


class Folder:
    """Looks up paths as written in a text, ignoring case."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, dict[str, str]] = {}

    def spelling(self, path: str) -> str | None:
        """The path as it is spelled on disk; None if there is no such file or
        folder.
        """
        names: list[str] = []
        for part in path.split("/"):
            folder = "/".join(names)
            entries = self._files.entries(folder)
            name = part if part in entries else self._folded(folder).get(_folded(part))
            if name is None:
                return None
            names.append(name)
        return "/".join(names)

    def is_folder(self, path: str) -> bool:
        above, _, name = path.rpartition("/")
        return self._files.entries(above).get(name, False)

    def files_in(self, folder: str) -> list[str]:
        names = sorted(
            name for name, inside in self._files.entries(folder).items() if not inside
        )
        return [f"{folder}/{name}" if folder else name for name in names]

    def _folded(self, folder: str) -> dict[str, str]:
        if folder not in self._known:
            names = sorted(self._files.entries(folder), reverse=True)
            self._known[folder] = {_folded(name): name for name in names}
        return self._known[folder]

    def find(self, word: str) -> list[str]:
        """The files and folders that a word names: by path, the end of a path, or
        name.
        """
        path = posixpath.normpath(word.lstrip("/"))
        if path.startswith("..") or path in (".", "*"):
            return []
        parts = path.split("/")
        # The first placeholder may stand for the skill's folder.
        if parts[0] == "*" and (paths := self._matching(parts[1:])):
            return paths
        for start in range(max(1, len(parts) - 1)):
            if paths := self._matching(parts[start:]):
                return paths
        if len(parts) > 1 or word.endswith("/"):
            return []
        module = self.spelling(path.replace(".", "/") + ".py") if "." in path else None
        by_name = module or self._by_name.get(path)
        return [by_name] if by_name else []

    def _matching(self, parts: Sequence[str]) -> list[str]:
        """The paths of these parts; a * matches anything."""
        stars = [part.count("*") for part in parts if "*" in part]
        if max(stars, default=0) > _MOST_STARS or len(stars) > _MOST_STARS:
            return []
        if not stars:
            spelling = self.spelling("/".join(parts))
            return [spelling] if spelling else []
        paths = [""]
        for part in parts:
            # fnmatch has more special characters than a path with placeholders.
            names = re.compile(".*".join(map(re.escape, part.split("*"))), re.DOTALL)
            paths = [
                f"{folder}/{name}" if folder else name
                for folder in paths
                for name in sorted(self._files.entries(folder))
                if names.fullmatch(name)
            ][:MOST_FILES]
        return paths

    @cached_property
    def _by_name(self) -> dict[str, str]:
        """Files one folder deep whose names are unique."""
        by_name: dict[str, list[str]] = {}
        for folder, inside in self._files.entries("").items():
            if inside and _is_taught(folder) and not folder.startswith("."):
                for path in self.files_in(folder):
                    by_name.setdefault(posixpath.basename(path), []).append(path)
        return {name: paths[0] for name, paths in by_name.items() if len(paths) == 1}

    def is_of_the_skill(self, path: str) -> bool:
        """Whether a file is for the model: no cases, no licence,
        nothing of another skill.
        """
        parts = path.split("/")
        folders = ["/".join(parts[:number]) for number in range(1, len(parts))]
        return not (
            path in SKILL_NAMES
            or _LICENCE.fullmatch(parts[-1])
            or not all(map(_is_taught, [*folders, path]))
            or any(
                name in self._files.entries(folder)
                for folder in folders
                for name in SKILL_NAMES
            )
        )


def _is_taught(path: str) -> bool:
    return is_taught(PurePosixPath(path))


def _folded(name: str) -> str:
    # macOS may return names in another normal form than people type.
    return unicodedata.normalize("NFC", name).casefold()


def files_named(files: Files, lines: Sequence[str]) -> list[str]:
    """The files that a text refers to, in its order.

    Those that a pattern, or a folder directly around them, stands for come last.
    """
    lookup, named, less_certain = Folder(files), dict[str, None](), dict[str, None]()
    words, patterns = set[str](), 0
    for reference in references_in(lines):
        for word in paths_in(reference):
            if word in words:
                continue
            words.add(word)
            patterns += "*" in word
            paths = (
                lookup.find(word)
                if patterns <= _MOST_PATTERNS or "*" not in word
                else []
            )
            place = named if len(paths) == 1 else less_certain
            for path in paths:
                if not lookup.is_folder(path):
                    place[path] = None
                elif word.endswith("/") or reference.kind == "link":
                    less_certain |= dict.fromkeys(lookup.files_in(path))
    return list(filter(lookup.is_of_the_skill, {**named, **less_certain}))[:MOST_FILES]


def paths_in(reference: Reference) -> Iterator[str]:
    """The paths in a word, without quotes and brackets,
    and with a * for each placeholder.
    """
    if reference.kind == "link":
        yield reference.path[:_LONGEST_PATH]
        return
    written = reference.path
    if reference.kind == "prose":
        written = _without_emphasis(written)
    for match in _PATHS.finditer(_ANYTHING.sub("*", written)):
        word = match[0].rstrip(".!?")
        if len(word) <= _LONGEST_PATH and _NAMES_A_FILE.fullmatch(word):
            yield word


def _without_emphasis(word: str) -> str:
    """Without the marks of bold and italic text around it; a single * may be a
    pattern.
    """
    word = word.replace("**", "").replace("__", "")
    first, last = _LETTER.search(word), _LETTER.search(word[::-1])
    if not first or not last:
        return word
    start, end = first.start(), len(word) - last.start()
    before, behind = word[:start], word[end:]
    if "*" in behind:
        before = before.rpartition("*")[2]
    return before + word[start:end] + ("" if behind.startswith("*") else behind)
