"""The settings of a study, and the skills that it names."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..checks import rubric_of
from ..errors import DEFAULT, SettingsError
from ..measure.study_cases import (
    SkillCases,
    load_skill_cases,
    load_task_set_cases,
)
from ..settings import Gates, Settings, settings_of
from ..skills.bundle import bundle_root, entry_in, entry_name, skill_files_in
from ..skills.folder import is_skill
from ..skills.search import find_skills, labels_of
from ..skills.task_folders import tasks_at
from .command_table import option_values
from .project import config_here, find_skill
from .shared_steps import user_model_here


def read_study_settings(args: argparse.Namespace) -> Settings:
    """Those of the command, else of upskill.config.yaml and pytest's ini file."""
    config = config_here()
    settings = replace(
        settings_of(option_values(args, config, Settings, Gates)),
        models_folder=Path.cwd(),
        user_model=user_model_here(args),
        baseline=True,
        against=None,
    )
    if settings.models:
        return settings
    args.origins["models"] = config.origin("eval_models") or DEFAULT
    return replace(settings, models=config.eval_models, models_file=config.file)


def load_skills(
    written: Sequence[str], settings: Settings, *, as_one: bool, tasks: bool
) -> tuple[SkillCases, ...]:
    """The skills of these paths and names with their cases; ``as_one``, those of a
    bundle; with ``tasks``, those of benchmarks, too.

    SettingsError if a case needs a judge, and there is none.
    """
    sources: tuple[SkillCases, ...] = ()
    if as_one:
        sources = _load_bundle(written[0], settings)
    sources = sources or _load_each(written, settings, tasks=tasks)
    for source in sources:
        judged = [case.id for case, checks in source.cases if rubric_of(checks).texts]
        if judged and not settings.judge:
            problem = f"{source.label} has cases that need a judge ({judged[0]})"
            raise SettingsError("judge", problem, "Name one, for example sonnet.")
    return sources


def _load_each(
    written: Sequence[str], settings: Settings, *, tasks: bool
) -> tuple[SkillCases, ...]:
    files: dict[Path, None] = {}
    of_tasks: list[SkillCases] = []
    for text in written:
        path = find_skill(text, os.environ)
        if tasks and not is_skill(path) and tasks_at(path):
            of_tasks += load_task_set_cases(path, settings)
        else:
            files.update(dict.fromkeys(find_skills(path).files))
    labels = labels_of(list(files))
    skills = [load_skill_cases(file, labels[file], settings) for file in files]
    return (*skills, *of_tasks)


def _load_bundle(written: str, settings: Settings) -> tuple[SkillCases, ...]:
    """A plugin, or a folder, that has several skills; nothing if it has not."""
    path = find_skill(written, os.environ)
    if not path.is_dir():
        return ()
    entry = entry_in(path, bundle=len(find_skills(path).files) > 1)
    root = bundle_root(entry) if entry else None
    if entry is None or root is None or len(skill_files_in(entry)) < 2:
        return ()
    return (load_skill_cases(root, entry_name(entry), settings),)
