"""upskill.config.yaml, for those who come from upskill: what of it has a meaning here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import SettingsError, shown

CONFIG_NAME: Final = "upskill.config.yaml"
CONFIG_VARIABLE: Final = "UPSKILL_CONFIG"
_MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class UpskillConfig:
    """What the file says; nothing if there is none. Paths begin with the folder."""

    file: Path | None = None
    eval_models: tuple[str, ...] = ()
    skills_dir: Path | None = None
    runs_dir: Path | None = None
    teacher: str | None = None
    test_model: str | None = None


def read_config(folder: Path, env: Mapping[str, str]) -> UpskillConfig:
    """The file that UPSKILL_CONFIG names, else the one in this folder.

    Its paths are relative to this folder, as upskill takes them. Keys that only upskill has a use
    for are passed over.
    """
    named = env.get(CONFIG_VARIABLE, "").strip()
    file = folder / (_at_home(named) if named else CONFIG_NAME)
    if not named and not os.path.isfile(file):  # noqa: PTH113 (raises at no folder)
        return UpskillConfig()
    data = _read(file, "Check the path in UPSKILL_CONFIG." if named else "Check the file.")
    return UpskillConfig(
        file=file,
        eval_models=_names(file, data, "eval_model"),
        teacher=_name(file, data, "skill_generation_model") or _name(file, data, "model"),
        test_model=_name(file, data, "test_gen_model"),
        skills_dir=_path(file, data, "skills_dir", folder),
        runs_dir=_path(file, data, "runs_dir", folder),
    )


def _read(file: Path, hint: str) -> dict[str, Any]:
    try:
        raw = file.read_bytes()
        if len(raw) > _MOST_BYTES:
            raise SettingsError(file, f"this file has more than {_MOST_BYTES:,} bytes", hint)
        data = yaml.safe_load(raw.decode("utf-8-sig"))
    except OSError as error:
        told = (error.strerror or str(error)).lower()
        raise SettingsError(file, told, hint) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{shown(file)}:{mark.line + 1}:{mark.column + 1}" if mark else file
        problem = f"this is not YAML: {error.problem or error.context}"
        raise SettingsError(where, problem, "One 'key: value' a line, as in upskill.") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        deep = isinstance(error, RecursionError)
        problem = "nested too deep" if deep else str(error).partition("\n")[0]
        raise SettingsError(file, f"this is not YAML: {problem}", "Save it as UTF-8.") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SettingsError(file, "this is not a list of 'key: value'", "See upskill's own.")
    return data


def _names(file: Path, data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key)
    names = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list) or not all(isinstance(n, str) and n.strip() for n in names):
        raise _wrong(file, key, "the name of a model or a list of names", f"{key}: haiku")
    return tuple(dict.fromkeys(name.strip() for name in names))


def _name(file: Path, data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise _wrong(file, key, "the name of a model", f"{key}: opus")
    return value.strip() if value else None


def _path(file: Path, data: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _wrong(file, key, "the path of a folder", f"{key}: ./{key.removesuffix('_dir')}")
    return folder / _at_home(value.strip())


def _at_home(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 (that of Path raises where there is no home)


def _wrong(file: Path, key: str, wanted: str, example: str) -> SettingsError:
    return SettingsError(f"{shown(file)}: {key}", f"this is not {wanted}", f"Write '{example}'.")
