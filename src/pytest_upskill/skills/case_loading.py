"""Load skill_meta.json, or another file of cases, as frozen values."""

import codecs
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from .._util.files import read_file
from .._util.json_forms import (
    FormError,
    Location,
    Problem,
    cases_error,
    json_path,
    line_of,
    lines_inside,
    read_form,
    read_json,
)
from .._util.texts import first_few, one_line
from ..errors import CasesError, NoCasesError, shown
from .case import Case, Role, SandboxNeeds
from .case_files import CaseFiles
from .case_forms import CaseForm, DefaultsForm, MessageForm, Messages, MetaForm, SandboxForm
from .evals import (
    LISTS,
    TRIGGERS_ARE_NO_CASES,
    Entries,
    case_of_eval,
    entries_of_others,
    is_trigger,
    is_trigger_set,
    keys_of_file,
    known_part,
    own_case,
    usable_id,
)
from .folder import cases_files
from .loaded_cases import BrokenCase, LoadedCases, Unknown, automatic_ids, broken, numbered

MAX_CASES_BYTES: Final = 50_000_000
_MOST_KEYS: Final = 10  # named in a warning
_NO_VALIDATOR: Final = "output_file and validator_config are ignored without a validator"
_NO_REASON: Final = "no reason given"
_HOW_TO_ADD_CASES: Final = (
    'Write {"cases": [{"input": "a question", "expected": {"contains": ["text"]}}]} to {file}.'
)
_MESSAGES: Final = TypeAdapter(Messages)
_META: Final = TypeAdapter(MetaForm)
_SANDBOX: Final = TypeAdapter(SandboxForm)
_CASE: Final = TypeAdapter(CaseForm)


def load_cases(file: Path, folder: Path | None = None) -> LoadedCases[Case]:
    """The cases of a file, in any of the known forms, in file order.

    Cases may name files in the skill's ``folder``; the default is the folder of the file.
    CasesError if the file as a whole can't be read.
    """
    text, data = _read_json(file)
    folder, unknown = folder or file.parent, Unknown()
    foreign = entries_of_others(data)
    entries, defaults = _entries(file, data, foreign, unknown)
    warnings, lines = list[tuple[int, str]](), lines_of(text, entries.places)
    if foreign:
        keys_of_file(data, foreign, unknown)
    _leave_out_triggers(entries)
    cases, bad, no_validator = list[Case](), list[BrokenCase](), list[tuple[int, str]]()
    read = CaseFiles(folder)
    for place, written in zip(*entries, strict=True):
        try:
            if foreign:
                case_data = case_of_eval(written, place, folder, unknown)
            else:
                case_data = own_case(written, place, folder, unknown)
            form: CaseForm = read_form(_CASE, _with_defaults(case_data, defaults), place)
            if (form.output_file or form.validator_config) and not form.validator:
                no_validator.append((lines[place], _NO_VALIDATOR))
            case = _case(place, lines[place], form, read, _defaulted(case_data, defaults))
            cases.append(replace(case, is_eval=True) if foreign else case)
        except FormError as error:
            name = usable_id(written, "id", "name") if isinstance(written, dict) else None
            bad.append(broken(file, lines[place], place, error.problems, name))
    warnings += no_validator[:1]
    named = {case.place for case in cases if case.id}
    cases = _with_ids(cases)
    if foreign:
        cases, renamed = _distinct(cases)
        warnings += renamed
    else:
        twice = _duplicates(cases)
        for case, first in twice:
            first_place = json_path(first.place)
            problem = f"duplicate id {case.id!r}: also the id of {first_place}"
            if case.place not in named:
                problem = f"missing, and {first_place} asks the same; give one of them an id"
            bad.append(broken(file, case.line, case.place, [((*case.place, "id"), problem)]))
        left_out = {case.place for case, _ in twice}
        cases = [case for case in cases if case.place not in left_out]
    warnings += ignored_keys(text, unknown)
    return LoadedCases.of(file, cases, bad, sorted(warnings))


