"""Loading skill_meta.json and other files of cases."""

import json
from pathlib import Path
from typing import Any

import pytest

import pytest_upskill.skills.suites.json_files as cases_module
from pytest_upskill.checks import load_checked_cases, walk
from pytest_upskill.errors import CasesError, NoCasesError
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.suites.json_suites import load_cases
from pytest_upskill.skills.suites.reading import read_suites
from support.kit import case

GATE = case("How do I open the gate?", "gate up")
DOOR = case("How do I open the door?", "door up")


def write(folder: Path, data: Any) -> Path:
    """Write a file of cases: bytes and strings as they are, other values as JSON."""
    file = folder / "skill_meta.json"
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode("utf-8")
    file.write_bytes(data)
    return file


def load(folder: Path, *cases: Any) -> list[Case]:
    return load_cases(write(folder, {"cases": cases})).require_all()


def rejected(folder: Path, data: Any) -> CasesError:
    with pytest.raises(CasesError) as caught:
        load_checked_cases(write(folder, data)).require_all()
    return caught.value


@pytest.mark.parametrize(
    "data",
    [
        {"cases": [GATE, DOOR]},
        {
            "cases": [GATE, DOOR],
            "tests": None,
            "metadata": None,
            "$schema": "https://x/y.json",
        },
        {"metadata": {"version": "1", "any": [1, {}]}, "tests": [GATE, DOOR]},
        [GATE, DOOR],
    ],
)
def test_all_file_forms_give_the_same_cases(tmp_path: Path, data: Any) -> None:
    cases = load_cases(write(tmp_path, data)).require_all()
    assert [c.input for c in cases] == [
        "How do I open the gate?",
        "How do I open the door?",
    ]
    assert [c.expected for c in cases] == [
        {"contains": ["gate up"]},
        {"contains": ["door up"]},
    ]


def test_full_case_is_read(tmp_path: Path) -> None:
    whole = {
        "id": "h100-build.toml+v1",
        "input": "Create a build.toml",
        "context": {"files": {"README.md": "# Read", "a/b.txt": ""}},
        "expected": {"contains": ["9.0", "cuda"], "not_contains": ["8.0"]},
        "tags": ["build", "h100"],
    }
    assert load(tmp_path, whole) == [
        Case(
            id="h100-build.toml+v1",
            input="Create a build.toml",
            expected={"contains": ["9.0", "cuda"], "not_contains": ["8.0"]},
            place=("cases", 0),
            files=(("README.md", "# Read"), ("a/b.txt", "")),
            tags=("build", "h100"),
        )
    ]


def arguments(folder: Path, expected: Any) -> dict[str, Any]:
    """The arguments of a case's checks, by name."""
    file = write(folder, [{"input": "q", "expected": expected}])
    ((_, checks),) = load_checked_cases(file).require_all()
    return {check.kind.name: check.argument for check in walk(checks)}


def test_single_string_equals_a_list_of_one(tmp_path: Path) -> None:
    expected = {"contains": "a b", "not_contains": "c"}
    assert arguments(tmp_path, expected) == {"contains": ["a b"], "not_contains": ["c"]}


def test_check_that_only_forbids_is_enough(tmp_path: Path) -> None:
    expected = {"not_contains": ["c"], "contains": None}
    assert arguments(tmp_path, expected) == {"not_contains": ["c"]}


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    data = (
        b"\xef\xbb\xbf" + json.dumps([case("Grüße?", "ß")], ensure_ascii=False).encode()
    )
    assert load_cases(write(tmp_path, data)).require_all()[0].input == "Grüße?"


def test_nulls_written_by_upskill_are_accepted(tmp_path: Path) -> None:
    nulls = {
        "context": None,
        "output_file": None,
        "validator": None,
        "validator_config": None,
    }
    (one,) = load(tmp_path, {**GATE, **nulls})
    assert one.files == ()


@pytest.mark.parametrize(
    ("given_id", "made"), [("open-gate", "open-gate"), (7, "7"), ("ü", "ü")]
)
def test_id_is_kept_and_a_number_becomes_a_string(
    tmp_path: Path, given_id: str | int, made: str
) -> None:
    assert load(tmp_path, {**GATE, "id": given_id})[0].id == made


