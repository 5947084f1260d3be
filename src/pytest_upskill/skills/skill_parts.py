"""The parts of a SKILL.md, and its text without some of them.

Sections are cut at headings. The level is the highest one that has at least two
headings, so that a title above all others does not make the whole skill one part; a
section keeps its subsections. A heading above that level is a part with the text below
it, up to the next part. Paragraphs are cut at blank lines, but lists and code stay
whole, and what ends with a colon keeps what it announces.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from .._util.texts import one_line
from .frontmatter import parse

By = Literal["section", "paragraph"]
PartKind = Literal["section", "paragraph", "file", "skill"]

INTRODUCTION: Final = "introduction"  # the text before the first heading
_NO_WORDS: Final = "no words"
_LONGEST_NAME: Final = 60
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}(?!.*`)|~{3,})")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_WORD: Final = re.compile(r"\w")


@dataclass(frozen=True)
class Part:
    """A part of a skill: a stretch of its SKILL.md, or a file that it names.
    Or of a bundle.
    """

    name: str  # a heading, the first words of a paragraph or a path; unique
    kind: PartKind
    line: int = 0  # in SKILL.md; 0 for a file
    start: int = 0  # in the text of SKILL.md
    end: int = 0
    level: int = 0  # of its heading
    # A heading without text, which is removed with the parts below it
    bare: bool = False


class PartedText:
    """A SKILL.md, cut into parts: ``head`` and all parts together are its text."""

    def __init__(self, text: str, by: By = "section") -> None:
        self.text = text
        self.by = by

    @property
    def head(self) -> str:
        """The frontmatter, up to the first part."""
        return self.text[: self.all[0].start] if self.all else self.text

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that can be left out."""
        return tuple(part for part in self.all if not part.bare)

    @cached_property
    def all(self) -> tuple[Part, ...]:
        """All parts, with bare headings."""
        mark = len(self.text) - len(self.text.removeprefix("\ufeff"))
        matches = _LINE.finditer(self.text, mark)
        lines = [(match.start(), match[0].rstrip("\r\n")) for match in matches]
        normal = self.text.replace("\r\n", "\n").replace("\r", "\n")
        first = parse(normal).body_line - 1
        blocks = list(_blocks([line for _, line in lines], first))
        cuts = list(_sections(blocks) if self.by == "section" else _paragraphs(blocks))
        places = [*(lines[cut.first][0] for cut in cuts), len(self.text)]
        parts = [
            replace(cut.part, line=cut.first + 1, start=start, end=end)
            for cut, (start, end) in zip(cuts, pairwise(places), strict=True)
        ]
        return tuple(told_apart(parts))

    def without(self, names: Collection[str]) -> str:
        """The text without the parts of these names; nothing
        else changes but blank lines.

        A heading that has no text of its own goes with the last part below it.
        """
        removed = set(names)
        gone = [part.name in removed for part in self.all]
        for index in reversed([at for at, part in enumerate(self.all) if part.bare]):
            below = self._below(index)
            gone[index] = bool(below) and all(map(gone.__getitem__, below))
        newline = "\r\n" if "\r\n" in self.text else "\n"
        texts = list[str]()
        for index, part in enumerate(self.all):
            if gone[index]:
                continue
            if texts and gone[index - 1] and not _ends_blank(texts[-1]):
                texts.append(newline)  # keep paragraphs apart
            texts.append(self.text[part.start : part.end])
        text = self.head + "".join(texts)
        return _with_end_of(self.text, text) if gone and gone[-1] else text

    def _below(self, index: int) -> range:
        """The parts below a heading."""
        level, end = self.all[index].level, index + 1
        while end < len(self.all) and not 0 < self.all[end].level <= level:
            end += 1
        return range(index + 1, end)