def ignored_keys(text: str, unknown: Unknown) -> Iterator[tuple[int, str]]:
    """A warning about the keys that are not read, if there are any."""
    if unknown.places:
        keys = sorted(unknown.places)
        names = first_few([one_line(key, 60) for key in keys], _MOST_KEYS)
        line = min(line_of(text, unknown.places[key]) for key in keys[:_MOST_KEYS])
        yield line, f"unknown keys are ignored: {names}"


def sandbox_of(file: Path | None) -> SandboxNeeds:
    """What the skill's scripts need, from a file of cases; CasesError if that is invalid."""
    data = _read_json(file)[1] if file else None
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


def has_cases(file: Path) -> bool:
    """Whether there is a case in a file, or a mistake to report."""
    try:
        data = _read_json(file)[1]
        _entries(file, data, entries_of_others(data), Unknown())
    except NoCasesError:
        return False
    except CasesError:
        return True
    return True


def find_cases(folder: Path) -> Path | None:
    """The first file with cases of a skill; None if there is no file."""
    files = cases_files(folder)
    with_cases = files if len(files) == 1 else filter(has_cases, files)
    return next(iter(with_cases), files[0] if files else None)


def _entries(
    file: Path, data: Any, foreign: Entries | None, unknown: Unknown
) -> tuple[Entries, Mapping[str, Any]]:
    """The cases as written, and the defaults; NoCasesError if there are none."""
    try:
        entries, defaults = (foreign, {}) if foreign else _own_entries(file, data, unknown)
        if _sandbox_form(data):
            defaults = _with_defaults(dict(defaults), {"sandbox": data["sandbox"]})
    except FormError as error:
        raise cases_error(file, error.problems) from None
    if is_trigger_set(entries.written):
        raise NoCasesError(file, TRIGGERS_ARE_NO_CASES)
    if not entries.written:
        raise NoCasesError(file, "no cases", how_to_add_cases(file))
    return entries, defaults


def broken_case(file: Path, case: Case, problems: Sequence[Problem]) -> BrokenCase:
    """A case that can't be run; CasesError if the file's defaults are wrong."""
    return broken(file, case.line, case.place, problems, case.id)


def are_evals(file: Path) -> bool:
    """Whether a file is in the form of evals.json or a similar one; False if it is broken."""
    try:
        _, data = _read_json(file)
    except CasesError:
        return False
    return entries_of_others(data) is not None


def how_to_add_cases(file: Path) -> str:
    return _HOW_TO_ADD_CASES.replace("{file}", shown(file))


def _own_entries(file: Path, data: Any, unknown: Unknown) -> tuple[Entries, Mapping[str, Any]]:
    """The cases as written, and the defaults."""
    if isinstance(data, list):
        return Entries.of((), data), {}
    if not isinstance(data, dict):
        raise CasesError(file, "must be an object or a list", how_to_add_cases(file))
    if no_lists := [((key,), "must be a list") for key in LISTS if key in data]:
        raise FormError(no_lists)
    data = known_part(MetaForm, data, (), unknown)
    if "defaults" in data:
        data["defaults"] = known_part(DefaultsForm, data["defaults"], ("defaults",), unknown)
    meta: MetaForm = read_form(_META, data)
    if meta.cases and meta.tests:
        raise CasesError(file, 'has both "cases" and "tests"', "Keep one of them.")
    key = "cases" if meta.cases else "tests"
    return Entries.of((key,), data.get(key) or []), data.get("defaults") or {}


def lines_of(text: str, places: Sequence[Location]) -> dict[Location, int]:
    """The line of each case."""
    roots = dict.fromkeys(place[:-1] for place in places if place)
    inside = {root: lines_inside(text, root) for root in roots}
    return {
        place: inside[place[:-1]][place[-1]]
        if place and isinstance(place[-1], int)
        else line_of(text, place)
        for place in places
    }


def _leave_out_triggers(entries: Entries) -> None:
    """Drop trigger queries, which trigger_loading reads."""
    for number in reversed(range(len(entries.written))):
        if is_trigger(entries.written[number]):
            del entries.places[number], entries.written[number]


