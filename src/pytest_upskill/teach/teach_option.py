"""An option of the commands that teach: how it is spelled, and what it may be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

TeachCommand = Literal["generate", "refine", "cases", "distill", "triggers", "describe"]
_ALL: Final[tuple[TeachCommand, ...]] = get_args(TeachCommand)
Group = Literal["sources", "models", "cases and attempts", "limits", "output"]


@dataclass(frozen=True)
class Option:
    """How a setting is spelled, and what it may be."""

    flags: tuple[str, ...]
    metavar: str | None  # None: a switch
    help: str
    group: Group
    commands: tuple[TeachCommand, ...] = _ALL
    parse: Callable[[str], Any] = str
    within: tuple[float, float] | None = None
    zero: bool = True  # whether it may be 0, if ``within`` starts there
    config: str | None = None  # the field of UpskillConfig that is its default
    # What --resume does with it: most settings must be the same as before ("same"), some say how
    # far to go and may now go further ("limit"), some do not matter ("free").
    resume: Literal["same", "limit", "free"] = "same"

    @property
    def flag(self) -> str:
        return next(flag for flag in self.flags if flag.startswith("--"))


def as_option(
    *flags: str, metavar: str | None, help: str, group: Group, **more: Any
) -> dict[str, Option]:
    """The metadata of a field that an option sets."""
    return {"option": Option(flags, metavar, help, group, **more)}
