"""Fenced blocks of an answer, and parsers of their languages that run nothing.

Models write what is parsed here: a text that is invalid, or made to break the parser,
raises BrokenError.
"""

import ast
import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .._util.texts import one_line
from .check import Result
from .time_budget import out_of_time, real_seconds_left, seconds_left

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
_NAMES: Final = {
    alias: name for name, many in _ALIASES.items() for alias in many.split()
}

# Some 50,000 tokens, which take the slow parsers a second
_MAX_CHARACTERS: Final = 200_000
_DEEPEST_YAML: Final = 100
# tomllib's memory grows with the square of the parts of a dotted key.
_ENDLESS_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}"""
)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``language`` is empty if the fence names none."""

    language: str
    text: str


def language_name(written: str) -> str:
    """One name for all aliases of a language."""
    name = written.strip().casefold()
    return _NAMES.get(name, name)


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks in order. One that is never closed goes on to the end."""
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
    """A block in a list is indented like the list."""
    return line[len(indent) :] if line.startswith(indent) else line.lstrip()


def _language_of(info: str) -> str:
    words = info.replace("{", " ").replace("}", " ").split()
    return language_name(words[0].lstrip(".")) if words else ""


# Parsers.


class BrokenError(Exception):
    """A text is not what it should be; the message is a check's reason."""


def too_long(text: str) -> Result | None:
    """The result for an answer that is too long to parse."""
    if len(text) <= _MAX_CHARACTERS:
        return None
    return (
        None,
        f"too long to parse: {len(text):,} characters (limit {_MAX_CHARACTERS:,})",
    )


def parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise BrokenError(f"invalid JSON: {_lower(error.msg)} ({position})") from None
    except RecursionError:
        raise BrokenError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise BrokenError(f"invalid JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def parse_yaml(text: str) -> None:
    """A mapping or a list: any sentence is valid YAML too."""
    import yaml

    # Events only: composing nodes overflows the stack of libyaml's binding, and merging
    # keys can fill the memory.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth, documents = 0, 0
    try:
        for event in yaml.parse(text, Loader=loader):
            seconds_left()
            if isinstance(event, yaml.CollectionStartEvent):
                documents += depth == 0
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.ScalarEvent) and depth == 0 and event.value:
                raise BrokenError("a single value, not a YAML mapping or list")
            if depth > _DEEPEST_YAML:
                raise BrokenError("the YAML is nested too deeply")
    except yaml.YAMLError as error:
        raise BrokenError(f"invalid YAML: {_yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"invalid YAML: {type(error).__name__}") from None
    if not documents:
        raise BrokenError("no YAML mapping or list")


def _yaml_problem(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    position = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return one_line(f"{getattr(error, 'problem', None) or error}", 100) + position


def parse_toml(text: str) -> None:
    import tomllib

    if _ENDLESS_KEY.search(text):
        raise BrokenError("a TOML key has too many parts")
    try:
        if not tomllib.loads(text):
            raise BrokenError("no TOML key")
    except RecursionError:
        raise BrokenError("the TOML is nested too deeply") from None
    except ValueError as error:
        raise BrokenError(
            f"invalid TOML: {_lower(one_line(str(error), 100))}"
        ) from None


def parse_python(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape like "\d", say
            return ast.parse(text)
    except SyntaxError as error:
        position = f" (line {error.lineno})" if error.lineno else ""
        raise BrokenError(
            f"invalid Python: {one_line(error.msg, 100)}{position}"
        ) from None
    except (RecursionError, MemoryError):
        raise BrokenError("the Python code is nested too deeply") from None
    except ValueError as error:
        raise BrokenError(f"invalid Python: {one_line(str(error), 100)}") from None


def parse_shell(text: str) -> None:
    """``bash -n`` reads and runs nothing; no variable can make it source a file."""
    try:
        process = subprocess.run(
            ["bash", "--norc", "--noprofile", "-n"],
            executable=shutil.which("bash"),
            input=text.encode("utf-8", "replace"),
            env={"LC_ALL": "C"},
            capture_output=True,
            timeout=real_seconds_left(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise out_of_time() from None
    if process.returncode:
        message = process.stderr.decode("utf-8", "replace").split("\n")[0]
        raise BrokenError(f"invalid shell: {one_line(message, 100) or 'bash failed'}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "python": parse_python,
    "json": parse_json,
    "toml": parse_toml,
    "yaml": parse_yaml,
    "shell": parse_shell,
}
