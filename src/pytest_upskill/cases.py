"""skill_meta.json, or another file of cases, read and checked.

The models below are the form of the file, and forbid what they do not know; the rest of the
program works with the frozen ``Case``.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter

from .errors import CasesError, shown
from .forms import FormError, Location, Strict, cases_error, json_path, read_form
from .texts import digest, slug

MAX_CASES_BYTES: Final = 50_000_000
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
    expected: Any = None  # as written: what checks there are is not known here
    place: Location = ()  # where in the file it stands
    files: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    validator: tuple[str, dict[str, Any]] | None = None  # a check in Python, and its argument


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Id = Annotated[str, BeforeValidator(_as_text)]


class ContextForm(Strict):
    files: dict[str, str] | None = None


class CaseForm(Strict):
    id: Id | None = None
    input: Text
    context: ContextForm | None = None
    expected: Any = None
    tags: list[str] = Field(default_factory=list)
    # upskill writes these three as null where a case has none.
    output_file: str | None = None
    validator: Text | None = None
    validator_config: dict[str, Any] | None = None


class MetaForm(Strict):
    schema_: str | None = Field(None, alias="$schema")
    metadata: dict[str, Any] | None = None
    cases: list[CaseForm] | None = None
    tests: list[CaseForm] | None = None


_META: Final = TypeAdapter(MetaForm)
_LIST: Final = TypeAdapter(list[CaseForm])


def load_cases(file: Path) -> list[Case]:
    """The cases of a file in any of the known forms, in its order."""
    data = _read_json(file)
    root: Location = ()
    try:
        if isinstance(data, list):
            forms = read_form(_LIST, data)
        elif isinstance(data, dict):
            meta = read_form(_META, data)
            if meta.cases is not None and meta.tests is not None:
                raise CasesError(file, "both 'cases' and 'tests' are there", "Keep one of them.")
            root = ("tests",) if meta.tests is not None else ("cases",)
            forms = meta.cases or meta.tests or []
        else:
            raise CasesError(file, "neither an object nor a list", how_to_add_cases(file))
    except FormError as error:
        raise cases_error(file, error.problems) from None
    if not forms:
        raise CasesError(file, "there are no cases", how_to_add_cases(file))
    cases = [_case(file, (*root, number), form) for number, form in enumerate(forms)]
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


def _case(file: Path, place: Location, form: CaseForm) -> Case:
    path = json_path(place)
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
    validator = _validator(file, path, form)
    return Case(case_id, form.input, form.expected, place, files, tuple(form.tags), validator)


def _validator(file: Path, path: str, form: CaseForm) -> tuple[str, dict[str, Any]] | None:
    told = {**(form.validator_config or {}), "output_file": form.output_file}
    value = {key: setting for key, setting in told.items() if setting is not None}
    if form.validator:
        return form.validator, value
    if value:
        raise CasesError(
            file,
            f"{path}: validator_config or output_file, but no validator that reads it",
            'Add "validator", the name of a check in Python, or take it out.',
        )
    return None


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
