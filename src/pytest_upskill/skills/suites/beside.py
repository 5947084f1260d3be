"""What features read beside the cases of a skill: the cases of their own kinds.

Each names a module with `is_own_file`, `is_own_set`, `is_own_entry`, `list_files` and
`load`, see ``features/queries/suite.py``.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ...registry import kind_readers
from ..case import Case
from ..loaded_cases import LoadedCases


def is_file_beside(file: Path) -> bool:
    """Whether a file is for such cases by its path."""
    return any(reader.is_own_file(file) for reader in kind_readers())


def is_set_beside(file: Path) -> bool:
    """Whether a file of another name has such cases, and nothing else."""
    return any(reader.is_own_set(file) for reader in kind_readers())


def is_entry_beside(entry: Any) -> bool:
    """Whether an entry among cases is none of them."""
    return any(reader.is_own_entry(entry) for reader in kind_readers())


def are_entries_beside(entries: Sequence[Any]) -> bool:
    return bool(entries) and all(map(is_entry_beside, entries))


def files_beside(folder: Path) -> list[Path]:
    """The files of such cases, those that new ones go to first."""
    return [file for reader in kind_readers() for file in reader.list_files(folder)]


def load_beside(
    folder: Path,
    cases_file: Path | None = None,
    taken: Collection[str] = (),
    files: Sequence[Path] | None = None,
) -> tuple[LoadedCases[Case], ...]:
    """Such cases of a skill by file, or those that ``cases_file`` brings.

    Never raises. ``taken`` are ids of cases; ``files`` are read instead of all.
    """
    loaded: list[LoadedCases[Case]] = []
    for reader in kind_readers():
        loaded += reader.load(folder, cases_file, taken, files)
    return tuple(loaded)
