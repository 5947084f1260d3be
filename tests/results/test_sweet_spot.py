"""The sweet spot: the cheapest choice that is about as good as the best."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_upskill.results.sweet_spot import sweet_choice, sweet_spot
from pytest_upskill.results.verdict import verdicts_of
from support.made import Pair, checked_run, made_summary
from support.words import HURTS, TOO_FEW


def spot(
    *rows: tuple[str, int, float | None], cases: int = 80, **more: Any
) -> str | None:
    """The sweet spot of models that pass so many of the cases with the skill,
    at a price.
    """
    return sweet_spot(
        verdicts_of(
            [
                made_summary(
                    rates=[(0, int(case < passed)) for case in range(cases)],
                    model=model,
                    skill_cost=usd,
                    **(more if model == "tiny" else {}),
                )
                for model, passed, usd in rows
            ]
        )
    )


def test_the_sweet_spot_is_the_cheapest_shown_to_be_about_as_good_as_the_best() -> None:
    assert (
        spot(("opus", 72, 0.014), ("haiku", 71, 0.0009), ("tiny", 30, 0.0001))
        == "haiku with the skill (89%) is the cheapest choice shown to be within 10"
        " points of the best (opus with the skill, 90%): $0.90 instead of $14.00 per"
        " 1000 answers."
    )
    assert (
        spot(("opus", 72, 0.01), ("haiku", 40, 0.001))
        == "opus with the skill (90%) is the best; no cheaper choice is within 10"
        " points."
    )
    assert (
        spot(("opus", 40, 0.01), ("haiku", 72, 0.001))
        == "haiku with the skill (90%) is the cheapest, and no other is 10 points"
        " better."
    )
    assert spot(("one", 54, 0.0), ("two", 54, 0.0)) is None
    assert spot(("opus", 54, 0.01), ("unknown", 54, None)) is None
    assert spot(("opus", 54, 0.01)) is None
    assert spot(("opus", 0, 0.01), ("haiku", 0, 0.001)) is None


def test_few_cases_name_no_sweet_spot() -> None:
    assert (
        spot(("opus", 9, 0.014), ("haiku", 9, 0.0009), cases=10)
        == f"{TOO_FEW}: haiku with the skill (90%) is 0 points (-31 to +31) from opus "
        "with the skill (90%)."
    )
    assert (
        spot(("opus", 5, 0.014), ("haiku", 4, 0.001), cases=5)
        == f"{TOO_FEW}: opus with the skill (100%) is +20 points (-43 to +62) from"
        " haiku "
        "with the skill (80%)."
    )


@pytest.mark.parametrize(("models", "named"), [(2, "haiku"), (6, None)])
def test_the_more_models_the_more_cases_a_sweet_spot_takes(
    models: int, named: str | None
) -> None:
    cases: Sequence[Pair] = [(0, int(number < 40)) for number in range(45)]
    prices = {"haiku": 0.001, **{f"m{n}": 0.01 + n for n in range(1, models)}}
    rows = [
        made_summary(rates=cases, model=model, skill_cost=usd)
        for model, usd in prices.items()
    ]
    choice = sweet_choice(verdicts_of(rows))
    assert (choice and choice.model) == named


@pytest.mark.parametrize("cases", [10, 40])
def test_a_model_that_is_20_points_worse_is_hardly_ever_the_sweet_spot(
    cases: int,
) -> None:
    draw, named = Random(1), Counter[str]()
    for _ in range(60):
        passes = [
            [draw.random() < chance for _ in range(cases)] for chance in (0.8, 0.6)
        ]
        rows = [
            made_summary(
                rates=[(0, int(passed)) for passed in of_model],
                model=model,
                skill_cost=usd,
            )
            for of_model, model, usd in zip(
                passes, ("opus", "haiku"), (0.01, 0.001), strict=True
            )
        ]
        choice = sweet_choice(verdicts_of(rows))
        named[choice.model if choice else "nothing"] += 1
    assert named["haiku"] <= 1
    assert (named["opus"] > 30) is (cases == 40)


def test_the_sweet_spot_names_the_models_that_it_leaves_out() -> None:
    models = [("opus", 72, 0.014), ("haiku", 72, 0.0009), ("tiny", 79, 0.0001)]
    incomplete = spot(*models, errored=1)
    assert incomplete
    assert incomplete.startswith("haiku with the skill (90%) is ")
    assert incomplete.endswith("; left out: tiny (incomplete).")
    unpriced = spot(*models, ("local", 59, None))
    assert unpriced
    assert unpriced.endswith("; left out: local (no price).")


def test_the_sweet_spot_never_names_a_skill_that_hurts() -> None:
    """93 % without the skill and 53 % with it, beside a model that is poor in any
    case.
    """
    harmed: Sequence[Pair] = [(1, 0)] * 6 + [(1, 1)] * 8 + [(0, 0)]
    poor: Sequence[Pair] = [(0, 0)] * 14 + [(0, 1)]
    rows = [
        made_summary(rates=harmed, model="good", baseline_cost=0.001, skill_cost=0.002),
        made_summary(rates=poor, model="poor", baseline_cost=0.01, skill_cost=0.02),
    ]
    verdicts = verdicts_of(rows)
    assert verdicts[0].word == HURTS
    assert (
        sweet_spot(verdicts)
        == "good without the skill (93%) is the cheapest, and no other is 10 points"
        " better."
    )
    choice = sweet_choice(verdicts)
    assert choice
    assert (choice.model, choice.arm) == ("good", "baseline")
    unpriced = made_summary(rates=harmed, model="good", skill_cost=0.002)
    assert sweet_spot(verdicts_of([unpriced, rows[1]])) is None


def test_the_sweet_spot_is_of_checks() -> None:
    results = checked_run(
        [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)] * 10, models=("cheap", "dear")
    )
    priced = [
        replace(record, cost=0.001 if record.label == "cheap" else 0.01)
        for record in results.records
    ]
    spot = sweet_spot(replace(results, records=tuple(priced)).verdicts)
    assert (
        spot
        == "cheap with the skill (83% of checks) is the cheapest, and no other is 10"
        " points better."
    )
