"""upskill.config.yaml: read like upskill does, and overridden by our own settings."""

import json
import os
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.errors import InputError
from pytest_upskill.skills.upskill_config import CONFIG_NAME, UpskillConfig, read_config


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / CONFIG_NAME
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_known_keys_are_read_and_others_ignored(tmp_path: Path) -> None:
    text = (
        "model: sonnet\nauto_eval: true\neval_model: haiku\nskills_dir:"
        " ./s\nruns_dir: /r"
    )
    file = written(tmp_path, text)
    assert read_config(tmp_path, {}) == UpskillConfig(
        file, ("haiku",), tmp_path / "s", Path("/r").absolute(), "sonnet"
    )


def test_models_that_write_skills_and_cases_are_read(tmp_path: Path) -> None:
    written(
        tmp_path, "skill_generation_model: opus\nmodel: sonnet\ntest_gen_model: haiku"
    )
    config = read_config(tmp_path, {})
    assert (config.teacher, config.test_model) == ("opus", "haiku")
    written(tmp_path, "test_gen_model: [haiku]")
    with pytest.raises(InputError, match="test_gen_model: must be a model name"):
        read_config(tmp_path, {})


# Each line merges the one above twice: 2 ** 24 times the first.
MERGES: Final = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 25)
)


@pytest.mark.parametrize(
    "key", ["eval_model", "model", "skill_generation_model", "test_gen_model"]
)
@pytest.mark.parametrize(
    "code", ["evil.py:f", "package.module:f", "~/evil.py:f", "a.json:f", "x"]
)
def test_no_model_can_be_code(tmp_path: Path, key: str, code: str) -> None:
    written(tmp_path, f'{key}: " scripted:{code} "')
    with pytest.raises(
        InputError,
        match=f"{CONFIG_NAME}: {key}: scripted:.*: this file can't name code",
    ):
        read_config(tmp_path, {})
    written(tmp_path, f"{key}: scripted:answers.json")
    assert read_config(tmp_path, {}).file


@pytest.mark.parametrize(
    ("value", "attempts"), [("4", 4), ("0", 1), ("-3", 1), ("~", None)]
)
def test_the_number_of_attempts_is_read_as_upskill_does(
    tmp_path: Path, value: str, attempts: int | None
) -> None:
    written(tmp_path, f"max_refine_attempts: {value}")
    assert read_config(tmp_path, {}).attempts == attempts


@pytest.mark.parametrize("key", ["max_refine_attempts", "num_runs", "max_parallel"])
@pytest.mark.parametrize("value", ["many", "2.5", "true", "[3]"])
def test_a_number_must_be_a_whole_one(tmp_path: Path, key: str, value: str) -> None:
    written(tmp_path, f"{key}: {value}")
    with pytest.raises(InputError, match=f"{key}: must be a whole number"):
        read_config(tmp_path, {})


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "model:", "eval_model:\nskills_dir: ~"]
)
def test_missing_values_are_none(tmp_path: Path, text: str) -> None:
    config = read_config(tmp_path, {})
    assert config == UpskillConfig()
    file = written(tmp_path, text)
    assert read_config(tmp_path, {}) == UpskillConfig(file)


def test_repeated_models_are_dropped(tmp_path: Path) -> None:
    written(tmp_path, "eval_model: [haiku, openai.o3-mini.low, haiku]")
    assert read_config(tmp_path, {}).eval_models == ("haiku", "openai.o3-mini.low")


def test_environment_may_name_another_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    written(tmp_path / "project", "eval_model: opus")
    other = tmp_path / "other.yaml"
    other.write_text("skills_dir: mine")
    config = read_config(tmp_path / "project", {"UPSKILL_CONFIG": str(other)})
    assert config == UpskillConfig(other, (), tmp_path / "project/mine")
    with pytest.raises(
        InputError, match=r"no such file.*\n  Check the path in UPSKILL_CONFIG"
    ):
        read_config(tmp_path, {"UPSKILL_CONFIG": "gone.yaml"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("eval_model: 3", "config.yaml: eval_model: must be a model name or a list"),
        ("eval_model: {a: b}", "eval_model: must be a model name"),
        ("eval_model: [haiku, 3]", "eval_model: must be a model name"),
        ("eval_model: ''", "eval_model: must be a model name"),
        ("skills_dir: [a]", "skills_dir: must be the path of a folder"),
        ("runs_dir: 3", "runs_dir: must be the path of a folder"),
        ("- haiku", "config.yaml: must be a mapping"),
        ("a: 1\nb: [", "config.yaml:2:5: invalid YAML"),
        (
            "a: !!python/name:os.system",
            "invalid YAML: could not determine a constructor",
        ),
        (b"a: \xff", "invalid YAML: 'utf-8' codec"),
        ("[" * 20_000, "invalid YAML: too many brackets on a line"),
        ("[\n" * 20_000, "invalid YAML: more than 100 levels"),
        (MERGES, "invalid YAML: more than 10,000 values, counting each alias"),
        ("a: &a [*a]", "invalid YAML: more than 10,000 values, counting each alias"),
        ("#" * 100_001, "100,001 bytes (limit 100,000)"),
    ],
)
def test_broken_file_is_one_clear_error(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_config(tmp_path, {})
    assert told in str(caught.value)


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.dictionaries(
        st.sampled_from(["eval_model", "skills_dir", "runs_dir", "model"]),
        st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4),
    ).map(lambda data: json.dumps(data).encode())
)
def test_any_content_loads_or_raises_input_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    written(folder, data)
    try:
        config = read_config(folder, {})
    except InputError:
        return
    assert all(isinstance(name, str) and name.strip() for name in config.eval_models)
    assert all(
        path is None or path.is_absolute()
        for path in (config.skills_dir, config.runs_dir)
    )


@pytest.mark.parametrize(
    ("kind", "told"), [("pipe", "not a regular file"), ("folder", "is a dir")]
)
def test_what_is_no_file_is_an_error_and_not_ignored(
    tmp_path: Path, kind: str, told: str
) -> None:
    (os.mkfifo if kind == "pipe" else os.mkdir)(tmp_path / CONFIG_NAME)
    with pytest.raises(InputError, match=told):
        read_config(tmp_path, {})
