"""--skill-runs 3..12: a few runs first, more only while the verdict is open."""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.stats import look_plan, paired_lift, plan_level
from pytest_upskill.trials.arm import arms_of
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import trials_of
from support.kit import BODY, case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.words import HELPS, INCOMPLETE, TOO_FEW

CASES = 12
CALLS_OF_A_RUN = CASES * 2


def answers(helped: int) -> Callable[[Asked], Reply]:
    """Two of three runs pass with the skill and one without,
    or in the other cases turned round.
    """

    def answer(asked: Asked) -> Reply:
        often = (BODY in asked.system) == (int(asked.question) < helped)
        passes = asked.attempt % 3 > 0 if often else asked.attempt % 3 == 0
        return Reply("yes" if passes else "no")

    return answer


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    # One after the other, so that the answers of a run are always the same.
    return run_skills(
        pytester, server, "--skill-runs", "3..12", "--skill-concurrency", "1", *args
    )


def write_cases(pytester: pytest.Pytester) -> None:
    cases = [case(str(n), "yes", id=f"c{n}") for n in range(CASES)]
    write_skill(pytester.path / "skills/gate", cases)


@pytest.mark.parametrize(
    ("helped", "runs", "word"),
    [
        pytest.param(12, 3, HELPS, marks=pytest.mark.nightly),  # as that of m below
        (8, 4, TOO_FEW),  # and hardly would be
        (10, 12, TOO_FEW),
    ],
)
def test_runs_go_on_only_while_the_verdict_is_open(
    pytester: pytest.Pytester, helped: int, runs: int, word: str
) -> None:
    write_cases(pytester)
    with LoopbackServer(answers(helped)) as server:
        finished = run(pytester, server)
    assert len(server.asked) == runs * CALLS_OF_A_RUN == len(finished.records)
    row = finished.summary
    assert (row["runs"], row["verdict"]) == (runs, word)
    stopped_early = f"after {runs} of 12 runs" in " ".join(finished.screen.split())
    assert stopped_early is (runs < 12)
    if runs == 4:  # the interval allows for several looks
        pairs = [(1 / 4, 3 / 4)] * 8 + [(3 / 4, 1 / 4)] * 4
        lift = paired_lift(pairs, 4, plan_level(look_plan(3, 12)))
        assert (row["lift_low"], row["lift_high"]) == pytest.approx(
            (lift.low, lift.high)
        )


def test_a_missing_answer_ends_the_run_of_looks(pytester: pytest.Pytester) -> None:
    write_cases(pytester)

    def answer(asked: Asked) -> Reply | Fault:
        return Fault("status", 400) if asked.question == "11" else answers(9)(asked)

    with LoopbackServer(answer) as server:
        finished = run(pytester, server)
    assert len(server.asked) == 3 * CALLS_OF_A_RUN
    assert finished.outcomes["errors"] == 1
    assert (finished.summary["verdict"], finished.summary["errored"]) == (INCOMPLETE, 6)


