"""How a setting is written as an option of pytest or of a command.

A setting is declared once, as a field of ``Settings``, ``Gates`` or ``TeachSettings``::

    max_turns: int = setting(
        whole(1), "agents", "maximum turns of an agent",
        "--skill-max-turns",
        at("generate refine", "--max-turns"),
        default=30,
    )

pytest's option and ini key, the arguments of the commands, their help, the
limits in Python and the tables of the documentation follow from it. Every
pytest run imports this module.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, overload

from .registry import Take

Value = TypeVar("Value")
Group = Literal[
    "skills and cases",
    "models",
    "agents",
    "runs and attempts",
    "answers",
    "budget",
    "grading",
    "gates",
    "reports",
    "output",
]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)
HOUR: Final = 3600.0  # seconds
DAY: Final = 24 * HOUR
FOREVER: Final = 1e11  # seconds: finite, so that JSON has it
_UNITS: Final = {"h": HOUR, "d": DAY, "w": 7 * DAY}
# The place of pytest's own options, beside the names of commands
PYTEST: Final = "pytest"


@dataclass(frozen=True)
class Kind:
    """What the value of a setting may be."""

    noun: str  # for errors: "'x' is not NOUN"
    metavar: str | None
    ini_type: Any  # pytest's type of the ini key
    parse: Callable[[str], Any]  # raises ArgumentTypeError
    allows: Callable[[Any], bool] = lambda _: True  # a value that was given in Python
    repeats: bool = False
    constant: Any = None  # the value that a switch sets
    default: Any = None  # of settings that name no other


def _text(text: str) -> str:
    if not text.strip():  # mostly an unset variable of a CI job
        raise argparse.ArgumentTypeError("the value is empty")
    return text


def _path(text: str) -> Path:
    return Path(_text(text))


def _checked(
    noun: str, metavar: str, convert: type[int | float], allows: Callable[[Any], bool]
) -> Kind:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not allows(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun}")
        return value

    return Kind(noun, metavar, convert.__name__, parse, allows)


def whole(low: int, high: float = inf) -> Kind:
    """Whole numbers within limits."""
    limits = f"from {low:,} to {high:,}" if high < inf else f"of {low} or more"
    return _checked(
        f"a whole number {limits}", "N", int, lambda value: low <= value <= high
    )


def number(
    noun: str, low: float = -inf, high: float = inf, *, above: bool = False
) -> Kind:
    """Numbers within limits; with ``above``, the lower limit itself is not allowed."""

    def allows(value: float) -> bool:
        return isfinite(value) and low <= value <= high and not (above and value == low)

    return _checked(noun, "R", float, allows)


def choice(*choices: str) -> Kind:
    """One of some words."""
    noun = f"{', '.join(choices[:-1])} or {choices[-1]}"

    def parse(text: str) -> str:
        if text.strip() not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun}")
        return text.strip()

    metavar = "|".join(choices)
    return Kind(noun, metavar, "string", parse, choices.__contains__)


def _age(text: str) -> float:
    if text.strip() == "forever":
        return FOREVER
    unit = _UNITS.get(text.strip()[-1:], 0.0)
    try:
        seconds = unit * float(text.strip()[:-1])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < FOREVER:
        raise argparse.ArgumentTypeError(f"{text!r} is not {AGE.noun}")
    return seconds


def age_words(seconds: float) -> str:
    """An age as a user writes it."""
    if seconds >= FOREVER:
        return "forever"
    unit = next((unit for unit in ("w", "d") if not seconds % _UNITS[unit]), "h")
    return f"{seconds / _UNITS[unit]:.15g}{unit}"


AGE: Final = Kind("an age such as 12h, 1d or 2w, or forever", "AGE", "string", _age)
TEXT: Final = Kind("a text", "TEXT", "string", _text)
PATH: Final = Kind("a path", "FILE", "string", _path)
NAMES: Final = Kind(
    "a list of names", "NAME", "linelist", _text, repeats=True, default=()
)
PATHS: Final = Kind("a list of paths", "PATH", "paths", _path, repeats=True, default=())
SWITCH: Final = Kind("true or false", None, "bool", bool, constant=True, default=False)
OFF_SWITCH: Final = Kind(
    "true or false", None, "bool", bool, constant=False, default=True
)
POSITIVE: Final = number("a number above 0", 0, above=True)
SHARE: Final = number("a number above 0 and up to 1", 0, 1, above=True)


def lift(*, above_zero: bool = False) -> Kind:
    """A difference of rates, up to 1, or in points: 20 is 0.2."""
    low, condition = (0, " above 0") if above_zero else (-100, "")
    written_as = number(
        f"a lift{condition} such as 20 (points) or 0.2", low, 100, above=above_zero
    )

    def parse(text: str) -> float:
        value: float = written_as.parse(text)
        return value if abs(value) <= 1 else value / 100

    return Kind(written_as.noun, "R", "float", parse, lambda value: -1 <= value <= 1)


RATE: Final = number("a number between 0 and 1", 0, 1)


@dataclass(frozen=True)
class Option:
    """A setting as pytest or a command takes it."""

    setting: str  # the name of the field
    flags: tuple[str, ...]  # none for a key that only the ini file has
    kind: Kind
    group: Group
    help: str  # starts in lower case, and has no default
    metavar: str | None = None
    default: Any = None
    default_text: str = ""  # for help, where the default is None
    ini: str = ""
    required: bool = False
    config: str | None = None  # the field of UpskillConfig that is its default

    @property
    def flag(self) -> str:
        return next((flag for flag in self.flags if flag.startswith("--")), self.ini)

    @property
    def is_switch(self) -> bool:
        return self.kind in (SWITCH, OFF_SWITCH)

    @property
    def default_words(self) -> str:
        """The default as a user writes it; empty if there is none."""
        if self.default_text or self.is_switch or self.default in (None, ()):
            return self.default_text
        if self.kind.repeats:
            return ", ".join(map(str, self.default))
        return (
            f"{self.default:.2g}"
            if isinstance(self.default, float)
            else written(self.default)
        )

    def help_text(self) -> str:
        notes = ["repeatable"] if self.kind.repeats else []
        notes += [f"default: {self.default_words}"] if self.default_words else []
        text = f"{self.help} ({'; '.join(notes)})" if notes else self.help
        return text.replace("%", "%%")

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``add_argument``; the value is None
        if the option is not given.
        """
        if self.is_switch:
            return {"action": "store_const", "const": self.kind.constant}
        metavar = self.metavar or self.kind.metavar
        action = "append" if self.kind.repeats else "store"
        return {"action": action, "metavar": metavar, "type": self.kind.parse}

    def words(self, value: Any) -> list[str]:
        """The option with this value, as on the command line."""
        if not self.flags:
            text = written(value.absolute() if isinstance(value, Path) else value)
            return ["-o", f"{self.ini}={text}"]
        if self.is_switch:
            return [self.flag]
        values = value if self.kind.repeats else [value]
        return [word for value in values for word in (self.flag, written(value))]


