"""The cases of a file: those that can be run, those that can't, and ids for them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from .._util.json_forms import Location, Problem, cases_error
from .._util.texts import digest, joined_words, slug_words
from ..errors import CasesError
from .case import Case
from .kinds import CASE, CaseKind

C = TypeVar("C", covariant=True)
D = TypeVar("D")


@dataclass(frozen=True)
class BrokenCase:
    """A case that can't be run, and why."""

    name: str  # its id, or its number without a usable id
    place: Location
    line: int
    error: CasesError
    kind: CaseKind = CASE

    @property
    def message(self) -> str:
        """Each problem with its file, line and path."""
        return str(self.error)


@dataclass(frozen=True)
class LoadedCases(Generic[C]):
    """The cases of a file: runnable ones, broken ones, and warnings."""

    file: Path
    cases: tuple[C, ...]
    broken: tuple[BrokenCase, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()  # lines and messages
    # The runnable ones as skill_meta.json would say them
    written: tuple[dict[str, Any], ...] = ()
    # Whose files these cases name, if it is not that of the suite
    folder: Path | None = None

    @classmethod
    def of(
        cls,
        file: Path,
        cases: Sequence[D],
        broken: Sequence[BrokenCase],
        warnings: Sequence[tuple[int, str]],
    ) -> "LoadedCases[D]":
        return LoadedCases(file, tuple(cases), _in_order(broken), tuple(warnings))

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a case nor a mistake to report."""
        return not (self.cases or self.broken)

    def only(
        self, cases: Sequence[D], broken: Sequence[BrokenCase]
    ) -> "LoadedCases[D]":
        """The same with other cases, and more broken ones."""
        only = LoadedCases.of(self.file, cases, [*self.broken, *broken], self.warnings)
        return replace(only, folder=self.folder)

    def require_all(self) -> list[C]:
        """All cases; CasesError if one can't be run."""
        if self.broken:
            problems = [
                problem for case in self.broken for problem in case.error.problems
            ]
            raise cases_error(self.file, problems)
        return list(self.cases)


def all_cases(loaded: Iterable[LoadedCases[Case]]) -> tuple[Case, ...]:
    return tuple(case for of_file in loaded for case in of_file.cases)


def broken(
    file: Path,
    line: int,
    place: Location,
    problems: Sequence[Problem],
    name: str | None = None,
) -> BrokenCase:
    """A case that can't be run; CasesError if the defaults of the file are to blame."""
    shared = [problem for problem in problems if problem[0][:1] == ("defaults",)]
    if shared:
        raise cases_error(file, shared)
    number = place[-1] + 1 if place and isinstance(place[-1], int) else 1
    return BrokenCase(
        name or f"case-{number}", place, line, cases_error(file, problems, line)
    )


def broken_case(file: Path, case: Case, problems: Sequence[Problem]) -> BrokenCase:
    """A case that can't be run; CasesError if the file's defaults are wrong."""
    return broken(file, case.line, case.place, problems, case.id)


def _in_order(broken: Iterable[BrokenCase]) -> tuple[BrokenCase, ...]:
    """In file order, with unique names."""
    ordered = sorted(broken, key=lambda case: case.place)
    names = numbered([case.name for case in ordered])
    return tuple(
        replace(case, name=name) for case, name in zip(ordered, names, strict=True)
    )


_ALIKE: Final = 20  # characters that ids of questions which begin alike would share


def automatic_ids(questions: Sequence[tuple[str, ...]]) -> list[str]:
    """An id for each case: its question, and whatever else it is asked with.

    Of questions that begin alike, the words that differ come first.
    Other questions change nothing.
    """
    all_words = [slug_words(question) for question, *_ in questions]
    groups: dict[str, list[list[str]]] = {}
    for words in sorted(all_words):
        group = groups.setdefault(_beginning(words), [])
        if words not in group[-1:]:
            group.append(words)
    return [
        f"{_telling(words, groups[_beginning(words)]) or 'case'}-{digest(*parts)[:6]}"
        for words, parts in zip(all_words, questions, strict=True)
    ]


def numbered(ids: Sequence[str]) -> list[str]:
    """The same ids, with a number after each that occurred before."""
    taken, last, out = set(ids), dict[str, int](), list[str]()
    for wanted_id in ids:
        name = wanted_id
        while wanted_id in last and name in taken:
            last[wanted_id] += 1
            name = f"{wanted_id}-{last[wanted_id]}"
        last.setdefault(wanted_id, 1)
        taken.add(name)
        out.append(name)
    return out


def _beginning(words: Sequence[str]) -> str:
    """The first words, up to about half of an id."""
    start = ""
    for word in words:
        start = f"{start}-{word}"
        if len(start) > _ALIKE:
            break
    return start


def _telling(words: list[str], alike: list[list[str]]) -> str:
    """The words to show; ``alike`` is sorted, so those that
    share the most are neighbours.
    """
    at = bisect_left(alike, words)
    neighbours = (*alike[max(at - 1, 0) : at], *alike[at + 1 : at + 2])
    shared = max((_shared(words, neighbour) for neighbour in neighbours), default=0)
    differ = shared < len(words) and len("-".join(words[:shared])) > _ALIKE
    return joined_words(words[shared:] if differ else words)


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words two questions share at the start."""
    pairs = enumerate(zip(first, second, strict=False))
    return next(
        (number for number, (a, b) in pairs if a != b), min(len(first), len(second))
    )
