"""A case that passed in all accepted runs and fails now is asked again, until a run
passes or five have failed.
"""

import json

import pytest

from support.accepted_project import AcceptedProject, regressions
from support.kit import case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

NAMES = [f"c{number}" for number in range(8)]
WELL = {**dict.fromkeys(NAMES[:6], 1), "c6": 0, "c7": 0}
TEST = """
    import pytest

    @pytest.mark.skill("skills/gate")
    def test_a(ask):
        assert ask("a is it?") == "yes"
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> AcceptedProject:
    """Of eight cases six were accepted as passing."""
    project = AcceptedProject(pytester)
    project.write(*NAMES)
    project.accept(WELL)
    return project


def runs_of(run: SkillRun, name: str) -> list[tuple[int, str, bool]]:
    """Of a case with the skill: number, outcome, and whether it was an extra run."""
    return [
        (record["run"], record["outcome"], record["extra"])
        for record in run.records
        if (record["case"], record["arm"]) == (name, "skill")
    ]


def test_a_broken_case_is_named_after_five_failures(
    project: AcceptedProject, workers: str
) -> None:
    run = project.run({**WELL, "c2": 0}, "-n", workers)
    assert (run.outcomes, run.status) == ({"passed": 5, "failed": 1, "xfailed": 2}, 1)
    assert runs_of(run, "c2") == [
        (number, "failed", number > 1) for number in range(1, 6)
    ]
    assert regressions(run) == ["c2"]
    (reason,) = run.gate["reasons"]
    assert "regression: c2: 0 of 5 passed (accepted: 1 of 1, 2026-01-02)" in reason
    assert any(reason in line for line in run.ending)
    # Lift and pass rate are those of the planned runs.
    assert (run.summary["skill_rate"], run.summary["runs"]) == (5 / 8, 1)
    assert [record["case"] for record in run.records if record["extra"]] == ["c2"] * 4


def test_after_a_pass_it_could_be_chance(
    project: AcceptedProject, workers: str
) -> None:
    run = project.run({**WELL, "c1": [3], "c4": [2]}, "-rx", "-n", workers)
    assert (run.outcomes, run.status) == ({"passed": 4, "xfailed": 4}, 0)
    assert [passed for _, passed, _ in runs_of(run, "c1")] == [
        *("failed", "failed", "passed")
    ]
    assert len(runs_of(run, "c4")) == 2
    assert "1 of 3 passed (accepted: 1 of 1, 2026-01-02); could be chance" in run.screen
    assert run.gate == {"passed": True, "reasons": []}


def test_all_runs_decide_over_the_skill_as_a_whole(project: AcceptedProject) -> None:
    """Each case passes in the fifth run, and together that is no chance any more."""
    run = project.run({name: [5] for name in NAMES})
    assert (run.outcomes, run.status) == ({"xfailed": 8}, 1)
    (reason,) = run.gate["reasons"]
    assert "regression of the skill as a whole: 6 of 32 runs passed" in reason


@pytest.mark.parametrize(
    ("runs", "passed", "asked"), [(3, 0, 5), (3, 1, 3), (5, 0, 5), (6, 0, 6)]
)
def test_runs_that_were_planned_count(
    project: AcceptedProject, runs: int, passed: int, asked: int
) -> None:
    well = {name: runs * passes for name, passes in WELL.items()}
    run = project.run({**well, "c0": passed}, runs=runs)
    assert len(runs_of(run, "c0")) == asked
    assert regressions(run) == ([] if passed else ["c0"])
    assert run.summary["runs"] == runs


def test_a_test_in_python_is_asked_again(pytester: pytest.Pytester) -> None:
    project = AcceptedProject(pytester)
    project.write("a")
    pytester.makepyfile(test_gate=TEST)
    alone = ("test_gate.py",)
    project.run({"a": 1}, *alone, "--skill-accept", "--skill-runs=1", skill="")
    run = project.run({"a": 0}, *alone, skill="")
    assert (run.outcomes, run.status) == ({"failed": 1}, 1)
    assert runs_of(run, "test_gate::test_a")[-1] == (5, "failed", True)
    run = project.run({"a": [4]}, *alone, skill="")
    assert (run.outcomes, run.status) == ({"xfailed": 1}, 0)


def test_a_case_without_the_extra_answer_is_an_error(
    project: AcceptedProject,
) -> None:
    """Nobody knows whether it regressed, so it is no expected failure."""
    fake = project.pytester.path / "fake.py"
    fails = "    assert question.run < 3\n    passes ="
    fake.write_text(fake.read_text().replace("    passes =", fails))
    run = project.run({**WELL, "c2": 0})
    assert (run.outcomes, run.status) == ({"passed": 5, "errors": 1, "xfailed": 2}, 1)
    assert [outcome for _, outcome, _ in runs_of(run, "c2")] == [
        *("failed", "failed", "errored")
    ]
    # What was planned has its answers, so the lift is known.
    assert (run.summary["cases"], run.summary["lift"]) == (8, 5 / 8)


def test_the_extra_runs_are_in_the_estimate(project: AcceptedProject) -> None:
    run = project.run(WELL, "--collect-only")
    line = " ".join(run.screen.split())
    assert "up to 16 calls, and up to 24 to confirm regressions: 8 tests" in line
    assert "to confirm" not in project.run(WELL, "--collect-only", runs=5).screen
    assert "to confirm" not in project.run(WELL, "--collect-only", "--skill-aa").screen


def test_a_recording_has_the_extra_runs(project: AcceptedProject) -> None:
    broken = {**WELL, "c2": 0}
    project.run(broken, "--skill-record", "a.jsonl")
    recording = project.pytester.path / "a.jsonl"
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    assert len(lines) == 16 + 4
    run = project.run(broken, "--skill-replay", "a.jsonl")
    assert (regressions(run), len(runs_of(run, "c2"))) == (["c2"], 5)
    planned = [line for line in lines if line["run"] == 1]
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in planned))
    run = project.run(broken, "--skill-replay", "a.jsonl")
    assert (run.outcomes["errors"], run.status) == (1, 1)
    assert "--skill-record a.jsonl" in run.record(case="c2", run=2)["error"]


# With a server, whose answers are stored and cost something.


def broken(asked: Asked) -> Reply:
    good = "SKILL" in asked.system and "broken" not in asked.system
    return Reply("yes" if good else "no", input_tokens=1000, output_tokens=10)


@pytest.fixture
def worse(pytester: pytest.Pytester) -> AcceptedProject:
    """A skill with one case that was accepted, and then broken."""
    project = AcceptedProject(pytester)
    cases = [case("a is it?", "yes", id="a")]
    write_skill(project.folder, cases, body="SKILL: say yes.")
    with LoopbackServer(broken) as server:
        run_skills(pytester, server, "--skill-accept", "--skill-runs", "1")
    write_skill(project.folder, cases, body="SKILL: broken.")
    return project


def test_the_same_command_asks_nothing_again(worse: AcceptedProject) -> None:
    with LoopbackServer(broken) as server:
        first = run_skills(worse.pytester, server)
        asked = len(server.asked)
        second = run_skills(worse.pytester, server)
        assert len(server.asked) == asked == 6
    for run in (first, second):
        assert (run.status, regressions(run)) == (1, ["a"])


def test_workers_ask_for_extra_runs_once(worse: AcceptedProject) -> None:
    with LoopbackServer(broken) as server:
        run = run_skills(worse.pytester, server, "-n", "2")
        assert len(server.asked) == 6
    assert (run.status, regressions(run)) == (1, ["a"])


def test_a_budget_that_ends_before_the_fifth_run_leaves_an_error(
    worse: AcceptedProject,
) -> None:
    with LoopbackServer(broken) as server:
        run = run_skills(worse.pytester, server, "--skill-max-tokens", "6000")
        assert 2 <= len(server.asked) < 6
        assert (run.outcomes, run.status) == ({"errors": 1}, 1)
        assert any("the budget ended the run" in line for line in run.ending)
        # What is stored is free, so the same command goes on.
        again = run_skills(worse.pytester, server, "--skill-max-tokens", "60000")
    assert regressions(again) == ["a"]
