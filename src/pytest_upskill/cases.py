"""skill_meta.json, or another file of cases, read and checked.

The models below are the form of the file, and forbid what they do not know; the rest of the
program works with the frozen ``Case``.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from .errors import CasesError, shown
from .texts import digest, guess, one_line, slug

MAX_CASES_BYTES: Final = 50_000_000
_MOST_PROBLEMS_SHOWN: Final = 5
_GOOD_ID: Final = re.compile(r"\w[\w.+-]*")
_GOOD_TAG: Final = re.compile(r"[^\W_][\w.-]*")
_PYTEST_MARKS: Final = frozenset(
    {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings"}
)
_HOW_TO_ADD_CASES: Final = (
    'Write {"cases": [{"input": "a question", "expected": {"contains": ["text"]}}]} into {file}.'
)


@dataclass(frozen=True)
class Case:
    """One question with the checks its answer must pass."""

    id: str
    input: str
    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Texts = Annotated[list[Text], Field(min_length=1), BeforeValidator(_as_list)]
Id = Annotated[str, BeforeValidator(_as_text)]
Form = TypeVar("Form", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ExpectedForm(_Strict):
    contains: Texts | None = None
    not_contains: Texts | None = None


class ContextForm(_Strict):
    files: dict[str, str] | None = None


class CaseForm(_Strict):
    id: Id | None = None
    input: Text
    context: ContextForm | None = None
    expected: ExpectedForm
    tags: list[str] = []
    # upskill writes these three as null where a case has none.
    output_file: None = None
    validator: None = None
    validator_config: None = None


class MetaForm(_Strict):
    schema_: str | None = Field(None, alias="$schema")
    metadata: dict[str, Any] | None = None
    cases: list[CaseForm] | None = None
    tests: list[CaseForm] | None = None


class ListForm(_Strict):
    cases: list[CaseForm]


def load_cases(file: Path) -> list[Case]:
    """The cases of a file in any of the known forms, in its order."""
    data = _read_json(file)
    if isinstance(data, list):
        forms, key = _validated(file, ListForm, {"cases": data}, skip_root=True).cases, ""
    elif isinstance(data, dict):
        meta = _validated(file, MetaForm, data)
        if meta.cases is not None and meta.tests is not None:
            raise CasesError(file, "both 'cases' and 'tests' are there", "Keep one of them.")
        key = "tests" if meta.tests is not None else "cases"
        forms = meta.cases or meta.tests or []
    else:
        raise CasesError(file, "neither an object nor a list", how_to_add_cases(file))
    if not forms:
        raise CasesError(file, "there are no cases", how_to_add_cases(file))
    cases = [_case(file, f"{key}[{number}]", form) for number, form in enumerate(forms)]
    _refuse_duplicates(file, cases)
    return cases


def how_to_add_cases(file: Path) -> str:
    return _HOW_TO_ADD_CASES.replace("{file}", shown(file))


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_CASES_BYTES:
            raise CasesError(file, f"this file has more than {MAX_CASES_BYTES:,} bytes")
        text = file.read_bytes().decode("utf-8-sig")
        if not text.strip():
            raise CasesError(file, "this file is empty", how_to_add_cases(file))
        return json.loads(text, object_pairs_hook=_no_twins)
    except OSError as error:
        raise CasesError(file, error.strerror or str(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise CasesError(
            file, f"this file is not UTF-8 (byte {error.start})", "Save it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise CasesError(
            f"{shown(file)}:{error.lineno}:{error.colno}",
            f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}",
            "A comma or a quote is often missing, or too many, just before this place.",
        ) from None
    except _TwinKeyError as error:
        raise CasesError(file, f"the key {error.args[0]!r} stands twice in one object") from None
    except (RecursionError, ValueError) as error:
        problem = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise CasesError(file, f"this is not JSON that can be read: {problem}") from None


class _TwinKeyError(Exception):
    pass


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """json keeps the last of two equal keys, and so would lose a check without a word."""
    out = dict(pairs)
    if len(out) < len(pairs):
        raise _TwinKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return out


def _validated(
    file: Path, form: type[Form], data: Mapping[str, Any], skip_root: bool = False
) -> Form:
    try:
        return form.model_validate(data)
    except ValidationError as error:
        problems = [_problem(part["type"], part["loc"], part["msg"]) for part in error.errors()]
    lines = [
        f"{_json_path(loc[skip_root:])}: {problem}" for loc, problem in problems
    ]  # a bare list was wrapped to be validated: its path has no root
    more = len(lines) - _MOST_PROBLEMS_SHOWN
    if more > 0:
        lines[_MOST_PROBLEMS_SHOWN:] = [f"and {more} more"]
    raise CasesError(file, "\n  ".join(lines))


Location = tuple[str | int, ...]
_PROBLEMS: Final = {
    "missing": "this is missing",
    "string_type": "this is not a text",
    "string_too_short": "an empty text",
    "string_pattern_mismatch": "an empty text",
    "too_short": "an empty list",
    "list_type": "this is not a list",
    "dict_type": "this is not an object",
    "model_type": "this is not an object",
    "none_required": "this version has no validators; use the checks of 'expected'",
}


def _problem(kind: str, loc: Location, message: str) -> tuple[Location, str]:
    if kind == "extra_forbidden":
        return loc, f"unknown key{guess(str(loc[-1]), _known_keys(loc))}"
    problem = _PROBLEMS.get(kind, message)
    if kind == "list_type" and "expected" in loc:
        problem = "this is neither a text nor a list of texts"
    if problem.startswith("an empty") and "expected" in loc:
        problem += ": every answer would pass it, or none; write the text that you look for"
    return loc, problem


def _known_keys(loc: Location) -> Sequence[str]:
    parent = loc[-2] if len(loc) > 1 else ""
    forms: dict[str | int, type[BaseModel]] = {"expected": ExpectedForm, "context": ContextForm}
    form = CaseForm if isinstance(parent, int) else forms.get(parent, MetaForm)
    return [field.alias or name for name, field in form.model_fields.items()]


def _json_path(loc: Location) -> str:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{one_line(part, 60)}" for part in loc
    )
    return path.removeprefix(".") or "the file"


def _case(file: Path, path: str, form: CaseForm) -> Case:
    contains = tuple(form.expected.contains or ())
    not_contains = tuple(form.expected.not_contains or ())
    if not contains and not not_contains:
        raise CasesError(
            file,
            f"{path}.expected: no check, so every answer would pass",
            'Add one, for example "contains": ["text"].',
        )
    files = tuple(((form.context and form.context.files) or {}).items())
    if form.id is not None and not _GOOD_ID.fullmatch(form.id):
        raise CasesError(
            file,
            f"{path}.id: {form.id!r} can't be part of a test's name",
            f"Use letters, digits and . _ + - only, for example {slug(form.id) or 'case-1'!r}.",
        )
    for tag in form.tags:
        if not _GOOD_TAG.fullmatch(tag) or tag in _PYTEST_MARKS:
            raise CasesError(
                file,
                f"{path}.tags: {tag!r} can't be a mark of pytest",
                "Use another word of letters, digits and . _ -.",
            )
    case_id = form.id or _made_id(form.input, files)
    return Case(case_id, form.input, contains, not_contains, files, tuple(form.tags))


def _made_id(question: str, files: tuple[tuple[str, str], ...]) -> str:
    """Some words of the question and a hash of it, so that no other case can change it."""
    mark = digest(question, *(part for file in files for part in file))[:4]
    return f"{slug(question) or 'case'}-{mark}"


def _refuse_duplicates(file: Path, cases: Sequence[Case]) -> None:
    twins = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if twins:
        places = [number for number, case in enumerate(cases) if case.id == twins[0]]
        raise CasesError(
            file,
            f"the id {twins[0]!r} stands at cases {' and '.join(map(str, places))} (from 0)",
            'Give each case an "id" of its own.',
        )
