"""Cases that a budget kept from being asked are left out of the verdict,
and no gate passes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.results.row import Row
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.trials.records import Record
from support.made import made_run, made_triggers, query_summaries

BUDGET = "the budget ended the run after 6 of 10 cases"


def always_helps(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def refused(run: RunResults, is_refused: Callable[[Record], bool]) -> RunResults:
    """The same run, but some trials were not asked."""
    values: dict[str, Any] = {
        "outcome": "errored",
        "error": "m: budget reached",
        "output": None,
    }
    values |= {"over_budget": True, "checks": (), "score": None}
    records = [replace(r, **values) if is_refused(r) else r for r in run.records]
    return replace(run, records=tuple(records))


def ended(*, arms: tuple[str, ...] = ("baseline", "skill"), **more: Any) -> RunResults:
    """Six of ten cases are done; the others were not asked in these arms."""
    run = made_run(**{"cases": 10, "passes": always_helps, **more})
    return refused(run, lambda record: record.case > "case-5" and record.arm in arms)


def only(run: RunResults) -> Row:
    (row,) = run.rows
    return row


@pytest.mark.parametrize("arms", [("baseline", "skill"), ("skill",), ("baseline",)])
def test_verdict_is_over_the_cases_that_are_done(arms: tuple[str, ...]) -> None:
    run = ended(arms=arms)
    whole = made_run(cases=6, passes=always_helps)
    assert (run.verdicts[0].verdict, run.verdicts[0].lift) == ("helps", 1)
    assert only(run).sentence == f"{only(whole).sentence}; {BUDGET}"
    assert only(run).by_case == only(whole).by_case
    assert only(run).possible_lift is None


def test_what_was_not_asked_is_counted() -> None:
    (row,) = ended(arms=("skill",)).summary
    assert (row.cases, row.over_budget, row.not_asked, row.all_cases) == (6, 4, 4, 10)
    assert row.subset


def test_any_other_missing_answer_withholds_the_verdict() -> None:
    run = ended()
    first, *others = run.records
    errored = replace(first, outcome="errored", error="500", checks=(), score=None)
    row = only(replace(run, records=(errored, *others)))
    assert (row.verdict, row.lift) == ("incomplete", None)
    assert row.sentence.startswith("1 answer missing; ")


def test_case_answered_in_one_arm_and_failed_in_the_other_is_left_out() -> None:
    """The budget alone would have left it out."""
    run = ended(arms=("skill",))
    records = [
        (
            replace(r, outcome="errored", error="500")
            if (r.case, r.arm) == ("case-9", "baseline")
            else r
        )
        for r in run.records
    ]
    assert only(replace(run, records=tuple(records))).verdict == "helps"


def test_without_a_case_that_is_done_there_is_no_verdict() -> None:
    run = refused(made_run(cases=3), lambda _: True)
    assert only(run).verdict == "incomplete"
    assert only(run).sentence == "the budget ended the run after 0 of 3 cases"


@pytest.mark.parametrize(
    "gates",
    [
        Gates(min_lift=0.1),
        Gates(min_pass_rate=0.1),
        Gates(max_token_growth=1e6),
        Gates(no_worse=True),
    ],
)
def test_no_gate_passes(gates: Gates) -> None:
    assert made_run(cases=10, passes=always_helps, gates=gates).gate.passed
    gate = ended(gates=gates).gate
    assert not gate.passed
    assert gate.reasons == (f"gate on haiku: can't pass: {BUDGET}",)


def test_run_fails_and_says_why() -> None:
    run = ended()
    assert run.outcome() == "failed"
    assert "the budget ended the run: 4 of 10 tests not finished" in run.problems
    assert ended(arms=()).problems == []


def test_case_counts_with_all_its_runs_or_not_at_all() -> None:
    run = refused(
        made_run(cases=10, runs=3, passes=always_helps),
        lambda record: record.case == "case-9" and record.run == 3,
    )
    assert len(only(run).by_case) == 9


def test_queries_that_were_not_asked_are_left_out_of_recall() -> None:
    run = made_triggers()
    (before,) = query_summaries(run)
    last = run.tests[-1].case
    (row,) = query_summaries(refused(run, lambda record: record.case == last))
    assert (len(row.queries), row.over_budget) == (len(before.queries) - 1, 1)
    assert not row.incomplete
    assert "the budget ended the run after" in row.sentence
    gated = refused(
        replace(run, gates=Gates(min_recall=0.0)), lambda record: record.case == last
    )
    assert gated.gate.passed is False
