"""A model that changed since results were accepted, by known chances:
is it the skill's fault?
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.known_model import KnownModel
from support.runs import SkillRun

CASES, RUNS = 16, ("--skill-runs", "5")


@contextmanager
def accepted_and_later(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    *args: str,
    baseline: float,
    skill: float,
) -> Iterator[tuple[KnownModel, SkillRun]]:
    """Accepted at 70 % without the skill and 95 % with it,
    and run again with other chances.
    """
    with KnownModel(pytester, CASES, baseline=0.7, skill=0.95) as known:
        assert known.run("--skill-accept", *RUNS).status == 0
        known.later(monkeypatch, days=2, baseline=baseline, skill=skill)
        yield known, known.run("--skill-fresh", *RUNS, *args)


def test_a_model_that_got_worse_is_not_blamed_on_the_skill(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with accepted_and_later(pytester, monkeypatch, baseline=0.4, skill=0.65) as later:
        known, run = later
        # The same answers, without those that would tell whose fault it is.
        alone = known.run("--skill-no-baseline", *RUNS)
    (drift,) = run.report["drifts"]
    assert drift["baseline_before"] - drift["baseline_rate"] == pytest.approx(
        0.3, abs=0.1
    )
    assert drift["explains"]
    assert drift["lift_change_low"] < drift["lift"] - drift["lift_before"] < 0.2
    assert drift["lift_change_high"] > 0
    (reason,) = run.gate["reasons"]
    assert "the model got worse (baseline" in reason
    assert "failed" in run.outcomes
    assert run.status == 1
    assert "regression" not in run.screen
    (reason,) = alone.gate["reasons"]
    assert "regression of the skill as a whole" in reason
    assert "may be the model" in reason


@pytest.mark.parametrize(
    ("baseline", "skill", "drifted", "regressed"),
    [
        pytest.param(
            0.7, 0.5, False, True, id="the skill alone", marks=pytest.mark.nightly
        ),
        pytest.param(0.4, 0.25, True, True, id="the model, and the skill even more"),
        pytest.param(
            0.4, 0.95, True, False, id="the model alone", marks=pytest.mark.nightly
        ),
        pytest.param(0.7, 0.95, False, False, id="none", marks=pytest.mark.nightly),
    ],
)
def test_a_loss_of_the_skill_is_a_regression(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    baseline: float,
    skill: float,
    drifted: bool,
    regressed: bool,
) -> None:
    rates = {"baseline": baseline, "skill": skill}
    with accepted_and_later(pytester, monkeypatch, **rates) as (_, run):
        pass
    assert [drift["explains"] for drift in run.report["drifts"]] == [False] * drifted
    assert run.gate["passed"] is not regressed
    assert all("regression" in reason for reason in run.gate["reasons"])
    assert ("the model got worse" in " ".join(run.screen.split())) == drifted
