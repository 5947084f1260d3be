"""upskill.config.yaml, for users of upskill: the keys that pytest-upskill shares."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .._util.files import read_file, reason_of
from .._util.small_yaml import YAML_ERRORS, read_yaml
from .._util.texts import one_line
from ..errors import InputError, shown

CONFIG_NAME: Final = "upskill.config.yaml"
CONFIG_VARIABLE: Final = "UPSKILL_CONFIG"
_MAX_BYTES: Final = 100_000


@dataclass(frozen=True)
class UpskillConfig:
    """The settings of the file, all empty without one. Paths start with the folder."""

    file: Path | None = None
    eval_models: tuple[str, ...] = ()
    skills_dir: Path | None = None
    runs_dir: Path | None = None
    teacher: str | None = None
    teacher_key: str = "model"  # which of two keys named it
    test_model: str | None = None
    attempts: int | None = None
    runs: int | None = None
    max_parallel: int | None = None

    def origin(self, field: str) -> str:
        """The file and the key of a value, for errors about it."""
        keys = {
            "eval_models": "eval_model",
            "test_model": "test_gen_model",
            "attempts": "max_refine_attempts",
        }
        return f"{shown(self.file)}: {keys.get(field, self.teacher_key)}" if self.file else ""


def read_config(folder: Path, env: Mapping[str, str]) -> UpskillConfig:
    """Read the file that UPSKILL_CONFIG names, else the one in this folder.

    Its paths are relative to this folder, as in upskill. Keys that only upskill uses are ignored.
    """
    named = env.get(CONFIG_VARIABLE, "").strip()
    file = folder / (_at_home(named) if named else CONFIG_NAME)
    if not named and not os.path.exists(file):  # noqa: PTH110 (never raises)
        return UpskillConfig()
    data = _read(file, "Check the path in UPSKILL_CONFIG." if named else "Check the file.")
    teacher_key = "skill_generation_model" if data.get("skill_generation_model") else "model"
    return UpskillConfig(
        file=file,
        eval_models=_names(file, data, "eval_model"),
        teacher=_name(file, data, "skill_generation_model") or _name(file, data, "model"),
        teacher_key=teacher_key,
        test_model=_name(file, data, "test_gen_model"),
        skills_dir=_path(file, data, "skills_dir", folder),
        runs_dir=_path(file, data, "runs_dir", folder),
        attempts=_number(file, data, "max_refine_attempts"),
        runs=_number(file, data, "num_runs"),
        max_parallel=_number(file, data, "max_parallel"),
    )


def _read(file: Path, hint: str) -> dict[str, Any]:
    try:
        data = read_yaml(read_file(file, _MAX_BYTES).decode("utf-8-sig"))[1]
    except OSError as error:
        raise InputError(file, reason_of(error), hint) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{shown(file)}:{mark.line + 1}:{mark.column + 1}" if mark else file
        problem = f"invalid YAML: {error.problem or error.context}"
        raise InputError(location, problem, "Write one 'key: value' per line.") from None
    except YAML_ERRORS as error:
        deep = isinstance(error, RecursionError)
        problem = "nested too deeply" if deep else str(error).partition("\n")[0]
        utf_8 = isinstance(error, UnicodeDecodeError)
        hint = "Save it as UTF-8." if utf_8 else "Write one 'key: value' per line."
        raise InputError(file, f"invalid YAML: {problem}", hint) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InputError(file, "must be a mapping", "Write one 'key: value' per line.")
    return data


def _names(file: Path, data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key)
    names = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list) or not all(isinstance(n, str) and n.strip() for n in names):
        raise _wrong(file, key, "a model name or a list of them", f"{key}: haiku")
    return tuple(dict.fromkeys(_without_code(file, key, name.strip()) for name in names))


def _name(file: Path, data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise _wrong(file, key, "a model name", f"{key}: opus")
    return _without_code(file, key, value.strip()) if value else None


def _without_code(file: Path, key: str, name: str) -> str:
    """A model's name, unless it is a Python function: the file may come with a stranger's skill."""
    if name.startswith("scripted:") and not name.endswith(".json"):
        raise InputError(
            f"{shown(file)}: {key}",
            f"{one_line(name, 100)}: this file can't name code",
            "Name it on the command line or in pytest's ini file, or use scripted:FILE.json.",
        )
    return name


def _number(file: Path, data: Mapping[str, Any], key: str) -> int | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(file, key, "a whole number", f"{key}: 3")
    return max(1, value)  # as upskill does


def _path(file: Path, data: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _wrong(file, key, "the path of a folder", f"{key}: ./{key.removesuffix('_dir')}")
    return folder / _at_home(value.strip())


def _at_home(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 (Path.expanduser raises without a home)


def _wrong(file: Path, key: str, form: str, example: str) -> InputError:
    return InputError(f"{shown(file)}: {key}", f"must be {form}", f"Write '{example}'.")
