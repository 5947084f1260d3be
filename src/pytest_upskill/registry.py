"""The features by name. Each is a folder of ``features/`` that holds all of it.

A feature says in its ``__init__.py`` what it adds, as a `Feature`: plain data that
imports nothing slow. No other package imports a feature; what is needed of one is
found here. To remove a feature, delete its folder and its name in `FEATURES`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal

# In the order of their commands, tables and tabs.
FEATURES: Final = (
    "matrix",
    "ablate",
    "judge",
    "drift",
    "reference",
    "queries",
    "accepted",
    "history",
    "junit",
    "recording",
    "reports",
    "annotations",
    "python_tests",
    "cluster",
    "commands",
    "mcp",
)
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
    kinds: tuple[Any, ...] = ()  # each a `CaseKind`
    # The module and class of each agent, by its name
    agents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    reader: str = ""  # the module that reads them, see skills/suites/beside.py
    # "module:class" of the `PartReader` of what stands around the trials of cases
    part: str = ""
    checks: str = ""  # the module with KINDS of checks, and ABOUT for editors
    # "module:function" that finds mistakes in its cases, of suites, folder and name
    lint: str = ""
    # "module:class" of each `Section` of the results, by its name
    sections: Mapping[str, str] = field(default_factory=dict)
    # The modules that show them, by the same names, and those of its kinds of cases:
    # lines(section, look) on a terminal, block(section, most) in Markdown and on the
    # page; of kinds, block is for the page, and points(section) are their last lines
    views: Mapping[str, str] = field(default_factory=dict)
    plugin: str = ""  # "module:class" of its pytest plugin in a run that tests skills
    # "module:class": what carries out trials of agents on other machines, if the
    # settings of a run name some
    trials: str = ""
    # "module:function": how the results of a run compare with what was accepted
    compare: str = ""
    # "module:function": the results that it keeps in the folder of a skill, by model
    # and case
    kept: str = ""


def features() -> dict[str, Feature]:
    return {name: import_module(f"{_FOLDER}.{name}").FEATURE for name in FEATURES}


def section_types() -> tuple[Any, ...]:
    """The classes of the sections that features add to the results."""
    return tuple(
        _load(name, address)
        for name, feature in features().items()
        for address in feature.sections.values()
    )


def kind_section_types() -> list[Any]:
    """The classes of the sections that tell of kinds of cases."""
    return [
        _load(name, kind.section)
        for name, feature in features().items()
        for kind in feature.kinds
        if kind.section
    ]


def agents() -> dict[str, tuple[str, str]]:
    """The module and class of each agent of a feature, by its name."""
    addresses: dict[str, tuple[str, str]] = {}
    for feature in features().values():
        addresses.update(feature.agents)
    return addresses


@cache
def kind_readers() -> tuple[Any, ...]:
    """The modules that read cases of features."""
    return tuple(
        import_module(f"{_FOLDER}.{name}.{feature.reader}")
        for name, feature in features().items()
        if feature.reader
    )


def part_readers() -> list[Any]:
    """The classes that read what stands around the trials of cases."""
    return [
        _load(name, feature.part)
        for name, feature in features().items()
        if feature.part
    ]


def check_modules() -> list[Any]:
    """The modules of features with kinds of checks."""
    return [
        import_module(f"{_FOLDER}.{name}.{feature.checks}")
        for name, feature in features().items()
        if feature.checks
    ]


def lint_rules() -> list[Any]:
    """The functions that find mistakes in cases of features."""
    return [
        _load(name, feature.lint)
        for name, feature in features().items()
        if feature.lint
    ]


def view_of(section: str) -> Any:
    """The module that shows a section, by the name of the section."""
    for name, feature in features().items():
        if section in feature.views:
            return import_module(f"{_FOLDER}.{name}.{feature.views[section]}")
    raise KeyError(section)


def comparing() -> Iterator[Any]:
    """The functions that compare the results of a run with what was accepted."""
    for name, feature in features().items():
        if feature.compare:
            yield _load(name, feature.compare)


def keeping() -> Iterator[Any]:
    """The functions that read results kept in the folder of a skill."""
    for name, feature in features().items():
        if feature.kept:
            yield _load(name, feature.kept)


def run_plugins() -> dict[str, object]:
    """New pytest plugins for a run, by the names that ``-p no:`` takes."""
    return {
        f"upskill-{name}": _load(name, feature.plugin)()
        for name, feature in features().items()
        if feature.plugin
    }


def open_remote(*run: Any) -> Any:
    """What carries out the trials of a run on other machines."""
    for name, feature in features().items():
        if feature.trials:
            return _load(name, feature.trials)(*run)
    return None


def _load(feature: str, address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(import_module(f"{_FOLDER}.{feature}.{module}"), name)
