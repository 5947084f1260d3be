"""A model that changed since results were accepted, by known chances."""

import pytest

from support.known_model import KnownModel

CASES, RUNS = 16, ("--skill-runs", "5")


def test_model_that_got_worse_is_told_beside_the_skill(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, CASES, baseline=0.7, skill=0.95) as known:
        assert known.run("--skill-accept", *RUNS).status == 0
        known.later(monkeypatch, days=2, baseline=0.3, skill=0.5)
        run = known.run("--skill-fresh", *RUNS)

    reason = run.gate["reasons"][-1]
    assert run.status == 1
    assert "regression of" in reason
    assert "the model got worse, too: without the skill," in reason


def test_skill_that_got_worse_by_itself_is_not_the_model(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, CASES, baseline=0.5, skill=0.95) as known:
        known.run("--skill-accept", *RUNS)
        known.later(monkeypatch, days=2, baseline=0.5, skill=0.5)
        run = known.run("--skill-fresh", *RUNS)

    assert run.status == 1
    assert not any("model" in reason for reason in run.gate["reasons"])
