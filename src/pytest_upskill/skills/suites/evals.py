"""Cases in foreign forms: evals.json of skill-creator and similar ones.

Their keys become those of skill_meta.json where the meaning is plain. Other keys are
left out, and told in one warning for the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..._util.json_forms import FormError, Location, Problem
from ..._util.texts import slug
from ..case_files import files_of
from ..case_forms import is_good_tag
from .eval_checks import EXPECTING, TEXTS, expected_checks, together, whole_output
from .json_files import Entries, Unknown, usable_id
from .skill_checks import OF_SKILL, OwnSkill, skill_checks

_NOTHING_EXPECTED: Final = 'nothing expected; add "expected_output" or "assertions"'

# Where foreign files keep their cases.
LISTS: Final = ("evals", "evaluations", "test_cases", "scenarios")
# Lists of other kinds of cases in such a file.
LISTS_BESIDE: Final = ("triggers", "trigger_evals", "trigger_tests", "trigger_queries")
QUESTIONS: Final = ("prompt", "question", "query", "user_prompt", "task", "messages")
_WORKSPACES: Final = ("workspace", "test_data")  # a folder of the skill
NAMES: Final = ("name", "eval_name", "slug")
# For people and other programs; ignored silently.
SILENT: Final = frozenset(
    {"category", "comment", "description", "metadata", "name", "note", "notes", "title"}
    | {"skill", "skill_name", "version"}
)
OF_FILE: Final = SILENT | {"schema", "updated", "date", "sandbox", *LISTS_BESIDE}


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
        read = {entries.places[0][0], *OF_FILE}
        for key in data.keys() - read:
            if not key.startswith(("_", "$")):
                unknown.add((), key, data[key])


def case_of_eval(
    entry: Any, place: Location, skill: OwnSkill, unknown: Unknown
) -> dict[str, Any]:
    """A foreign case in our own form; FormError if it can't be run."""
    entry = object_of(entry, place)
    key = next((key for key in (*QUESTIONS, "input") if key in entry), "prompt")
    read = {
        key,
        "id",
        "expected",
        "files",
        "tags",
        "group",
        "context",
        "verifiers",
        *_WORKSPACES,
    }
    for unread in entry.keys() - read - {*NAMES, *EXPECTING, *OF_SKILL} - SILENT:
        if not unread.startswith(("_", "$")):
            unknown.add(place, unread, entry[unread])
    context = entry.get("context")
    tags = entry.get("tags")
    problems: list[Problem] = []
    if problem := _problem_of_question(entry, key):
        problems.append(((*place, key), problem))
    written = context.get("files") if isinstance(context, dict) else None
    if context and not written:
        unknown.add(place, "context", context)
    files_place = ("files",) if entry.get("files") else ("context", "files")
    files = files_of(
        entry.get("files") or written, (*place, *files_place), skill.folder, problems
    )
    own_checks = entry.get("expected")
    expected = expected_checks(entry, place, unknown, problems)
    if isinstance(own_checks, dict):
        expected = together(own_checks, expected)
    with_skill = skill_checks(entry, place, skill, unknown)
    if not expected and not problems:
        expected = whole_output(entry)
        if not expected and not with_skill:
            problems.append((place, _NOTHING_EXPECTED))
    if problems:
        raise FormError(problems)
    workspace = next(
        (entry[key] for key in _WORKSPACES if isinstance(entry.get(key), str)), None
    )
    case = {"workspace": workspace} if workspace else {}
    return case | {
        "id": usable_id(entry, "id", *NAMES),
        "input": entry[key],
        "context": {"files": files},
        "expected": together(
            expected, {"with_skill": with_skill} if with_skill else {}
        ),
        "tags": list(_usable_tags(tags if isinstance(tags, list) else [tags])),
        "group": (
            group
            if isinstance(group := entry.get("group"), str) and group.strip()
            else None
        ),
    }


def _problem_of_question(entry: Mapping[str, Any], key: str) -> str:
    if key not in entry:
        return "missing"
    question = entry[key]
    if not isinstance(question, str | list):
        return "must be a string"
    if not question or (isinstance(question, str) and not question.strip()):
        return "must not be empty"
    if isinstance(question, list):
        if not all(isinstance(turn, dict) for turn in question):
            return 'must be a string, or a list of messages with "role" and "content"'
    return ""


def object_of(entry: Any, place: Location) -> dict[str, Any]:
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


def _usable_tags(tags: Sequence[Any]) -> Iterator[str]:
    for tag in tags:
        usable = (
            (tag if is_good_tag(tag) else slug(tag)) if isinstance(tag, str) else ""
        )
        if is_good_tag(usable):
            yield usable
