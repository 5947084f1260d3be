"""Recall and false alarms from records: the query is the sample,
and an error is no decision.
"""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.cli import main
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.results.trigger_summary import (
    DESCRIBE,
    MODELS_CHOICE,
    QueryRate,
    share_of,
)
from pytest_upskill.settings import Gates
from pytest_upskill.stats import wilson
from support.made import made_run, made_triggers, with_missing_cases
from support.simulated import passes


def test_rates_are_means_over_queries() -> None:
    (row,) = made_triggers(
        ["ooo", "oo-", "xx-", "ooo"], ["---", "o--", "---"]
    ).trigger_summaries
    assert row.recall
    assert row.false_alarms
    assert row.recall.rate == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert row.false_alarms.rate == pytest.approx(1 / 9)
    assert row.recall.interval == wilson(row.recall.rate, 4)
    assert (row.recall.opened, row.recall.queries) == (3, 4)
    assert (row.false_alarms.opened, row.false_alarms.queries) == (0, 3)
    assert row.instead == {"docs-writer": 2}
    assert row.trials == 21
    assert (
        row.sentence == "opened in 3 of 4 that need it (recall 67%, 25% to 92%), "
        "in 0 of 3 that don't (false alarms 11%, 1% to 65%)"
    )


def test_half_of_the_runs_open_a_skill() -> None:
    (row,) = made_triggers(["o-"], ["o-"]).trigger_summaries
    assert [one.right for one in row.queries] == [True, False]


def test_the_words_of_the_issue() -> None:
    needs = ["o"] * 14 + ["-"] * 6
    (row,) = made_triggers(needs, ["o"] + ["-"] * 19).trigger_summaries
    assert row.sentence.startswith("opened in 14 of 20 that need it (")
    assert ", in 1 of 20 that don't (" in row.sentence
    assert row.advice == [
        (
            'not opened for: "Please trigger-needs-14" (0 of 1), "Please'
            ' trigger-needs-15" (0 of 1), "Please trigger-needs-16" (0 of 1), and 3'
            " more"
        ),
        'opened without need for: "Please trigger-spares-0" (1 of 1)',
        (
            "to improve its description: pytest-upskill describe skills/gate "
            "--eval-agent claude --eval-model haiku"
        ),
    ]


def test_the_command_installs_what_was_installed() -> None:
    run = made_triggers(["x"] * 10, ["-"] * 10, models=["haiku"])
    skills = tuple(replace(one, path="my skills/gate") for one in run.skills)
    run = replace(run, skills=skills, with_skills=("skills/docs writer",), noise=50)
    (row,) = run.trigger_summaries
    assert (
        row.advice[-1]
        == "to improve its description: pytest-upskill describe 'my skills/gate'"
        " --eval-model haiku --with 'skills/docs writer' --noise 50"
    )
    again = replace(run, with_skills=(), noise=0).trigger_summaries[0]
    assert again.advice[-1].endswith(" --eval-model haiku")


def test_the_command_asks_the_same_server() -> None:
    run = made_triggers(["x"] * 10, ["-"] * 10, models=["qwen"])
    (row,) = replace(run, base_url="http://127.0.0.1:8080/v1").trigger_summaries
    assert row.advice[-1].endswith(
        " --eval-model qwen --eval-base-url http://127.0.0.1:8080/v1"
    )


def test_the_command_knows_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["describe", "--help"])
    known = capsys.readouterr().out
    assert [flag for flag in DESCRIBE.values() if f"  {flag} " not in known] == []


def test_what_few_queries_can_show() -> None:
    (row,) = made_triggers(["ooo"] * 5, ["---"] * 12).trigger_summaries
    assert row.advice == [
        (
            "5 queries that need it show little: even with 5 of 5, recall could still"
            " be 57%"
        ),
        "to write more queries: pytest-upskill triggers skills/gate",
    ]
    (row,) = made_triggers(["ooo"] * 10, ["---"] * 10).trigger_summaries
    assert row.advice == []


def test_queries_of_one_kind_make_a_whole_sentence() -> None:
    (row,) = made_triggers([], ["ooo"]).trigger_summaries
    assert row.sentence.startswith(
        "opened in 1 of 1 that don't need it (false alarms 100%, "
    )
    assert (
        row.advice[1]
        == "1 query that doesn't need it shows little: even with 0 of 1, false alarms"
        " could still be 79%"
    )


