"""Records become rates, lift and tokens of a skill on a model."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_upskill.models.prices import FREE, Price, cost
from pytest_upskill.options import DAY
from pytest_upskill.results.summary import Summary, summarize
from pytest_upskill.trials.plan import PlannedCase
from pytest_upskill.trials.records import Grade, Record
from support.made import made_records, pair_of

OF_A_GROUP = [PlannedCase(name, "gate", name, "haiku", case_group="x") for name in "12"]


def records(case: str, baseline: str, skill: str, **more: Any) -> list[Record]:
    return made_records({"baseline": baseline, "skill": skill}, case, **more)


def record(arm: str, case: str = "a", **more: Any) -> Record:
    return Record("gate", case, "haiku", arm, 1, **{"outcome": "passed", **more})


def summed(rows: Sequence[Record], **more: Any) -> Summary:
    settings = {"model_id": "claude-haiku", "not_run": 0, **more}
    return summarize(rows, pair_of("gate", "haiku"), **settings)


def priced(rows: Sequence[Record], price: Price) -> list[Record]:
    return [replace(row, cost=cost(price, row.usage)) for row in rows]


def rates(rows: Sequence[Record]) -> tuple[float | None, float | None, float | None]:
    summary = summed(rows)
    return summary.arm("baseline").rate, summary.arm("skill").rate, summary.lift


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([("F", "P")], (0, 1, 1)),
        ([("P", "F")], (1, 0, -1)),
        ([("P", "P"), ("F", "F")], (0.5, 0.5, 0)),
        ([("F", "P"), ("F", "P"), ("P", "P"), ("F", "F")], (0.25, 0.75, 0.5)),
    ],
)
def test_lift_is_the_rate_with_the_skill_less_the_rate_without(
    cases: list[tuple[str, str]], expected: tuple[float, float, float]
) -> None:
    rows = [
        row for number, arms in enumerate(cases) for row in records(str(number), *arms)
    ]
    assert rates(rows) == expected
    assert summed(rows).cases == len(cases)


def test_runs_are_averaged_per_case_first() -> None:
    # The second case lost two of its runs: it weighs as much as the first all the same.
    rows = [*records("a", "FFFF", "PPPP"), *records("b", "FEFE", "FEEF")]
    assert rates(rows) == (0, 0.5, 0.5)
    half = [*records("a", "FFFF", "PPFF"), *records("b", "PPPP", "PPPP")]
    assert rates(half) == (0.5, 0.75, 0.25)


@pytest.mark.parametrize(
    ("baseline", "skill"), [("PF", "EP"), ("EF", "FP"), ("EF", "EP")]
)
def test_an_errored_trial_takes_its_partner_with_it(baseline: str, skill: str) -> None:
    assert rates(records("a", baseline, skill)) == (0, 1, 1)


def test_a_case_without_a_complete_pair_is_left_out_of_the_rates() -> None:
    rows = [*records("a", "F", "P"), *records("b", "E", "F"), *records("c", "P", "E")]
    summary = summed(rows)
    assert (summary.arm("baseline").rate, summary.arm("skill").rate, summary.lift) == (
        0,
        1,
        1,
    )
    assert (summary.cases, summary.errored) == (3, 2)


@pytest.mark.parametrize(
    ("cases", "more", "bounds"),
    [
        ([("F", "P"), ("F", "F")], {}, None),
        ([("F", "P"), ("F", "E")], {}, (0.5, 1)),
        ([("F", "P"), ("E", "F")], {}, (0, 0.5)),
        ([("F", "P"), ("E", "E")], {}, (0, 1)),
        ([("FF", "PP"), ("FP", "EP")], {}, (0.5, 0.75)),
        ([("F", "P"), ("F", "E"), ("F", "F")], {"tests": OF_A_GROUP}, (0.5, 0.75)),
        ([("F", "P"), ("F", "P")], {"not_run": 2}, (0, 1)),
        ([("F", "P"), ("F", "E")], {"not_run": 1}, (0, 1)),
        ([("E", "E")], {}, (-1, 1)),
        ([("", "P"), ("", "E")], {}, None),  # without a baseline
    ],
)
def test_the_lift_is_within_bounds_whatever_is_missing(
    cases: list[tuple[str, str]],
    more: dict[str, Any],
    bounds: tuple[float, float] | None,
) -> None:
    rows = [
        row for number, arms in enumerate(cases) for row in records(str(number), *arms)
    ]
    for score in ("pass", "checks"):
        scored = [replace(row, score=float(row.outcome == "passed")) for row in rows]
        assert summed(scored, score=score, **more).possible_lift == bounds


@pytest.mark.parametrize(
    ("baseline", "skill", "bounds"),
    [
        # The baseline will be asked again, beside the skill
        (("F", 0), ("E", None), (-0.5, 1)),
        (("F", 0), ("P", 2), (0, 1)),  # so will it here
        (("F", 2), ("E", None), (0, 1)),
        (("F", 0), ("P", 0), (0.5, 1)),  # both are of the same day
    ],
)
def test_answers_too_old_to_compare_are_missing_from_the_bounds(
    baseline: tuple[str, int],
    skill: tuple[str, int | None],
    bounds: tuple[float, float],
) -> None:
    started = datetime(2026, 1, 2, tzinfo=UTC)
    day_length = int(DAY)
    first_day = int(started.timestamp()) - 2 * day_length
    rows = [
        replace(row, asked_at=None if day is None else first_day + day * day_length)
        for (outcome, day), arm in ((baseline, "baseline"), (skill, "skill"))
        for row in made_records({arm: outcome}, "old")
    ]
    rows += records("new", "F", "E")
    assert summed(rows, started=started).possible_lift == bounds


def test_trials_are_counted_by_arm() -> None:
    rows = [*records("a", "PFE", "PPP"), *records("b", "E", "F", retries=2)]
    counts = {
        name: (arm.asked, arm.errored, arm.passed, arm.retries)
        for name, arm in summed(rows).arms.items()
    }
    assert counts == {"baseline": (4, 2, 1, 2), "skill": (4, 0, 3, 2)}


def test_a_trial_without_its_partner_is_left_out_of_the_rates() -> None:
    assert rates([*records("a", "F", "P"), *records("b", "", "F")]) == (0, 1, 1)


def test_an_errored_trial_takes_the_tokens_and_seconds_of_its_partner_too() -> None:
    rows = [
        record("baseline", input_tokens=10, output_tokens=10, seconds=1.0),
        record("skill", input_tokens=20, output_tokens=10, seconds=2.0),
        record("baseline", "b", input_tokens=5000, output_tokens=5000, seconds=90.0),
        record("skill", "b", outcome="errored"),
    ]
    summary = summed(rows)
    assert (summary.arm("baseline").tokens, summary.arm("skill").tokens) == (20, 30)
    assert (summary.arm("baseline").seconds, summary.arm("skill").seconds) == (1, 2)
    assert summary.growth("tokens") == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [[], records("a", "E", "E"), records("a", "P", "E")])
def test_without_a_complete_pair_nothing_is_known(rows: list[Record]) -> None:
    summary = summed(rows)
    assert rates(rows) == (None, None, None)
    assert (
        summary.arm("baseline").tokens
        is summary.arm("skill").tokens
        is summary.growth("tokens")
        is None
    )
    assert summary.arm("baseline").seconds is summary.arm("skill").seconds is None


def test_a_baseline_that_always_errors_is_not_a_missing_one() -> None:
    rows = [*records("a", "E", "P"), *records("b", "E", "P")]
    assert rates(rows) == (None, None, None)
    assert summed(rows).errored == 2


def test_without_a_baseline_there_is_a_rate_but_no_lift() -> None:
    rows = [
        record("skill", input_tokens=20, output_tokens=10, seconds=2.0),
        record(
            "skill",
            "b",
            outcome="failed",
            input_tokens=30,
            output_tokens=10,
            seconds=4.0,
        ),
    ]
    summary = summed(rows)
    assert (summary.arm("baseline").rate, summary.arm("skill").rate, summary.lift) == (
        None,
        0.5,
        None,
    )
    assert (summary.arm("baseline").tokens, summary.arm("skill").tokens) == (None, 35)
    assert (summary.arm("baseline").seconds, summary.arm("skill").seconds) == (None, 3)
    assert summary.growth("tokens") is None


def test_tokens_are_means_of_one_answer_and_their_change() -> None:
    rows = [
        record("baseline", input_tokens=80, output_tokens=20),
        record("skill", input_tokens=180, output_tokens=20),
        record("baseline", "b", input_tokens=280, output_tokens=20),
        record("skill", "b", input_tokens=280, output_tokens=20),
    ]
    summary = summed(rows)
    assert (summary.arm("baseline").tokens, summary.arm("skill").tokens) == (200, 250)
    assert summary.growth("tokens") == pytest.approx(0.25)


@pytest.mark.parametrize("arm", ["baseline", "skill"])
def test_unknown_usage_of_one_answer_makes_the_mean_unknown(arm: str) -> None:
    rows = [record("baseline"), record("skill")]
    known = {"input_tokens": 10, "output_tokens": 5, "seconds": 1.0}
    rows += [record("baseline", "b", **known), record("skill", "b", **known)]
    rows = [r if r.arm == arm else record(r.arm, r.case, **known) for r in rows]
    summary = summed(rows)
    unknown, whole = (
        (summary.arm("baseline").tokens, summary.arm("skill").tokens)
        if arm == "baseline"
        else (summary.arm("skill").tokens, summary.arm("baseline").tokens)
    )
    assert (unknown, whole, summary.growth("tokens")) == (None, 15, None)


def test_costs_are_means_of_one_answer_over_complete_pairs() -> None:
    price = Price(input=1, output=10, cached=0.1)
    rows = [
        record("baseline", input_tokens=80, output_tokens=20),
        record("skill", input_tokens=180, output_tokens=20, cached_tokens=100),
        record("baseline", "b", input_tokens=280, output_tokens=20),
        record("skill", "b", input_tokens=280, output_tokens=20),
        record("baseline", "c", outcome="errored"),
        record("skill", "c", input_tokens=9999, output_tokens=9999),
    ]
    summary = summed(priced(rows, price))
    assert summary.arm("baseline").cost == pytest.approx((280 + 480) / 2 / 1e6)
    assert summary.arm("skill").cost == pytest.approx((80 + 10 + 200 + 480) / 2 / 1e6)


def test_a_cost_is_unknown_without_a_price_or_usage() -> None:
    rows = [record("baseline"), record("skill", input_tokens=10, output_tokens=5)]
    assert summed(rows).arm("baseline").cost is summed(rows).arm("skill").cost is None
    summary = summed(priced(rows, Price(1, 10, 1)))
    assert summary.arm("baseline").cost is None
    assert summary.arm("skill").cost == pytest.approx(60 / 1e6)
    free = summed(priced(rows, FREE))
    assert (free.arm("baseline").cost, free.arm("skill").cost) == (0, 0)
    nothing = summed(priced(records("a", "E", "P"), FREE))
    assert nothing.arm("baseline").cost is nothing.arm("skill").cost is None


def test_a_baseline_of_no_tokens_has_no_change() -> None:
    none = record("baseline", input_tokens=0, output_tokens=0)
    some = record("skill", input_tokens=10, output_tokens=5)
    summary = summed([none, some])
    assert (summary.arm("baseline").tokens, summary.growth("tokens")) == (0, None)


def test_checks_are_counted_over_every_answer_of_an_arm() -> None:
    good, bad = (
        Grade("contains", passed=True, reason=""),
        Grade("contains", passed=False, reason=""),
    )
    rows = [
        record("baseline", checks=(bad, bad, bad)),
        record("skill", checks=(good, good, bad)),
        record("baseline", "b", outcome="errored"),
        record("skill", "b", checks=(good,)),
        record("skill", "c", outcome="errored"),
    ]
    skill, baseline = summed(rows).arm("skill"), summed(rows).arm("baseline")
    assert (baseline.checks_passed, baseline.checks_total, baseline.graded) == (0, 3, 1)
    assert (skill.checks_passed, skill.checks_total, skill.graded) == (3, 4, 2)
    assert (baseline.uneven, skill.uneven) == (False, True)


def test_scores_are_averaged_per_case_first_and_over_complete_pairs() -> None:
    rows = [
        *records("a", "FFF", "FFF", score=0.2),
        record("baseline", "b", score=0.4),
        record("skill", "b", score=1.0),
        record("baseline", "c", outcome="errored"),
        record("skill", "c", score=0.0),
    ]
    summary = summed(rows)
    assert summary.arm("baseline").score == pytest.approx(0.3)
    assert summary.arm("skill").score == pytest.approx(0.6)
    assert summed([record("skill", score=0.5)]).arm("baseline").score is None
    assert summed(records("a", "E", "P")).arm("skill").score is None


def test_records_of_other_skills_and_models_do_not_count() -> None:
    own = records("a", "F", "P")
    others = [
        Record("door", "a", "haiku", "skill", 1, "errored"),
        Record("gate", "a", "sonnet", "skill", 1, "errored"),
        Record("gate", "b", "sonnet", "baseline", 1, "passed"),
    ]
    assert summed([*others, *own]) == summed(own)


def test_facts_of_the_run_are_passed_on() -> None:
    summary = summed([*records("a", "FF", "PP"), *records("b", "F", "P")], not_run=3)
    assert (summary.skill, summary.label, summary.model_id) == (
        "gate",
        "haiku",
        "claude-haiku",
    )
    assert (summary.runs, summary.not_run) == (2, 3)
