"""Trigger sets: queries that should, or should not, make an agent open a skill,
as cases.

They are in separate files (evals/triggers.json, evals/*trigger*.json), or beside the
cases, in the forms of skill-creator and similar ones.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..._util.json_forms import FormError, Location, Problem
from ..._util.texts import as_read, digest, guess, slug
from ...errors import CasesError, NoCasesError, shown
from ..case import OPENS, STAYS_CLOSED, Case
from ..folder import EVALS_NAME, cases_files, is_trigger_file
from ..loaded_cases import BrokenCase, LoadedCases, broken, numbered
from .evals import TRIGGER_LISTS, entries_of_others, is_trigger, is_trigger_set
from .json_files import (
    Unknown,
    ignored_keys,
    is_for_others,
    is_typo,
    lines_of,
    read_cases_json,
    usable_id,
)
from .skill_checks import OF_SKILL, WISHES, OwnSkill, has_wish, should_open

TRIGGERS_NAME: Final = "evals/triggers.json"  # where new ones go
PREFIX: Final = "trigger-"  # of all ids
ACTIVATED: Final = "skill_activated"  # the check of every query

_LISTS: Final = (
    *TRIGGER_LISTS,
    *("queries", "cases", "tests", "test_cases", "evals", "prompts", "examples"),
)
_SHOULD: Final = (*WISHES, "positive", "positives", "positive_triggers")  # lists
_SHOULD_NOT: Final = (
    *("should_not_trigger", "should_not_activate", "should_not_fire"),
    *("negative", "negatives", "negative_triggers", "distractors"),
)
_QUERIES: Final = ("query", "prompt", "input", "text", "question", "user_prompt", "q")
# Some write the expectation as a word.
_IN_WORDS: Final = (
    "expected",
    "expect",
    "expected_action",
    "type",
    "label",
    "polarity",
)
_YES: Final = frozenset(
    {"trigger", "should_trigger", "activate", "fire", "yes", "positive"}
)
_NO: Final = frozenset(
    {
        "no_trigger",
        "not_trigger",
        "do_not_trigger",
        "should_not_trigger",
        "not",
        "no",
        "negative",
    }
    | {"do_not_activate", "should_not_activate", "skip", "none"}
)
_OURS: Final = ("query", "should_trigger")
_OTHERS: Final = frozenset(
    {*_QUERIES, *OF_SKILL, *_SHOULD_NOT, *_IN_WORDS, "queries", "id"}
)
_HOW_TO_WRITE: Final = 'Write [{"query": "a request", "should_trigger": true}] to it.'

# Its path, as written, and what its list says of all
Entry = tuple[Location, Any, bool | None]


def trigger_files(folder: Path) -> list[Path]:
    """The trigger files of a skill, sorted; evals/triggers.json first."""
    evals = folder / "evals"
    paths = [
        path
        for pattern in ("*.json", "trigger*/*.json")
        for path in evals.glob(pattern)
    ]
    paths = [path for path in paths if not path.is_dir()]
    files = [path for path in paths if is_trigger_file(path) or is_query_set(path)]
    return sorted(files, key=lambda file: (file != folder / TRIGGERS_NAME, file))


def is_query_set(file: Path) -> bool:
    """Whether a file of another name has queries, and nothing else."""
    if file.match(EVALS_NAME) or is_for_others(file):
        return False
    try:
        _, data = read_cases_json(file, "")
    except CasesError:
        return False
    entries = entries_of_others(data)
    return entries is not None and is_trigger_set(entries.written)


def names_skill(query: str, name: str) -> bool:
    """Whether a query gives the skill away: by its name of several words,
    or as a command.

    A name that is an ordinary word, such as pdf, may well stand in a query.
    """
    words = [re.escape(word) for word in re.split(r"[\W_]+", name.casefold()) if word]
    if not words:
        return False
    pattern = r"[\W_]*".join(words) if len(words) > 1 else words[0]
    word = rf"(?<![^\W_]){pattern}(?![^\W_])"
    if len(words) == 1:  # "/pdf", "$pdf", "the pdf skill", "the skill pdf"
        word = rf"[/$]{pattern}(?![^\W_])|{word}\W*skill\b|\bskill\W*{word}"
    return re.search(word, query.casefold()) is not None


def load_triggers(
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
    files = [*cases_files(folder), *trigger_files(folder)] if files is None else files
    if cases_file and cases_file not in cases_files(folder):
        alone = _load(cases_file, folder)
        if not alone.is_empty or cases_file in files:
            return _with_ids(_once([alone]), taken)
    return _with_ids(_once(_load(file, folder) for file in files), taken)


def all_triggers(loaded: Iterable[LoadedCases[Case]]) -> tuple[Case, ...]:
    return tuple(case for of_file in loaded for case in of_file.cases)


def _load(file: Path, folder: Path) -> LoadedCases[Case]:
    """The queries of a file; ids are as written, or empty."""
    alone = is_trigger_file(file)
    try:
        text, data = read_cases_json(file, _HOW_TO_WRITE)
        entries = list(_entries(data) if alone else _beside_cases(data))
        if alone and "trigger" not in file.name and not any(map(_says_so, entries)):
            entries = []  # queries of something else
        if alone and not entries and file.match(TRIGGERS_NAME):
            problem = "no queries" if data in ([], {}) else "no list of queries"
            raise NoCasesError(file, problem, _HOW_TO_WRITE)
    except CasesError as error:
        if not alone:
            return LoadedCases(file, ())  # reported with its cases
        name = f"{PREFIX}{slug(file.stem) or 'file'}"
        return LoadedCases(
            file, (), (BrokenCase(name, (), line_in(error), error, is_trigger=True),)
        )
    # Another kind of file may have such a name: the results of a run
    if alone and not entries:
        return LoadedCases(
            file, (), warnings=((1, "no list of queries, so it is left out"),)
        )
    lines = lines_of(text, [place for place, *_ in entries])
    skill = OwnSkill.of(folder, data, [entry for _, entry, _ in entries])
    cases, bad, unknown = list[Case](), list[BrokenCase](), Unknown()
    for place, written, wish in entries:
        line = lines[place]
        try:
            cases.append(
                _trigger(line, place, written, wish=wish, skill=skill, unknown=unknown)
            )
        except FormError as error:
            own_id = usable_id(written, "id") if isinstance(written, dict) else None
            bad.append(_broken(file, line, place, error.problems, own_id))
    return LoadedCases(
        file, tuple(cases), tuple(bad), tuple(ignored_keys(text, unknown))
    )


def _says_so(entry: Entry) -> bool:
    """Whether a query says if the skill should be opened."""
    _, written, wish = entry
    return wish is not None or (isinstance(written, dict) and has_wish(written))


def _broken(
    file: Path,
    line: int,
    place: Location,
    problems: Sequence[Problem],
    own_id: str | None,
) -> BrokenCase:
    number = place[-1] + 1 if place and isinstance(place[-1], int) else 1
    name = _prefixed(own_id or str(number))
    return replace(broken(file, line, place, problems, name), is_trigger=True)


def _once(files: Iterable[LoadedCases[Case]]) -> Iterator[LoadedCases[Case]]:
    """Every query once: a repeat is told, and is broken if it should end
    differently.
    """
    known: dict[str, tuple[bool, str]] = {}
    for of_file in files:
        file, cases = of_file.file, list[Case]()
        bad, warnings = list(of_file.broken), list(of_file.warnings)
        for case in of_file.cases:
            text = as_read(case.input)
            if text not in known:
                known[text] = case.should_open, f"{shown(file)}:{case.line}"
                cases.append(case)
                continue
            should_open, location = known[text]
            if should_open == case.should_open:
                warnings.append(
                    (case.line, f"the same query as in {location}: it counts once")
                )
            else:
                wish = "should" if should_open else "should not"
                problem = (
                    f"the same query {wish} trigger in {location}; keep one of them"
                )
                bad.append(
                    _broken(
                        file, case.line, case.place, [(case.place, problem)], case.id
                    )
                )
        yield LoadedCases(file, tuple(cases), tuple(bad), tuple(warnings))


def line_in(error: CasesError) -> int:
    """The line in the place of an error, ``path:line[:column]``; else the first."""
    numbers = [int(part) for part in error.where.split(":")[1:] if part.isdigit()]
    return numbers[0] if numbers else 1


def _entries(data: Any, root: Location = ()) -> Iterator[Entry]:
    """The queries of a file of triggers, in any of the known forms."""
    if isinstance(data, list):
        yield from (((*root, number), item, None) for number, item in enumerate(data))
    elif isinstance(data, dict):
        if any(key in data for key in _QUERIES) and has_wish(data):
            yield root, data, None
            return
        kinds = [(key, True) for key in _SHOULD] + [(key, False) for key in _SHOULD_NOT]
        lists = [(key, wish) for key, wish in kinds if isinstance(data.get(key), list)]
        for key, wish in lists:
            yield from (
                ((*root, key, n), item, wish) for n, item in enumerate(data[key])
            )
        inside = next(
            (key for key in _LISTS if isinstance(data.get(key), list | dict)), None
        )
        if inside and not lists and len(root) < 2:
            yield from _entries(data[inside], (*root, inside))


def _beside_cases(data: Any) -> Iterator[Entry]:
    """The queries in a file of cases: in separate lists, and among the cases."""
    if isinstance(data, dict):
        for key in TRIGGER_LISTS:
            if data.get(key) is not None:
                if not isinstance(data[key], list | dict):
                    yield (key,), data[key], None  # to be reported
                else:
                    yield from _entries(data[key], (key,))
    entries = entries_of_others(data)
    if entries:
        yield from _triggers_in(entries.places, entries.written)
    elif isinstance(data, list):
        yield from _triggers_in(((number,) for number in range(len(data))), data)
    elif isinstance(data, dict):
        for key in ("cases", "tests"):
            written = data.get(key)
            if isinstance(written, list):
                yield from _triggers_in(
                    ((key, n) for n in range(len(written))), written
                )


def _triggers_in(places: Iterable[Location], written: Iterable[Any]) -> Iterator[Entry]:
    pairs = zip(places, written, strict=True)
    yield from ((place, item, None) for place, item in pairs if is_trigger(item))


def _trigger(
    line: int,
    place: Location,
    written: Any,
    *,
    wish: bool | None,
    skill: OwnSkill,
    unknown: Unknown,
) -> Case:
    """A query without its final id; FormError if it is broken."""
    inside: tuple[Location, ...] = ()
    if isinstance(written, str) and wish is not None:
        written, inside = {"query": written}, (place,)
    elif not isinstance(written, dict):
        problem = 'must be an object with "query" and "should_trigger"'
        raise FormError(
            [
                (
                    place,
                    problem if wish is None else f"must be a string, or {problem[8:]}",
                )
            ]
        )
    problems = list[Problem]()
    key = next((key for key in _QUERIES if key in written), "query")
    query = written.get(key)
    if not isinstance(query, str):
        problem = (
            "must be a string"
            if key in written
            else f"missing{guess('query', written)}"
        )
        problems.append(((*place, key), problem))
    elif not query.strip():
        problems.append((inside[0] if inside else (*place, key), "must not be empty"))
    wish_key, should_open = _wish(written, wish, skill)
    if should_open is None:
        problem = (
            "must be true or false"
            if wish_key in written
            else f"missing{guess(wish_key, written)}"
        )
        problems.append(((*place, wish_key), problem))
    if problems:
        raise FormError(problems)
    for name in written.keys() - _OTHERS:
        if is_typo(name, _OURS):
            unknown.add(place, name)
    return Case(
        usable_id(written, "id") or "",
        str(query),
        {ACTIVATED: should_open},
        place,
        line,
        tags=(OPENS if should_open else STAYS_CLOSED,),
        is_trigger=True,
    )


def _wish(
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
    for key in _IN_WORDS:
        value = written.get(key)
        word = slug(value).replace("-", "_") if isinstance(value, str) else ""
        if isinstance(value, bool) or word in _YES | _NO:
            return key, value if isinstance(value, bool) else word in _YES
    return "should_trigger", None


# Ids.


def _prefixed(name: str) -> str:
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"


def _with_ids(
    files: Iterable[LoadedCases[Case]], taken: Collection[str]
) -> list[LoadedCases[Case]]:
    """Unique ids in all files: as written, else the first words of the query.

    A hash follows where those are not unique.
    """
    loaded = [of_file for of_file in files if not of_file.is_empty or of_file.warnings]
    cases = all_triggers(loaded)
    words = [slug(case.input) for case in cases]
    often = Counter(
        name for name, case in zip(words, cases, strict=True) if not case.id
    )
    often.update(case.id.removeprefix(PREFIX) for case in cases if case.id)
    ids = []
    for name, case in zip(words, cases, strict=True):
        name_part = case.id or name
        if not case.id and (not name or often[name] > 1 or f"{PREFIX}{name}" in taken):
            name_part = "-".join(filter(None, [name, digest(case.input)[:6]]))
        ids.append(_prefixed(name_part))
    broken_names = [case.name for of_file in loaded for case in of_file.broken]
    unique = iter(numbered([*taken, *ids, *broken_names])[len(taken) :])
    renamed = [
        replace(
            of_file,
            cases=tuple(replace(case, id=next(unique)) for case in of_file.cases),
        )
        for of_file in loaded
    ]
    return [
        replace(
            of_file,
            broken=tuple(replace(case, name=next(unique)) for case in of_file.broken),
        )
        for of_file in renamed
    ]
