"""``pytest-upskill install``: copy a skill to where agents look for skills.

A hidden file in each copy keeps the digests of what was written. A copy that was not edited
is updated, and an edited one is left alone.
"""

import argparse
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from ..._util.files import exchange, read_file, reason_of
from ..._util.texts import counted, one_line
from ...errors import InputError, SkillError, shown, spelled
from ...lint.skill_rules import lint_skill_file
from ...skills.folder import MANIFEST_NAME, installed_files
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import Skill, is_valid_name, load_skill


@dataclass(frozen=True)
class SkillsFolder:
    """Where an agent looks for skills, according to its documentation."""

    name: str
    project: str  # relative to the project
    user: str  # relative to the home folder
    signs: tuple[str, ...]  # files of a project that uses the agent
    moved_by: tuple[str, str] = ("", "")  # a variable, and the part of ``user`` that it replaces

    def folder(self, root: Path, *, user: bool, env: Mapping[str, str]) -> Path:
        if not user:
            return root / self.project
        variable, part = self.moved_by
        if variable and (moved := env.get(variable, "").strip()):
            return Path(moved) / Path(self.user).relative_to(part)
        return root / self.user

    def is_used(self, root: Path, *, user: bool, env: Mapping[str, str]) -> bool:
        if user:
            return self.folder(root, user=True, env=env).parent.is_dir()
        return any((root / sign).exists() for sign in self.signs)


AGENTS: Final = (
    # code.claude.com/docs/en/skills; CLAUDE_CONFIG_DIR: code.claude.com/docs/en/settings
    SkillsFolder(
        "claude",
        ".claude/skills",
        ".claude/skills",
        (".claude",),
        ("CLAUDE_CONFIG_DIR", ".claude"),
    ),
    # developers.openai.com/codex/skills; formerly .codex/skills
    SkillsFolder("codex", ".agents/skills", ".agents/skills", (".codex", ".agents")),
    # cursor.com/docs/context/skills
    SkillsFolder("cursor", ".cursor/skills", ".cursor/skills", (".cursor",)),
    # opencode.ai/docs/skills
    SkillsFolder(
        "opencode",
        ".opencode/skills",
        ".config/opencode/skills",
        (".opencode", "opencode.json", "opencode.jsonc"),
        ("XDG_CONFIG_HOME", ".config"),
    ),
    # geminicli.com/docs/cli/skills
    SkillsFolder("gemini", ".gemini/skills", ".gemini/skills", (".gemini",)),
    # docs.github.com/en/copilot/concepts/agents/about-agent-skills
    SkillsFolder(
        "copilot",
        ".github/skills",
        ".copilot/skills",
        (".github/skills", ".github/copilot-instructions.md"),
    ),
)
AGENTS_BY_NAME: Final = {agent.name: agent for agent in AGENTS}


State = Literal["new", "same", "old", "changed"]


def state_of(files: Mapping[str, Path], target: Path) -> tuple[State, list[str]]:
    """Whether a copy is new, the same, outdated or changed, and which files were changed in it."""
    if not os.path.lexists(target):
        return "new", []
    if not target.is_dir() or target.is_symlink():
        return "changed", [target.name]
    there = {name: _digest(path) for name, path in _present(target).items()}
    if there == {name: _digest(path) for name, path in files.items()}:
        return "same", []
    written = _written(target)
    changed = [name for name in {**there, **written} if there.get(name) != written.get(name)]
    return ("changed", sorted(changed)) if changed else ("old", [])


def _present(target: Path) -> dict[str, Path]:
    """The files of a copy; hidden ones do not belong to the skill."""
    return {
        path.relative_to(target).as_posix(): path
        for path in target.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(target).parts)
        and "__pycache__" not in path.parts
    }


def _digest(path: Path) -> str:
    """Of a file's content and its executable bit."""
    runs = "x" if os.name == "posix" and path.stat().st_mode & 0o100 else ""
    return hashlib.sha256(read_file(path)).hexdigest() + runs


def _written(target: Path) -> dict[str, str]:
    try:
        files = json.loads(read_file(target / MANIFEST_NAME).decode("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return (
        {str(name): str(digest) for name, digest in files.items()}
        if isinstance(files, dict)
        else {}
    )


def write_copy(files: Mapping[str, Path], target: Path, root: Path) -> None:
    """Write a copy, whole or not at all."""
    skills = target.parent
    # A symbolic link in the path could lead anywhere.
    if not Path(os.path.realpath(skills)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            shown(skills),
            f"this points outside {shown(root)}",
            "Remove the link, or copy the skill by hand.",
        )
    try:
        skills.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=skills))
        try:
            _fill(new / "new", files)
            exchange(new / "new", target, new / "old")
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise InputError(shown(target), f"can't be written: {reason_of(error)}") from None


def _fill(folder: Path, files: Mapping[str, Path]) -> None:
    folder.mkdir()
    digests = {}
    for name, path in files.items():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod((copy.stat().st_mode & 0o777) | (path.stat().st_mode & 0o111))
        digests[name] = _digest(copy)
    (folder / MANIFEST_NAME).write_text(json.dumps({"files": digests}, indent=2) + "\n", "utf-8")


_DONE: Final[dict[State, str]] = {
    "new": "installed",
    "same": "already there",
    "old": "updated",
    "changed": "replaced",
}


