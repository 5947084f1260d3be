"""Properties of JUnit files: what a suite and its cases say about skills."""

from dataclasses import replace
from math import inf
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.options import DAY
from pytest_upskill.reports.junit_properties import case_properties, suite_properties
from pytest_upskill.settings import Gates
from support.agent_runs import agent_run
from support.made import accepted_count, checked_run, made_record, made_run


def test_a_regression_of_the_whole_skill_is_in_the_suite() -> None:
    made = made_run(
        cases=12,
        runs=5,
        passes=lambda _number, _model, arm, run: arm == "skill" and run > 2,
        accepted={number: accepted_count(5, 5) for number in range(12)},
    )
    properties = dict(suite_properties(made))
    assert properties["upskill_gate"] == "not passed"
    assert set(made.gate.reasons) & set(properties.values())


def test_without_gates_there_is_no_gate_property() -> None:
    properties = dict(suite_properties(made_run()))
    assert not any(name.startswith("upskill_gate") for name in properties)
    assert (
        dict(suite_properties(made_run(gates=Gates(min_lift=0))))["upskill_gate"]
        == "passed"
    )


def test_an_unknown_cost_is_left_out() -> None:
    known = made_record("gate", "a", "haiku", "skill", 1)
    unknown = made_record("gate", "a", "haiku", "skill", 2, cost=None)
    assert dict(case_properties([known]))["upskill_cost"] == "0.0015"
    assert "upskill_cost" not in dict(case_properties([known, unknown]))


def test_arms_of_different_days_have_a_lift_where_that_is_allowed() -> None:
    records = [
        replace(made_record("gate", "a", "haiku", arm, 1), asked_at=asked_at)
        for arm, asked_at in (("baseline", 0), ("skill", 3 * int(DAY)))
    ]
    assert "upskill_lift" not in dict(case_properties(records))
    assert "upskill_lift" in dict(case_properties(records, max_age=inf))


def test_what_agents_did_is_there_and_not_for_plain_completions() -> None:
    agents = agent_run(cases=10, opens=lambda case, _: case < 9)
    own = dict(case_properties(agents.records[:2]))
    assert (own["upskill_agent"], own["upskill_model"]) == ("loop", "loop/haiku")
    assert (own["upskill_skill_turns"], own["upskill_activated"]) == ("5", "1")
    suite = dict(suite_properties(agents))
    assert suite["upskill:gate:loop/haiku:skill_tool_calls"] == "3.9"
    assert suite["upskill:gate:loop/haiku:activated"] == "9"
    assert suite["upskill:gate:loop/haiku:activated_trials"] == "10"
    plain = [*case_properties(made_run().records[:2]), *suite_properties(made_run())]
    assert not [name for name, _ in plain if "agent" in name or "turns" in name]


@given(st.text(st.characters(codec="utf-8")), st.text())
def test_property_names_are_valid_xml(skill: str, model: str) -> None:
    made = made_run(skills=(skill,), models=(model,), cases=1)
    element = ElementTree.Element("properties")
    for name, _ in suite_properties(made):
        element.append(ElementTree.Element("property", name=name))
    assert ElementTree.fromstring(ElementTree.tostring(element))


def test_both_lifts_are_there() -> None:
    results = checked_run([(1, 6)] * 6)
    suite = dict(suite_properties(results))
    assert suite["upskill:gate:haiku:score"] == "checks"
    assert float(suite["upskill:gate:haiku:rate_lift"]) == 0
    assert float(suite["upskill:gate:haiku:score_lift"]) == pytest.approx(
        5 / 7, abs=1e-6
    )
    records = [record for record in results.records if record.case == "case-0"]
    of_case = dict(case_properties(records, "checks"))
    assert float(of_case["upskill_lift"]) == pytest.approx(5 / 7, abs=1e-6)
    assert float(of_case["upskill_baseline_score"]) == pytest.approx(1 / 7, abs=1e-6)
