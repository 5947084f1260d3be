"""Accepted results that no test of a run is compared with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.accepted import CaseResult, ModelResults
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.regressions import Present, unmatched_in, unmatched_reasons
from pytest_upskill.results.run import judged
from pytest_upskill.results.run_file import read_run, results_text
from pytest_upskill.trials.plan import Count, PlannedCase, Unmatched, Why
from support.made import made_run

ACCEPTED = ModelResults(
    "id",
    "2026-01-02",
    "s",
    {
        name: CaseResult(5, 5, 0, 9, f"d-{name}")
        for name in ("a", "b", "test_x::test_y")
    },
)
B = Present("d-b", "tested")


@pytest.mark.parametrize(
    ("present", "found"),
    [
        ({"a": Present("d-a", "tested"), "b": B}, []),
        ({"a": Present("other", "tested"), "b": B}, [("a", "changed")]),
        ({"a": Present("d-a", "skipped"), "b": B}, [("a", "skipped")]),
        ({"a": Present("other", "skipped"), "b": B}, [("a", "skipped")]),
        (
            {"a": Present("d-a", "for other models"), "b": B},
            [("a", "for other models")],
        ),
        ({"a": Present("other", "left out"), "b": B}, []),
        ({"b": B}, [("a", "gone")]),
        ({"new": Present("d-a", "tested"), "b": B}, []),  # it has another id now
        ({"new": Present("d-a", "skipped"), "b": B}, [("a", "gone")]),
        ({"a": Present("other", "tested"), "c": Present("d-a", "tested"), "b": B}, []),
        (
            {"test_x::test_y": Present("other", "tested")},
            [("a", "gone"), ("b", "gone"), "y"],
        ),
    ],
)
def test_accepted_cases_that_are_not_compared(
    present: dict[str, Present], found: list[object]
) -> None:
    in_python = [("test_x::test_y", "changed")]
    expected = [
        *(in_python if "y" in found else []),
        *(one for one in found if one != "y"),
    ]
    told = sorted(unmatched_in(ACCEPTED, present, all_listed=True))
    assert told == sorted(expected)  # type: ignore[type-var]


def test_without_the_list_of_all_cases_none_is_gone() -> None:
    assert list(unmatched_in(ACCEPTED, {"b": B}, all_listed=False)) == []


def unmatched(case: str, why: Why, of: int = 0) -> Unmatched:
    return Unmatched("gate", "m", case, Count(4, 5), "2026-01-02", why, of)


def test_each_reason_is_one_line() -> None:
    found = [
        unmatched("z", "changed"),
        *(unmatched(f"c{n}", "gone") for n in range(12)),
    ]
    gone, changed = unmatched_reasons(found)
    assert gone.startswith(
        "gate on m: accepted, but gone from the file: c0 (4 of 5), c1 (4 of 5)"
    )
    assert gone.endswith(
        "c9 (4 of 5) and 2 more; undo that, or accept that they are dropped"
    )
    assert (
        changed == "gate on m: changed since accepted: z (4 of 5); "
        "undo that, or accept the new results"
    )


def test_a_run_of_some_cases_says_nothing_of_those_that_it_has_no_test_for() -> None:
    tests = [PlannedCase("n", "gate", "a", "m", of=2)]
    found = [
        unmatched("b", "gone", 2),
        unmatched("c", "skipped", 2),
        unmatched("d", "gone", 1),
    ]
    assert [one.case for one in judged(found, tests)] == ["c", "d"]
    assert [one.case for one in judged(found, [*tests, *tests])] == ["b", "c", "d"]


def test_it_fails_the_run_also_when_it_is_read_again_or_merged(tmp_path: Path) -> None:
    results = replace(made_run(), unmatched=(unmatched("gone", "gone"),))
    file = tmp_path / "run.json"
    file.write_text(results_text(results))
    report = json.loads(file.read_text())
    assert report["gate"]["passed"] is False
    assert report["unmatched"][0]["was"] == {"passes": 4, "runs": 5}
    again = read_run(file)
    assert again.unmatched == results.unmatched
    whole, _ = merged([Source("a", again), Source("b", again)])
    assert whole.unmatched == results.unmatched
    assert len(whole.gate.reasons) == 1
