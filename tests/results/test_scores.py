"""Verdicts on shares of checks: for cases with many assertions,
all-or-nothing hides a lift.
"""

from dataclasses import replace

import pytest

from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import Verdict
from pytest_upskill.settings import Gates
from pytest_upskill.stats import holm, paired_lift
from pytest_upskill.trials.records import Record
from support.made import checked_run, made_record
from support.words import HELPS, NOT_NEEDED, TOO_FEW

# Of 7: no case passes in either arm
HIDDEN = [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)]


def only(results: RunResults) -> Verdict:
    (verdict,) = results.verdicts
    return verdict


def test_a_lift_of_checks_is_shown_where_no_case_passes() -> None:
    verdict = only(checked_run(HIDDEN))
    assert verdict.word == HELPS
    assert verdict.lift
    shares = [(without / 7, with_it / 7) for without, with_it in HIDDEN]
    assert verdict.lift == paired_lift(shares, 1)
    assert verdict.summary.lift == pytest.approx(verdict.lift.lift)
    over = verdict.over("baseline")
    assert over
    assert over.lifts["pass"] == paired_lift([(0, 0)] * 6, 1)


def test_the_pass_rate_decides_if_it_is_the_score() -> None:
    verdict = only(checked_run(HIDDEN, score="pass"))
    assert verdict.word == TOO_FEW
    assert verdict.lift == paired_lift([(0, 0)] * 6, 1)


@pytest.mark.parametrize("cases", [1, 4])
def test_few_cases_show_nothing(cases: int) -> None:
    """Equal differences have no spread, and still are only a few."""
    verdict = only(checked_run([(0, 6)] * cases))
    assert verdict.word == TOO_FEW
    assert verdict.lift
    assert verdict.lift.low <= 0
    assert verdict.lift.high > 0.9
    assert verdict.detectable_lift is None


def test_a_skill_is_not_needed_if_most_checks_pass_without_it() -> None:
    needless = checked_run([(7, 7)] * 18 + [(6, 7), (7, 6)])
    assert only(needless).word == NOT_NEEDED


def test_signals_are_of_checks() -> None:
    verdict = only(checked_run([(5, 3), (7, 7), (0, 0), (1, 6), (6, 7), (0, 3)]))
    assert (verdict.worse, verdict.always_pass, verdict.always_fail) == (
        ("case-0",),
        ("case-1",),
        ("case-2",),
    )
    assert verdict.gain == pytest.approx((26 - 19) / (42 - 19))


@pytest.mark.parametrize(
    ("gates", "passed"),
    [
        (Gates(min_lift=0.7), True),
        (Gates(min_lift=0.8), False),
        (Gates(min_lift=0.5, confident=True), False),
        (Gates(min_pass_rate=0.5), False),  # of cases, as ever
    ],
)
def test_the_gate_of_the_lift_is_of_checks(gates: Gates, passed: bool) -> None:
    assert checked_run(HIDDEN, gates=gates).gate.passed is passed


def test_several_models_are_adjusted_for_both_scores() -> None:
    results = checked_run(
        [(0, 2), (1, 2), (0, 1), (1, 2), (0, 2), (1, 1)], models=("a", "b", "c")
    )
    alone = paired_lift([(0, 2 / 7), (1 / 7, 2 / 7), (0, 1 / 7), (1 / 7, 2 / 7)], 1)
    assert alone.p_value > 0.05
    one = only(checked_run([(0, 2), (1, 2), (0, 1), (1, 2), (0, 2), (1, 1)]))
    assert one.lift
    for verdict in results.verdicts:
        assert verdict.lift
        assert verdict.lift.p_value == pytest.approx(holm([one.lift.p_value] * 3)[0])
        assert not verdict.lift.shown


def test_the_skill_at_a_git_ref_is_compared_by_checks() -> None:
    made = checked_run(HIDDEN, arms=("baseline", "previous", "skill"))
    # The arm ``previous`` does as well as the baseline.
    verdict = only(replace(made, skills=(replace(made.skills[0], against="main"),)))
    over = verdict.over("previous")
    assert over
    assert (over.score, over.lift) == ("checks", verdict.lift)


# Several runs.


def runs_of(case: str, **shares: list[float]) -> list[Record]:
    return [
        made_record("gate", case, "haiku", arm, run, passed=share == 1, score=share)
        for arm, own in shares.items()
        for run, share in enumerate(own, start=1)
    ]
