"""Routes: queries, and the skills of a catalogue that they should open.

They are in a file of the catalogue (evals/routes.json),
or made of the skills' own triggers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file, reason_of
from ..._util.json_forms import Location, parse_limited
from ..._util.texts import as_read, counted, first_few, guess, one_line, slug
from ...errors import CasesError, InputError, shown
from ...skills.case import OPENS, STAYS_CLOSED, Case
from ...skills.loaded_cases import numbered
from ...skills.named_skill import named_once
from ...skills.skill import USERS_ONLY, Skill, fields_of, is_for_users_only
from ...skills.suites.json_files import MAX_CASES_BYTES, lines_of, read_cases_json
from ...skills.suites.reading import read_suites
from ...skills.suites.triggers import ACTIVATED

EXAMPLE: Final = """\
[
  {"query": "Merge these two PDFs into one.", "expected_skill": "pdf"},
  {"query": "Turn my notes into a report.", "expected_skill": ["docx", "pdf"]},
  {"query": "What is the capital of France?", "expected_skill": null}
]"""
ANY_OPENED: Final = {ACTIVATED: True}  # the check of every route: any skill decides
_LISTS: Final = ("routes", "queries", "cases", "evals", "tests", "test_cases")
_QUERIES: Final = (
    "query",
    "prompt",
    "input",
    "request",
    "text",
    "question",
    "user_prompt",
)
_EXPECTED: Final = ("expected_skill", "expected_skills")
_ACCEPTED: Final = ("acceptable_skills", "acceptable_alternates")
_UNWANTED: Final = ("forbidden_skills", "must_not_trigger")
_CHECKS: Final = ("skill_opened", "skill_not_opened")
_NONE: Final = frozenset({"", "none", "null", "no skill"})
_HOW_TO_WRITE: Final = f"Write queries and the skills that they should open:\n{EXAMPLE}"
_MOST_PROBLEMS: Final = 5
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class Route:
    """A query that should open one of some skills, or none of them.

    Without ``expected`` it should open none, or only not those that are ``unwanted``.
    """

    case: Case  # a trigger
    expected: tuple[str, ...]
    unwanted: tuple[str, ...]
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
    explicit: tuple[str, ...] = ()  # names of those that only users can call

    @classmethod
    def of(cls, skills: Iterable[Skill]) -> "Catalogue":
        """InputError if two skills have the same name, or if a model can open none."""
        by_name = dict(sorted(named_once(skills).items()))
        explicit = [name for name, skill in by_name.items() if _is_explicit(skill)]
        routable = [skill for name, skill in by_name.items() if name not in explicit]
        if not routable:
            hint = f"Remove {USERS_ONLY} from those that a model may open."
            raise InputError(
                first_few(explicit, _MOST_NAMES), "no model can open these", hint
            )
        return cls(tuple(routable), tuple(explicit))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(skill.name for skill in self.skills)

    def named(self, written: str) -> str | None:
        """A skill by its name or folder, also after those of its plugin;
        None if it is unknown.
        """
        known = {skill.file.parent.name: skill.name for skill in self.skills}
        known |= {name: name for name in (*self.explicit, *self.names)}
        path = written.strip().removesuffix("/SKILL.md").rstrip("/")
        forms = (path, path.rpartition("/")[2], path.rpartition(":")[2])
        return next((known[form] for form in forms if form in known), None)


def _is_explicit(skill: Skill) -> bool:
    return is_for_users_only(fields_of(skill.file))


def load_routes(file: Path, catalogue: Catalogue) -> LoadedRoutes:
    """The routes of a file, JSON or JSON lines; CasesError with all problems."""
    reader, routes = _Reader(catalogue), _Routes()
    entries = list(_lines(file) if file.suffix == ".jsonl" else _entries(file))
    if not entries:
        raise CasesError(file, "no queries", _HOW_TO_WRITE)
    problems = list[tuple[int, str]]()
    for line, written in entries:
        try:
            if expectation := reader.route(written):
                query, expected, unwanted = expectation
                place = f"{shown(file)}:{line}"
                routes.add(Case("", query, line=line), expected, unwanted, place)
        except _Problems as problem:
            problems += [(line, text) for text in problem.texts]
    if problems:
        raise _error(file, problems)
    return LoadedRoutes(routes.all(), shown(file), tuple(reader.notes))


def routes_of_skills(catalogue: Catalogue) -> LoadedRoutes:
    """The routes that follow from the skills' own triggers,
    and from cases that name a skill.

    CasesError if a trigger is broken.
    """
    routes, reader, used = _Routes(merge=True), _Reader(catalogue), set[str]()
    for skill in catalogue.skills:
        suites = read_suites(skill.file.parent)
        for of_file in (
            *(suites.cases.files if suites.cases else ()),
            *suites.triggers,
        ):
            if broken := [case for case in of_file.broken if case.is_trigger]:
                raise broken[0].error
            written = _Entries(of_file.file)
            for case in (case for case in of_file.cases if not case.skip):
                for expected, unwanted in reader.expectations(
                    case, skill.name, written.at(case)
                ):
                    place = f"{shown(of_file.file)}:{case.line}"
                    routes.add(case, expected, unwanted, place)
                    used.add(skill.name)
    source = f"triggers and cases of {counted(len(used), 'skill')}"
    return LoadedRoutes(routes.all(), source, tuple(reader.notes))


Names = tuple[str, ...]
# A query, skills that are right, and that are wrong
Expectation = tuple[str, Names, Names]


class _Problems(Exception):
    def __init__(self, *texts: str) -> None:
        self.texts = texts
        super().__init__(*texts)


@dataclass
class _Routes:
    """Routes, each query once."""

    merge: bool = False  # of several skills: what they expect is put together
    by_query: dict[str, Route] = field(default_factory=dict)

    def add(
        self,
        case: Case,
        expected: tuple[str, ...],
        unwanted: tuple[str, ...],
        place: str,
    ) -> None:
        key = as_read(case.input)
        known = self.by_query.get(key)
        if known is None:
            self.by_query[key] = Route(case, expected, unwanted, place)
        elif self.merge:
            expected = tuple(dict.fromkeys([*known.expected, *expected]))
            unwanted = tuple(dict.fromkeys([*known.unwanted, *unwanted]))
            self.by_query[key] = replace(known, expected=expected, unwanted=unwanted)
        elif (known.expected, known.unwanted) != (expected, unwanted):
            raise _Problems(
                f"the same query expects something else in {known.place}; keep one"
            )

    def all(self) -> tuple[Route, ...]:
        """With unique ids, as triggers."""
        routes = list(self.by_query.values())
        ids = numbered([slug(route.case.input) or "query" for route in routes])
        return tuple(
            replace(r, case=_trigger(r, name))
            for r, name in zip(routes, ids, strict=True)
        )


def _trigger(route: Route, name: str) -> Case:
    tags = (OPENS if route.expected else STAYS_CLOSED,)
    case = route.case
    return Case(
        name,
        case.input,
        ANY_OPENED,
        case.place,
        case.line,
        case.files,
        case.exact,
        earlier=case.earlier,
        tags=tags,
        is_trigger=True,
    )


class _Reader:
    """Reads entries, and counts those for skills that no model can open."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._left_out = Counter[str]()

    def route(self, written: Any) -> Expectation | None:
        """A query, the skills that are right, and those that are not;
        None if it is left out.
        """
        if not isinstance(written, dict):
            raise _Problems('must be an object with "query" and "expected_skill"')
        problems = list[str]()
        key = next((key for key in _QUERIES if key in written), "query")
        query = written.get(key)
        if not isinstance(query, str) or not query.strip():
            missing = (
                "must be a text" if key in written else f"missing{guess(key, written)}"
            )
            problems.append(f"{key}: {missing}")
        says_which = any(key in written for key in _EXPECTED)
        if not says_which and not any(key in written for key in _UNWANTED):
            problems.append(
                f"expected_skill: missing{guess('expected_skill', written)}"
            )
        expected = self._names(written, (*_EXPECTED, *_ACCEPTED), problems)
        unwanted = self._names(written, _UNWANTED, problems)
        if both := [name for name in expected if name in unwanted]:
            problems.append(f"{both[0]} is both expected and forbidden")
        if problems:
            raise _Problems(*problems)
        if written.get("should_trigger") is False:
            expected, unwanted, says_which = [], [*expected, *unwanted], not expected
        routable = [name for name in expected if name not in self._catalogue.explicit]
        if expected and not routable:
            self._left_out[expected[0]] += 1
            return None
        return str(query), tuple(routable), () if says_which else tuple(unwanted)

    def expectations(
        self, case: Case, own: str, entry: Any
    ) -> Iterator[tuple[Names, Names]]:
        """What a trigger or a case of a skill should open, and should not,
        if it says so.

        ``entry`` is the case as written: it may name another skill than its ``own``.
        """
        says_which = (
            isinstance(entry, dict) and entry.get("should_trigger") is not False
        )
        if named := self._known(entry.get(key) for key in _EXPECTED if says_which):
            yield named, ()
            return
        groups = (
            [{ACTIVATED: case.should_open}] if case.is_trigger else _skill_groups(case)
        )
        for group in groups:
            opened, closed = (self._known([group.get(key)]) for key in _CHECKS)
            if opened or closed:
                yield opened, () if opened else closed
            elif isinstance(opens := group.get(ACTIVATED), bool):
                yield ((own,), ()) if opens else ((), (own,))

    def _known(self, values: Iterable[Any]) -> Names:
        """The skills of the catalogue that some values name."""
        names = (
            name
            for value in values
            for name in (value if isinstance(value, list) else [value])
        )
        known = (self._catalogue.named(name) for name in names if isinstance(name, str))
        return tuple(
            dict.fromkeys(name for name in known if name in self._catalogue.names)
        )

    def _names(
        self, written: Mapping[str, Any], keys: Sequence[str], problems: list[str]
    ) -> list[str]:
        """The skills that the values of some keys name, each once."""
        names = dict[str, None]()
        for key in keys:
            value = written.get(key)
            for name in value if isinstance(value, list) else [value]:
                if name is None:
                    continue
                if not isinstance(name, str):
                    problems.append(
                        f"{key}: must be the name of a skill, a list of names, or null"
                    )
                elif known := self._catalogue.named(name):
                    names[known] = None
                elif name.strip().lower() not in _NONE:
                    meant = guess(name, self._catalogue.names)
                    problems.append(
                        f'{key}: no skill "{one_line(name, 60)}" here{meant}'
                    )
        return list(names)

    @property
    def notes(self) -> Iterator[str]:
        if self._left_out:
            queries = counted(sum(self._left_out.values()), "query")
            names = first_few(list(self._left_out), _MOST_NAMES)
            yield f"Left out: {queries} for skills that no model can open ({names})"


