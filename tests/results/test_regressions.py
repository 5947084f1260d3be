"""Cases compared with their accepted results, alone and together."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from pytest_upskill.results.accepted import (
    AcceptedResults,
    CaseResult,
    ModelResults,
    case_digest,
    planned_case,
)
from pytest_upskill.results.regressions import (
    AcceptedComparison,
    Compared,
    compare_groups,
    next_trial,
    standing_of,
)
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.arm import Arm
from pytest_upskill.trials.plan import Count, Expectation, Group, PlannedCase
from pytest_upskill.trials.subject import Subject
from pytest_upskill.trials.trial import Question, Trial, trials_of
from support.made import made_records, pair_of
from support.nights import accept, night

# Passes and runs, then and now.
Counts = Sequence[tuple[tuple[int, int], tuple[int, int]]]
# Of five runs: with the skill and without, then and now.
Passes = tuple[int, int, int, int]
GROUP = Group(pair_of("gate", "m"), of_triggers=False)


def case_of(
    number: int, expected: Expectation, now: Count, baseline: Count | None = None
) -> Compared:
    name = f"c{number}"
    test = PlannedCase(name, "gate", name, "m", expected=expected)
    return Compared(test, now, baseline)


def compare_counts(counts: Counts) -> AcceptedComparison:
    cases: list[Compared] = []
    for was, now in counts:
        expected = Expectation(Count(*was), "2026-01-02")
        cases.append(case_of(len(cases), expected, Count(*now)))
    (comparison,) = compare_groups({GROUP: cases})
    return comparison


def compare_arms(passes: Sequence[Passes]) -> AcceptedComparison:
    cases: list[Compared] = []
    for skill, baseline, skill_now, baseline_now in passes:
        expected = Expectation(
            Count(skill, 5),
            "2026-01-02",
            baseline=Count(baseline, 5),
            model_id="m-1",
        )
        now = (Count(skill_now, 5), Count(baseline_now, 5))
        cases.append(case_of(len(cases), expected, *now))
    (comparison,) = compare_groups({GROUP: cases}, {"m": "m-2"})
    return comparison


def names(cases: tuple[Compared, ...]) -> str:
    return " ".join(case.test.case for case in cases)


# One case.


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ((1, 5), (5, 5), "better"),
        ((1, 5), (0, 5), "accepted as failing"),
        ((5, 5), (3, 5), "passed"),
        ((1, 1), (0, 4), "could be chance"),
        ((1, 1), (0, 5), "regressed"),
        ((1, 1), (1, 5), "could be chance"),
        ((7, 8), (0, 5), "could be chance"),  # it takes all cases of a run to say more
        ((2, 4), (2, 4), "accepted as failing"),  # half is not enough
    ],
)
def test_one_case_compared_with_its_accepted_result(
    was: tuple[int, int], now: tuple[int, int], kind: str
) -> None:
    expected = Expectation(Count(*was), "2026-01-02")
    assert standing_of(Count(*now), None, expected).kind == kind


def test_threshold_decides_what_passes() -> None:
    expected = Expectation(Count(3, 5), "2026-01-02")
    assert standing_of(Count(3, 5), 0.8, expected).kind == "accepted as failing"
    assert standing_of(Count(3, 5), 0.6, expected).kind == "passed"


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
    assert names(comparison.regressed) == ("c0" if is_regressed else "")


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


@pytest.mark.parametrize(
    ("was", "runs", "extra"),
    [((1, 1), 1, [2, 3, 4, 5]), ((3, 3), 3, [4, 5]), ((3, 3), 5, []), ((2, 3), 1, [])],
)
def test_cases_that_always_passed_have_extra_trials(
    was: tuple[int, int], runs: int, extra: list[int]
) -> None:
    case = Case("a", "Is it?")
    arms = [Arm("baseline", None), Arm("skill", "SKILL")]
    settings = Settings(runs=runs)
    trials = trials_of("gate", case, Subject("chat", "m"), arms, settings=settings)
    cases = {"a": CaseResult(*was, 0, 9, case_digest(case))}
    model = ModelResults("m", "2026-01-02", "s", cases)
    accepted = AcceptedResults(models={"m": model})
    test = planned_case("n", case, trials, settings, accepted=accepted)
    assert [trial.run for trial in test.extra_trials] == extra
    assert {trial.arm for trial in test.extra_trials} <= {"skill"}


# All cases of a skill.


def test_in_a_collapse_all_cases_that_fell_regressed() -> None:
    """None of them alone could show it, and some still pass."""
    counts = [((4, 5), (0, 5))] * 4 + [((4, 5), (5, 5)), ((2, 5), (1, 5))]
    comparison = compare_counts(counts)
    assert (comparison.worse, comparison.together) == ((), True)
    assert names(comparison.regressed) == "c0 c1 c2 c3 c5"
    assert "regression of the skill as a whole" in (
        comparison.standing(comparison.cases[0]).reason
    )
    assert len(comparison.reasons) == 1


def test_one_broken_case_does_not_condemn_the_others() -> None:
    comparison = compare_counts([((8, 8), (0, 8)), ((8, 8), (7, 8))])
    assert not comparison.together
    assert names(comparison.regressed) == "c0"


def test_broken_case_and_a_drop_of_all_others_are_two_regressions() -> None:
    comparison = compare_counts([((8, 8), (0, 8)), *[((8, 8), (6, 8))] * 11])
    assert names(comparison.worse) == "c0"
    assert len(comparison.regressed) == 12
    assert len(comparison.reasons) == 2
    assert comparison.since
    assert (comparison.since.rate, comparison.since.worse) == (1.0, 12)


def test_test_that_failed_stays_a_regression_in_a_stopped_run() -> None:
    (case,) = compare_counts([((3, 3), (0, 3))]).cases
    decided = replace(case.test, regression="regression of the skill")
    (stopped,) = compare_groups({GROUP: [replace(case, test=decided)]})
    assert names(stopped.regressed) == "c0"
    assert stopped.reasons == ["gate on m: c0: regression of the skill"]


# A model that got worse.

FALLEN: list[Passes] = [(5, 4, 2, 1)] * 8


def test_model_that_got_worse_is_one_reason_for_all_that_fell() -> None:
    comparison = compare_arms(FALLEN)
    (reason,) = comparison.reasons
    assert "the model got worse (baseline 80 → 20), no change of the lift" in reason
    assert "it was m-1, and is now m-2" in reason
    assert len(comparison.regressed) == 8
    assert not comparison.worse


@pytest.mark.parametrize(
    ("passes", "is_explained", "lift"),
    [
        ([(5, 4, 1, 1)] * 8, True, 0.0),
        ([(5, 4, 0, 1)] * 8, False, -0.2),
        ([(5, 4, 5, 1)] * 8, False, 0.8),
    ],
)
def test_model_explains_a_fall_unless_the_lift_fell(
    passes: list[Passes], is_explained: bool, lift: float
) -> None:
    drift = compare_arms(passes).drift
    assert drift
    assert drift.explains is is_explained
    assert drift.lift == pytest.approx(lift)


def test_case_whose_own_lift_fell_regressed_all_the_same() -> None:
    comparison = compare_arms([*FALLEN, (5, 0, 0, 0)])
    assert names(comparison.worse) == "c8"
    of_model = compare_arms([*FALLEN, (5, 5, 0, 0)])
    assert of_model.worse == ()
    reason = of_model.standing(of_model.cases[8]).reason
    assert reason.startswith("the model got worse, without the skill, too")


@pytest.mark.parametrize(
    "passes",
    [[(5, 1, 2, 1)] * 8, [(5, 4, 1, 3)] * 8, [(5, 1, 2, 1)] * 7 + [(5, 5, 0, 0)]],
)
def test_baseline_that_hardly_fell_explains_nothing(passes: list[Passes]) -> None:
    comparison = compare_arms(passes)
    assert comparison.together
    assert comparison.drift is None
    assert comparison.explained == frozenset()


# How often a run is red.


def red_cases(
    was: list[list[float]], now: list[list[float]], runs: int
) -> Iterator[list[str]]:
    """Of all skills, in nights of teams that accepted one run."""
    draw = random.Random(7)
    for _ in range(5):
        accepted = accept(draw, was, 1)
        for _ in range(20):
            comparisons = night(draw, accepted, now, runs)
            yield [case.test.case for each in comparisons for case in each.regressed]


def test_unchanged_model_is_red_in_at_most_one_night_of_twenty() -> None:
    """It is right in 85 %, and one run was accepted of 20 skills with 6 cases."""
    chances = [[0.85] * 6] * 20
    assert sum(map(bool, red_cases(chances, chances, 1))) <= 5


def test_broken_rule_is_red_in_every_night() -> None:
    was = [[1.0, *[0.85] * 5], *[[0.85] * 6] * 3]
    now = [[0.0, *[0.85] * 5], *was[1:]]
    assert all("case-0" in red for red in red_cases(was, now, 1))
