"""--skill-matrix and --skill-ablate: studies after the last test of a run."""

import json
from typing import Any

import pytest

from support.kit import case, write_skill
from support.runs import SkillRun, run_skills

BODY = """# Gate

## Opening

The command to open the gate is `gate up`.

## History

Gates are old. They were made of wood.
"""
KNOWS = [{"system": "gate up", "answer": "gate up"}, {"answer": "no idea"}]


@pytest.fixture
def gate(pytester: pytest.Pytester) -> None:
    asked = [case(f"How do I open gate {n}?", "gate up", id=f"g{n}") for n in range(10)]
    (pytester.path / "model.json").write_text(json.dumps(KNOWS))
    write_skill(pytester.path / "skills" / "gate", asked, body=BODY)


def run(pytester: pytest.Pytester, *args: str, model: str = "scripted:model.json") -> SkillRun:
    return run_skills(pytester, model, "-p", "no:cacheprovider", *args)


def effects(run: SkillRun) -> dict[str, dict[str, Any]]:
    """Of leaving out each part, by its name."""
    return {
        part["name"]: part["effect"] for about in run.report["parts"] for part in about["parts"]
    }


def states(run: SkillRun) -> dict[str, str]:
    return {name: effect["state"] for name, effect in effects(run).items()}


@pytest.mark.usefixtures("gate")
def test_ablation_runs_after_the_tests(pytester: pytest.Pytester) -> None:
    finished = run(pytester, "--skill-ablate")
    assert finished.outcomes == {"passed": 10}
    assert "upskill: --skill-ablate: after the tests, up to about " in finished.screen
    assert states(finished) == {"Opening": "shown", "History": "dropped"}


@pytest.mark.parametrize(
    ("runs", "calls"), [([], "320 calls"), (["--skill-runs", "2"], "80 calls")]
)
@pytest.mark.usefixtures("gate")
def test_collect_only_tells_the_estimate_and_asks_nothing(
    pytester: pytest.Pytester, runs: list[str], calls: str
) -> None:
    finished = run(pytester, "--skill-ablate", "--collect-only", *runs)
    assert (
        f"--skill-ablate: a run would make after the tests up to about {calls}" in finished.screen
    )
    assert not (pytester.path / ".upskill").exists()


@pytest.mark.usefixtures("gate")
def test_nothing_is_studied_if_a_test_errored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        model="""
        def answer(question):
            if "gate 3" in question.messages[-1][1]:
                raise RuntimeError("no answer")
            return "gate up"
        """
    )
    finished = run(pytester, "--skill-ablate", model="scripted:model.py:answer")
    assert finished.status == 1
    assert "--skill-ablate: not run, as tests errored" in finished.screen
    assert not effects(finished)


@pytest.mark.usefixtures("gate")
def test_nothing_is_studied_if_the_run_stopped_early(
    pytester: pytest.Pytester, workers: str
) -> None:
    (pytester.path / "model.json").write_text(json.dumps([{"answer": "no idea"}]))
    finished = run(pytester, "--skill-ablate", "-x", "-n", workers)
    assert "--skill-ablate: not run, as the run was stopped" in finished.screen
    assert not effects(finished)


@pytest.mark.usefixtures("gate")
def test_only_selected_cases_are_studied_even_if_they_fail(pytester: pytest.Pytester) -> None:
    (pytester.path / "model.json").write_text(json.dumps([{"answer": "no idea"}]))
    finished = run(pytester, "--skill-ablate", "-k", "g1 or g2")
    assert finished.outcomes == {"failed": 2, "deselected": 8}
    assert set(states(finished).values()) == {"dropped"}
    assert {effect["cases"] for effect in effects(finished).values()} == {2}


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
    finished = run(pytester, "--skill-ablate", "-n", workers)
    assert finished.outcomes == {"passed": 10}
    assert states(finished)["Opening"] == "shown"


@pytest.mark.usefixtures("gate")
def test_budget_holds_for_a_study_and_leaves_it_incomplete(pytester: pytest.Pytester) -> None:
    limits = ("--skill-max-tokens", "1200", "--skill-max-output", "10")
    finished = run(pytester, "--skill-ablate", *limits)
    assert finished.outcomes == {"passed": 10}
    assert "incomplete" in states(finished).values()
    assert "shown" not in states(finished).values()


@pytest.mark.usefixtures("gate")
def test_a_matrix_needs_two_skills_and_an_agent(pytester: pytest.Pytester) -> None:
    alone = run(pytester, "--skill-matrix", "--skill-agent", "loop")
    assert alone.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-matrix: a matrix needs at least two skills" in alone.screen
    write_skill(pytester.path / "skills" / "door")
    by_chat = run(pytester, "--skill-matrix")
    assert by_chat.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-matrix: " in by_chat.screen
    assert "--skill-agent loop" in by_chat.screen
