"""Routes: queries, and the skills of a catalogue that they should open.

They are in a file of the catalogue (evals/routes.json),
or made of the skills' own triggers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file
from ..._util.json_forms import Location, read_json
from ..._util.texts import as_read, counted, first_few, guess, one_line, slug
from ...errors import CasesError, InputError, shown
from ...skills.case import OPENS, STAYS_CLOSED, Case
from ...skills.loaded_cases import numbered
from ...skills.named_skill import named_once
from ...skills.skill import USERS_ONLY, Skill, fields_of, is_for_users_only
from ...skills.suites.json_files import MAX_CASES_BYTES, Entries, lines_of
from ...skills.suites.reading import read_suites
from ...skills.suites.skill_checks import names_in, plain_name
from . import ACTIVATED, QUERY

EXAMPLE: Final = """\
[
  {"query": "Merge these two PDFs into one.", "expected_skill": "pdf"},
  {"query": "Turn my notes into a report.", "expected_skill": ["docx", "pdf"]},
  {"query": "What is the capital of France?", "expected_skill": null}
]"""
ANY_OPENED: Final = {ACTIVATED: True}  # the check of every route: any skill decides
_LISTS: Final = ("routes", "queries", "cases")
_QUERIES: Final = ("query", "prompt", "input")
_EXPECTED: Final = ("expected_skill", "expected_skills")
_HOW_TO_WRITE: Final = f"Write queries and the skills that they should open:\n{EXAMPLE}"
_MAX_PROBLEMS: Final = 5
_MAX_NAMES: Final = 5

Names = tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """A query that should open one of some skills, or none of them.

    Without ``expected`` it should open none, or only not those that are ``unwanted``.
    """

    case: Case  # a query
    expected: Names
    unwanted: Names
    place: str  # file and line


@dataclass(frozen=True)
class LoadedRoutes:
    """The queries of a catalogue, and what was left out of them."""

    routes: tuple[Route, ...]
    source: str  # in words
    notes: tuple[str, ...] = ()  # in sentences

    def with_notes(self, notes: Iterable[str]) -> "LoadedRoutes":
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Catalogue:
    """The skills of a folder by name: those that a model can open, and others."""

    skills: tuple[Skill, ...]  # sorted by name
    explicit: Names = ()  # names of those that only users can call

    @classmethod
    def of(cls, skills: Iterable[Skill]) -> "Catalogue":
        """InputError if two skills have the same name, or if a model can open none."""
        by_name = dict(sorted(named_once(skills).items()))
        explicit = []
        routable = []
        for name, skill in by_name.items():
            if is_for_users_only(fields_of(skill.file)):
                explicit.append(name)
            else:
                routable.append(skill)
        if not routable:
            hint = f"Remove {USERS_ONLY} from those that a model may open."
            names = first_few(explicit, _MAX_NAMES)
            raise InputError(names, "no model can open these", hint)
        return cls(tuple(routable), tuple(explicit))

    @property
    def names(self) -> Names:
        return tuple(skill.name for skill in self.skills)

    def named(self, written: str) -> str | None:
        """A skill by its name or folder, also after those of its plugin;
        None if it is unknown.
        """
        known = {}
        for skill in self.skills:
            known[plain_name(skill.file.parent.name)] = skill.name
        for name in (*self.explicit, *self.names):
            known[plain_name(name)] = name
        return known.get(plain_name(written))


# A file of the catalogue.


def load_routes(file: Path, catalogue: Catalogue) -> LoadedRoutes:
    """The routes of a file, JSON or JSON lines; CasesError with all problems."""
    routes: dict[str, Route] = {}
    problems: list[str] = []
    left_out: list[str] = []
    for number, written in _read_entries(file):
        line = f"{shown(file)}:{number}"
        wrong = list(_find_problems(written, catalogue))
        if wrong:
            problems += [f"{line}: {problem}" for problem in wrong]
            continue

        expected = _find_known(written, catalogue)
        routable = tuple(name for name in expected if name in catalogue.names)
        if expected and not routable:
            left_out.append(expected[0])
            continue

        query = written[_find_key(written)]
        route = Route(Case("", query, line=number), routable, (), line)
        known = routes.setdefault(as_read(query), route)
        if known.expected != routable:
            problem = f"the same query expects something else in {known.place}"
            problems.append(f"{line}: {problem}; keep one")
    if problems:
        raise _join_problems(problems)

    loaded = LoadedRoutes(_name_all(routes.values()), shown(file))
    if not left_out:
        return loaded
    names = first_few(list(dict.fromkeys(left_out)), _MAX_NAMES)
    queries = counted(len(left_out), "query")
    note = f"Left out: {queries} for skills that no model can open ({names})"
    return loaded.with_notes([note])


def _read_entries(file: Path) -> list[tuple[int, Any]]:
    """The entries of a file, with their lines: a list, or an object that has one."""
    text, data = read_json(file, CasesError, _HOW_TO_WRITE, _read_content)
    root: Location = ()
    if isinstance(data, dict):
        root = next(((key,) for key in _LISTS if isinstance(data.get(key), list)), ())
        data = data[root[0]] if root else None
    if not isinstance(data, list):
        raise CasesError(file, "no list of queries", _HOW_TO_WRITE)
    if not data:
        raise CasesError(file, "no queries", _HOW_TO_WRITE)

    entries = Entries.of(root, data)
    lines = lines_of(text, entries.places)
    return [(lines[place], written) for place, written in zip(*entries, strict=True)]


def _read_content(file: Path) -> bytes:
    """JSON, also of a file of JSON lines."""
    data = read_file(file, MAX_CASES_BYTES)
    if file.suffix != ".jsonl":
        return data
    *lines, last = data.rstrip().split(b"\n")
    lines = [line + b"," if line.strip() else line for line in lines]
    return b"[" + b"\n".join([*lines, last]) + b"]"


def _find_key(written: Mapping[str, Any]) -> str:
    return next((key for key in _QUERIES if key in written), "query")


def _find_problems(written: Any, catalogue: Catalogue) -> Iterator[str]:
    if not isinstance(written, dict):
        yield 'must be an object with "query" and "expected_skill"'
        return

    key = _find_key(written)
    query = written.get(key)
    if not isinstance(query, str) or not query.strip():
        missing = f"missing{guess(key, written)}"
        yield f"{key}: {'must be a text' if key in written else missing}"
    if not any(key in written for key in _EXPECTED):
        yield f"expected_skill: missing{guess('expected_skill', written)}"
    for key in _EXPECTED:
        value = written.get(key)
        for name in value if isinstance(value, list) else [value]:
            if name is not None and not isinstance(name, str):
                yield f"{key}: must be the name of a skill, a list of names, or null"
    for name in names_in(written):
        if not catalogue.named(name):
            meant = guess(name, catalogue.names)
            yield f'expected_skill: no skill "{one_line(name, 60)}" here{meant}'


def _join_problems(problems: Sequence[str]) -> CasesError:
    """One error for all problems of a file, each with its line."""
    place, _, first = problems[0].partition(": ")
    lines = [first, *problems[1:_MAX_PROBLEMS]]
    hidden = len(problems) - _MAX_PROBLEMS
    if hidden > 0:
        lines.append(f"and {hidden:,} more")
    return CasesError(place, "\n  ".join(lines))


# The skills' own queries and cases.


def routes_of_skills(catalogue: Catalogue) -> LoadedRoutes:
    """The routes that follow from the skills' own triggers,
    and from cases that name a skill.

    CasesError if a trigger is broken.
    """
    routes: dict[str, Route] = {}
    used = set()
    for skill in catalogue.skills:
        for of_file in read_suites(skill.file.parent).files:
            for broken in of_file.broken:
                if broken.kind == QUERY:
                    raise broken.error
            data = _read_quietly(of_file.file)
            for case in of_file.cases:
                if case.skip:
                    continue
                place = f"{shown(of_file.file)}:{case.line}"
                entry = _find_entry(data, case.place)
                for opened, closed in _find_wishes(case, skill.name, entry, catalogue):
                    used.add(skill.name)
                    route = Route(case, opened, closed, place)
                    known = routes.setdefault(as_read(case.input), route)
                    routes[as_read(case.input)] = replace(
                        known,
                        expected=tuple(dict.fromkeys([*known.expected, *opened])),
                        unwanted=tuple(dict.fromkeys([*known.unwanted, *closed])),
                    )
    source = f"triggers and cases of {counted(len(used), 'skill')}"
    return LoadedRoutes(_name_all(routes.values()), source)


def _read_quietly(file: Path) -> Any:
    """A file of cases as it is written; None if it is not JSON."""
    if file.suffix == ".json":
        with suppress(CasesError):
            return read_json(file, CasesError)[1]
    return None


def _find_entry(data: Any, place: Location) -> Any:
    for step in place:
        if isinstance(step, int) and isinstance(data, list):
            data = data[step]
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data


def _find_wishes(
    case: Case, own: str, entry: Any, catalogue: Catalogue
) -> Iterator[tuple[Names, Names]]:
    """The skills that a query or a case of a skill should open, and should not, if it
    says so.

    ``entry`` is the case as written: it may name another skill than its ``own``.
    """
    if isinstance(entry, dict) and entry.get("should_trigger") is not False:
        if named := _find_known(entry, catalogue, only_routable=True):
            yield named, ()
            return

    groups = list(_list_skill_groups(case))
    if case.kind == QUERY:
        groups = [{ACTIVATED: case.should_open}]
    for group in groups:
        opened, closed = (
            _find_known(
                {"expected_skill": group.get(key)}, catalogue, only_routable=True
            )
            for key in ("skill_opened", "skill_not_opened")
        )
        opens = group.get(ACTIVATED)
        if opened or closed:
            yield opened, () if opened else closed
        elif isinstance(opens, bool):
            yield ((own,), ()) if opens else ((), (own,))


def _list_skill_groups(case: Case) -> Iterator[Mapping[str, Any]]:
    """The groups of checks that only answers with the skill must pass."""
    for group in case.expected if isinstance(case.expected, list) else [case.expected]:
        inside = group.get("with_skill") if isinstance(group, dict) else None
        for each in inside if isinstance(inside, list) else [inside]:
            if isinstance(each, dict):
                yield each


def _find_known(
    entry: Mapping[str, Any], catalogue: Catalogue, *, only_routable: bool = False
) -> Names:
    """The skills of the catalogue that an entry expects, each once."""
    names: dict[str, None] = {}
    for written in names_in(entry):
        name = catalogue.named(written)
        if name and (name in catalogue.names or not only_routable):
            names[name] = None
    return tuple(names)


def _name_all(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The same as queries with unique ids."""
    all_routes = list(routes)
    ids = numbered([slug(route.case.input) or "query" for route in all_routes])
    named = []
    for route, name in zip(all_routes, ids, strict=True):
        case = Case(
            name,
            route.case.input,
            ANY_OPENED,
            place=route.case.place,
            line=route.case.line,
            files=route.case.files,
            exact=route.case.exact,
            earlier=route.case.earlier,
            tags=(OPENS if route.expected else STAYS_CLOSED,),
            kind=QUERY,
        )
        named.append(replace(route, case=case))
    return tuple(named)
