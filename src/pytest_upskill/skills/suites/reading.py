"""What a skill or a bundle is tested with: the suite of its cases, and its triggers."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, cast

from ..._util.texts import one_line
from ...errors import CasesError, NoCasesError, shown
from ..case import Case
from ..folder import CASES_NAME, EVAL_SPEC_NAMES, EVALS_NAME, is_skill
from ..kinds import CASE
from ..loaded_cases import LoadedCases, all_cases
from ..task_folders import has_tasks
from .beside import files_beside, is_file_beside, is_set_beside, load_beside
from .invoking import Invocable
from .json_files import ROUTES_NAME, is_for_others, names_in
from .json_suites import json_suite
from .suite import EVALS, Suite, folder_around

Ask = Callable[[Path], Suite | None]  # a folder, or the file of cases that a run names

# Where a skill or a bundle has cases, in its folder: the first place with cases counts.
PLACES: Final = (CASES_NAME, EVALS_NAME, EVALS, *EVAL_SPEC_NAMES)
# Each translates a form, given a path and the folder whose files cases may
# name. It returns None if the path is of another form, and raises
# CasesError if it can't be read. Imported when a path may be of that form.
READERS: Final = (
    ("harbor", "harbor_suite"),
    ("plugin_evals", "plugin_suite"),
    ("vally", "vally_suite"),
    ("json_suites", "json_folder"),
    ("json_suites", "json_suite"),
)

FOR_ROUTE: Final = "for pytest-upskill route"  # why a file of routes is not read
# Files that may well be evals, whoever reads them.
_EVAL_FILES: Final = (
    *("evals/*.json", "evals/*.jsonl", "evals/*.yaml", "evals/*.yml", ROUTES_NAME),
    *("eval*.json", "eval*.yaml", "eval*.yml", "eval/*.json", "benchmark/evals.json"),
)
_NO_EVALS: Final = re.compile(
    "answer|script|record|expected|schema|^config|package|fixture|mock|lock"
)


class Unread(NamedTuple):
    """An eval file that nobody reads, and why."""

    file: Path
    reason: str
    is_foreign: bool = False  # whether its form is not known


@dataclass(frozen=True)
class Suites:
    """What a skill or a bundle is tested with."""

    folder: Path
    cases: Suite | None = None  # without cases, the first place that could have some
    # Queries beside the suite's own, by file
    triggers: tuple[LoadedCases[Case], ...] = ()
    is_named: bool = False  # whether a run names the cases, instead of the skill's own

    @property
    def path(self) -> Path | None:
        """The file or folder of the cases."""
        return self.cases.path if self.cases else None

    @cached_property
    def has_cases(self) -> bool:
        """Whether there is a case besides triggers, or a mistake to report."""
        return self.cases is not None and self.cases.has_cases

    @cached_property
    def has_triggers(self) -> bool:
        """Whether there is a query, or a mistake to report."""
        of_files = any(not of_file.is_empty for of_file in self.triggers)
        return of_files or (self.cases is not None and self.cases.has_triggers)

    @property
    def files(self) -> tuple[LoadedCases[Case], ...]:
        """All that is read, by file."""
        return (*(self.cases.files if self.cases else ()), *self.triggers)

    @property
    def all_triggers(self) -> tuple[Case, ...]:
        return tuple(case for case in all_cases(self.files) if case.kind != CASE)

    @cached_property
    def unread(self) -> tuple[Unread, ...]:
        """Eval files of the folder that nobody reads; none if a run names the cases."""
        read = {self.path, *(of_file.file for of_file in self.files)}
        unread = (
            []
            if self.is_named
            else [one for one in self._others() if one.file not in read]
        )
        return tuple({one.file: one for one in reversed(unread)}.values())[::-1]

    def _others(self) -> Iterator[Unread]:
        named = names_in([of_file.written for of_file in self.files])
        for place in PLACES:
            if (
                suite := read_suite(self.folder / place, self.folder)
            ) and not suite.error:
                yield from (
                    Unread(of_file.file, self._instead) for of_file in suite.files
                )
        for pattern in _EVAL_FILES:
            for file in sorted(filter(Path.is_file, self.folder.glob(pattern))):
                if file.name not in named and (unread := self._unread(file)):
                    yield unread

    @property
    def _instead(self) -> str:
        if self.path is None or not self.has_cases:
            return "only read if it is named"
        inside = self.path.is_relative_to(self.folder)
        place = (
            self.path.relative_to(self.folder).as_posix()
            if inside
            else shown(self.path)
        )
        return f"{place} has the cases"

    def _unread(self, file: Path) -> Unread | None:
        """None if a file that nobody reads does not look like evals."""
        if file.name == ROUTES_NAME:
            return Unread(file, FOR_ROUTE)
        suite = read_suite(file, self.folder) if file.suffix != ".jsonl" else None
        if suite and suite.cases:
            return Unread(
                file, "looks like results" if is_for_others(file) else self._instead
            )
        if file.suffix == ".json" and is_set_beside(file):
            return Unread(file, "queries are read in evals/")
        if is_for_others(file) or _NO_EVALS.search(file.name.lower()):
            return None
        if suite and suite.error and not isinstance(suite.error, NoCasesError):
            return Unread(file, one_line(suite.error.problem, 60), is_foreign=True)
        return Unread(file, "no known form", is_foreign=True)


def read_suites(
    folder: Path, path: Path | None = None, ask: Ask | None = None
) -> Suites:
    """What a skill or a bundle is tested with: its own, or the cases at another path.

    Never raises: what can't be read is told in the suite. ``ask`` is the hook, if there
    is one: it is asked first, and what it returns stands for all files of cases;
    triggers in files of their own are read, too.
    """
    suites, invocable = _read(folder, path, ask), Invocable(folder)
    cases = suites.cases
    if cases:
        cases = replace(cases, files=tuple(map(invocable.applied_to, cases.files)))
    return replace(
        suites, cases=cases, triggers=tuple(map(invocable.applied_to, suites.triggers))
    )


def _read(folder: Path, path: Path | None, ask: Ask | None) -> Suites:
    is_named = path is not None
    if ask and (suite := ask(path or folder)):
        read = {suite.path, *(of_file.file for of_file in suite.files)}
        files = [file for file in files_beside(folder) if file not in read]
        triggers = load_beside(folder, taken=list(suite.ids), files=files)
        return Suites(folder, suite, triggers, is_named)
    if path and is_file_beside(path):  # some of their forms are forms of cases, too
        triggers = load_beside(folder, path)
        if all_cases(triggers):
            return Suites(folder, Suite(path, folder), triggers, is_named)
    cases = _suite_at(path, folder) if path else _own_suite(folder)
    triggers = load_beside(folder, path, list(cases.ids) if cases else ())
    return Suites(folder, cases, triggers, is_named)


def read_suite(path: Path, folder: Path) -> Suite | None:
    """The cases at a path, in any of the known forms; None if there is nothing to
    read.
    """
    if not path.exists():
        return None
    try:
        return _read_suite(path, folder)
    except CasesError as error:
        return Suite(path, folder, error=error)


def _read_suite(path: Path, folder: Path) -> Suite | None:
    # Files with this ending are of no other form.
    if path.suffix == ".json" and path.is_file():
        return json_suite(path, folder)

    for module, name in READERS:
        read = getattr(import_module(f".{module}", __package__), name)
        if suite := read(path, folder):
            return cast(Suite, suite)
    return None


def _suite_at(path: Path, folder: Path) -> Suite | None:
    """The cases at a path, which may be outside of the skill's folder."""
    folder = folder if path.is_relative_to(folder) else folder_around(path)
    suite = read_suite(path, folder)
    if suite is None and path.exists():
        return Suite(
            path, folder, error=CasesError(path, "no cases in a form that is known")
        )
    return suite


def _own_suite(folder: Path) -> Suite | None:
    first: Suite | None = None
    for place in PLACES:
        suite = read_suite(folder / place, folder)
        if suite and not suite.is_empty:
            return suite
        first = first or suite
    if first is None and not is_skill(folder) and has_tasks(folder):
        return read_suite(folder, folder)
    return first
