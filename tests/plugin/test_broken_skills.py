"""One broken skill is one error: the others are tested, and the run can't pass."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.results.from_json import read_run
from support.kit import case, gates, run_skills, write_script, write_skill
from support.loopback import LoopbackServer, Reply

DOOR = "skills/door/skill_meta.json"
MESSAGE = f"{DOOR}:1:2: invalid JSON"


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    """A good skill, a broken one, and a model that knows what they say."""
    write_skill(pytester.path / "skills/gate")
    (write_skill(pytester.path / "skills/door") / "skill_meta.json").write_text("[")
    return write_script(pytester.path / "answers.json")


def break_results(folder: Path) -> str:
    write_skill(folder)
    (folder / "skill_results.json").write_text("{}")
    return "skill_results.json"


def break_skill(folder: Path) -> str:
    write_skill(folder)
    (folder / "SKILL.md").write_bytes(b"\xff\xfe\xff")
    return "SKILL.md: not UTF-8"


@pytest.mark.parametrize("damage", [break_results, break_skill])
def test_any_broken_file_is_one_error(
    pytester: pytest.Pytester, model: str, damage: object, workers: str
) -> None:
    assert callable(damage)
    problem = damage(pytester.path / "skills/door")
    result = run_skills(pytester, model, "-n", workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, errors=1)
    assert f"skills/door/{problem}" in result.stdout.str()


def test_if_all_are_broken_the_run_fails_with_their_errors(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    (pytester.path / "skills/gate/skill_meta.json").write_text("[")
    result = run_skills(pytester, model, "-n", workers, "--skill-min-lift", "0.1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2)


@pytest.mark.parametrize(
    ("args", "passed"), [(["-k", "gate"], 1), (["-m", "nothing"], 0), (["-k", "nothing"], 0)]
)
def test_it_can_not_be_deselected_by_name_or_mark(
    pytester: pytest.Pytester, model: str, args: Sequence[str], passed: int
) -> None:
    result = run_skills(pytester, model, *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=passed, errors=1, deselected=1 - passed)


def test_it_can_be_deselected_by_its_id(pytester: pytest.Pytester, model: str) -> None:
    result = run_skills(pytester, model, "--deselect", DOOR)
    assert result.ret == 0
    result.assert_outcomes(passed=1, deselected=1)


def test_a_node_id_in_a_broken_file_shows_what_is_wrong_with_it(
    pytester: pytest.Pytester, model: str
) -> None:
    result = pytester.runpytest_inprocess(f"{DOOR}::open-gate[{model}]")
    result.assert_outcomes(errors=1)
    assert MESSAGE in result.stdout.str()
    assert "no case" not in result.stdout.str()


def test_only_collecting_shows_it_too(pytester: pytest.Pytester, model: str) -> None:
    result = run_skills(pytester, model, "--collect-only", "-q")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"skills/gate/skill_meta.json::open-gate[[]{model}]", DOOR, f"upskill: {MESSAGE}*"]
    )
    write_skill(pytester.path / "skills/door", [{"input": "q", "expected": {"contians": "x"}}])
    result = run_skills(pytester, model, "--collect-only", "-q")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"upskill: {DOOR}:1: *.contians: unknown check *"])


def test_no_gate_passes(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill-min-lift", "0.1", "--skill-json", "r.json"]
    result = run_skills(pytester, model, *args)
    assert gates(result)[0].startswith(f"not tested: {MESSAGE}")
    report = json.loads((pytester.path / "r.json").read_text())
    assert report["gate"]["passed"] is False
    assert list(report["broken"]) == [DOOR]
    assert read_run(pytester.path / "r.json").problems == report["gate"]["reasons"]


def test_the_last_failed_run_again_once_it_is_repaired(
    pytester: pytest.Pytester, model: str
) -> None:
    run_skills(pytester, model).assert_outcomes(passed=1, errors=1)
    run_skills(pytester, model, "--lf").assert_outcomes(errors=1)
    write_skill(pytester.path / "skills/door")
    run_skills(pytester, model, "--lf").assert_outcomes(passed=1)


def test_a_warning_that_is_an_error_is_one_of_its_skill_alone(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [case("How?", "gate up", id="open", tags=["slow"], skip="later")]
    write_skill(pytester.path / "skills/gate", [*cases, case("So?", "gate up", xfail="why")])
    write_skill(pytester.path / "skills/door", frontmatter="colour: red\n")
    result = run_skills(pytester, model, "-W", "error")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(skipped=1, errors=1, xpassed=1)
    result.stdout.fnmatch_lines(["skills/door/SKILL.md:4: 'colour' is not in the *"])


def test_a_broken_conftest_of_the_project_is_told_once_and_costs_nothing(
    pytester: pytest.Pytester, workers: str
) -> None:
    for name in ("gate", "door"):
        write_skill(pytester.path / "skills" / name, body=f"The command of the {name}.")
    (pytester.path / "skills/conftest.py").write_text("raise RuntimeError('no')")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess(*args, "-n", workers)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["ERROR skills/door/skill_meta.json - RuntimeError: no"])
    result.stdout.no_fnmatch_line("ERROR skills/gate/skill_meta.json - *")
    assert server.asked == []


# Skills without cases.


@pytest.fixture
def _no_cases(pytester: pytest.Pytester) -> None:
    for name in ("door", "lift"):
        (write_skill(pytester.path / f"skills/{name}") / "skill_meta.json").unlink()


@pytest.mark.usefixtures("_no_cases")
def test_a_skill_without_cases_is_told_and_the_others_are_tested(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "answers.json")
    (pytester.path / "skills/lift/skill_meta.json").write_text('{"cases": []}')
    result = run_skills(pytester, model)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"upskill: gate on {model}",
            "upskill: 3 found, 2 without cases: door, lift",
            "upskill: to write some: pytest-upskill cases SKILL",
        ]
    )


@pytest.mark.usefixtures("_no_cases")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--skill", "skills"], "skills: none of its 2 skills has cases"),
        (["--skill", "skills/door"], "skills/door: this skill has no cases"),
        (["skills/door/SKILL.md"], "skills/door: this skill has no cases"),
    ],
)
def test_if_no_skill_has_cases_that_is_a_usage_error(
    pytester: pytest.Pytester, args: Sequence[str], message: str
) -> None:
    result = pytester.runpytest_inprocess(*args, "--model", "haiku")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "pytest-upskill cases skills/door" in result.stderr.str()
    assert "--skill-tests" not in result.stderr.str()
    (pytester.path / "evals").mkdir()  # of the whole repository
    (pytester.path / "evals/evals.json").write_text("{}")
    result = pytester.runpytest_inprocess(*args, "--model", "haiku")
    assert "a file elsewhere: --skill-tests evals/evals.json" in result.stderr.str()


def test_the_skill_that_an_error_names_is_no_copy_for_an_agent(pytester: pytest.Pytester) -> None:
    for folder in (".claude/skills/a", "skills/b"):
        (write_skill(pytester.path / folder) / "skill_meta.json").unlink()
    result = pytester.runpytest_inprocess("--skill", ".", "--model", "haiku")
    assert "Or run: pytest-upskill cases skills/b" in result.stderr.str()


@pytest.mark.usefixtures("_no_cases")
def test_skills_of_the_ini_file_without_cases_don_t_stop_other_tests(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_other(): pass")
    pytester.makeini("[pytest]\nskill_paths = skills\nskill_models = haiku")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["upskill: 2 found, 2 without cases: door, lift"])
