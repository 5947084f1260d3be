"""skill_meta.json: cases in our own form, which may have keys of other forms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from ..._util.json_forms import FormError, Location, Problem, cases_error, read_form
from ...errors import CasesError, NoCasesError, shown
from ..case import Role, SandboxNeeds
from ..case_files import files_of
from ..case_forms import (
    CaseForm,
    ContextForm,
    DefaultsForm,
    MessageForm,
    Messages,
    MetaForm,
)
from ..task_forms import SandboxForm
from .beside import are_entries_beside
from .eval_checks import EXPECTING, expected_checks, together, whole_output
from .evals import LISTS, NAMES, OF_FILE, QUESTIONS, SILENT, object_of
from .json_files import Entries, Unknown, is_typo, read_cases_json, usable_id
from .skill_checks import OF_SKILL, OwnSkill, skill_checks

_TRIGGERS_ARE_NO_CASES: Final = (
    "only queries of triggers (should_trigger), and no cases; "
    'write evals with a "prompt" and an "expected_output"'
)
_HOW_TO_ADD_CASES: Final = (
    'Write {"cases": [{"input": "a question", "expected": {"contains": ["text"]}}]} to'
    " {file}."
)
_MESSAGES: Final = TypeAdapter(Messages)
_META: Final = TypeAdapter(MetaForm)
_SANDBOX: Final = TypeAdapter(SandboxForm)


def sandbox_of(file: Path | None) -> SandboxNeeds:
    """What the skill's scripts need, from a file of cases;
    CasesError if that is invalid.
    """
    data = read_own_json(file)[1] if file else None
    try:
        return SandboxNeeds.of(_sandbox_form(data))
    except FormError as error:
        raise cases_error(file or Path(), error.problems) from None


def _sandbox_form(data: Any) -> SandboxForm | None:
    written = data.get("sandbox") if isinstance(data, dict) else None
    form: SandboxForm | None = None
    if written is not None:
        form = read_form(_SANDBOX, written, ("sandbox",))
    return form


def entries_of(
    file: Path, data: Any, foreign: Entries | None, unknown: Unknown
) -> tuple[Entries, Mapping[str, Any]]:
    """The cases as written, and the defaults; NoCasesError if there are none."""
    try:
        entries, defaults = (
            (foreign, {}) if foreign else _own_entries(file, data, unknown)
        )
        if _sandbox_form(data):
            defaults = with_defaults(dict(defaults), {"sandbox": data["sandbox"]})
    except FormError as error:
        raise cases_error(file, error.problems) from None
    if are_entries_beside(entries.written):
        raise NoCasesError(file, _TRIGGERS_ARE_NO_CASES)
    if not entries.written:
        raise NoCasesError(file, "no cases", how_to_add_cases(file))
    return entries, defaults


def how_to_add_cases(file: Path) -> str:
    return _HOW_TO_ADD_CASES.replace("{file}", shown(file))


def _own_entries(
    file: Path, data: Any, unknown: Unknown
) -> tuple[Entries, Mapping[str, Any]]:
    """The cases as written, and the defaults."""
    if isinstance(data, list):
        return Entries.of((), data), {}
    if not isinstance(data, dict):
        raise CasesError(file, "must be an object or a list", how_to_add_cases(file))
    if no_lists := [((key,), "must be a list") for key in LISTS if key in data]:
        raise FormError(no_lists)
    data = known_part(MetaForm, data, (), unknown)
    if "defaults" in data:
        data["defaults"] = known_part(
            DefaultsForm, data["defaults"], ("defaults",), unknown
        )
    meta: MetaForm = read_form(_META, data)
    if meta.cases and meta.tests:
        raise CasesError(file, 'has both "cases" and "tests"', "Keep one of them.")
    key = "cases" if meta.cases else "tests"
    return Entries.of((key,), data.get(key) or []), data.get("defaults") or {}


def with_defaults(case: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The case wins; tags are added, ``expected`` and ``sandbox`` are filled in by
    key.
    """
    if not defaults:
        return case
    merged = {**defaults, **case}
    tags, expected = case.get("tags"), case.get("expected")
    if isinstance(case.get("sandbox"), dict):
        merged["sandbox"] = {**(defaults.get("sandbox") or {}), **case["sandbox"]}
    # Its own first, so a bad tag is reported at its own path
    if isinstance(tags, list):
        merged["tags"] = [
            *tags,
            *(tag for tag in defaults.get("tags", ()) if tag not in tags),
        ]
    if isinstance(expected, dict):
        merged["expected"] = {**(defaults.get("expected") or {}), **expected}
    return merged


