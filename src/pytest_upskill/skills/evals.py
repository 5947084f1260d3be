"""Cases in foreign forms: evals.json of skill-creator and similar ones.

Their keys become those of skill_meta.json where the meaning is plain. Other keys are left out, and
told in one warning for the file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from .._util.json_forms import FormError, Location, Problem
from .._util.texts import slug
from .case_files import files_of
from .case_forms import CaseForm, ContextForm, DefaultsForm, is_good_id, is_good_tag
from .eval_checks import EXPECTING, TEXTS, expected_checks, together, whole_output
from .loaded_cases import Unknown

TRIGGERS_ARE_NO_CASES: Final = (
    "only queries of triggers (should_trigger), and no cases; "
    'write evals with a "prompt" and an "expected_output"'
)
_NOTHING_EXPECTED: Final = 'nothing expected; add "expected_output" or "assertions"'

LISTS: Final = ("evals", "test_cases", "scenarios")  # where foreign files keep their cases
TRIGGER_LISTS: Final = ("triggers", "trigger_evals", "trigger_tests", "trigger_queries")
QUESTIONS: Final = ("prompt", "question", "query", "user_prompt", "task", "messages")
NAMES: Final = ("name", "eval_name", "slug")
# For people and other programs; ignored silently.
SILENT: Final = frozenset(
    {"category", "comment", "description", "metadata", "name", "note", "notes", "title"}
    | {"skill", "skill_name", "version"}
)
_OF_FILE: Final = SILENT | {"schema", "updated", "date", "sandbox", *TRIGGER_LISTS}


_SIMILAR: Final = 0.75  # a key that is this much like a known one is a typo


class Entries(NamedTuple):
    """The cases of a file as written, each with its path."""

    places: list[Location]
    written: list[Any]

    @classmethod
    def of(cls, root: Location, written: Sequence[Any]) -> "Entries":
        return cls([(*root, number) for number in range(len(written))], list(written))


def is_typo(key: str, keys: Iterable[str]) -> bool:
    return bool(get_close_matches(key, list(keys), n=1, cutoff=_SIMILAR))


def is_trigger_set(entries: Sequence[Any]) -> bool:
    """Whether all entries are trigger queries."""
    return bool(entries) and all(map(is_trigger, entries))


def is_trigger(entry: Any) -> bool:
    """Whether an entry is a trigger query: nothing is expected of an answer."""
    if not isinstance(entry, dict) or "should_trigger" not in entry:
        return False
    return not any(entry.get(key) for key in (*EXPECTING, "expected"))


def entries_of_others(data: Any) -> Entries | None:
    """The cases of a file in a foreign form; None if it is in our own."""
    if isinstance(data, dict):
        for key in LISTS:
            if isinstance(data.get(key), list):
                return Entries.of((key,), data[key])
        if "defaults" in data:
            return None
        for key in ("cases", "tests"):
            if isinstance(data.get(key), list) and _is_of_others(data[key]):
                return Entries.of((key,), data[key])
        asks, expects = (data.keys() & set(keys) for keys in (QUESTIONS, EXPECTING))
        if asks and expects:  # a single case, as in the documentation of Claude
            return Entries([()], [data])
    elif isinstance(data, list) and _is_of_others(data):
        return Entries.of((), data)
    return None


def _is_of_others(entries: Sequence[Any]) -> bool:
    written = [entry for entry in entries if isinstance(entry, dict)]
    return any(map(_looks_foreign, written)) and not any(map(_looks_own, written))


def _looks_foreign(entry: Mapping[str, Any]) -> bool:
    return any(key in entry for key in (*QUESTIONS, *EXPECTING))


def _looks_own(entry: Mapping[str, Any]) -> bool:
    checked = isinstance(entry.get("expected"), dict | list) or "validator" in entry
    return "input" in entry and (checked or not _looks_foreign(entry))


def keys_of_file(data: Any, entries: Entries, unknown: Unknown) -> None:
    """Note the keys beside the cases that are not read."""
    if isinstance(data, dict) and entries.written and entries.places[0]:
        read = {entries.places[0][0], *_OF_FILE}
        for key in data.keys() - read:
            if not key.startswith(("_", "$")):
                unknown.add((), key, data[key])


def case_of_eval(entry: Any, place: Location, folder: Path, unknown: Unknown) -> dict[str, Any]:
    """A foreign case in our own form; FormError if it can't be run."""
    entry = _object(entry, place)
    key = next((key for key in (*QUESTIONS, "input") if key in entry), "prompt")
    read = {key, "id", "expected", "files", "tags", "group", "context", "verifiers"}
    for unread in entry.keys() - read - {*NAMES, *EXPECTING} - SILENT:
        if not unread.startswith(("_", "$")):
            unknown.add(place, unread, entry[unread])
    question, context, tags = entry.get(key), entry.get("context"), entry.get("tags")
    problems = list[Problem]()
    if not isinstance(question, str | list):
        problem = "must be a string" if key in entry else "missing"
        problems.append(((*place, key), problem))
    elif not question or (isinstance(question, str) and not question.strip()):
        problems.append(((*place, key), "must not be empty"))
    elif isinstance(question, list) and not all(isinstance(turn, dict) for turn in question):
        problem = 'must be a string, or a list of messages with "role" and "content"'
        problems.append(((*place, key), problem))
    written = context.get("files") if isinstance(context, dict) else None
    if context and not written:
        unknown.add(place, "context", context)
    files_place = ("files",) if entry.get("files") else ("context", "files")
    files = files_of(entry.get("files") or written, (*place, *files_place), folder, problems)
    own_checks = entry.get("expected")
    expected = expected_checks(entry, place, unknown, problems)
    if isinstance(own_checks, dict):
        expected = together(own_checks, expected)
    if not expected and not problems:
        expected = whole_output(entry)
        if not expected:
            problems.append((place, _NOTHING_EXPECTED))
    if problems:
        raise FormError(problems)
    return {
        "id": usable_id(entry, "id", *NAMES),
        "input": question,
        "context": {"files": files},
        "expected": expected,
        "tags": list(_usable_tags(tags if isinstance(tags, list) else [tags])),
        "group": group if isinstance(group := entry.get("group"), str) and group.strip() else None,
    }


