"""Cases compared with their accepted results, alone and together."""

import random
from dataclasses import replace

import pytest

from pytest_upskill.results.accepted import CaseResult
from pytest_upskill.results.regressions import (
    AcceptedComparison,
    Compared,
    compare,
    could_flip,
    standing_of,
)
from pytest_upskill.trials.plan import Count, Expectation, Group, PlannedCase
from support.made import pair_of
from support.simulated import passes

Counts = list[tuple[int, int]]
GROUP = Group(pair_of("gate", "m"), of_triggers=False)


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ((1, 5), (5, 5), "better"),
        ((1, 5), (0, 5), "accepted as failing"),
        ((5, 5), (3, 5), "passed"),
        ((1, 1), (0, 1), "could be chance"),
        ((1, 1), (1, 3), "could be chance"),
        ((10, 10), (7, 10), "passed"),
        ((8, 8), (0, 8), "could be chance"),  # it takes all cases of a run to say more
        ((2, 4), (2, 4), "accepted as failing"),  # half is not enough
    ],
)
def test_one_case_compared_with_its_accepted_result(
    was: tuple[int, int], now: tuple[int, int], kind: str
) -> None:
    expected = Expectation(Count(*was), "2026-01-02")
    assert standing_of(Count(*now), None, expected).kind == kind


@pytest.mark.parametrize(
    ("now", "threshold", "flips"),
    [
        ((2, 3), None, True),  # at most one of three passes: 26 %
        ((1, 3), None, True),
        ((6, 8), None, True),  # 11 %
        ((7, 8), None, False),  # 1 %
        ((7, 8), 0.75, True),  # 7 %
        ((7, 8), 1, True),
        ((3, 3), None, False),
        ((0, 3), None, False),
    ],
)
def test_which_cases_are_flaky(
    now: tuple[int, int], threshold: float | None, flips: bool
) -> None:
    assert could_flip(Count(*now), threshold) is flips


@pytest.mark.parametrize(
    ("was", "now", "regressed"),
    [
        ((1, 1), (0, 1), False),
        ((1, 1), (0, 30), False),
        # P = 0.022, but two runs are no evidence about one case
        ((2, 2), (0, 8), False),
        ((3, 3), (0, 5), True),
        ((5, 5), (0, 1), False),
        ((5, 5), (2, 5), False),
        ((10, 10), (2, 10), True),
    ],
)
def test_one_case_needs_three_accepted_runs(
    was: tuple[int, int], now: tuple[int, int], regressed: bool
) -> None:
    noisy = [(3, 5)] * 6  # so that it is not the whole
    found = compared([was, *noisy], [now, *[(4, 5)] * 6])
    assert names(found.regressed) == ("c0" if regressed else "")


def test_a_threshold_decides_what_passes() -> None:
    expected = Expectation(Count(3, 5), "2026-01-02")
    assert standing_of(Count(3, 5), 0.8, expected).kind == "accepted as failing"
    assert standing_of(Count(3, 5), 0.6, expected).kind == "passed"


def compared(accepted: Counts, present: Counts) -> AcceptedComparison:
    cases = [
        Compared(
            PlannedCase(
                f"n{number}",
                "gate",
                f"c{number}",
                "m",
                expected=Expectation(Count(*was), "2026-01-02"),
            ),
            CaseResult(*now, 0, 9, f"d{number}"),
        )
        for number, (was, now) in enumerate(zip(accepted, present, strict=True))
    ]
    return compare({GROUP: cases})[0]


def names(cases: tuple[Compared, ...]) -> str:
    return " ".join(case.test.case for case in cases)


def test_in_a_collapse_all_cases_that_fell_regressed() -> None:
    """None of them alone could show it."""
    found = compared([(4, 5)] * 9, [(0, 5)] * 4 + [(5, 5)] + [(0, 5)] * 4)
    assert (found.worse, bool(found.together)) == ((), True)
    assert names(found.regressed) == "c0 c1 c2 c3 c5 c6 c7 c8"
    assert (
        found.standing(found.cases[0]).reason
        == "regression of the skill as a whole: 0 of 5 passed (accepted: 4 of 5,"
        " 2026-01-02)"
    )
    assert found.of_kind("could be chance") == ()
    assert len(found.reasons) == 1


def test_cases_that_still_pass_or_were_accepted_as_failing_can_fall_too() -> None:
    found = compared([(5, 5)] * 9 + [(2, 5)], [(4, 5)] * 8 + [(5, 5), (0, 5)])
    assert found.together
    assert names(found.regressed) == "c0 c1 c2 c3 c4 c5 c6 c7 c9"


def test_one_broken_case_does_not_condemn_the_others() -> None:
    found = compared([(8, 8)] * 5, [(0, 8), (7, 8), (8, 8), (8, 8), (8, 8)])
    assert not found.together
    assert names(found.regressed) == "c0"


def test_a_broken_case_and_a_drop_of_all_others_are_two_regressions() -> None:
    found = compared([(8, 8)] * 12, [(0, 8)] + [(6, 8)] * 11)
    assert names(found.worse) == "c0"
    assert len(found.regressed) == 12
    assert "regression: 0 of 8" in found.standing(found.cases[0]).reason
    assert (
        "of the other cases together: 6 of 8" in found.standing(found.cases[1]).reason
    )


def test_a_test_that_failed_stays_a_regression_in_a_stopped_run() -> None:
    first = compared([(3, 3)], [(0, 3)]).cases[0]
    decided = replace(
        first, test=replace(first.test, regression="regression of the skill")
    )
    (stopped,) = compare({GROUP: [decided]})
    assert names(stopped.regressed) == "c0"
    assert stopped.reasons == ["gate on m: c0: regression of the skill"]


@pytest.mark.parametrize(
    ("cases", "runs"),
    [
        (12, 3),
        *(
            pytest.param(*size, marks=pytest.mark.nightly)
            for size in ((40, 5), (8, 10))
        ),
    ],
)
@pytest.mark.parametrize(("a", "b"), [(1, 1), (5, 1), (5, 5)])
def test_an_unchanged_skill_fails_a_test_in_at_most_five_percent(
    cases: int, runs: int, a: float, b: float
) -> None:
    draw = random.Random(7)
    chances = [draw.betavariate(a, b) for _ in range(cases)]
    alarms = 0
    for _ in range(300):
        was, now = [
            [(passes(draw, own, runs), runs) for own in chances] for _ in range(2)
        ]
        alarms += bool(compared(was, now).regressed)
    assert alarms / 300 <= 0.05
