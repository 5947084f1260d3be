"""``local:FILE.gguf?context=16384&threads=4``: options of the embedded model's
server.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.measure.open_run import open_run
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.local import LABEL, LocalModel
from pytest_upskill.models.model import ModelLimits, ModelName
from pytest_upskill.models.providers import resolve
from pytest_upskill.models.sdk_errors import status_error
from pytest_upskill.settings import Settings
from pytest_upskill.trials.choice import Choice
from pytest_upskill.trials.transcript import Tool
from pytest_upskill.trials.trial import Question


def spec_of(name: str, folder: Path = Path("/project")) -> ModelSpec:
    return resolve(ModelName(name, folder=folder), {})


def test_options_follow_the_file() -> None:
    spec = spec_of("local:models/qwen.gguf?threads=4&context=16384")
    assert (spec.file, spec.model_id) == ("/project/models/qwen.gguf", "qwen")
    assert spec.options == (("context", 16384), ("threads", 4))


def test_the_default_model_takes_them_too() -> None:
    spec = spec_of("local:?threads=1")
    assert (spec.file, spec.model_id, spec.options) == (None, LABEL, (("threads", 1),))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("ctx=4096", 'unknown option "ctx"'),
        ("context=4096&context=4096", '"context" twice'),
        ("context=big", "context must be a whole number from 256 to 1048576"),
        ("context=-1", "context must be a whole number from 256 to 1048576"),
        ("threads=0", "threads must be a whole number from 1 to 512"),
        ("threads=²", "threads must be a whole number from 1 to 512"),
        ("threads", "threads must be a whole number from 1 to 512"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=f"^models .*: {problem}"):
        spec_of(f"local:m.gguf?{options}")


def test_answers_are_stored_by_context_but_not_by_threads(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    names = ("", "?threads=2", "?context=4096", "?context=8192")
    identities = [
        spec.provider.identity(spec)
        for spec in (spec_of(f"local:m.gguf{options}", tmp_path) for options in names)
    ]
    assert identities[0] == identities[1]
    assert len(set(identities)) == 3


def test_only_turns_of_agents_use_the_prompt_cache() -> None:
    model: Any = None
    plain = Question("local", "", (("user", "q"),), 10, 3)
    turn = replace(plain, tools=(Tool("bash", "runs", "{}"),))
    choice = replace(turn, choice=Choice(("s",), ()))
    cached = [
        LocalModel.extra(model, each)["cache_prompt"] for each in (plain, turn, choice)
    ]
    assert cached == [False, True, False]


def test_a_prompt_that_is_too_long_names_the_option() -> None:
    error = status_error(
        400,
        {},
        message="exceeds the context size",
        headers={},
        spec=spec_of("local:m.gguf"),
        secrets=(),
    )
    assert error.hint.endswith("local:FILE.gguf?context=N takes longer ones")


def test_limits_come_with_the_model() -> None:
    limits = {
        name: spec.provider.limits(spec)
        for name in ("local", "local:m.gguf?context=16384", "haiku")
        for spec in [spec_of(name)]
    }
    assert limits["local"] == ModelLimits(output=120, context=8192, seconds=300.0)
    assert limits["local:m.gguf?context=16384"] == ModelLimits(
        context=16384, seconds=300.0
    )
    assert limits["haiku"] == ModelLimits()


def test_limits_of_a_model_hold_unless_the_user_says_otherwise() -> None:
    settings = Settings(models=("local", "haiku"))
    run = open_run(settings)
    models, usual = run.models, run.settings
    chosen = open_run(replace(settings, max_output=7, timeout=9.0)).settings
    assert [usual.answer_output(name) for name in ("local", "haiku")] == [120, 2048]
    assert [models.seconds_for(name, usual) for name in ("local", "haiku")] == [
        300.0,
        120.0,
    ]
    assert (chosen.answer_output("local"), models.seconds_for("local", chosen)) == (
        7,
        9.0,
    )
