"""A model that got worse since results were accepted: what its baseline explains,
and what not.
"""

import random
from collections.abc import Sequence

import pytest

from pytest_upskill.results.regressions import AcceptedComparison, Compared, compare
from pytest_upskill.settings import OnDrift
from pytest_upskill.stats import CasePasses, fell_together, lift_change
from pytest_upskill.trials.plan import Count, Expectation, Group, PlannedCase
from support.made import pair_of
from support.simulated import passes

RUNS = 5
# With the skill and without, then and now; of five runs
Passes = tuple[int, int, int, int]


def compared(
    cases: Sequence[Passes], drift: OnDrift = "fail", *, sample: str = ""
) -> AcceptedComparison:
    group = Group(pair_of("gate", "m"), of_triggers=False)
    made = []
    for number, (skill, baseline, skill_now, baseline_now) in enumerate(cases):
        then = Count(skill, RUNS), "2026-01-02", "", Count(baseline, RUNS), "m-1", drift
        test = PlannedCase(
            *(f"n{number}", "gate", f"c{number}", "m"),
            expected=Expectation(*then),
            sample=f"{sample}{number % 8}" if sample else "",
        )
        now = Count(skill_now, RUNS), Count(baseline_now, RUNS)
        made.append(Compared(test, *now))
    return compare({group: made}, {"m": "m-2"})[0]


FALLEN = [(5, 4, 2, 1)] * 8


def test_a_drift_is_one_reason_with_both_rates_and_ids() -> None:
    found = compared(FALLEN)
    assert found.reasons == [
        (
            "gate on m: the model got worse (baseline 80 → 20), no change of the lift"
            " is shown (+20 → +20; change -26 to +26); it was m-1, and is now m-2"
        )
    ]
    assert len(found.regressed) == 8
    assert not found.worse
    warned = compared(FALLEN, "warn")
    assert (warned.reasons, len(warned.of_kind("drifted"))) == ([], 8)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (FALLEN * 3, "the skill's lift is unchanged (+20 → +20; change -15 to +15)"),
        (
            [(5, 4, 1, 1)] * 8,
            "no change of the lift is shown (+20 → 0; change -45 to +5)",
        ),
        ([(5, 4, 0, 1)] * 8, "the skill's lift was +20 and is now -20"),
        ([(5, 4, 5, 1)] * 8, "the skill's lift was +20 and is now +80"),
    ],
)
def test_a_lift_is_called_unchanged_if_its_interval_is_narrow(
    cases: list[Passes], words: str
) -> None:
    drift = compared(cases).drift
    assert drift
    assert f", {words}; it was" in drift.words
    assert drift.fails == drift.explains


def test_cases_that_ask_the_same_are_one() -> None:
    drift = compared(FALLEN * 3, sample="question").drift
    assert drift
    assert (
        "no change of the lift is shown (+20 → +20; change -26 to +26)" in drift.words
    )


def test_a_case_whose_own_lift_fell_regressed_all_the_same() -> None:
    found = compared([*FALLEN, (5, 0, 0, 0)], "warn")
    assert [case.test.case for case in found.regressed] == ["c8"]
    assert len(found.reasons) == 1
    assert found.drift
    assert found.drift.explains


def test_five_failures_are_the_models_if_its_baseline_fell_too() -> None:
    cases = [*FALLEN, (5, 5, 0, 0)]
    failed, warned = compared(cases), compared(cases, "warn")
    standing = failed.standing(failed.cases[8])
    assert standing.kind == "regressed"
    assert standing.reason.startswith("the model got worse, without the skill, too: 0")
    assert warned.standing(warned.cases[8]).kind == "drifted"


def test_five_failures_without_a_drift_are_red_and_name_the_baseline() -> None:
    found = compared([(5, 5, 5, 5)] * 7 + [(5, 1, 0, 0)], "warn")
    assert found.drift is None
    (reason,) = found.reasons
    assert reason == (
        "gate on m: regression: c7: 0 of 5 passed (accepted: 5 of 5, 2026-01-02);"
        " without the skill 0 of 5 (accepted: 1 of 5)"
    )


@pytest.mark.parametrize(
    "cases",
    [[(5, 1, 2, 1)] * 8, [(5, 4, 1, 3)] * 8, [(5, 1, 2, 1)] * 7 + [(5, 5, 0, 0)]],
)
def test_a_baseline_that_hardly_fell_explains_nothing(cases: list[Passes]) -> None:
    found = compared(cases, "warn")
    assert found.together
    assert not found.of_kind("drifted")


@pytest.mark.parametrize(
    ("now", "falls"),
    [((0.3, 0.7), (0.0, 0.08)), ((0.1, 0.5), (0.0, 0.08)), ((0.3, 0.4), (0.8, 1.0))],
)
def test_how_often_a_fall_of_the_lift_is_shown(
    now: tuple[float, float], falls: tuple[float, float]
) -> None:
    """From 30 % to 70 %; then both unchanged, both 20 points lower,
    or the skill alone 30 lower.
    """
    draw, draws = random.Random(1), 300

    def arm(before: float, after: float) -> CasePasses:
        return CasePasses(
            (passes(draw, before, RUNS), RUNS), (passes(draw, after, RUNS), RUNS)
        )

    shown = [
        lift_change([(arm(0.7, now[1]), arm(0.3, now[0])) for _ in range(20)]).p_fell
        <= 0.05
        for _ in range(draws)
    ]
    assert falls[0] <= sum(shown) / draws <= falls[1]


def test_baselines_of_a_run_are_judged_together() -> None:
    fallen = [CasePasses((5, 5), (3, 5))] * 3
    same = [CasePasses((5, 5), (5, 5))] * 3
    assert fell_together([fallen, same, []]) == [True, False, False]
    assert fell_together([fallen[:2]] * 20) == [False] * 20


def test_how_often_the_interval_holds_the_change_of_the_lift() -> None:
    """Of 12 cases whose lift falls from 40 points to 20."""
    draw, draws = random.Random(1), 300

    def arm(before: float, after: float) -> CasePasses:
        return CasePasses(
            (passes(draw, before, RUNS), RUNS), (passes(draw, after, RUNS), RUNS)
        )

    changes = [
        lift_change([(arm(0.9, 0.6), arm(0.5, 0.4)) for _ in range(12)])
        for _ in range(draws)
    ]
    assert (
        0.93
        <= sum(change.low < -0.2 < change.high for change in changes) / draws
        <= 0.99
    )