def _with_defaults(case: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The case wins; tags are added, ``expected`` and ``sandbox`` are filled in by key."""
    if not defaults:
        return case
    merged = {**defaults, **case}
    tags, expected = case.get("tags"), case.get("expected")
    if isinstance(case.get("sandbox"), dict):
        merged["sandbox"] = {**(defaults.get("sandbox") or {}), **case["sandbox"]}
    if isinstance(tags, list):  # its own first, so a bad tag is reported at its own path
        merged["tags"] = [*tags, *(tag for tag in defaults.get("tags", ()) if tag not in tags)]
    if isinstance(expected, dict):
        merged["expected"] = {**(defaults.get("expected") or {}), **expected}
    return merged


_NOTHING: Final = frozenset[Location]()


def _defaulted(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> frozenset[Location]:
    """The paths in a case that come from the defaults."""
    if not defaults:
        return _NOTHING
    own_checks, default_checks = case.get("expected"), defaults.get("expected")
    return frozenset(
        [(key,) for key in defaults if key not in case]
        + [
            ("expected", key)
            for key in default_checks or ()
            if isinstance(own_checks, dict) and key not in own_checks
        ]
    )


def _read_json(file: Path) -> tuple[str, Any]:
    return read_cases_json(file, MAX_CASES_BYTES, how_to_add_cases(file))


def read_cases_json(file: Path, limit: int, how_to_write: str) -> tuple[str, Any]:
    """The text and the value of a file that people write; CasesError if it is broken or empty."""

    def content(file: Path) -> bytes:
        data = read_file(file, limit)
        if not data.removeprefix(codecs.BOM_UTF8).strip():
            raise CasesError(file, "empty file", how_to_write)
        return data

    hint = "Look for a missing or extra comma or quote just before this position."
    return read_json(file, CasesError, hint, content, _no_duplicate_keys)


def _no_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The json module keeps the last of two equal keys, which would silently drop a check."""
    out = dict(pairs)
    if len(out) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"duplicate key {key!r} in an object")
    return out


def _case(
    place: Location, line: int, form: CaseForm, read: CaseFiles, defaulted: frozenset[Location]
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
        group=form.group or "",
        earlier=tuple(turns[:-1]),
        system=form.system,
        skip=_reason(form.skip),
        xfail=_reason(form.xfail),
        runs=form.runs,
        threshold=form.threshold,
        models=tuple(form.models or ()),
        workspace=form.workspace or "",
        setup=form.setup or "",
        sandbox=SandboxNeeds.of(form.sandbox),
        validator=_validator(form),
        defaulted=defaulted,
    )
    return read.add_to(case, form.context)


def _validator(form: CaseForm) -> tuple[str, dict[str, Any]] | None:
    settings = {**(form.validator_config or {}), "output_file": form.output_file}
    value = {key: setting for key, setting in settings.items() if setting is not None}
    return (form.validator, value) if form.validator else None


def read_messages(turns: Any) -> tuple[tuple[Role, str], ...]:
    """Validate messages written by a user; raises FormError."""
    messages: list[MessageForm] = read_form(_MESSAGES, turns)
    return tuple((message.role, message.content) for message in messages)


def _reason(written: bool | str | None) -> str | None:
    return _NO_REASON if written is True else written or None


def _with_ids(cases: Sequence[Case]) -> list[Case]:
    unnamed = [case for case in cases if not case.id]
    questions = [(case.input, *chain(*case.files), *chain(*case.earlier)) for case in unnamed]
    new_ids = iter(automatic_ids(questions))
    return [case if case.id else replace(case, id=next(new_ids)) for case in cases]


def _duplicates(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Each case that has the id of an earlier one, and the earlier one."""
    first: dict[str, Case] = {}
    return [(case, first[case.id]) for case in cases if first.setdefault(case.id, case) is not case]


def _distinct(cases: Sequence[Case]) -> tuple[list[Case], list[tuple[int, str]]]:
    """Number cases with the same id: in foreign forms, ids may repeat."""
    names = numbered([case.id for case in cases])
    renamed = [replace(case, id=name) for case, name in zip(cases, names, strict=True)]
    warnings = [(case.line, "ids that occur twice are numbered") for case, _ in _duplicates(cases)]
    return renamed, warnings[:1]