def test_generated_id_is_words_and_a_hash(tmp_path: Path) -> None:
    made = load(tmp_path, GATE)[0].id
    assert made[:-7] == "how-do-i-open-the-gate"
    assert made[-7] == "-"
    assert int(made[-4:], 16) >= 0
    assert load(tmp_path, case("門は?", "x"))[0].id.startswith("case-")


def test_generated_id_ignores_other_cases_and_checks(tmp_path: Path) -> None:
    alone = load(tmp_path, GATE)[0].id
    others = [case(f"Question {number}?", "x") for number in range(3)]
    assert load(tmp_path, *others, GATE)[3].id == alone
    assert load(tmp_path, GATE, *others)[0].id == alone
    assert (
        load(tmp_path, {**GATE, "expected": {"contains": "other"}, "tags": ["t"]})[0].id
        == alone
    )


def test_generated_ids_of_similar_questions_differ(tmp_path: Path) -> None:
    with_file = {**GATE, "context": {"files": {"a.txt": "1"}}}
    other_file = {**GATE, "context": {"files": {"a.txt": "2"}}}
    shouted = case("How do I open the gate?!", "gate up")
    assert (
        len({made.id for made in load(tmp_path, GATE, with_file, other_file, shouted)})
        == 4
    )


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ('{"cases": [\n  {"input": "q"\n   "expected": 1}\n]}', ":3:4", "invalid JSON"),
        ('{"cases": [] "x"}', ":1:14", "invalid JSON"),
        ("", "", "empty file"),
        ("// words\n[]", ":1:1", "invalid JSON"),
        ('["a\nb"]', ":1:4", "invalid JSON"),
        (b'["caf\xe9"]', "", "not UTF-8 (byte 5)"),
        ("[" * 100_000, "", "nested too deep"),
        ("[" + "1" * 5_000 + "]", "", "invalid JSON"),
        ('{"cases": [], "cases": []}', "", "duplicate key 'cases'"),
        (
            '[{"input": "q", "expected": {"contains": "a", "contains": "b"}}]',
            "",
            "duplicate key",
        ),
        ("{}", "", "no cases"),
        ("[]", "", "no cases"),
        ('{"cases": []}', "", "no cases"),
        ('{"metadata": {}, "tests": null}', "", "no cases"),
        ('{"cases": [], "tests": []}', "", "no cases"),
        ('{"cases": [{}], "tests": [{}]}', "", 'both "cases" and "tests"'),
        ("null", "", "must be an object or a list"),
        ('"cases"', "", "must be an object or a list"),
    ],
)
def test_malformed_file_is_rejected_with_its_position(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | bytes,
    place: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    error = rejected(tmp_path, text)
    assert error.where == f"skill_meta.json{place}"
    assert problem in error.problem


def test_file_without_cases_is_rejected_with_an_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hint = rejected(tmp_path, []).hint
    assert hint.endswith(" to skill_meta.json.")
    example = json.loads(
        hint.removeprefix("Write ").removesuffix(" to skill_meta.json.")
    )
    assert load_cases(write(tmp_path, example)).require_all()[0].input == "a question"


@pytest.mark.parametrize("path", ["nothing.json", "."])
def test_unreadable_file_is_rejected(tmp_path: Path, path: str) -> None:
    with pytest.raises(CasesError, match=r"Check the path\."):
        load_cases(tmp_path / path).require_all()


def test_huge_file_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, [GATE])
    monkeypatch.setattr(cases_module, "MAX_CASES_BYTES", file.stat().st_size)
    assert len(load_cases(file).require_all()) == 1
    assert "bytes (limit " in rejected(tmp_path, [GATE, DOOR]).problem


