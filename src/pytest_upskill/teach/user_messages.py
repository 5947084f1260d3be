"""What users asked in traces: how real queries sound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

from .._util.files import reason_of
from ..errors import SettingsError, TraceError, shown
from ..skills.skill import estimated_tokens
from .query_rules import words_of
from .secrets import masked
from .sources import Material, size_of
from .traces import read_trace

_LONGEST: Final = 600  # characters of a message
_MOST_MASKED: Final = 20_000  # characters: a secret must not be cut before it is masked
_MOST_FILES: Final = 500  # of a folder
_SUFFIXES: Final = (".jsonl", ".json", ".md", ".txt")


@dataclass(frozen=True)
class UserMessages:
    """Messages without secrets, the first ones of all traces first; and what is sent of which."""

    texts: tuple[str, ...] = ()
    material: Material = field(default_factory=Material)


def read_user_messages(paths: Sequence[Path], most_tokens: int) -> UserMessages:
    """The user messages of traces, as many as there is room for; an error if there are none."""
    by_file, unsent = dict[Path, list[str]](), list[tuple[str, str]]()
    for path in paths:
        files = _files_in(path)
        for file in files:
            try:
                by_file[file] = _messages(file)
            except TraceError as error:
                if files == [path]:
                    raise
                unsent.append((shown(file), error.problem))
    if paths and not any(by_file.values()):
        problem = "no message of a user"
        raise SettingsError("traces", problem, "Name other traces.", value=shown(paths[0]))
    kept, chosen = dict[Path, list[str]](), list[str]()
    room, seen = most_tokens, set[tuple[str, ...]]()
    for row in zip_longest(*([(file, text) for text in found] for file, found in by_file.items())):
        for file, text in filter(None, row):
            words = tuple(words_of(text))
            if words and words not in seen and estimated_tokens(text) <= room:
                seen.add(words)
                room -= estimated_tokens(text)
                kept.setdefault(file, []).append(text)
                chosen.append(text)
    sizes = [
        size_of(f"{shown(file)}, its user messages", "\n".join(texts))
        for file, texts in kept.items()
    ]
    material = Material("\n".join(chosen), sent=tuple(sizes), unsent=tuple(unsent))
    return UserMessages(tuple(chosen), material)


def _files_in(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        found = [file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file()]
    except OSError as error:
        raise SettingsError("traces", reason_of(error), value=shown(path)) from None
    if not found:
        problem = "no trace in this folder"
        raise SettingsError("traces", problem, "Name the file of a trace.", value=shown(path))
    return sorted(found)[:_MOST_FILES]


def _messages(file: Path) -> list[str]:
    return list(filter(None, map(_short, _by_user(file))))


def _by_user(file: Path) -> Iterator[str]:
    return (turn.text for turn in read_trace(file).turns if turn.kind == "user")


def _short(text: str) -> str:
    """On one line, masked, and without its end if it is long."""
    flat = " ".join(masked(text[:_MOST_MASKED]).split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"
