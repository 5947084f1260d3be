"""One comparison for lift, versions and runs: cases are paired, and are the sample."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import form_of, json_values
from pytest_upskill.results.comparison import (
    CasePair,
    CaseResult,
    Cases,
    Comparison,
    adjust_for_models,
    compare,
    find_fallen,
    find_risen,
    lift_results,
    with_fallen,
)
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.stats import holm, paired_lift, paired_ratio
from pytest_upskill.trials.plan import Count
from support.made import accepted_count, made_run

Counts = Sequence[tuple[int, int]]  # passes of each case, before and now


def results(scores: Mapping[str, float], tokens: float = 100.0) -> Cases:
    """Cases by name; those with the same first letter are one sample."""
    return {
        case: CaseResult(score, {"tokens": tokens}, sample=case[0])
        for case, score in scores.items()
    }


def made(before: Sequence[float], after: Sequence[float]) -> Comparison:
    names = "abcdefghijklmnopqrstuvwxyz"
    comparison = compare(
        [results(dict(zip(names, before, strict=False)))],
        [results(dict(zip(names, after, strict=False)), tokens=50.0)],
    )
    assert comparison
    return comparison


# Cases are the sample.

RATES = st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 1.0]), min_size=2, max_size=12)


@given(RATES, st.randoms(use_true_random=False))
def test_lift_is_that_of_the_differences_of_cases(
    before: list[float], random: Random
) -> None:
    after = random.sample(before, len(before))
    comparison = made(before, after)
    differences = [now - was for was, now in zip(before, after, strict=True)]
    assert comparison.lift == paired_lift(differences)
    assert comparison.differences == differences


def test_cases_of_one_sample_count_once_and_then_models_do() -> None:
    """A group of two cases on one model, and one of them on another."""
    before = [results({"a1": 0, "a2": 0, "b": 0}), results({"a1": 0})]
    after = [results({"a1": 1, "a2": 0, "b": 1}), results({"a1": 0})]
    comparison = compare(before, after)
    assert comparison
    # 0.5 on the first model, 0 on the second
    assert sorted(comparison.differences) == [0.25, 1.0]


def test_only_cases_in_both_sets_are_paired() -> None:
    comparison = compare([results({"a": 0, "b": 1})], [results({"b": 0, "c": 1})])
    assert comparison
    assert comparison.differences == [-1.0]
    assert compare([results({"a": 0})], [results({"c": 1})]) is None
    assert compare([], []) is None


def test_lifts_are_compared_like_scores() -> None:
    lifts = lift_results(results({"a": 1.0, "b": 0.5}), results({"a": 0.0, "c": 0.0}))
    assert {case: result.score for case, result in lifts.items()} == {"a": 1.0}


@given(RATES, st.integers(1, 4), st.randoms(use_true_random=False))
def test_naming_the_same_model_again_changes_nothing(
    before: list[float], times: int, random: Random
) -> None:
    names = [f"{chr(97 + number)}" for number in range(len(before))]
    old = results(dict(zip(names, before, strict=True)))
    new = results({name: random.random() for name in names}, tokens=70.0)
    once = compare([old], [new])
    again = compare([old] * times, [new] * times)
    assert once
    assert again
    assert again.lift == pytest.approx(once.lift)
    assert again.tokens == pytest.approx(once.tokens)


def share_shown(models: int, lift: float, *, skills: int, cases: int = 10) -> float:
    """How often a lift is shown, of one run on models of about the same rates."""
    draw = Random(f"{models} {lift}")
    shown = 0
    for _ in range(skills):
        chances = {}
        for number in range(cases):
            baseline = draw.random()
            chances[str(number)] = (baseline, min(1.0, baseline + lift))

        sets: tuple[list[Cases], list[Cases]] = ([], [])
        for _ in range(models):
            for arm, cases_of_arm in enumerate(sets):
                passed = {
                    name: CaseResult(float(draw.random() < chance[arm]), {}, name)
                    for name, chance in chances.items()
                }
                cases_of_arm.append(passed)
        comparison = compare(*sets)
        assert comparison
        shown += comparison.lift.shown
    return shown / skills


@pytest.mark.parametrize("skills", [150, pytest.param(2000, marks=pytest.mark.nightly)])
def test_naming_more_models_shows_more_and_no_more_that_is_false(skills: int) -> None:
    shown = [share_shown(models, lift=0.17, skills=skills) for models in (1, 3, 8)]
    assert shown == pytest.approx([0.05, 0.22, 0.57], abs=0.02 + 1.1 / skills**0.5)
    assert shown == sorted(shown)
    for models in (1, 3, 8):
        margin = 1.8 * (0.05 * 0.95 / skills) ** 0.5
        assert share_shown(models, lift=0.0, skills=skills) <= 0.05 + margin


def test_claims_about_single_models_are_adjusted_for_their_number() -> None:
    strong = made([0] * 12, [1] * 12)
    weak = made([0] * 6 + [1] * 2, [1] * 6 + [1] * 2)
    alone = [strong.lift.p_value, weak.lift.p_value]
    first, missing, second = adjust_for_models([strong, None, weak])
    assert first
    assert second
    assert missing is None
    assert [first.lift.p_value, second.lift.p_value] == pytest.approx(holm(alone))
    assert first.changes == strong.changes


def test_amounts_are_ratios_of_cases_and_need_all_of_them() -> None:
    comparison = made([0, 1, 1], [1, 1, 1])
    assert comparison.tokens == paired_ratio([-0.6931471805599453] * 3)
    assert set(comparison.changes) == {"tokens"}

    free = results({"a": 1, "b": 1})
    free = {**free, "a": replace(free["a"], amounts={"tokens": 0.0})}
    unknown = compare([free], [results({"a": 1, "b": 1})])
    assert unknown
    assert unknown.changes == {}


# Runs are the sample.


def case_pairs(counts: Counts, runs: int) -> list[CasePair]:
    return [
        CasePair(f"case-{number}", Count(before, runs), Count(now, runs))
        for number, (before, now) in enumerate(counts)
    ]


def find(counts: Counts, runs: int) -> tuple[str, ...]:
    fallen = find_fallen({"skill": case_pairs(counts, runs)})["skill"]
    return fallen.names if fallen else ()


FALLS = [
    # Always passed, and failed five times: by itself
    ([(5, 0)], 5, ("case-0",)),
    ([(3, 0), (3, 3)], 3, ()),
    # Many that fell a little: together
    ([(5, 3)] * 4 + [(5, 5)], 5, ("case-0", "case-1", "case-2", "case-3")),
    ([(5, 4), (4, 5), (5, 5), (5, 5)], 5, ()),
    ([(1, 0)] * 6 + [(1, 1)] * 4, 1, tuple(f"case-{n}" for n in range(6))),
    ([(1, 0)] * 4 + [(1, 1)] * 6, 1, ()),
]


@pytest.mark.parametrize(("counts", "runs", "names"), FALLS)
def test_cases_fell_by_one_rule_everywhere(
    counts: Counts, runs: int, names: tuple[str, ...]
) -> None:
    """Accepted results, --skill-against and ``report A B`` say the same."""
    assert find(counts, runs) == names
    assert find_accepted(counts, runs) == names
    assert find_since_ref(counts, runs) == names
    assert find_between_runs(counts, runs) == names


def find_accepted(counts: Counts, runs: int) -> tuple[str, ...]:
    def passes(case: int, _model: str, arm: str, run: int) -> bool:
        return arm == "skill" and run <= counts[case][1]

    accepted = {}
    for number, (before, _) in enumerate(counts):
        accepted[number] = accepted_count(before, runs)
    made = made_run(cases=len(counts), runs=runs, passes=passes, accepted=accepted)
    (comparison,) = made.comparisons
    return tuple(pair.case for pair in comparison.regressed)


def find_since_ref(counts: Counts, runs: int) -> tuple[str, ...]:
    def passes(case: int, _model: str, arm: str, run: int) -> bool:
        return run <= counts[case][arm == "skill"]

    run = made_run(
        cases=len(counts), runs=runs, passes=passes, arms=("previous", "skill")
    )
    since = run.rows[0].over("previous")
    assert since
    assert (since.word == "worse") == (since.fallen is not None)
    return since.fallen.names if since.fallen else ()


def find_between_runs(counts: Counts, runs: int) -> tuple[str, ...]:
    sides = []
    for side in (0, 1):

        def passes(case: int, _m: str, arm: str, run: int, side: int = side) -> bool:
            return arm == "skill" and run <= counts[case][side]

        sides.append(made_run(cases=len(counts), runs=runs, passes=passes))
    (pair,) = compare_runs(*sides).pairs
    assert pair.change
    assert (pair.change.word == "worse") == (pair.change.fallen is not None)
    return pair.change.fallen.names if pair.change.fallen else ()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_what_rose_would_have_fallen_the_other_way(counts: Counts) -> None:
    pairs = {"skill": case_pairs(counts, 5)}
    turned = {"skill": case_pairs([(now, before) for before, now in counts], 5)}
    assert find_risen(pairs) == find_fallen(turned)
    fallen = find_fallen(pairs)["skill"]
    if fallen:
        worse = {f"case-{n}" for n, (before, now) in enumerate(counts) if now < before}
        assert fallen.names
        assert worse.issuperset(fallen.names)


def test_cases_that_ask_the_same_are_no_evidence_of_a_fall() -> None:
    pairs = case_pairs([(5, 3)] * 4, runs=5)
    copies = [pair._replace(sample="same") for pair in pairs]
    assert find_fallen({"skill": pairs})["skill"]
    assert find_fallen({"skill": copies})["skill"] is None


def test_more_skills_take_more_evidence() -> None:
    weak = case_pairs([(1, 0)] * 6 + [(1, 1)] * 4, runs=1)
    mixed = case_pairs([(1, 0), (0, 1)] * 6, runs=1)
    assert find_fallen({"a": weak})["a"]
    assert find_fallen({"a": weak, "b": mixed}) == {"a": None, "b": None}


def test_loss_of_a_version_is_shown_only_by_cases_that_fell() -> None:
    lost = made([1] * 8, [0] * 8)
    assert lost.word == "worse"
    kept = with_fallen(lost, None)
    assert kept.word == "no change shown"
    assert (kept.lift.high, kept.lift.shown) == (0.0, False)
    assert kept.lift.p_value >= 0.05

    fallen = find_fallen({"skill": case_pairs([(5, 0)], 5)})["skill"]
    better = with_fallen(made([0] * 8, [1] * 8), fallen)
    assert better.word == "worse"


def test_fall_of_many_runs_is_read_back() -> None:
    fallen = find_fallen({"skill": case_pairs([(3, 2)] * 400, runs=3)})["skill"]
    comparison = with_fallen(made([1] * 8, [0] * 8), fallen)
    again = form_of(Comparison).validate_python(json_values(comparison))
    assert again.fallen == fallen
    assert fmean(again.lift) == pytest.approx(fmean(comparison.lift))
