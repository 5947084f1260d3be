"""One option: its flag, its ini key, and how both are read."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

import pytest


def _not_empty(text: str) -> str:
    if not text.strip():  # mostly an unset variable of a CI job
        raise argparse.ArgumentTypeError("the value is empty")
    return text


@dataclass(frozen=True)
class Kind:
    """What an option's value may be."""

    wanted: str  # for errors: "… is not WANTED"
    ini_type: Any  # pytest's type of the ini key
    convert: Callable[[str], Any] = _not_empty
    converts_ini: bool = False  # the ini value is converted too
    alone: str = ""  # what the option means without a value, if it may have none


def _number_kind(wanted: str, fits: Callable[[float], bool]) -> Kind:
    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = nan
        if not (isfinite(number) and fits(number)):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return number

    return Kind(wanted, "float", convert, converts_ini=True)


def _whole(text: str) -> int:
    number = int(text) if text.strip().isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not {WHOLE.wanted}")
    return number


def _count(text: str) -> int:
    if not text.strip().isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not {COUNT.wanted}")
    return int(text)


def _choice_kind(*choices: str) -> Kind:
    *most, last = choices
    wanted = f"{', '.join(most)} or {last}"

    def convert(text: str) -> str:
        if text.strip() not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return text.strip()

    return Kind(wanted, "string", convert, converts_ini=True)


def _runs(text: str) -> tuple[int, int]:
    """The first and the most runs: 3..12, or the same number twice."""
    first, dots, most = text.partition("..")
    try:
        runs = _whole(first), _whole(most if dots else first)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {RUNS.wanted}") from None
    if runs[0] > runs[1]:
        raise argparse.ArgumentTypeError(f"{text!r}: the smaller number comes first")
    return runs


def _batch(text: str) -> str:
    if text.strip() not in ("wait", "submit"):
        swallowed = "paths go before it, or write --skill-batch=wait"
        raise argparse.ArgumentTypeError(f"{text!r} is not {BATCH.wanted} ({swallowed})")
    return text.strip()


BATCH: Final = Kind("wait or submit", "string", _batch, converts_ini=True, alone="wait")
PATHS: Final = Kind("a list of paths", "paths")
NAMES: Final = Kind("a list of names", "linelist")
PATH: Final = Kind("a path", "string")
TEXT: Final = Kind("a text", "string")
SWITCH: Final = Kind("true or false", "bool")
WHOLE: Final = Kind("a whole number of 1 or more", "int", _whole, converts_ini=True)
COUNT: Final = Kind("a whole number of 0 or more", "int", _count, converts_ini=True)
RUNS: Final = Kind(
    "a whole number of 1 or more, or two of them as in '3..12'",
    "string",
    _runs,
    converts_ini=True,
)
NUMBER: Final = _number_kind("a number", lambda _: True)
POSITIVE: Final = _number_kind("a number above 0", lambda number: number > 0)
SHARE: Final = _number_kind("a number above 0 and up to 1", lambda number: 0 < number <= 1)
RATE: Final = _number_kind("a number between 0 and 1", lambda number: 0 <= number <= 1)
SCORE: Final = _choice_kind("pass", "checks")
TRIGGERS: Final = _choice_kind("only", "also", "off")
SANDBOX: Final = _choice_kind("auto", "bwrap", "docker", "podman", "none")
LIFT: Final = _number_kind(
    "a number between -1 and 1 (0.2 is 20 points)", lambda number: -1 <= number <= 1
)


def ini_entries(config: pytest.Config) -> Mapping[str, Any]:
    """What the ini file and -o set, each with its ``value`` and ``origin``."""
    # pytest 9.0 has it under the name without the underscore, which later ones warn of.
    name = "_inicfg" if hasattr(config, "_inicfg") else "inicfg"
    entries: Mapping[str, Any] = getattr(config, name)
    return entries


def ini_value(config: pytest.Config, key: str, kind: Kind) -> Any:
    """The value in the ini file, None if it is not there."""
    try:
        entry = ini_entries(config).get(key)
        if kind.converts_ini and entry and type(entry.value) is int:  # TOML, without quotes
            return kind.convert(str(entry.value))
        value = config.getini(key)
        return kind.convert(str(value)) if kind.converts_ini and value is not None else value
    except (TypeError, ValueError, pytest.UsageError):
        problem = f"{ini_entries(config)[key].value!r} is not {kind.wanted}"
    except argparse.ArgumentTypeError as error:
        problem = str(error)
    where = "-o" if ini_entries(config)[key].origin == "override" else config.inipath
    raise pytest.UsageError(f"{where}: {key}: {problem}")


@dataclass(frozen=True)
class Option:
    """An option of the command line that is an ini key too."""

    setting: str  # a field of Settings or of Gates
    flag: str
    kind: Kind
    metavar: str | None
    help: str
    default: Any = None
    ini: str = field(default="", kw_only=True)  # made from the flag if empty

    def __post_init__(self) -> None:
        ini = self.ini or self.flag.removeprefix("--").replace("-", "_")
        object.__setattr__(self, "ini", ini)

    @property
    def dest(self) -> str:
        return f"upskill_{self.ini}"

    def add_to(self, group: pytest.OptionGroup, parser: pytest.Parser) -> None:
        how: dict[str, Any] = {"action": "store_true"}
        if self.kind != SWITCH:
            action = "append" if self.kind in (PATHS, NAMES) else "store"
            how = {"action": action, "metavar": self.metavar, "type": self.kind.convert}
        if self.kind.alone:
            how |= {"nargs": "?", "const": self.kind.alone}
        group.addoption(self.flag, dest=self.dest, default=None, help=self.help, **how)
        parser.addini(self.ini, f"The same as {self.flag}.", type=self.kind.ini_type, default=None)

    def value(self, config: pytest.Config) -> Any:
        """The value of the command line, else of the ini file, else the default."""
        given, base = config.getoption(self.dest), config.invocation_params.dir
        if given is None:
            given = self.in_ini(config)
            base = config.inipath.parent if config.inipath else config.rootpath
        if self.kind == SWITCH:
            return bool(given)
        if given is None or (self.kind == TEXT and not given):
            return self.default
        if self.kind == PATHS:
            return [absolute(base, path) for path in given]
        return absolute(base, given) if self.kind == PATH else given

    def in_ini(self, config: pytest.Config) -> Any:
        return ini_value(config, self.ini, self.kind)

    def is_given(self, config: pytest.Config) -> bool:
        return config.getoption(self.dest) is not None

    def words_of(self, config: pytest.Config) -> list[str]:
        """As on the command line; none if it is not there."""
        given = config.getoption(self.dest)
        if not given:
            return []
        if self.kind == SWITCH:
            return [self.flag]
        values = given if isinstance(given, list) else [given]
        return [word for value in values for word in (self.flag, _written(value))]

    def is_of_ini_file(self, config: pytest.Config) -> bool:
        return config.getoption(self.dest) is None and bool(self.in_ini(config))


def switch(setting: str, flag: str, help: str) -> Option:
    """An option without a value."""
    return Option(setting, flag, SWITCH, None, help)


def _written(value: Any) -> str:
    """A converted value as a user writes it."""
    if isinstance(value, tuple):
        first, most = value
        return f"{first}" if first == most else f"{first}..{most}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def absolute(base: Path, path: str | Path) -> Path:
    """A path as pytest writes those of its nodes: without dots, links unresolved."""
    return Path(os.path.abspath(base / Path(path).expanduser()))  # noqa: PTH100
