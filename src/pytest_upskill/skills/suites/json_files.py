"""JSON files of cases: reading them, the lines of cases, and keys that are not read."""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..._util.files import read_file
from ..._util.json_forms import Location, line_of, lines_inside, read_json
from ..._util.texts import first_few, one_line, slug
from ...errors import CasesError
from ..case_forms import is_good_id

MAX_CASES_BYTES: Final = 50_000_000
_LONGEST_PATH: Final = 300  # characters
_MOST_KEYS: Final = 10  # named in a warning
_SIMILAR: Final = 0.75  # a key that is this much like a known one is a typo

ROUTES_NAME: Final = "routes.json"  # queries of a catalogue
ROUTES_FILE: Final = f"evals/{ROUTES_NAME}"  # in the folder of a catalogue
_RESULTS: Final = re.compile(
    "result|report|output|summary|baseline|history|grading|benchmark"
)


def is_for_others(file: Path) -> bool:
    """Whether a file beside the evals of a skill is for something else, by its name."""
    return file.name == ROUTES_NAME or _RESULTS.search(file.name.lower()) is not None


def names_in(written: Any) -> frozenset[str]:
    """The names of files that cases name, wherever they do."""
    names, values = set[str](), [written]
    while values:
        match values.pop():
            case str() as text if len(text) < _LONGEST_PATH:
                names.add(text.rpartition("/")[2])
            case dict() as inner:
                values += [*inner, *inner.values()]
            case list() | tuple() as items:
                values += items
    return frozenset(names)


class Unknown:
    """What is not read of a file: keys and values, each with its first place."""

    def __init__(self) -> None:
        self.places: dict[str, Location] = {}
        self.left_out: dict[str, tuple[str, Location]] = {}

    def add(
        self, place: Location, key: str, value: Any = True, inside: str = ""
    ) -> None:
        if value not in (None, "", [], {}):  # else nothing is ignored
            self.places.setdefault(inside + key, (*place, key))

    def leave_out(self, key: str, reason: str, place: Location) -> None:
        """Note a key that is known, but whose value can't be used;
        its first one tells why.
        """
        self.left_out.setdefault(key, (reason, (*place, key)))


class Entries(NamedTuple):
    """The cases of a file as written, each with its path."""

    places: list[Location]
    written: list[Any]

    @classmethod
    def of(cls, root: Location, written: Sequence[Any]) -> "Entries":
        return cls([(*root, number) for number in range(len(written))], list(written))


def is_typo(key: str, keys: Iterable[str]) -> bool:
    return bool(get_close_matches(key, list(keys), n=1, cutoff=_SIMILAR))


def usable_id(entry: Mapping[str, Any], *keys: str) -> str | None:
    """The value of the first of these keys that can be part of a test id."""
    for key in keys:
        value = entry.get(key)
        text = (
            str(value)
            if isinstance(value, int) and not isinstance(value, bool)
            else value
        )
        usable = (
            (text if is_good_id(text) else slug(text)) if isinstance(text, str) else ""
        )
        if usable:
            return usable
    return None


def ignored_keys(text: str, unknown: Unknown) -> Iterator[tuple[int, str]]:
    """Warnings about the keys that are not read, and the values that can't be used."""
    for key, (reason, place) in unknown.left_out.items():
        yield line_of(text, place), f"left out: {key} ({one_line(reason, 100)})"
    if unknown.places:
        keys = sorted(unknown.places)
        names = first_few([one_line(key, 60) for key in keys], _MOST_KEYS)
        line = min(line_of(text, unknown.places[key]) for key in keys[:_MOST_KEYS])
        yield line, f"unknown keys are ignored: {names}"


def lines_of(text: str, places: Sequence[Location]) -> dict[Location, int]:
    """The line of each case."""
    roots = dict.fromkeys(place[:-1] for place in places if place)
    inside = {root: lines_inside(text, root) for root in roots}
    return {
        place: (
            inside[place[:-1]][place[-1]]
            if place and isinstance(place[-1], int)
            else line_of(text, place)
        )
        for place in places
    }


def read_cases_json(file: Path, how_to_write: str) -> tuple[str, Any]:
    """The text and the value of a file that people write;
    CasesError if it is broken or empty.
    """

    def content(file: Path) -> bytes:
        data = read_file(file, MAX_CASES_BYTES)
        if not data.removeprefix(codecs.BOM_UTF8).strip():
            raise CasesError(file, "empty file", how_to_write)
        return data

    hint = "Look for a missing or extra comma or quote just before this position."
    return read_json(file, CasesError, hint, content, _no_duplicate_keys)


def _no_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The json module keeps the last of two equal keys,
    which would silently drop a check.
    """
    out = dict(pairs)
    if len(out) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"duplicate key {key!r} in an object")
    return out
