"""What people write in JSON, held to a form: problems in our words, each with its JSON path."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ..errors import CasesError, shown
from .texts import guess, one_line

Location = tuple[str | int, ...]
Problem = tuple[Location, str]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()

_MOST_PROBLEMS_SHOWN: Final = 5
_PROBLEMS: Final = {
    "missing": "this is missing",
    "string_type": "this is not a text",
    "string_too_short": "an empty text",
    "string_pattern_mismatch": "an empty text",
    "too_short": "an empty list",
    "list_type": "this is not a list",
    "dict_type": "this is not an object",
    "model_type": "this is not an object",
    "bool_type": "this is neither true nor false",
    "int_type": "this is not a whole number",
    "float_type": "this is not a number",
    "finite_number": "this is not a finite number",
    "int_parsing_size": "this number is too large",
    "greater_than": "this is not above {gt:g}",
    "greater_than_equal": "this is below {ge:g}",
    "less_than_equal": "this is above {le:g}",
    "string_unicode": "this has half of a character (a lone surrogate) in it",
}


class Strict(BaseModel):
    """A form that forbids what it does not know and converts nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class FormError(Exception):
    """Something does not have its form; each problem has the path to where it is."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(f"{json_path(loc)}: {what}" for loc, what in self.problems))


def read_form(form: TypeAdapter[Any], data: Any, loc: Location = ()) -> Any:
    """The data as the form makes it; FormError with paths that begin at ``loc``."""
    try:
        return form.validate_python(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
    places = [_place_in(data, part) for part in details]
    raise FormError(
        [
            ((*loc, *place), _told(part, place, form))
            for place, part in zip(places, details, strict=True)
        ]
    )


def _place_in(data: Any, part: ErrorDetails) -> Location:
    """Where a problem is in the data: pydantic puts names of its own into the path of a union."""
    *way, last = part["loc"] or ("",)
    place: list[str | int] = []
    for step in [*way] if part["type"] == "missing" else [*way, last]:
        numbered = isinstance(data, list) and isinstance(step, int)
        if numbered or (isinstance(data, dict) and step in data):
            data = data[step]
            place.append(step)
    return (*place, last) if part["type"] == "missing" else tuple(place)


def cases_error(file: Path, problems: Sequence[Problem]) -> CasesError:
    """All problems of a file as one error, the first few of them in words, each with its line."""
    text = file.read_bytes().decode("utf-8-sig")
    shown_problems, more = problems[:_MOST_PROBLEMS_SHOWN], len(problems) - _MOST_PROBLEMS_SHOWN
    places = [f"{shown(file)}:{line_of(text, loc)}" for loc, _ in shown_problems]
    lines = [f"{json_path(loc)}: {what}" for loc, what in shown_problems]
    lines[1:] = [f"{place}: {line}" for place, line in zip(places[1:], lines[1:], strict=True)]
    if more > 0:
        lines.append(f"and {more} more")
    error = CasesError(places[0], "\n  ".join(lines))
    error.problems = tuple(problems)
    return error


def json_path(loc: Iterable[str | int]) -> str:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{one_line(part, 60)}" for part in loc
    )
    return path.removeprefix(".") or "the file"


def _told(part: ErrorDetails, place: Location, form: TypeAdapter[Any]) -> str:
    kind = part["type"]
    if kind == "extra_forbidden":
        return f"unknown key{guess(str(place[-1]), _known_keys(form, place[:-1]))}"
    if kind == "value_error":  # of a validator of ours
        return str(part.get("ctx", {}).get("error", part["msg"]))
    if kind in _PROBLEMS:
        return _PROBLEMS[kind].format(**part.get("ctx", {}))
    return part["msg"][:1].lower() + part["msg"][1:]


def _known_keys(form: TypeAdapter[Any], loc: Location) -> list[str]:
    """The keys of the object at a place of a form: found by walking its JSON schema."""
    schema = form.json_schema()
    found: list[str] = []
    steps: list[Any] = [schema]
    for part in (*loc, None):
        plain = [step for one in steps for step in _alternatives(one, schema)]
        if not isinstance(part, int):  # one thing may be written in place of a list of it
            lists = [step["items"] for step in plain if "items" in step]
            plain += [step for one in lists for step in _alternatives(one, schema)]
        if part is None:
            found = [key for step in plain for key in step.get("properties", {})]
        elif isinstance(part, int):
            steps = [step["items"] for step in plain if "items" in step]
        else:
            inside = [
                step.get("properties", {}).get(part, step.get("additionalProperties"))
                for step in plain
            ]
            steps = [step for step in inside if isinstance(step, dict)]
    return found


def _alternatives(step: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in step:
        return _alternatives(schema["$defs"][step["$ref"].rpartition("/")[2]], schema)
    several = [*step.get("anyOf", ()), *step.get("oneOf", ())]
    return [plain for one in several for plain in _alternatives(one, schema)] or [step]


def line_of(text: str, location: Iterable[str | int]) -> int:
    """The line, from 1 on, where a place of a text that is JSON begins.

    For the value of a key it is the line of the key. Of a place that is not there (a key that is
    missing, say) it is the line of what should hold it.
    """
    return text.count("\n", 0, _value_at(text, location)[0]) + 1


def lines_inside(text: str, location: Iterable[str | int]) -> list[int]:
    """The line of each thing that the object or list at a place holds, found in one go."""
    value = _value_at(text, location)[1]
    lines, line, counted = list[int](), 1, 0
    for _, start, _ in _inside(text, value):
        line += text.count("\n", counted, start)
        counted = start
        lines.append(line)
    return lines


def _value_at(text: str, location: Iterable[str | int]) -> tuple[int, int]:
    """Where a place begins, or the last one on the way to it that is there, and its value."""
    start = value = _after_space(text, 0)
    for part in location:
        found = _all_inside(text, value).get(part)
        if found is None:
            break
        start, value = found
    return start, value


@lru_cache(maxsize=16)  # many places of a file are asked for one after the other, all in one list
def _all_inside(text: str, start: int) -> dict[str | int, tuple[int, int]]:
    return {key: (begin, value) for key, begin, value in _inside(text, start)}


def _inside(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """What an object or a list holds: its key or number, where that begins, where its value does.

    The json module reads each value whole and says where it ends, so nothing is parsed here.
    """
    opening = text[start]
    if opening not in "[{":
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "]}":
        begin, key = at, None
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # over the colon
        yield (number if key is None else key), begin, at
        at = _after_space(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
