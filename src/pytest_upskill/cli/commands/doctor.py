"""``pytest-upskill doctor``: which sandboxes, agents and keys are there, and whether they work."""

import argparse
import asyncio
import json
import os
import textwrap
from collections.abc import Mapping
from typing import Final

from tabulate import tabulate

from ...agents.names import Roster
from ...agents.port import SandboxKind
from ...agents.probe import STEPS, Probe, probe
from ...agents.sandboxes.choice import NAMES, kind_of
from ...errors import SettingsError
from .models import providers_of

_WORDS: Final = {True: "yes", False: "NO", None: "–"}
_WIDTH: Final = 60  # of a reason, so that tables fit into 80 columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> tuple[str, int]:
    sandboxes = {name: _sandbox(name) for name in NAMES if name not in ("auto", "none")}
    usable = [kind for kind in sandboxes.values() if not isinstance(kind, str)]
    tried = {
        name: asyncio.run(probe(Roster().agent(name), usable[0])) for name in ("loop",) if usable
    }
    works = bool(usable) and all(one.works for one in tried.values())
    problems = {name: kind if isinstance(kind, str) else None for name, kind in sandboxes.items()}
    show = _json if given.json else _text
    return show(problems, tried), 0 if works else 1


def _sandbox(name: str) -> SandboxKind | str:
    """A kind of sandbox that works, or why it does not. Nothing is fetched."""
    try:
        return kind_of(name, may_fetch=False)
    except SettingsError as error:
        return f"{error.problem} {error.hint}".strip()


Problems = Mapping[str, str | None]  # why a sandbox does not work, by its name


def _text(problems: Problems, tried: Mapping[str, Probe]) -> str:
    sandboxes = [
        (name, "yes" if problem is None else f"NO: {_folded(problem)}")
        for name, problem in problems.items()
    ]
    agents = [
        ("version", *(one.version for one in tried.values())),
        *((step, *(_WORDS[one.done[step]] for one in tried.values())) for step in STEPS),
    ]
    parts = [tabulate(sandboxes, ("sandbox", "works"), tablefmt="simple")]
    if tried:
        parts.append(tabulate(agents, ("agent", *tried), tablefmt="simple", disable_numparse=True))
    else:
        parts.append("No agent was tried: agents need a sandbox.")
    parts += [f"{name}: {_folded(one.problem)}" for name, one in tried.items() if one.problem]
    parts.append(tabulate(providers_of(os.environ), ("provider", "key"), tablefmt="simple"))
    return "\n\n".join(parts)


def _folded(problem: str) -> str:
    return textwrap.fill(problem, _WIDTH, break_on_hyphens=False)


def _json(problems: Problems, tried: Mapping[str, Probe]) -> str:
    agents = {
        name: {"version": one.version, **one.done, "problem": one.problem or None}
        for name, one in tried.items()
    }
    keys = dict(providers_of(os.environ))
    return json.dumps({"sandboxes": problems, "agents": agents, "keys": keys}, indent=2)