def told_apart(parts: Sequence[Part]) -> list[Part]:
    """Parts with unique names: the line is added to names that occur twice."""
    names = Counter(part.name for part in parts)
    while max(names.values(), default=1) > 1:
        parts = [
            (
                replace(part, name=f"{part.name} (line {part.line})")
                if names[part.name] > 1 and part.line
                else part
            )
            for part in parts
        ]
        names = Counter(part.name for part in parts)
    return list(parts)


def _ends_blank(text: str) -> bool:
    """Whether the last line is blank."""
    last = (
        text.removesuffix("\n").removesuffix("\r")
        if text.endswith(("\n", "\r"))
        else "x"
    )
    return last.rstrip(" \t").endswith(("\n", "\r"))


def _with_end_of(original: str, text: str) -> str:
    """Without blank lines at the end; with a final newline if the original has one."""
    words = text.rstrip()
    last = _LINE.match(text, len(words))  # what follows the words on their line
    ended = words + (last[0] if last else "")
    return ended if original.endswith(("\n", "\r")) else ended.rstrip("\r\n")


# Cutting blocks into parts.


class _Block(NamedTuple):
    """Lines that belong together; a heading has a level."""

    first: int  # its first line, counted from 0
    words: str
    level: int = 0
    announces: bool = False  # ends with a colon


class _Cut(NamedTuple):
    first: int
    part: Part


def _sections(blocks: Sequence[_Block]) -> Iterator[_Cut]:
    levels = Counter(block.level for block in blocks if block.level)
    shared = [level for level, headings in levels.items() if headings > 1]
    deepest = min(shared, default=6)
    starts = [index for index, block in enumerate(blocks) if 0 < block.level <= deepest]
    if blocks and starts[:1] != [0]:
        starts = [0, *starts]
    for start, end in pairwise([*starts, len(blocks)]):
        block = blocks[start]
        name = _name(block.words) if block.level else INTRODUCTION
        bare = bool(block.level) and end == start + 1
        yield _Cut(block.first, Part(name, "section", level=block.level, bare=bare))


def _paragraphs(blocks: Sequence[_Block]) -> Iterator[_Cut]:
    before: _Block | None = None
    for block in blocks:
        joined = before and not before.level and not block.level and before.announces
        if not joined:
            part = Part(
                _name(block.words), "paragraph", level=block.level, bare=block.level > 0
            )
            yield _Cut(block.first, part)
        before = block


def _name(words: str) -> str:
    return one_line(words, _LONGEST_NAME) or _NO_WORDS


def _blocks(lines: Sequence[str], first: int) -> Iterator[_Block]:
    """Headings and other blocks of Markdown; lists,
    code and comments stay in one piece.
    """
    from markdown_it import MarkdownIt  # only studies of parts need it

    # Without inline rules, which hostile texts can slow down.
    tokens = MarkdownIt("commonmark").disable("inline").parse("\n".join(lines[first:]))
    follows_text, end_before = False, -1
    for index, token in enumerate(tokens):
        if token.level or not token.map:
            continue
        start, end = (first + line for line in token.map)
        while end > start and not lines[end - 1].strip():
            end -= 1
        if token.type == "heading_open":
            yield _Block(start, tokens[index + 1].content, int(token.tag[1:]))
            follows_text = False
            continue
        # Indented code and rules belong to the block above,
        # and so does a list without a blank line before it.
        is_list = token.type.endswith("_list_open")
        joined = token.type in ("code_block", "hr") or (is_list and end_before == start)
        if not (follows_text and joined):
            yield _Block(start, _words(lines[start:end]), 0, _announces(lines[end - 1]))
        follows_text, end_before = True, end


def _announces(line: str) -> bool:
    return line.rstrip(" \t*_").endswith((":", "："))


def _words(lines: Sequence[str]) -> str:
    """The first words of a block, without list and quote marks."""
    first = next(
        (line for line in lines if _WORD.search(line) and not _FENCE.match(line)), ""
    )
    item = _ITEM.match(first)
    return ((item[1] if item else first) or "").lstrip(" \t>#|").rstrip(" \t|")
