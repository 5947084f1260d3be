"""Queries of triggers as tests: which are asked, how they end,
and where their records go.
"""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.run_file import read_run
from support.kit import case, write_skill
from support.loopback import LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

SHOULD = ["Open the gate for me", "Let the cart through"]
SHOULD_NOT = ["What is 2 + 2?", "Paint the gate"]
QUERIES = [
    *({"query": query, "should_trigger": True} for query in SHOULD),
    *({"query": query, "should_trigger": False} for query in SHOULD_NOT),
]
# The model of these tests opens the skill for every query with the word "gate" in it.
OUTCOMES = {
    "trigger-open-the-gate-for-me": "passed",
    "trigger-let-the-cart-through": "failed",
    "trigger-what-is-2-2": "passed",
    "trigger-paint-the-gate": "failed",
}
META = "skills/gate/skill_meta.json"
ONLY = ("-m", "trigger")


def write_triggers(
    folder: Path, queries: Any = None, name: str = "evals/triggers.json"
) -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(
        json.dumps(QUERIES if queries is None else queries, indent=1), encoding="utf-8"
    )
    return file


def write_gate(folder: Path, queries: Any = None) -> Path:
    write_skill(folder)
    write_triggers(folder, queries)
    return folder


def write_model(folder: Path, skill: str = "gate") -> str:
    """Opens the skill for every query with a word in it, and knows nothing else."""
    call = {"tool": "skill", "arguments": {"name": skill}}
    rules = [
        {"question": "gate", "offered": "skill", "calls": [call]},
        {"answer": "gate up"},
    ]
    (folder / "m.json").write_text(json.dumps(rules), encoding="utf-8")
    return "scripted:m.json"


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_gate(pytester.path / "skills/gate")
    return write_model(pytester.path)


def outcomes(run: SkillRun) -> dict[str, str]:
    """Of queries, by the ids of their tests; all of their runs went the same way."""
    found = {(record["case"], record["outcome"]) for record in query_records(run)}
    assert len(dict(found)) == len(found)
    return dict(found)


def query_records(run: SkillRun) -> list[dict[str, Any]]:
    queries = {test["case"] for test in run.report["tests"] if test["kind"] == "query"}
    return [record for record in run.records if record["case"] in queries]


