"""Load skill_meta.json, or another file of cases, as frozen values."""

import codecs
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from .._util.json_forms import (
    FormError,
    Location,
    Problem,
    cases_error,
    json_path,
    lines_inside,
    read_form,
    read_json,
)
from .._util.texts import digest, slug
from ..errors import CasesError, shown
from .case_forms import CaseForm, ContextForm, FileOfSkill, MessageForm, Messages, MetaForm
from .evals import TRIGGERS_ARE_NO_CASES, cases_of_evals, is_trigger_set
from .skill import read_skill_file

Role = Literal["user", "assistant"]

MAX_CASES_BYTES: Final = 50_000_000
_NO_REASON: Final = "no reason given"
_HOW_TO_ADD_CASES: Final = (
    'Write {"cases": [{"input": "a question", "expected": {"contains": ["text"]}}]} to {file}.'
)


@dataclass(frozen=True)
class Case:
    """One question with the checks its answer must pass."""

    id: str
    input: str
    expected: Any = None  # as written; checks/ parses it
    place: Location = ()  # its path in the file
    line: int = 1  # and its line
    files: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    earlier: tuple[tuple[Role, str], ...] = ()  # turns before the question
    system: str | None = None
    skip: str | None = None  # the reason
    xfail: str | None = None  # the reason
    runs: int | None = None
    threshold: float | None = None
    models: tuple[str, ...] = ()  # patterns; empty means all
    validator: tuple[str, dict[str, Any]] | None = (
        None  # name of a registered check, and its argument
    )
    defaulted: frozenset[Location] = frozenset()  # paths filled in by the file's defaults

    def place_of(self, *inside: str | int) -> Location:
        """The path in the file of something inside this case."""
        given = any(inside[:length] in self.defaulted for length in (1, 2))
        return (*(("defaults",) if given else self.place), *inside)

    @property
    def is_eval(self) -> bool:
        """Whether it was written in the form of evals.json."""
        return self.place[:1] == ("evals",)

    def is_for(self, *names: str) -> bool:
        """Whether a name of a model matches one of the patterns; upper and lower case are equal."""
        return not self.models or any(
            fnmatchcase(name.lower(), pattern.lower()) for pattern in self.models for name in names
        )


_MESSAGES: Final = TypeAdapter(Messages)
_META: Final = TypeAdapter(MetaForm)
_LIST: Final = TypeAdapter(list[CaseForm])


def load_cases(file: Path, folder: Path | None = None) -> list[Case]:
    """The cases of a file, in any of the known forms, in file order.

    Cases may name files in the skill's ``folder``; the default is the folder of the file.
    """
    (text, data), folder = _read_json(file), folder or file.parent
    if is_trigger_set(data):
        raise CasesError(file, TRIGGERS_ARE_NO_CASES)
    try:
        root, written, defaults = _written_cases(file, data, folder)
        if not written:
            raise CasesError(file, "no cases", how_to_add_cases(file))
        merged = [_with_defaults(case, defaults) for case in written]
        forms: list[CaseForm] = read_form(_LIST, merged, root)
        lines = lines_inside(text, root)
        cases = [
            _case(
                (*root, number), lines[number], form, folder, _defaulted(written[number], defaults)
            )
            for number, form in enumerate(forms)
        ]
        _reject_duplicates(cases)
    except FormError as error:
        raise cases_error(file, error.problems) from None
    return cases


def are_evals(file: Path) -> bool:
    """Whether a file is in the form of evals.json; a broken one is in no form."""
    try:
        _, data = _read_json(file)
    except CasesError:
        return False
    return isinstance(data, dict) and "evals" in data


def how_to_add_cases(file: Path) -> str:
    return _HOW_TO_ADD_CASES.replace("{file}", shown(file))


def _written_cases(
    file: Path, data: Any, folder: Path
) -> tuple[Location, list[Any], Mapping[str, Any]]:
    """The path of the cases in the file, the cases as written, and the defaults."""
    if isinstance(data, list):
        return (), data, {}
    if not isinstance(data, dict):
        raise CasesError(file, "must be an object or a list", how_to_add_cases(file))
    if "evals" in data:
        return ("evals",), cases_of_evals(data, folder), {}
    meta: MetaForm = read_form(_META, data)
    if meta.cases is not None and meta.tests is not None:
        raise CasesError(file, 'has both "cases" and "tests"', "Keep one of them.")
    key = "cases" if meta.tests is None else "tests"
    return (key,), data.get(key) or [], data.get("defaults") or {}


