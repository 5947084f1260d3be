"""What users do until a lift shows, simulated: it must not show what is not there."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from pytest_upskill.features.history.looking_back import look_back
from pytest_upskill.results.history import keep
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import Verdict
from support.made import STARTED, made_run

CASES = 20
simulations = pytest.mark.parametrize(
    "number", [20, pytest.param(200, marks=pytest.mark.nightly)]
)


def chance(random: Random, rates: Sequence[float]) -> Callable[..., bool]:
    """Every case passes by its rate, with and without the skill."""
    return lambda case, *_: random.random() < rates[case]


def run_of(random: Random, rates: Sequence[float], runs: int = 1) -> RunResults:
    return made_run(cases=CASES, runs=runs, passes=chance(random, rates))


def without_failures(results: RunResults, *, stored: bool) -> RunResults:
    """The same run after the cases that failed with the skill were deleted."""
    failed = {
        record.case
        for record in results.records
        if record.arm == "skill" and record.outcome == "failed"
    }
    tests = [test for test in results.tests if test.case not in failed]
    records = [
        replace(record, stored=stored)
        for record in results.records
        if record.case not in failed
    ]
    return replace(
        results,
        tests=tuple(replace(test, of=len(tests)) for test in tests),
        records=tuple(records),
    )


def judge_again(results: RunResults, folder: Path, days: int) -> Verdict:
    started = STARTED + timedelta(days=days)
    later = replace(results, started=started)
    later = replace(later, **look_back(later, folder))
    keep(later, folder, 10**9)
    [verdict] = later.verdicts
    return verdict


@simulations
def test_deleting_the_cases_that_failed_shows_no_lift(
    tmp_path: Path, number: int
) -> None:
    random = Random(7)
    naive = []
    for simulation in range(number):
        rates = [random.uniform(0.2, 0.8) for _ in range(CASES)]
        results = run_of(random, rates)
        folder = tmp_path / str(simulation)
        judge_again(results, folder, days=1)

        fewer = without_failures(results, stored=True)
        naive.append(fewer.verdicts[0].verdict == "helps")
        for days in (2, 3):
            verdict = judge_again(fewer, folder, days=days)
            assert verdict.verdict is None
            assert "failed last time are gone" in verdict.sentence
    assert fmean(naive) > 0.3  # what it was before


@simulations
def test_cases_that_are_left_may_be_asked_afresh(tmp_path: Path, number: int) -> None:
    random = Random(8)
    helps = []
    for simulation in range(number):
        rates = [random.uniform(0.2, 0.8) for _ in range(CASES)]
        results = run_of(random, rates)
        folder = tmp_path / str(simulation)
        judge_again(results, folder, days=1)

        left = {test.case for test in without_failures(results, stored=False).tests}
        anew = run_of(random, rates)
        tests = [
            replace(test, of=len(left)) for test in anew.tests if test.case in left
        ]
        records = [record for record in anew.records if record.case in left]
        afresh = replace(anew, tests=tuple(tests), records=tuple(records))
        verdict = judge_again(afresh, folder, days=2)
        helps.append(verdict.verdict == "helps")
    assert fmean(helps) <= 0.1


@simulations
def test_variants_of_a_prompt_count_once_in_a_group(number: int) -> None:
    """Each of ten prompts has five variants that end alike; the skill does nothing."""
    random = Random(12)
    apart = []
    grouped = []
    for _ in range(number):
        ends = {
            arm: [random.random() < 0.5 for _ in range(10)]
            for arm in ("baseline", "skill")
        }

        def ends_alike(
            case: int,
            _model: str,
            arm: str,
            _run: int,
            ends: dict[str, list[bool]] = ends,
        ) -> bool:
            return ends[arm][case // 5]

        results = made_run(cases=50, passes=ends_alike)
        tests = [
            replace(test, case_group=f"prompt {index // 5}")
            for index, test in enumerate(results.tests)
        ]
        apart.append(results.verdicts[0].verdict in ("helps", "hurts"))
        in_groups = replace(results, tests=tuple(tests))
        grouped.append(in_groups.verdicts[0].verdict in ("helps", "hurts"))
    assert fmean(apart) >= 0.2
    assert fmean(grouped) <= 0.1
