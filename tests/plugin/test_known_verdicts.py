"""Verdicts and gates on a model whose chances to be right are known."""

import pytest

from support.known_model import KnownModel


def test_20_points_pass_a_minimum_of_20_points(pytester: pytest.Pytester) -> None:
    """By this seed, 9 of 15 answers pass without the skill and 12 with it:
    0.2 but for rounding.
    """
    with KnownModel(pytester, 5, baseline=0.4, skill=0.7, seed=421) as known:
        run = known.run("--skill-runs", "3", "--skill-min-lift", "0.2")
        assert run.summary["lift"] == pytest.approx(0.2)
        assert (run.status, run.gate["passed"]) == (0, True)
        low, high = (round(100 * run.summary[f"lift_{end}"]) for end in ("low", "high"))
        chance = known.run("--skill-runs", "3", "--skill-min-lift", "0.5")
        shown = known.run("--skill-runs", "3", "--skill-min-lift", "1")
    for missed, words in ((chance, "+50; could be chance"), (shown, "+100; shown")):
        reason = f"gate on m: lift is +20 points (minimum {words}: {low:+} to {high:+})"
        assert missed.gate == {"passed": False, "reasons": [reason]}
