"""``local:FILE.gguf?context=16384&threads=4``: options of the embedded model's server."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.local import LABEL, LocalModel
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.providers import resolve
from pytest_upskill.models.sdk_errors import status_error
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
    choice = replace(turn, choice=Choice("s", ()))
    cached = [LocalModel.extra(model, each)["cache_prompt"] for each in (plain, turn, choice)]
    assert cached == [False, True, False]


def test_a_prompt_that_is_too_long_names_the_option() -> None:
    error = status_error(400, {}, "exceeds the context size", {}, spec_of("local:m.gguf"), ())
    assert error.hint.endswith("local:FILE.gguf?context=N takes longer ones")
