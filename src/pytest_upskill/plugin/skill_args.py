"""Skills among pytest's own arguments.

An argument names a skill by one of its files:
``skills/x/skill_meta.json::id[m]``. Every pytest run imports this module, so it
imports very little.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .pytest_options import (
    absolute,
    cli_flags,
    cli_gates,
    cli_value,
    early_cli_value,
    in_ini,
    value_of,
)


@dataclass(frozen=True)
class SkillArg:
    """A skill that an argument names, or one of its cases."""

    skill_file: Path
    cases_file: Path | None  # None if the argument is the SKILL.md
    case: str | None = None  # None for all cases
    label: str | None = None  # of an agent and a model; None for those of the run

    @property
    def folder(self) -> Path:
        from ..skills.bundle import folder_of
        from ..skills.task_folders import task_at

        task = task_at(self.cases_file) if self.cases_file else None
        return task or folder_of(self.skill_file)


def is_asked_for(config: pytest.Config) -> bool:
    """A model alone is enough: tests in Python name their skills themselves."""
    settings = ("skill_paths", "models")
    return any(
        cli_value(config, name) or in_ini(config, name) for name in settings
    ) or bool(split_args(config, config.args)[1])


def asks_for_skills(config: pytest.Config) -> bool:
    """Whether the command line names a skill, a model or a gate.

    Other runs are of a project that happens to have skills.
    """
    settings = {"skill_paths", "models", "accept", "accept_lower", "confident"}
    named = cli_flags(config, settings)
    return bool(named or cli_gates(config) or split_args(config, config.args)[1])


def skills_by_name(config: pytest.Config, paths: Iterable[Path]) -> list[Path]:
    """The paths of --skill, in which a skill of the project may stand by its name."""
    paths = list(paths)
    if all(map(os.path.lexists, paths)):
        return paths
    from ..skills.named_skill import path_or_name, skills_dir

    here, ini = config.invocation_params.dir, in_ini(config, "skill_paths") or ()
    folders = [*(absolute(here, path) for path in ini), skills_dir(here, os.environ)]
    return [path_or_name(path, here, folders) for path in paths]


def split_args(
    config: pytest.Config, args: Sequence[str]
) -> tuple[list[str], list[SkillArg]]:
    """The arguments that are pytest's own, and those that name skills."""
    pairs = [(arg, _skill_arg(config, arg)) for arg in args]
    return [arg for arg, named in pairs if not named], [
        named for _, named in pairs if named
    ]


def path_of(config: pytest.Config, arg: str) -> Path:
    """The path in an argument, which may be a node id."""
    return absolute(config.invocation_params.dir, arg.partition("::")[0])


def _skill_arg(config: pytest.Config, arg: str) -> SkillArg | None:
    path = path_of(config, arg)
    _, colons, name = arg.partition("::")
    case, _, label = name.partition("[")
    if task := _task_arg(config, path, case, label.removesuffix("]")):
        return task
    bundle = value_of(config, "bundle")
    is_bundle = bundle and colons and path.is_dir()
    if not is_bundle and (path.suffix not in (".md", ".json") or not path.is_file()):
        return None
    doctests = getattr(config.known_args_namespace, "doctestglob", None)
    if path.suffix == ".md" and not label and doctests:
        return None
    skill_file = _skill_file_for(path, _tests_file(config), bundle=bundle)
    if skill_file is None:
        return None
    return SkillArg(
        skill_file,
        None if path == skill_file else path,
        case if colons else None,
        label.removesuffix("]") or None,
    )


def _task_arg(
    config: pytest.Config, path: Path, case: str, label: str
) -> SkillArg | None:
    """A task of a benchmark, or a folder of them, if there is an agent for it."""
    if not path.exists() or not (label or has_agent(config)):
        return None
    from ..skills.task_folders import is_task_set, task_at

    if task := task_at(path):
        return task_arg(task, case, label)
    return SkillArg(path, None) if not case and is_task_set(path) else None


def task_arg(task: Path, case: str = "", label: str = "") -> SkillArg:
    """One task of a set, which is that of the folder around it."""
    from ..skills.task_folders import task_file, task_id

    name = task_id(task)  # in a run with others of this name it has a number
    case = case if case.rstrip("0123456789") not in ("", f"{name}-") else name
    return SkillArg(task.parent, task_file(task), case, label or None)


def has_agent(config: pytest.Config) -> bool:
    return bool(early_cli_value(config, "agents") or value_of(config, "agents"))


def task_folders(config: pytest.Config) -> list[Path]:
    """Arguments that are tasks of a benchmark, or folders of them,
    though no agent is named.
    """
    paths = [path_of(config, arg) for arg in config.args if "::" not in arg]
    likely = [path for path in paths if next(_may_have_tasks(path), None)]
    if not likely:
        return []
    from ..skills.task_folders import is_task_set, task_at

    return [path for path in likely if task_at(path) or is_task_set(path)]


def task_hint(config: pytest.Config) -> str:
    """What to add if arguments are tasks; empty if none is."""
    folders = task_folders(config)
    name = folders[0].name if folders else ""
    return (
        f"upskill: {name}: tasks of a benchmark; add --skill-agent NAME to run them"
        * bool(name)
    )


def _may_have_tasks(folder: Path) -> Iterator[Path]:
    """Files that tasks have, in a folder or directly below it."""
    for pattern in ("task.toml", "task.md", "*/task.toml", "*/task.md"):
        yield from folder.glob(pattern)


def _tests_file(config: pytest.Config) -> Path | None:
    """The file of cases, also before pytest has set its options."""
    if early := early_cli_value(config, "tests_file"):
        return absolute(config.invocation_params.dir, early)
    file: Path | None = value_of(config, "tests_file")
    return file


def _skill_file_for(
    path: Path, tests_file: Path | None, *, bundle: bool
) -> Path | None:
    """The SKILL.md of the skill that a file names, or what stands for a bundle."""
    from ..skills.bundle import entry_in
    from ..skills.folder import CASES_NAME, MANIFEST, SKILL_NAMES
    from ..skills.suites.beside import is_file_beside

    if path.name in SKILL_NAMES or path.match(MANIFEST):
        return path
    if path.is_dir():
        return entry_in(path, bundle=bundle)
    folders = list(path.parents) if path == tests_file else []
    folders += [path.parent] if path.name == CASES_NAME else []
    folders += [path.parent.parent] if path.parent.name == "evals" else []
    folders += path.parents[1:3] if is_file_beside(path) else []
    tested = (entry_in(folder, bundle=bundle) for folder in folders)
    return next(filter(None, tested), None)
