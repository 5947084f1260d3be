"""Arguments of pytest that name a skill by one of its files: ``skills/x/skill_meta.json::id[m]``.

Every pytest run looks for them, so this module imports very little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .pytest_options import absolute, cli_value, early_cli_value, in_ini, value_of


@dataclass(frozen=True)
class SkillArg:
    """A skill that an argument names, or one of its cases."""

    skill_file: Path
    cases_file: Path | None  # None if the argument is the SKILL.md
    case: str | None = None  # None for all cases
    label: str | None = None  # of an agent and a model; None for those of the run


def is_asked_for(config: pytest.Config) -> bool:
    """A model alone is enough: tests in Python name their skills themselves."""
    settings = ("skill_paths", "models")
    return any(cli_value(config, name) or in_ini(config, name) for name in settings) or bool(
        split_args(config, config.args)[1]
    )


def split_args(config: pytest.Config, args: Sequence[str]) -> tuple[list[str], list[SkillArg]]:
    """The arguments that are pytest's own, and those that name skills."""
    pairs = [(arg, _skill_arg(config, arg)) for arg in args]
    return [arg for arg, named in pairs if not named], [named for _, named in pairs if named]


def path_of(config: pytest.Config, arg: str) -> Path:
    """The path in an argument, which may be a node id."""
    return absolute(config.invocation_params.dir, arg.partition("::")[0])


def _skill_arg(config: pytest.Config, arg: str) -> SkillArg | None:
    path = path_of(config, arg)
    _, colons, name = arg.partition("::")
    case, _, label = name.partition("[")
    if path.suffix not in (".md", ".json") or not path.is_file():
        return None
    doctests = getattr(config.known_args_namespace, "doctestglob", None)
    if path.suffix == ".md" and not label and doctests:
        return None
    skill_file = _skill_file_for(path, _tests_file(config))
    if skill_file is None:
        return None
    return SkillArg(
        skill_file,
        None if path == skill_file else path,
        case if colons else None,
        label.removesuffix("]") or None,
    )


def _tests_file(config: pytest.Config) -> Path | None:
    """The file of cases, also before pytest has set its options."""
    if early := early_cli_value(config, "tests_file"):
        return absolute(config.invocation_params.dir, early)
    file: Path | None = value_of(config, "tests_file")
    return file


def _skill_file_for(path: Path, tests_file: Path | None) -> Path | None:
    """The SKILL.md of the skill that a file names."""
    from ..skills.folder import (
        CASES_NAME,
        EVALS_NAME,
        SKILL_NAMES,
        is_trigger_file,
        skill_file,
    )

    if path.name in SKILL_NAMES:
        return path
    folders = list(path.parents) if path == tests_file else []
    folders += [path.parent] if path.name == CASES_NAME else []
    in_evals = path.match(EVALS_NAME) or is_trigger_file(path)
    folders += [path.parent.parent] if in_evals else []
    return next((file for folder in folders if (file := skill_file(folder)).is_file()), None)
