"""Properties of JUnit files: what a suite and its cases say about skills."""

from dataclasses import replace
from math import inf
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.junit.properties import case_properties, suite_properties
from pytest_upskill.options import DAY
from pytest_upskill.settings import Gates
from support.agent_runs import agent_run
from support.made import checked_run, made_record, made_run


@pytest.mark.parametrize(
    ("runs", "shown"), [(1, "false"), (3, "true")], ids=["one run", "three runs"]
)
def test_a_case_has_its_signal_and_its_numbers_by_their_names_in_the_json(
    runs: int, shown: str
) -> None:
    made = made_run(cases=1, runs=runs, passes=lambda _n, _m, arm, _r: arm == "skill")
    assert dict(case_properties(made.records, tags=("a", "b"))) == {
        "upskill_skill": "gate",
        "upskill_model": "haiku",
        "upskill_tags": "a b",
        "upskill_signal": "only with",
        "upskill_signal_shown": shown,
        "upskill_runs": str(runs),
        "upskill_baseline_rate": "0",
        "upskill_skill_rate": "1",
        "upskill_lift": "1",
        "upskill_baseline_tokens": "50",
        "upskill_skill_tokens": "150",
        "upskill_baseline_cost": "0.0005",
        "upskill_skill_cost": "0.0015",
        "upskill_checks_passed": str(runs),
        "upskill_checks_total": str(runs),
    }


def test_what_is_not_known_is_left_out() -> None:
    known = made_record("gate", "a", "haiku", "skill", 1)
    alone = dict(case_properties([replace(known, cost=None)]))
    assert alone["upskill_skill_rate"] == "1"
    unknown = {"signal", "baseline_rate", "lift", "skill_cost"}
    assert not {f"upskill_{name}" for name in unknown} & set(alone)

    days_apart = [
        replace(made_record("gate", "a", "haiku", arm, 1), asked_at=asked_at)
        for arm, asked_at in (("baseline", 0), ("skill", 3 * int(DAY)))
    ]
    assert "upskill_lift" not in dict(case_properties(days_apart))
    assert "upskill_lift" in dict(case_properties(days_apart, max_age=inf))


def test_the_suite_has_each_skill_on_each_model_and_the_gate() -> None:
    passing = made_run(
        cases=12, passes=lambda _n, _m, arm, _r: arm == "skill", gates=Gates(min_lift=0)
    )
    suite = dict(suite_properties(passing))
    prefix = "upskill:gate:haiku:"
    assert suite[f"{prefix}verdict"] == "helps"
    assert (suite[f"{prefix}cases"], suite[f"{prefix}lift"]) == ("12", "1")
    assert float(suite[f"{prefix}lift_low"]) > 0.5
    assert suite["upskill_gate"] == "passed"

    failing = replace(passing, gates=Gates(min_pass_rate=2.0), interrupted="Ctrl-C")
    suite = dict(suite_properties(failing))
    assert suite["upskill_gate"] == "not passed"
    assert suite["upskill_gate_reason_1"] in failing.gate.reasons
    assert suite["upskill_interrupted"] == "Ctrl-C"
    assert "upskill_gate" not in dict(suite_properties(made_run()))


def test_a_lift_is_of_the_score_and_an_agent_is_named() -> None:
    results = checked_run([(1, 6)] * 6)
    suite = dict(suite_properties(results))
    assert suite["upskill:gate:haiku:score"] == "checks"
    assert float(suite["upskill:gate:haiku:lift"]) == pytest.approx(5 / 7, abs=1e-6)

    agents = agent_run(cases=1)
    properties = dict(case_properties(agents.records))
    assert properties["upskill_agent"] == "loop"
    assert properties["upskill_model"] == "loop/haiku"


@given(st.text(st.characters(codec="utf-8")), st.text())
def test_property_names_are_valid_xml(skill: str, model: str) -> None:
    made = made_run(skills=(skill,), models=(model,), cases=1)
    element = ElementTree.Element("properties")
    for name, _ in suite_properties(made):
        element.append(ElementTree.Element("property", name=name))
    assert ElementTree.fromstring(ElementTree.tostring(element))
