"""Nominal 95 % intervals cover the true lift in at least 93 %;
equal arms rarely differ.

benchmarks/intervals.py does the same with more repeats, world by world.
"""

import random
from collections.abc import Callable
from math import log

import pytest
from scipy.stats import binom

from pytest_upskill.stats import (
    Lift,
    Ruled,
    corrected_rate,
    lift_per_use,
    paired_lift,
    paired_ratio,
)
from support.simulated import ask, rates, shares, worlds

EVERY_WORLD = [world for lift in (0, 0.2, 0.6) for world in worlds(lift)]


@pytest.mark.parametrize("cases", [5, 12, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("runs", [1, 3, pytest.param(5, marks=pytest.mark.nightly)])
def test_interval_covers_the_true_lift(cases: int, runs: int) -> None:
    draw = random.Random(f"{cases} cases, {runs} runs")
    held = 0
    repeats = 60
    for world in EVERY_WORLD:
        for _ in range(repeats):
            found = paired_lift(
                rates(ask(draw, world.cases(draw, cases), runs), runs), runs
            )
            held += found.low - 1e-9 <= world.lift <= found.high + 1e-9
    assert held / repeats / len(EVERY_WORLD) >= 0.93


@pytest.mark.parametrize("cases", [2, 5, 12])
@pytest.mark.parametrize("runs", [1, 3])
def test_interval_covers_the_true_lift_of_shares(cases: int, runs: int) -> None:
    draw = random.Random(f"shares of {cases} cases, {runs} runs")
    held = 0
    repeats = 40
    for world in EVERY_WORLD:
        for _ in range(repeats):
            found = paired_lift(shares(draw, world.cases(draw, cases), runs), runs)
            held += found.low - 1e-9 <= world.lift <= found.high + 1e-9
    assert held / repeats / len(EVERY_WORLD) >= 0.93


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_shares_separate_equal_arms_in_at_most_five_percent(runs: int) -> None:
    draw = random.Random(runs)
    found = [
        paired_lift(shares(draw, world.cases(draw, cases), runs), runs)
        for cases in (2, 3, 5, 8, 12, 20)
        for world in worlds(0)
        for _ in range(30)
    ]
    assert sum(lift.shown for lift in found) / len(found) <= 0.05


@pytest.mark.parametrize("cases", [5, 12, 20, 40])
@pytest.mark.parametrize("unlike", [0.1, 0.3, 0.5])
def test_one_run_separates_equal_arms_in_at_most_five_percent(
    cases: int, unlike: float
) -> None:
    """Computed exactly; `unlike` is the chance that the arms of a case differ."""
    error = 0.0
    for differ in range(cases + 1):
        for gained in range(differ + 1):
            lost, both = differ - gained, (cases - differ) // 2
            pairs = [(0, 1)] * gained + [(1, 0)] * lost + [(1, 1)] * both
            pairs += [(0, 0)] * (cases - differ - both)
            if paired_lift(pairs, runs=1).shown:
                error += binom.pmf(differ, cases, unlike) * binom.pmf(
                    gained, differ, 0.5
                )
    assert error <= 0.05


@pytest.mark.parametrize("runs", [3, pytest.param(5, marks=pytest.mark.nightly)])
def test_several_runs_separate_equal_arms_in_at_most_five_percent(runs: int) -> None:
    draw = random.Random(runs)
    shown = repeats = 0
    for cases in (5, 8, 12, 20, 40):
        for a, b in [(1, 1), (0.3, 0.3), (5, 1)]:
            for _ in range(300):
                chances = [
                    (c, c) for c in (draw.betavariate(a, b) for _ in range(cases))
                ]
                shown += paired_lift(rates(ask(draw, chances, runs), runs), runs).shown
                repeats += 1
    assert shown / repeats <= 0.05


@pytest.mark.parametrize(
    "cases",
    [5, 12, *(pytest.param(cases, marks=pytest.mark.nightly) for cases in (8, 20, 40))],
)
def test_token_change_interval_covers_the_true_change(cases: int) -> None:
    draw = random.Random(cases)
    held = 0
    repeats = 1500
    for _ in range(repeats):
        baselines = [draw.lognormvariate(log(300), 0.5) for _ in range(cases)]
        pairs = [
            (tokens, tokens * 1.5 * draw.lognormvariate(-0.02, 0.2))
            for tokens in baselines
        ]
        change = paired_ratio(pairs)
        assert change is not None
        assert change.low is not None
        assert change.high is not None
        held += change.low <= 0.5 <= change.high
    assert held / repeats >= 0.93


# Chances to pass without the skill, where it is opened, and where it is not, for a base
# chance; and the chance to open it.
OPENINGS: dict[str, Callable[[float], tuple[float, float, float, float]]] = {
    "lucky trials open it": lambda base: (base, base + 0.3, base - 0.3, 0.5),
    "easy cases open it": lambda base: (base, base, base, 2 * base - 0.55),
    "it helps where opened": lambda base: (base - 0.2, base + 0.2, base - 0.2, 0.5),
}


@pytest.mark.parametrize(("cases", "runs"), [(12, 1), (40, 1), (12, 3), (20, 3)])
@pytest.mark.parametrize("name", OPENINGS)
def test_an_effect_per_use_is_none_if_use_depends_on_luck(
    name: str, cases: int, runs: int
) -> None:
    draw = random.Random(f"{name}, {cases} cases, {runs} runs")
    true, repeats = 0.4 if name == "it helps where opened" else 0.0, 200
    effects: list[Lift] = []
    for _ in range(repeats):
        pairs, shares_opened = [], []
        for _ in range(cases):
            without, opened, closed, opens = OPENINGS[name](draw.uniform(0.3, 0.7))
            uses = [draw.random() < opens for _ in range(runs)]
            passes = sum(draw.random() < (opened if use else closed) for use in uses)
            passes_without = sum(draw.random() < without for _ in range(runs))
            pairs.append((passes_without / runs, passes / runs))
            shares_opened.append(sum(uses) / runs)
        effect = lift_per_use(paired_lift(pairs, runs), pairs, shares_opened)
        effects += [effect] if effect else []
    wrong = sum(not effect.low <= true <= effect.high for effect in effects)
    assert wrong / repeats <= (0.07 if true else 0.05)
    if cases * runs >= 40:
        assert len(effects) / repeats > 0.25
        assert sum(effect.lift for effect in effects) / len(effects) == pytest.approx(
            true, abs=0.1
        )


@pytest.mark.parametrize(
    ("sensitivity", "specificity"), [(0.95, 0.9), (0.8, 0.7), (0.9, 0.6)]
)
@pytest.mark.parametrize("true", [0.1, 0.5, 0.8])
def test_a_corrected_rate_holds_the_true_one(
    true: float, sensitivity: float, specificity: float
) -> None:
    draw, repeats = random.Random(f"{true}, {sensitivity}, {specificity}"), 300
    raw = true * sensitivity + (1 - true) * (1 - specificity)

    def ruled(rate: float, size: int) -> Ruled:
        return Ruled(sum(draw.random() < rate for _ in range(size)) / size, size)

    rates = [
        corrected_rate(ruled(raw, 60), ruled(sensitivity, 30), ruled(specificity, 30))
        for _ in range(repeats)
    ]
    held = sum(low <= true <= high for rate in rates if rate for low, high in rate[1:])
    assert held / repeats >= 0.93
    assert sum(rate[0] for rate in rates if rate) / repeats == pytest.approx(
        true, abs=0.04
    )


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    passed = Ruled(0.5, 20)
    assert corrected_rate(passed, Ruled(0.6, 20), Ruled(0.4, 20)) is None
    assert corrected_rate(passed, Ruled(1.0, 4), Ruled(1.0, 20)) is None
    assert corrected_rate(passed, Ruled(1.0, 20), Ruled(1.0, 4)) is None
    few = corrected_rate(passed, Ruled(1.0, 5), Ruled(1.0, 5))
    many = corrected_rate(passed, Ruled(1.0, 500), Ruled(1.0, 500))
    assert few
    assert many
    assert few[0] == many[0] == 0.5
    assert few[1].low < many[1].low < 0.5 < many[1].high < few[1].high
