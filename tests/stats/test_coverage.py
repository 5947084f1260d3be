"""How often the intervals hold the truth, and how often equal arms differ, simulated.

benchmarks/intervals.py does the same with more repeats, world by world.
"""

import random
from collections.abc import Iterator
from math import log
from statistics import fmean

import pytest

from pytest_upskill.stats import (
    Ruled,
    corrected_rate,
    holm_lifts,
    paired_lift,
    paired_ratio,
    worst_loss,
)
from support.simulated import ask, differ, rates, shares, worlds

EVERY_WORLD = [world for lift in (0, 0.2, 0.6) for world in worlds(lift)]


def draw_coverage(cases: int, runs: int, repeats: int) -> float:
    draw = random.Random(f"{cases} cases, {runs} runs")
    held = 0
    for world in EVERY_WORLD:
        for _ in range(repeats):
            answers = ask(draw, world.cases(draw, cases), runs)
            lift = paired_lift(differ(rates(answers, runs)))
            held += lift.low - 1e-9 <= world.lift <= lift.high + 1e-9
    return held / repeats / len(EVERY_WORLD)


@pytest.mark.parametrize(("cases", "runs"), [(6, 1), (12, 3), (40, 1)])
def test_lift_is_within_its_interval_as_often_as_promised(
    cases: int, runs: int
) -> None:
    assert draw_coverage(cases, runs, repeats=50) >= 0.94


@pytest.mark.nightly
@pytest.mark.parametrize("cases", [6, 10, 20, 40, 80])
@pytest.mark.parametrize("runs", [1, 3, 5])
def test_lift_is_within_its_interval_for_all_sizes(cases: int, runs: int) -> None:
    assert draw_coverage(cases, runs, repeats=500) >= 0.94


@pytest.mark.parametrize("cases", [6, 12])
def test_lift_of_shares_of_checks_is_within_its_interval(cases: int) -> None:
    draw = random.Random(cases)
    held = []
    for world in EVERY_WORLD:
        for _ in range(30):
            lift = paired_lift(differ(shares(draw, world.cases(draw, cases), runs=3)))
            held.append(lift.low - 1e-9 <= world.lift <= lift.high + 1e-9)
    assert fmean(held) >= 0.94


@pytest.mark.parametrize("runs", [1, 3])
def test_equal_arms_differ_in_at_most_five_percent(runs: int) -> None:
    draw = random.Random(runs)
    shown = []
    for cases in (6, 10, 20, 40):
        for _ in range(500):
            base = [draw.betavariate(1, 1) for _ in range(cases)]
            answers = ask(draw, [(chance, chance) for chance in base], runs)
            shown.append(paired_lift(differ(rates(answers, runs))).shown)
    assert fmean(shown) <= 0.05


def test_several_equal_arms_together_rarely_show_a_difference() -> None:
    draw = random.Random(5)
    shown = []
    for _ in range(400):
        lifts = []
        for _ in range(6):
            lifts.append(paired_lift([draw.randint(-3, 3) / 3 for _ in range(20)]))
        shown.append(any(lift.shown for lift in holm_lifts(lifts)))
    assert fmean(shown) <= 0.06


@pytest.mark.parametrize("cases", [60, 100])
def test_a_loss_of_the_margin_is_rarely_ruled_out(cases: int) -> None:
    """A tenth of the cases lose everything, or all lose a tenth."""
    draw = random.Random(cases)
    rare = []
    common = []
    for _ in range(400):
        lost = [-float(draw.random() < 0.1) for _ in range(cases)]
        rare.append(worst_loss(lost) < 0.1)
        common.append(worst_loss([draw.gauss(-0.1, 0.1) for _ in lost]) < 0.1)
    assert fmean(rare) <= 0.04
    assert fmean(common) <= 0.05


# Cases, runs, spread of the ratios, spread of the answers, skew
CELLS = [
    (cases, runs, ratios, answers, is_skewed)
    for cases in (6, 10, 20, 40)
    for runs in (1, 3)
    for ratios in (0.1, 0.4)
    for answers in (0.1, 0.5)
    for is_skewed in (False, True)
]


def draw_logs(
    draw: random.Random, cell: tuple[int, int, float, float, bool]
) -> Iterator[float]:
    """The logarithms of the ratios of cases, which are 0.4 on average."""
    cases, runs, ratios, answers, is_skewed = cell
    for _ in range(cases):
        ratio = draw.gauss(0.4, ratios)
        if is_skewed:
            ratio = 0.4 + ratios * (draw.gammavariate(8, 1) - 8) / 8**0.5
        means = []
        for middle in (0.0, ratio):
            amounts = [draw.lognormvariate(middle, answers) for _ in range(runs)]
            means.append(fmean(amounts))
        yield log(means[1] / means[0])


def ratio_coverage(cell: tuple[int, int, float, float, bool], repeats: int) -> float:
    draw = random.Random(str(cell))
    held = []
    for _ in range(repeats):
        change = paired_ratio(list(draw_logs(draw, cell)))
        assert change
        assert change.low is not None
        assert change.high is not None
        held.append(change.low <= 1.4918 - 1 <= change.high)
    return fmean(held)


@pytest.mark.parametrize("cell", [CELLS[0], CELLS[29], CELLS[63]], ids=str)
def test_a_ratio_is_within_its_interval(
    cell: tuple[int, int, float, float, bool],
) -> None:
    assert 0.92 <= ratio_coverage(cell, repeats=800) <= 0.98


@pytest.mark.nightly
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_ratio_is_within_its_interval_in_every_cell(
    cell: tuple[int, int, float, float, bool],
) -> None:
    assert 0.93 <= ratio_coverage(cell, repeats=4000) <= 0.97


@pytest.mark.parametrize(
    ("sensitivity", "specificity"), [(0.95, 0.9), (0.8, 0.7), (0.9, 0.6)]
)
@pytest.mark.parametrize("true", [0.1, 0.5, 0.8])
def test_a_corrected_rate_holds_the_true_one(
    true: float, sensitivity: float, specificity: float
) -> None:
    draw = random.Random(f"{true}, {sensitivity}, {specificity}")
    raw = true * sensitivity + (1 - true) * (1 - specificity)

    def ruled(rate: float, size: int) -> Ruled:
        return Ruled(sum(draw.random() < rate for _ in range(size)) / size, size)

    held = []
    estimates = []
    for _ in range(300):
        corrected = corrected_rate(
            ruled(raw, 60), ruled(sensitivity, 30), ruled(specificity, 30)
        )
        if corrected is not None:
            rate, (low, high) = corrected
            estimates.append(rate)
            held.append(low <= true <= high)
    assert sum(held) / 300 >= 0.93
    assert sum(estimates) / 300 == pytest.approx(true, abs=0.04)
