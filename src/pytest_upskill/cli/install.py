"""``pytest-upskill install``: a skill copied to where agents look for skills."""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util.texts import counted, one_line
from ..errors import SettingsError, shown
from ..lint.skill_rules import lint_skill_file
from ..skills.skill import find_skills
from .agents import AGENTS, BY_NAME, Agent
from .copies import State, files_of, state_of, write_copy

_DONE: Final[dict[State, str]] = {
    "new": "installed",
    "same": "already there",
    "old": "updated",
    "changed": "replaced",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill", type=Path, metavar="SKILL", help="a skill's folder, or one of skills"
    )
    parser.add_argument(
        "--agent",
        action="append",
        choices=tuple(BY_NAME),
        metavar="NAME",
        help=f"{', '.join(BY_NAME)}; repeatable (those that the project is used with)",
    )
    parser.add_argument("--user", action="store_true", help="for all projects, below the home")
    parser.add_argument(
        "--force", action="store_true", help="also over a changed copy, also with lint errors"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    parser.add_argument("--json", action="store_true", help="as JSON")


@dataclass(frozen=True)
class _Copy:
    """What became of a skill for an agent."""

    skill: str
    agent: str
    path: Path
    state: State
    files: int
    changed: tuple[str, ...] = ()  # what is left alone since somebody changed it


def run(given: argparse.Namespace) -> tuple[str, int]:
    root = _home() if given.user else Path.cwd()
    agents = _agents(given.agent, root, user=given.user)
    copies = list[_Copy]()
    problems = list[str]()
    for file in _skill_files(given.skill):
        found = [] if given.force else _lint_errors(file)
        problems += found
        if not found:
            copies += [_install(file, agent, root, given) for agent in agents]
    refused = bool(problems) or any(copy.changed for copy in copies)
    shape = _json if given.json else _text
    return shape(copies, problems, dry_run=given.dry_run), 1 if refused else 0


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise SettingsError("--user", "your home folder is not known", "Set HOME.") from None


def _agents(names: list[str] | None, root: Path, *, user: bool) -> list[Agent]:
    if names:
        return [BY_NAME[name] for name in dict.fromkeys(names)]
    used = [agent for agent in AGENTS if agent.is_used(root, user=user, env=os.environ)]
    if not used:
        place = "your home" if user else "this folder"
        raise SettingsError(
            "--agent",
            f"nothing in {place} tells which agents it is used with",
            f"Name some: {' '.join(f'--agent {name}' for name in BY_NAME)}",
        )
    return used


def _skill_files(path: Path) -> list[Path]:
    try:
        return find_skills(path)
    except SettingsError as error:
        raise SettingsError(shown(path), error.problem, error.hint) from None


def _lint_errors(file: Path) -> list[str]:
    """What an agent would stumble over; cases are not looked at, since they stay behind."""
    return [
        f"{found.file}:{found.line}: {one_line(f'{found.message}. {found.hint}', 500)}"
        for found in lint_skill_file(file)
        if found.level == "error"
    ]


def _install(file: Path, agent: Agent, root: Path, given: argparse.Namespace) -> _Copy:
    # The folder has the skill's name, and may be given as "." or by a link.
    source = Path(os.path.realpath(file.parent))
    skills = agent.folder(root, user=given.user, env=os.environ)
    target = skills / source.name
    try:
        files = files_of(source)
        state, changed = state_of(files, target)
    except OSError as error:
        raise SettingsError(shown(target), f"this can't be read: {error}") from None
    if os.path.realpath(target) == str(source):
        state, changed = "same", []
    if state == "changed" and not given.force:
        return _Copy(source.name, agent.name, target, state, len(files), tuple(changed))
    if state != "same" and not given.dry_run:
        # Where a variable of the agent names another place, that is the user's will.
        write_copy(files, target, root if skills.is_relative_to(root) else skills)
    return _Copy(source.name, agent.name, target, state, len(files))


def _text(copies: list[_Copy], problems: list[str], *, dry_run: bool) -> str:
    width = max((len(copy.agent) for copy in copies), default=0)
    lines = [f"{copy.agent:<{width}}  {_line(copy, dry_run)}" for copy in copies]
    if problems:
        lines += [*problems, "not installed: fix this, or give --force"]
    return "\n".join(lines)


def _line(copy: _Copy, dry_run: bool) -> str:
    place = one_line(shown(copy.path), 300)
    if copy.changed:
        names = one_line(", ".join(copy.changed[:5]), 200)
        more = f" and {len(copy.changed) - 5} more" if len(copy.changed) > 5 else ""
        return (
            f"{place}: left alone, since it was changed there ({names}{more}); --force replaces it"
        )
    would = "would be " if dry_run and copy.state != "same" else ""
    size = "" if copy.state == "same" else f" ({counted(copy.files, 'file')})"
    return f"{place}: {would}{_DONE[copy.state]}{size}"


def _json(copies: list[_Copy], problems: list[str], *, dry_run: bool) -> str:
    def data(copy: _Copy) -> Mapping[str, Any]:
        return {
            "skill": copy.skill,
            "agent": copy.agent,
            "path": str(copy.path),
            "state": "left alone" if copy.changed else _DONE[copy.state],
            "files": copy.files,
            "changed": list(copy.changed),
        }

    told = {"dry_run": dry_run, "copies": [*map(data, copies)], "problems": problems}
    return json.dumps(told, indent=2)
