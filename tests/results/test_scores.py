"""Verdicts on shares of checks: for cases with many assertions,
all-or-nothing hides a lift.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.results.arm_comparison import CaseChange
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.results.run_file import read_run, results_bytes, results_text
from pytest_upskill.results.summary import summarize
from pytest_upskill.results.verdict import Verdict
from pytest_upskill.settings import Gates
from pytest_upskill.stats import holm, paired_lift
from pytest_upskill.trials.records import Record
from support.made import checked_run, made_record, made_run, pair_of
from support.words import HELPS, HURTS, NOT_NEEDED, TOO_FEW

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


def test_the_chance_of_a_run_is_observed_for_shares() -> None:
    """Pass rates tell it themselves; shares vary less than zeros and ones."""
    records = runs_of("a", baseline=[0.2, 0.4], skill=[0.5, 0.5])
    records += runs_of("b", baseline=[0.0, 0.0], skill=[0.6, 0.8])
    row = summarize(
        records, pair_of("gate", "haiku"), model_id="m", not_run=0, score="checks"
    )
    assert row.scores(over="baseline") == [
        pytest.approx((0.3, 0.5)),
        pytest.approx((0.0, 0.7)),
    ]
    assert row.run_variance(over="baseline") == pytest.approx((0.02 + 0.02) / 2)
    assert replace(row, score="pass").run_variance(over="baseline") is None
    once = [record for record in records if record.run == 1]
    assert (
        summarize(
            once, pair_of("gate", "haiku"), model_id="m", not_run=0, score="checks"
        ).run_variance(over="baseline")
        is None
    )


# JSON, history, two runs.


def test_json_says_which_score_the_lift_is_of() -> None:
    report, other = (
        json.loads(results_text(checked_run(HIDDEN, score=score)))
        for score in ("checks", "pass")
    )
    (checks,), (rate,) = report["summary"], other["summary"]
    assert (checks["score"], rate["score"]) == ("checks", "pass")
    assert checks["score_lift"] == rate["score_lift"] == pytest.approx(31 / 42)
    assert checks["lift"] == pytest.approx(31 / 42)
    assert rate["lift"] == rate["rate_lift"] == checks["rate_lift"] == 0
    assert (checks["lift_low"], checks["lift_high"]) == (
        checks["score_lift_low"],
        checks["score_lift_high"],
    )
    assert (checks["rate_lift_low"], checks["rate_lift_high"]) == (
        rate["lift_low"],
        rate["lift_high"],
    )
    assert checks["p_value"] < 0.05 < rate["p_value"]
    assert (checks["verdict"], rate["verdict"]) == (HELPS, TOO_FEW)
    assert (checks["baseline_rate"], checks["skill_rate"]) == (0, 0)
    assert (checks["baseline_score"], checks["skill_score"]) == pytest.approx(
        (4 / 42, 35 / 42)
    )
    counts = [checks[f"{arm}checks_passed"] for arm in ("baseline_", "")]
    assert counts == [4, 35]
    assert checks["baseline_checks_total"] == checks["checks_total"] == 42
    assert report["by_case"][0]["baseline_score"] == 0
    assert report["by_case"][0]["skill_score"] == pytest.approx(6 / 7)


def test_a_run_keeps_its_score(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(results_bytes(checked_run(HIDDEN)))
    assert read_run(file).verdicts == checked_run(HIDDEN).verdicts


def test_two_runs_are_compared_by_the_score_of_the_later() -> None:
    before, after = checked_run([(0, 1)] * 6), checked_run([(0, 6)] * 6)
    (pair,) = compare_runs(before, after).pairs
    assert pair.score == "checks"
    assert (pair.before, pair.after) == pytest.approx((1 / 7, 6 / 7))
    assert pair.change
    assert pair.change.word == "better"
    assert pair.rose[0] == CaseChange("case-0", 1 / 7, 6 / 7)
    (by_passes,) = compare_runs(before, checked_run([(0, 6)] * 6, score="pass")).pairs
    assert by_passes.change
    assert by_passes.change.word == "no change shown"
    assert by_passes.change.other == "checks"


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12)
)
def test_both_scores_are_always_there_and_the_verdict_is_on_the_chosen(
    counts: list[tuple[int, int]],
) -> None:
    checks, rate = (
        only(checked_run(counts, score=score)) for score in ("checks", "pass")
    )
    one, other = checks.over("baseline"), rate.over("baseline")
    assert one
    assert other
    assert one.lifts == other.lifts
    assert (checks.lift, rate.lift) == (one.lifts["checks"], one.lifts["pass"])
    assert (checks.word in (HELPS, HURTS)) == one.lifts["checks"].shown


def test_a_test_still_fails_unless_all_required_checks_pass() -> None:
    results = checked_run([(0, 6), (0, 7)])
    assert [test.case for test in results.failed] == ["case-0"]
    assert made_run().skills[0].score == "pass"
