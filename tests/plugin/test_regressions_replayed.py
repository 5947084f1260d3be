"""Whole runs with known chances: what is called a regression,
and what is left to chance.
"""

from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.results.run_file import read_run
from support.accepted_project import regressions
from support.kit import commit_all
from support.known_model import KnownModel

FIVE = ("--skill-runs", "5", "--skill-no-baseline")
NOISY = [number / 20 for number in range(1, 20)]


@pytest.mark.nightly
def test_one_broken_case_is_found_among_noisy_ones(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 20, skill=[1.0, *NOISY]) as known:
        known.run(*FIVE, "--skill-accept")
        known.later(monkeypatch, 1)
        unchanged = known.run(*FIVE, "--skill-fresh")
        assert (unchanged.status, regressions(unchanged)) == (0, [])
        known.later(monkeypatch, 1, skill=[0.0, *NOISY])
        run = known.run(*FIVE, "--skill-fresh")
    assert (run.status, run.outcomes["failed"], regressions(run)) == (1, 1, ["c0"])


@pytest.mark.nightly
def test_cases_that_were_accepted_by_luck_stay_green(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ("--skill-runs", "1", "--skill-no-baseline", "--skill-fresh")
    with KnownModel(pytester, 12, skill=0.7) as known:
        known.run(*one, "--skill-accept")
        for _ in range(2):
            known.later(monkeypatch, 1)
            night = known.run(*one)
            assert (night.status, regressions(night)) == (0, [])
            assert night.outcomes["xfailed"]
        known.later(monkeypatch, 1, skill=0.0)
        collapse = known.run(*one)
    assert collapse.status == 1
    assert len(regressions(collapse)) > 5


def test_a_few_broken_cases_are_worse_than_at_a_ref_and_than_a_run(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of twelve, in all of five runs: over cases that could be chance,
    over runs it is not.
    """
    files = [pytester.path / name for name in ("before.json", "after.json")]
    with KnownModel(pytester, 12, skill=1.0, edited=[0.0, 0.0, *[1.0] * 10]) as known:
        commit_all(pytester.path)
        known.run(*FIVE)
        Path("report.json").replace(files[0])
        known.write("edited")
        run = known.run(*FIVE, "--skill-against", "HEAD", "--skill-no-worse")
        Path("report.json").replace(files[1])
    since = run.summary["comparisons"]["previous"]
    assert (run.status, since["fallen"]["fell"]) == (1, ["c0", "c1"])
    assert since["lift"]["low"] < 0 < since["lift"]["high"]
    (reason,) = run.gate["reasons"]
    assert "c1: 0 of 5 runs passed (before: 5 of 5)" in reason
    assert main(["runs", "compare", *map(str, files), "--fail-if-worse"]) == 1
    assert "c1: 0 of 5 runs passed (before: 5 of 5)" in capsys.readouterr().out
    assert read_run(files[1]).gate.reasons == (reason,)
