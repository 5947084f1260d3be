"""Checks of data in an answer: JSON, YAML, TOML, CSV, numbers.

Data is looked for in the fenced blocks of its language, else in those that name no language,
else in the whole answer; one block that passes is enough.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from .._util.json_forms import Strict
from .._util.texts import one_line, plain
from ..trials.answer import Answer
from . import json_paths, schemas
from .fences import blocks_of
from .kind import ONLY_TRUE, TEXTS, Given, Hold, Kind, Said, quoted
from .parsers import BrokenError, parse_json, parse_toml, parse_yaml, too_long


def _texts_in(answer: str, *languages: str) -> list[str]:
    """Where data may be."""
    blocks = list(blocks_of(answer))
    own = [block.text for block in blocks if block.language in languages]
    unnamed = [block.text for block in blocks if not block.language]
    return own or unnamed or [answer]


def _in_one_text(answer: Answer, languages: tuple[str, ...], judge: Callable[[str], str]) -> Said:
    """``judge`` says what is right of a text, or raises BrokenError."""
    if long := too_long(answer.text):
        return long
    problems = []
    for text in _texts_in(answer.text, *languages):
        try:
            return True, judge(text)
        except BrokenError as error:
            problems.append(str(error))
        except RecursionError:
            problems.append("the data is nested too deep")
        except TimeoutError:
            return None, "it took too long to find out, and was given up"
    return False, problems[0]


def _parses(language: str, parse: Callable[[str], Any]) -> Hold:
    def judge(text: str) -> str:
        parse(text)
        return f"the answer has {language}"

    def hold(answer: Answer, _: bool, __: Given) -> Iterator[Said]:
        yield _in_one_text(answer, (language.lower(),), judge)

    return hold


def _json_schema(answer: Answer, schema: schemas.Schema, _: Given) -> Iterator[Said]:
    def judge(text: str) -> str:
        if problem := schemas.problem_of(parse_json(text), schema):
            raise BrokenError(problem)
        return "the answer's JSON fits the schema"

    yield _in_one_text(answer, ("json",), judge)


class PathForm(Strict):
    """``equals`` may be null, which is not the same as not there."""

    path: Annotated[str, AfterValidator(json_paths.checked)]
    equals: Any = None


def _json_path(answer: Answer, forms: list[PathForm], _: Given) -> Iterator[Said]:
    for form in forms:
        yield _in_one_text(answer, ("json",), partial(_at_path, form))


def _at_path(form: PathForm, text: str) -> str:
    shown = json_paths.shown
    found = json_paths.found(parse_json(text), json_paths.steps_of(form.path))
    if not found:
        raise BrokenError(f"the answer's JSON has nothing at {form.path}")
    if "equals" not in form.model_fields_set:
        return f"the answer's JSON has {shown(found[0])} at {form.path}"
    if any(json_paths.same(value, form.equals) for value in found):
        return f"{form.path} is {shown(form.equals)} in the answer's JSON"
    raise BrokenError(f"{form.path} is {shown(found[0])}, not {shown(form.equals)}")


def _csv_columns(answer: Answer, columns: list[str], given: Given) -> Iterator[Said]:
    def judge(text: str) -> str:
        rows = _rows_of(text)
        header = [_plain(cell, given) for cell in rows[0]]
        missing = [column for column in columns if _plain(column, given) not in header]
        if missing:
            have = one_line(", ".join(map(quoted, rows[0])), 200)
            raise BrokenError(f"no column {quoted(missing[0])} among those of the answer: {have}")
        for number, row in enumerate(rows[1:], start=2):
            if len(row) != len(header):
                raise BrokenError(
                    f"row {number} of the CSV has {len(row)} cells, and its header {len(header)}"
                )
        return f"the answer's CSV has {one_line(', '.join(map(quoted, columns)), 200)}"

    yield _in_one_text(answer, ("csv",), judge)


def _rows_of(text: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(text.strip().splitlines(), strict=True) if row]
    except csv.Error as error:
        raise BrokenError(f"this is not CSV: {error}") from None
    if not rows:
        raise BrokenError("there is no CSV in the answer")
    return rows


def _plain(cell: str, given: Given) -> str:
    return cell.strip() if given.case_sensitive else cell.strip().casefold()


# A number stands by itself but for a sign or a currency before it and a unit behind it. It is no
# part of a name (H100, v2) and not of a chain (3.11.2, 127.0.0.1). Thousands may be told apart.
_NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<sign>[-+−]?)[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’_\u00a0\u2009\u202f]\d{3})+|\d+|(?=\.\d))"
    r"(?P<rest>(?:\.\d+)?(?:[eE][-+]?\d+)?)(?!\d|\.\d|_)"
)
_NOISE: Final = 1e-9


class NumberForm(Strict):
    value: Annotated[float, Field(allow_inf_nan=False)]
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


def _number(answer: Answer, form: NumberForm, _: Given) -> Iterator[Said]:
    if long := too_long(answer.text):
        yield long
        return
    numbers = [_value_of(match) for match in _NUMBER.finditer(answer.text)]
    wanted = plain(form.value) + (f" ± {plain(form.tolerance)}" if form.tolerance else "")
    if not numbers:
        yield False, f"there is no number in the answer; {wanted} is wanted"
        return
    nearest = min(numbers, key=lambda number: abs(number - form.value))
    near = abs(nearest - form.value) <= form.tolerance
    passed = near or math.isclose(nearest, form.value, rel_tol=_NOISE)
    yield passed, f"{plain(nearest)} is the nearest number in the answer; {wanted} is wanted"


def _value_of(match: re.Match[str]) -> float:
    digits = re.sub(r"\D", "", match["digits"])
    value = float(f"{digits or 0}{match['rest']}")
    return -value if match["sign"] in ("-", "−") else value


def _as_number_form(value: Any) -> Any:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return {"value": value} if plain else value


def _as_path_forms(value: Any) -> Any:
    many = value if isinstance(value, list) else [value]
    return [{"path": one} if isinstance(one, str) else one for one in many]


_PATHS: TypeAdapter[Any] = TypeAdapter(
    Annotated[list[PathForm], Field(min_length=1), BeforeValidator(_as_path_forms)]
)
_SCHEMA: TypeAdapter[Any] = TypeAdapter(
    Annotated[dict[str, Any], Field(strict=True), AfterValidator(schemas.compiled)]
)
_NUMBER_FORM: TypeAdapter[Any] = TypeAdapter(
    Annotated[NumberForm, BeforeValidator(_as_number_form)]
)

KINDS = (
    Kind("json", ONLY_TRUE, _parses("JSON", parse_json)),
    Kind("json_schema", _SCHEMA, _json_schema),
    Kind("json_path", _PATHS, _json_path),
    Kind("yaml", ONLY_TRUE, _parses("YAML", parse_yaml)),
    Kind("toml", ONLY_TRUE, _parses("TOML", parse_toml)),
    Kind("number", _NUMBER_FORM, _number),
    Kind("csv_columns", TEXTS, _csv_columns),
)