EMPTY_TEXT = "must not be empty: every answer would pass, or none"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"expected": {"contians": ["a"]}},
            ".expected.contians: unknown check (did you mean",
        ),
        ({"expects": {}}, '.expects: unknown key (did you mean "expected"?)'),
        (
            {"context": {"file": {}}},
            '.context.file: unknown key (did you mean "files"?)',
        ),
        ({"expected": {"contains": ""}}, f".expected.contains: {EMPTY_TEXT}"),
        ({"expected": {"contains": [" \n"]}}, f".expected.contains[0]: {EMPTY_TEXT}"),
        ({"expected": {"contains": ["a", ""]}}, f".expected.contains[1]: {EMPTY_TEXT}"),
        (
            {"expected": {"contains": []}},
            ".expected.contains: must not be empty: every answer",
        ),
        (
            {"expected": {"not_contains": ""}},
            ".expected.not_contains: must not be empty",
        ),
        ({"expected": {"contains": [1]}}, ".expected.contains[0]: must be a string"),
        (
            {"expected": {"contains": {"a": 1}}},
            ".expected.contains: must be a string or a list",
        ),
        ({"expected": {}}, ".expected: no checks, so every answer would pass"),
        (
            {"expected": {"contains": None}},
            ".expected: no checks, so every answer would pass",
        ),
        ({"expected": "text"}, ".expected: must be an object or a list"),
        ({"input": ""}, ".input: must not be empty"),
        ({"input": 1}, ".input: must be a string or a list of messages"),
        (
            {"context": {"files": {"a.txt": 1}}},
            ".context.files.a.txt: must be a string or",
        ),
        (
            {"context": {"files": "a.txt"}},
            ".context.files: must be an object of strings",
        ),
        ({"validator": "json"}, ".validator: unknown check 'json'; registered: none"),
        ({"validator": 1}, ".validator: must be a string"),
        ({"id": ""}, ".id: '' can't be part of a test id"),
        ({"id": "a b"}, ".id: 'a b' can't be part of a test id"),
        ({"id": "a[b]"}, ".id: 'a[b]' can't be part"),
        ({"id": "a::b"}, ".id: 'a::b' can't be part"),
        ({"id": "a/b"}, ".id: 'a/b' can't be part"),
        ({"id": "a\n"}, ".id: 'a\\n' can't be part"),
        ({"id": "-a"}, ".id: '-a' can't be part"),
        ({"id": True}, ".id: must be a string"),
        ({"id": 1.5}, ".id: must be a string"),
        ({"tags": ["a b"]}, ".tags[0]: 'a b' can't be a pytest mark"),
        ({"tags": [""]}, ".tags[0]: '' can't be a pytest mark"),
        ({"tags": ["_build"]}, ".tags[0]: '_build' can't be a pytest mark"),
        ({"tags": ["skip"]}, ".tags[0]: 'skip' can't be a pytest mark"),
        ({"tags": ["xfail"]}, ".tags[0]: 'xfail' can't be a pytest mark"),
        ({"tags": ["parametrize"]}, ".tags[0]: 'parametrize' can't be a pytest mark"),
        ({"tags": ["usefixtures"]}, ".tags[0]: 'usefixtures' can't be a pytest mark"),
        ({"tags": "build"}, ".tags: must be a list"),
    ],
)
def test_problem_in_a_case_is_reported_with_its_path(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    bad = {**DOOR, **change}
    first = [case(f"Question {number}?", "x") for number in range(3)]
    assert rejected(tmp_path, {"cases": [*first, bad]}).problem.startswith(
        f"cases[3]{problem}"
    )
    assert rejected(tmp_path, {"tests": [bad]}).problem.startswith(f"tests[0]{problem}")
    assert rejected(tmp_path, [bad]).problem.startswith(f"[0]{problem}")


@pytest.mark.parametrize("key", ["input", "expected"])
def test_missing_key_is_reported_with_its_path(tmp_path: Path, key: str) -> None:
    bad = {name: value for name, value in GATE.items() if name != key}
    assert rejected(tmp_path, [bad]).problem == f"[0].{key}: missing"


def test_unknown_key_of_the_file_gets_a_suggestion(tmp_path: Path) -> None:
    assert (
        rejected(tmp_path, {"case": []}).problem
        == 'case: unknown key (did you mean "cases"?)'
    )


def test_first_five_problems_are_shown(tmp_path: Path) -> None:
    lines = rejected(tmp_path, [{}] * 8).problem.splitlines()
    assert len(lines) == 6
    assert lines[0] == "[0].input: missing"
    assert lines[-1].strip() == "and 3 more"


def test_duplicate_ids_are_rejected_with_their_paths(tmp_path: Path) -> None:
    problem = rejected(tmp_path, [{**GATE, "id": 1}, DOOR, {**DOOR, "id": "1"}]).problem
    assert problem == "[2].id: duplicate id '1': also the id of [0]"


def test_cases_that_ask_the_same_need_an_id(tmp_path: Path) -> None:
    again = {**GATE, "expected": {"contains": ["other"]}}
    problem = rejected(tmp_path, [GATE, DOOR, again]).problem
    assert problem == "[2].id: missing, and [0] asks the same; give one of them an id"
    cases = load(tmp_path, GATE, DOOR, {**again, "id": "again"})
    assert [c.id for c in cases][2:] == ["again"]


def test_messages_escape_control_characters(tmp_path: Path) -> None:
    unknown = load_cases(write(tmp_path, [{**GATE, "\x1b[31m": 1}])).warnings
    assert unknown == ((1, "unknown keys are ignored: \\x1b[31m"),)
    bad = {**GATE, "context": {"files": {"\x1b[31m": 1}}}
    assert "\x1b" not in str(rejected(tmp_path, [bad]))


def test_broken_cases_leave_the_others(tmp_path: Path) -> None:
    cases = [GATE, {**DOOR, "expected": {}}, "text", {**DOOR, "id": "a b", "inptu": 1}]
    loaded = load_checked_cases(write(tmp_path, json.dumps(cases, indent=1)))
    assert [case.input for case, _ in loaded.cases] == ["How do I open the gate?"]
    names = [(one.name, one.line) for one in loaded.broken]
    assert names == [(loaded.broken[0].name, 10), ("case-3", 14), ("a-b", 15)]
    assert loaded.broken[0].name.startswith("how-do-i-open-the-door-")
    lines = loaded.broken[2].message.splitlines()
    assert len(lines) == 2
    assert "skill_meta.json:22: [3].id: " in lines[0]
    with pytest.raises(CasesError) as caught:
        loaded.require_all()
    assert len(caught.value.problems) == 4


def test_a_later_case_with_the_same_id_is_the_broken_one(tmp_path: Path) -> None:
    cases = [{**GATE, "id": "x"}, DOOR, {**DOOR, "id": "x"}, {**DOOR, "id": "x"}]
    loaded = load_cases(write(tmp_path, cases))
    assert [case.input for case in loaded.cases] == [GATE["input"], DOOR["input"]]
    assert [one.name for one in loaded.broken] == ["case-3", "case-4"]


def test_broken_cases_of_the_same_id_have_different_names(tmp_path: Path) -> None:
    bad = {"id": "x", "input": ""}
    names = [one.name for one in load_cases(write(tmp_path, [bad, bad, bad])).broken]
    assert names == ["x", "x-2", "x-3"]


@pytest.mark.parametrize(
    "data", [{"tests": []}, {"metadata": {}}, {"version": "1", "id": None}]
)
def test_a_file_without_cases_is_told_from_a_broken_one(
    tmp_path: Path, data: Any
) -> None:
    assert isinstance(rejected(tmp_path, data), NoCasesError)
    assert not isinstance(rejected(tmp_path, "["), NoCasesError)


def test_the_first_file_with_cases_is_found(tmp_path: Path) -> None:
    assert read_suites(tmp_path).path is None
    evals = tmp_path / "evals/evals.json"
    evals.parent.mkdir()
    evals.write_text('[{"query": "q", "should_trigger": true}]')
    assert read_suites(tmp_path).path == evals
    own = write(tmp_path, {"metadata": {}, "tests": []})  # as upskill saves it
    assert read_suites(tmp_path).path == own
    evals.write_text('[{"query": "q", "expected_behavior": ["a"]}]')
    assert read_suites(tmp_path).path == evals
    for text in ("[", {"cases": [GATE]}):
        write(tmp_path, text)
        assert read_suites(tmp_path).path == own


# Keys of others in our own form.


def test_unknown_keys_are_one_warning(tmp_path: Path) -> None:
    cases = [
        {**GATE, "verifiers": [{"type": "command"}], "description": "x"},
        {**DOOR, "zebra": 1, "context": {"files": {}, "env": {"A": "b"}}, "cost": None},
    ]
    data = {"version": "1.0", "cases": cases, "defaults": {"tags": ["t"], "lion": 1}}
    loaded = load_cases(write(tmp_path, json.dumps(data, indent=1)))
    assert [case.tags for case in loaded.cases] == [("t",), ("t",)]
    message = "unknown keys are ignored: context.env, lion, verifiers (command), zebra"
    assert loaded.warnings == ((11, message),)


def test_keys_with_a_plain_meaning_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    more = {
        "name": "Open it!",
        "files": ["a.txt"],
        "must_not_have": ["down"],
        "assertions": ["Kind"],
    }
    loaded = load_cases(write(tmp_path, [{**GATE, **more}, DOOR]))
    first = loaded.require_all()[0]
    assert (first.id, first.files, loaded.warnings) == (
        "open-it",
        (("a.txt", "a"),),
        (),
    )
    added = {"judge": ["Kind"], "not_contains": ["down"]}
    assert first.expected == {"contains": ["gate up"], "all_of": [added]}


def test_an_output_file_without_a_validator_is_ignored_as_by_upskill(
    tmp_path: Path,
) -> None:
    cases = [
        GATE,
        {**DOOR, "output_file": "a.py"},
        {**DOOR, "id": "x", "validator_config": {"a": 1}},
    ]
    loaded = load_cases(write(tmp_path, json.dumps(cases, indent=1)))
    assert [case.validator for case in loaded.require_all()] == [None] * 3
    message = "output_file and validator_config are ignored without a validator"
    assert loaded.warnings == ((10, message),)


def test_files_may_be_objects(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    files = [{"path": "a.txt"}, {"name": "b.txt", "content": "b"}]
    for more in ({"files": files}, {"context": {"files": files}}):
        assert load(tmp_path, {**GATE, **more})[0].files == (
            ("a.txt", "a"),
            ("b.txt", "b"),
        )
    broken = load_cases(
        write(tmp_path, [{**GATE, "files": [{"path": "no.txt"}]}])
    ).broken
    assert broken[0].error.problem.startswith("[0].files[0]: 'no.txt' not found")


def test_the_expected_output_of_a_case_among_our_own_is_judged(tmp_path: Path) -> None:
    cases = [
        GATE,
        {"input": "Q?", "expected_output": "Yes"},
        {**DOOR, "expected_output": "No"},
    ]
    assert [one.expected for one in load(tmp_path, *cases)[1:]] == [
        {"judge": ["The answer is as expected: Yes"]},
        DOOR["expected"],
    ]


# Automatic ids.


LONG = "Write a Python function with type hints that"


def words(folder: Path, *questions: str) -> list[str]:
    """The ids of questions without their hashes."""
    return [
        one.id[:-7] for one in load(folder, *(case(text, "x") for text in questions))
    ]


def test_of_questions_that_begin_alike_the_words_that_differ_come_first(
    tmp_path: Path,
) -> None:
    alike = [
        f"{LONG} sorts a list",
        f"{LONG} reverses a string",
        f"{LONG} reverses a list",
    ]
    assert words(tmp_path, *alike) == ["sorts-a-list", "string", "list"]
    assert words(tmp_path, alike[0]) == ["write-a-python-function-with-type-hints"]
    # Not where there would be nothing left, and not for a short beginning.
    assert words(tmp_path, LONG, f"{LONG}, sorts") == [
        "write-a-python-function-with-type-hints",
        "sorts",
    ]
    assert words(tmp_path, "How do I open it?", "How do I shut it?") == [
        "how-do-i-open-it",
        "how-do-i-shut-it",
    ]


def test_only_questions_that_begin_alike_change_an_id(tmp_path: Path) -> None:
    others = ["How do I open the gate?", "Write a Python class", "門は?"]
    before = [one.id for one in load(tmp_path, *(case(text, "x") for text in others))]
    more = [f"{LONG} sorts a list", f"{LONG} reverses a string"]
    after = [
        one.id for one in load(tmp_path, *(case(text, "x") for text in others + more))
    ]
    assert after[:3] == before
