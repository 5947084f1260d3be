"""What follows from the records of a run."""

from dataclasses import replace

from pytest_upskill.results.run import incomplete
from support.made import made_run


def test_cases_in_no_shard_are_not_run() -> None:
    results = made_run(missing={("gate", "haiku"): 2})
    assert results.summaries[0].not_run == 2
    assert results.verdicts[0].word == "incomplete"


def test_a_subset_is_noted_unless_its_other_cases_are_missing() -> None:
    whole = made_run(skills=("gate", "door"), models=("haiku", "opus"), cases=5)
    some = replace(
        whole,
        tests=tuple(t for t in whole.tests if t.skill == "door" or t.case in ("case-0", "case-3")),
    )
    assert whole.subset_notes == []
    assert some.subset_notes == [
        f"gate on {model}: ran only 2 of 5 cases." for model in ("haiku", "opus")
    ]
    assert incomplete(some.tests) == {("gate", "haiku"): (2, 5), ("gate", "opus"): (2, 5)}
    missed = replace(some, missing={("gate", "haiku"): 3})
    assert list(missed.subsets) == [("gate", "opus")]
    assert missed.problems[-1] == "gate on haiku: 3 cases missing from all files"


def test_a_python_test_is_no_subset() -> None:
    (test, *_) = made_run(cases=1).tests
    in_python = replace(test, of=0)
    assert incomplete([in_python]) == {}
    assert incomplete([in_python, replace(test, of=2)]) == {("gate", "haiku"): (1, 2)}
