"""upskill.config.yaml, for users of upskill: the keys that pytest-upskill shares."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from .._util.files import read_file, reason_of
from .._util.texts import one_line
from ..errors import InputError, shown
from .frontmatter import YAML_ERRORS, read_yaml

CONFIG_NAME: Final = "upskill.config.yaml"
CONFIG_VARIABLE: Final = "UPSKILL_CONFIG"
_MAX_BYTES: Final = 100_000
_CODE: Final = "this file can't name code"
_NO_CODE: Final = (
    "Name it on the command line or in pytest's ini file, or use scripted:FILE.json."
)


@dataclass(frozen=True)
class UpskillConfig:
    """The settings of the file, all empty without one. Paths start with the folder."""

    file: Path | None = None
    eval_models: tuple[str, ...] = ()
    skills_dir: Path | None = None
    runs_dir: Path | None = None
    teacher: str | None = None
    test_model: str | None = None
    attempts: int | None = None
    runs: int | None = None
    max_parallel: int | None = None
    keys: Mapping[str, str] = field(default_factory=dict, compare=False)  # by field

    def origin(self, field: str) -> str:
        """The file and the key of a value, for errors about it."""
        return (
            f"{shown(self.file)}: {self.keys[field]}"
            if self.file and field in self.keys
            else ""
        )


def read_config(folder: Path, env: Mapping[str, str]) -> UpskillConfig:
    """Read the file that UPSKILL_CONFIG names, else the one in this folder.

    Its paths are relative to this folder, as in upskill.
    Keys that only upskill uses are ignored.
    """
    named = env.get(CONFIG_VARIABLE, "").strip()
    file = folder / (_at_home(named) if named else CONFIG_NAME)
    if not named and not os.path.exists(file):  # noqa: PTH110 (never raises)
        return UpskillConfig()
    data = _read(
        file, "Check the path in UPSKILL_CONFIG." if named else "Check the file."
    )
    values, keys = dict[str, Any](), dict[str, str]()
    for key, (name, read, example) in _KEYS.items():
        if data.get(key) is None:
            continue
        try:
            value = read(data[key])
        except ValueError as error:
            hint = _NO_CODE if _CODE in str(error) else f"Write '{key}: {example}'."
            raise InputError(f"{shown(file)}: {key}", str(error), hint) from None
        values[name], keys[name] = (
            folder / value if isinstance(value, Path) else value,
            key,
        )
    return UpskillConfig(file, keys=keys, **values)


def _read(file: Path, hint: str) -> dict[str, Any]:
    try:
        data = read_yaml(read_file(file, _MAX_BYTES).decode("utf-8-sig"))[1]
    except OSError as error:
        raise InputError(file, reason_of(error), hint) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{shown(file)}:{mark.line + 1}:{mark.column + 1}" if mark else file
        problem = f"invalid YAML: {error.problem or error.context}"
        raise InputError(
            location, problem, "Write one 'key: value' per line."
        ) from None
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


def _model(name: Any) -> str:
    """A model's name, unless it is a Python function:
    the file may come with a stranger's skill.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError("must be a model name")
    name = name.strip()
    if name.startswith("scripted:") and not name.endswith(".json"):
        raise ValueError(f"{one_line(name, 100)}: {_CODE}")
    return str(name)


def _models(names: Any) -> tuple[str, ...]:
    listed = names if isinstance(names, list) else [names]
    if not all(isinstance(name, str) and name.strip() for name in listed):
        raise ValueError("must be a model name or a list of them")
    return tuple(dict.fromkeys(map(_model, listed)))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number")
    return max(1, value)  # as upskill does


def _folder(path: Any) -> Path:
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise ValueError("must be the path of a folder")
    return Path(_at_home(path.strip()))


def _at_home(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 (Path.expanduser raises without a home)


# By the key of the file: the field, what reads it, and an example.
# The second teacher counts.
_KEYS: Final[Mapping[str, tuple[str, Callable[[Any], Any], str]]] = {
    "eval_model": ("eval_models", _models, "haiku"),
    "model": ("teacher", _model, "opus"),
    "skill_generation_model": ("teacher", _model, "opus"),
    "test_gen_model": ("test_model", _model, "opus"),
    "skills_dir": ("skills_dir", _folder, "./skills"),
    "runs_dir": ("runs_dir", _folder, "./runs"),
    "max_refine_attempts": ("attempts", _number, "3"),
    "num_runs": ("runs", _number, "3"),
    "max_parallel": ("max_parallel", _number, "3"),
}
