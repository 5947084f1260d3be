"""One message of the linter."""

import re
from dataclasses import dataclass
from typing import Final

from ..errors import InputError, Text
from ..skills.frontmatter import Level as Level

_PLACE: Final = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+)(?::\d+)?)?", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """``file`` is the path to show; ``hint`` is a sentence, or empty, and may name settings."""

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
