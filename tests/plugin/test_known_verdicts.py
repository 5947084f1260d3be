"""Verdicts and gates on a model whose chances to be right are known."""

import pytest

from support.known_model import KnownModel
from support.words import NOT_NEEDED, TOO_FEW


@pytest.mark.nightly
def test_ten_cases_can_not_tell_that_a_skill_is_not_needed(
    pytester: pytest.Pytester,
) -> None:
    """It helps in a fifth of all cases, of which there may be few among ten."""
    with KnownModel(pytester, 10, baseline=[0.0] + [1.0] * 9, skill=1.0) as known:
        run = known.run()
        assert (run.summary["baseline_rate"], run.summary["verdict"]) == (0.9, TOO_FEW)
        assert f"m: {TOO_FEW}: +10 points (-" in run.screen
        assert run.ending[0].startswith(f"· gate {TOO_FEW} on m +10 (-")
        known.cases = 30
        known.chances["baseline"] = 1.0
        known.write()
        run = known.run()
    assert run.summary["verdict"] == NOT_NEEDED
    assert run.summary["lift_high"] < 0.2


def test_20_points_pass_a_minimum_of_20_points(pytester: pytest.Pytester) -> None:
    """By this seed, 9 of 15 answers pass without the skill and 12 with it:
    0.2 but for rounding.
    """
    with KnownModel(pytester, 5, baseline=0.4, skill=0.7, seed=421) as known:
        run = known.run("--skill-runs", "3", "--skill-min-lift", "0.2")
        assert run.summary["lift"] == 0.2
        assert (run.status, run.gate["passed"]) == (0, True)
        low, high = (round(100 * run.summary[f"lift_{end}"]) for end in ("low", "high"))
        chance = known.run("--skill-runs", "3", "--skill-min-lift", "0.5")
        shown = known.run("--skill-runs", "3", "--skill-min-lift", "1")
    for missed, words in ((chance, "+50; could be chance"), (shown, "+100; shown")):
        reason = f"gate on m: lift is +20 points (minimum {words}: {low:+} to {high:+})"
        assert missed.gate == {"passed": False, "reasons": [reason]}


@pytest.mark.nightly
def test_few_cases_name_no_sweet_spot(pytester: pytest.Pytester) -> None:
    """By this seed, the cheap model is as good as the other,
    but really it is 20 points off.
    """
    pytester.makeini("[pytest]\nskill_prices =\n    m 20 100\n    m2 2 10")
    with KnownModel(pytester, 10, baseline=0.0, skill=0.8, seed=1) as known:
        known.chances["m2 skill"] = 0.6
        run = known.run(models=3)
    words = " ".join(run.screen.split())
    assert f"Sweet spot: {TOO_FEW}: m2 with the skill (70%) is 0 points (-" in words
    assert "from m with the skill (70%); left out: m3 (no price)." in words
