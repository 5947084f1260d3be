"""JSON that people write: validate it against pydantic forms and
report errors by path and line.

Numbers in it, or from servers, have limits: larger ones would overflow in sums and
statistics, or where they are shown.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from ..errors import CasesError, InputError, Text, shown
from .files import read_file, reason_of
from .texts import guess, one_line

T = TypeVar("T")
Location = tuple[str | int, ...]
Problem = tuple[Location, str]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()
_MAX_PROBLEMS_SHOWN: Final = 5
_MOST_VALUES: Final = 5_000_000  # each takes some 60 bytes, or more
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_MESSAGES: Final = {
    "missing": "missing",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must not be empty",
    "string_too_long": "must have at most {max_length:,} characters",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length:,} entries",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_parsing_size": "number too large",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "string_unicode": "contains half a character (a lone surrogate)",
}


class Strict(BaseModel):
    """A form that rejects unknown keys and converts no types."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class FormError(Exception):
    """Data does not match its form; each problem has its path."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(
            "; ".join(f"{json_path(loc)}: {problem}" for loc, problem in self.problems)
        )


def form_of(kind: type[T]) -> TypeAdapter[T]:
    """The adapter that writes and reads a type, built when it is first needed."""
    return _form_of(kind)


_form_of: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def json_values(value: Any, *, brief: bool = False, context: object = None) -> Any:
    """A dataclass as JSON values; ``brief`` leaves out what has its default."""
    form = _form_of(type(value))
    return form.dump_python(value, mode="json", exclude_defaults=brief, context=context)


def read_form(form: TypeAdapter[Any], data: Any, loc: Location = ()) -> Any:
    """Validate data; a FormError's paths start at ``loc``."""
    try:
        return form.validate_python(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
    places = [_path_in(data, detail) for detail in details]
    raise FormError(
        [
            ((*loc, *place), _message(detail, place, form))
            for place, detail in zip(places, details, strict=True)
        ]
    )


def parse_limited(
    text: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value of a JSON text; ValueError if it is broken,
    or would take gigabytes of memory.
    """
    if about_values(text.encode("utf-8", "replace"), _MOST_VALUES) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES:,} values")
    return json.loads(text, object_pairs_hook=hook)


def about_values(text: bytes, most: int) -> int:
    """About how many values a JSON text has, without parsing it;
    0 for at most ``most``.
    """
    if _marks(text) <= most:
        return 0
    strings = (text.count(b'"') - text.count(b'\\"')) // 2
    return strings if strings > most else _marks(_STRING.sub(b"", text))


def _marks(text: bytes) -> int:
    return sum(text.count(mark) for mark in (b",", b"[", b"{"))


def read_json(
    file: Path,
    error: type[InputError],
    hint: Text = "",
    read: Callable[[Path], bytes] = read_file,
    hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> tuple[str, Any]:
    """The text and the value of a JSON file, or an error that says where it is
    broken.
    """
    try:
        text = read(file).decode("utf-8-sig")
        return text, parse_limited(text, hook)
    except OSError as problem:
        raise error(file, reason_of(problem), "Check the path.") from None
    except UnicodeDecodeError as problem:
        raise error(
            file, f"not UTF-8 (byte {problem.start})", "Save it as UTF-8."
        ) from None
    except json.JSONDecodeError as problem:
        location = f"{shown(file)}:{problem.lineno}:{problem.colno}"
        message = f"invalid JSON: {problem.msg[0].lower()}{problem.msg[1:]}"
        raise error(location, message, hint) from None
    except RecursionError:
        raise error(file, "invalid JSON: nested too deeply", hint) from None
    except ValueError as problem:
        raise error(file, f"invalid JSON: {problem}", hint) from None


def read_json_form(
    file: Path,
    form: TypeAdapter[Any],
    error: type[InputError],
    hint: Text = "",
    read: Callable[[Path], bytes] = read_file,
) -> Any:
    """A JSON file that matches a form, or an error with the line of the first
    problem.
    """
    text, data = read_json(file, error, hint, read)
    try:
        return read_form(form, data)
    except FormError as problems:
        place, problem = problems.problems[0]
        location = f"{shown(file)}:{line_of(text, place)}"
        raise error(location, f"{json_path(place)}: {problem}", hint) from None


def _path_in(data: Any, detail: ErrorDetails) -> Location:
    """The path of an error in the data, without the names
    pydantic adds for union members.
    """
    *steps, last = detail["loc"] or ("",)
    path: list[str | int] = []
    for step in [*steps] if detail["type"] == "missing" else [*steps, last]:
        numbered = isinstance(data, list) and isinstance(step, int)
        if numbered or (isinstance(data, dict) and step in data):
            data = data[step]
            path.append(step)
    return (*path, last) if detail["type"] == "missing" else tuple(path)


def cases_error(file: Path, problems: Sequence[Problem], line: int = 1) -> CasesError:
    """One error for all problems of a file; its text shows the first few,
    each with its line.

    In a file that is not JSON, it is the given ``line`` for all.
    """
    text = read_file(file).decode("utf-8-sig") if file.suffix == ".json" else ""
    shown_problems, hidden = (
        problems[:_MAX_PROBLEMS_SHOWN],
        len(problems) - _MAX_PROBLEMS_SHOWN,
    )
    lines_shown = [line_of(text, loc) if text else line for loc, _ in shown_problems]
    places = [f"{shown(file)}:{number}" for number in lines_shown]
    is_whole = file.suffix in (".toml", ".md")  # a task, which is one case
    lines = [
        problem if is_whole and not loc else f"{json_path(loc)}: {problem}"
        for loc, problem in shown_problems
    ]
    lines[1:] = [
        f"{place}: {line}" for place, line in zip(places[1:], lines[1:], strict=True)
    ]
    if hidden > 0:
        lines.append(f"and {hidden} more")
    error = CasesError(places[0], "\n  ".join(lines))
    error.problems = tuple(problems)
    return error


def json_path(loc: Iterable[str | int]) -> str:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{one_line(part, 60)}"
        for part in loc
    )
    return path.removeprefix(".") or "the file"


def _message(detail: ErrorDetails, path: Location, form: TypeAdapter[Any]) -> str:
    kind = detail["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown key{guess(str(path[-1]), _known_keys(form, path[:-1]))}"
    if kind == "value_error":  # raised by one of our validators
        return str(detail.get("ctx", {}).get("error", detail["msg"]))
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(**detail.get("ctx", {}))
    return detail["msg"][:1].lower() + detail["msg"][1:]


def _known_keys(form: TypeAdapter[Any], loc: Location) -> list[str]:
    """The keys allowed at a path of a form, from its JSON schema."""
    schema = form.json_schema()
    keys: list[str] = []
    steps: list[Any] = [schema]
    for part in (*loc, None):
        plain = [step for union in steps for step in _alternatives(union, schema)]
        if not isinstance(part, int):  # a single item may be written without its list
            lists = [step["items"] for step in plain if "items" in step]
            plain += [step for union in lists for step in _alternatives(union, schema)]
        if part is None:
            keys = [key for step in plain for key in step.get("properties", {})]
        elif isinstance(part, int):
            steps = [step["items"] for step in plain if "items" in step]
        else:
            inside = [
                step.get("properties", {}).get(part, step.get("additionalProperties"))
                for step in plain
            ]
            steps = [step for step in inside if isinstance(step, dict)]
    return keys


def _alternatives(step: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in step:
        return _alternatives(schema["$defs"][step["$ref"].rpartition("/")[2]], schema)
    several = [*step.get("anyOf", ()), *step.get("oneOf", ())]
    return [
        plain for alternative in several for plain in _alternatives(alternative, schema)
    ] or [step]


def line_of(text: str, location: Iterable[str | int]) -> int:
    """The line, from 1, of a path in a JSON text.

    For a value in an object it is the line of its key. For a path that does not exist
    (a missing key, say) it is the line of the innermost parent that does.
    """
    return text.count("\n", 0, _value_at(text, location)[0]) + 1


def lines_inside(text: str, location: Iterable[str | int]) -> list[int]:
    """The line of each item of the object or list at a path, in one pass."""
    value = _value_at(text, location)[1]
    lines, line, counted = list[int](), 1, 0
    for _, start, _ in _items(text, value):
        line += text.count("\n", counted, start)
        counted = start
        lines.append(line)
    return lines


def _value_at(text: str, location: Iterable[str | int]) -> tuple[int, int]:
    """Where a path (or its innermost existing parent) starts,
    and where its value starts.
    """
    start = value = _after_space(text, 0)
    for part in location:
        item = _items_by_key(text, value).get(part)
        if item is None:
            break
        start, value = item
    return start, value


@lru_cache(maxsize=16)  # callers look up many paths of the same list in a row
def _items_by_key(text: str, start: int) -> dict[str | int, tuple[int, int]]:
    return {key: (begin, value) for key, begin, value in _items(text, start)}


def _items(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """The items of an object or list: key or index, where the item starts,
    where its value does.

    The json module decodes each value and says where it ends,
    so nothing is parsed here.
    """
    opening = text[start]
    if opening not in "[{":
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "]}":
        begin, key = at, None
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # past the colon
        yield (number if key is None else key), begin, at
        at = _after_space(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# Numbers that servers and files may hold.

MOST: Final = 2**53  # beyond it, JSON and floats lose digits
MOST_SECONDS: Final = 1e9
MOST_TIME: Final = 32_503_680_000  # the year 3000, in seconds since the epoch


def whole_number(value: object) -> int | None:
    """A count from a server or a file; None for anything but a possible one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    return None


def _possible_seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value <= MOST_SECONDS else None
    return None


def _possible_time(value: object) -> int | None:
    time = whole_number(value)
    return time if time is not None and time <= MOST_TIME else None


Whole = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Seconds = Annotated[
    float, Field(strict=True, ge=0, le=MOST_SECONDS, allow_inf_nan=False)
]
# Anything but a possible duration becomes None.
LenientSeconds = Annotated[float | None, BeforeValidator(_possible_seconds)]
Time = Annotated[int, Field(strict=True, ge=0, le=MOST_TIME)]  # seconds since the epoch
LenientTime = Annotated[int | None, BeforeValidator(_possible_time)]
Amount = Annotated[float, Field(strict=True, ge=0, le=MOST, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(strict=True, ge=-MOST, le=MOST, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
# Many items. Pydantic would keep an error for each that is wrong:
# 300 times the room of the file.
Many = Annotated[tuple[T, ...], FailFast()]
Items = Annotated[tuple[T, ...], Field(max_length=100_000), FailFast()]


# JSON in the replies of models.

_MAX_TRIES: Final = 5_000


def objects_in(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The complete JSON objects of a text and their sources; not those inside
    others.
    """
    at = text.find("{")
    # Quoted code is full of braces.
    for _ in range(_MAX_TRIES):
        if at < 0:
            return
        try:
            data, end = _STRICT_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield data, text[at:end]
        at = text.find("{", end)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values with the same key, nobody could say which one is meant."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key occurs twice")
    return data


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


_STRICT_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_without_doubles, parse_constant=_refuse, strict=False
)
