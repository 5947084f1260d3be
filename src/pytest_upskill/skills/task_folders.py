"""Where tasks of benchmarks are. Every pytest run looks at its arguments,
so it imports little.
"""

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from .folder import SKILL_NAMES, TOOL_FOLDERS, is_file, is_folder, leads_outside, walk

CONFIG_NAME: Final = "task.toml"
DOCUMENT_NAME: Final = "task.md"
ENVIRONMENT: Final = "environment"  # folders of a task
SKILLS: Final = f"{ENVIRONMENT}/skills"
VERIFIERS: Final = ("tests", "verifier")
SOLUTIONS: Final = ("solution", "oracle")
_TESTS: Final = ("test_*.py", "*_test.py", "conftest.py")
_DEEPEST: Final = 4  # levels of folders above a task


def is_task(folder: Path) -> bool:
    """Whether a folder is a task."""
    if is_file(folder / CONFIG_NAME):
        return True
    parts = (*VERIFIERS, *SOLUTIONS, ENVIRONMENT)
    return is_file(folder / DOCUMENT_NAME) and any(
        (folder / part).is_dir() for part in parts
    )


def task_file(folder: Path) -> Path:
    """The file that says what a task is."""
    config = folder / CONFIG_NAME
    return config if config.is_file() else folder / DOCUMENT_NAME


def task_id(folder: Path) -> str:
    """The name of a task in node ids."""
    name = Path(os.path.realpath(folder)).name
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.+") or "task"


def task_at(path: Path) -> Path | None:
    """The folder of the task that a path names: itself, or that of its file;
    None without one.
    """
    if path.name in (CONFIG_NAME, DOCUMENT_NAME):
        path = path.parent
    return path if is_task(path) else None


def tasks_at(path: Path) -> list[Path]:
    """The task of a path, or those below a folder."""
    task = task_at(path)
    return [task] if task else list(_below(path, _DEEPEST))


def has_tasks(folder: Path) -> bool:
    """Whether there are tasks below a folder that is none itself."""
    return not is_task(folder) and next(_below(folder, _DEEPEST), None) is not None


def is_task_set(folder: Path) -> bool:
    """Whether a folder is one of tasks: some are directly in it, or deeper,
    beside no tests.

    A project, which is around the current folder, may have them anywhere.
    """
    if is_task(folder):
        return False
    if next(_below(folder, 1), None):
        return True
    is_project = Path.cwd().is_relative_to(folder)
    return (
        not is_project and has_tasks(folder) and not tests_beside_tasks(folder, _TESTS)
    )


def tests_beside_tasks(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Files below a folder with names like ``patterns`` that are in no task."""
    found = list[Path]()
    for inside, folders, names in walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in TOOL_FOLDERS and not is_task(inside / name)
        ]
        found += [
            inside / name
            for name in names
            if any(fnmatch(name, one) for one in patterns)
        ]
    return found


def skills_folder(task: Path) -> Path:
    """Where a task has its skills."""
    return task / SKILLS


def has_skills(task: Path) -> bool:
    """Whether it has some in its own folder: a link may lead to a whole disk."""
    folder = skills_folder(task)
    if leads_outside(task, folder):
        return False
    return any(not {*SKILL_NAMES}.isdisjoint(names) for _, _, names in walk(folder))


def _below(folder: Path, levels: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            folders = sorted(Path(entry.path) for entry in entries if is_folder(entry))
    except OSError:
        return
    for inner in folders:
        if inner.name.startswith(".") or inner.name in TOOL_FOLDERS:
            continue
        if is_task(inner):
            yield inner
        elif levels > 1 and not inner.is_symlink():
            yield from _below(inner, levels - 1)
