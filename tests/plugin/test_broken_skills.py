"""One broken skill is one error: the others are tested, and the run can't pass."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_upskill.models.providers import HOSTED
from pytest_upskill.results.run_file import read_run
from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.runs import ending, run_skills
from support.usage import usage_error

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
    (folder / "skill_results.json").write_text("[]")
    return "skill_results.json"


def break_skill(folder: Path) -> str:
    write_skill(folder)
    (folder / "SKILL.md").write_bytes(b"\xff\xfe\xff")
    return "SKILL.md: not UTF-8"


@pytest.mark.parametrize("damage", [break_results, break_skill])
def test_any_broken_file_is_one_error(
    pytester: pytest.Pytester, model: str, damage: Callable[[Path], str], workers: str
) -> None:
    problem = damage(pytester.path / "skills/door")
    run = run_skills(pytester, model, "-n", workers)
    assert (run.outcomes["passed"], run.outcomes["errors"], run.status) == (1, 1, 1)
    assert f"skills/door/{problem}" in run.screen


def test_if_all_are_broken_the_run_fails_with_their_errors(
    pytester: pytest.Pytester, model: str
) -> None:
    (pytester.path / "skills/gate/skill_meta.json").write_text("[")
    run = run_skills(pytester, model, "--skill-min-lift", "0.1")
    assert (run.outcomes, run.status) == ({"errors": 2}, 1)


@pytest.mark.parametrize(
    ("args", "passed"), [(["-k", "gate"], 1), (["-m", "nothing"], 0)]
)
def test_it_can_not_be_deselected_by_name_or_mark(
    pytester: pytest.Pytester, model: str, args: Sequence[str], passed: int
) -> None:
    run = run_skills(pytester, model, *args)
    assert run.status == pytest.ExitCode.TESTS_FAILED
    run.result.assert_outcomes(passed=passed, errors=1, deselected=1 - passed)


def test_it_can_be_deselected_by_its_id(pytester: pytest.Pytester, model: str) -> None:
    run = run_skills(pytester, model, "--deselect", DOOR)
    assert (run.outcomes, run.status) == ({"passed": 1, "deselected": 1}, 0)


def test_a_node_id_in_a_broken_file_shows_what_is_wrong_with_it(
    pytester: pytest.Pytester, model: str
) -> None:
    result = pytester.runpytest_inprocess(f"{DOOR}::open-gate[{model}]")
    result.assert_outcomes(errors=1)
    assert MESSAGE in result.stdout.str()
    assert "no case" not in result.stdout.str()


def test_only_collecting_shows_it_too(pytester: pytest.Pytester, model: str) -> None:
    cases = [{"input": "q", "expected": {"contians": "x"}}]
    write_skill(pytester.path / "skills/gate", cases)
    run = run_skills(pytester, model, "--collect-only", "-q")
    assert run.status == pytest.ExitCode.TESTS_FAILED
    lines = run.screen.splitlines()
    assert DOOR in lines
    assert any(line.startswith(f"upskill: {MESSAGE}") for line in lines)
    gate = "upskill: skills/gate/skill_meta.json:1: "
    assert any(
        line.startswith(gate) and "contians: unknown check" in line for line in lines
    )


def test_no_gate_passes(pytester: pytest.Pytester, model: str) -> None:
    run = run_skills(pytester, model, "--skill-min-lift", "0.1")
    assert run.gate["passed"] is False
    assert run.gate["reasons"][0].startswith(f"not tested: {MESSAGE}")
    assert list(run.report["broken"]) == [DOOR]
    assert read_run(pytester.path / "report.json").problems == [
        "1 error",
        *run.gate["reasons"],
    ]


def test_the_last_failed_run_again_once_it_is_repaired(
    pytester: pytest.Pytester, model: str
) -> None:
    assert run_skills(pytester, model).outcomes == {"passed": 1, "errors": 1}
    assert run_skills(pytester, model, "--lf").outcomes["errors"] == 1
    write_skill(pytester.path / "skills/door")
    assert run_skills(pytester, model, "--lf").outcomes["passed"] == 1


def test_a_warning_that_is_an_error_is_one_of_its_skill_alone(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [case("How?", "gate up", id="open", tags=["slow"], skip="later")]
    write_skill(
        pytester.path / "skills/gate", [*cases, case("So?", "gate up", xfail="why")]
    )
    write_skill(pytester.path / "skills/door", frontmatter="colour: red\n")
    run = run_skills(pytester, model, "-W", "error")
    assert (run.outcomes, run.status) == ({"skipped": 1, "errors": 1, "xpassed": 1}, 1)
    assert "skills/door/SKILL.md:4: 'colour' is not in the " in run.screen
    assert "nodes.py" not in run.screen


def test_a_broken_conftest_of_the_project_is_one_error_and_costs_nothing(
    pytester: pytest.Pytester, workers: str
) -> None:
    for name in ("gate", "door"):
        write_skill(pytester.path / "skills" / name, body=f"The command of the {name}.")
    (pytester.path / "skills/conftest.py").write_text("raise RuntimeError('no')")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        result = pytester.runpytest_inprocess(
            *args, "--skill-allow-code", "-n", workers
        )
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(
        ["ERROR skills/door/skill_meta.json - RuntimeError: no"]
    )
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
    run = run_skills(pytester, model)
    assert (run.outcomes, run.status) == ({"passed": 1}, 0)
    assert "upskill: 3 found, 2 without cases: door, lift" in run.screen


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
    pytester: pytest.Pytester,
    args: Sequence[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    shown = usage_error(pytester, *args, "--model", "haiku")
    assert message in shown
    assert 'Write {"cases": [{"input": ' in shown
    assert "pytest-upskill cases skills/door --model haiku\n" in shown
    assert "--skill-tests" not in shown
    (pytester.path / "evals").mkdir()  # of the whole repository
    (pytester.path / "evals/evals.json").write_text("{}")
    shown = usage_error(pytester, *args, "--model", "haiku")
    assert "a file elsewhere: --skill-tests evals/evals.json" in shown


@pytest.mark.usefixtures("_no_cases")
@pytest.mark.parametrize(
    ("key", "args", "command"),
    [
        ("", [], "init skills/door"),
        ("", ["--model", "haiku"], "init skills/door"),
        ("", ["--model", "ollama:m"], "cases skills/door --model ollama:m"),
        (
            "",
            ["--model", "m", "--skill-base-url", "http://127.0.0.1:9/v1"],
            "cases skills/door --model m --base-url http://127.0.0.1:9/v1",
        ),
        ("ANTHROPIC_API_KEY", ["--model", "local"], "cases skills/door"),
        ("OPENAI_API_KEY", [], f"cases skills/door --model {HOSTED['openai'].example}"),
    ],
)
def test_the_offered_command_needs_no_key_that_is_not_there(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    args: Sequence[str],
    command: str,
) -> None:
    if key:
        monkeypatch.setenv(key, "k")
    shown = usage_error(pytester, "--skill", "skills/door", *args)
    assert f": pytest-upskill {command}\n" in shown


@pytest.mark.usefixtures("_no_cases")
def test_a_run_of_skills_without_cases_ends_with_how_to_start(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    pytester.makeini("[pytest]\nskill_paths = skills\nskill_models = haiku")
    result = pytester.runpytest_inprocess()
    assert ending(result)[-1] == "next: pytest-upskill cases SKILL"


@pytest.mark.parametrize("text", ["{}", '{"cases": []}'])
def test_a_file_of_cases_without_any_is_a_usage_error(
    pytester: pytest.Pytester, text: str
) -> None:
    (write_skill(pytester.path / "skills/gate") / "skill_meta.json").write_text(text)
    message = usage_error(pytester, "--skill", "skills", "--model", "haiku")
    assert "skills/gate: this skill has no cases" in message


def test_the_skill_that_an_error_names_is_no_copy_for_an_agent(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    for folder in (".claude/skills/a", "skills/b"):
        (write_skill(pytester.path / folder) / "skill_meta.json").unlink()
    message = usage_error(pytester, "--skill", ".", "--model", "haiku")
    assert "pytest-upskill cases skills/b --model haiku\n" in message


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
