"""Trigger sets: queries that should, or should not, make an agent open a skill.

They are in separate files (evals/triggers.json, evals/*trigger*.json), or beside the cases, in the
forms of skill-creator and similar ones.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from .._util.json_forms import FormError, Location, Problem, line_of, lines_inside
from .._util.texts import digest, guess, one_line, slug
from ..errors import CasesError, shown
from .case_loading import read_cases_json
from .evals import TRIGGER_LISTS, entries_of_others, is_trigger, is_typo, usable_id
from .folder import cases_files, is_trigger_file
from .loaded_cases import BrokenCase, broken, numbered

TRIGGERS_NAME: Final = "evals/triggers.json"  # where new ones go
PREFIX: Final = "trigger-"  # of all ids
MAX_TRIGGERS_BYTES: Final = 5_000_000

_LISTS: Final = (
    *TRIGGER_LISTS,
    *("queries", "cases", "tests", "test_cases", "evals", "prompts", "examples"),
)
_SHOULD: Final = ("should_trigger", "should_activate", "should_fire", "positive")
_SHOULD_NOT: Final = ("should_not_trigger", "should_not_activate", "should_not_fire", "negative")
_QUERIES: Final = ("query", "prompt", "input", "text", "question", "user_prompt", "q")
_WISHES: Final = _SHOULD[:3]
# Some write the expectation as a word.
_IN_WORDS: Final = ("expected", "expect", "expected_action", "type", "label", "polarity")
_YES: Final = frozenset({"trigger", "should_trigger", "activate", "fire", "yes", "positive"})
_NO: Final = frozenset(
    {"no_trigger", "not_trigger", "do_not_trigger", "should_not_trigger", "not", "no", "negative"}
    | {"do_not_activate", "should_not_activate", "skip", "none"}
)
_HOW_TO_WRITE: Final = 'Write [{"query": "a request", "should_trigger": true}] to it.'
_TWICE: Final = "ids that occur twice are numbered"


@dataclass(frozen=True)
class Trigger:
    """A query, and whether the skill should be opened for it."""

    id: str  # of its test: "trigger-fill-in-this-form"
    query: str
    should_trigger: bool
    file: Path
    line: int = 1
    place: Location = ()

    @property
    def location(self) -> str:
        return f"{shown(self.file)}:{self.line}"


@dataclass(frozen=True)
class TriggerWarning:
    """A possible mistake in a trigger set that can be used."""

    file: Path
    line: int
    message: str
    repeats: bool = False  # a query that is there twice


@dataclass(frozen=True)
class LoadedTriggers:
    """The triggers of a skill: usable ones, broken ones, and warnings."""

    triggers: tuple[Trigger, ...] = ()
    broken: tuple[BrokenCase, ...] = ()
    warnings: tuple[TriggerWarning, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is a query, or a mistake to report."""
        return bool(self.triggers or self.broken)

    def of_kind(self, should_trigger: bool) -> list[Trigger]:
        return [trigger for trigger in self.triggers if trigger.should_trigger == should_trigger]


def trigger_files(folder: Path) -> list[Path]:
    """The trigger files of a skill, sorted; evals/triggers.json first."""
    evals = folder / "evals"
    files = [file for file in evals.glob("*.json") if is_trigger_file(file) and not file.is_dir()]
    return sorted(files, key=lambda file: (file.name != Path(TRIGGERS_NAME).name, file.name))


