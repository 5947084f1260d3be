"""--skill-matrix and --skill-ablate: studies after the last test of a run."""

import json
from pathlib import Path

import pytest

from pytest_upskill.results.effects import Effect
from pytest_upskill.results.run import RunResults
from support.kit import case, write_skill

BODY = """# Gate

## Opening

The command to open the gate is `gate up`.

## History

Gates are old. They were made of wood.
"""
KNOWS = [{"system": "gate up", "answer": "gate up"}, {"answer": "no idea"}]


@pytest.fixture
def gate(pytester: pytest.Pytester) -> Path:
    asked = [case(f"How do I open gate {n}?", "gate up", id=f"g{n}") for n in range(10)]
    (pytester.path / "model.json").write_text(json.dumps(KNOWS))
    return write_skill(pytester.path / "skills" / "gate", asked, body=BODY)


class Finished:
    """A plugin that keeps the results."""

    results: RunResults | None = None

    def pytest_upskill_finished(self, results: RunResults) -> None:
        type(self).results = results


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    given = ("--skill", "skills", "--model", "scripted:model.json", "-p", "no:cacheprovider")
    Finished.results = None
    result = pytester.runpytest_inprocess(*given, *args, plugins=[Finished()])
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return result


def effects() -> dict[str, Effect]:
    """Of leaving out each part, by its name."""
    found = Finished.results
    return {one.name: one.effect for about in found.parts for one in about.parts} if found else {}


@pytest.mark.usefixtures("gate")
def test_ablation_runs_after_the_tests(pytester: pytest.Pytester, workers: str) -> None:
    result = run(pytester, "--skill-ablate", "-n", workers)
    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines(["upskill: --skill-ablate: after the tests, about * calls, * free"])
    assert {name: one.state for name, one in effects().items()} == {
        "Opening": "shown",
        "History": "dropped",
    }


@pytest.mark.usefixtures("gate")
def test_collect_only_tells_the_estimate_and_asks_nothing(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--skill-ablate", "--collect-only")
    result.stdout.fnmatch_lines(
        ["upskill: --skill-ablate: a run would make after the tests about * calls, * free"]
    )
    assert not (pytester.path / ".upskill").exists()


@pytest.mark.usefixtures("gate")
def test_runs_of_a_study_are_those_of_the_tests_if_chosen(pytester: pytest.Pytester) -> None:
    wide = run(pytester, "--skill-ablate", "--collect-only")
    one = run(pytester, "--skill-ablate", "--collect-only", "--skill-runs", "2")
    wide.stdout.fnmatch_lines(["*about 80 to 320 calls*"])
    one.stdout.fnmatch_lines(["*after the tests about 80 calls*"])


def test_nothing_is_studied_if_a_test_errored(pytester: pytest.Pytester, gate: Path) -> None:
    pytester.makepyfile(
        model="""
        def answer(question):
            if "gate 3" in question.messages[-1][1]:
                raise RuntimeError("no answer")
            return "gate up"
        """
    )
    result = run(pytester, "--skill-ablate", "--model", "scripted:model.py:answer")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*--skill-ablate: not run, as tests errored. Run again: *"])
    assert not effects()
    assert gate.exists()


@pytest.mark.usefixtures("gate")
def test_nothing_is_studied_if_the_run_stopped_early(
    pytester: pytest.Pytester, workers: str
) -> None:
    (pytester.path / "model.json").write_text(json.dumps([{"answer": "no idea"}]))
    result = run(pytester, "--skill-ablate", "-x", "-n", workers)
    result.stdout.fnmatch_lines(["*--skill-ablate: not run, as the run was stopped. Run again: *"])
    assert not effects()


@pytest.mark.usefixtures("gate")
def test_failures_do_not_keep_a_study_from_running(pytester: pytest.Pytester) -> None:
    (pytester.path / "model.json").write_text(json.dumps([{"answer": "no idea"}]))
    result = run(pytester, "--skill-ablate")
    result.assert_outcomes(failed=10)
    assert {one.state for one in effects().values()} == {"dropped"}


@pytest.mark.usefixtures("gate")
def test_only_selected_cases_are_studied(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--skill-ablate", "-k", "g1 or g2")
    result.assert_outcomes(passed=2, deselected=8)
    assert {one.cases for one in effects().values()} == {2}


def test_checks_and_prompts_of_conftest_files_apply(
    pytester: pytest.Pytester, workers: str
) -> None:
    asked = [
        {"input": f"How do I open gate {n}?", "expected": {"lifts": "gate"}} for n in range(10)
    ]
    body = BODY.replace("gate up", "raise")  # which only the prompt of the hook translates
    write_skill(pytester.path / "skills" / "gate", asked, body=body)
    (pytester.path / "model.json").write_text(json.dumps(KNOWS))
    pytester.makeconftest(
        """
        def lifts(answer, what):
            return answer.text == f"{what} up"

        def pytest_upskill_checks():
            return {"lifts": lifts}

        def pytest_upskill_prompt(arm, skill, base):
            return base if skill is None else f"{base} {skill.replace('raise', 'gate up')}"
        """
    )
    result = run(pytester, "--skill-ablate", "-n", workers)
    result.assert_outcomes(passed=10)
    assert effects()["Opening"].state == "shown"


@pytest.mark.usefixtures("gate")
def test_budget_holds_for_a_study_and_leaves_it_incomplete(pytester: pytest.Pytester) -> None:
    limits = ("--skill-max-tokens", "1200", "--skill-max-output", "10")
    result = run(pytester, "--skill-ablate", *limits)
    result.assert_outcomes(passed=10)
    assert "incomplete" in {one.state for one in effects().values()}
    assert "shown" not in {one.state for one in effects().values()}
    result = run(pytester, "--skill-ablate")
    assert effects()["Opening"].state == "shown"


@pytest.mark.usefixtures("gate")
def test_a_matrix_needs_two_skills(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--skill-matrix", "--skill-agent", "loop")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skill-matrix: a matrix needs at least two skills*"])


@pytest.mark.usefixtures("gate")
def test_a_matrix_needs_an_agent(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills" / "door")
    result = run(pytester, "--skill-matrix")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--skill-matrix: a plain completion sees one skill only*", "*--skill-agent loop*"]
    )
