"""What cases in foreign forms expect of an answer, as our own checks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..._util.json_forms import Location, Problem
from ..._util.texts import guess
from ..case_files import path_in
from .json_files import Unknown

# What the files are like that an agent leaves
REPO_STATE: Final = "expected_repo_state"
_RUBRICS: Final = (
    "assertions",
    "expectations",
    "expected_behavior",
    "expect",
    "rubric",
    "criteria",
    REPO_STATE,
)
_ANTI_RUBRICS: Final = ("anti_expectations", "must_not", "unexpected_behavior")
TEXTS: Final = {"must_have": "contains", "must_not_have": "not_contains"}
_FILES: Final = "expected_files"
_FILES_ANYWHERE: Final = "files_exist"  # paths that may be below other folders
# What an agent tells the user, beside the work it does
_SAID: Final = "expected_chat_output"
_LOGGED: Final = "logs_contain"  # texts of the transcript
# If nothing else is expected
_WHOLE: Final = ("expected_output", "ground_truth", "expected")
EXPECTING: Final = (
    *(*_RUBRICS, *_ANTI_RUBRICS, *TEXTS, *_WHOLE[:2]),
    *(_FILES, _FILES_ANYWHERE, _SAID, _LOGGED),
)
# Assertions that are objects.
_SAYING: Final = (
    *("text", "description", "assertion", "expectation", "criterion", "check"),
    *("criteria", "requirement", "statement", "behavior", "pass_if"),
)
_CHECKS: Final = {
    "contains": "contains",
    "contains_all": "contains",
    "contains_any": "contains_any",
    "contains_phrase": "contains",
    "includes": "contains",
    "not_contains": "not_contains",
    "not_contains_phrase": "not_contains",
    "excludes": "not_contains",
    "regex": "regex",
    "matches": "regex",
    "pattern": "regex",
    "contains_pattern": "regex",
    "not_regex": "not_regex",
    "not_contains_pattern": "not_regex",
}
# Assertions about files that an agent leaves behind, with our check of a file.
_FILE_CHECKS: Final = {
    "file_exists": "exists",
    "exists": "exists",
    "file_not_exists": "absent",
    "file_absent": "absent",
    "file_contains": "contains",
    "file_not_contains": "not_contains",
    "file_matches": "regex",
    "file_regex": "regex",
    "file_pattern": "regex",
    "regex_in_file": "regex",
}
_COMMANDS: Final = ("cmd", "command")
_VALUES: Final = (
    "value",
    "values",
    "pattern",
    "phrase",
    "regex",
    "expected",
    "substring",
)


def expected_checks(
    entry: Mapping[str, Any], place: Location, unknown: Unknown, problems: list[Problem]
) -> dict[str, Any]:
    """The checks that the keys of foreign forms stand for."""
    checks, groups = dict[str, list[str]](), list[dict[str, Any]]()
    lists = [
        *_RUBRICS,
        *(["expected"] if isinstance(entry.get("expected"), list) else []),
    ]
    for key in (_FILES, _FILES_ANYWHERE):
        around = "**/" if key == _FILES_ANYWHERE else ""
        paths = _files_expected(entry, key, place, problems)
        groups += [{"files": {around + path: "exists"}} for path in paths]
    for item_place, text in _items(entry, _LOGGED, place, problems):
        if isinstance(text, str) and text.strip():
            groups.append({"transcript": {"contains": text}})
        else:
            problems.append((item_place, "must be a string"))
    groups += [group for _, group in _of_agents(entry, lists, place)]
    for name, values in _checks_in(entry, lists, place, problems):
        if name == "contains_any":
            groups.append({name: values})
        else:
            checks.setdefault(name, []).extend(values)
    for name, texts in _texts_in(entry, place, problems):
        checks.setdefault(name, []).extend(texts)
    verifiers = entry.get("verifiers") or []
    for item in verifiers if isinstance(verifiers, list) else [verifiers]:
        if group := _of_agent(item):
            groups.append(group)
        elif check := _verifier_check(item):
            name, values = check
            checks.setdefault(name, []).extend(values)
        else:
            kind = item.get("type") if isinstance(item, dict) else None
            label = f"verifiers ({kind})" if kind else "verifiers"
            unknown.places.setdefault(label, (*place, "verifiers"))
    groups += [{"not": group} for _, group in _of_agents(entry, _ANTI_RUBRICS, place)]
    for name, values in _checks_in(entry, _ANTI_RUBRICS, place, problems):
        groups += [{"not": {name: [value]}} for value in values]
    result: dict[str, Any] = {
        key: list(dict.fromkeys(texts)) for key, texts in checks.items()
    }
    if "judge" in result and (output := _expected_output(entry)):
        result["judge_context"] = output
    return {**result, "all_of": groups} if groups else result


def _texts_in(
    entry: Mapping[str, Any], place: Location, problems: list[Problem]
) -> Iterator[tuple[str, list[str]]]:
    """Names of checks, and what they look for, by keys that have texts."""
    for item_place, text in _items(entry, _SAID, place, problems):
        if not isinstance(text, str) or not text.strip():
            problems.append((item_place, "must be a string"))
        elif isinstance(entry[_SAID], str):
            yield "judge", [f"The answer to the user is as expected: {text}"]
        else:
            yield "judge", [text]
    for key, name in TEXTS.items():
        for item_place, item in _items(entry, key, place, problems):
            if texts := _texts(item):
                yield name, texts
            else:
                problems.append((item_place, "must be a string"))


def _verifier_check(item: Any) -> tuple[str, list[str]] | None:
    """None for verifiers that ask a judge or run code."""
    try:
        name, values = _check_of(item)
    except ValueError:
        return None
    return None if name == "judge" else (name, values)


def together(checks: Any, foreign_checks: dict[str, Any]) -> Any:
    """A case's checks with foreign ones added; what is written keeps its path."""
    if not checks or not foreign_checks:
        return checks or foreign_checks
    if isinstance(checks, list):
        return [*checks, foreign_checks]
    if not isinstance(checks, dict) or not isinstance(checks.get("all_of", []), list):
        return checks  # reported when it is parsed
    if not checks.keys() & foreign_checks.keys() and "with_skill" in foreign_checks:
        return {**checks, **foreign_checks}
    return {**checks, "all_of": [*checks.get("all_of", []), foreign_checks]}


