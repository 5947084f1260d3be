"""What follows from the records of a run."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.run import incomplete
from pytest_upskill.results.run_notes import subset_notes
from pytest_upskill.settings import Gates
from pytest_upskill.trials.plan import Group
from support.made import made_run, pair_of, with_missing_cases
from support.words import INCOMPLETE

GATES = Gates(min_pass_rate=0.1, min_lift=-1.0)


def test_cases_in_no_shard_are_not_run() -> None:
    results = with_missing_cases(made_run(), 2)
    assert results.rows[0].not_run == 2
    assert results.verdicts[0].verdict == INCOMPLETE


def test_a_subset_is_noted_unless_its_other_cases_are_missing() -> None:
    whole = made_run(skills=("gate", "door"), models=("haiku", "opus"), cases=5)
    some = replace(
        whole,
        tests=tuple(
            t
            for t in whole.tests
            if t.skill == "door" or t.case in ("case-0", "case-3")
        ),
    )
    assert subset_notes(whole) == []
    assert subset_notes(some) == ["gate on haiku, gate on opus: ran only 2 of 5 cases."]
    assert incomplete(some.tests) == {
        Group(pair_of("gate", "haiku")): (2, 5),
        Group(pair_of("gate", "opus")): (2, 5),
    }
    missed = replace(some, expects_all=True)
    assert not missed.subsets
    assert missed.problems[-1] == "gate on opus: 3 cases missing from all files"


def test_a_python_test_is_no_subset() -> None:
    test, *_ = made_run(cases=1).tests
    in_python = replace(test, of=0)
    assert incomplete([in_python]) == {}
    assert incomplete([in_python, replace(test, of=2)]) == {
        Group(pair_of("gate", "haiku")): (1, 2)
    }


def all_pass(*_: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("lacks", "reasons"),
    [
        ({}, []),
        (
            {"tests": (), "records": (), "skills": ()},
            ["can't pass: nothing was tested"],
        ),
        ({"records": ()}, ["gate on haiku: can't pass: 6 cases not run"]),
        (
            {
                "untested": {
                    "a": "no cases",
                    "b": "no cases",
                    "opus": "no case is for this model",
                }
            },
            [
                "a, b: can't pass: no cases",
                "opus: can't pass: no case is for this model",
            ],
        ),
        (
            {"tests": (), "records": (), "untested": {"gate": "all cases are skipped"}},
            ["gate: can't pass: all cases are skipped"],
        ),
        (
            {"tests": (), "records": (), "broken": {"x": "no text\n  Write one."}},
            ["not tested: no text. Write one."],
        ),
    ],
)
def test_a_gate_without_evidence_fails_and_says_why(
    lacks: dict[str, Any], reasons: list[str]
) -> None:
    run = replace(made_run(passes=all_pass, gates=GATES), **lacks)
    assert list(run.gate.reasons) == reasons
    assert replace(run, gates=Gates()).gate.passed is None


def test_one_arm_is_no_evidence_of_a_lift() -> None:
    run = made_run(passes=all_pass, gates=GATES, arms=("skill",))
    assert list(run.gate.reasons) == gate_reasons(run.rows, GATES) != []


@pytest.mark.parametrize(
    ("facts", "outcome", "problems"),
    [
        ({}, "passed", []),
        (
            {"interrupted": "Ctrl-C", "lost": ("x",)},
            "interrupted",
            ["interrupted: Ctrl-C; 1 of 7 tests did not run"],
        ),
        ({"interrupted": "Ctrl-C"}, "interrupted", ["interrupted: Ctrl-C"]),
        (
            {"lost": ("x", "y")},
            "failed",
            ["2 of 8 tests collected but never reported, as if their process had died"],
        ),
        ({"records": ()}, "failed", ["nothing was tested"]),
    ],
)
def test_a_run_passes_only_if_it_is_whole(
    facts: dict[str, Any], outcome: str, problems: list[str]
) -> None:
    run = replace(made_run(passes=all_pass), **facts)
    assert (run.outcome(), run.problems) == (outcome, problems)
    assert run.outcome(failed=1) == "failed"
