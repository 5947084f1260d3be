"""Checks of data in an answer: JSON, YAML, TOML, CSV, numbers.

Data is looked for in the fenced blocks of its language, else in those that name no
language, else in the whole answer; one that passes is enough.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from .._util.json_forms import Strict
from .._util.texts import one_line, plain
from .check import ONLY_TRUE, TEXTS, CheckContext, CheckKind, Evaluate, Result, quoted
from .json_schema import compile_schema, schema_violation
from .languages import (
    BrokenError,
    blocks_of,
    parse_json,
    parse_toml,
    parse_yaml,
    too_long,
)
from .time_budget import seconds_left


def _in_one_text(
    answer: str, languages: tuple[str, ...], judge: Callable[[str], str]
) -> Result:
    """``judge`` returns the reason why a text passes, or raises BrokenError."""
    if long := too_long(answer):
        return long
    problems = []
    for text in _texts_in(answer, *languages):
        seconds_left()
        try:
            return True, judge(text)
        except BrokenError as error:
            problems.append(str(error))
        except RecursionError:
            problems.append("the data is nested too deeply")
    return False, problems[0]


def _texts_in(answer: str, *languages: str) -> list[str]:
    blocks = list(blocks_of(answer))
    in_language = [block.text for block in blocks if block.language in languages]
    unnamed = [block.text for block in blocks if not block.language]
    return in_language or unnamed or [answer]


def _parses(language: str, parse: Callable[[str], Any]) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        def judge(text: str) -> str:
            parse(text)
            return f"{context.text_name} has valid {language}"

        yield _in_one_text(context.answer.text, (language.lower(),), judge)

    return evaluate


def _json_schema(context: CheckContext) -> Iterator[Result]:
    def judge(text: str) -> str:
        if violation := schema_violation(parse_json(text), context.value):
            raise BrokenError(violation)
        return "the JSON matches the schema"

    yield _in_one_text(context.answer.text, ("json",), judge)


_SCHEMA: TypeAdapter[Any] = TypeAdapter(
    Annotated[dict[str, Any], Field(strict=True), AfterValidator(compile_schema)]
)


# Paths into JSON: ``$.a.b[0]["odd key"][-1]``, and ``[*]`` for every item.

Step = str | int | None  # None: every item
_STEP: Final = re.compile(
    r"""\.(?P<name>[\w-]+)|(?P<all>\.\*|\[\*\])|\[(?P<index>-?\d{1,9})\]"""
    r"""|\[(?P<key>"(?:[^"\\]|\\.)*"|'[^'\\]*')\]"""
)


@lru_cache
def _steps_of(path: str) -> tuple[Step, ...]:
    """ValueError says where the path is invalid."""
    if not path.startswith("$"):
        raise ValueError("must start with $, as in $.items[0].name")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if not match:
            remainder = one_line(path[at:], 40)
            raise ValueError(
                f"invalid path at position {at}, {remainder!r}; "
                """steps are .name, [0], [-1], ["odd key"] and [*]"""
            )
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["index"]:
        return int(match["index"])
    if match["key"]:
        key: str = match["key"][1:-1]
        return json.loads(match["key"]) if match["key"][0] == '"' else key
    return match["name"]


def _valid_path(path: str) -> str:
    _steps_of(path)
    return path


class PathForm(Strict):
    """``equals`` may be null, which differs from leaving it out."""

    path: Annotated[str, AfterValidator(_valid_path)] = Field(
        description=(
            'Where the value is: "$.items[0].id", "$.items[-1]", "$.items[*].id" or '
            "\"$['odd key']\"."
        )
    )
    equals: Any = Field(
        None, description="The value that must be there; left out, any will do."
    )


def _as_path_forms(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    return [{"path": item} if isinstance(item, str) else item for item in items]


_PATHS: TypeAdapter[Any] = TypeAdapter(
    Annotated[list[PathForm], Field(min_length=1), BeforeValidator(_as_path_forms)]
)


def _json_path(context: CheckContext) -> Iterator[Result]:
    for form in context.value:
        yield _in_one_text(context.answer.text, ("json",), partial(_at_path, form))


def _at_path(form: PathForm, text: str) -> str:
    values = [parse_json(text)]
    for step in _steps_of(form.path):
        values = [inner for value in values for inner in _inside(value, step)]
    if not values:
        raise BrokenError(f"the JSON has nothing at {form.path}")
    if "equals" not in form.model_fields_set:
        return f"the JSON has {_shown(values[0])} at {form.path}"
    if any(_same(value, form.equals) for value in values):
        return f"{form.path} is {_shown(form.equals)}"
    raise BrokenError(f"{form.path} is {_shown(values[0])}, not {_shown(form.equals)}")


def _inside(value: Any, step: Step) -> list[Any]:
    if step is None:
        items = value.values() if isinstance(value, dict) else value
        return list(items) if isinstance(value, dict | list) else []
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    inside = isinstance(value, list) and -len(value) <= step < len(value)
    return [value[step]] if inside else []


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON values: 1 is 1.0, but true is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _same(first[key], second[key]) for key in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 100)


