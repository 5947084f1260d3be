"""Short names that tell the skills of a run apart."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .._util.texts import one_line
from .case_ids import numbered
from .skill import LONGEST_NAME, name_of


def labels_of(files: Sequence[Path]) -> dict[Path, str]:
    """The name of each skill, after a folder above it where skills share a name."""
    groups: dict[str, list[Path]] = {}
    for file in files:
        groups.setdefault(name_of(file), []).append(file)
    labels = {
        file: f"{prefix}/{name}" if prefix else name
        for name, group in groups.items()
        for file, prefix in zip(group, _prefixes(name, group), strict=True)
    }
    ordered = sorted(labels)
    # A name may have a slash itself.
    return dict(zip(ordered, numbered([labels[file] for file in ordered]), strict=True))


def _prefixes(name: str, files: Sequence[Path]) -> list[str]:
    """What tells skills of the same name apart: the nearest folders that all differ."""
    if len(files) == 1:
        return [""]
    above = [_folders_above(file, name) for file in files]
    depths = range(max(map(len, above)))
    one_folder = ([folders[depth : depth + 1] for folders in above] for depth in depths)
    several = ([folders[: depth + 1] for folders in above] for depth in depths)
    tries = [*map(_joined, one_folder), *map(_joined, several)]
    return next((found for found in tries if len(set(found)) == len(files)), tries[-1])


def _folders_above(file: Path, name: str) -> list[str]:
    """From the skill's own folder up; that one only if it is not called like the skill."""
    folders = [one_line(folder.name, LONGEST_NAME) for folder in file.parents if folder.name]
    return folders[1:] if folders[:1] == [name] else folders


def _joined(parts: Iterable[Sequence[str]]) -> list[str]:
    return ["/".join(reversed(part)) for part in parts]
