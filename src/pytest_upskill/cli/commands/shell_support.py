"""Support for shells and editors: ``completion``, so that Tab needs no Python, and ``schema``."""

import argparse
import shlex
from collections.abc import Iterator
from typing import Any, Final

import shtab

from ...checks.skill_meta_schema import schema_text
from ...models.providers import ALIASES, HOSTED
from ..command_table import make_parser

_SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = frozenset({"FILE", "PATH"})
_FOLDERS: Final = frozenset({"DIR", "SKILL"})
_NAMED_BY_YOU: Final = ("generic", "azure")
_MODELS: Final = frozenset({"NAME", "MODEL"})


def add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def run_completion(args: argparse.Namespace) -> tuple[str, int]:
    parser = make_parser()
    for action in _actions(parser):
        completed = _completed(action)
        if completed is not None:
            action.complete = completed  # type: ignore[attr-defined]
    return shtab.complete(parser, args.shell), 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action


def _completed(action: argparse.Action) -> Any:
    """How an argument is completed, by its metavar."""
    if action.metavar in _FILES:
        return shtab.FILE
    if action.metavar in _FOLDERS:
        return shtab.DIRECTORY
    return _models() if action.metavar in _MODELS else None


def _models() -> dict[str, Any]:
    """Complete names only, since the shell adds a space."""
    examples = [p.example for name, p in HOSTED.items() if name not in _NAMED_BY_YOU]
    names = [*ALIASES, "local", *examples]
    words = " ".join(names)
    return {
        "bash": "_pytest_upskill_models",
        "zsh": f"({words})".replace(":", "\\:"),  # a bare colon would end the list
        "fish": words,
        "preamble": {
            "bash": f'_pytest_upskill_models() {{ compgen -W {shlex.quote(words)} -- "$1"; }}'
        },
    }


def add_schema_arguments(_: argparse.ArgumentParser) -> None:
    """None."""


def run_schema(_: argparse.Namespace) -> tuple[str, int]:
    return schema_text().rstrip("\n"), 0
