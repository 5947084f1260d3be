"""A skill as it stands in an agent's folder: what of it goes there, and whether it was changed.

What was written is kept as digests in a hidden file of the copy, which agents do not look at. So a
copy that nobody touched can be brought up to date, and one that somebody did is left alone.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from ..errors import SettingsError, SkillError, shown
from ..skills.skill import is_taught

MANIFEST: Final = ".pytest-upskill.json"
State = Literal["new", "same", "old", "changed"]


def files_of(folder: Path) -> dict[str, Path]:
    """The files that a skill brings: cases and results, hidden files and caches stay behind."""
    real_root = Path(os.path.realpath(folder))
    found: dict[str, Path] = {}
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if _goes(folder, Path(parent, name)))
        for name in sorted(names):
            path = Path(parent, name)
            if not _goes(folder, path):
                continue
            if not Path(os.path.realpath(path)).is_relative_to(real_root):
                raise SkillError(
                    path,
                    "this symbolic link leads out of the skill's folder",
                    "Put a copy of the file into the skill.",
                )
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path
    return found


def _goes(root: Path, path: Path) -> bool:
    hidden = path.name.startswith(".") or path.name.endswith((".pyc", "~"))
    return not hidden and is_taught(root, path)


def state_of(files: Mapping[str, Path], target: Path) -> tuple[State, list[str]]:
    """What a copy is beside the skill, and which files somebody changed in it."""
    if not os.path.lexists(target):
        return "new", []
    if not target.is_dir() or target.is_symlink():
        return "changed", [target.name]
    there = {name: _digest(path) for name, path in _present(target).items()}
    if there == {name: _digest(path) for name, path in files.items()}:
        return "same", []
    written = _written(target)
    changed = [name for name in {**there, **written} if there.get(name) != written.get(name)]
    return ("changed", sorted(changed)) if changed else ("old", [])


def _present(target: Path) -> dict[str, Path]:
    """All that a copy has; what is hidden there is not the skill's."""
    return {
        path.relative_to(target).as_posix(): path
        for path in target.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(target).parts)
        and "__pycache__" not in path.parts
    }


def _digest(path: Path) -> str:
    """Of what a file holds, and whether it can be run."""
    runs = "x" if os.name == "posix" and path.stat().st_mode & 0o100 else ""
    return hashlib.sha256(path.read_bytes()).hexdigest() + runs


def _written(target: Path) -> dict[str, str]:
    try:
        files = json.loads((target / MANIFEST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return (
        {str(name): str(digest) for name, digest in files.items()}
        if isinstance(files, dict)
        else {}
    )


def write_copy(files: Mapping[str, Path], target: Path, root: Path) -> None:
    """Put a copy where it belongs, whole or not at all."""
    skills = target.parent
    # A link on the way would have it written to who knows where.
    if not Path(os.path.realpath(skills)).is_relative_to(os.path.realpath(root)):
        raise SettingsError(
            shown(skills),
            f"this leads out of {shown(root)}",
            "Remove the link, or copy the skill by hand.",
        )
    try:
        skills.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=skills))
        try:
            _fill(new / "new", files)
            _exchange(new / "new", target, new / "old")
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise SettingsError(shown(target), f"this can't be written: {error}") from None


def _fill(folder: Path, files: Mapping[str, Path]) -> None:
    folder.mkdir()
    digests = {}
    for name, path in files.items():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod((copy.stat().st_mode & 0o777) | (path.stat().st_mode & 0o111))
        digests[name] = _digest(copy)
    (folder / MANIFEST).write_text(json.dumps({"files": digests}, indent=2) + "\n", "utf-8")


def _exchange(new: Path, target: Path, old: Path) -> None:
    if os.path.lexists(target):
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if os.path.lexists(old):
            old.rename(target)
        raise
