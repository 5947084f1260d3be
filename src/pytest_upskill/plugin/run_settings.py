"""The settings of a run, read from options and ini keys, and whether they make sense."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import pytest

from ..errors import Setting, SettingsError
from ..settings import MOST_RUNS, Gates, Settings
from .option import NAMES, ini_value
from .options import INI_KEYS, MODEL, OPTIONS

_GATES_OF_TRIGGERS: Final[Mapping[str, Any]] = {"min_recall": None, "max_false_alarms": None}
_GATES_OF_CASES: Final[Mapping[str, Any]] = {
    "min_lift": None,
    "min_pass_rate": None,
    "max_token_growth": None,
    "no_worse": False,
}


def read_settings(config: pytest.Config) -> Settings:
    values: dict[str, Any] = {option.setting: option.value(config) for option in OPTIONS}
    for setting, (key, kind, _) in INI_KEYS.items():
        if given := ini_value(config, key, kind):
            values[setting] = tuple(given) if kind == NAMES else given
    of_ini = MODEL.is_of_ini_file(config)
    first_runs, runs = values["runs"]
    values |= {
        "skill_paths": tuple(values["skill_paths"] or ()),
        "models": tuple(dict.fromkeys(values["models"] or ())),
        "agents": tuple(dict.fromkeys(values["agents"] or Settings.agents)),
        "with_skills": tuple(values["with_skills"] or ()),
        "models_folder": config.inipath.parent if config.inipath and of_ini else Path(),
        "runs": runs,
        "first_runs": first_runs if first_runs < runs else None,
        "baseline": not values["baseline"],
        "history": not values["history"],
        "prompt_cache": not values["prompt_cache"],
        "gates": Gates(**{gate.name: values.pop(gate.name) for gate in fields(Gates)}),
    }
    settings = _without_idle_gates(Settings(**values), config)
    _require_sense(settings)
    return settings


def _without_idle_gates(settings: Settings, config: pytest.Config) -> Settings:
    """Gates of the ini file don't apply to what the command line leaves out."""
    idle = {"only": _GATES_OF_CASES, "off": _GATES_OF_TRIGGERS}.get(settings.triggers or "", {})
    for one in OPTIONS:
        if one.setting in idle and one.is_given(config):
            raise _contradiction(one.setting, "triggers")  # it could only fail, once all is paid
    return replace(settings, gates=replace(settings.gates, **idle))


def _require_sense(settings: Settings) -> None:
    """Find out before the first call which settings contradict each other."""
    runs, first_runs, gates = settings.runs, settings.first_runs, settings.gates
    if runs > MOST_RUNS:
        raise SettingsError("runs", f"{runs:,} runs (limit {MOST_RUNS:,})", "Use fewer runs.")
    if settings.trigger_runs > MOST_RUNS:
        problem = f"{settings.trigger_runs:,} runs (limit {MOST_RUNS:,})"
        raise SettingsError("trigger_runs", problem, "Use fewer runs.")
    if settings.noise:
        _require_noise(settings.noise)
    if first_runs and not settings.baseline:
        raise SettingsError(
            "runs",
            "needs a baseline: more runs are added depending on the lift",
            ("Give one number, or drop ", Setting("baseline"), "."),
            value=f"{first_runs}..{runs}",
        )
    if settings.cluster_send_keys and not settings.cluster:
        hint = ("Add ", Setting("cluster"), " ADDRESS.")
        raise SettingsError("cluster_send_keys", "there is no cluster to send keys to", hint)
    if settings.record_file and settings.replay_file:
        raise _contradiction("record_file", "replay_file")
    _require_batch_sense(settings)
    needs_baseline = {"min_lift": gates.min_lift, "max_token_growth": gates.max_token_growth}
    for setting, limit in needs_baseline.items():
        if limit is not None and not settings.baseline:
            raise _contradiction(setting, "baseline")  # it could only fail, once all is paid for
    if gates.no_worse and not settings.against:
        hint = ("Add ", Setting("against"), " REF.")
        raise SettingsError("no_worse", "there is nothing to compare with", hint)


def _require_batch_sense(settings: Settings) -> None:
    if settings.batch is None:
        if settings.batch_fallback:
            hint = ("Add ", Setting("batch"), ".")
            raise SettingsError("batch_fallback", "there is no batch to fall back from", hint)
        return
    if settings.replay_file:
        raise _contradiction("batch", "replay_file")
    if settings.batch == "wait":
        return
    # Each of these asks for more depending on answers, while tests run, or asks all again.
    given = {
        "runs": settings.first_runs is not None,
        "fresh": settings.fresh,
        "matrix": settings.matrix,
        "ablate": settings.ablate,
    }
    for setting, is_given in given.items():
        if is_given:
            problem = ("can't be combined with ", Setting("batch"), "=submit")
            value = f"{settings.first_runs}..{settings.runs}" if setting == "runs" else ""
            hint = ("Wait for the batch: ", Setting("batch"), ".")
            raise SettingsError(setting, problem, hint, value=value)


def _require_noise(wanted: int) -> None:
    from ..skills.noise import noise_skills

    if wanted > (most := len(noise_skills())):
        problem = f"only {most} unrelated skills come with pytest-upskill"
        raise SettingsError("noise", problem, "Ask for fewer.", value=str(wanted))


def _contradiction(setting: str, other: str) -> SettingsError:
    return SettingsError(setting, ("can't be combined with ", Setting(other)), "Drop one of them.")
