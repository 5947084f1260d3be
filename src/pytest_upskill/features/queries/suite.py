"""Queries that should, or should not, make an agent open a skill, as cases.

They are in separate files (evals/triggers.json, evals/*trigger*.json), or beside the
cases, in the forms of skill-creator and similar ones.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..._util.json_forms import FormError, Location, Problem
from ..._util.texts import as_read, digest, guess, slug
from ...errors import CasesError, NoCasesError, shown
from ...skills.case import OPENS, STAYS_CLOSED, Case
from ...skills.folder import EVALS_NAME, cases_files
from ...skills.loaded_cases import (
    BrokenCase,
    LoadedCases,
    all_cases,
    broken,
    numbered,
)
from ...skills.suites.eval_checks import EXPECTING
from ...skills.suites.evals import LISTS_BESIDE, entries_of_others
from ...skills.suites.json_files import (
    Unknown,
    ignored_keys,
    is_for_others,
    is_typo,
    lines_of,
    read_cases_json,
    usable_id,
)
from ...skills.suites.skill_checks import (
    OF_SKILL,
    WISHES,
    OwnSkill,
    has_paths,
    has_wish,
    should_open,
)
from . import ACTIVATED, QUERY, TRIGGERS_NAME

PREFIX: Final = QUERY.prefix

_LISTS: Final = (*LISTS_BESIDE, "queries", "cases", "tests", "evals", "test_cases")
# Lists whose name says of all queries what they should do.
_KINDS: Final = {
    "should_trigger": True,
    "should_activate": True,
    "should_not_trigger": False,
    "should_not_activate": False,
}
_QUERIES: Final = ("query", "prompt", "input")
_OURS: Final = ("query", "should_trigger")
_KNOWN: Final = frozenset({*_QUERIES, *OF_SKILL, *_KINDS, "queries", "id", "expected"})
_FOLDERS: Final = ("trigger", "triggers")  # in evals/
_HOW_TO_WRITE: Final = 'Write [{"query": "a request", "should_trigger": true}] to it.'


@dataclass(frozen=True)
class _Entry:
    """A query as written; ``wish`` is what its list says of all that are in it."""

    place: Location
    written: Any
    wish: bool | None = None


# What the core asks of a reader, see skills/suites/beside.py.


def is_own_file(file: Path) -> bool:
    """Whether a file is for queries by its path.

    Such are evals/*trigger*.json, evals/*queries*.json, and files in evals/triggers.
    """
    if file.suffix != ".json":
        return False
    if file.parent.name in _FOLDERS:
        return file.parent.parent.name == "evals"
    name = file.name.lower()
    return file.parent.name == "evals" and ("trigger" in name or "queries" in name)


def is_own_set(file: Path) -> bool:
    """Whether a file of another name has queries, and nothing else."""
    if file.match(EVALS_NAME) or is_for_others(file):
        return False
    try:
        _, data = read_cases_json(file, "")
    except CasesError:
        return False
    entries = entries_of_others(data)
    if entries is None or not entries.written:
        return False
    return all(map(is_own_entry, entries.written))


def is_own_entry(entry: Any) -> bool:
    """Whether an entry is a query: nothing is expected of an answer."""
    if not isinstance(entry, dict) or not has_wish(entry) or has_paths(entry):
        return False
    return not any(entry.get(key) for key in (*EXPECTING, "expected"))


def list_files(folder: Path) -> list[Path]:
    """The files of queries of a skill, sorted; evals/triggers.json first."""
    files = []
    for pattern in ("*.json", "trigger*/*.json"):
        for path in (folder / "evals").glob(pattern):
            if not path.is_dir() and (is_own_file(path) or is_own_set(path)):
                files.append(path)
    return sorted(files, key=lambda file: (file != folder / TRIGGERS_NAME, file))


def load(
    folder: Path,
    cases_file: Path | None = None,
    taken: Collection[str] = (),
    files: Sequence[Path] | None = None,
) -> list[LoadedCases[Case]]:
    """The queries of a skill, file by file; those of ``cases_file`` alone,
    if it is another's.

    Never raises: a file that can't be read is told as broken. ``taken`` are ids of
    cases, ``files`` are read instead of all that may have queries.
    """
    files = [*cases_files(folder), *list_files(folder)] if files is None else files
    if cases_file and cases_file not in cases_files(folder):
        alone = _load(cases_file, folder)
        if not alone.is_empty or cases_file in files:
            files = [cases_file]
    return _name_all(_drop_repeats(_load(file, folder) for file in files), taken)


