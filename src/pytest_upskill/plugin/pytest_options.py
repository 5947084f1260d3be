"""The settings as options of pytest: added to its parser, read from its configuration,
and named in messages. Every pytest run imports this module.
"""

import argparse
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from ..errors import SettingsError, UpskillError, spelling
from ..options import OFF_SWITCH, PATH, PATHS, PYTEST, options_of
from ..settings import Gates, Settings

OPTIONS: Final = options_of(PYTEST, Settings, Gates)
FLAGS: Final = {setting: option.flag for setting, option in OPTIONS.items()}
spell: Final = spelling(FLAGS)
_BY_FLAG: Final = {option.flag: option for option in OPTIONS.values()}
_MOST_USED: Final = ("skill_paths", "models", "runs", "agents", "html_file")
_OF_AGENTS: Final = {
    setting for setting, option in OPTIONS.items() if option.group == "agents"
}


def add_options(parser: pytest.Parser) -> None:
    """In a group with a heading each, the most used ones first."""
    for setting in dict.fromkeys((*_MOST_USED, *OPTIONS)):
        option = OPTIONS[setting]
        text = option.help_text()
        text = f"{text[0].upper()}{text[1:]}."
        if option.flags:
            arguments = {"dest": _dest(setting), "default": None, "help": text}
            name = "most used" if setting in _MOST_USED else option.group
            group = parser.getgroup(f"upskill {name}", f"pytest-upskill, {name}")
            group.addoption(*option.flags, **arguments, **option.arguments())
            text = f"The same as {option.flag}."
        parser.addini(option.ini, text, type=option.kind.ini_type, default=None)


def require_known_flags(parser: pytest.Parser, args: Sequence[str]) -> None:
    """UsageError with the right spelling of an option of ours that is not there."""
    if not any(word.startswith("--skill") for word in args):
        return

    from .._util.texts import guess

    _, unknown = parser.parse_known_and_unknown_args([*args])
    for word in unknown:
        flag = word.partition("=")[0]
        if flag.startswith("--skill"):
            raise pytest.UsageError(f"{flag}: no such option{guess(flag, _BY_FLAG)}")


def require_mark(config: pytest.Config) -> None:
    """UsageError if -m, which selects by marks, names a model."""
    from ..models.providers import ALIASES, HOSTED

    name: str = config.getoption("markexpr", "").strip()
    marks = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    provider, colon, _ = name.partition(":")
    is_model = name in (*ALIASES, "local") or (colon and provider in (*HOSTED, "local"))
    if is_model and name not in marks:
        raise pytest.UsageError(
            f"-m {name}: -m selects by marks. For a model: --model {name}"
        )


def _dest(setting: str) -> str:
    return f"upskill_{setting}"


def cli_value(config: pytest.Config, setting: str) -> Any:
    """The value on the command line, None if it is not there."""
    return config.getoption(_dest(setting), None)


def early_cli_value(config: pytest.Config, setting: str) -> Any:
    """The same before pytest has set its options."""
    return getattr(config.known_args_namespace, _dest(setting), None)


def cli_flags(config: pytest.Config, settings: Container[str] = OPTIONS) -> list[str]:
    """The options on the command line, of these settings."""
    return [
        FLAGS[name]
        for name in OPTIONS
        if name in settings and cli_value(config, name) is not None
    ]


def cli_gates(config: pytest.Config) -> list[str]:
    return cli_flags(config, {gate.name for gate in fields(Gates)} - {"confident"})


def cli_agent_flags(config: pytest.Config, *, has_triggers: bool) -> list[str]:
    """The options on the command line that only agents use.

    A model that chooses a skill, for triggers, chooses among other skills, too.
    """
    for_triggers = {"with_skills", "noise"} if has_triggers else set[str]()
    return cli_flags(config, _OF_AGENTS - {"agents"} - for_triggers)


def in_ini(config: pytest.Config, setting: str) -> Any:
    """The value in the ini file or of -o, None if it is not there."""
    option = OPTIONS[setting]
    entry = ini_entries(config).get(option.ini)
    try:
        # In TOML, pytest takes no number for a text, and no whole one for a float.
        is_int = entry and type(entry.value) is int and not option.is_switch
        value = entry.value if entry and is_int else config.getini(option.ini)
        if option.kind == OFF_SWITCH and value is not None:
            return not value
        if isinstance(value, str | int | float) and not option.is_switch:
            return option.kind.parse(str(value)) if value != "" else None
        return value
    except argparse.ArgumentTypeError as error:
        problem = str(error)
    except (TypeError, ValueError, pytest.UsageError):
        problem = f"{entry.value!r} is not {option.kind.noun}" if entry else ""
    source = "-o" if entry and entry.origin == "override" else config.inipath
    raise pytest.UsageError(f"{source}: {option.ini}: {problem}")


def ini_entries(config: pytest.Config) -> Mapping[str, Any]:
    """What the ini file and -o set, each with its ``value`` and ``origin``."""
    # pytest 9.0 has it under the name without the underscore, which later ones warn of.
    name = "_inicfg" if hasattr(config, "_inicfg") else "inicfg"
    entries: Mapping[str, Any] = getattr(config, name)
    return entries


def is_of_ini_file(config: pytest.Config, setting: str) -> bool:
    return cli_value(config, setting) is None and in_ini(config, setting) not in (
        None,
        [],
        (),
    )


def value_of(config: pytest.Config, setting: str) -> Any:
    """The value on the command line, else in the ini file, else None;
    paths are absolute.
    """
    value, base = cli_value(config, setting), config.invocation_params.dir
    if value is None:
        value = in_ini(config, setting)
        base = config.inipath.parent if config.inipath else config.rootpath
    if value is None:
        return None
    kind = OPTIONS[setting].kind
    if kind == PATHS:
        return tuple(absolute(base, path) for path in value)
    if kind == PATH:
        return absolute(base, value)
    return tuple(dict.fromkeys(value)) if kind.repeats else value


def absolute(base: Path, path: str | Path) -> Path:
    """A path as pytest writes those of its nodes: without dots, links unresolved."""
    return Path(os.path.abspath(base / Path(path).expanduser()))  # noqa: PTH100


def cli_words(config: pytest.Config, *settings: str) -> list[str]:
    """These settings as they are on the command line."""
    values = [
        (OPTIONS[name], cli_value(config, name)) for name in OPTIONS if name in settings
    ]
    return [
        word
        for option, value in values
        if value is not None
        for word in option.words(value)
    ]


def message_of(error: UpskillError, config: pytest.Config) -> str:
    """An error with flags for settings, and the ini file if the
    wrong value is from there.
    """
    from .._util.keys import without_keys
    from .._util.texts import harmless

    if isinstance(error, SettingsError):
        message = error.message(spell, lambda setting: _origin(config, setting))
    else:
        message = error.message(spell)
    return harmless(without_keys(message))


def _origin(config: pytest.Config, setting: str) -> str:
    """The ini file and the key, if the value of a setting is from there."""
    option = OPTIONS.get(setting)
    if not option or not is_of_ini_file(config, setting):
        return ""
    return f"{config.inipath or '-o'}: {option.ini}"