def names_skill(query: str, name: str) -> bool:
    """Whether a query gives the skill away: by its name of several words, or as a command.

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
    folder: Path, cases_file: Path | None = None, taken: Collection[str] = ()
) -> LoadedTriggers:
    """The triggers of a skill; those of ``cases_file`` alone, if it is not the skill's own.

    Never raises: a file that can't be read is told as broken. ``taken`` are ids of cases.
    """
    files = [*cases_files(folder), *trigger_files(folder)]
    if cases_file and cases_file not in cases_files(folder):
        alone = _load([cases_file], taken)
        if alone.found or cases_file in files:
            return alone
    return _load(files, taken)


def _load(files: Iterable[Path], taken: Collection[str]) -> LoadedTriggers:
    read = _Read()
    for file in files:
        try:
            read.add(file)
        except CasesError as error:
            if not is_trigger_file(file):
                continue  # reported with its cases
            name = f"{PREFIX}{slug(file.stem) or 'file'}"
            read.broken.append(BrokenCase(name, (), line_in(error), error))
    triggers = _with_ids(read, taken)
    names = numbered(
        [*taken, *(item.id for item in triggers), *(item.name for item in read.broken)]
    )
    named = zip(read.broken, names[len(taken) + len(triggers) :], strict=True)
    bad = tuple(replace(item, name=name) for item, name in named)
    return LoadedTriggers(triggers, bad, tuple(read.warnings))


def line_in(error: CasesError) -> int:
    """The line in the place of an error, ``path:line[:column]``; else the first."""
    numbers = [int(part) for part in error.where.split(":")[1:] if part.isdigit()]
    return numbers[0] if numbers else 1


class _Read:
    """What was read from all files so far."""

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []  # their ids as written, or empty
        self.broken: list[BrokenCase] = []
        self.warnings: list[TriggerWarning] = []
        self._known: dict[str, Trigger] = {}  # by the query, without case and extra space

    def add(self, file: Path) -> None:
        """Read a file; CasesError if it can't be read as a whole."""
        alone = is_trigger_file(file)
        limit = MAX_TRIGGERS_BYTES if alone else 10 * MAX_TRIGGERS_BYTES
        text, data = read_cases_json(file, limit, _HOW_TO_WRITE)
        entries = list(_entries(data) if alone else _beside_cases(data))
        if not entries and alone:
            self._without_queries(file, data)
        ignored, line_at = dict[str, int](), _Lines(text)
        for place, written, wish in entries:
            line = line_at(place)
            try:
                trigger, unknown = _trigger(file, line, place, written, wish)
                ignored |= {key: line for key in unknown if key not in ignored}
                self._take(trigger)
            except FormError as error:
                own_id = usable_id(written, "id") if isinstance(written, dict) else None
                number = place[-1] + 1 if place and isinstance(place[-1], int) else 1
                name = _prefixed(own_id or str(number))
                self.broken.append(broken(file, line, place, error.problems, name))
        if ignored:
            keys = ", ".join(one_line(key, 60) for key in ignored)
            line = min(ignored.values())
            self.warnings.append(TriggerWarning(file, line, f"unknown keys are ignored: {keys}"))

    def _without_queries(self, file: Path, data: Any) -> None:
        """Another kind of file may have such a name: the results of a run, say."""
        if file.match(TRIGGERS_NAME):
            problem = "no queries" if data in ([], {}) else "no list of queries"
            raise CasesError(file, problem, _HOW_TO_WRITE)
        self.warnings.append(TriggerWarning(file, 1, "no list of queries, so it is left out"))

    def _take(self, trigger: Trigger) -> None:
        """FormError if the same query has the opposite expectation elsewhere."""
        first = self._known.setdefault(" ".join(trigger.query.casefold().split()), trigger)
        if first is trigger:
            self.triggers.append(trigger)
        elif first.should_trigger == trigger.should_trigger:
            message = f"the same query as in {first.location}: it counts once"
            self.warnings.append(TriggerWarning(trigger.file, trigger.line, message, repeats=True))
        else:
            which = "should not" if trigger.should_trigger else "should"
            message = f"the same query {which} trigger in {first.location}; keep one of them"
            raise FormError([((*trigger.place, "should_trigger"), message)])


