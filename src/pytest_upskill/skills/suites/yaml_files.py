"""What suites in YAML share: reading files, patterns of JavaScript,
and what is left out.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from ..._util.files import read_file, reason_of
from ..._util.texts import first_few, one_line, slug
from ...errors import CasesError, shown
from ..case import Case
from ..case_forms import is_good_tag
from ..frontmatter import YAML_ERRORS, read_yaml
from ..loaded_cases import BrokenCase, LoadedCases

_MAX_BYTES: Final = 1_000_000
_MOST_NAMED: Final = 10
_RULE: Final = "---"
# A piece of a pattern of JavaScript. There, a bracket ends a
# class even if it comes first.
_PIECE: Final = re.compile(
    r"\\u\{[0-9a-fA-F]+\}|\\k<\w+>|\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
_NO_EFFECT: Final = frozenset("gyduv")


class Document(NamedTuple):
    """A Markdown file: the values of its frontmatter, the lines of their keys,
    and its body.
    """

    file: Path
    values: dict[str, Any]
    lines: Mapping[str, int]
    body: str = ""

    def error(self, problem: str, key: str = "") -> CasesError:
        """At the line of a key."""
        return problem_at(
            self.file, self.lines.get(key, 1), f"{key}: {problem}" if key else problem
        )


def problem_at(file: Path, line: int, problem: str) -> CasesError:
    error = CasesError(f"{shown(file)}:{line}", problem)
    error.problems = (((), problem),)
    return error


def broken_by(file: Path, name: str, error: CasesError) -> LoadedCases[Case]:
    """A file whose only case can't be run."""
    return LoadedCases.of(file, [], [BrokenCase(name, (), 1, error)], [])


def read_document(file: Path) -> Document:
    """A Markdown file, perhaps with frontmatter; CasesError if it can't be read."""
    text = read_text(file)
    lines = text.split("\n")
    if lines[0].strip() != _RULE:
        return Document(file, {}, {}, text.strip())
    end = next(
        (n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == _RULE), None
    )
    if end is None:
        raise problem_at(file, 1, "frontmatter not closed: end it with a line '---'")
    values, at = _mapping(file, "\n".join(lines[1:end]), 1)
    return Document(file, values, at, "\n".join(lines[end + 1 :]).strip())


def read_yaml_file(file: Path) -> Document:
    """A file of YAML, which is a mapping; CasesError if it can't be read."""
    return Document(file, *_mapping(file, read_text(file), 0))


def read_text(file: Path) -> str:
    """The text of a file; CasesError if it can't be read."""
    try:
        return read_file(file, _MAX_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise problem_at(file, 1, reason_of(error)) from None
    except UnicodeDecodeError:
        raise problem_at(file, 1, "not UTF-8: save it as UTF-8") from None


def _mapping(
    file: Path, text: str, before: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """The values of a mapping, and the lines of its keys;
    ``before`` lines come before it.
    """
    try:
        node, data = read_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = f"invalid YAML: {error.problem or error.context}"
        raise problem_at(file, before + line, one_line(problem, 300)) from None
    except YAML_ERRORS as error:
        deep = isinstance(error, RecursionError)
        problem = "nested too deeply" if deep else str(error).partition("\n")[0]
        raise problem_at(
            file, before + 1, f"invalid YAML: {one_line(problem, 300)}"
        ) from None
    if data is None:
        return {}, {}
    if not isinstance(data, dict) or not isinstance(node, yaml.MappingNode):
        raise problem_at(
            file, before + 1, "must be a mapping: write one 'key: value' per line"
        )
    lines = {str(key.value): before + key.start_mark.line + 1 for key, _ in node.value}
    return {str(key): value for key, value in data.items()}, lines


class LeftOut:
    """What a form has and ours has not, told in one warning."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._changes = dict[str, None]()

    def add(self, what: str) -> None:
        self._counts[one_line(what, 80)] += 1

    def change(self, what: str) -> None:
        """What is read in another way than there."""
        self._changes[what] = None

    @property
    def warnings(self) -> list[tuple[int, str]]:
        names = [
            f"{what} ({count} times)" if count > 1 else what
            for what, count in sorted(self._counts.items())
        ]
        missing = f"what has no equal here is left out: {first_few(names, _MOST_NAMED)}"
        text = "; ".join([*([missing] if names else []), *self._changes])
        return [(1, text)] if text else []


def pattern_of(written: str, flags: str = "") -> str:
    """A pattern of JavaScript as ours, without its flag i;
    ValueError if a flag is unknown.
    """
    if unknown := set(flags) - _NO_EFFECT - set("ims"):
        raise ValueError(f"unknown flag {min(unknown)!r}")
    inline = "".join(sorted(set(flags) & set("ms")))
    multiline = "m" in inline
    pieces = [
        _piece_of(piece, multiline=multiline) for piece in _PIECE.findall(written)
    ]
    return (f"(?{inline})" if inline else "") + "".join(pieces)


def _piece_of(written: str, *, multiline: bool) -> str:
    if written == "$" and not multiline:
        return r"\Z"  # ours is also before a line break at the end
    if written == "[^]":
        return r"[\s\S]"
    if written == "[]":
        return "(?!)"
    if written.startswith(r"\u{"):
        return f"\\U{written[3:-1]:0>8}"
    if written.startswith(r"\k<"):
        return f"(?P={written[3:-1]})"
    if written == r"\0":
        return r"\x00"
    return written


def repeated(pattern: str, number: int) -> str:
    """A pattern that matches where another does so often."""
    inline = re.match(r"\(\?[ms]+\)", pattern)
    head = inline[0] if inline else ""
    return rf"{head}(?:(?:{pattern[len(head) :]})[\s\S]*?){{{number}}}"


def good_tags(written: Any, left_out: LeftOut) -> list[str]:
    """Tags that can be marks of pytest; others are spelled so that they can."""
    tags = [written] if isinstance(written, str) else written
    good = []
    for tag in tags if isinstance(tags, Sequence) else []:
        name = tag if isinstance(tag, str) and is_good_tag(tag) else slug(str(tag))
        if is_good_tag(name):
            good.append(name)
        else:
            left_out.add(f"tag {tag!r}")
    return list(dict.fromkeys(good))
