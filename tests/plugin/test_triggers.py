"""Queries of triggers as tests: which are asked, how they end, and where their records go."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.kit import case, run_skills, write_skill
from support.loopback import LoopbackServer, Reply
from support.sandboxes import needs_bwrap

SHOULD = ["Open the gate for me", "Let the cart through"]
SHOULD_NOT = ["What is 2 + 2?", "Paint the gate"]
QUERIES = [
    *({"query": query, "should_trigger": True} for query in SHOULD),
    *({"query": query, "should_trigger": False} for query in SHOULD_NOT),
]
NAMES = ["open-the-gate-for-me", "let-the-cart-through", "what-is-2-2", "paint-the-gate"]


def write_triggers(folder: Path, queries: Any = None, name: str = "evals/triggers.json") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(json.dumps(QUERIES if queries is None else queries, indent=1), encoding="utf-8")
    return file


def write_gate(folder: Path, queries: Any = None) -> Path:
    write_skill(folder)
    write_triggers(folder, queries)
    return folder


def write_model(folder: Path, opens: str = "gate", skill: str = "gate") -> str:
    """Opens the skill for every query with a word in it, and knows nothing else."""
    call = {"tool": "skill", "arguments": {"name": skill}}
    rules = [{"question": opens, "offered": "skill", "calls": [call]}, {"answer": "gate up"}]
    (folder / "m.json").write_text(json.dumps(rules), encoding="utf-8")
    return "scripted:m.json"


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_gate(pytester.path / "skills/gate")
    return write_model(pytester.path)


def report(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))


def lines_with(result: pytest.RunResult, word: str) -> list[str]:
    return [line for line in result.outlines if word in line]


def test_a_model_chooses_by_itself(pytester: pytest.Pytester, model: str, workers: str) -> None:
    args = ["--skill-triggers", "only", "-n", workers, "--skill-json", "r.json", "-v"]
    result = run_skills(pytester, model, *args)
    result.assert_outcomes(passed=2, failed=2)
    start = "skills/gate/skill_meta.json::trigger-"
    for name, word in zip(NAMES, ["PASSED", "FAILED", "PASSED", "FAILED"], strict=True):
        assert any(word in line for line in lines_with(result, f"{start}{name}[{model}]"))
    result.stdout.fnmatch_lines_random(
        [
            "opened in 0 of 3, should be at least half",
            "Query (skills/gate/evals/triggers.json:6, should open the skill):",
            "  Let the cart through",
            "  runs 1, 2, 3: not opened: answered without it",
            f"  -vv '{start}let-the-cart-through?{model}?'*",
            "opened in 3 of 3, should be less than half",
            "Query (skills/gate/evals/triggers.json:14, should not open the skill):",
        ]
    )
    assert report(pytester)["records"] == []  # those of cases alone


@needs_bwrap
def test_agents_are_asked_by_default(pytester: pytest.Pytester, model: str, workers: str) -> None:
    args = ["--skill-agent", "loop", "--skill-json", "r.json", "-n", workers]
    result = run_skills(pytester, model, *args)
    result.assert_outcomes(passed=3, failed=2)
    if workers == "0":
        result.stdout.fnmatch_lines(
            [
                "upskill: up to 2 trials by loop, each of up to 30 turns: *",
                "upskill: up to 12 trials for triggers by loop, each of up to 5 turns: "
                "4 queries × 3 runs",
            ]
        )
    assert f"trigger-paint-the-gate[loop/{model}]" in result.stdout.str()
    assert len(report(pytester)["records"]) == 2


def test_queries_are_not_asked_of_chat_unless_told(pytester: pytest.Pytester, model: str) -> None:
    result = run_skills(pytester, model)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "upskill: 4 queries of triggers not asked (--skill-triggers also, or --skill-agent "
            "NAME asks them)"
        ]
    )
    off = run_skills(pytester, model, "--skill-triggers", "off")
    off.assert_outcomes(passed=1)
    assert "of triggers" not in off.stdout.str()
    run_skills(pytester, model, "--skill-triggers", "also").assert_outcomes(passed=3, failed=2)


def test_collecting_counts_the_calls(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill-triggers", "only", "--skill-trigger-runs", "5", "--collect-only"]
    result = run_skills(pytester, model, *args)
    result.stdout.fnmatch_lines(
        ["upskill: a run would make up to 20 calls for triggers: 4 queries × 5 runs"]
    )
    assert len(lines_with(result, "<TriggerItem trigger-")) == 4
    assert not lines_with(result, "<CaseItem")


@pytest.mark.parametrize(
    "args",
    [("-k", "trigger"), ("-m", "trigger"), ("-k", "trigger and not open-gate")],
)
def test_queries_are_selected_as_any_tests(
    pytester: pytest.Pytester, model: str, args: Sequence[str]
) -> None:
    result = run_skills(pytester, model, "--skill-triggers", "also", *args)
    result.assert_outcomes(passed=2, failed=2, deselected=1)
    assert "Unknown" not in result.stdout.str()


def test_node_ids_failed_ones_and_deselected_ones(pytester: pytest.Pytester, model: str) -> None:
    file = "skills/gate/skill_meta.json"
    named = pytester.runpytest_inprocess(f"{file}::trigger-what-is-2-2[{model}]")
    named.assert_outcomes(passed=1)  # though chat is not asked by default
    named = pytester.runpytest_inprocess(f"{file}::trigger-what-is-2-2", "--model", model)
    named.assert_outcomes(passed=1)
    wrong = pytester.runpytest_inprocess(f"{file}::trigger-what-is-2", "--model", model)
    wrong.assert_outcomes(errors=1)
    wrong.stdout.fnmatch_lines(['*no case *did you mean "trigger-what-is-2-2"?*'])
    run_skills(pytester, model, "--skill-triggers", "only").assert_outcomes(passed=2, failed=2)
    again = run_skills(pytester, model, "--skill-triggers", "only", "--lf")
    again.assert_outcomes(failed=2)
    without = f"--deselect={file}::trigger-let"
    left = run_skills(pytester, model, "--skill-triggers", "only", without)
    left.assert_outcomes(passed=2, failed=1, deselected=1)
    first = run_skills(pytester, model, "--skill-triggers", "only", "-x")
    first.assert_outcomes(passed=1, failed=1)


def test_a_file_of_triggers_can_be_named(pytester: pytest.Pytester, model: str) -> None:
    result = pytester.runpytest_inprocess("skills/gate/evals/triggers.json", "--model", model)
    result.assert_outcomes(passed=2, failed=2)
    assert "skills/gate/evals/triggers.json::trigger-paint-the-gate" in result.stdout.str()


def test_a_skill_may_have_only_triggers(pytester: pytest.Pytester, model: str) -> None:
    (pytester.path / "skills/gate/skill_meta.json").unlink()
    off = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    assert off.ret == pytest.ExitCode.USAGE_ERROR
    off.stderr.fnmatch_lines(
        [
            "ERROR: skills/gate: this skill has no cases",
            "  To ask its 4 queries of triggers: --skill-triggers only",
        ]
    )
    for choice in ("only", "also"):
        result = run_skills(pytester, model, "--skill-triggers", choice)
        result.assert_outcomes(passed=2, failed=2)
    name = f"skills/gate/evals/triggers.json::trigger-what-is-2-2[{model}]"
    assert name not in result.stdout.str()  # it passed
    pytester.runpytest_inprocess(name).assert_outcomes(passed=1)


def test_a_skill_without_triggers_says_so(pytester: pytest.Pytester, model: str) -> None:
    write_skill(pytester.path / "skills/door")
    both = run_skills(pytester, model, "--skill-triggers", "only")
    both.assert_outcomes(passed=2, failed=2)
    both.stdout.fnmatch_lines(
        [
            "upskill: 2 found, 1 without triggers: door",
            "upskill: to write some: pytest-upskill triggers SKILL",
        ]
    )
    args = ["--skill", "skills/door", "--model", model, "--skill-triggers", "only"]
    alone = pytester.runpytest_inprocess(*args)
    assert alone.ret == pytest.ExitCode.USAGE_ERROR
    alone.stderr.fnmatch_lines(
        [
            "ERROR: skills/door: this skill has no triggers",
            "  Write *should_trigger* to skills/door/evals/triggers.json.",
            "  Or run: pytest-upskill triggers skills/door",
        ]
    )


def test_a_broken_query_fails_alone(pytester: pytest.Pytester, model: str, workers: str) -> None:
    write_triggers(pytester.path / "skills/gate", [*QUERIES, {"query": "x"}, "text"])
    write_triggers(pytester.path / "skills/gate", [], "evals/a-trigger-file.json").write_text("[{]")
    args = ["--skill-triggers", "only", "-n", workers]
    result = run_skills(pytester, model, *args)
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.fnmatch_lines_random(
        [
            "*evals/triggers.json:18: ?4?.should_trigger: missing*",
            "*evals/triggers.json:21: ?5?: must be an object with*",
            "*evals/a-trigger-file.json:1:3: invalid JSON*",
            "FAILED skills/gate/skill_meta.json::trigger-a-trigger-file - skills/gate/ev*",
        ]
    )


def test_a_repeat_is_a_warning(pytester: pytest.Pytester, model: str) -> None:
    write_triggers(pytester.path / "skills/gate", [*QUERIES, QUERIES[0]])
    result = run_skills(pytester, model, "--skill-triggers", "only", "-W", "default")
    result.assert_outcomes(passed=2, failed=2, warnings=1)
    result.stdout.fnmatch_lines(["*triggers.json:18: SkillWarning: the same query as in *"])


def test_a_trial_without_a_decision_is_an_error(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    code = """
        def answer(question):
            if "2 + 2" in question.messages[-1][1] and question.run == 2:
                raise RuntimeError("out of order")
            return "No."
    """
    pytester.makepyfile(broken=code)
    args = ["--skill-triggers", "only", "-n", workers]
    result = run_skills(pytester, "scripted:broken.py:answer", *args)
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["ERROR skills/gate/skill_meta.json::trigger-what-is-2-2?scripted:broken.py:answer?*"]
    )
    assert "out of order" in result.stdout.str()
    assert model


def test_half_of_the_runs_is_enough_to_open_and_too_much_not_to(
    pytester: pytest.Pytester,
) -> None:
    write_gate(pytester.path / "skills/gate", [QUERIES[0], QUERIES[3]])
    code = """
        from pytest_upskill.trials.answer import Answer
        from pytest_upskill.trials.tools import ToolCall

        def answer(question):
            call = ToolCall("1", "skill", '{"name": "gate"}')
            return Answer("", calls=(call,)) if question.run % 2 else "No."
    """
    pytester.makepyfile(half=code)
    args = ["--skill-triggers", "only", "--skill-trigger-runs", "2"]
    result = run_skills(pytester, "scripted:half.py:answer", *args)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "opened in 1 of 2, should be less than half",
            "  run 1: opened gate, and should not",
            "  run 2: not opened, as it should be: answered without it",
        ]
    )


def test_cases_that_need_a_judge_leave_the_queries(pytester: pytest.Pytester, model: str) -> None:
    rubric = {"input": "Open?", "expected": {"judge": ["It opens."]}}
    write_skill(pytester.path / "skills/gate", [rubric])
    result = run_skills(pytester, model, "--skill-triggers", "also")
    result.assert_outcomes(passed=2, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*this needs a judge*"])
    run_skills(pytester, model, "--skill-triggers", "only").assert_outcomes(passed=2, failed=2)


def test_recorded_answers_are_replayed(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill-triggers", "also"]
    recorded = run_skills(pytester, model, *args, "--skill-record", "answers.jsonl")
    recorded.assert_outcomes(passed=3, failed=2)
    (pytester.path / "m.json").write_text('[{"answer": "Something else."}]')
    replayed = run_skills(pytester, model, *args, "--skill-replay", "answers.jsonl")
    replayed.assert_outcomes(passed=3, failed=2)
    more = run_skills(
        pytester, model, *args, "--skill-replay", "answers.jsonl", "--skill-trigger-runs", "4"
    )
    more.assert_outcomes(passed=1, errors=4)


def test_answers_are_bought_once(pytester: pytest.Pytester, workers: str) -> None:
    write_gate(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Reply("No.")) as server:
        args = ["--skill-base-url", f"{server.url}/v1", "--skill-triggers", "only", "-n", workers]
        counts = []
        for more in ([], [], ["--skill-fresh"], ["--skill-trigger-runs", "4"]):
            run_skills(pytester, "m", *args, *more).assert_outcomes(passed=2, failed=2)
            counts.append(len(server.asked))
    assert counts == [12, 12, 24, 28]


def test_a_budget_holds_for_queries(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill-triggers", "only", "--skill-max-tokens", "200"]
    result = run_skills(pytester, model, *args)
    assert result.parseoutcomes()["errors"] >= 3
    assert "budget" in result.stdout.str()


def test_a_crashed_worker_loses_only_its_own(pytester: pytest.Pytester, model: str) -> None:
    pytester.makeconftest(
        """
        import os
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_setup(item):
            if "trigger-what" in item.name:
                os._exit(3)
        """
    )
    args = ["--skill-triggers", "only", "-n", "2", "--skill-json", "r.json"]
    result = run_skills(pytester, model, *args)
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 1
    assert outcomes["failed"] == 3
    assert "crashed" in result.stdout.str()


def test_junit_has_the_records(pytester: pytest.Pytester, model: str) -> None:
    run_skills(pytester, model, "--skill-triggers", "only", "--junitxml", "j.xml")
    text = (pytester.path / "j.xml").read_text(encoding="utf-8")
    assert text.count("<testcase ") == 4
    assert 'name="trigger-paint-the-gate[scripted:m.json]"' in text
    assert "opened in 3 of 3, should be less than half" in text
    assert text.count('name="upskill"') == 4


def test_hostile_queries_are_shown_harmlessly(pytester: pytest.Pytester) -> None:
    evil = "::error::gate\n\x1b[31m<script>alert(1)</script> " + "long " * 50_000
    write_gate(pytester.path / "skills/gate", [{"query": evil, "should_trigger": False}])
    result = run_skills(pytester, write_model(pytester.path), "--skill-triggers", "only")
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    assert "\x1b" not in shown
    assert "\n::error" not in shown
    assert len(shown) < 10_000


def test_the_command_that_runs_a_query_again(pytester: pytest.Pytester, model: str) -> None:
    write_skill(pytester.path / "other/boat", [], body="How to row a boat.")
    pytester.makeini("[pytest]")
    pytester.mkdir("sub")
    pytester.chdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(pytester.path / "sub")
        args = ["--skill", "../skills", "--model", "scripted:../m.json", "--skill-triggers", "only"]
        args += ["--skill-with", "../other/boat", "--skill-trigger-runs", "1", "-k", "paint"]
        result = pytester.runpytest_inprocess(*args)
        result.assert_outcomes(failed=1, deselected=3)
        text = result.stdout.str().partition("To run it again: pytest ")[2]
        words = shlex.split(text.replace("\\\n", "").splitlines()[0])
        again = pytester.runpytest_inprocess(*words)
    again.assert_outcomes(failed=1)
    assert "opened in 1 of 1, should be less than half" in again.stdout.str()
    assert model


def test_options_of_agents_that_queries_of_chat_use(pytester: pytest.Pytester, model: str) -> None:
    write_skill(pytester.path / "other/boat", [])
    args = ["--skill-with", "other/boat"]
    unused = run_skills(pytester, model, *args)
    unused.stdout.fnmatch_lines(["upskill: --skill-with: only for agents*"])
    used = run_skills(pytester, model, *args, "--skill-triggers", "also")
    assert "only for agents" not in used.stdout.str()


@needs_bwrap
def test_another_skill_is_opened_instead(pytester: pytest.Pytester) -> None:
    write_gate(pytester.path / "skills/gate", [QUERIES[0]])
    write_skill(pytester.path / "other/boat", [case("Row?", "oar")], body="How to row a boat.")
    model = write_model(pytester.path, skill="boat")
    args = ["--skill-triggers", "only", "--skill-agent", "loop", "--skill-with", "other/boat"]
    result = run_skills(pytester, model, *args)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  runs 1, 2, 3: not opened: opened boat instead"])
