"""Trigger sets in all the forms that people have."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.queries import QUERY
from pytest_upskill.features.queries.suite import list_files
from pytest_upskill.features.queries.suite import load as load_triggers
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.loaded_cases import BrokenCase, LoadedCases, all_cases

Loaded = list[LoadedCases[Case]]
YES = {"query": "Fill in this form", "should_trigger": True}
NO = {"query": "What is 2 + 2?", "should_trigger": False}
BOTH = [("trigger-fill-in-this-form", True), ("trigger-what-is-2-2", False)]


def write(folder: Path, data: Any, name: str = "evals/triggers.json") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return file


def load(folder: Path, data: Any, name: str = "evals/triggers.json") -> Loaded:
    write(folder, data, name)
    return load_triggers(folder)


def ids(loaded: Loaded) -> list[tuple[str, bool]]:
    return [(case.id, case.should_open) for case in all_cases(loaded)]


def messages(loaded: Loaded, folder: Path) -> list[str]:
    return [case.message.replace(f"{folder}/", "") for case in broken(loaded)]


def broken(loaded: Loaded) -> list[BrokenCase]:
    return [case for of_file in loaded for case in of_file.broken]


def warnings(loaded: Loaded) -> list[tuple[str, int, str]]:
    return [
        (of_file.file.name, *told) for of_file in loaded for told in of_file.warnings
    ]


FORMS = {
    "skill-creator": [YES, NO],
    **{
        f"an object with {key}": {"skill_name": "x", "description": "d", key: [YES, NO]}
        for key in (
            "triggers",
            "queries",
            "evals",
            "tests",
            "trigger_evals",
            "cases",
            "test_cases",
        )
    },
    "two lists": {
        "should_trigger": [YES["query"]],
        "should_not_trigger": [NO["query"]],
        "note": "hard ones",
    },
    "two lists of objects": {
        "should_trigger": [{"prompt": YES["query"]}],
        "should_not_trigger": [{"prompt": NO["query"], "why": "maths"}],
    },
    "two lists inside": {
        "trigger_tests": {
            "should_trigger": [YES["query"]],
            "should_not_trigger": [NO["query"]],
        }
    },
    "activation": {
        "should_activate": [YES["query"]],
        "should_not_activate": [NO["query"]],
    },
    "other names": [
        {"prompt": YES["query"], "should_fire": True},
        {"input": NO["query"], "should_activate": False, "expected": "an answer"},
    ],
    "more keys": [
        {
            **YES,
            "category": "core",
            "reason": "r",
            "note": "n",
            "rationale": "r",
            "split": "train",
        },
        {**NO, "expected": "no", "attachments": [], "preferred_skill": "calculator"},
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_alike(tmp_path: Path, form: str) -> None:
    loaded = load(tmp_path, FORMS[form])
    assert ids(loaded) == BOTH
    assert not broken(loaded)
    assert not warnings(loaded)
    assert {case.expected["skill_activated"] for case in all_cases(loaded)} == {
        True,
        False,
    }
    assert all(case.kind == QUERY for case in all_cases(loaded))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("skill_meta.json", {"cases": [], "triggers": [YES, NO]}),
        (
            "skill_meta.json",
            {
                "triggers": {
                    "should_trigger": [YES["query"]],
                    "should_not_trigger": [NO["query"]],
                }
            },
        ),
        (
            "skill_meta.json",
            {"cases": [YES, {"input": "Hi?", "expected": {"contains": "x"}}, NO]},
        ),
        ("skill_meta.json", [YES, NO]),
        ("evals/evals.json", [YES, {"prompt": "Hi?", "expected_output": "x"}, NO]),
        ("evals/evals.json", {"skill_name": "x", "evals": [YES, NO]}),
        (
            "evals/evals.json",
            {"evals": [{"prompt": "Hi?"}], "trigger_evals": [YES, NO]},
        ),
    ],
)
def test_queries_may_stand_beside_the_cases(
    tmp_path: Path, name: str, data: Any
) -> None:
    assert ids(load(tmp_path, data, name)) == BOTH


def test_an_eval_that_expects_something_is_no_trigger(tmp_path: Path) -> None:
    data = [{**YES, "expectations": ["It works"]}, NO]
    assert ids(load(tmp_path, data, "evals/evals.json")) == BOTH[1:]


def test_files_are_found_by_name_or_content_and_sorted(tmp_path: Path) -> None:
    for name in (
        "z-trigger-eval.json",
        "Trigger_set.json",
        "triggers.json",
        "evals.json",
        "a.json",
    ):
        write(tmp_path, [{**YES, "query": f"Open {name}"}], f"evals/{name}")
    found = list_files(tmp_path)
    assert [file.name for file in found] == [
        "triggers.json",
        "Trigger_set.json",
        "a.json",
        "z-trigger-eval.json",
    ]
    queries = [case.input for case in all_cases(load_triggers(tmp_path))]
    # evals.json comes first
    assert queries[1:] == [f"Open {file.name}" for file in found]


def test_every_query_has_its_line(tmp_path: Path) -> None:
    write(tmp_path, {"cases": [], "triggers": [YES, NO]}, "skill_meta.json")
    write(tmp_path, {"should_trigger": ["Sign here", "And here"]})
    loaded = load_triggers(tmp_path)
    lines = [
        (of_file.file.name, case.line) for of_file in loaded for case in of_file.cases
    ]
    assert lines == [
        ("skill_meta.json", 4),
        ("skill_meta.json", 8),
        ("triggers.json", 3),
        ("triggers.json", 4),
    ]


def test_ids_are_words_with_a_hash_where_these_are_not_enough(tmp_path: Path) -> None:
    start = "please fill in the form that my landlord sent"
    queries = [f"{start} me", f"{start} today", "填写表格", "Sign it"]
    loaded = load(tmp_path, [{"query": one, "should_trigger": True} for one in queries])
    first, second, chinese, last = [case.id for case in all_cases(loaded)]
    assert (
        first[:-7] == second[:-7] == "trigger-please-fill-in-the-form-that-my-landlord"
    )
    assert first != second
    assert len(chinese) == len("trigger-") + 6
    assert last == "trigger-sign-it"
    write(tmp_path, [{"query": one, "should_trigger": True} for one in queries[1:]])
    assert [case.id for case in all_cases(load_triggers(tmp_path))][1:] == [
        chinese,
        last,
    ]


def test_own_ids_are_kept(tmp_path: Path) -> None:
    own = [
        {**YES, "id": 7},
        {**NO, "id": "trigger-sum"},
        {**NO, "query": "b", "id": "a b!"},
    ]
    assert [name for name, _ in ids(load(tmp_path, own))] == [
        "trigger-7",
        "trigger-sum",
        "trigger-a-b",
    ]


def test_ids_never_occur_twice(tmp_path: Path) -> None:
    own = [
        {**YES, "id": "a"},
        {**NO, "id": "a"},
        {"query": "A", "should_trigger": True},
    ]
    loaded = load(tmp_path, own)
    names = [case.id for case in all_cases(loaded)]
    assert names[:2] == ["trigger-a", "trigger-a-2"]
    assert len(set(names)) == 3
    taken = load_triggers(tmp_path, taken=["trigger-a"])
    assert "trigger-a" not in [case.id for case in all_cases(taken)]


def test_a_repeat_counts_once(tmp_path: Path) -> None:
    write(tmp_path, [YES, {**YES, "query": " fill in  THIS\u200b form"}, NO])
    write(tmp_path, [YES], "evals/more-triggers.json")
    loaded = load_triggers(tmp_path)
    assert ids(loaded) == BOTH
    assert not broken(loaded)
    first = f"the same query as in {tmp_path}/evals/triggers.json:2: it counts once"
    assert warnings(loaded) == [
        ("triggers.json", 6, first),
        ("more-triggers.json", 2, first),
    ]


def test_opposite_wishes_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, [YES, NO, {**YES, "should_trigger": False}])
    write(tmp_path, {"should_trigger": ["what is 2 +  2?"]}, "evals/more-triggers.json")
    loaded = load_triggers(tmp_path)
    assert ids(loaded) == BOTH
    assert messages(loaded, tmp_path) == [
        (
            "evals/triggers.json:10: [2]: the same query should trigger in "
            "evals/triggers.json:2; keep one of them"
        ),
        (
            "evals/more-triggers.json:3: should_trigger[0]: the same query should not"
            " trigger in evals/triggers.json:6; keep one of them"
        ),
    ]
    assert [case.name for case in broken(loaded)] == ["trigger-3", "trigger-1"]


BROKEN = {
    "no object": ("text", "2: [0]: must be an object with"),
    "no query": ({"should_trigger": True}, "2: [0].query: missing"),
    "a typo": (
        {"qurey": "a", "should_trigger": True},
        '[0].query: missing (did you mean "qurey"?)',
    ),
    "an empty query": (
        {"query": " ", "should_trigger": True},
        "3: [0].query: must not be empty",
    ),
    "a query of messages": (
        {"query": [], "should_trigger": True},
        "[0].query: must be a string",
    ),
    "no wish": ({"query": "a"}, "2: [0].should_trigger: missing"),
    "a typo of the wish": (
        {"query": "a", "should_triger": True},
        '[0].should_trigger: missing (did you mean "should_triger"?)',
    ),
    "a wish in words": (
        {"query": "a", "should_trigger": "yes, please"},
        "4: [0].should_trigger: must be true or false",
    ),
    "no wish at all": ({"query": "a", "should_trigger": None}, "must be true or false"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_query_leaves_the_others(tmp_path: Path, kind: str) -> None:
    written, message = BROKEN[kind]
    loaded = load(tmp_path, [written, YES, NO])
    assert ids(loaded) == BOTH
    (told,) = messages(loaded, tmp_path)
    assert told.startswith("evals/triggers.json:")
    assert message in told
    assert [case.name for case in broken(loaded)] == ["trigger-1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "evals/triggers.json: empty file"),
        ("[{]", "evals/triggers.json:1:3: invalid JSON"),
        (
            '[\n{"query": "a", "query": "b"}]',
            "evals/triggers.json: invalid JSON: duplicate key",
        ),
        ("[]", "evals/triggers.json: no queries"),
        ('"text"', "evals/triggers.json: no list of queries"),
        ('{"results": []}', "evals/triggers.json: no list of queries"),
        ("[" * 100_000, "evals/triggers.json"),
        ("\ud800", "evals/triggers.json: not UTF-8"),
    ],
)
def test_a_file_that_is_no_set_is_one_message(
    tmp_path: Path, text: str, message: str
) -> None:
    file = write(tmp_path, [])
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    loaded = load_triggers(tmp_path)
    assert all_cases(loaded) == ()
    assert all(case.kind == QUERY for case in broken(loaded))
    (told,) = messages(loaded, tmp_path)
    assert told.startswith(message)
    assert [case.name for case in broken(loaded)] == ["trigger-triggers"]


def test_a_file_that_only_has_such_a_name_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [YES, NO])
    write(
        tmp_path,
        {"results": [{"query": "a", "pass": True}]},
        "evals/trigger-results.json",
    )
    loaded = load_triggers(tmp_path)
    assert ids(loaded) == BOTH
    assert not broken(loaded)
    assert warnings(loaded) == [
        ("trigger-results.json", 1, "no list of queries, so it is left out")
    ]


def test_a_broken_file_of_cases_is_told_by_its_cases(tmp_path: Path) -> None:
    write(tmp_path, "{", "skill_meta.json")
    write(tmp_path, [YES, NO])
    loaded = load_triggers(tmp_path)
    assert ids(loaded) == BOTH
    assert not broken(loaded)


def test_a_key_that_looks_like_a_typo_is_told(tmp_path: Path) -> None:
    loaded = load(tmp_path, [{**YES, "should_triger": False, "whatever": 1}, NO])
    assert ids(loaded) == BOTH
    assert warnings(loaded) == [
        ("triggers.json", 5, "unknown keys are ignored: should_triger")
    ]


def test_another_file_of_cases_brings_its_own_queries(tmp_path: Path) -> None:
    write(tmp_path / "skill", [YES, NO])
    other = write(tmp_path, {"triggers": [{**YES, "query": "Other"}]}, "other.json")
    loaded = load_triggers(tmp_path / "skill", other)
    assert [case.input for case in all_cases(loaded)] == ["Other"]
    plain = write(tmp_path, {"cases": []}, "plain.json")
    assert ids(load_triggers(tmp_path / "skill", plain)) == BOTH


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "query",
                    "prompt",
                    "should_trigger",
                    "should_not_trigger",
                    "id",
                    "triggers",
                    "evals",
                    "cases",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(values)
def test_any_json_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    write(folder, data)
    write(folder, data, "skill_meta.json")
    loaded = load_triggers(folder)
    names = [case.id for case in all_cases(loaded)] + [
        case.name for case in broken(loaded)
    ]
    assert len(set(names)) == len(names)
    assert all(name.startswith("trigger-") for name in names)
    assert all(case.input.strip() and case.line >= 1 for case in all_cases(loaded))
    assert ids(load_triggers(folder)) == ids(loaded)


def test_a_file_that_can_t_be_read_is_told_and_never_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "evals/triggers.json"
    file.parent.mkdir()
    os.mkfifo(file)
    (case,) = broken(load_triggers(tmp_path))
    assert "not a regular file" in str(case.error)
