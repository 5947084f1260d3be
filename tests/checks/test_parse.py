"""``expected`` becomes checks: groups, weights, and no input that breaks them."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks import (
    grade,
    load_checked_cases,
    parse_checks,
    rubric_of,
    time_budget,
    walk,
)
from pytest_upskill.checks.check import asked_checks
from pytest_upskill.checks.group import RESERVED
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.errors import CasesError
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.records import Grade
from support.checking import graded, passes, reason, refused
from support.folders import new_folder


def test_any_of_needs_one_group() -> None:
    expected = {"any_of": [{"contains": ["a", "b"]}, {"max_words": 1}]}
    assert graded(expected, "a b") == (
        Grade(
            "any_of",
            passed=True,
            reason='choice 1 of 2 passed: "a" is in the answer; "b" is in the answer',
        ),
    )
    assert graded(expected, "a") == (
        Grade("any_of", passed=True, reason="choice 2 of 2 passed: 1 word (limit 1)"),
    )
    assert graded(expected, "x y") == (
        Grade(
            "any_of",
            passed=False,
            reason='none of 2 choices passed: (1) "a" is not in the answer; (2) 2 words'
            " (limit 1)",
        ),
    )


def test_not_passes_if_its_group_fails() -> None:
    expected = {"not": {"contains": ["a", "b"]}}
    assert passes("a", **expected)
    assert not passes("a b", **expected)
    assert reason("a", **expected) == 'as expected: "b" is not in the answer'
    message = 'not expected: "a" is in the answer; "b" is in the answer'
    assert reason("a b", **expected) == message


def test_groups_nest_and_a_list_means_all() -> None:
    inner = {
        "any_of": [{"not": [{"contains": "x"}, {"contains": "y"}]}, {"equals": "xy"}]
    }
    for expected in ([inner, {"min_words": 1}], {"all_of": [inner], "min_words": 1}):
        assert [one.passed for one in graded(expected, "x")] == [True, True]
        assert [one.passed for one in graded(expected, "xy")] == [True, True]
        assert [one.passed for one in graded(expected, "x y")] == [False, True]


def test_all_of_grades_each_check_with_its_weight() -> None:
    expected = {
        "contains": "a",
        "weight": 2,
        "all_of": [
            {"words": "b", "weight": 0.5},
            {
                "words": "c",
                "required": False,
                "all_of": [{"any_of": [{"contains": "d"}]}],
            },
        ],
    }
    shown = [(g.check, g.weight, g.required) for g in graded(expected, "x")]
    assert shown == [
        ("contains", 2, True),
        ("words", 0.5, True),
        ("words", 2, False),
        ("any_of", 2, False),
    ]


def test_optional_group_makes_its_checks_optional() -> None:
    expected = [
        {"contains": "a"},
        {"required": False, "all_of": [{"contains": "b", "required": True}]},
    ]
    assert [one.required for one in graded(expected, "x")] == [True, False]


def test_case_sensitivity_is_inherited() -> None:
    inner: dict[str, Any] = {"any_of": [{"contains": "A"}]}
    assert passes("a", **inner)
    assert not passes("a", **inner, case_sensitive=True)
    inner["any_of"][0]["case_sensitive"] = False
    assert passes("a", **inner, case_sensitive=True)


def test_walk_reaches_every_check() -> None:
    expected = [
        {
            "contains": "a",
            "any_of": [{"words": "b"}, {"not": {"regex": "c", "equals": "d"}}],
        },
        {"all_of": [{"json": True}]},
    ]
    found = [check.name for check in walk(parse_checks(expected, KINDS, ()))]
    assert found == ["contains", "words", "regex", "equals", "json"]


def test_rulings_reach_nested_checks() -> None:
    expected = {"judge": "is kind", "any_of": [{"not": {"judge": "is rude"}}]}
    checks = parse_checks(expected, KINDS, ())
    rulings = {"is kind": (True, "it is"), "is rude": (True, "it is too")}
    assert [one.passed for one in grade(checks, Answer("x"), rulings)] == [True, False]


def nested(depth: int) -> dict[str, Any]:
    return {"not": nested(depth - 1)} if depth else {"contains": "a"}


def test_nesting_is_limited() -> None:
    assert passes("a", **nested(8))
    assert refused(nested(10)).endswith("groups are nested more than 10 deep")
    assert "not.not.not" in refused(nested(10))


NO_CHECK = "no checks, so every answer would pass"


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"any_of": []}, f"any_of: {NO_CHECK}"),
        ({"any_of": {"contains": "a"}}, "any_of: must be a list"),
        ({"any_of": [{}]}, f"any_of[0]: {NO_CHECK}"),
        ({"any_of": ["a"]}, "any_of[0]: must be an object"),
        (
            {"any_of": [{"contains": "a"}, {"contians": "b"}]},
            "any_of[1].contians: unknown check",
        ),
        ({"not": {}}, f"not: {NO_CHECK}"),
        ({"not": "a"}, "not: must be an object or a list"),
        ({"al_of": []}, 'al_of: unknown check (did you mean "all_of"?)'),
        ([], f"the file: {NO_CHECK}"),
        ([[{"contains": "a"}]], "[0]: must be an object"),
        ({"weight": 2}, NO_CHECK),
        (
            {"contains": "a", "required": False},
            "no check is required, so every answer would pass",
        ),
        ({"contains": "a", "weight": 0}, "weight: must be above 0"),
        ({"contains": "a", "weight": float("inf")}, "weight: must be a finite number"),
        ({"contains": "a", "weight": "2"}, "weight: must be a number"),
        ({"contains": "a", "required": 0}, "required: must be true or false"),
        (
            {"contains": "a", "case_sensitve": True},
            'unknown check (did you mean "case_sensitive"?)',
        ),
        (
            {"any_of": [{"contains": "a", "weight": 2}]},
            'any_of[0].weight: has no effect inside "any_of"',
        ),
        (
            {"not": {"all_of": [{"contains": "a", "required": False}]}},
            'not.all_of[0].required: has no effect inside "not"',
        ),
    ],
)
def test_invalid_group_is_reported_with_its_path(expected: Any, message: str) -> None:
    assert message in refused(expected)


def test_all_problems_of_a_case_are_reported() -> None:
    message = refused(
        {"contians": "a", "any_of": [{"words": 1}, {"max_words": 0}], "regex": "("}
    )
    assert message.count(": ") >= 4
    for path in ("contians", "any_of[0].words", "any_of[1].max_words", "regex"):
        assert f"{path}: " in message


# One argument of each kind, so that whatever is answered, no check raises.
EACH: dict[str, Any] = {
    "contains": "a",
    "contains_any": ["a", "b"],
    "not_contains": "z",
    "words": ["a", "b c"],
    "equals": "a",
    "starts_with": "a",
    "ends_with": "a",
    "regex": r"(\w) \1|^$",
    "not_regex": "z",
    "min_words": 1,
    "max_words": 10,
    "max_chars": 10,
    "json": True,
    "json_schema": {
        "type": ["object", "array"],
        "items": {"pattern": "a"},
        "uniqueItems": True,
    },
    "json_path": [{"path": "$.a[0][*]", "equals": [1]}, "$[-1]"],
    "yaml": True,
    "toml": True,
    "number": {"value": 1, "tolerance": 0.5},
    "csv_columns": ["a", "b"],
    "code": {
        "language": "python",
        "parses": True,
        "calls": "a",
        "imports": "a",
        "defines": "a",
    },
    "parses": "yaml",
    "defines": "a",
    "imports": "a",
    "calls": "a",
    "max_output_tokens": 5,
    "max_seconds": 5,
    "refused": False,
    "stop": "end",
    "files": {"a.md": {"contains": ["a"], "json": True}, "*.txt": "absent"},
    "unchanged": "b.md",
    "command": [
        "make",
        {"run": "make test", "contains": "ok", "hidden_files": {"a": "b"}},
    ],
    "files_made": {"regex": "a"},
    "tools_used": ["bash", {"tool": "read", "input_match": "a", "max": 1}],
    "tools_not_used": "web",
    "tool_order": ["read", "write"],
    "transcript": {"contains": "a"},
    "mcp_calls": {"contains": "a"},
    "called": ["gh pr", {"command": "gh", "args": "a *"}],
    "not_called": "gh",
    "commands_run": "make",
    "commands_not_run": "rm",
    "max_turns": 5,
    "max_tool_calls": 5,
    "skill_activated": True,
    "skill_opened": "a",
    "skill_not_opened": "b",
    "references_read": "references/a.md",
    "scripts_run": "scripts/a.py",
    "judge": "is kind",
}
RULINGS = {"is kind": (False, "it is not")}


def test_each_kind_is_tried_below() -> None:
    assert set(EACH) == set(KINDS) - {"verifier"}  # which needs a folder


CHECKS = parse_checks([EACH, {"any_of": [EACH, {"not": EACH}]}], KINDS, ())
FENCES = st.sampled_from(
    ["```", "```json\n", "```python\n", "```yaml\n", "~~~csv\n", "\n```\n"]
)
DATA = st.sampled_from(
    ['{"a": [[1]]}', "[1, 2]", "a = 1", "a: b", "- ", "&a *a", "<<: *a", "a,b\n"]
)
MARKS = st.sampled_from(
    ["import a", "a()", "1,234.5e9", "-", "\n", "\x00", "\ud800", "\u0301", "ß"]
)
TEXTS = st.lists(FENCES | DATA | MARKS | st.text(st.characters())).map("".join)


@given(
    text=TEXTS,
    tokens=st.none() | st.integers(0),
    stop=st.sampled_from(["end", "length", ""]),
)
def test_no_answer_makes_a_check_raise(
    text: str, tokens: int | None, stop: str
) -> None:
    grades = grade(CHECKS, Answer(text, Usage(output=tokens), stop), RULINGS)
    assert all(isinstance(one.passed, bool) and one.reason for one in grades)
    assert len(grades) > len(KINDS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        '{"a":' * 30_000,
        "```python\n" + "-" * 50_000 + "1\n```",
        "```yaml\na: &a [x]\n" + "b: *a\n" * 9_000 + "```",
        "1" * 150_000,
        "1" + ",111" * 10_000,
        "a" + ".a" * 90_000 + "=1",
        '"' * 100_001,
        "```\n" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_long_answer_makes_a_check_raise(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "SECONDS", 60.0)  # for slow machines
    assert all(one.reason for one in grade(CHECKS, Answer(text), RULINGS))


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(
        ["$.a", "python", "a(", "[", "#/x", 10**400, "checks.py:f", "bash"]
    )
)
INNER = (
    "path equals value tolerance language $ref $schema $id pattern properties items"
    " type allOf"
)
NAMES = st.sampled_from(
    [*KINDS, *RESERVED, "python", "patternProperties", *INNER.split()]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(expected=st.dictionaries(NAMES, VALUES, max_size=3) | VALUES)
def test_any_expected_gives_checks_or_a_cases_error(
    tmp_path_factory: pytest.TempPathFactory, expected: Any
) -> None:
    file: Path = new_folder(tmp_path_factory) / "cases.json"
    file.write_text(json.dumps([{"input": "q", "expected": expected}]))
    with suppress(CasesError):
        ((_, checks),) = load_checked_cases(file).require_all()
        rulings = dict.fromkeys(rubric_of(checks).texts, (True, "so it is ruled"))
        assert grade(checks, Answer("a"), rulings)


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        (
            {"contains": "Gate up", "not_contains": ["x", "gate"]},
            'not_contains: "gate" is in "Gate up"',
        ),
        ({"min_words": 10, "max_words": 5}, "max_words: less than min_words (10)"),
        (
            {"any_of": [{"contains": "a", "not_contains": "A"}]},
            'any_of[0].not_contains: "A" is in "a"',
        ),
    ],
)
def test_checks_that_contradict_each_other_are_refused(
    expected: Any, problem: str
) -> None:
    assert refused(expected).startswith(problem)
    assert refused(expected).endswith("so no answer would pass")


def test_checks_that_seem_to_contradict_each_other_are_fine() -> None:
    assert passes("Gate", contains="Gate", not_contains="gate", case_sensitive=True)
    assert passes("a b", min_words=2, max_words=2)
    assert passes("a", any_of=[{"contains": "a"}, {"not_contains": "a"}])


def test_checks_of_answers_with_the_skill() -> None:
    expected = {
        "contains": "a",
        "with_skill": [{"contains": "b"}, {"not": {"contains": "c"}}],
    }
    checks = parse_checks(expected, KINDS, ())
    assert [check.with_skill for check in checks] == [False, True, True]
    assert [g.with_skill for g in graded(expected, "a")] == [False, True, True]
    assert asked_checks(checks, "loop", has_skill=False) == checks[:1]
    opens = parse_checks(
        {"with_skill": {"skill_activated": True, "contains": "b"}}, KINDS, ()
    )
    assert [check.name for check in asked_checks(opens, "chat")] == ["contains"]
    assert asked_checks(opens, "loop") == opens


@pytest.mark.parametrize(
    "expected",
    [
        {"any_of": [{"with_skill": {"contains": "a"}}]},
        {"with_skill": {"contains": "a", "weight": 2}},
        {
            "contains": "a",
            "required": False,
            "all_of": [{"with_skill": {"contains": "b"}}],
        },
        {"with_skill": {}},
    ],
)
def test_groups_that_checks_with_the_skill_cannot_be_in(expected: Any) -> None:
    assert "with_skill" in refused(expected) or "no check" in refused(expected)
