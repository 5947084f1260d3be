"""The settings of a run, read from options, ini keys and upskill's configuration.

They must make sense together.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from .._util.files import why_unwritable
from ..engine.recording import load_recording
from ..errors import InputError, Setting, SettingsError, SkillError, shown
from ..reports.writers import report_paths, require_apart
from ..settings import Gates, Settings, settings_of
from ..skills.context import require_ref
from ..skills.suites.beside import files_beside
from ..skills.upskill_config import read_config
from ..trials.subject import asks_model
from .pytest_options import OPTIONS, cli_value, is_of_ini_file, value_of
from .skill_args import skills_by_name
from .skill_code import SkillCode
from .skill_source import SkillSource


def read_settings(config: pytest.Config) -> Settings:
    values = {setting: value_of(config, setting) for setting in OPTIONS}
    if config.inipath and is_of_ini_file(config, "models"):
        values["models_folder"] = config.inipath.parent
    if cli_value(config, "skill_paths"):
        try:
            values["skill_paths"] = tuple(skills_by_name(config, values["skill_paths"]))
        except SkillError as error:
            raise SettingsError(
                "skill_paths", error.problem, error.hint, value=error.where
            ) from None
    settings = settings_of(values)
    without_model = [agent for agent in settings.agents if not asks_model(agent)]
    if settings.aa and without_model:
        raise _contradiction("aa", "agents", without_model[0])
    if settings.aa:
        unset = _unset_by(config, "aa", "baseline")
        settings = settings_of(values | dict.fromkeys(unset))
    if len(without_model) == len(settings.agents):
        unset = _unset_by(config, "agents", value=without_model[0])
        settings = settings_of(values | dict.fromkeys(unset))
    _require_sense(settings)
    return settings


def _unset_by(
    config: pytest.Config, chosen: str, *others: str, value: str = ""
) -> Iterator[str]:
    """Settings about other arms and about what must hold;
    in the ini file they are for others.
    """
    gates = (gate.name for gate in fields(Gates))
    for setting in (*others, "against", "accept", "accept_lower", *gates):
        if cli_value(config, setting) is not None:
            raise _contradiction(setting, chosen, value)
        yield setting


def _require_sense(settings: Settings) -> None:
    """Find out before the first call which settings contradict each other."""
    gates = settings.gates
    if settings.noise:
        _require_noise(settings.noise)
    if settings.cluster_send_keys and not settings.cluster:
        hint = ("Add ", Setting("cluster"), " ADDRESS.")
        raise SettingsError(
            "cluster_send_keys", "there is no cluster to send keys to", hint
        )
    if settings.record_file and settings.replay_file:
        raise _contradiction("record_file", "replay_file")
    for setting in ("min_lift", "max_token_growth"):
        # It could only fail, once all is paid for.
        if getattr(gates, setting) is not None and not settings.baseline:
            raise _contradiction(setting, "baseline")
    if gates.no_worse and not settings.against:
        hint = ("Add ", Setting("against"), " REF.")
        raise SettingsError("no_worse", "there is nothing to compare with", hint)


def _require_noise(number: int) -> None:
    from ..skills.noise import noise_skills

    if number > (most := len(noise_skills())):
        problem = f"only {most} unrelated skills come with pytest-upskill"
        raise SettingsError("noise", problem, "Ask for fewer.", value=str(number))


def _contradiction(setting: str, against: str, value: str = "") -> SettingsError:
    problem = ("can't be combined with ", Setting(against), f" {value}".rstrip())
    return SettingsError(setting, problem, "Drop one of them.")


def with_upskill_config(
    settings: Settings, folder: Path, code: SkillCode | None
) -> Settings:
    """Take models and the folder of kept runs from upskill.config.yaml
    if nothing else has them.
    """
    if settings.models and (settings.runs_folder or not settings.history):
        return settings
    upskill = read_config(folder, os.environ)
    if code and upskill.file and code.skill_around(upskill.file):
        raise InputError(
            upskill.file,
            "is inside the skill, which does not choose its models or where runs are"
            " kept",
            "Run pytest from outside of the skill, or name a model and set"
            " skill_history = false.",
        )
    if not settings.runs_folder:
        settings = replace(settings, runs_folder=upskill.runs_dir)
    if settings.models or not upskill.eval_models:
        return settings
    return replace(
        settings,
        models=upskill.eval_models,
        models_folder=folder,
        models_file=upskill.file,
    )


# Files that a run writes.


def require_refs(settings: Settings, skills: Iterable[SkillSource]) -> None:
    """SettingsError if a skill is compared with a ref that is not there."""
    if settings.against:
        for skill in skills:
            require_ref(settings.against, skill.folder.resolve())


def require_own_paths(
    settings: Settings, skills: Iterable[SkillSource], config: pytest.Config
) -> None:
    """Every file of a run has a path of its own."""
    taken: list[tuple[str, Path]] = []
    for setting in ("replay_file", "tests_file", "runs_folder"):
        if path := getattr(settings, setting):
            taken.append((Setting(setting), path))

    if xml := getattr(config.option, "xmlpath", None):
        taken.append(("--junitxml", Path(os.path.expandvars(xml)).expanduser()))

    for skill in skills:
        paths = [skill.skill_file, skill.folder / "skill_results.json"]
        if skill.suites.path:
            paths.append(skill.suites.path)
        for path in (*paths, *files_beside(skill.folder)):
            taken.append((f"the skill {skill.label}", path))

    require_apart(_output_paths(settings), taken)


def require_outputs(settings: Settings) -> None:
    """Find out before the run, not after it, that a file can't be written."""
    for setting, file in _output_paths(settings).items():
        is_folder = setting.endswith("_folder")
        if file and (problem := why_unwritable(file, folder=is_folder)):
            raise SettingsError(setting, problem, "Check the path.", value=shown(file))

    record_file = settings.record_file
    if record_file and record_file.is_file():
        # Nothing but a recording is overwritten.
        load_recording(record_file, "record_file")


def _output_paths(settings: Settings) -> dict[str, Path | None]:
    return report_paths(settings) | {"record_file": settings.record_file}