def add_install_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill", type=Path, metavar="SKILL", help="a skill's folder, or a folder of skills"
    )
    parser.add_argument(
        "--agent",
        action="append",
        choices=tuple(AGENTS_BY_NAME),
        metavar="NAME",
        help=f"{', '.join(AGENTS_BY_NAME)}; repeatable (default: those that the project uses)",
    )
    parser.add_argument(
        "--user", action="store_true", help="install for all projects, in your home folder"
    )
    parser.add_argument("--force", action="store_true", help="replace edited copies")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON")


@dataclass(frozen=True)
class _Copy:
    """The result for a skill and an agent."""

    skill: str
    agent: str
    path: Path
    state: State
    files: int
    changed: tuple[str, ...] = ()  # files that somebody changed, so that nothing was written


def run_install(args: argparse.Namespace) -> tuple[str, int]:
    root = _home() if args.user else Path.cwd()
    agents = _agents(args.agent, root, user=args.user)
    copies = list[_Copy]()
    problems, warnings = list[str](), list[str]()
    taken: dict[str, Path] = {}
    search = find_skills(args.skill)
    for file in search.files:
        try:
            name = _folder_for(load_skill(file))
        except SkillError as error:
            problems.append(one_line(f"{error.where}: {error.problem}. {error.hint}", 500))
            continue
        if (first := taken.setdefault(name, file)) != file:
            problems.append(
                f"{shown(file)}: {shown(first)} has the same name, {name!r}. Rename one of them, "
                "or install only one."
            )
            continue
        warnings += _lint_errors(file)
        copies += [_install(file, name, agent, root, args) for agent in agents]
    refused = bool(problems) or any(copy.changed for copy in copies)
    if args.json:
        text = _json(copies, problems, warnings, dry_run=args.dry_run)
    else:
        notes = [*warnings, *left_out_lines(search.left_out)]
        text = _text(copies, problems, notes, dry_run=args.dry_run)
    return text, 1 if refused else 0


def _folder_for(skill: Skill) -> str:
    """The name of a copy's folder: agents find a skill by it, so it is that of the skill."""
    # A skill may be given as "." or by a link.
    folder = os.path.basename(os.path.realpath(skill.file.parent))  # noqa: PTH119
    return skill.name if is_valid_name(skill.name) else folder


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InputError("--user", "your home folder is unknown", "Set HOME.") from None


def _agents(names: list[str] | None, root: Path, *, user: bool) -> list[SkillsFolder]:
    if names:
        return [AGENTS_BY_NAME[name] for name in dict.fromkeys(names)]
    used = [agent for agent in AGENTS if agent.is_used(root, user=user, env=os.environ)]
    if not used:
        place = "you use" if user else "this project uses"
        raise InputError(
            "--agent",
            f"can't tell which agents {place}",
            f"Choose some: {' '.join(f'--agent {name}' for name in AGENTS_BY_NAME)}",
        )
    return used


def _lint_errors(file: Path) -> list[str]:
    """A line for a skill that some agent may not load or use well; cases are not installed."""
    errors = [finding for finding in lint_skill_file(file) if finding.level == "error"]
    if not errors:
        return []
    first = errors[0]
    number = f"{len(errors)} lint errors, first: " if len(errors) > 1 else ""
    message = one_line(f"{number}{first.message}. {spelled(first.hint)}", 500)
    return [f"{first.file}:{first.line}: warning: {message}"]


def _install(
    file: Path, name: str, agent: SkillsFolder, root: Path, args: argparse.Namespace
) -> _Copy:
    source = Path(os.path.realpath(file.parent))
    skills = agent.folder(root, user=args.user, env=os.environ)
    target = skills / name
    try:
        files = installed_files(source)
        state, changed = state_of(files, target)
    except OSError as error:
        raise InputError(shown(target), f"can't be read: {reason_of(error)}") from None
    if os.path.realpath(target) == str(source):
        state, changed = "same", []
    if state == "changed" and not args.force:
        return _Copy(name, agent.name, target, state, len(files), tuple(changed))
    if state != "same" and not args.dry_run:
        # A folder that one of the agent's variables names was chosen by the user.
        write_copy(files, target, root if skills.is_relative_to(root) else skills)
    return _Copy(name, agent.name, target, state, len(files))


def _text(copies: list[_Copy], problems: list[str], notes: list[str], *, dry_run: bool) -> str:
    width = max((len(copy.agent) for copy in copies), default=0)
    lines = [f"{copy.agent:<{width}}  {_line(copy, dry_run)}" for copy in copies]
    lines += [*notes, *(f"not installed: {problem}" for problem in problems)]
    return "\n".join(lines)


def _line(copy: _Copy, dry_run: bool) -> str:
    place = one_line(shown(copy.path), 300)
    if copy.changed:
        names = one_line(", ".join(copy.changed[:5]), 200)
        names += f" and {len(copy.changed) - 5} more" if len(copy.changed) > 5 else ""
        return f"{place}: not replaced, since it was edited ({names}); --force replaces it"
    would = "would be " if dry_run and copy.state != "same" else ""
    size = "" if copy.state == "same" else f" ({counted(copy.files, 'file')})"
    return f"{place}: {would}{_DONE[copy.state]}{size}"


def _json(copies: list[_Copy], problems: list[str], warnings: list[str], *, dry_run: bool) -> str:
    rows = [
        {
            **asdict(copy),
            "path": str(copy.path),
            "state": "left alone" if copy.changed else _DONE[copy.state],
        }
        for copy in copies
    ]
    data = {"dry_run": dry_run, "copies": rows, "problems": problems, "warnings": warnings}
    return json.dumps(data, indent=2)
