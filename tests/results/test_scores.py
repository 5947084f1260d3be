"""Verdicts on shares of checks: for cases with many assertions, all-or-nothing hides a lift."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.results.from_json import read_run
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import CaseChange, compare_runs
from pytest_upskill.results.summarizing import summarize
from pytest_upskill.results.to_json import results_bytes, results_text
from pytest_upskill.results.verdict import Verdict, signal_lines, sweet_spot
from pytest_upskill.settings import Gates
from pytest_upskill.stats import holm, paired_lift
from pytest_upskill.trials.records import Record
from support.made import checked_run, made_record, made_row, made_run

HIDDEN = [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)]  # of 7: no case passes in either arm


def only(results: RunResults) -> Verdict:
    (verdict,) = results.verdicts
    return verdict


def test_a_lift_of_checks_is_shown_where_no_case_passes() -> None:
    verdict = only(checked_run(HIDDEN))
    assert verdict.word == "helps"
    assert verdict.lift
    shares = [(without / 7, with_it / 7) for without, with_it in HIDDEN]
    assert verdict.lift == paired_lift(shares, 1)
    assert verdict.summary.lift == pytest.approx(verdict.lift.lift)
    assert verdict.sentence == (
        "+74 points of checks (+40 to +86), 0 of pass rate (-46 to +46), 200% more tokens"
    )
    over = verdict.over("baseline")
    assert over
    assert over.lifts["pass"] == paired_lift([(0, 0)] * 6, 1)


def test_the_pass_rate_decides_if_it_is_the_score() -> None:
    verdict = only(checked_run(HIDDEN, score="pass"))
    assert verdict.word == "no effect shown"
    assert verdict.sentence.startswith(
        "0 points of pass rate (-46 to +46), +74 of checks (+40 to +86), 200% more tokens; "
    )


def test_the_share_is_not_told_twice() -> None:
    """With one check each, passing and passing all checks are the same."""
    verdict = only(checked_run([(0, 1)] * 6, of=1, score="pass"))
    assert verdict.sentence.startswith("+100 points (+")
    assert "checks" not in verdict.sentence
    assert "pass rate" not in only(checked_run([(0, 1)] * 6, of=1)).sentence


@pytest.mark.parametrize("cases", [1, 2, 3, 4])
def test_few_cases_show_nothing_and_say_so(cases: int) -> None:
    """Equal differences have no spread, and still are only a few."""
    verdict = only(checked_run([(0, 6)] * cases))
    assert verdict.word == "no effect shown"
    assert verdict.lift
    assert verdict.lift.low <= 0
    assert verdict.lift.high > 0.9
    assert f"{cases} case{'s are' if cases > 1 else ' is'} too few to show any lift" in (
        verdict.sentence
    )
    assert verdict.detectable_lift is None


def test_words_say_what_points_and_percentages_are_of() -> None:
    needless = only(checked_run([(7, 7), (7, 7), (7, 7), (7, 7), (6, 7), (7, 6)]))
    assert needless.word == "not needed"
    assert "98% of checks pass without it" in needless.sentence
    unclear = only(checked_run([(1, 6), (6, 1), (3, 4), (2, 6), (5, 4), (0, 4)]))
    assert unclear.word == "no effect shown"
    assert unclear.sentence.endswith(" points of checks would show")
    alone = only(checked_run(HIDDEN, arms=("skill",)))
    assert alone.sentence == "83% of checks pass with the skill (0% of cases)"
    other = only(checked_run(HIDDEN, arms=("skill",), score="pass"))
    assert other.sentence == "0% pass with the skill (83% of checks)"


def test_signals_are_of_checks() -> None:
    verdict = only(checked_run([(5, 3), (7, 7), (0, 0), (1, 6), (6, 7), (0, 3)]))
    assert signal_lines(verdict) == [
        "fewer checks pass with the skill: case-0",
        "all checks pass even without the skill: case-1",
        "no check passes even with the skill: case-2",
    ]
    assert verdict.gain == pytest.approx((26 - 19) / (42 - 19))


@pytest.mark.parametrize(
    ("gates", "reasons"),
    [
        (Gates(min_lift=0.7), []),
        (Gates(min_lift=0.8), ["lift of checks is +74 points (minimum +80)"]),
        (
            Gates(min_lift=0.5, confident=True),
            ["lowest likely lift of checks is +40 points (minimum +50)"],
        ),
        (Gates(min_pass_rate=0.5), ["pass rate is 0% (minimum 50%)"]),  # of cases, as ever
    ],
)
def test_the_gate_of_the_lift_is_of_checks(gates: Gates, reasons: list[str]) -> None:
    results = checked_run(HIDDEN, gates=gates)
    assert results.gate == [f"gate on haiku: {reason}" for reason in reasons]


def test_several_models_are_adjusted_for_both_scores() -> None:
    results = checked_run([(0, 2), (1, 2), (0, 1), (1, 2), (0, 2), (1, 1)], models=("a", "b", "c"))
    alone = paired_lift([(0, 2 / 7), (1 / 7, 2 / 7), (0, 1 / 7), (1 / 7, 2 / 7)], 1)
    assert alone.p_value > 0.05
    one = only(checked_run([(0, 2), (1, 2), (0, 1), (1, 2), (0, 2), (1, 1)]))
    assert one.lift
    for verdict in results.verdicts:
        assert verdict.lift
        assert verdict.lift.p_value == pytest.approx(holm([one.lift.p_value] * 3)[0])
        assert not verdict.lift.shown


def test_the_sweet_spot_is_of_checks() -> None:
    results = checked_run(HIDDEN, models=("cheap", "dear"))
    priced = [
        replace(record, cost=0.001 if record.model == "cheap" else 0.01)
        for record in results.records
    ]
    spot = sweet_spot(replace(results, records=tuple(priced)).verdicts)
    assert spot == "cheap with the skill (83% of checks) is the best and the cheapest."


def test_the_skill_at_a_git_ref_is_compared_by_checks() -> None:
    made = checked_run(HIDDEN, arms=("baseline", "previous", "skill"))
    # The arm ``previous`` does as well as the baseline.
    verdict = only(replace(made, skills=(replace(made.skills[0], against="main"),)))
    assert verdict.since
    assert verdict.since.startswith("since main: better, +74 points of checks (+40 to +86)")


# Several runs.


def runs_of(case: str, **shares: list[float]) -> list[Record]:
    return [
        made_record("gate", case, "haiku", arm, run, passed=share == 1, score=share)  # type: ignore[arg-type]
        for arm, own in shares.items()
        for run, share in enumerate(own, start=1)
    ]


def test_the_chance_of_a_run_is_observed_for_shares() -> None:
    """Pass rates tell it themselves; shares vary less than zeros and ones."""
    records = runs_of("a", baseline=[0.2, 0.4], skill=[0.5, 0.5])
    records += runs_of("b", baseline=[0.0, 0.0], skill=[0.6, 0.8])
    row = summarize(records, "gate", "haiku", model_id="m", not_run=0, score="checks")
    assert row.scores(over="baseline") == [
        pytest.approx((0.3, 0.5)),
        pytest.approx((0.0, 0.7)),
    ]
    assert row.chance(over="baseline") == pytest.approx((0.02 + 0.02) / 2)
    assert replace(row, score="pass").chance(over="baseline") is None
    once = [record for record in records if record.run == 1]
    assert (
        summarize(once, "gate", "haiku", model_id="m", not_run=0, score="checks").chance(
            over="baseline"
        )
        is None
    )


# JSON, history, two runs.


def test_json_says_which_score_the_lift_is_of() -> None:
    checks, rate = (
        json.loads(results_text(checked_run(HIDDEN, score=score)))["summary"][0]
        for score in ("checks", "pass")
    )
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
    assert (checks["verdict"], rate["verdict"]) == ("helps", "no effect shown")
    assert (checks["baseline_rate"], checks["skill_rate"]) == (0, 0)
    assert (checks["baseline_score"], checks["skill_score"]) == pytest.approx((4 / 42, 35 / 42))
    counts = [checks[f"{arm}checks_passed"] for arm in ("baseline_", "")]
    assert counts == [4, 35]
    assert checks["baseline_checks_total"] == checks["checks_total"] == 42
    assert checks["by_case"][0]["baseline_score"] == 0
    assert checks["by_case"][0]["skill_score"] == pytest.approx(6 / 7)


def test_a_run_of_an_earlier_version_is_scored_by_passes(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(results_bytes(checked_run(HIDDEN)))
    assert read_run(file).verdicts[0].word == "helps"
    data = json.loads(file.read_bytes())
    del data["skills"][0]["score"]
    file.write_text(json.dumps(data))
    old = read_run(file)
    assert old.skills[0].score == "pass"
    assert old.verdicts[0].word == "no effect shown"


def test_a_kept_row_of_an_earlier_version_has_just_rates() -> None:
    row = made_row()
    assert (row.score, row.skill_score, row.rate_lift) == ("pass", None, None)


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
    assert by_passes.change.other_words.startswith("+71 of checks (+")


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12))
def test_both_scores_are_always_there_and_the_verdict_is_on_the_chosen(
    counts: list[tuple[int, int]],
) -> None:
    checks, rate = (only(checked_run(counts, score=score)) for score in ("checks", "pass"))
    one, other = checks.over("baseline"), rate.over("baseline")
    assert one
    assert other
    assert one.lifts == other.lifts
    assert (checks.lift, rate.lift) == (one.lifts["checks"], one.lifts["pass"])
    assert (checks.word in ("helps", "hurts")) == one.lifts["checks"].shown
    if checks.summary.errored == 0 and one.other is None:
        assert checks.lift
        assert " of pass rate" not in checks.sentence


def test_a_test_still_fails_unless_all_required_checks_pass() -> None:
    results = checked_run([(0, 6), (0, 7)])
    assert [test.case for test in results.failed] == ["case-0"]
    assert made_run().skills[0].score == "pass"
