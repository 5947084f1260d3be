"""The fenced blocks of an answer, as Markdown has them, and what a language is called."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)")
_ALIASES: Final = {
    "python": "py python3 py3",
    "shell": "sh bash",
    "yaml": "yml",
    "json": "json5 jsonc",
    "javascript": "js node mjs",
    "typescript": "ts",
    "csharp": "c# cs",
    "cpp": "c++ cc cxx",
    "go": "golang",
    "rust": "rs",
    "ruby": "rb",
    "kotlin": "kt",
    "powershell": "ps1 pwsh",
    "dockerfile": "docker",
    "makefile": "make",
    "markdown": "md",
    "html": "htm",
    "latex": "tex",
}
_NAMES: Final = {alias: name for name, many in _ALIASES.items() for alias in many.split()}


@dataclass(frozen=True)
class Block:
    """``language`` is empty where the fence names none."""

    language: str
    text: str


def language_name(written: str) -> str:
    """One name for all that a language is called."""
    name = written.strip().casefold()
    return _NAMES.get(name, name)


def blocks_of(text: str) -> Iterator[Block]:
    """In the order of the answer. One that is never closed goes on to the end."""
    lines = text.replace("\r\n", "\n").split("\n")
    number = 0
    while number < len(lines):
        opening = _FENCE.fullmatch(lines[number])
        number += 1
        if not opening:
            continue
        indent, fence, info = opening.groups()
        inside = []
        while number < len(lines) and not _closes(lines[number], fence):
            inside.append(_without(indent, lines[number]))
            number += 1
        number += 1
        yield Block(_language_of(info), "\n".join(inside))


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _without(indent: str, line: str) -> str:
    """A block in a list is indented as the list is."""
    return line[len(indent) :] if line.startswith(indent) else line.lstrip()


def _language_of(info: str) -> str:
    words = info.replace("{", " ").replace("}", " ").split()
    return language_name(words[0].lstrip(".")) if words else ""
