"""``pytest-upskill doctor``: which sandboxes, agents and keys are there,
and whether they work.
"""

import argparse
import asyncio
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..._util.texts import harmless, one_line
from ...agents.agent import Agent
from ...agents.command_agent import CommandAgent
from ...agents.probe import STEPS, Probe, is_installed, probes
from ...agents.roster import Roster
from ...agents.sandboxes.kinds import NAMES, kind_of
from ...agents.sandboxes.sandbox import SandboxKind
from ...agents.task_sandbox import SandboxChoice, choose_sandbox
from ...errors import InputError, SettingsError, shown
from ...models import local
from ...models.providers import HOSTED
from ...reports.columns import Column
from ...reports.terminal.sandbox_table import sandbox_counts, sandbox_table
from ...reports.terminal.tables import table_lines, text_table
from ...skills.kinds import kinds_by_agent
from ...skills.suites.reading import read_suite
from ...skills.task_folders import tasks_at
from ...trials.subject import works_on_model
from ..first_model import logged_in
from ..output import stdout_look
from .models import providers_of

_ANSWERS: Final = {True: "yes", False: "NO", None: "-"}
_WIDTH: Final = 60  # of a reason, so that tables fit into 80 columns
_LONGEST_VERSION: Final = 10
# The steps as heads of narrow columns.
_HEADS: Final = (
    "\nstarts",
    "sees\nskills",
    "opens\none",
    "reads\nfile",
    "runs\nshell",
    "writes\nfile",
    "hides\nkey",
    "no\nnet",
)


