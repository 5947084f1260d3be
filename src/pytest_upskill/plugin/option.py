"""One option of the command line with its twin in the ini file: how both are read."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal

import pytest


def _not_empty(text: str) -> str:
    if not text.strip():  # an unset variable of a CI job, most often
        raise argparse.ArgumentTypeError("nothing is given")
    return text


def _at_least_one(text: str) -> int:
    number = int(text) if text.strip().isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


def _runs(text: str) -> tuple[int, int]:
    """How many at first and at most: 3..12, or the same number twice."""
    first, dots, most = text.partition("..")
    try:
        runs = _at_least_one(first), _at_least_one(most if dots else first)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {_WANTED['runs']}") from None
    if runs[0] > runs[1]:
        raise argparse.ArgumentTypeError(f"{text!r} has the greater number first")
    return runs


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most 1")
    return number


def _lift(text: str) -> float:
    number = _number(text)
    if not -1 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not within -1 and 1; 0.2 is 20 points")
    return number


Kind = Literal[
    "paths", "names", "path", "text", "int", "runs", "float", "number", "lift", "share", "switch"
]
INI_TYPES: Final[dict[Kind, Any]] = {
    "paths": "paths",
    "names": "linelist",
    "path": "string",
    "text": "string",
    "int": "int",
    # Before pytest 9.2 a TOML file has to put it in quotes.
    "runs": int | str if pytest.version_tuple >= (9, 2) else "string",
    "float": "float",
    "number": "float",
    "lift": "float",
    "share": "float",
    "switch": "bool",
}
_CONVERTERS: Final[dict[Kind, Callable[[str], Any]]] = {
    "int": _at_least_one,
    "runs": _runs,
    "float": _positive,
    "number": _number,
    "lift": _lift,
    "share": _share,
}
_WANTED: Final[dict[Kind, str]] = {
    "paths": "a list of paths",
    "names": "a list of names",
    "path": "a path",
    "text": "a text",
    "int": "a whole number of 1 or more",
    "runs": "a whole number of 1 or more, or two of them as in '3..12'",
    "float": "a number above 0",
    "number": "a number",
    "lift": "a number within -1 and 1; 0.2 is 20 points",
    "share": "a number above 0 and at most 1",
    "switch": "true or false",
}


def written(config: pytest.Config, key: str, kind: Kind) -> Any:
    """What the ini file says, in its type."""
    try:
        value = config.getini(key)
        if value is not None and kind in _CONVERTERS:
            value = _CONVERTERS[kind](str(value))
    except (TypeError, ValueError, pytest.UsageError, argparse.ArgumentTypeError):
        problem = f"this is not {_WANTED[kind]}"
        raise pytest.UsageError(f"{config.inipath}: {key}: {problem}") from None
    return value


@dataclass(frozen=True)
class Option:
    """One option of the command line and its twin in the ini file."""

    setting: str  # a field of Settings or of Gates
    flag: str
    kind: Kind
    metavar: str | None
    help: str
    default: Any = None
    ini: str = ""  # made from the flag if empty

    def __post_init__(self) -> None:
        ini = self.ini or self.flag.removeprefix("--").replace("-", "_")
        object.__setattr__(self, "ini", ini)

    @property
    def dest(self) -> str:
        return f"upskill_{self.ini}"

    def add_to(self, group: pytest.OptionGroup, parser: pytest.Parser) -> None:
        how: dict[str, Any] = {"action": "store_true"}
        if self.kind != "switch":
            action = "append" if self.kind in ("paths", "names") else "store"
            convert = _CONVERTERS.get(self.kind, _not_empty)
            how = {"action": action, "metavar": self.metavar, "type": convert}
        group.addoption(self.flag, dest=self.dest, default=None, help=self.help, **how)
        parser.addini(
            self.ini, f"The same as {self.flag}.", type=INI_TYPES[self.kind], default=None
        )

    def value(self, config: pytest.Config) -> Any:
        """The value of the command line, else of the ini file, else the default."""
        given, base = config.getoption(self.dest), config.invocation_params.dir
        if given is None:
            given = self.written(config)
            base = config.inipath.parent if config.inipath else config.rootpath
        if self.kind == "switch":
            return bool(given)
        if given is None or (self.kind == "text" and not given):
            return self.default
        if self.kind == "paths":
            return [absolute(base, path) for path in given]
        return absolute(base, given) if self.kind == "path" else given

    def written(self, config: pytest.Config) -> Any:
        return written(config, self.ini, self.kind)

    def is_given(self, config: pytest.Config) -> bool:
        return config.getoption(self.dest) is not None

    def is_of_ini_file(self, config: pytest.Config) -> bool:
        return config.getoption(self.dest) is None and bool(self.written(config))


def absolute(base: Path, path: str | Path) -> Path:
    """A path as pytest writes those of its nodes: no dots in it, links as they are."""
    return Path(os.path.abspath(base / Path(path).expanduser()))  # noqa: PTH100
