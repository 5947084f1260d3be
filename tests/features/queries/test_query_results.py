"""Recall and false alarms: the query is the sample, and an error is no decision."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.queries.common import MODELS_CHOICE
from pytest_upskill.features.queries.results import (
    QueryRate,
    QuerySummary,
    find_share,
)
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.stats import wilson
from support.made import made_run, made_triggers, query_summaries, with_missing_cases
from support.simulated import passes


def only(results: RunResults) -> QuerySummary:
    (row,) = query_summaries(results)
    return row


def test_rates_are_means_over_queries() -> None:
    row = only(made_triggers(["ooo", "oo-", "xx-", "ooo"], ["---", "o--", "---"]))
    assert row.recall
    assert row.false_alarms
    assert row.recall.rate == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert row.false_alarms.rate == pytest.approx(1 / 9)
    assert row.recall.interval == wilson(row.recall.rate, 4)
    assert (row.recall.opened, row.recall.queries) == (3, 4)
    assert (row.instead, row.trials) == ({"docs-writer": 2}, 21)
    assert row.sentence == (
        "opened in 3 of 4 that need it (recall 67%, 25% to 92%), in 0 of 3 that don't"
        " (false alarms 11%, 1% to 65%)"
    )


def test_half_of_the_runs_open_a_skill() -> None:
    row = only(made_triggers(["o-"], ["o-"]))
    assert [query.right for query in row.queries] == [True, False]


def test_wrong_queries_are_advised_on() -> None:
    row = only(made_triggers(["o"] * 14 + ["-"] * 6, ["o"] + ["-"] * 19))
    not_opened, without_need, command = row.advice
    assert not_opened.startswith('not opened for: "Please trigger-needs-14" (0 of 1)')
    assert without_need == 'opened without need for: "Please trigger-spares-0" (1 of 1)'
    assert "describe skills/gate" in command
    assert only(made_triggers(["ooo"] * 10, ["---"] * 10)).advice == []


def test_few_queries_are_said_to_show_little() -> None:
    says_little, command = only(made_triggers(["ooo"] * 5, ["---"] * 12)).advice
    assert "even with 5 of 5 it could still be 57%" in says_little
    assert command.startswith("to write more queries")


def test_errors_are_left_out_and_counted() -> None:
    row = only(made_triggers(["oE-", "EEE", "ooo"], ["---"]))
    assert row.recall
    assert (row.recall.rate, row.recall.queries) == pytest.approx((0.75, 2))
    assert (row.errored, row.incomplete) == (4, True)
    assert "4 trials without a result" in row.sentence

    nothing = only(made_triggers(["EE"], ["E"]))
    assert (nothing.recall, nothing.false_alarms) == (None, None)
    assert nothing.sentence == "no query was tested; 3 trials without a result"


def test_query_that_did_not_run_makes_it_incomplete() -> None:
    row = only(made_triggers(["o", ""], ["-"]))
    assert (row.not_run, row.incomplete) == (1, True)
    assert row.sentence.endswith("; 1 query not run")
    missing = with_missing_cases(made_triggers(), 2)
    assert only(missing).not_run == 2
    assert "gate on claude/haiku: 2 queries missing from all files" in missing.problems


def test_queries_that_ask_the_same_are_one_sample() -> None:
    results = made_triggers(["ooo", "---", "ooo"], ["---"])
    first, second, *others = results.tests
    tests = (first, replace(second, sample=first.sample), *others)
    results = replace(results, tests=tests)
    recall = only(results).recall
    assert recall
    assert (recall.queries, recall.rate) == pytest.approx((2, 0.75))


def test_chat_is_called_what_it_is() -> None:
    assert only(made_triggers(models=["haiku"])).sentence.endswith(MODELS_CHOICE)
    assert MODELS_CHOICE not in only(made_triggers()).sentence


def test_cases_and_queries_do_not_mix() -> None:
    mixed = made_triggers(only=False, models=["claude/haiku"])
    cases = made_run()
    assert mixed.verdicts[0].sentence == cases.verdicts[0].sentence
    (row,) = mixed.summary
    assert row.recall == only(mixed).recall
    assert (row.lift, row.cases) == (cases.rows[0].lift, 6)
    alone = made_triggers()
    assert alone.rows == ()
    assert (alone.summary[0].cases, alone.summary[0].verdict) == (0, None)


def test_wrong_queries_fail_the_run() -> None:
    results = made_triggers(["ooo", "-o-"], ["oo-", "o--"])
    failed = [test.case for test in results.failed]
    assert failed == ["trigger-needs-1", "trigger-spares-0"]
    assert results.outcome() == "failed"
    assert made_triggers(["ooo"], ["---"]).outcome() == "passed"
    assert made_triggers(["ooE"], ["---"]).outcome() == "failed"


RECALL = Gates(min_recall=0.8)
ALARMS = Gates(max_false_alarms=0.2)


@pytest.mark.parametrize(
    ("gates", "run", "reason"),
    [
        (RECALL, {"needs": ["ooo"] * 5}, ""),
        (RECALL, {"needs": ["ooo", "---"]}, "recall is 50% (minimum 80%; could be"),
        (
            replace(RECALL, confident=True),
            {"needs": ["ooo"] * 5},
            "lowest likely recall is 57% (minimum 80%",
        ),
        (replace(RECALL, confident=True), {"needs": ["ooo"] * 20}, ""),
        (ALARMS, {"spares": ["---"] * 3}, ""),
        (ALARMS, {"spares": ["ooo"] * 9}, "false alarms is 100% (maximum 20%; shown:"),
        (
            replace(ALARMS, confident=True),
            {"spares": ["---"] * 3},
            "highest likely share of false alarms is 56% (maximum 20%",
        ),
        # Rounding fails no gate
        (Gates(min_recall=0.7), {"needs": ["ooooooo---"] * 3}, ""),
        (RECALL, {"needs": ["ooE"]}, "can't pass: 1 trial without a result"),
        (RECALL, {"needs": ["o", ""]}, "can't pass: 1 query not run"),
        (RECALL, {"needs": []}, "recall unknown"),
        (ALARMS, {"spares": []}, "false alarms unknown"),
        (RECALL, {"needs": [], "spares": []}, "can't pass: no query was tested"),
        (Gates(min_lift=0.1), {}, "can't pass: no case was tested"),
    ],
)
def test_gates_go_by_rates_or_their_bounds(
    gates: Gates, run: dict[str, Any], reason: str
) -> None:
    reasons = made_triggers(**run, gates=gates).gate.reasons
    assert len(reasons) == bool(reason)
    assert reason in "".join(reasons)


@pytest.mark.parametrize("queries", [3, 10, 20])
@pytest.mark.parametrize("runs", [1, 3])
def test_interval_covers_the_true_recall(queries: int, runs: int) -> None:
    """Queries of very different kinds: runs of the same one are a cluster."""
    draw = random.Random(f"{queries} queries, {runs} runs")
    held = 0
    tried = 0
    for a, b in [(1, 1), (2, 2), (0.3, 0.3), (5, 1), (1, 4), (0.1, 0.2)]:
        for _ in range(150):
            asked = []
            for number in range(queries):
                opened = passes(draw, draw.betavariate(a, b), runs)
                query = QueryRate(
                    case=f"trigger-{number}",
                    query="",
                    should_open=True,
                    opened=opened,
                    runs=runs,
                    errored=0,
                    instead={},
                )
                asked.append(query)
            share = find_share(asked)
            assert share
            held += share.interval.low <= a / (a + b) <= share.interval.high
            tried += 1
    assert held / tried >= 0.93


DECISIONS = st.lists(st.text("o-xE", max_size=4), max_size=6)


@given(DECISIONS, DECISIONS)
def test_any_decisions(needs: list[str], spares: list[str]) -> None:
    gates = Gates(min_recall=0.0, max_false_alarms=1.0)
    results = made_triggers(needs, spares, gates=gates)
    for row in query_summaries(results):
        for share, asked in ((row.recall, needs), (row.false_alarms, spares)):
            decided = sum(bool(runs.replace("E", "")) for runs in asked)
            assert (share.queries if share else 0) == decided
            if share:
                assert 0 <= share.interval.low <= share.rate <= share.interval.high <= 1
        is_whole = all(needs) and all(spares) and "E" not in "".join([*needs, *spares])
        assert results.gate.passed == bool(needs and spares and is_whole)
