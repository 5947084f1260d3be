"""Records become rates, amounts and counts of a skill on a model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.models.prices import FREE, Price, cost
from pytest_upskill.results.row import Row
from pytest_upskill.results.summary import RowFacts, summarize
from pytest_upskill.results.verdict import judge_rows
from pytest_upskill.trials.plan import PlannedCase
from pytest_upskill.trials.records import Grade, Record
from support.made import made_records, pair_of


def in_one_group(*cases: str) -> dict[str, PlannedCase]:
    """The cases as they were planned, all of the group x."""
    return {
        case: PlannedCase(case, "gate", case, "haiku", case_group="x") for case in cases
    }


def records(case: str, baseline: str, skill: str, **more: Any) -> list[Record]:
    return made_records({"baseline": baseline, "skill": skill}, case, **more)


def records_of(cases: Sequence[tuple[str, str]], **more: Any) -> list[Record]:
    rows = []
    for number, (baseline, skill) in enumerate(cases):
        rows += records(str(number), baseline, skill, **more)
    return rows


def record(arm: str, case: str = "a", **more: Any) -> Record:
    return Record("gate", case, "haiku", arm, 1, **{"outcome": "passed", **more})


def summed(rows: Sequence[Record], **facts: Any) -> Row:
    row = summarize(rows, pair_of("gate", "haiku"), RowFacts(**{"tests": {}, **facts}))
    (judged,) = judge_rows([row], {})
    return judged


def rates(rows: Sequence[Record]) -> tuple[float | None, float | None]:
    row = summed(rows)
    return row.baseline_rate, row.skill_rate


# Rates.


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([("F", "P"), ("F", "P"), ("P", "P"), ("F", "F")], (0.25, 0.75)),
        # The case weighs the same, however many runs it has
        ([("FFFF", "PPPP"), ("FEFE", "FEEF")], (0, 0.5)),
        ([("FFFF", "PPFF"), ("PPPP", "PPPP")], (0.5, 0.75)),
        # A trial without an answer takes its partner with it
        ([("PF", "EP")], (0, 1)),
        ([("EF", "EP")], (0, 1)),
        ([("F", "P"), ("E", "F"), ("P", "E"), ("", "F")], (0, 1)),
        ([("E", "P"), ("E", "P")], (None, None)),
        ([("", "P"), ("", "F")], (None, 0.5)),
        ([], (None, None)),
    ],
)
def test_rates_are_means_over_complete_runs_and_then_over_cases(
    cases: list[tuple[str, str]], expected: tuple[float | None, float | None]
) -> None:
    assert rates(records_of(cases)) == expected


def test_cases_of_a_group_count_once() -> None:
    rows = records_of([("F", "P"), ("F", "P"), ("F", "F")])
    row = summed(rows, tests=in_one_group("0", "1"))
    assert (row.cases, row.samples, row.lift) == (3, 2, 0.5)


@pytest.mark.parametrize(
    ("cases", "facts", "bounds"),
    [
        ([("F", "P"), ("F", "F")], {}, None),
        ([("F", "P"), ("F", "E")], {}, (0.5, 1)),
        ([("F", "P"), ("E", "F")], {}, (0, 0.5)),
        ([("FF", "PP"), ("FP", "EP")], {}, (0.5, 0.75)),
        (
            [("F", "P"), ("F", "E"), ("F", "F")],
            {"tests": in_one_group("1", "2")},
            (0.5, 0.75),
        ),
        ([("F", "P"), ("F", "E")], {"not_run": 1}, (0, 1)),
        ([("E", "E")], {}, (-1, 1)),
        ([("", "P"), ("", "E")], {}, None),
    ],
)
def test_lift_is_within_bounds_whatever_is_missing(
    cases: list[tuple[str, str]],
    facts: dict[str, Any],
    bounds: tuple[float, float] | None,
) -> None:
    for score in ("pass", "checks"):
        rows = [
            replace(row, score=float(row.outcome == "passed"))
            for row in records_of(cases)
        ]
        assert summed(rows, score=score, **facts).possible_lift == bounds


# Amounts.

AMOUNTS = st.integers(1, 10**6)
TRIALS = st.lists(
    st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=3),
    min_size=1,
    max_size=6,
)


@given(TRIALS, st.integers(0, 3))
def test_token_numbers_of_the_table_agree_with_their_change(
    trials: list[list[tuple[int, int]]], grouped: int
) -> None:
    rows = []
    for case, runs in enumerate(trials):
        for run, tokens in enumerate(runs, start=1):
            for arm, used in zip(("baseline", "skill"), tokens, strict=True):
                values: dict[str, Any] = {"input_tokens": used, "output_tokens": 0}
                rows.append(
                    Record("gate", str(case), "haiku", arm, run, "passed", **values)
                )
    row = summed(rows, tests=in_one_group(*map(str, range(grouped))))
    assert row.baseline_tokens
    assert row.skill_tokens
    assert row.token_change == pytest.approx(row.skill_tokens / row.baseline_tokens - 1)


@pytest.mark.parametrize("arm", ["baseline", "skill"])
def test_unknown_usage_of_one_answer_makes_the_mean_unknown(arm: str) -> None:
    known = {"input_tokens": 10, "output_tokens": 5, "seconds": 1.0}
    rows = [
        record(each, case, **known) for each in ("baseline", "skill") for case in "ab"
    ]
    rows = [
        replace(row, input_tokens=None, seconds=None)
        if (row.arm, row.case) == (arm, "a")
        else row
        for row in rows
    ]
    row = summed(rows)
    other = "skill" if arm == "baseline" else "baseline"
    assert (row.arm(arm).tokens, row.arm(arm).seconds) == (None, None)
    assert row.arm(other).tokens == pytest.approx(15)
    assert row.token_change is None


def test_costs_are_means_over_complete_runs() -> None:
    price = Price(input=1, output=10, cached=0.1)
    rows = [
        record("baseline", input_tokens=80, output_tokens=20),
        record("skill", input_tokens=180, output_tokens=20, cached_tokens=100),
        record("baseline", "c", outcome="errored"),
        record("skill", "c", input_tokens=9999, output_tokens=9999),
    ]
    priced = [replace(row, cost=cost(price, row.usage)) for row in rows]
    row = summed(priced)
    assert row.baseline_cost == pytest.approx(280 / 1e6)
    assert row.skill_cost == pytest.approx(290 / 1e6)

    free = summed([replace(row, cost=cost(FREE, row.usage)) for row in rows])
    assert (free.baseline_cost, free.skill_cost) == (0, 0)
    assert summed(rows).baseline_cost is None


def test_amounts_of_nothing_have_no_change() -> None:
    none = record("baseline", input_tokens=0, output_tokens=0)
    row = summed([none, record("skill", input_tokens=10, output_tokens=5)])
    assert (row.baseline_tokens, row.token_change) == (0, None)


# Counts.


def test_trials_are_counted_by_arm_over_every_record() -> None:
    rows = [*records("a", "PFE", "PPP"), *records("b", "E", "F", retries=2)]
    row = summed(rows)
    counts = {
        name: (arm.asked, arm.errored, arm.passed, arm.retries, arm.count)
        for name, arm in row.arms.items()
    }
    assert counts == {"baseline": (4, 2, 1, 2, (1, 2)), "skill": (4, 0, 3, 2, (2, 2))}
    assert (row.cases, row.runs, row.errored) == (2, 3, 2)


def test_checks_are_counted_over_every_answer() -> None:
    good = Grade("contains", passed=True, reason="")
    bad = Grade("contains", passed=False, reason="")
    rows = [
        record("baseline", checks=(bad, bad, bad)),
        record("skill", checks=(good, good, bad)),
        record("baseline", "b", outcome="errored"),
        record("skill", "b", checks=(good,)),
    ]
    row = summed(rows)
    assert (row.checks_passed, row.checks_total) == (3, 4)
    assert row.arm("baseline").checks_total == 3


def test_scores_are_averaged_like_rates() -> None:
    rows = [
        *records("a", "FFF", "FFF", score=0.2),
        record("baseline", "b", score=0.4),
        record("skill", "b", score=1.0),
        record("baseline", "c", outcome="errored"),
        record("skill", "c", score=0.0),
    ]
    row = summed(rows, score="checks")
    assert row.arm("baseline").score == pytest.approx(0.3)
    assert row.scored("skill") == pytest.approx(0.6)
    assert (row.lift, row.baseline_rate) == (None, 0.5)