class _Lines:
    """The lines of paths; those of all items of a list are found at once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._inside: dict[Location, list[int]] = {}

    def __call__(self, place: Location) -> int:
        if not place or not isinstance(place[-1], int):
            return line_of(self._text, place)
        root = place[:-1]
        if root not in self._inside:
            self._inside[root] = lines_inside(self._text, root)
        return self._inside[root][place[-1]]


Entry = tuple[
    Location, Any, bool | None
]  # its path, as written, and should_trigger if its list says so


def _entries(data: Any, root: Location = ()) -> Iterator[Entry]:
    """The queries of a file of triggers, in any of the known forms."""
    if isinstance(data, list):
        yield from (((*root, number), item, None) for number, item in enumerate(data))
    elif isinstance(data, dict):
        if any(key in data for key in _QUERIES) and any(key in data for key in _WISHES):
            yield root, data, None
            return
        kinds = [(key, True) for key in _SHOULD] + [(key, False) for key in _SHOULD_NOT]
        lists = [(key, wish) for key, wish in kinds if isinstance(data.get(key), list)]
        for key, wish in lists:
            yield from (((*root, key, n), item, wish) for n, item in enumerate(data[key]))
        inside = next((key for key in _LISTS if isinstance(data.get(key), list | dict)), None)
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
                yield from _triggers_in(((key, n) for n in range(len(written))), written)


def _triggers_in(places: Iterable[Location], written: Iterable[Any]) -> Iterator[Entry]:
    pairs = zip(places, written, strict=True)
    yield from ((place, item, None) for place, item in pairs if is_trigger(item))


def _trigger(
    file: Path, line: int, place: Location, written: Any, wish: bool | None
) -> tuple[Trigger, list[str]]:
    """A query without its final id, and keys that look like typos; FormError if it is broken."""
    if isinstance(written, str) and wish is not None:
        written = {"query": written}
        at = place
    elif not isinstance(written, dict):
        problem = 'must be an object with "query" and "should_trigger"'
        raise FormError(
            [(place, problem if wish is None else f"must be a string, or {problem[8:]}")]
        )
    else:
        at = ()
    problems = list[Problem]()
    key = next((key for key in _QUERIES if key in written), "query")
    query = written.get(key)
    if not isinstance(query, str):
        problem = "must be a string" if key in written else f"missing{guess('query', written)}"
        problems.append((at or (*place, key), problem))
    elif not query.strip():
        problems.append((at or (*place, key), "must not be empty"))
    wish_key, should_trigger = _wish(written, wish)
    if should_trigger is None:
        problem = (
            "must be true or false" if wish_key in written else f"missing{guess(wish_key, written)}"
        )
        problems.append(((*place, wish_key), problem))
    if problems:
        raise FormError(problems)
    known_keys = {"query", "should_trigger", key, wish_key, "id"}
    typos = [name for name in written if name not in known_keys | _OTHERS and is_typo(name, _OURS)]
    trigger = Trigger(
        usable_id(written, "id") or "", str(query), bool(should_trigger), file, line, place
    )
    return trigger, typos


_OURS: Final = ("query", "should_trigger")
_OTHERS: Final = frozenset({*_QUERIES, *_WISHES, *_SHOULD_NOT, *_IN_WORDS, "queries"})


def _wish(written: Mapping[str, Any], wish: bool | None) -> tuple[str, bool | None]:
    """The key that says whether the skill should be opened, and its value; None if unclear."""
    if wish is not None:
        return "should_trigger", wish
    for key in _WISHES:
        if key in written:
            value = written[key]
            return key, value if isinstance(value, bool) else None
    for key in _IN_WORDS:
        value = written.get(key)
        word = slug(value).replace("-", "_") if isinstance(value, str) else ""
        if isinstance(value, bool) or word in _YES | _NO:
            return key, value if isinstance(value, bool) else word in _YES
    return "should_trigger", None


# Ids.


def _prefixed(name: str) -> str:
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"


def _with_ids(read: _Read, taken: Collection[str]) -> tuple[Trigger, ...]:
    """Written ids, else the first words of the query, with a hash where those are not unique."""
    words = [slug(trigger.query) for trigger in read.triggers]
    often = Counter(
        name for name, trigger in zip(words, read.triggers, strict=True) if not trigger.id
    )
    often.update(trigger.id.removeprefix(PREFIX) for trigger in read.triggers if trigger.id)
    ids = []
    for name, trigger in zip(words, read.triggers, strict=True):
        name_part = trigger.id or name
        if not trigger.id and (not name or often[name] > 1 or f"{PREFIX}{name}" in taken):
            name_part = "-".join(filter(None, [name, digest(trigger.query)[:6]]))
        ids.append(_prefixed(name_part))
    renamed = zip(read.triggers, ids, numbered(ids), strict=True)
    if first := next((trigger for trigger, name, unique in renamed if name != unique), None):
        read.warnings.append(TriggerWarning(first.file, first.line, _TWICE))
    names = numbered([*taken, *ids])[len(taken) :]
    pairs = zip(read.triggers, names, strict=True)
    return tuple(replace(trigger, id=name) for trigger, name in pairs)
