"""A finding of the linter, and how errors and places in a file become findings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._util.files import read_file
from .._util.json_forms import Location, json_path, line_of
from ..errors import InputError, Text, shown
from ..skills.case import Case
from ..skills.frontmatter import Level as Level

_PLACE: Final = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+)(?::\d+)?)?", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """``file`` is the path to show; ``hint`` is a sentence, or empty,
    and may name settings.
    """

    file: str
    line: int
    level: Level
    code: str
    message: str
    hint: Text = ""


def finding_of(error: InputError, code: str) -> Finding:
    """An error as a finding; its ``where`` is ``path[:line[:column]]``."""
    place = _PLACE.fullmatch(error.where)
    file, line = (place["file"], place["line"]) if place else (error.where, None)
    return Finding(file, int(line or 1), "error", code, error.problem, error.hint)


class CasesSource:
    """A file of cases; turns paths in it into findings.

    In a file that is not JSON, the line of a finding is that of its case.
    """

    def __init__(self, file: Path, cases: Iterable[Case] = ()) -> None:
        self._name = shown(file)
        self._text = (
            read_file(file).decode("utf-8-sig") if file.suffix == ".json" else ""
        )
        self._lines = {case.place: case.line for case in cases}

    def finding(
        self, level: Level, code: str, place: Location, message: str, hint: Text = ""
    ) -> Finding:
        if self._text:
            line = line_of(self._text, place)
        else:
            starts = (place[:length] for length in range(len(place), -1, -1))
            line = next(
                (self._lines[start] for start in starts if start in self._lines), 1
            )
        return Finding(self._name, line, level, code, message, hint)

    def invalid(self, place: Location, problem: str) -> Finding:
        return self.finding(
            "error", "cases-invalid", place, f"{json_path(place)}: {problem}"
        )