def test_errors_are_left_out_and_counted() -> None:
    (row,) = made_triggers(["oE-", "EEE", "ooo"], ["---"]).trigger_summaries
    assert row.recall
    assert row.recall.rate == pytest.approx(0.75)
    assert row.recall.queries == 2
    assert (row.errored, row.word) == (4, "incomplete")
    assert "4 trials without a result" in row.sentence


def test_a_query_that_did_not_run_makes_it_incomplete() -> None:
    results = made_triggers(["o", ""], ["-"])
    (row,) = results.trigger_summaries
    assert (row.not_run, row.word) == (1, "incomplete")
    assert row.sentence.endswith("; 1 query not run")
    missing = with_missing_cases(made_triggers(), 2)
    assert missing.trigger_summaries[0].not_run == 2
    assert "gate on claude/haiku: 2 queries missing from all files" in missing.problems


def test_nothing_decided() -> None:
    (row,) = made_triggers(["EE"], ["E"]).trigger_summaries
    assert (row.recall, row.false_alarms, row.word) == (None, None, "incomplete")
    assert row.sentence == "no query was tested; 3 trials without a result"
    (row,) = made_triggers(["ooo"], []).trigger_summaries
    assert row.false_alarms is None
    assert row.sentence == "opened in 1 of 1 that need it (recall 100%, 21% to 100%)"


def test_queries_that_ask_the_same_are_one_sample() -> None:
    results = made_triggers(["ooo", "---", "ooo"], ["---"])
    first, second, *others = results.tests
    results = replace(
        results, tests=(first, replace(second, sample=first.sample), *others)
    )
    (row,) = results.trigger_summaries
    assert row.recall
    assert row.recall.queries == 2
    assert row.recall.rate == pytest.approx((0.5 + 1) / 2)
    assert run_notes(results) == [
        (
            "gate: 4 queries in 3 groups: queries of a group, or that ask the same,"
            " count as one."
        )
    ]


def test_chat_is_called_what_it_is() -> None:
    (row,) = made_triggers(models=["haiku"]).trigger_summaries
    assert row.sentence.endswith(f"; {MODELS_CHOICE}")
    (row,) = made_triggers().trigger_summaries
    assert MODELS_CHOICE not in row.sentence


def test_cases_and_queries_do_not_mix() -> None:
    mixed, cases = made_triggers(only=False, models=["claude/haiku"]), made_run()
    assert [v.sentence for v in mixed.verdicts] == [v.sentence for v in cases.verdicts]
    assert mixed.records_of(mixed.triggers[0])[0].case == "trigger-needs-0"
    assert mixed.agents == {"claude": "1.2.3"}


def test_wrong_queries_fail_the_run() -> None:
    results = made_triggers(["ooo", "-o-"], ["oo-", "o--"])
    assert [test.case for test in results.failed] == [
        "trigger-needs-1",
        "trigger-spares-0",
    ]
    assert results.outcome() == "failed"
    good = made_triggers(["ooo"], ["---"])
    assert good.problems == []
    assert good.outcome() == "passed"
    assert made_triggers(["ooE"], ["---"]).outcome() == "failed"


RECALL = Gates(min_recall=0.8)
ALARMS = Gates(max_false_alarms=0.2)


