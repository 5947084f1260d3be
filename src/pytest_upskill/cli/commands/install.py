"""``pytest-upskill install``: copy a skill to where agents look for skills."""

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ..._util.files import exchange, read_file, reason_of
from ..._util.texts import one_line
from ...errors import InputError, shown
from ...skills.copies import digest_of_copy, write_copy
from ...skills.folder import (
    COPY_DIGEST_NAME,
    belongs,
    digest_of,
    installed_files,
    leads_outside,
)
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import is_valid_name, load_skill
from ..project import find_skill

AGENTS: Final = {  # the folders of skills in a project and in the user's home
    "claude": (".claude/skills", ".claude/skills"),  # code.claude.com/docs/en/skills
    "codex": (".agents/skills", ".agents/skills"),  # developers.openai.com/codex/skills
    "cursor": (".cursor/skills", ".cursor/skills"),  # cursor.com/docs/context/skills
    # opencode.ai/docs/skills
    "opencode": (".opencode/skills", ".config/opencode/skills"),
    "gemini": (".gemini/skills", ".gemini/skills"),  # geminicli.com/docs/cli/skills
    # docs.github.com/en/copilot/concepts/agents/about-agent-skills
    "copilot": (".github/skills", ".copilot/skills"),
}
_EDITED: Final = "not replaced, since it was edited; --force replaces it"


def add_install_arguments(parser: argparse.ArgumentParser) -> None:
    skill_help = "a skill, by its folder or its name, or a folder of skills"
    parser.add_argument("skill", metavar="SKILL", help=skill_help)
    agent_help = (
        f"{', '.join(AGENTS)} (repeatable; default: those that have a folder here)"
    )
    parser.add_argument(
        "--agent", action="append", choices=AGENTS, metavar="NAME", help=agent_help
    )
    user_help = "install for all projects, in your home folder"
    parser.add_argument("--user", action="store_true", help=user_help)
    parser.add_argument("--force", action="store_true", help="replace edited copies")
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would be done"
    )


def run_install(args: argparse.Namespace) -> tuple[str, int]:
    search, skills = find_skills(find_skill(args.skill, os.environ)), dict[str, Path]()
    for file in search.files:
        # Agents find a skill by its folder, so that is named
        # like the skill if it can be.
        name, folder = load_skill(file).name, Path(os.path.realpath(file.parent)).name
        name = name if is_valid_name(name) else folder
        if skills.setdefault(name, file) != file:
            problem = f"{shown(skills[name])} has the same name, {name!r}"
            raise InputError(file, problem, "Rename one of them, or install only one.")
    root = Path.home() if args.user else Path.cwd()
    agents = dict.fromkeys(args.agent or _agents_here(root, user=args.user))
    lines, status, width = list[str](), 0, max(map(len, agents))
    for agent in agents:
        for name, file in skills.items():
            target = root / AGENTS[agent][args.user] / name
            done = _install(file, target, root, force=args.force, dry_run=args.dry_run)
            status = 1 if done == _EDITED else status
            lines.append(f"{agent:<{width}}  {one_line(shown(target), 300)}: {done}")
    return "\n".join([*lines, *left_out_lines(search.left_out)]), status


def _agents_here(root: Path, *, user: bool) -> list[str]:
    """The agents that have a folder; InputError that names one if none has."""
    folders = {agent: root / paths[user] for agent, paths in AGENTS.items()}
    agents = [
        agent
        for agent, folder in folders.items()
        # Most repositories have a .github, for other reasons.
        if folder.is_dir()
        or (folder.parent.is_dir() and folder.parent.name != ".github")
    ]
    if not agents:
        example = next(filter(shutil.which, AGENTS), next(iter(AGENTS)))
        problem = f"no agent has a folder in {shown(root) if user else 'this project'}"
        raise InputError("--agent", problem, f"Name one: --agent {example}")
    return agents


def _install(
    file: Path, target: Path, root: Path, *, force: bool, dry_run: bool
) -> str:
    """Copy a skill, whole or not at all, and say what was done."""
    try:
        done = _change(file.parent, target)
        if not done or (done == "replaced" and not force):
            return _EDITED if done else "already there"
        if dry_run:
            return f"would be {done}"
        if leads_outside(root, target.parent):
            problem = f"this points outside {shown(root)}"
            raise InputError(
                target.parent, problem, "Remove the link, or copy the skill by hand."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{target.name}-", dir=target.parent
        ) as temporary:
            new = Path(temporary, "new")
            write_copy(file, new, read_file(file))
            (new / COPY_DIGEST_NAME).write_text(digest_of_copy(new))
            exchange(new, target, Path(temporary, "old"))
    except OSError as error:
        raise InputError(target, f"can't be written: {reason_of(error)}") from None
    return done


def _change(source: Path, target: Path) -> str:
    """What has to be done to a copy: nothing if it is the same.
    An edited one is "replaced".
    """
    if not os.path.lexists(target):
        return "installed"
    if target.is_symlink() or not target.is_dir():
        return (
            "" if os.path.realpath(target) == os.path.realpath(source) else "replaced"
        )
    if _digest(target) == _digest(source):
        return ""
    written, digest = target / COPY_DIGEST_NAME, digest_of_copy(target).encode()
    return (
        "updated" if written.is_file() and read_file(written) == digest else "replaced"
    )


def _digest(folder: Path) -> str:
    """Of the files that ``write_copy`` copies."""
    files = installed_files(folder).items()
    return digest_of(folder, [file for name, file in files if belongs(name, ())])