def test_a_model_chooses_by_itself(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    run = run_skills(pytester, model, *ONLY, "-n", workers, "--junitxml", "j.xml")
    assert {**run.outcomes, "deselected": 1} == {
        "passed": 2,
        "failed": 2,
        "deselected": 1,
    }
    assert outcomes(run) == OUTCOMES
    assert f"trigger-let-the-cart-through[{model}]'" in run.screen
    text = (pytester.path / "j.xml").read_text(encoding="utf-8")
    assert text.count("<testcase ") == 4
    assert text.count('name="upskill"') == 4


@needs_bwrap
def test_agents_are_asked(pytester: pytest.Pytester, model: str) -> None:
    runs = ("-o", "skill_trigger_runs=1")
    run = run_skills(pytester, model, "--skill-agent", "loop", *runs)
    assert run.outcomes == {"passed": 3, "failed": 2}
    assert "upskill: up to 4 trials for triggers by loop" in run.screen
    assert {record["agent"] for record in query_records(run)} == {"loop"}
    assert len(run.records) == 2 + 4
    [row] = run.report["summary"]
    # Lift and verdict are of the case alone
    assert (row["cases"], row["runs"]) == (1, 1)


def test_collecting_counts_the_calls(pytester: pytest.Pytester, model: str) -> None:
    run = run_skills(
        pytester, model, *ONLY, "-o", "skill_trigger_runs=5", "--collect-only"
    )
    assert "up to 20 calls for triggers: 4 queries × 5 runs" in run.screen
    assert run.screen.count("<CaseItem trigger-") == run.screen.count("<CaseItem") == 4


@pytest.mark.parametrize(
    ("args", "outcomes"),
    [
        ((), {"passed": 3, "failed": 2}),
        (("-k", "trigger"), {"passed": 2, "failed": 2, "deselected": 1}),
        (("-m", "trigger"), {"passed": 2, "failed": 2, "deselected": 1}),
        (("-m", "not trigger"), {"passed": 1, "deselected": 4}),
        (("-m", "opens"), {"passed": 1, "failed": 1, "deselected": 3}),
    ],
)
def test_queries_are_selected_as_any_tests(
    pytester: pytest.Pytester, model: str, args: Sequence[str], outcomes: dict[str, int]
) -> None:
    run = run_skills(pytester, model, *args)
    assert run.outcomes == outcomes
    assert "ran only" not in run.screen or "opens" in args


def test_node_ids_failed_ones_and_deselected_ones(
    pytester: pytest.Pytester, model: str
) -> None:
    named = pytester.runpytest_inprocess(f"{META}::trigger-what-is-2-2[{model}]")
    named.assert_outcomes(passed=1)
    wrong = pytester.runpytest_inprocess(f"{META}::trigger-what-is-2", "--model", model)
    wrong.assert_outcomes(errors=1)
    assert re.search(r'no case .*"trigger-what-is-2-2"', " ".join(wrong.outlines))
    run_skills(pytester, model, *ONLY)
    assert run_skills(pytester, model, "--lf").outcomes == {"failed": 2}
    others = run_skills(pytester, model, *ONLY, f"--deselect={META}::trigger-let")
    assert others.outcomes == {"passed": 2, "failed": 1, "deselected": 2}


def test_a_file_of_triggers_can_be_named(pytester: pytest.Pytester, model: str) -> None:
    result = pytester.runpytest_inprocess(
        "skills/gate/evals/triggers.json", "--model", model
    )
    result.assert_outcomes(passed=2, failed=2)
    assert (
        "skills/gate/evals/triggers.json::trigger-paint-the-gate" in result.stdout.str()
    )


def test_a_skill_may_have_only_triggers(pytester: pytest.Pytester, model: str) -> None:
    (pytester.path / META).unlink()
    assert run_skills(pytester, model).outcomes == {"passed": 2, "failed": 2}
    name = f"skills/gate/evals/triggers.json::trigger-what-is-2-2[{model}]"
    pytester.runpytest_inprocess(name).assert_outcomes(passed=1)


def test_a_broken_query_fails_alone(pytester: pytest.Pytester, model: str) -> None:
    odd = {**QUERIES[0], "query": "Is the gate up?", "should_triger": True}
    write_triggers(
        pytester.path / "skills/gate", [*QUERIES, {"query": "x"}, "text", odd]
    )
    write_triggers(
        pytester.path / "skills/gate", [], "evals/a-trigger-file.json"
    ).write_text("[{]")
    run = run_skills(pytester, model, *ONLY, "-W", "default")
    assert run.outcomes == {"passed": 3, "failed": 5, "warnings": 1, "deselected": 1}
    for place in (
        "triggers.json:18: ",
        "triggers.json:21: ",
        "a-trigger-file.json:1:3: ",
    ):
        assert f"skills/gate/evals/{place}" in run.screen
    assert "triggers.json:25: SkillWarning: unknown keys are ignored" in run.screen
    assert f"FAILED {META}::trigger-a-trigger-file" in run.screen


def test_a_trial_without_a_decision_is_an_error(pytester: pytest.Pytester) -> None:
    write_gate(pytester.path / "skills/gate")
    code = """
        def answer(question):
            if "2 + 2" in question.messages[-1][1] and question.run == 2:
                raise RuntimeError("out of order")
            return "No."
    """
    pytester.makepyfile(broken=code)
    run = run_skills(pytester, "scripted:broken.py:answer", *ONLY)
    assert run.outcomes == {"passed": 1, "failed": 2, "errors": 1, "deselected": 1}
    [lost] = [record for record in query_records(run) if record["error"]]
    assert (lost["case"], lost["run"]) == ("trigger-what-is-2-2", 2)
    assert "out of order" in lost["error"]


def test_half_of_the_runs_is_enough_to_open_and_too_much_not_to(
    pytester: pytest.Pytester,
) -> None:
    write_gate(pytester.path / "skills/gate", [QUERIES[0], QUERIES[3]])
    code = """
        from pytest_upskill.trials.answer import Answer
        from pytest_upskill.trials.transcript import ToolCall

        def answer(question):
            call = ToolCall("1", "skill", '{"name": "gate"}')
            return Answer("", calls=(call,)) if question.run % 2 else "No."
    """
    pytester.makepyfile(half=code)
    run = run_skills(
        pytester, "scripted:half.py:answer", *ONLY, "-o", "skill_trigger_runs=2"
    )
    assert run.outcomes == {"passed": 1, "failed": 1, "deselected": 1}
    assert "FAILED skills/gate/skill_meta.json::trigger-paint-the-gate" in run.screen


def test_cases_that_need_a_judge_leave_the_queries(
    pytester: pytest.Pytester, model: str
) -> None:
    rubric = {"input": "Open?", "expected": {"judge": ["It opens."]}}
    write_skill(pytester.path / "skills/gate", [rubric])
    both = run_skills(pytester, model)
    assert both.outcomes == {"passed": 2, "failed": 2, "errors": 1}


def test_recorded_answers_are_replayed(pytester: pytest.Pytester, model: str) -> None:
    run_skills(pytester, model, "--skill-record", "answers.jsonl")
    (pytester.path / "m.json").write_text('[{"answer": "Something else."}]')
    replayed = run_skills(pytester, model, "--skill-replay", "answers.jsonl")
    assert replayed.outcomes == {"passed": 3, "failed": 2}
    assert outcomes(replayed) == OUTCOMES
    args = ["--skill-replay", "answers.jsonl", "-o", "skill_trigger_runs=4"]
    assert run_skills(pytester, model, *args).outcomes == {"passed": 1, "errors": 4}


def test_answers_are_bought_once(pytester: pytest.Pytester, workers: str) -> None:
    write_gate(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Reply("No.")) as server:
        counts = []
        for more in ([], ["-o", "skill_trigger_runs=4"], ["--skill-fresh"]):
            run = run_skills(pytester, server, *ONLY, "-n", workers, *more)
            assert (run.outcomes["passed"], run.outcomes["failed"]) == (2, 2)
            counts.append(len(server.asked))
    assert counts == [12, 16, 28]


def test_a_budget_holds_for_queries(pytester: pytest.Pytester, model: str) -> None:
    run = run_skills(pytester, model, *ONLY, "--skill-max-tokens", "200")
    assert run.outcomes["errors"] >= 3
    errors = [record["error"] for record in query_records(run) if record["error"]]
    assert all("budget" in error for error in errors)


@pytest.mark.nightly
def test_a_crashed_worker_loses_only_its_own(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makeconftest("""
        import os
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_setup(item):
            if "trigger-what" in item.name:
                os._exit(3)
        """)
    run = run_skills(pytester, model, *ONLY, "-n", "2")
    assert run.outcomes == {"passed": 1, "failed": 3}
    assert "crashed" in run.screen


def test_the_command_that_runs_a_query_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gate(pytester.path / "skills/gate")
    write_model(pytester.path)
    write_skill(pytester.path / "other/boat", [], body="How to row a boat.")
    pytester.makeini("[pytest]")
    monkeypatch.chdir(pytester.mkdir("sub"))
    args = [
        "--skill",
        "../skills",
        "--model",
        "scripted:../m.json",
        *ONLY,
        "-k",
        "paint",
    ]
    options = ["--skill-with", "../other/boat", "-o", "skill_trigger_runs=1"]
    result = pytester.runpytest_inprocess(*args, *options, "--skill-json", "r.json")
    result.assert_outcomes(failed=1, deselected=4)
    results = read_run(Path("r.json"))
    (test,) = results.tests
    _, *words = shlex.split(results.rerun.command(test.nodeid))
    assert words[-4:] == options
    pytester.runpytest_inprocess(*words).assert_outcomes(failed=1)


def test_options_of_agents_that_queries_of_chat_use(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "other/boat", [])
    args = ["--skill-with", "other/boat"]
    assert "only for agents" not in run_skills(pytester, model, *args).screen
    (pytester.path / "skills/gate/evals/triggers.json").unlink()
    assert "--skill-with: only for agents" in run_skills(pytester, model, *args).screen


@needs_bwrap
def test_another_skill_is_opened_instead(pytester: pytest.Pytester) -> None:
    write_gate(pytester.path / "skills/gate", [QUERIES[0]])
    write_skill(
        pytester.path / "other/boat", [case("Row?", "oar")], body="How to row a boat."
    )
    model = write_model(pytester.path, skill="boat")
    run = run_skills(
        pytester, model, *ONLY, "--skill-agent", "loop", "--skill-with", "other/boat"
    )
    assert run.outcomes == {"failed": 1, "deselected": 1}
    assert [record["activity"]["opened"] for record in query_records(run)] == [
        ["boat"]
    ] * 3
