"""The features by name. Each is a folder of ``features/`` that holds all of it.

A feature says in its ``__init__.py`` what it adds, as a `Feature`: plain data that
imports nothing slow. No other package imports a feature; what is needed of one is
found here. To remove a feature, delete its folder and its name in `FEATURES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal

# In the order of their commands, tables and tabs.
FEATURES: Final = ("drift", "routing", "annotations")
_FOLDER: Final = f"{__package__}.features"

CommandGroup = Literal["test", "write", "study", "look"]


@dataclass(frozen=True)
class Take:
    """A setting that a command takes, and what is different there."""

    setting: str
    changes: Mapping[str, Any]  # to the fields of Option


def take(setting: str, flags: str, **changes: Any) -> Take:
    """A command takes the setting by these flags."""
    return Take(setting, {"flags": tuple(flags.split()), **changes})


@dataclass(frozen=True)
class Command:
    """A command as its help shows it, and the settings that it takes."""

    name: str
    group: CommandGroup
    help: str
    example: str
    status: str
    module: str = ""  # if it is not the one of its name in cli/commands/
    runs_pytest: bool = False  # arguments after -- are for pytest
    # Commands of its own; a word that is none is for the first
    inner: tuple[str, ...] = ()
    takes: tuple[Take, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What a feature adds; modules and classes are loaded when they are needed."""

    commands: tuple[Command, ...] = ()
    section: str = ""  # "module:class" of its `Section` of the results
    # The module that shows this section: lines(section, look) on a terminal,
    # block(section, most) in Markdown and on the page
    view: str = ""
    plugin: str = ""  # "module:class" of its pytest plugin in a run that tests skills


def features() -> dict[str, Feature]:
    return {name: import_module(f"{_FOLDER}.{name}").FEATURE for name in FEATURES}


def section_types() -> tuple[Any, ...]:
    """The classes of the sections that features add to the results."""
    return tuple(
        _load(name, feature.section)
        for name, feature in features().items()
        if feature.section
    )


def view_of(name: str) -> Any:
    """The module that shows the section of a feature."""
    return import_module(f"{_FOLDER}.{name}.{features()[name].view}")


def run_plugins() -> dict[str, object]:
    """New pytest plugins for a run, by the names that ``-p no:`` takes."""
    return {
        f"upskill-{name}": _load(name, feature.plugin)()
        for name, feature in features().items()
        if feature.plugin
    }


def _load(feature: str, address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(import_module(f"{_FOLDER}.{feature}.{module}"), name)
