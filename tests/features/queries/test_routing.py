"""Which skill each query opens: outcomes, the table, recall and precision."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import form_of, json_values
from pytest_upskill.features.queries.routing import NO_SKILL, RoutedQuery, Routing
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.stats import wilson
from pytest_upskill.trials.records import Outcome, Record
from pytest_upskill.trials.transcript import Activity

SKILLS = ("docx", "pdf", "xlsx")


def query(expected: Any = (), unopened: int = 0, **opened: int) -> RoutedQuery:
    names = (expected,) if isinstance(expected, str) else tuple(expected)
    return RoutedQuery(f"{names} {opened}", names, opened=opened, unopened=unopened)


def routing(*queries: RoutedQuery, **changes: Any) -> Routing:
    return replace(
        Routing(agent="chat", model="haiku", skills=SKILLS, queries=queries), **changes
    )


def record(
    *opened: str, outcome: Outcome = "passed", error: str | None = None
) -> Record:
    activity = None if error else Activity(1, 1, bool(opened), opened)
    return Record("", "q", "haiku", "skill", 1, outcome, error=error, activity=activity)


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (query("pdf", pdf=1), "right"),
        (query("pdf", unopened=1), "missed"),
        (query("pdf", docx=1), "wrong skill"),
        (query(("pdf", "docx"), docx=1), "right"),
        (query(unopened=1), "right"),
        (query(docx=1), "false alarm"),
        (query("pdf"), "error"),
        (query("pdf", pdf=2, docx=1), "right"),
        (query("pdf", pdf=1, docx=1), "wrong skill"),  # half of the runs are not enough
        (query("pdf", unopened=2, docx=1), "missed"),
    ],
)
def test_each_query_has_one_outcome(asked: RoutedQuery, outcome: str) -> None:
    assert asked.outcome == outcome


def test_a_query_that_only_names_unwanted_skills_is_a_false_alarm_for_those_alone() -> (
    None
):
    unwanted = replace(query(pdf=1), unwanted=("pdf",))
    other = replace(query(docx=1), unwanted=("pdf",))
    assert (unwanted.outcome, other.outcome) == ("false alarm", "right")
    found = {row.name: row.precision for row in routing(unwanted, other).by_skill}
    assert found["docx"] is None  # nobody says whether that is right
    assert found["pdf"]
    assert found["pdf"].rate == 0


def test_the_skill_that_is_opened_first_decides_and_errors_are_no_misses() -> None:
    records = [
        record("pdf", "docx"),
        record(),
        record(outcome="errored", error="haiku: 529 overloaded"),
    ]
    asked = RoutedQuery.of("Merge", ("pdf",), (), "routes.json:2", records)
    assert (asked.opened, asked.unopened, asked.also) == ({"pdf": 1}, 1, {"docx": 1})
    assert asked.errors == ("haiku: 529 overloaded",)
    assert asked.outcomes == {"right": 1, "missed": 1}


def test_runs_of_a_query_are_averaged_before_its_interval() -> None:
    recall = routing(
        query("pdf", pdf=2, docx=2), query("pdf", pdf=4), query(docx=9)
    ).recall
    assert recall
    assert (recall.rate, recall.queries) == (0.75, 2)
    assert recall.interval == wilson(0.75, 2)


def test_precision_weighs_queries_by_how_often_they_open_the_skill() -> None:
    queries = (query("pdf", pdf=4), query("docx", docx=3, pdf=1))
    pdf = next(row for row in routing(*queries).by_skill if row.name == "pdf")
    assert pdf.precision
    assert pdf.precision.rate == pytest.approx(1 / 1.25)
    # Fewer than two queries' worth of evidence, as the second one seldom opens it.
    assert pdf.precision.interval == wilson(pdf.precision.rate, 1.25**2 / (1 + 0.25**2))
    assert (pdf.queries, pdf.right, pdf.instead) == (1, 1, {})


def test_the_table_has_what_was_opened_by_what_should_be() -> None:
    queries = (
        query("pdf", pdf=1),
        query("pdf", docx=1),
        query(unopened=1),
        query("docx"),
    )
    table = routing(*queries).table
    assert table.opened == (*SKILLS, NO_SKILL)
    assert table.rows == {
        "docx": (0, 0, 0, 0),
        "pdf": (1, 1, 0, 0),
        NO_SKILL: (0, 0, 0, 1),
    }


runs = st.integers(0, 4)
any_query = st.builds(
    RoutedQuery,
    st.text(max_size=3),
    st.lists(st.sampled_from(SKILLS), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(SKILLS), max_size=1).map(tuple),
    st.dictionaries(st.sampled_from(SKILLS), st.integers(1, 4)),
    runs,
    errors=st.lists(st.just("down"), max_size=2).map(tuple),
)


@given(st.lists(any_query, max_size=12).map(tuple))
def test_counts_add_up(queries: tuple[RoutedQuery, ...]) -> None:
    found = routing(*queries)
    assert sum(found.outcomes.values()) == len(queries)
    decided = sum(query.runs for query in queries)
    assert sum(map(sum, found.table.rows.values())) == decided
    right = sum(query.outcomes.get("right", 0) for query in queries)
    assert sum(pair.runs for pair in found.confusions) == decided - right
    for row, cells in found.table.rows.items():
        assert sum(cells) == sum(query.runs for query in queries if query.row == row)
    shares = [found.recall, found.precision, found.false_alarms]
    shares += [share for row in found.by_skill for share in (row.recall, row.precision)]
    for share in filter(None, shares):
        assert 0 <= share.interval.low <= share.rate <= share.interval.high <= 1
        assert share.queries <= len(queries)
    assert bool(found.missing_words) == any(query.errors for query in queries)


@given(st.lists(any_query, max_size=4).map(tuple))
def test_its_json_is_read_back(queries: tuple[RoutedQuery, ...]) -> None:
    found = routing(*queries, notes=("Left out: x",), cost=0.5)
    assert form_of(Routing).validate_python(json_values(found)) == found


def test_gates_fail_by_the_share_of_all_queries_and_never_pass_with_errors() -> None:
    queries = [
        *[query("pdf", pdf=1)] * 8,
        *[query("pdf", docx=1)] * 2,
        *[query(unopened=1)] * 5,
    ]
    found = routing(*queries)
    gates = Gates(min_recall=0.8, max_false_alarms=0.0)
    assert found.gate_reasons(gates) == []
    assert found.gate_reasons(Gates()) == []
    (reason,) = found.gate_reasons(Gates(min_recall=0.9))
    assert reason.startswith("haiku: recall is 80% (minimum 90%; could be chance: ")
    broken = routing(*queries, replace(query("pdf", pdf=1), errors=("down",)))
    assert broken.gate_reasons(gates) == ["haiku: can't pass: 1 trial without a result"]
    (unknown,) = routing(query("pdf", pdf=1)).gate_reasons(Gates(max_false_alarms=0.1))
    assert "false alarms unknown" in unknown


def results(*routings: Routing, gates: Gates | None = None) -> RunResults:
    return RunResults(
        started=datetime(2026, 1, 2, tzinfo=UTC),
        seconds=1.0,
        skills=(),
        records=(),
        tests=(),
        model_ids={"haiku": "h"},
        sections=routings,
        gates=gates or Gates(),
    )


def test_a_run_of_a_routing_fails_by_its_gates_or_if_answers_are_missing() -> None:
    good, bad = routing(query("pdf", pdf=1)), routing(query("pdf", docx=1))
    missing = routing(replace(query("pdf"), errors=("down",)))
    assert results(good).problems == []
    assert results(bad).problems == []
    assert results(missing).problems == ["haiku: 1 trial without a result"]
    gated = results(missing, gates=Gates(min_recall=0.5))
    assert gated.problems == ["haiku: can't pass: 1 trial without a result"]
    assert gated.gate.passed is False
    assert len(results(bad, gates=Gates(min_recall=0.5)).problems) == 1


def test_shards_keep_all_routings() -> None:
    first, second = (
        routing(query("pdf", pdf=1), model=name) for name in ("haiku", "sonnet")
    )
    run, _ = merged([Source("a", results(first)), Source("b", results(second))])
    assert run.sections == (first, second)
