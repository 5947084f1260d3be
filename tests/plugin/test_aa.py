"""--skill-aa: a skill against itself, with a model of known chances."""

from collections import Counter

import pytest

from pytest_upskill.results.history import default_folder, runs
from support.known_model import KnownModel
from support.loopback import LoopbackServer, Reply
from support.runs import run_skills
from support.sandboxes import needs_bwrap
from support.words import INCOMPLETE

AA = ("--skill-aa", "--skill-runs", "3")


def test_a_skill_does_not_differ_from_itself(
    pytester: pytest.Pytester, workers: str
) -> None:
    with KnownModel(pytester, 12, skill=0.6) as known:
        known.run("--skill-no-baseline", "--skill-runs", "3")
        run = known.run(*AA, "--skill-min-lift", "0.1", "-o", "skill_min_lift=0.3")
        assert run.status == pytest.ExitCode.USAGE_ERROR
        run = known.run(*AA, "-o", "skill_min_lift=0.3", "-n", workers)
    requests = Counter(asked.content for asked in known.server.asked)
    assert list(requests.values()) == [6] * 12  # those of the skill are from the store
    assert Counter(record["stored"] for record in run.records) == {True: 36, False: 36}
    row = run.summary
    assert (row["verdict"], row["lift"], run.gate["passed"]) == (None, None, None)
    lift = row["comparisons"]["again"]["lift"]
    rates = {name: arm["rate"] for name, arm in row["arms"].items()}
    assert lift["lift"] == pytest.approx(rates["skill"] - rates["again"])
    assert lift["low"] < 0 < lift["high"]
    assert run.report["verdicts"] == []
    assert run.status == 0  # cases that fail are no news
    assert run.outcomes["xfailed"] > 0
    assert "helps" not in run.screen
    assert any(line.startswith("· gate on m A/A: ") for line in run.ending)
    kept = runs(default_folder(pytester.path))
    assert len(kept) == 1  # the ordinary run


def test_a_server_that_minds_the_order_is_found_out(pytester: pytest.Pytester) -> None:
    """Every second answer to the same question is right."""
    KnownModel(pytester, 7)  # writes the skill
    with LoopbackServer(
        lambda asked: Reply("no" if asked.attempt % 2 else "yes")
    ) as server:
        run = run_skills(pytester, server, *AA, "--skill-concurrency", "1")
    assert run.summary["comparisons"]["again"]["lift"]["low"] > 0
    assert run.summary["verdict"] is None
    assert "differs from itself" in run.summary["sentence"]
    assert run.status == 0


def test_an_arm_of_an_earlier_day_is_asked_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 2, baseline=0.2, skill=0.6) as known:
        known.run("--skill-runs", "3")
        known.later(monkeypatch, days=2)
        run = known.run(*AA)
        again = known.run(*AA)
    assert [record["stored"] for record in run.records] == [False] * 12
    assert "again" in run.summary["comparisons"]
    assert all(record["stored"] for record in again.records)


@pytest.mark.nightly
@pytest.mark.usefixtures("short_pauses")
def test_each_model_has_its_row(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 6, skill=0.6) as known:
        known.chances["m2 skill"] = 1.0
        rows = known.run(*AA, models=2).report["summary"]
        known.errors = {"c0": ["skill"]}
        rows += known.run(*AA, "--skill-fresh").report["summary"]
    assert [row["verdict"] for row in rows] == [None, None, INCOMPLETE]
    assert rows[1]["comparisons"]["again"]["lift"]["lift"] == 0
    assert rows[2]["comparisons"] == {}


@pytest.mark.parametrize(
    "option",
    [
        "--skill-accept",
        "--skill-no-baseline",
        "--skill-against=HEAD",
        "--skill-no-worse",
        "--skill-min-pass-rate=0.5",
    ],
)
def test_what_makes_no_sense_with_it(pytester: pytest.Pytester, option: str) -> None:
    with KnownModel(pytester, 2, skill=1.0) as known:
        run = known.run("--skill-aa", option)
        assert not known.server.asked
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-aa" in run.screen


def test_accepted_results_are_not_compared(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 3, baseline=0.0, skill=1.0) as known:
        assert known.run("--skill-accept").status == 0
        known.chances["skill"] = 0.0
        known.cases = 2
        known.write("broken")
        run = known.run(*AA)
    assert (run.status, run.gate["passed"]) == (0, None)
    assert run.report["unmatched"] == []


@needs_bwrap
def test_an_agent_and_a_test_in_python(pytester: pytest.Pytester) -> None:
    """Each asks in the arm ``again`` as with the skill."""
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_opens(ask):
            assert "yes" in ask("c0?")
        """
    )
    prompt = (
        "def pytest_upskill_prompt(arm, skill, base):\n    return f'{arm}: {skill}"
        " {base}'\n"
    )
    pytester.makeconftest(prompt)
    with KnownModel(pytester, 1, skill=1.0) as known:
        run = known.run("--skill-aa", "test_gate.py", "skills/gate/skill_meta.json")
        assert len({asked.content for asked in known.server.asked}) == 1
        row = known.run("--skill-aa", "--skill-agent", "loop").summary
    assert run.outcomes == {"passed": 2}
    assert [row["arms"][arm]["rate"] for arm in ("skill", "again")] == [1, 1]
    assert Counter(record["arm"] for record in run.records)["again"] == 2
