"""Colours for the text of a failure, as pytest paints a traceback: by the form of its lines.

The text itself stays plain, as JUnit, IDEs and logs have it too.
"""

import re
from collections.abc import Iterator
from typing import Final

from .layout import Marks, Paint

_RED: Final = {"red": True, "bold": True}
_GREEN: Final = {"green": True}
_YELLOW: Final = {"yellow": True}
_BOLD: Final = {"bold": True}
_GRADE: Final = re.compile(r"(?P<before>\A  )(?P<word>FAIL|ok|miss)(?= +\S)")
_TITLE: Final = re.compile(
    r"\A(?P<title>(?:Run \d+, with|With|Without)[^:]*: )(?P<outcome>passed|failed|errored)\b"
)
_HEADING: Final = re.compile(
    r"\A(?:Question|Expected|Query|To run it again|In the page)\b[^:]*:", re.ASCII
)
_STYLES: Final = {
    **{"FAIL": _RED, "ok": _GREEN, "miss": _YELLOW},
    **{"failed": _RED, "passed": _GREEN, "errored": _YELLOW},
}


def painted_failure(text: str, marks: Marks, paint: Paint) -> Iterator[str]:
    """The lines of a failure; the first one says what is wrong."""
    wall = f" {marks.wall} "
    for number, line in enumerate(text.split("\n")):
        if number == 0:
            yield paint(line, **_RED)
        else:
            # Both arms may be side by side; the answer in one of them may have a wall, too.
            yield wall.join(_painted(part, marks, paint) for part in line.split(wall))


def _painted(line: str, marks: Marks, paint: Paint) -> str:
    if grade := _GRADE.match(line):
        word = grade["word"]
        return f"  {paint(word, **_STYLES[word])}{line[grade.end() :]}"
    if title := _TITLE.match(line):
        outcome = paint(title["outcome"], **_STYLES[title["outcome"]])
        return f"{paint(title['title'], **_BOLD)}{outcome}{line[title.end() :]}"
    if heading := _HEADING.match(line):
        return f"{paint(heading.group(), **_BOLD)}{line[heading.end() :]}"
    found = re.compile(f"{re.escape(marks.opens)}.+?{re.escape(marks.closes)}")
    return found.sub(lambda match: paint(match.group(), **_YELLOW, **_BOLD), line)
