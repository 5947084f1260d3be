"""The model of known probabilities that other tests rely on."""

import pytest

from support.known_model import KnownModel
from support.sandboxes import needs_bwrap
from support.words import HELPS


@pytest.mark.nightly
def test_rates_follow_the_chances(pytester: pytest.Pytester) -> None:
    chances = [0.0] * 6 + [1.0] * 2
    with KnownModel(
        pytester, 8, baseline=chances, skill=0.8, tokens={"skill": 50}
    ) as known:
        row = known.run("--skill-runs", "5").summary
        assert (row["baseline_rate"], row["skill_rate"]) == (
            0.25,
            pytest.approx(0.8, abs=0.1),
        )
        assert (row["verdict"], row["skill_tokens"]) == (HELPS, pytest.approx(60))
        growth = pytest.approx(60 / row["baseline_tokens"] - 1)
        tokens = row["comparisons"]["baseline"]["changes"]["tokens"]
        assert list(tokens.values()) == [growth] * 3
        again = known.run("--skill-runs", "5").summary  # from the store
        assert len(known.server.asked) == 80
    assert again["lift"] == row["lift"]


@pytest.mark.nightly
def test_another_day_and_another_version(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(
        pytester, 4, baseline=1.0, skill=1.0, errors={"c1": ["baseline"]}
    ) as known:
        assert known.run().summary["errored"] == 1
        known.errors = {}
        known.later(monkeypatch, 0.5, baseline=0.0, edited=[0, 0, 0, 1])
        known.write("edited")
        assert known.run().summary["skill_rate"] == 0.25


@needs_bwrap
def test_an_agent_that_opens_the_skill_in_some_cases(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 3, baseline=0.0, skill=1.0, opens=[1, 0, 1]) as known:
        row = known.run("--skill-agent", "loop").summary
    assert row["skill_rate"] == pytest.approx(2 / 3)