def defaulted_in(
    case: Mapping[str, Any], defaults: Mapping[str, Any]
) -> frozenset[Location]:
    """The paths in a case that come from the defaults."""
    if not defaults:
        return frozenset()
    own_checks, default_checks = case.get("expected"), defaults.get("expected")
    return frozenset(
        [(key,) for key in defaults if key not in case]
        + [
            ("expected", key)
            for key in default_checks or ()
            if isinstance(own_checks, dict) and key not in own_checks
        ]
    )


def read_own_json(file: Path) -> tuple[str, Any]:
    return read_cases_json(file, how_to_add_cases(file))


def read_messages(turns: Any) -> tuple[tuple[Role, str], ...]:
    """Validate messages written by a user; raises FormError."""
    messages: list[MessageForm] = read_form(_MESSAGES, turns)
    return tuple((message.role, message.content) for message in messages)


def own_case(
    entry: Any, place: Location, skill: OwnSkill, unknown: Unknown
) -> dict[str, Any]:
    """A case in our own form, with foreign keys translated; typos stay, to be
    reported.
    """
    entry = object_of(entry, place)
    problems: list[Problem] = []
    case = _own_keys(entry, place, unknown)
    if case.get("id") is None:
        case["id"] = usable_id(entry, *NAMES)
    context = case.get("context")
    files = context.get("files") if isinstance(context, dict) else None
    if isinstance(files, list) and any(isinstance(file, dict) for file in files):
        files_place = (
            *place,
            *(("files",) if "context" not in entry else ("context", "files")),
        )
        case["context"] = {
            "files": files_of(files, files_place, skill.folder, problems)
        }
    foreign_checks = expected_checks(
        {**entry, "expected": None}, place, unknown, problems
    )
    if problems:
        raise FormError(problems)
    if not foreign_checks and not {"expected", "validator"} & case.keys():
        foreign_checks = whole_output(entry)
    if with_skill := skill_checks(entry, place, skill, unknown):
        foreign_checks = together(foreign_checks, {"with_skill": with_skill})
    if foreign_checks:
        case["expected"] = together(case.get("expected"), foreign_checks)
    return case


def _own_keys(
    entry: Mapping[str, Any], place: Location, unknown: Unknown
) -> dict[str, Any]:
    """The keys of our own form, and those of others that mean the same."""
    fields = CaseForm.model_fields
    case = {key: value for key, value in entry.items() if key in fields}
    if isinstance(case.get("context"), dict):
        case["context"] = known_part(
            ContextForm, case["context"], (*place, "context"), unknown, "context."
        )
    for key, value in entry.items():
        if key in fields:
            continue
        if key in QUESTIONS and "input" not in entry:
            case["input"] = value
        elif key == "files" and "context" not in entry:
            case["context"] = {"files": value}
        elif key in (*NAMES, *EXPECTING, "verifiers") or key in SILENT | OF_SKILL:
            continue
        elif is_typo(key, fields):
            case[key] = value
        else:
            unknown.add(place, key, value)
    return case


def known_part(
    form: type[BaseModel],
    written: Any,
    place: Location,
    unknown: Unknown,
    inside: str = "",
) -> Any:
    """An object without keys that are unlike any of a form; typos stay, to be
    reported.
    """
    if not isinstance(written, dict):
        return written
    keys = [field.alias or name for name, field in form.model_fields.items()]
    if form is DefaultsForm:
        keys += CaseForm.model_fields  # a key that only cases have is reported, too
    part = {}
    for key, value in written.items():
        if key in keys or is_typo(key, keys):
            part[key] = value
        elif key not in OF_FILE and not key.startswith(("_", "$")):
            unknown.add(place, key, value, inside)
    return part