def whole_output(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A check that compares with the expected output; empty if there is none."""
    output = _expected_output(entry)
    return {"judge": [f"The answer is as expected: {output}"]} if output else {}


def _expected_output(entry: Mapping[str, Any]) -> str:
    """The expected output in words; empty if there is none."""
    texts = (entry.get(key) for key in _WHOLE)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _checks_in(
    entry: Mapping[str, Any],
    keys: Iterable[str],
    place: Location,
    problems: list[Problem],
) -> Iterator[tuple[str, list[str]]]:
    for key in keys:
        for item_place, item in _items(entry, key, place, problems):
            if _of_agent(item):
                continue
            try:
                yield _check_of(item)
            except ValueError as error:
                problems.append((item_place, str(error)))


def _of_agents(
    entry: Mapping[str, Any], keys: Iterable[str], place: Location
) -> Iterator[tuple[Location, dict[str, Any]]]:
    for key in keys:
        for item_place, item in _items(entry, key, place, []):
            if group := _of_agent(item):
                yield item_place, group


def _of_agent(item: Any) -> dict[str, Any] | None:
    """The check of an agent's work that an assertion stands for; None if it is
    another.
    """
    if not isinstance(item, dict):
        return None
    kind = str(item.get("type", "")).lower().replace("-", "_")
    if kind == "command":
        commands = [item[key] for key in _COMMANDS if isinstance(item.get(key), str)]
        return {"command": commands[0]} if commands and commands[0].strip() else None
    check = _FILE_CHECKS.get(kind)
    path = path_in(item)
    if not check or not _is_in_workspace(path):
        return None
    if check in ("exists", "absent"):
        return {"files": {path: check}}
    for key in (*_VALUES, "text", "content", "contains"):
        if texts := _texts(item.get(key)):
            return {"files": {path: {check: texts}}}
    return None


def _files_expected(
    entry: Mapping[str, Any], key: str, place: Location, problems: list[Problem]
) -> Iterator[str]:
    for item_place, item in _items(entry, key, place, problems):
        named = item if isinstance(item, dict) else {"path": item}
        path = path_in(named)
        if _is_in_workspace(path):
            yield path
        else:
            problems.append(
                (item_place, "must be a path in the workspace, such as out/report.md")
            )


def _is_in_workspace(path: str) -> bool:
    inside = (
        not path.startswith("/") and not {"\\", "\0"} & set(path) and path[1:2] != ":"
    )
    return bool(path.strip("./ ")) and inside and ".." not in path.split("/")


def _items(
    entry: Mapping[str, Any], key: str, place: Location, problems: list[Problem]
) -> Iterator[tuple[Location, Any]]:
    """The items of a list with their paths; a single text stands for a list of it."""
    written = entry.get(key)
    if isinstance(written, str):
        written = [written] if written.strip() else []
    if isinstance(written, list):
        yield from (
            ((*place, key, number), item) for number, item in enumerate(written)
        )
    elif written is not None:
        # An object may be meant for our own checks.
        meant = guess(key, ["expected"]) if isinstance(written, dict) else ""
        problems.append(((*place, key), f"must be a list{meant}"))


def _check_of(item: Any) -> tuple[str, list[str]]:
    """The check and its texts; ValueError if an assertion says
    nothing that can be checked.
    """
    if isinstance(item, str):
        if not item.strip():
            raise ValueError("must not be empty")
        return "judge", [item]
    if not isinstance(item, dict):
        raise ValueError('must be a string or an object with "text"')
    name = _CHECKS.get(str(item.get("type", "")).lower().replace("-", "_"))
    if name:
        for key in (*_VALUES, "text"):
            if texts := _texts(item.get(key)):
                return name, texts
    for key in _SAYING:
        if texts := _texts(item.get(key)):
            return "judge", texts
    raise ValueError('needs a "text" or a "description"')


def _texts(value: Any) -> list[str]:
    """Texts as a list; empty if there is anything else in it."""
    texts = value if isinstance(value, list) else [value]
    return (
        texts if all(isinstance(text, str) and text.strip() for text in texts) else []
    )
