"""evals/evals.json as people have it: read as cases, found by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import CasesError
from pytest_upskill.skills.cases import Case, load_cases
from support.kit import case, write_script, write_skill


def write_evals(skill: Path, evals: Any, **more: Any) -> Path:
    file = skill / "evals/evals.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    data = {"skill_name": skill.name, "evals": evals, **more} if more != {"bare": True} else evals
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return file


def load(skill: Path, *evals: Any, **more: Any) -> list[Case]:
    return load_cases(write_evals(skill, evals, **more), skill)


def refused(skill: Path, *evals: Any, **more: Any) -> CasesError:
    with pytest.raises(CasesError) as caught:
        load(skill, *evals, **more)
    return caught.value


EVAL = {"id": 1, "prompt": "Open the gate.", "expected_output": "Says gate up.", "files": []}
AS_EXPECTED = "The answer is as expected: Says gate up."


def test_an_eval_is_a_case_for_the_judge(tmp_path: Path) -> None:
    assert load(tmp_path, EVAL) == [
        Case(
            id="1",
            input="Open the gate.",
            expected={"judge": [AS_EXPECTED]},
            place=("evals", 0),
            line=4,
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
def test_assertions_are_what_the_judge_is_asked_about(
    tmp_path: Path, key: str, written: Any
) -> None:
    texts = ["Names the command", "Is short"]
    (both,) = load(tmp_path, {**EVAL, key: written})
    assert both.expected == {"judge": [*texts, AS_EXPECTED]}
    (alone,) = load(tmp_path, {"prompt": "Open the gate.", key: written})
    assert alone.expected == {"judge": texts}
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
def test_ids_are_numbers_or_texts_or_made_of_the_name(
    tmp_path: Path, keys: dict[str, Any], made: str
) -> None:
    one = {key: value for key, value in EVAL.items() if key != "id"}
    assert load(tmp_path, {**one, **keys})[0].id == made


def test_an_eval_without_id_and_name_gets_the_id_of_its_question(tmp_path: Path) -> None:
    one = {"prompt": "Open the gate.", "expected_output": "x"}
    assert load(tmp_path, one)[0].id.startswith("open-the-gate-")


def test_what_other_programs_and_people_write_beside_is_left_alone(tmp_path: Path) -> None:
    one = {**EVAL, "name": "n", "notes": ["a"], "category": "x", "description": "d"}
    assert load(tmp_path, one, _comment=["a"], version=1, metadata={}, description="d")


def test_files_are_looked_for_in_the_skill_and_then_in_evals(tmp_path: Path) -> None:
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
        ({"files": ["none.txt"]}, ".files[0]: 'none.txt' is not there"),
        ({"files": ["/tmp"]}, ".files[0]: '/tmp' leads out of the skill's folder"),
        ({"files": ["../../x.txt"]}, ".files[0]: '../../x.txt' leads out of the skill's folder"),
        ({"files": "a.txt"}, ".files: must be a list"),
        ({"files": ["a\0b"]}, ".files[0]: 'a\\x00b' can't be the name of a file"),
        ({"expected_output": ""}, ": nothing is said of the answer"),
        ({"expected_output": None}, ": nothing is said of the answer"),
        ({"expected_output": 1}, ".expected_output: must be a string"),
        ({"assertions": [1]}, ".assertions[0]: this is neither a text nor an object with a 'text'"),
        ({"assertions": [{"cmd": "x"}]}, ".assertions[0]: there is neither a 'text' nor a 'desc"),
        ({"assertions": "a"}, ".assertions: must be a list"),
        ({"prompt": ""}, ".prompt: must not be empty"),
        ({"id": "a b"}, ".id: 'a b' can't be part of a test's name"),
        ({"asertions": []}, '.asertions: unknown key (did you mean "assertions"?)'),
        ({"input": "a"}, ".input: unknown key"),
    ],
)
def test_a_problem_of_an_eval_is_told_with_its_place(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    error = refused(tmp_path, {**EVAL, "id": "first"}, {**EVAL, **change})
    assert error.problem.startswith(f"evals[1]{problem}")
    assert "evals.json:" in error.where


def test_twin_ids_are_refused_at_their_place(tmp_path: Path) -> None:
    assert refused(tmp_path, EVAL, EVAL).problem.startswith(
        "evals[1].id: '1' is the id of evals[0]"
    )


def test_an_unknown_key_of_the_file_is_refused(tmp_path: Path) -> None:
    problem = refused(tmp_path, EVAL, skil_name="x").problem
    assert problem == 'skil_name: unknown key (did you mean "skill_name"?)'


def test_no_evals_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path).problem == "there are no cases"


def test_a_trigger_set_is_refused_as_what_it_is(tmp_path: Path) -> None:
    queries = [{"query": "open the gate", "should_trigger": True}]
    for bare in (True, False):
        write_evals(tmp_path, queries, **({"bare": True} if bare else {}))
        with pytest.raises(CasesError, match="this is a trigger set"):
            load_cases(tmp_path / "evals/evals.json", tmp_path)


# Found by itself. What the judge says is not looked at here: the cases are only collected.


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    # The same in the form of skill_meta.json, with a check that needs no judge.
    (folder / "evals/evals.json").write_text(json.dumps([case("Open?", "gate up", id="open")]))
    return folder


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize("paths", [["--skill", "skills"], ["--skill", "skills/gate", "skills"]])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_evals_are_found_where_there_is_no_skill_meta(
    pytester: pytest.Pytester, paths: list[str], workers: list[str]
) -> None:
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess(*paths, "--model", model, "-rA", *workers)
    result.assert_outcomes(passed=1)
    node = f"skills/gate/evals/evals.json::open[{model}]"
    assert f"PASSED {node}" in result.outlines
    named = pytester.runpytest_inprocess(*paths[:2], node, "--model", model, *workers)
    named.assert_outcomes(passed=1)


def test_skill_meta_goes_before_evals(pytester: pytest.Pytester, skill: Path) -> None:
    write_skill(skill, [case("Open?", "gate up", id="of-meta")])
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "-rA")
    result.assert_outcomes(passed=1)
    assert f"PASSED skills/gate/skill_meta.json::of-meta[{model}]" in result.outlines


def test_skill_tests_takes_evals_too(pytester: pytest.Pytester, skill: Path) -> None:
    write_skill(skill)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "-rA"]
    result = pytester.runpytest_inprocess(*args, "--skill-tests", "skills/gate/evals/evals.json")
    result.assert_outcomes(passed=1)
    assert f"PASSED skills/gate/evals/evals.json::open[{model}]" in result.outlines


def test_no_code_of_the_folder_of_evals_is_run(pytester: pytest.Pytester, skill: Path) -> None:
    (skill / "evals/conftest.py").write_text("raise SystemExit('run')")
    (skill / "evals/test_own.py").write_text("raise SystemExit('run')")
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(passed=1)


def test_evals_of_a_skill_elsewhere_are_found(
    pytester: pytest.Pytester, skill: Path, tmp_path: Path
) -> None:
    moved = skill.rename(tmp_path / "gate")
    (moved / "evals/conftest.py").write_text("raise SystemExit('run')")
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", str(moved), "--model", model)
    result.assert_outcomes(passed=1)


def test_evals_are_not_part_of_what_a_skill_teaches(pytester: pytest.Pytester, skill: Path) -> None:
    digests = []
    model = write_script(pytester.path / "a.json")
    for text in ("Open?", "Open it?"):
        (skill / "evals/evals.json").write_text(json.dumps([case(text, "gate up")]))
        args = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
        pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
        digests.append(json.loads((pytester.path / "r.json").read_text())["skills"][0]["digest"])
    assert digests[0] == digests[1]
