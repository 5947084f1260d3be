"""evals/evals.json: read as cases, and found without an option."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import CasesError
from pytest_upskill.skills.case import Case, load_cases


def write_evals(skill: Path, evals: Any, **more: Any) -> Path:
    file = skill / "evals/evals.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    data = {"skill_name": skill.name, "evals": evals, **more} if more != {"bare": True} else evals
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return file


def load(skill: Path, *evals: Any, **more: Any) -> list[Case]:
    return load_cases(write_evals(skill, evals, **more), skill).whole()


def rejected(skill: Path, *evals: Any, **more: Any) -> CasesError:
    with pytest.raises(CasesError) as caught:
        load(skill, *evals, **more)
    return caught.value


EVAL = {"id": 1, "prompt": "Open the gate.", "expected_output": "Says gate up.", "files": []}

AS_EXPECTED = "The answer is as expected: Says gate up."


def test_eval_is_a_case_for_the_judge(tmp_path: Path) -> None:
    assert load(tmp_path, EVAL) == [
        Case(
            id="1",
            input="Open the gate.",
            expected={"judge": [AS_EXPECTED]},
            place=("evals", 0),
            line=4,
            foreign=True,
        )
    ]


@pytest.mark.parametrize("key", ["assertions", "expectations"])
@pytest.mark.parametrize(
    "written",
    [
        ["Names the command", "Is short"],
        [{"text": "Names the command"}, {"id": "short", "text": "Is short", "type": "llm"}],
        [{"name": "named", "description": "Names the command"}, "Is short"],
    ],
)
def test_assertions_become_criteria_for_the_judge(tmp_path: Path, key: str, written: Any) -> None:
    for more in ({}, {"expected_output": "Says gate up."}):  # which is not judged as well
        (one,) = load(tmp_path, {"prompt": "Open the gate.", key: written, **more})
        assert one.expected == {"judge": ["Names the command", "Is short"]}
    (empty,) = load(tmp_path, {**EVAL, key: []})
    assert empty.expected == {"judge": [AS_EXPECTED]}


@pytest.mark.parametrize(
    ("keys", "made"),
    [
        ({"id": 0}, "0"),
        ({"id": "open-gate"}, "open-gate"),
        ({"id": 2, "name": "open-gate"}, "2"),
        ({"name": "Open the gate!"}, "open-the-gate"),
        ({"eval_name": "open"}, "open"),
    ],
)
def test_id_is_a_number_a_string_or_made_from_the_name(
    tmp_path: Path, keys: dict[str, Any], made: str
) -> None:
    one = {key: value for key, value in EVAL.items() if key != "id"}
    assert load(tmp_path, {**one, **keys})[0].id == made


def test_eval_without_id_and_name_gets_an_id_from_its_question(tmp_path: Path) -> None:
    one = {"prompt": "Open the gate.", "expected_output": "x"}
    assert load(tmp_path, one)[0].id.startswith("open-the-gate-")


def test_keys_for_other_programs_are_ignored(tmp_path: Path) -> None:
    one = {**EVAL, "name": "n", "notes": ["a"], "category": "x", "description": "d"}
    assert load(tmp_path, one, _comment=["a"], version=1, metadata={}, description="d")


def test_files_are_searched_in_the_skill_then_in_evals(tmp_path: Path) -> None:
    for name in ("evals/files/a.txt", "data/b.txt", "evals/data/b.txt", "evals/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"from {name}")
    names = ["evals/files/a.txt", "files/a.txt", "data/b.txt", "c.txt"]
    (one,) = load(tmp_path, {**EVAL, "files": names})
    read = ["evals/files/a.txt", "evals/files/a.txt", "data/b.txt", "evals/c.txt"]
    assert one.files == tuple(
        (name, f"from {path}") for name, path in zip(names, read, strict=True)
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"files": ["none.txt"]}, ".files[0]: 'none.txt' not found"),
        ({"files": ["/tmp"]}, ".files[0]: '/tmp' is outside the skill's folder"),
        ({"files": ["../../x.txt"]}, ".files[0]: '../../x.txt' is outside the skill's folder"),
        ({"files": "a.txt"}, ".files: must be a list"),
        ({"files": ["a\0b"]}, ".files[0]: invalid file name 'a\\x00b'"),
        ({"expected_output": ""}, ": nothing expected"),
        ({"expected_output": None}, ": nothing expected"),
        ({"expected_output": 1}, ".expected_output: must be a string"),
        ({"assertions": [1]}, ".assertions[0]: must be a string or an object with"),
        ({"assertions": [{"cmd": "x"}]}, ".assertions[0]: needs a"),
        ({"assertions": {"a": 1}}, ".assertions: must be a list"),
        ({"prompt": ""}, ".prompt: must not be empty"),
    ],
)
def test_problem_in_an_eval_is_reported_with_its_path(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    error = rejected(tmp_path, {**EVAL, "id": "first"}, {**EVAL, **change})
    assert error.problem.startswith(f"evals[1]{problem}")
    assert "evals.json:" in error.where


def test_ids_that_occur_twice_are_numbered(tmp_path: Path) -> None:
    evals = [{**EVAL, "id": name} for name in ("1", 1, "1-2", 1)]
    loaded = load_cases(write_evals(tmp_path, evals), tmp_path)
    assert [case.id for case in loaded.cases] == ["1", "1-3", "1-2", "1-4"]
    assert loaded.warnings == ((10, "ids that occur twice are numbered"),)


def test_file_without_evals_is_rejected(tmp_path: Path) -> None:
    assert rejected(tmp_path).problem == "no cases"


def test_trigger_set_is_rejected_by_name(tmp_path: Path) -> None:
    queries = [{"query": "open the gate", "should_trigger": True}]
    for bare in (True, False):
        write_evals(tmp_path, queries, **({"bare": True} if bare else {}))
        with pytest.raises(CasesError, match="a trigger set"):
            load_cases(tmp_path / "evals/evals.json", tmp_path).whole()
