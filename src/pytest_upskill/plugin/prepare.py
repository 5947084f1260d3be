"""What a run needs before its first call, apart from its models."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from .._util.files import why_unwritable
from ..engine.recording import load_recording
from ..errors import SettingsError, shown
from ..settings import Settings
from ..skills.upskill_config import read_config
from .artifacts import report_paths
from .options import FLAGS


def with_upskill_config(settings: Settings, folder: Path) -> Settings:
    """Take models and the folder of kept runs from upskill.config.yaml if nothing else has them."""
    if settings.models and (settings.runs_folder or not settings.history):
        return settings
    theirs = read_config(folder, os.environ)
    if not settings.runs_folder:
        settings = replace(settings, runs_folder=theirs.runs_dir)
    if settings.models or not theirs.eval_models:
        return settings
    return replace(
        settings, models=theirs.eval_models, models_folder=folder, models_file=theirs.file
    )


def require_outputs(settings: Settings) -> None:
    """Find out before the run, not after it, that a file can't be written."""
    files = report_paths(settings) | {"record_file": settings.record_file}
    for setting, file in files.items():
        folder = setting == "benchmark_folder"
        if file and (problem := why_unwritable(file, folder=folder)):
            raise SettingsError(setting, problem, "Check the path.", value=shown(file))
    if settings.record_file and settings.record_file.is_file():
        load_recording(settings.record_file, "record_file")  # nothing else is overwritten


def command_that_records(config: pytest.Config, file: Path | None) -> str:
    """The command line of this run, with the file recorded instead of replayed."""
    replay, record = FLAGS["replay_file"], FLAGS["record_file"]
    args = iter(map(str, config.invocation_params.args))
    kept = []
    for arg in args:
        if arg == replay:
            next(args, None)
        elif not arg.startswith(f"{replay}="):
            kept.append(arg)
    return shlex.join(["pytest", *kept, record, shown(file or Path())])