def test_each_skill_and_model_is_decided_on_its_own(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    write_skill(
        pytester.path / "skills/door", [case("Open?", "yes", id="c", skip="not now")]
    )
    with LoopbackServer(
        lambda asked: answers(12 if asked.model == "m" else 8)(asked)
    ) as server:
        finished = run(pytester, server, "--model", "n", "-k", "not c11")
    rows = finished.report["summary"]
    decided = {row["model"]: (row["runs"], row["verdict"]) for row in rows}
    assert decided == {"m": (3, HELPS), "n": (4, TOO_FEW)}
    assert "c11" not in {record["case"] for record in finished.records}


def test_a_case_with_its_own_number_of_runs_keeps_it(pytester: pytest.Pytester) -> None:
    """And no answer is graded twice."""
    expected = {"noted": True}
    cases: list[dict[str, Any]] = [
        {"input": str(n), "id": f"c{n}", "expected": expected} for n in range(CASES)
    ]
    cases[0]["runs"] = 2
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest("""
        from pathlib import Path

        def noted(context):
            with Path(__file__).with_name("noted.txt").open("a") as file:
                file.write("x")
            return context.answer.text == "yes"

        def pytest_upskill_checks():
            return {"noted": noted}
        """)
    with LoopbackServer(answers(8)) as server:
        finished = run(pytester, server)
    runs = {record["case"]: record["run"] for record in finished.records}
    assert runs["c0"] == 2
    assert runs["c1"] > 3
    assert [test["case"] for test in finished.report["tests"] if test["own_runs"]] == [
        "c0"
    ]
    assert len((pytester.path / "noted.txt").read_text()) == len(finished.records)


def test_a_recorded_run_is_replayed_with_as_many_runs(
    pytester: pytest.Pytester,
) -> None:
    write_cases(pytester)
    with LoopbackServer(answers(8)) as server:
        recorded = run(pytester, server, "--skill-record", "a.jsonl")
        asked = len(server.asked)
        replayed = run(pytester, server, "--skill-replay", "a.jsonl")
    assert len(server.asked) == asked
    assert replayed.report["summary"] == recorded.report["summary"]


def test_tests_in_python_get_the_first_number_of_runs(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_opens(ask):
            assert "gate up" in ask("How do I open the gate?")
        """
    )
    args = ["--model", write_script(pytester.path / "a.json"), "--skill-json", "r.json"]
    pytester.runpytest_inprocess(*args, "--skill-runs", "2..8").assert_outcomes(
        passed=1
    )
    assert json.loads((pytester.path / "r.json").read_text())["summary"][0]["runs"] == 2


@pytest.mark.parametrize(
    ("text", "runs"), [("3..12", (3, 12)), ("4", (4, 4)), ("2..2", (2, 2))]
)
def test_one_or_two_numbers_are_accepted(text: str, runs: tuple[int, int]) -> None:
    assert OPTIONS["runs"].kind.parse(text) == runs


@pytest.mark.parametrize(
    "text", ["3..", "..3", "0..3", "a..b", "3...5", "3-5", "-1..4", "", "12..3"]
)
def test_nothing_else_is_accepted(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=re.escape(repr(text))):
        OPTIONS["runs"].kind.parse(text)


def test_without_a_baseline_there_is_no_verdict_to_wait_for(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    finished = run_skills(pytester, "m", "--skill-no-baseline", "--skill-runs", "3..12")
    assert finished.status == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --skill-runs 3..12: needs a baseline" in finished.screen


def test_the_ini_file_may_have_a_range(pytester: pytest.Pytester) -> None:
    """Collecting shows the most calls there may be."""
    write_skill(pytester.path / "skills/gate")
    pytester.makepyprojecttoml('[tool.pytest]\nskill_runs = "3..12"')
    finished = run_skills(pytester, "haiku", "--collect-only")
    assert "upskill: a run would make up to 24 calls" in finished.screen


def test_only_the_first_runs_are_asked_from_the_start(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    settings = Settings(runs=8, first_runs=2)
    arms = arms_of(skill, settings)
    planned = [
        trials_of(
            "gate", Case(id, "How?", runs=runs), Subject(CHAT, "m"), arms, settings
        )
        for id, runs in (("a", None), ("b", 5))
    ]
    assert list(map(len, planned)) == [16, 10]
    assert {trial.run for trial in planned[0] if trial.later} == {3, 4, 5, 6, 7, 8}
    tests = [
        PlannedCase(own[0].case, "gate", own[0].case, "m", tuple(own))
        for own in planned
    ]
    plan = Plan((), tuple(tests))
    assert len(list(plan.questions())) == 4 + 10
    in_python = trials_of(
        "gate", Case("c", ""), Subject(CHAT, "m"), arms, settings, runs=(1, 2)
    )
    assert len(in_python) == 4
    assert all(trial.is_open and not trial.later for trial in in_python)


def test_a_case_that_always_goes_the_same_way_is_not_asked_to_the_end(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_cases(pytester)

    def answer(asked: Asked) -> Reply:
        return Reply("no") if int(asked.question) < 3 else answers(11)(asked)

    with LoopbackServer(answer) as server:
        finished = run(pytester, server, "-n", workers)
    runs = {record["case"]: record["run"] for record in finished.records}
    row = finished.summary
    assert row["runs"] > 6
    assert {runs[f"c{n}"] for n in range(3)} == {6}
    assert {runs[f"c{n}"] for n in range(3, CASES)} == {row["runs"]}
    assert len(server.asked) == len(finished.records)
    # The lift is the difference of the rates that are shown,
    # and so in a report of the records.
    assert row["lift"] == pytest.approx(row["skill_rate"] - row["baseline_rate"])