def written(value: Any) -> str:
    """A parsed value as a user writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Place:
    """Commands that take a setting, and what is different there."""

    commands: tuple[str, ...]
    changes: Mapping[str, Any]  # to the fields of Option


def at(commands: str, flags: str, **changes: Any) -> Place:
    """These commands take the setting by these flags."""
    return Place(tuple(commands.split()), {"flags": tuple(flags.split()), **changes})


@overload
def setting(
    kind: Kind,
    group: Group,
    help: str,
    *places: str | Place,
    default: Value,
    ini: str = "",
    **details: Any,
) -> Value: ...


@overload
def setting(
    kind: Kind,
    group: Group,
    help: str,
    *places: str | Place,
    ini: str = "",
    **details: Any,
) -> Any: ...


def setting(
    kind: Kind,
    group: Group,
    help: str,
    *places: str | Place,
    ini: str = "",
    **details: Any,
) -> Any:
    """A field of a dataclass, with its options; a place that
    is a text is pytest's flag.
    """
    shared = {
        "kind": kind,
        "group": group,
        "help": help,
        "default": kind.default,
        **details,
    }
    flags = tuple(flag for flag in places if isinstance(flag, str))
    key = ini or "".join(flags).removeprefix("--").replace("-", "_")
    options = {PYTEST: {**shared, "flags": flags, "ini": key}} if key else {}
    for place in places:
        if isinstance(place, Place):
            options |= {
                command: {**shared, **place.changes} for command in place.commands
            }
    # Without the default, which pydantic would read as one of its own settings.
    about = {
        "options": options,
        "shared": shared,
        "kind": kind,
        "group": group,
    }
    return field(default=shared["default"], metadata=about)


def options_of(
    place: str, *tables: type, takes: Sequence[Take] = ()
) -> dict[str, Option]:
    """The options of pytest or of a command, by setting;
    a command may say what it ``takes``.

    They are in the order of their groups; those that tables share come last in each.
    """
    taken = {each.setting: each.changes for each in takes}
    ranked = []
    for table in tables:
        for entry in fields(table):
            about = entry.metadata.get("options", {}).get(place)
            if entry.name in taken:
                about = {**entry.metadata["shared"], **taken[entry.name]}
            if about is not None:
                group = GROUPS.index(entry.metadata["group"])
                is_shared = entry.name not in table.__annotations__
                ranked.append((group, is_shared, Option(entry.name, **about)))
    ranked.sort(key=lambda rank: rank[:2])
    return {option.setting: option for _, _, option in ranked}
