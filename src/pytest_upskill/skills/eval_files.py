"""The files that cases in the forms of others name: read from the skill's folder, or given."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .._util.json_forms import Location, Problem
from .folder import NotTextError, read_skill_file
from .workspace import workspace_files

_PATHS: Final = ("path", "name", "file", "filename")
_CONTENTS: Final = ("content", "contents", "text")


def path_in(item: Mapping[str, Any]) -> str:
    """The path of a file that is written as an object; empty if it has none."""
    return next((item[key] for key in _PATHS if isinstance(item.get(key), str)), "")


def files_of(
    written: Any, place: Location, folder: Path, problems: list[Problem]
) -> dict[str, Any]:
    """Names and texts, or files that are none: a list of paths or objects, an object of texts."""
    files = dict[str, Any]()
    if isinstance(written, dict):
        written = [{"path": name, "content": text} for name, text in written.items()]
    if not isinstance(written, list | None):
        problems.append((place, "must be a list"))
        return files
    for number, item in enumerate(written or ()):
        given = item if isinstance(item, dict) else {"path": item}
        name = path_in(given)
        text = next((given[key] for key in _CONTENTS if isinstance(given.get(key), str)), None)
        try:
            if not name.strip():
                raise ValueError('must be a path, or an object with a "path"')
            files |= _read(folder, name) if text is None else {name: text}
        except ValueError as error:
            problems.append(((*place, number), str(error)))
    return files


def _read(folder: Path, name: str) -> dict[str, Any]:
    """A file, or all files of a folder, by name.

    Paths are relative to the skill's folder, to evals/, or to the root of the repository.
    """
    inside = [f"/{name}".partition(f"/{step}/")[2] for step in (folder.name, "evals")]
    choices = [name, f"evals/{name}", inside[0] or name, f"evals/{inside[1] or name}"]
    found = next((choice for choice in choices if _exists(folder / choice)), name)
    if _is_folder(folder / found):
        names = [file.path for file in workspace_files(folder, found)]
        return {f"{name.rstrip('/')}/{one}": _content(folder, f"{found}/{one}") for one in names}
    return {name: _content(folder, found)}


def _content(folder: Path, name: str) -> str | dict[str, str]:
    try:
        return read_skill_file(folder, name)
    except NotTextError:  # for agents
        return {"file": name}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _is_folder(path: Path) -> bool:
    return _exists(path) and path.is_dir()
