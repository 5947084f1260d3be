"""Cases compared with their accepted results, alone and together."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from pytest_upskill.features.accepted.results import compare, compare_case
from pytest_upskill.results.outcomes import next_trial
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.standings import AcceptedComparison
from pytest_upskill.trials.plan import Count, Expectation, PlannedCase
from pytest_upskill.trials.trial import Question, Trial
from support.made import made_records, made_run
from support.nights import accept, night

# Passes and runs, then and now.
Counts = Sequence[tuple[tuple[int, int], tuple[int, int]]]


def run_of(counts: Counts) -> RunResults:
    """A run of so many runs of each case, without a baseline."""
    accepted = {}
    for number, (was, _) in enumerate(counts):
        accepted[number] = Expectation(Count(*was), "2026-01-02")
    made = made_run(cases=len(counts), runs=99, accepted=accepted, arms=("skill",))
    records = []
    for record in made.records:
        passes, runs = counts[int(record.case.removeprefix("case-"))][1]
        if record.run <= runs:
            is_good = record.run <= passes
            records.append(replace(record, outcome="passed" if is_good else "failed"))
    return replace(made, records=tuple(records))


def compare_counts(counts: Counts) -> AcceptedComparison:
    (comparison,) = compare(run_of(counts))
    return comparison


def names(comparison: AcceptedComparison) -> str:
    numbers = [pair.case.removeprefix("case-") for pair in comparison.regressed]
    return " ".join(numbers)


# One case.


def standing(was: tuple[int, int], now: str, threshold: float | None = None) -> str:
    expected = Expectation(Count(*was), "2026-01-02")
    test = PlannedCase("n", "gate", "a", "m", expected=expected, threshold=threshold)
    case = compare_case(test, made_records({"skill": now}))
    assert case
    return case.standing.kind


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ((1, 5), "PPPPP", "better"),
        ((1, 5), "FFFFF", "accepted as failing"),
        ((5, 5), "PPPFF", "passed"),
        ((1, 1), "FFFF", "could be chance"),
        ((1, 1), "FFFFF", "regressed"),
        ((1, 1), "PFFFF", "could be chance"),
        ((7, 8), "FFFFF", "could be chance"),  # it takes all cases to say more
        ((2, 4), "PPFF", "accepted as failing"),  # half is not enough
    ],
)
def test_case_fails_by_its_own_runs(was: tuple[int, int], now: str, kind: str) -> None:
    assert standing(was, now) == kind


def test_threshold_decides_what_passes() -> None:
    assert standing((3, 5), "PPPFF", threshold=0.8) == "accepted as failing"
    assert standing((3, 5), "PPPFF", threshold=0.6) == "passed"


def test_case_without_all_answers_is_not_compared() -> None:
    expected = Expectation(Count(1, 1), "2026-01-02")
    test = PlannedCase("n", "gate", "a", "m", expected=expected)
    assert compare_case(test, made_records({"skill": "FE"})) is None
    marked = replace(test, compared=False)
    assert compare_case(marked, made_records({"skill": "F"})) is None


@pytest.mark.parametrize(
    ("was", "now", "is_regressed"),
    [
        # P = 0.022, but two runs are no evidence about one case
        ((1, 2), (0, 90), False),
        ((2, 2), (1, 30), False),
        ((4, 5), (0, 8), True),
        ((5, 5), (0, 1), False),
        ((5, 5), (2, 5), False),
        ((10, 10), (2, 10), True),
    ],
)
def test_case_that_may_pass_needs_three_accepted_runs(
    was: tuple[int, int], now: tuple[int, int], is_regressed: bool
) -> None:
    others = [((3, 5), (4, 5))] * 6  # so that it is not the whole
    comparison = compare_counts([(was, now), *others])
    assert names(comparison) == ("0" if is_regressed else "")
    # Its test does not fail: only all cases together can show it.
    assert comparison.case_reasons == ()
    assert len(comparison.group_reasons) == is_regressed


@pytest.mark.parametrize(
    ("records", "run"),
    [
        ({"skill": "F", "baseline": "F"}, 2),
        ({"skill": "FFFF", "baseline": "F"}, 5),
        ({"skill": "FFFFF", "baseline": "F"}, None),
        ({"skill": "FPF", "baseline": "FFF"}, None),
        ({"skill": "FE", "baseline": "F"}, None),  # not answered is not failed
    ],
)
def test_case_is_asked_again_while_all_runs_fail(
    records: dict[str, str], run: int | None
) -> None:
    question = Question("m", "", (("user", "Is it?"),), 100, 1)
    trial = Trial("gate", "a", "m", "skill", 1, question, extra=True)
    extra_trials = tuple(replace(trial, run=number) for number in range(2, 6))
    test = PlannedCase("n", "gate", "a", "m", extra_trials=extra_trials)
    following = next_trial(test, made_records(records))
    assert (following.run if following else None) == run


# All cases of a skill.


def test_in_a_collapse_all_cases_that_fell_regressed() -> None:
    """None of them alone could show it, and some still pass."""
    counts = [((4, 5), (0, 5))] * 4 + [((4, 5), (5, 5)), ((2, 5), (1, 5))]
    comparison = compare_counts(counts)
    assert names(comparison) == "0 1 2 3 5"
    assert comparison.case_reasons == ()
    (reason,) = comparison.group_reasons
    assert "regression of the skill as a whole: 6 of 30 runs passed" in reason
    kinds = {standing.kind for standing in comparison.standings.values()}
    assert kinds == {"could be chance", "passed", "accepted as failing"}
    assert comparison.notes == ()  # the gate names them


def test_one_broken_case_does_not_condemn_the_others() -> None:
    comparison = compare_counts([((8, 8), (0, 8)), ((8, 8), (7, 8))])
    assert names(comparison) == "0"
    assert len(comparison.case_reasons) == 1
    assert comparison.group_reasons == ()


def test_broken_case_and_a_drop_of_all_others_are_two_regressions() -> None:
    comparison = compare_counts([((8, 8), (0, 8)), *[((8, 8), (6, 8))] * 11])
    assert len(comparison.regressed) == 12
    assert len(comparison.case_reasons) == len(comparison.group_reasons) == 1
    assert comparison.since
    assert (comparison.since.rate, comparison.since.worse) == (1.0, 12)


def test_baseline_that_fell_too_is_told() -> None:
    accepted = {}
    for number in range(8):
        accepted[number] = Expectation(Count(5, 5), "2026-01-02", baseline=Count(4, 5))

    def passes(_case: int, _model: str, arm: str, run: int) -> bool:
        return run <= (2 if arm == "skill" else 1)

    made = made_run(cases=8, runs=5, passes=passes, accepted=accepted)
    (comparison,) = compare(made)
    (reason,) = comparison.group_reasons
    assert "16 of 40 runs passed (accepted: 40 of 40" in reason
    assert "the model got worse, too: without the skill, 8 of 40 runs passed" in reason


# How often a run is red.


def red_cases(
    was: list[list[float]], now: list[list[float]], runs: int
) -> Iterator[list[str]]:
    """Of all skills, in nights of teams that accepted one run."""
    draw = random.Random(7)
    for _ in range(5):
        accepted = accept(draw, was, 1)
        for _ in range(20):
            yield [case for names in night(draw, accepted, now, runs) for case in names]


def test_unchanged_model_is_red_in_at_most_one_night_of_twenty() -> None:
    """It is right in 85 %, and one run was accepted of 20 skills with 6 cases."""
    chances = [[0.85] * 6] * 20
    assert sum(map(bool, red_cases(chances, chances, 1))) <= 5


def test_broken_rule_is_red_in_every_night() -> None:
    was = [[1.0, *[0.85] * 5], *[[0.85] * 6] * 3]
    now = [[0.0, *[0.85] * 5], *was[1:]]
    assert all("case-0" in red for red in red_cases(was, now, 1))