# Files.


def _load(file: Path, folder: Path) -> LoadedCases[Case]:
    """The queries of a file; ids are as written, or empty."""
    alone = is_own_file(file)
    try:
        text, data = read_cases_json(file, _HOW_TO_WRITE)
        entries = list(_list_entries(data) if alone else _find_beside_cases(data))
        if alone and "trigger" not in file.name and not any(map(_says_so, entries)):
            entries = []  # queries of something else
        if not entries and file.match(TRIGGERS_NAME):
            problem = "no queries" if data in ([], {}) else "no list of queries"
            raise NoCasesError(file, problem, _HOW_TO_WRITE)
    except CasesError as error:
        if not alone:
            return LoadedCases(file, ())  # reported with its cases
        name = f"{PREFIX}{slug(file.stem) or 'file'}"
        broken_file = BrokenCase(name, (), _line_in(error), error, kind=QUERY)
        return LoadedCases(file, (), (broken_file,))

    # Another kind of file may have such a name: the results of a run
    if alone and not entries:
        warning = (1, "no list of queries, so it is left out")
        return LoadedCases(file, (), warnings=(warning,))

    lines = lines_of(text, [entry.place for entry in entries])
    skill = OwnSkill.of(folder, data, [entry.written for entry in entries])
    cases: list[Case] = []
    bad: list[BrokenCase] = []
    unknown = Unknown()
    for entry in entries:
        line = lines[entry.place]
        try:
            cases.append(_read_query(entry, line, skill, unknown))
        except FormError as error:
            bad.append(_break(file, line, entry, error.problems))
    warnings = tuple(ignored_keys(text, unknown))
    return LoadedCases(file, tuple(cases), tuple(bad), warnings)


def _says_so(entry: _Entry) -> bool:
    """Whether a query says if the skill should be opened."""
    if entry.wish is not None:
        return True
    return isinstance(entry.written, dict) and has_wish(entry.written)


def _line_in(error: CasesError) -> int:
    """The line in the place of an error, ``path:line[:column]``; else the first."""
    numbers = [int(part) for part in error.where.split(":")[1:] if part.isdigit()]
    return numbers[0] if numbers else 1


def _break(
    file: Path, line: int, entry: _Entry, problems: Sequence[Problem], name: str = ""
) -> BrokenCase:
    place = entry.place
    if not name and isinstance(entry.written, dict):
        name = usable_id(entry.written, "id") or ""
    number = place[-1] + 1 if place and isinstance(place[-1], int) else 1
    name = _add_prefix(name or str(number))
    return replace(broken(file, line, place, problems, name), kind=QUERY)


def _drop_repeats(files: Iterable[LoadedCases[Case]]) -> Iterator[LoadedCases[Case]]:
    """Every query once: a repeat is told, and is broken if it should end
    differently.
    """
    known: dict[str, tuple[bool, str]] = {}
    for of_file in files:
        file = of_file.file
        cases: list[Case] = []
        bad = list(of_file.broken)
        warnings = list(of_file.warnings)
        for case in of_file.cases:
            text = as_read(case.input)
            if text not in known:
                known[text] = case.should_open, f"{shown(file)}:{case.line}"
                cases.append(case)
                continue

            opens, location = known[text]
            if opens == case.should_open:
                problem = f"the same query as in {location}: it counts once"
                warnings.append((case.line, problem))
            else:
                wish = "should" if opens else "should not"
                problem = f"the same query {wish} trigger in {location}"
                problems = [(case.place, f"{problem}; keep one of them")]
                entry = _Entry(case.place, None)
                bad.append(_break(file, case.line, entry, problems, case.id))
        yield LoadedCases(file, tuple(cases), tuple(bad), tuple(warnings))


# Entries.


def _list_entries(data: Any, root: Location = ()) -> Iterator[_Entry]:
    """The queries of a file of its own, in any of the known forms."""
    if isinstance(data, list):
        for number, item in enumerate(data):
            yield _Entry((*root, number), item)
    elif isinstance(data, dict):
        if any(key in data for key in _QUERIES) and has_wish(data):
            yield _Entry(root, data)
            return

        kinds = [key for key in _KINDS if isinstance(data.get(key), list)]
        for key in kinds:
            for number, item in enumerate(data[key]):
                yield _Entry((*root, key, number), item, _KINDS[key])
        inside = (key for key in _LISTS if isinstance(data.get(key), list | dict))
        key = next(inside, "")
        if key and not kinds and len(root) < 2:
            yield from _list_entries(data[key], (*root, key))