@pytest.mark.parametrize(
    ("gates", "run", "reasons"),
    [
        (RECALL, {"needs": ["ooo"] * 5}, []),
        (
            RECALL,
            {"needs": ["ooo", "---"]},
            [
                (
                    "gate on claude/haiku: recall is 50% (minimum 80%;"
                    " could be chance: 9% to 91%)"
                )
            ],
        ),
        (
            replace(RECALL, confident=True),
            {"needs": ["ooo"] * 5},
            [
                (
                    "gate on claude/haiku: lowest likely recall is 57% "
                    "(minimum 80%; could be chance: 57% to 100%)"
                )
            ],
        ),
        (replace(RECALL, confident=True), {"needs": ["ooo"] * 20}, []),
        (ALARMS, {"spares": ["---"] * 3}, []),
        (
            ALARMS,
            {"spares": ["o--"]},
            [
                (
                    "gate on claude/haiku: share of false alarms is 33% "
                    "(maximum 20%; could be chance: 3% to 91%)"
                )
            ],
        ),
        (
            ALARMS,
            {"spares": ["ooo"] * 9},
            [
                (
                    "gate on claude/haiku: share of false alarms is 100% "
                    "(maximum 20%; shown: 70% to 100%)"
                )
            ],
        ),
        (
            replace(ALARMS, confident=True),
            {"spares": ["---"] * 3},
            [
                (
                    "gate on claude/haiku: highest likely share of false alarms is 56% "
                    "(maximum 20%; could be chance: 0% to 56%)"
                )
            ],
        ),
        (
            Gates(min_recall=0.667),
            {"needs": ["oo-"]},
            [
                (
                    "gate on claude/haiku: recall is 66.67% (minimum 66.70%; could be"
                    " chance: 9% to 97%)"
                )
            ],
        ),
        (Gates(min_recall=0.7), {"needs": ["ooooooo---"] * 3}, []),
        (
            RECALL,
            {"needs": ["ooE"]},
            ["gate on claude/haiku: can't pass: 1 trial without a result"],
        ),
        (
            RECALL,
            {"needs": ["o", ""]},
            ["gate on claude/haiku: can't pass: 1 query not run"],
        ),
        (
            RECALL,
            {"needs": []},
            [
                (
                    "gate on claude/haiku: recall unknown: no query that needs"
                    " a skill was asked"
                )
            ],
        ),
        (
            ALARMS,
            {"spares": []},
            [
                (
                    "gate on claude/haiku: false alarms unknown: no query without"
                    " need of one was asked"
                )
            ],
        ),
        (
            RECALL,
            {"needs": [], "spares": []},
            ["gate: can't pass: no query was tested"],
        ),
        (
            RECALL,
            {"needs": [], "spares": [], "skills": []},
            ["can't pass: no query was tested"],
        ),
    ],
)
def test_gates(gates: Gates, run: dict[str, Any], reasons: list[str]) -> None:
    assert list(made_triggers(**run, gates=gates).gate.reasons) == reasons


def test_gates_of_cases_need_cases_and_those_of_triggers_don_t() -> None:
    assert made_triggers(["o"], ["-"], gates=Gates(min_lift=0.1)).gate.reasons == (
        "can't pass: no case was tested",
    )
    assert made_triggers(["o"], ["-"], gates=RECALL).gate.passed
    assert made_run(gates=RECALL).gate.reasons == (
        "gate: can't pass: no query was tested",
    )


@pytest.mark.parametrize("queries", [3, 5, 10, 20])
@pytest.mark.parametrize("runs", [1, 3])
def test_interval_covers_the_true_recall(queries: int, runs: int) -> None:
    """Queries of very different kinds: runs of the same one are a cluster."""
    draw = random.Random(f"{queries} queries, {runs} runs")
    held = tried = 0
    for a, b in [(1, 1), (2, 2), (0.3, 0.3), (5, 1), (1, 4), (0.1, 0.2)]:
        for _ in range(150):
            asked = []
            for number in range(queries):
                opened = passes(draw, draw.betavariate(a, b), runs)
                asked.append(
                    QueryRate(
                        f"trigger-{number}",
                        "",
                        should_open=True,
                        opened=opened,
                        runs=runs,
                        errored=0,
                        instead={},
                    )
                )
            share = share_of(asked)
            assert share
            held += share.interval.low <= a / (a + b) <= share.interval.high
            tried += 1
    assert held / tried >= 0.93


@given(
    st.lists(st.text("o-xE", max_size=4), max_size=6),
    st.lists(st.text("o-xE", max_size=4), max_size=6),
)
def test_any_decisions(needs: list[str], spares: list[str]) -> None:
    results = made_triggers(
        needs, spares, gates=Gates(min_recall=0.0, max_false_alarms=1.0)
    )
    for row in results.trigger_summaries:
        for share, own in ((row.recall, needs), (row.false_alarms, spares)):
            decided = [one.replace("E", "") for one in own if one.replace("E", "")]
            assert (share is None) == (not decided)
            if share:
                assert share.queries == len(decided)
                assert 0 <= share.interval.low <= share.rate <= share.interval.high <= 1
        assert row.sentence
        whole = all(needs) and all(spares) and "E" not in "".join([*needs, *spares])
        passed = bool(needs and spares and whole)
        assert results.gate.passed == passed
    assert share_of([]) is None