def add_doctor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent",
        dest="agents",
        action="append",
        default=[],
        metavar="NAME",
        help="try only this agent (repeatable; default: all that are installed)",
    )
    parser.add_argument(
        "tasks",
        nargs="*",
        type=Path,
        metavar="TASKS",
        help="a task, or a folder of tasks: show which sandbox each would use, and why",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


@dataclass(frozen=True)
class _Findings:
    """What the doctor found. ``sandboxes`` has what keeps each from working,
    if anything does.
    """

    sandboxes: Mapping[str, str | None]
    tried: Mapping[str, Probe]
    missing: Mapping[str, str]  # agents that are not installed: how to install them
    keys: Mapping[str, str]
    logins: Sequence[str]  # providers that can be asked
    own_logins: Mapping[str, str]  # of CLIs, and where they were found

    @property
    def conclusion(self) -> str:
        """What can be run here, and what to do about the rest."""
        working = [name for name, problem in self.sandboxes.items() if not problem]
        if not working:
            agents = "No agent can run: no sandbox works."
        else:
            ready = ", ".join(name for name, probe in self.tried.items() if probe.works)
            state = "Ready" if self.logins else "Ready but for a key"
            place = working[0]
            agents = f"{state}: {ready} in {place}." if ready else "No agent works."
            if not self.tried and not self.missing:  # only others are asked about
                names = ", ".join(kinds_by_agent())
                agents = f"Ready: {names} in {place}, which asks no model."
        broken = ", ".join(
            name for name, probe in self.tried.items() if not probe.works
        )
        broken = f" Not ready: {broken}." if broken and working else ""
        keys = f"Keys: {', '.join(self.logins)}." if self.logins else _without_key()
        if self.own_logins:
            keys = f"Keys: {', '.join(self.logins)}. " if self.logins else ""
            keys += (
                f"Add --skill-login for {' or '.join(self.own_logins)} without a key."
            )
        return f"{agents}{broken} {keys}"

    @property
    def text(self) -> str:
        parts = [text_table(("sandbox", "works"), self._sandbox_rows())]
        if self.tried:
            parts.append("\n".join(self._agent_lines()))
            parts += [
                _folded(f"{name}: {probe.problem}", 78)
                for name, probe in self.tried.items()
                if probe.problem
            ]
        if self.missing:
            parts.append(
                text_table(("not installed", "how to install it"), self.missing.items())
            )
        parts.append(text_table(("provider", "key"), self.keys.items()))
        parts += [
            f"{agent}: logged in ({source})"
            for agent, source in self.own_logins.items()
        ]
        parts.append(_folded(self.conclusion, 78))
        return "\n\n".join(parts)

    @property
    def json(self) -> str:
        agents: dict[str, dict[str, Any]] = {
            name: {
                "installed": True,
                "version": probe.version or None,
                **probe.outcomes,
                "problem": probe.problem or None,
            }
            for name, probe in self.tried.items()
        }
        for name in kinds_by_agent():
            agents[name] = {"installed": True, "version": Roster().version(name)}
        for name, command in self.missing.items():
            agents[name] = {"installed": False, "install": command}
        data = {
            "sandboxes": self.sandboxes,
            "agents": agents,
            "keys": self.keys,
            "logins": self.own_logins,
            "conclusion": self.conclusion,
        }
        return json.dumps(data, indent=2)

    def _sandbox_rows(self) -> list[tuple[str, ...]]:
        return [
            (name, "yes" if problem is None else f"NO: {_folded(problem)}")
            for name, problem in self.sandboxes.items()
        ]

    def _agent_lines(self) -> list[str]:
        look = stdout_look()
        rows = []
        for name, probe in self.tried.items():
            version = one_line(probe.version, _LONGEST_VERSION) or "?"
            outcomes = []
            for step in STEPS:
                outcome = probe.outcomes[step]
                outcomes.append(look.paint(_ANSWERS[outcome], red=outcome is False))
            rows.append([name, version, *outcomes])

        columns = [Column(head) for head in ("\nagent", "\nversion", *_HEADS)]
        return table_lines(columns, rows, look)


def run_doctor(args: argparse.Namespace) -> tuple[str, int]:
    if args.tasks:
        return _tasks(args.tasks, as_json=args.json)
    agents = _agents(args.agents)
    sandboxes = {name: _sandbox(name) for name in NAMES if name not in ("auto", "none")}
    usable = [kind for kind in sandboxes.values() if not isinstance(kind, str)]
    there = [agent for agent in agents if is_installed(agent)]
    tried = asyncio.run(probes(there, usable[0])) if usable else {}
    findings = _Findings(
        {
            name: kind if isinstance(kind, str) else None
            for name, kind in sandboxes.items()
        },
        tried,
        {
            agent.name: agent.install
            for agent in agents
            if isinstance(agent, CommandAgent) and agent not in there
        },
        dict(providers_of(os.environ)),
        [
            name
            for name, provider in HOSTED.items()
            if any(provider.login_in(os.environ))
        ],
        logged_in(os.environ),
    )
    works = bool(usable) and all(probe.works for probe in tried.values())
    works = works and not (args.agents and findings.missing)
    return findings.json if args.json else findings.text, 0 if works else 1


def _tasks(paths: Sequence[Path], *, as_json: bool) -> tuple[str, int]:
    """Which sandbox each task would use. Nothing is pulled, built or run for it."""
    places, broken = dict[str, SandboxChoice](), False
    for path in paths:
        if not tasks_at(path):
            raise InputError(
                shown(path), "no task here", "Name a task, or a folder of tasks."
            )
        suite = read_suite(path, path)
        for of_file in suite.files if suite else ():
            places |= {
                case.name: SandboxChoice("", reason=case.message)
                for case in of_file.broken
            }
            broken = broken or bool(of_file.broken)
            for case in of_file.cases:
                place = (
                    SandboxChoice("", reason=case.skip)
                    if case.skip
                    else choose_sandbox(case.sandbox)
                )
                places[case.id] = place
    works = not broken and any(place.kind for place in places.values())
    if not as_json:
        return "\n".join([*sandbox_table(places), "", sandbox_counts(places)]), (
            0 if works else 1
        )
    tasks = {
        name: {
            "sandbox": place.kind or None,
            "image": place.image or None,
            "why": place.reason,
        }
        for name, place in places.items()
    }
    data = {"tasks": tasks, "conclusion": sandbox_counts(places)}
    return json.dumps(data, indent=2), 0 if works else 1


def _without_key() -> str:
    """What works without a key: no agent, since the embedded model takes no tools."""
    install = "" if local.installed() else f"{local.INSTALL}, then "
    return f"To test a skill without a key: {install}pytest-upskill try SKILL"


def _agents(names: list[str]) -> list[Agent]:
    """The agents of these names, or all; SettingsError if there is
    none of a name or version.
    """
    roster = Roster()
    chosen = dict.fromkeys(map(roster.parse, names)) or roster.names
    for name in (name for name in names if "@" in name):
        roster.version(roster.parse(name))  # SettingsError if it is another one
    return [roster.agent(name) for name in chosen if works_on_model(name)]


def _sandbox(name: str) -> SandboxKind | str:
    """A kind of sandbox that works, or why it does not. Nothing is fetched."""
    try:
        return kind_of(name, may_fetch=False)
    except SettingsError as error:
        return f"{error.problem} {error.hint}".strip()


def _folded(problem: str, width: int = _WIDTH) -> str:
    return textwrap.fill(harmless(problem), width, break_on_hyphens=False)
