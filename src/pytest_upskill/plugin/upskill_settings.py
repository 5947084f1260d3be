"""What a run takes from the configuration of upskill."""

import os
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..settings import Settings
from ..skills.upskill_config import read_config
from .skill_code import SkillCode


def with_upskill_config(settings: Settings, folder: Path, code: SkillCode | None) -> Settings:
    """Take models and the folder of kept runs from upskill.config.yaml if nothing else has them."""
    if settings.models and (settings.runs_folder or not settings.history):
        return settings
    theirs = read_config(folder, os.environ)
    if code and theirs.file and code.skill_around(theirs.file):
        raise InputError(
            theirs.file,
            "is inside the skill, which does not choose its models or where runs are kept",
            "Run pytest from outside of the skill, or name a model and add --skill-no-history.",
        )
    if not settings.runs_folder:
        settings = replace(settings, runs_folder=theirs.runs_dir)
    if settings.models or not theirs.eval_models:
        return settings
    return replace(
        settings, models=theirs.eval_models, models_folder=folder, models_file=theirs.file
    )