def own_case(entry: Any, place: Location, folder: Path, unknown: Unknown) -> dict[str, Any]:
    """A case in our own form, with foreign keys translated; typos stay, to be reported."""
    entry = _object(entry, place)
    fields, problems = CaseForm.model_fields, list[Problem]()
    case = {key: value for key, value in entry.items() if key in fields}
    if isinstance(case.get("context"), dict):
        case["context"] = known_part(
            ContextForm, case["context"], (*place, "context"), unknown, "context."
        )
    for key in (key for key in entry if key not in fields):
        if key in QUESTIONS and "input" not in entry:
            case["input"] = entry[key]
        elif key == "files" and "context" not in entry:
            case["context"] = {"files": entry[key]}
        elif key in (*NAMES, *EXPECTING, "verifiers") or key in SILENT:
            continue
        elif is_typo(key, fields):
            case[key] = entry[key]
        else:
            unknown.add(place, key, entry[key])
    if case.get("id") is None:
        case["id"] = usable_id(entry, *NAMES)
    context = case.get("context")
    files = context.get("files") if isinstance(context, dict) else None
    if isinstance(files, list) and any(isinstance(file, dict) for file in files):
        files_place = (*place, *(("files",) if "context" not in entry else ("context", "files")))
        case["context"] = {"files": files_of(files, files_place, folder, problems)}
    foreign_checks = expected_checks({**entry, "expected": None}, place, unknown, problems)
    if problems:
        raise FormError(problems)
    if not foreign_checks and not {"expected", "validator"} & case.keys():
        foreign_checks = whole_output(entry)
    if foreign_checks:
        case["expected"] = together(case.get("expected"), foreign_checks)
    return case


def known_part(
    form: type[BaseModel], written: Any, place: Location, unknown: Unknown, inside: str = ""
) -> Any:
    """An object without keys that are unlike any of a form; typos stay, to be reported."""
    if not isinstance(written, dict):
        return written
    keys = [field.alias or name for name, field in form.model_fields.items()]
    if form is DefaultsForm:
        keys += CaseForm.model_fields  # a key that only cases have is reported, too
    part = {}
    for key, value in written.items():
        if key in keys or is_typo(key, keys):
            part[key] = value
        elif key not in _OF_FILE and not key.startswith(("_", "$")):
            unknown.add(place, key, value, inside)
    return part


def _object(entry: Any, place: Location) -> dict[str, Any]:
    """A case as written; foreign checks inside of "expected" are moved out of it."""
    if not isinstance(entry, dict):
        raise FormError([(place, "must be an object")])
    own_checks = entry.get("expected")
    if not isinstance(own_checks, dict):
        return entry
    inside = own_checks.keys() & {"anti_expectations", *TEXTS}
    if not inside or inside & entry.keys():
        return entry
    moved = {key: own_checks[key] for key in own_checks if key in inside}
    return {
        **entry,
        "expected": {key: own_checks[key] for key in own_checks if key not in inside},
        **moved,
    }


def usable_id(entry: Mapping[str, Any], *keys: str) -> str | None:
    """The value of the first of these keys that can be part of a test id."""
    for key in keys:
        value = entry.get(key)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        usable = (text if is_good_id(text) else slug(text)) if isinstance(text, str) else ""
        if usable:
            return usable
    return None


def _usable_tags(tags: Sequence[Any]) -> Iterator[str]:
    for tag in tags:
        usable = (tag if is_good_tag(tag) else slug(tag)) if isinstance(tag, str) else ""
        if is_good_tag(usable):
            yield usable