def _with_defaults(case: Any, defaults: Mapping[str, Any]) -> Any:
    """The case wins; tags are added, ``expected`` is filled in by key."""
    if not isinstance(case, dict):
        return case
    merged = {**defaults, **case}
    tags, expected = case.get("tags"), case.get("expected")
    if isinstance(tags, list):  # its own first, so a bad tag is reported at its own path
        merged["tags"] = [*tags, *(tag for tag in defaults.get("tags", ()) if tag not in tags)]
    if isinstance(expected, dict):
        merged["expected"] = {**(defaults.get("expected") or {}), **expected}
    return merged


def _defaulted(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> frozenset[Location]:
    """The paths in a case that come from the defaults."""
    own, common = case.get("expected"), defaults.get("expected")
    return frozenset(
        [(key,) for key in defaults if key not in case]
        + [("expected", key) for key in common or () if isinstance(own, dict) and key not in own]
    )


def _read_json(file: Path) -> tuple[str, Any]:
    hint = "Look for a missing or extra comma or quote just before this position."
    return read_json(file, CasesError, hint, _content, _no_duplicates)


def _content(file: Path) -> bytes:
    if file.stat().st_size > MAX_CASES_BYTES:
        raise CasesError(file, f"more than {MAX_CASES_BYTES:,} bytes")
    data = file.read_bytes()
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise CasesError(file, "empty file", how_to_add_cases(file))
    return data


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The json module keeps the last of two equal keys, which would silently drop a check."""
    out = dict(pairs)
    if len(out) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"duplicate key {key!r} in an object")
    return out


def _case(
    place: Location, line: int, form: CaseForm, folder: Path, defaulted: frozenset[Location]
) -> Case:
    turns: list[tuple[Role, str]] = (
        [("user", form.input)]
        if isinstance(form.input, str)
        else [(message.role, message.content) for message in form.input]
    )
    case = Case(
        id=form.id or "",
        input=turns[-1][1],
        expected=form.expected,
        place=place,
        line=line,
        tags=tuple(form.tags),
        earlier=tuple(turns[:-1]),
        system=form.system,
        skip=_reason(form.skip),
        xfail=_reason(form.xfail),
        runs=form.runs,
        threshold=form.threshold,
        models=tuple(form.models or ()),
        defaulted=defaulted,
    )
    files, validator = _files(case, form.context, folder), _validator(case, form)
    case = replace(case, files=files, validator=validator)
    return case if case.id else replace(case, id=_generated_id(case))


def _validator(case: Case, form: CaseForm) -> tuple[str, dict[str, Any]] | None:
    given = {**(form.validator_config or {}), "output_file": form.output_file}
    value = {key: setting for key, setting in given.items() if setting is not None}
    if form.validator:
        return form.validator, value
    if value:
        problem = "validator_config or output_file without a validator"
        raise FormError([(case.place_of(), problem)])
    return None


def read_messages(turns: Any) -> tuple[tuple[Role, str], ...]:
    """Validate messages written by a user; raises FormError."""
    messages: list[MessageForm] = read_form(_MESSAGES, turns)
    return tuple((message.role, message.content) for message in messages)


def _reason(written: bool | str | None) -> str | None:
    return _NO_REASON if written is True else written or None


def _files(case: Case, context: ContextForm | None, folder: Path) -> tuple[tuple[str, str], ...]:
    """Names and texts of a case's files; reads those that are in the skill's folder."""
    written = (context and context.files) or {}
    named: list[tuple[str | int, str, str | FileOfSkill]]
    if isinstance(written, dict):
        named = [(name, name, content) for name, content in written.items()]
    else:
        named = [(step, name, FileOfSkill(file=name)) for step, name in enumerate(written)]
    files, problems = list[tuple[str, str]](), list[Problem]()
    for step, name, content in named:
        try:
            text = content if isinstance(content, str) else read_skill_file(folder, content.file)
            files.append((name, text))
        except ValueError as error:
            problems.append((case.place_of("context", "files", step), str(error)))
    if problems:
        raise FormError(problems)
    return tuple(files)


def _generated_id(case: Case) -> str:
    """Words of the question plus its hash, so that other cases can't change the id."""
    asked = (*case.files, *case.earlier)
    mark = digest(case.input, *(part for pair in asked for part in pair))[:6]
    return f"{slug(case.input) or 'case'}-{mark}"


def _reject_duplicates(cases: Sequence[Case]) -> None:
    seen: dict[str, Case] = {}
    problems: list[Problem] = []
    for case in cases:
        first = seen.setdefault(case.id, case)
        if first is not case:
            what = f"duplicate id {case.id!r}: also the id of {json_path(first.place)}"
            problems.append(((*case.place, "id"), what))
    if problems:
        raise FormError(problems)
