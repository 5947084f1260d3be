"""What became of a file of cases: those that can be run, and those that can't."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from .._util.json_forms import Location, Problem, cases_error
from ..errors import CasesError
from .case_ids import numbered

C = TypeVar("C", covariant=True)
D = TypeVar("D")


class Unknown:
    """The keys of a file that nobody reads, each with the first place it occurs at."""

    def __init__(self) -> None:
        self.places: dict[str, Location] = {}

    def add(self, place: Location, key: str, value: Any = True, inside: str = "") -> None:
        if value not in (None, "", [], {}):  # else nothing is lost
            self.places.setdefault(inside + key, (*place, key))


@dataclass(frozen=True)
class BrokenCase:
    """A case that can't be run, and why."""

    name: str  # its id, or its number if it has none that can be used
    place: Location
    line: int
    error: CasesError

    @property
    def message(self) -> str:
        """Each problem with its file, line and path."""
        return str(self.error)


@dataclass(frozen=True)
class LoadedCases(Generic[C]):
    """What a file of cases has: those that can be run, those that can't, and what was ignored."""

    file: Path
    cases: tuple[C, ...]
    broken: tuple[BrokenCase, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()  # lines and messages

    @classmethod
    def of(
        cls,
        file: Path,
        cases: Sequence[D],
        broken: Sequence[BrokenCase],
        warnings: Sequence[tuple[int, str]],
    ) -> "LoadedCases[D]":
        return LoadedCases(file, tuple(cases), _in_order(broken), tuple(warnings))

    def only(self, cases: Sequence[D], broken: Sequence[BrokenCase]) -> "LoadedCases[D]":
        """With other cases, and with more that can't be run."""
        return LoadedCases.of(self.file, cases, [*self.broken, *broken], self.warnings)

    def whole(self) -> list[C]:
        """All cases; CasesError if one can't be run."""
        if self.broken:
            problems = [problem for one in self.broken for problem in one.error.problems]
            raise cases_error(self.file, problems)
        return list(self.cases)


def broken(
    file: Path, line: int, place: Location, problems: Sequence[Problem], name: str | None = None
) -> BrokenCase:
    """A case that can't be run; CasesError if the defaults of the file are to blame."""
    shared = [problem for problem in problems if problem[0][:1] == ("defaults",)]
    if shared:
        raise cases_error(file, shared)
    number = place[-1] + 1 if place and isinstance(place[-1], int) else 1
    return BrokenCase(name or f"case-{number}", place, line, cases_error(file, problems))


def _in_order(broken: Iterable[BrokenCase]) -> tuple[BrokenCase, ...]:
    """In file order, and no two of the same name."""
    ordered = sorted(broken, key=lambda one: one.place)
    names = numbered([one.name for one in ordered])
    return tuple(replace(one, name=name) for one, name in zip(ordered, names, strict=True))
