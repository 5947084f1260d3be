"""Languages that can be parsed without running anything. Each parser takes a text that a model
wrote, so whatever it is: a text that is broken, or meant to break the parser, is a BrokenError.
"""

import ast
import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from .._util.texts import one_line
from .kind import Said

_MOST_CHARACTERS: Final = 200_000  # some 50,000 tokens; the slow parsers need a second for that
_DEEPEST_YAML: Final = 100
_BASH_SECONDS: Final = 5
# tomllib needs memory by the square of the parts of a dotted key.
_ENDLESS_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}"""
)


class BrokenError(Exception):
    """A text is not what it should be, in words for a reason."""


def too_long(text: str) -> Said | None:
    """What to say of an answer that is too long to be parsed."""
    if len(text) <= _MOST_CHARACTERS:
        return None
    return None, (
        f"the answer has {len(text):,} characters, and is parsed up to {_MOST_CHARACTERS:,}"
    )


def parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BrokenError(f"this is not JSON: {_lower(error.msg)} ({where})") from None
    except RecursionError:
        raise BrokenError("this JSON is nested too deep") from None
    except ValueError as error:
        raise BrokenError(f"this is not JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")


def parse_yaml(text: str) -> None:
    """A mapping or a list: any sentence is YAML too."""
    import yaml

    # Events only: composing nodes overflows the stack of libyaml's binding, and merging keys can
    # fill the memory.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth, documents = 0, 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                documents += depth == 0
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.ScalarEvent) and depth == 0 and event.value:
                raise BrokenError("this is a single value, not a mapping or a list of YAML")
            if depth > _DEEPEST_YAML:
                raise BrokenError("this YAML is nested too deep")
    except yaml.YAMLError as error:
        raise BrokenError(f"this is not YAML: {_yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"this is not YAML: {type(error).__name__}") from None
    if not documents:
        raise BrokenError("there is no mapping or list of YAML in the answer")


def _yaml_problem(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return one_line(f"{getattr(error, 'problem', None) or error}", 100) + where


def parse_toml(text: str) -> None:
    import tomllib

    if _ENDLESS_KEY.search(text):
        raise BrokenError("a key of this TOML has too many parts")
    try:
        if not tomllib.loads(text):
            raise BrokenError("there is no key of TOML in the answer")
    except RecursionError:
        raise BrokenError("this TOML is nested too deep") from None
    except ValueError as error:
        raise BrokenError(f"this is not TOML: {_lower(one_line(str(error), 100))}") from None


def parse_python(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape like "\d", say
            return ast.parse(text)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise BrokenError(f"this is not Python: {one_line(error.msg, 100)}{where}") from None
    except (RecursionError, MemoryError):
        raise BrokenError("this Python is nested too deep") from None
    except ValueError as error:
        raise BrokenError(f"this is not Python: {one_line(str(error), 100)}") from None


def parse_shell(text: str) -> None:
    """``bash -n`` reads and does not run; it gets no variable that could make it run a file."""
    try:
        done = subprocess.run(
            ["bash", "--norc", "--noprofile", "-n"],
            executable=shutil.which("bash"),
            input=text.encode("utf-8", "replace"),
            env={"LC_ALL": "C"},
            capture_output=True,
            timeout=_BASH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BrokenError(f"bash needed more than {_BASH_SECONDS} s to read this") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").split("\n")[0]
        raise BrokenError(f"this is not shell: {one_line(said, 100) or 'bash gave up'}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "python": parse_python,
    "json": parse_json,
    "toml": parse_toml,
    "yaml": parse_yaml,
    "shell": parse_shell,
}