# CSV.


_MOST_COLUMNS: Final = 50  # that a reason names


def _csv_columns(context: CheckContext) -> Iterator[Result]:
    columns: list[str] = context.value

    def normal(cell: str) -> str:
        return cell.strip() if context.case_sensitive else cell.strip().casefold()

    def judge(text: str) -> str:
        rows = _rows_of(text)
        header = [normal(cell) for cell in rows[0]]
        there = set(header)
        missing = [column for column in columns if normal(column) not in there]
        if missing:
            have = one_line(", ".join(map(quoted, rows[0][:_MOST_COLUMNS])), 200)
            raise BrokenError(f"no column {quoted(missing[0])}, only {have}")
        for number, row in enumerate(rows[1:], start=2):
            if len(row) != len(header):
                raise BrokenError(
                    f"CSV row {number} has {len(row)} cells, the header {len(header)}"
                )
        return (
            f"the CSV has the columns {one_line(', '.join(map(quoted, columns)), 200)}"
        )

    yield _in_one_text(context.answer.text, ("csv",), judge)


def _rows_of(text: str) -> list[list[str]]:
    try:
        rows = [
            row for row in csv.reader(text.strip().splitlines(), strict=True) if row
        ]
    except csv.Error as error:
        raise BrokenError(f"invalid CSV: {error}") from None
    if not rows:
        raise BrokenError("no CSV")
    return rows


# Numbers. One may have a sign or currency before it and a unit after it. It is
# not part of a name (H100, v2) or of a dotted chain (3.11.2, 127.0.0.1).
# Thousands may be separated.

_NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<sign>[-+−]?)[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’_\u00a0\u2009\u202f]\d{3})+|\d+|(?=\.\d))"
    r"(?P<rest>(?:\.\d+)?(?:[eE][-+]?\d+)?)(?!\d|\.\d|_)"
)
_NOISE: Final = 1e-9


class NumberForm(Strict):
    """A number, and how far off it may be."""

    value: Annotated[float, Field(allow_inf_nan=False)] = Field(
        description="The number that is wanted."
    )
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.0, description="How much more or less it may be (default: exactly the value)."
    )


def _as_number_form(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"value": value} if is_number else value


_NUMBER_FORM: TypeAdapter[Any] = TypeAdapter(
    Annotated[NumberForm, BeforeValidator(_as_number_form)]
)


def _number(context: CheckContext) -> Iterator[Result]:
    form: NumberForm = context.value
    if long := too_long(context.answer.text):
        yield long
        return
    numbers = [_value_of(match) for match in _NUMBER.finditer(context.answer.text)]
    expected = plain(form.value) + (
        f" ± {plain(form.tolerance)}" if form.tolerance else ""
    )
    if not numbers:
        yield False, f"no number in {context.text_name} (expected {expected})"
        return
    nearest = min(numbers, key=lambda number: abs(number - form.value))
    near = abs(nearest - form.value) <= form.tolerance
    passed = near or math.isclose(nearest, form.value, rel_tol=_NOISE)
    yield passed, f"nearest number is {plain(nearest)} (expected {expected})"


def _value_of(match: re.Match[str]) -> float:
    digits = re.sub(r"\D", "", match["digits"])
    value = float(f"{digits or 0}{match['rest']}")
    return -value if match["sign"] in ("-", "−") else value


KINDS = (
    CheckKind("json", ONLY_TRUE, _parses("JSON", parse_json)),
    CheckKind("json_schema", _SCHEMA, _json_schema),
    CheckKind("json_path", _PATHS, _json_path),
    CheckKind("yaml", ONLY_TRUE, _parses("YAML", parse_yaml)),
    CheckKind("toml", ONLY_TRUE, _parses("TOML", parse_toml)),
    CheckKind("number", _NUMBER_FORM, _number),
    CheckKind("csv_columns", TEXTS, _csv_columns),
)
