"""Accepted results that no test of a run is compared with."""

import json
from dataclasses import replace
from pathlib import Path

from pytest_upskill.results.gates import unmatched_reasons
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run_file import read_run, results_text
from pytest_upskill.trials.plan import Count, Unmatched, Why
from support.made import made_run


def unmatched(case: str, why: Why) -> Unmatched:
    return Unmatched("gate", "m", case, Count(4, 5), why)


def test_each_reason_is_one_line() -> None:
    found = [
        unmatched("z", "changed"),
        *(unmatched(f"c{n}", "gone") for n in range(12)),
    ]
    gone, changed = unmatched_reasons(found)
    assert gone.startswith(
        "gate on m: accepted, but gone from the file or not for this model now:"
        " c0 (4 of 5), c1 (4 of 5)"
    )
    assert gone.endswith(
        "c9 (4 of 5) and 2 more; undo that, or accept that they are dropped"
    )
    assert (
        changed == "gate on m: changed since accepted: z (4 of 5); "
        "undo that, or accept the new results"
    )


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