def _skill_groups(case: Case) -> Iterator[Mapping[str, Any]]:
    """The groups of checks that only answers with the skill must pass."""
    for group in case.expected if isinstance(case.expected, list) else [case.expected]:
        inside = group.get("with_skill") if isinstance(group, dict) else None
        groups = inside if isinstance(inside, list) else [inside]
        yield from (each for each in groups if isinstance(each, dict))


# Files.


class _Entries:
    """The cases of a file as they are written; none if it is not JSON."""

    def __init__(self, file: Path) -> None:
        self._data: Any = None
        with suppress(CasesError):
            if file.suffix == ".json":
                self._data = read_cases_json(file, _HOW_TO_WRITE)[1]

    def at(self, case: Case) -> Any:
        entry = self._data
        for step in case.place:
            inside = isinstance(entry, list if isinstance(step, int) else dict)
            entry = (
                entry[step]
                if inside and (step in entry or isinstance(step, int))
                else None
            )
        return entry


def _entries(file: Path) -> list[tuple[int, Any]]:
    """The entries of a JSON file, with their lines: a list, or an object that has
    one.
    """
    text, data = read_cases_json(file, _HOW_TO_WRITE)
    root: Location = ()
    if isinstance(data, dict):
        root = next(((key,) for key in _LISTS if isinstance(data.get(key), list)), ())
        data = data[root[0]] if root else None
    if not isinstance(data, list):
        raise CasesError(file, "no list of queries", _HOW_TO_WRITE)
    places: list[Location] = [(*root, number) for number in range(len(data))]
    lines = lines_of(text, places)
    return [
        (lines[place], written) for place, written in zip(places, data, strict=True)
    ]


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    """The entries of a file of JSON lines, with their lines."""
    try:
        text = read_file(file, MAX_CASES_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise CasesError(file, reason_of(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise CasesError(
            file, f"not UTF-8 (byte {error.start})", "Save it as UTF-8."
        ) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, parse_limited(line)
            except (ValueError, RecursionError):
                raise CasesError(f"{shown(file)}:{number}", "invalid JSON") from None


def _error(file: Path, problems: Sequence[tuple[int, str]]) -> CasesError:
    """One error for all problems of a file, each with its line."""
    first, *others = [(f"{shown(file)}:{line}", text) for line, text in problems]
    lines = [
        first[1],
        *(f"{place}: {text}" for place, text in others[: _MOST_PROBLEMS - 1]),
    ]
    if (hidden := len(problems) - _MOST_PROBLEMS) > 0:
        lines.append(f"and {hidden:,} more")
    return CasesError(first[0], "\n  ".join(lines))