def _find_beside_cases(data: Any) -> Iterator[_Entry]:
    """The queries in a file of cases: in separate lists, and among the cases."""
    lists: list[tuple[Location, Any]] = [((), data)]
    if isinstance(data, dict):
        for key in LISTS_BESIDE:
            if isinstance(data.get(key), list | dict):
                yield from _list_entries(data[key], (key,))
            elif data.get(key) is not None:
                yield _Entry((key,), data[key])  # to be reported
        lists = [((key,), data.get(key)) for key in ("cases", "tests")]

    entries = entries_of_others(data)
    if entries:
        for place, item in zip(entries.places, entries.written, strict=True):
            if is_own_entry(item):
                yield _Entry(place, item)
        return

    for root, written in lists:
        if isinstance(written, list):
            for number, item in enumerate(written):
                if is_own_entry(item):
                    yield _Entry((*root, number), item)


def _read_query(entry: _Entry, line: int, skill: OwnSkill, unknown: Unknown) -> Case:
    """A query without its final id; FormError if it is broken."""
    written = entry.written
    place = entry.place
    query_place: Location | None = None
    if isinstance(written, str) and entry.wish is not None:
        written = {"query": written}
        query_place = place
    elif not isinstance(written, dict):
        problem = 'an object with "query" and "should_trigger"'
        either = "" if entry.wish is None else "a string, or "
        raise FormError([(place, f"must be {either}{problem}")])

    problems: list[Problem] = []
    key = next((key for key in _QUERIES if key in written), "query")
    query = written.get(key)
    if not isinstance(query, str):
        missing = f"missing{guess('query', written)}"
        problems.append(
            ((*place, key), "must be a string" if key in written else missing)
        )
    elif not query.strip():
        problems.append((query_place or (*place, key), "must not be empty"))

    wish_key, opens = _find_wish(written, entry.wish, skill)
    if opens is None:
        missing = f"missing{guess(wish_key, written)}"
        is_there = wish_key in written
        problem = "must be true or false" if is_there else missing
        problems.append(((*place, wish_key), problem))
    if problems:
        raise FormError(problems)

    for name in written.keys() - _KNOWN:
        if is_typo(name, _OURS):
            unknown.add(place, name)
    return Case(
        id=usable_id(written, "id") or "",
        input=str(query),
        expected={ACTIVATED: opens},
        place=place,
        line=line,
        tags=(OPENS if opens else STAYS_CLOSED,),
        kind=QUERY,
        # At least half of the runs must open it; or less than half may.
        threshold=0.5 if opens else None,
    )


def _find_wish(
    written: Mapping[str, Any], wish: bool | None, skill: OwnSkill
) -> tuple[str, bool | None]:
    """The key that says whether the skill should be opened, and its value;
    None if unclear.
    """
    if wish is not None:
        return "should_trigger", wish
    for key in WISHES:
        if key in written:
            value = written[key]
            return key, value if isinstance(value, bool) else None
    if has_wish(written):
        return "expected_skill", should_open(written, skill)
    return "should_trigger", None


# Ids.


def _add_prefix(name: str) -> str:
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"


def _name_all(
    files: Iterable[LoadedCases[Case]], taken: Collection[str]
) -> list[LoadedCases[Case]]:
    """Unique ids in all files: as written, else the first words of the query.

    A hash follows where those are not unique.
    """
    loaded = [of_file for of_file in files if not of_file.is_empty or of_file.warnings]
    cases = all_cases(loaded)
    often = Counter(case.id.removeprefix(PREFIX) or slug(case.input) for case in cases)
    names = list(taken)
    for case in cases:
        name = case.id
        if not name:
            words = slug(case.input)
            name = words
            if not words or often[words] > 1 or f"{PREFIX}{words}" in taken:
                name = "-".join(filter(None, [words, digest(case.input)[:6]]))
        names.append(_add_prefix(name))
    for of_file in loaded:
        names += [case.name for case in of_file.broken]

    unique = iter(numbered(names)[len(taken) :])
    named = []
    for of_file in loaded:
        new = tuple(replace(case, id=next(unique)) for case in of_file.cases)
        named.append(replace(of_file, cases=new))
    return [
        replace(
            of_file,
            broken=tuple(replace(case, name=next(unique)) for case in of_file.broken),
        )
        for of_file in named
    ]
