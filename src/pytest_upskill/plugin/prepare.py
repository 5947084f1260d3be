"""From settings to an engine that can be asked: all that may be wrong is found here, before."""

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ..engine import Engine
from ..engine.budget import Budget
from ..engine.recording import ReplayedAnswers, load_recording
from ..engine.store import KnownAnswers
from ..errors import SettingsError, shown
from ..measure.assembly import Specs, assemble, stored_answers
from ..models import ModelSpec
from ..models.names import Providers, resolve
from ..models.port import ModelName
from ..models.prices import Price
from ..settings import Gates, Settings
from ..skills.upskill_config import read_config
from .display import download_bar
from .paths import require_folder, require_writable

PriceOf = Callable[[str], Price | None]


def with_upskill_config(settings: Settings, folder: Path) -> Settings:
    """Where nothing of ours names a model or the folder of kept runs, upskill.config.yaml may."""
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


def resolve_models(
    names: tuple[str, ...], settings: Settings, providers: Providers
) -> dict[str, ModelSpec]:
    if settings.base_url and not settings.models:
        raise SettingsError(
            "--skill-base-url",
            "no model of that server is named",
            "Add --model NAME (llama-server takes any name).",
        )
    folder = settings.models_folder
    try:
        return {
            name: resolve(ModelName(name, settings.base_url, folder), os.environ, providers)
            for name in names
        }
    except SettingsError as error:
        raise _as_named(error, settings) from None


def resolve_judge(settings: Settings, providers: Providers) -> dict[str, ModelSpec]:
    """The judge by its name, if there is one."""
    if not settings.judge:
        return {}
    try:
        wanted = ModelName(settings.judge, settings.base_url, settings.models_folder)
        spec = resolve(wanted, os.environ, providers)
    except SettingsError as error:
        raise _as_judge(error) from None
    return {settings.judge: spec}


def _refuse_without_baseline(gates: Gates) -> None:
    """Such a gate could only fail, after everything was paid for."""
    wanted = {
        "--skill-min-lift": gates.min_lift,
        "--skill-max-token-growth": gates.max_token_growth,
    }
    for flag, limit in wanted.items():
        if limit is not None:
            raise SettingsError(flag, "this does not go with --skill-no-baseline", "Drop one.")


def _of_model(error: SettingsError, spec: ModelSpec, settings: Settings) -> SettingsError:
    """The error by what named the model."""
    only_judge = spec.name == settings.judge and spec.name not in settings.models
    return _as_judge(error) if only_judge else _as_named(error, settings)


def _as_named(error: SettingsError, settings: Settings) -> SettingsError:
    """By upskill.config.yaml, if it named the model."""
    if settings.models_file is None:
        return error
    where = error.where.replace("--model", f"{shown(settings.models_file)}: eval_model:", 1)
    return SettingsError(where, error.problem, error.hint)


def _as_judge(error: SettingsError) -> SettingsError:
    where = error.where.replace("--model", "--skill-judge", 1)
    return SettingsError(where, error.problem, error.hint.replace("--model", "--skill-judge"))


def require_all(specs: Specs, settings: Settings, config: pytest.Config) -> None:
    """Find out before the first call what would keep the run from being worth its calls."""
    if settings.record_file and settings.replay_file:
        raise SettingsError("--skill-record", "this does not go with --skill-replay", "Drop one.")
    if not settings.baseline:
        _refuse_without_baseline(settings.gates)
    if settings.record_file and settings.record_file.is_file():
        load_recording(settings.record_file, "--skill-record")  # nothing else is written over
    if settings.replay_file is None:  # a replay asks nobody, and needs no key
        for spec in specs.values():
            try:
                spec.provider.require(spec, os.environ, download_bar(config))
            except SettingsError as error:
                raise _of_model(error, spec, settings) from None
    for flag, file in (
        ("--skill-json", settings.json_file),
        ("--skill-html", settings.html_file),
        ("--skill-csv", settings.csv_file),
        ("--skill-markdown", settings.markdown_file),
        ("--skill-record", settings.record_file),
    ):
        if file:
            require_writable(flag, file)
    if settings.benchmark_folder:
        require_folder("--skill-benchmark", settings.benchmark_folder)


def require_prices(specs: Specs, settings: Settings, price_of: PriceOf) -> None:
    """A model whose price nobody knows must not pass a budget for free."""
    unknown = [name for name in specs if price_of(name) is None] if settings.max_cost else []
    if unknown:
        raise SettingsError(
            "--skill-max-cost",
            f"the price of {', '.join(unknown)} is not known",
            "Write it into the ini file (skill_prices), or use --skill-max-tokens.",
        )


def make_engine(
    specs: Specs,
    settings: Settings,
    config: pytest.Config,
    price_of: PriceOf,
    tell: Callable[[str], None],
) -> Engine:
    answers = _known_answers(specs, settings, config, tell)
    hint = "raise it, or select fewer tests with -k"
    budget = Budget(settings.max_tokens, settings.max_cost, cache(price_of), hint)
    return assemble(specs, settings, answers, budget)


def _known_answers(
    specs: Specs, settings: Settings, config: pytest.Config, tell: Callable[[str], None]
) -> KnownAnswers:
    if settings.replay_file:
        file = shown(settings.replay_file)
        return ReplayedAnswers(
            load_recording(settings.replay_file), file, _command_that_records(config, file)
        )
    return stored_answers(specs, config.rootpath, tell, fresh=settings.fresh)


def _command_that_records(config: pytest.Config, file: str) -> str:
    """The command line of this run, but for what it does with the file."""
    args = iter(map(str, config.invocation_params.args))
    kept = []
    for arg in args:
        if arg == "--skill-replay":
            next(args, None)
        elif not arg.startswith("--skill-replay="):
            kept.append(arg)
    return shlex.join(["pytest", *kept, "--skill-record", file])
