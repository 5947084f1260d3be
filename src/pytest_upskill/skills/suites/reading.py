"""What a skill or a bundle is tested with: the suite of its cases, and its triggers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from ..._util.json_forms import FormError
from ...errors import CasesError
from ..case import Case
from ..folder import CASES_NAME, EVALS_NAME, is_trigger_file
from ..loaded_cases import LoadedCases
from .evals import case_of_eval, entries_of_others, is_trigger, keys_of_file
from .invoking import Invocable
from .json_files import Unknown, ignored_keys, lines_of, usable_id
from .ours import defaulted_in, entries_of, own_case, read_own_json, with_defaults
from .skill_checks import OwnSkill
from .suite import Suite, Written, folder_around, read_cases
from .triggers import all_triggers, load_triggers, trigger_files

Ask = Callable[[Path], Suite | None]  # a folder, or the file of cases that a run names
Reader = Callable[[Path, Path], Suite | None]


def json_suite(path: Path, folder: Path) -> Suite | None:
    """A JSON file of cases, in our own form or that of evals.json."""
    return Suite(path, folder, (load_cases(path, folder),))


# Where a skill or a bundle has cases, in its folder: the first place with cases counts.
PLACES: Final = (CASES_NAME, EVALS_NAME)
# Each translates a form, given a path and the folder whose files cases may name. It returns None
# if the path is of another form, and raises CasesError if it can't be read. The last reads all.
READERS: Final[tuple[Reader, ...]] = (json_suite,)


@dataclass(frozen=True)
class Suites:
    """What a skill or a bundle is tested with."""

    folder: Path
    cases: Suite | None = None  # without cases, the first place that could have some
    triggers: tuple[LoadedCases[Case], ...] = ()  # queries beside the suite's own, by file

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
    def all_triggers(self) -> tuple[Case, ...]:
        files = (*(self.cases.files if self.cases else ()), *self.triggers)
        return tuple(case for case in all_triggers(files) if case.is_trigger)


def case_places(folder: Path) -> list[Path]:
    """The files and folders that may have cases, in order of preference."""
    return [path for place in PLACES if (path := folder / place).exists()]


def read_suites(folder: Path, path: Path | None = None, ask: Ask | None = None) -> Suites:
    """What a skill or a bundle is tested with: its own, or the cases at another path.

    Never raises: what can't be read is told in the suite. ``ask`` is the hook, if there is one: it
    is asked first, and what it returns stands for all files of cases; triggers in files of their
    own are read, too.
    """
    suites, invocable = _read(folder, path, ask), Invocable(folder)
    cases = suites.cases
    if cases:
        cases = replace(cases, files=tuple(map(invocable.applied_to, cases.files)))
    return replace(suites, cases=cases, triggers=tuple(map(invocable.applied_to, suites.triggers)))


def _read(folder: Path, path: Path | None, ask: Ask | None) -> Suites:
    if ask and (suite := ask(path or folder)):
        read = {suite.path, *(of_file.file for of_file in suite.files)}
        triggers = load_triggers(folder, taken=list(suite.ids), files=trigger_files(folder))
        return Suites(folder, suite, tuple(of for of in triggers if of.file not in read))
    if path and is_trigger_file(path):  # some forms of triggers are forms of cases, too
        triggers = load_triggers(folder, path)
        if all_triggers(triggers):
            return Suites(folder, Suite(path, folder), tuple(triggers))
    cases = _suite_at(path, folder) if path else _own_suite(folder)
    taken = list(cases.ids) if cases else []
    return Suites(folder, cases, tuple(load_triggers(folder, path, taken)))


def read_suite(path: Path, folder: Path) -> Suite:
    """The cases at a path, in any of the known forms."""
    try:
        return next(suite for read in READERS if (suite := read(path, folder)))
    except CasesError as error:
        return Suite(path, folder, error=error)


def _suite_at(path: Path, folder: Path) -> Suite:
    """The cases at a path, which may be outside of the skill's folder."""
    return read_suite(path, folder if path.is_relative_to(folder) else folder_around(path))


def _own_suite(folder: Path) -> Suite | None:
    first: Suite | None = None
    for path in case_places(folder):
        suite = read_suite(path, folder)
        if suite.has_cases:
            return suite
        first = first or suite
    return first


def load_cases(file: Path, folder: Path | None = None) -> LoadedCases[Case]:
    """The cases of a JSON file, in any of the known forms, in file order.

    Cases may name files in the skill's ``folder``; the default is the folder of the file.
    CasesError if the file as a whole can't be read.
    """
    text, data = read_own_json(file)
    case_folder, unknown = folder or file.parent, Unknown()
    foreign = entries_of_others(data)
    entries, defaults = entries_of(file, data, foreign, unknown)
    if foreign:
        keys_of_file(data, foreign, unknown)
    skill = OwnSkill.of(case_folder, data, entries.written)
    lines, translate = lines_of(text, entries.places), case_of_eval if foreign else own_case

    def written() -> Iterator[Written]:
        for place, entry in zip(*entries, strict=True):
            if is_trigger(entry):  # read as such
                continue
            own_id = usable_id(entry, "id", "name") if isinstance(entry, dict) else None
            try:
                case = translate(entry, place, skill, unknown)
            except FormError as error:
                yield Written(place, lines[place], error, own_id)
                continue
            merged = with_defaults(case, defaults)
            yield Written(place, lines[place], merged, own_id, defaulted_in(case, defaults))

    loaded = read_cases(file, written(), case_folder, foreign=foreign is not None)
    warnings = sorted([*loaded.warnings, *ignored_keys(text, unknown), *skill.warnings])
    return replace(loaded, warnings=tuple(warnings))
