"""Shards of a run become one run."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.errors import ResultsError
from pytest_upskill.features.queries.results import Queries
from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.skills.kinds import CASE
from pytest_upskill.trials.plan import Group, PlannedCase
from support.made import (
    accepted_count,
    made_run,
    made_triggers,
    pair_of,
    query_summaries,
)
from support.words import INCOMPLETE

WHOLE = made_run(
    skills=("gate", "door"),
    models=("haiku", "local"),
    cases=6,
    runs=3,
    accepted={0: accepted_count(3, 3), 1: accepted_count(0, 3)},
    gates=Gates(min_lift=0.1),
)


def part(results: RunResults, keep: Callable[[PlannedCase], bool]) -> RunResults:
    """The shard that has some of the tests."""
    tests = tuple(test for test in results.tests if keep(test))
    places = {(test.skill, test.case, test.label) for test in tests}
    return replace(
        results,
        tests=tests,
        records=tuple(
            r for r in results.records if (r.skill, r.case, r.label) in places
        ),
        skills=tuple(
            s for s in results.skills if s.name in {test.skill for test in tests}
        ),
        questions={
            key: text
            for key, text in results.questions.items()
            if key in {(test.skill, test.case) for test in tests}
        },
    )


def shards(
    results: RunResults, of: Callable[[PlannedCase], int], number: int
) -> list[Source]:
    def shard(this: int) -> Source:
        return Source(f"{this}.json", part(results, lambda test: of(test) == this))

    return [shard(this) for this in range(number)]


@given(
    st.lists(st.integers(0, 3), min_size=len(WHOLE.tests), max_size=len(WHOLE.tests))
)
def test_merged_shards_have_the_verdict_of_one_run(dealt: list[int]) -> None:
    by_test = dict(zip((test.nodeid for test in WHOLE.tests), dealt, strict=True))
    again, notes = merged(shards(WHOLE, lambda test: by_test[test.nodeid], 4))
    order = {test.nodeid: number for number, test in enumerate(WHOLE.tests)}
    assert sorted(order[test.nodeid] for test in again.tests) == list(range(len(order)))
    assert {row.pair: (row.verdict, row.lift) for row in again.rows} == {
        row.pair: (row.verdict, row.lift) for row in WHOLE.rows
    }
    assert set(again.gate.reasons) == set(WHOLE.gate.reasons)
    assert not notes


def test_cases_of_a_missing_shard_count_as_not_run() -> None:
    one, two, _ = shards(WHOLE, lambda test: int(test.case[-1]) % 3, 3)
    results, _ = merged([one, two])
    assert results.missing == {
        Group(pair_of(skill, model)): 2
        for skill in ("gate", "door")
        for model in ("haiku", "local")
    }
    assert {verdict.verdict for verdict in results.verdicts} == {INCOMPLETE}
    assert {row.not_run for row in results.rows} == {2}
    assert list(results.gate.reasons) == gate_reasons(results.rows, WHOLE.gates) != []
    on_purpose, _ = merged([one, two], subset=True)
    assert not on_purpose.missing


def test_shards_can_be_split_by_model() -> None:
    sources = shards(WHOLE, lambda test: test.label == "local", 2)
    results, _ = merged(sources)
    assert not results.missing
    assert [row.label for row in results.rows] == [
        "haiku",
        "local",
        "haiku",
        "local",
    ]


def test_the_same_trial_twice_counts_once() -> None:
    results, notes = merged([Source("a.json", WHOLE), Source("b.json", WHOLE)])
    assert results.records == WHOLE.records
    assert notes == [f"{len(WHOLE.records)} trials in several files, counted once."]


def test_the_time_spans_all_shards() -> None:
    late = replace(WHOLE, started=WHOLE.started + timedelta(seconds=30), seconds=10)
    results, _ = merged([Source("a.json", late), Source("b.json", WHOLE)])
    assert (results.started, results.seconds) == (WHOLE.started, 40)


def test_different_commits_are_noted() -> None:
    _, notes = merged(
        [Source("a.json", WHOLE), Source("b.json", replace(WHOLE, commit=None))]
    )
    assert notes[-1] == "The files are from different commits."


FIRST = WHOLE.records[0]


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (
            {"records": (replace(FIRST, output="Otherwise."),)},
            (
                "b.json: case-0 of gate on haiku (arm baseline, run 1) has another"
                " answer in a"
            ),
        ),
        (
            {"skills": (replace(WHOLE.skills[0], digest="1"),)},
            "b.json: the skill gate differs from a.json",
        ),
        (
            {"model_ids": {"haiku": "new"}},
            "b.json: the model haiku differs from a.json",
        ),
        ({"gates": Gates()}, "b.json: different gates than in a.json"),
        (
            {"tests": (replace(WHOLE.tests[0], digest=""),)},
            (
                "b.json: the case case-0 of gate on haiku has a different question or"
                " checks than in a"
            ),
        ),
    ],
)
def test_files_of_different_runs_are_an_error(
    other: dict[str, object], problem: str
) -> None:
    changed = replace(WHOLE, **other)  # type: ignore[arg-type]
    with pytest.raises(ResultsError) as caught:
        merged([Source("a.json", WHOLE), Source("b.json", changed)])
    assert str(caught.value).startswith(problem)


def test_what_a_shard_lacks_the_whole_lacks_unless_another_has_it() -> None:
    one, two = shards(WHOLE, lambda test: int(test.label == "local"), 2)
    lost = (two.results.tests[0].nodeid, "elsewhere")
    stopped = replace(
        one.results,
        interrupted="Ctrl-C",
        lost=lost,
        untested={"local": "x", "window": "no cases"},
    )
    again, _ = merged([replace(one, results=stopped), two])
    assert (again.interrupted, again.lost) == ("Ctrl-C", ("elsewhere",))
    assert again.untested == {"window": "no cases"}
    assert again.outcome(failed=0) == "interrupted"
    other = replace(two.results, interrupted="-x")
    twice, _ = merged([replace(one, results=stopped), replace(two, results=other)])
    assert twice.interrupted == "Ctrl-C; -x"


def queries_of(results: RunResults, keep: Callable[[PlannedCase], bool]) -> RunResults:
    """The shard that has some of the queries."""
    tests = tuple(test for test in results.tests if test.kind == CASE or keep(test))
    names = {test.case for test in tests}
    own = tuple(record for record in results.records if record.case in names)
    return replace(results, tests=tests, records=own)


def test_queries_of_shards_become_one_summary() -> None:
    whole = made_triggers(only=False, gates=Gates(min_recall=0.5))
    one = queries_of(whole, lambda test: test.should_open)
    two = queries_of(whole, lambda test: not test.should_open)
    both, _ = merged([Source("1.json", one), Source("2.json", two)])
    assert query_summaries(both) == query_summaries(whole)
    lacking, _ = merged([Source("1.json", one), Source("2.json", one)])
    assert lacking.missing == {Group(pair_of("gate", "haiku", "claude"), "query"): 3}
    reasons = Queries(lacking).gate_reasons(whole.gates)
    assert list(lacking.gate.reasons) == reasons != []
    assert merged([Source("1.json", one)] * 2, subset=True)[0].gate.passed


def test_queries_with_other_decisions_are_not_of_one_run() -> None:
    one, two = made_triggers(["ooo"], ["---"]), made_triggers(["oo-"], ["---"])
    with pytest.raises(
        ResultsError, match=r"trigger-needs-0 of gate on claude/haiku .* has another"
    ):
        merged([Source("1.json", one), Source("2.json", two)])
