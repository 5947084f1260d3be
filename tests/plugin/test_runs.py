"""--skill-runs 3..12: a few runs first, more only while the verdict is open."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.stats import look_plan, paired_lift, plan_level
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.trial import open_trials, trials_of
from support.kit import BODY, case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply

CASES = 12
CALLS_OF_A_RUN = CASES * 2


def answers(helped: int) -> Callable[[Asked], Reply]:
    """Two of three runs pass with the skill and one without, or in the other cases turned round."""

    def answer(asked: Asked) -> Reply:
        often = (BODY in asked.system) == (int(asked.question) < helped)
        passes = asked.attempt % 3 > 0 if often else asked.attempt % 3 == 0
        return Reply("yes" if passes else "no")

    return answer


def run(
    pytester: pytest.Pytester, server: LoopbackServer, *args: str, runs: str = "3..12"
) -> tuple[pytest.RunResult, dict[str, Any]]:
    url = ["--model", "m", "--skill-base-url", f"{server.url}/v1", "--skill-json", "r.json"]
    result = pytester.runpytest_inprocess("--skill", "skills", *url, "--skill-runs", runs, *args)
    report: dict[str, Any] = json.loads((pytester.path / "r.json").read_text())
    return result, report


def write_cases(pytester: pytest.Pytester, **of_the_first: Any) -> None:
    cases = [case(str(n), "yes", id=f"c{n}") for n in range(CASES)]
    cases[0].update(of_the_first)
    write_skill(pytester.path / "skills/gate", cases)


@pytest.mark.parametrize(
    ("helped", "runs", "word"),
    [
        (12, 3, "helps"),
        (6, 4, "no effect shown"),  # and hardly would be
        (8, 4, "no effect shown"),
        (10, 12, "no effect shown"),
    ],
)
def test_runs_go_on_only_while_the_verdict_is_open(
    pytester: pytest.Pytester, workers: str, helped: int, runs: int, word: str
) -> None:
    write_cases(pytester)
    with LoopbackServer(answers(helped)) as server:
        result, report = run(pytester, server, "-n", workers)
    assert len(server.asked) == runs * CALLS_OF_A_RUN == len(report["records"])
    (row,) = report["summary"]
    assert (row["runs"], row["verdict"]) == (runs, word)
    result.stdout.fnmatch_lines([f"gate · * · 12 cases × {runs} runs", f"m: {word}: *"])
    stopped_early = f"after {runs} of 12 runs" in " ".join(result.stdout.str().split())
    assert stopped_early is (runs < 12)


def test_the_interval_allows_for_several_looks(
    pytester: pytest.Pytester,
) -> None:
    write_cases(pytester)
    with LoopbackServer(answers(8)) as server:
        _, report = run(pytester, server)
    (row,) = report["summary"]
    pairs = [(1 / 4, 3 / 4)] * 8 + [(3 / 4, 1 / 4)] * 4
    lift = paired_lift(pairs, 4, plan_level(look_plan(3, 12)))
    assert (row["lift_low"], row["lift_high"]) == pytest.approx((lift.low, lift.high))


def test_collect_only_shows_the_most_calls_there_may_be(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    args = ["--skill", "skills", "--model", "haiku", "--skill-runs", "3..12", "--collect-only"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(
        ["upskill: a run would make up to 288 calls, up to $*: * × 3 to 12 runs"]
    )


def test_a_missing_answer_ends_the_run_of_looks(pytester: pytest.Pytester, workers: str) -> None:
    write_cases(pytester)

    def answer(asked: Asked) -> Reply | Fault:
        return Fault("status", 400) if asked.question == "11" else answers(9)(asked)

    with LoopbackServer(answer) as server:
        result, report = run(pytester, server, "-n", workers)
    assert len(server.asked) == 3 * CALLS_OF_A_RUN
    assert result.parseoutcomes()["errors"] == 1
    assert (report["summary"][0]["verdict"], report["summary"][0]["errored"]) == ("incomplete", 6)


def test_each_skill_and_model_is_decided_on_its_own(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    write_skill(pytester.path / "skills/door", [case("Open?", "yes", id="c", skip="not now")])
    with LoopbackServer(lambda asked: answers(12 if asked.model == "m" else 8)(asked)) as server:
        result, report = run(pytester, server, "--model", "n", "-k", "not c11")
    assert {row["model"]: row["runs"] for row in report["summary"]} == {"m": 3, "n": 5}
    result.stdout.fnmatch_lines(["gate · * · 11 cases × 3 to 5 runs"])
    assert "c11" not in {record["case"] for record in report["records"]}


def test_a_case_with_its_own_number_of_runs_keeps_it(pytester: pytest.Pytester) -> None:
    write_cases(pytester, runs=2)
    with LoopbackServer(answers(8)) as server:
        _, report = run(pytester, server)
    runs = {record["case"]: record["run"] for record in report["records"]}
    assert runs["c0"] == 2
    assert runs["c1"] > 3
    assert [test["case"] for test in report["tests"] if test["own_runs"]] == ["c0"]


def test_an_answer_is_graded_once(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate",
        [{"input": str(n), "id": f"c{n}", "expected": {"noted": True}} for n in range(CASES)],
    )
    pytester.makeconftest(
        """
        from pathlib import Path

        def noted(answer, value):
            with Path(__file__).with_name("noted.txt").open("a") as file:
                file.write("x")
            return answer.text == "yes"

        def pytest_upskill_checks():
            return {"noted": noted}
        """
    )
    with LoopbackServer(answers(8)) as server:
        run(pytester, server)
    assert len((pytester.path / "noted.txt").read_text()) == 4 * CALLS_OF_A_RUN


def test_a_recorded_run_is_replayed_with_as_many_runs(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    with LoopbackServer(answers(8)) as server:
        _, recorded = run(pytester, server, "--skill-record", "a.jsonl")
        asked = len(server.asked)
        _, replayed = run(pytester, server, "--skill-replay", "a.jsonl")
    assert len(server.asked) == asked
    assert replayed["summary"] == recorded["summary"]


def test_tests_in_python_get_the_first_number_of_runs(pytester: pytest.Pytester) -> None:
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
    pytester.runpytest_inprocess(*args, "--skill-runs", "2..8").assert_outcomes(passed=1)
    assert json.loads((pytester.path / "r.json").read_text())["summary"][0]["runs"] == 2


@pytest.mark.parametrize("text", ["3..", "..3", "0..3", "a..b", "3...5", "3-5", "-1..4", ""])
def test_only_one_or_two_numbers_are_accepted(pytester: pytest.Pytester, text: str) -> None:
    result = pytester.runpytest_inprocess("--skill", "skills", f"--skill-runs={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    wanted = "a whole number of 1 or more, or two of them as in '3..12'"
    assert f"argument --skill-runs: {text!r} is not {wanted}" in result.stderr.str()


def test_the_greater_number_must_not_be_the_first(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--skill", "skills", "--skill-runs", "12..3")
    assert "argument --skill-runs: '12..3': the smaller number comes first" in result.stderr.str()


def test_without_a_baseline_there_is_no_verdict_to_wait_for(pytester: pytest.Pytester) -> None:
    args = ["--skill", "skills", "--skill-no-baseline", "--skill-runs"]
    result = pytester.runpytest_inprocess(*args, "3..12")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --skill-runs 3..12: needs a baseline: *"])


@pytest.mark.parametrize(
    "written",
    ['[tool.pytest]\nskill_runs = "3..12"', '[tool.pytest.ini_options]\nskill_runs = "3..12"'],
)
def test_the_ini_file_may_have_a_range(pytester: pytest.Pytester, written: str) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyprojecttoml(written)
    args = ["--skill", "skills", "--model", "haiku", "--collect-only"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(["upskill: a run would make up to 24 calls, *: * × 3 to 12 runs"])


def test_only_the_first_runs_are_asked_from_the_start(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "gate") / "SKILL.md")
    settings = Settings(runs=8, first_runs=2)
    planned = [
        trials_of("gate", skill, Case(id, "How?", runs=runs), "m", settings)
        for id, runs in (("a", None), ("b", 5))
    ]
    assert list(map(len, planned)) == [16, 10]
    assert {trial.run for trial in planned[0] if trial.later} == {3, 4, 5, 6, 7, 8}
    tests = [PlannedCase(own[0].case, "gate", own[0].case, "m", tuple(own)) for own in planned]
    plan = Plan((), tuple(tests))
    assert len(list(plan.questions())) == 4 + 10
    assert len(open_trials("gate", skill, "c", "m", settings)) == 4


def test_a_case_that_always_goes_the_same_way_is_not_asked_to_the_end(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_cases(pytester)

    def answer(asked: Asked) -> Reply:
        return Reply("no") if int(asked.question) < 3 else answers(11)(asked)

    with LoopbackServer(answer) as server:
        result, report = run(pytester, server, "-n", workers)
    runs = {record["case"]: record["run"] for record in report["records"]}
    (row,) = report["summary"]
    assert row["runs"] > 6
    assert {runs[f"c{n}"] for n in range(3)} == {6}
    assert {runs[f"c{n}"] for n in range(3, CASES)} == {row["runs"]}
    assert len(server.asked) == len(report["records"])
    # The lift is the difference of the rates that are shown, and so in a report of the records.
    assert row["lift"] == pytest.approx(row["skill_rate"] - row["baseline_rate"])
    result.stdout.fnmatch_lines(["gate · * · 12 cases × 6 to * runs"])
