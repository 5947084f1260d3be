"""Cases compared with their accepted results, alone and together."""

import random
from collections.abc import Iterator
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
    compare,
    could_flip,
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

Counts = list[tuple[int, int]]
GROUP = Group(pair_of("gate", "m"), of_triggers=False)


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ((1, 5), (5, 5), "better"),
        ((1, 5), (0, 5), "accepted as failing"),
        ((5, 5), (3, 5), "passed"),
        ((1, 1), (0, 1), "could be chance"),
        ((1, 1), (0, 4), "could be chance"),
        ((1, 1), (0, 5), "regressed"),
        ((1, 1), (1, 5), "could be chance"),
        ((7, 8), (0, 5), "could be chance"),  # it takes all cases of a run to say more
        ((1, 1), (1, 3), "could be chance"),
        ((10, 10), (7, 10), "passed"),
        ((8, 8), (0, 8), "regressed"),
        ((2, 4), (2, 4), "accepted as failing"),  # half is not enough
    ],
)
def test_one_case_compared_with_its_accepted_result(
    was: tuple[int, int], now: tuple[int, int], kind: str
) -> None:
    expected = Expectation(Count(*was), "2026-01-02")
    assert standing_of(Count(*now), None, expected).kind == kind


@pytest.mark.parametrize(
    ("now", "threshold", "flips"),
    [
        ((2, 3), None, True),  # at most one of three passes: 26 %
        ((1, 3), None, True),
        ((6, 8), None, True),  # 11 %
        ((7, 8), None, False),  # 1 %
        ((7, 8), 0.75, True),  # 7 %
        ((7, 8), 1, True),
        ((3, 3), None, False),
        ((0, 3), None, False),
    ],
)
def test_which_cases_are_flaky(
    now: tuple[int, int], threshold: float | None, flips: bool
) -> None:
    assert could_flip(Count(*now), threshold) is flips


@pytest.mark.parametrize(
    ("was", "now", "regressed"),
    [
        ((1, 1), (0, 1), False),
        # P = 0.022, but two runs are no evidence about one case
        ((1, 2), (0, 90), False),
        ((2, 2), (1, 30), False),
        ((4, 5), (0, 8), True),
        ((5, 5), (0, 1), False),
        ((5, 5), (2, 5), False),
        ((10, 10), (2, 10), True),
    ],
)
def test_one_case_that_may_pass_needs_three_accepted_runs(
    was: tuple[int, int], now: tuple[int, int], regressed: bool
) -> None:
    noisy = [(3, 5)] * 6  # so that it is not the whole
    found = compared([was, *noisy], [now, *[(4, 5)] * 6])
    assert names(found.regressed) == ("c0" if regressed else "")


def test_a_threshold_decides_what_passes() -> None:
    expected = Expectation(Count(3, 5), "2026-01-02")
    assert standing_of(Count(3, 5), 0.8, expected).kind == "accepted as failing"
    assert standing_of(Count(3, 5), 0.6, expected).kind == "passed"


def compared(accepted: Counts, present: Counts) -> AcceptedComparison:
    cases = [
        Compared(
            PlannedCase(
                f"n{number}",
                "gate",
                f"c{number}",
                "m",
                expected=Expectation(Count(*was), "2026-01-02"),
            ),
            Count(*now),
        )
        for number, (was, now) in enumerate(zip(accepted, present, strict=True))
    ]
    return compare({GROUP: cases})[0]


def names(cases: tuple[Compared, ...]) -> str:
    return " ".join(case.test.case for case in cases)


def test_in_a_collapse_all_cases_that_fell_regressed() -> None:
    """None of them alone could show it."""
    found = compared([(4, 5)] * 9, [(0, 5)] * 4 + [(5, 5)] + [(0, 5)] * 4)
    assert (found.worse, bool(found.together)) == ((), True)
    assert names(found.regressed) == "c0 c1 c2 c3 c5 c6 c7 c8"
    assert (
        found.standing(found.cases[0]).reason
        == "regression of the skill as a whole: 0 of 5 passed (accepted: 4 of 5,"
        " 2026-01-02)"
    )
    assert found.of_kind("could be chance") == ()
    assert len(found.reasons) == 1


def test_cases_that_still_pass_or_were_accepted_as_failing_can_fall_too() -> None:
    found = compared([(5, 5)] * 9 + [(2, 5)], [(4, 5)] * 8 + [(5, 5), (0, 5)])
    assert found.together
    assert names(found.regressed) == "c0 c1 c2 c3 c4 c5 c6 c7 c9"


def test_one_broken_case_does_not_condemn_the_others() -> None:
    found = compared([(8, 8)] * 5, [(0, 8), (7, 8), (8, 8), (8, 8), (8, 8)])
    assert not found.together
    assert names(found.regressed) == "c0"


def test_a_broken_case_and_a_drop_of_all_others_are_two_regressions() -> None:
    found = compared([(8, 8)] * 12, [(0, 8)] + [(6, 8)] * 11)
    assert names(found.worse) == "c0"
    assert len(found.regressed) == 12
    assert "regression: 0 of 8" in found.standing(found.cases[0]).reason
    assert (
        "of the other cases together: 6 of 8" in found.standing(found.cases[1]).reason
    )


def test_a_test_that_failed_stays_a_regression_in_a_stopped_run() -> None:
    first = compared([(3, 3)], [(0, 3)]).cases[0]
    decided = replace(
        first, test=replace(first.test, regression="regression of the skill")
    )
    (stopped,) = compare({GROUP: [decided]})
    assert names(stopped.regressed) == "c0"
    assert stopped.reasons == ["gate on m: c0: regression of the skill"]


@pytest.mark.parametrize(
    ("records", "run"),
    [
        ({"skill": "F", "baseline": "F"}, 2),
        ({"skill": "FFF", "baseline": "FFF"}, 4),
        ({"skill": "FFFF", "baseline": "F"}, 5),
        ({"skill": "FFFFF", "baseline": "F"}, None),
        ({"skill": "FFFFFF", "baseline": "FFFFFF"}, None),
        ({"skill": "P", "baseline": "F"}, None),
        ({"skill": "FP", "baseline": "F"}, None),
        ({"skill": "FPF", "baseline": "FFF"}, None),
        ({"skill": "FE", "baseline": "F"}, None),  # not answered is not failed
    ],
)
def test_a_case_is_asked_again_while_all_runs_fail(
    records: dict[str, str], run: int | None
) -> None:
    question = Question("m", "", (("user", "Is it?"),), 100, 1)
    trial = Trial("gate", "a", "m", "skill", 1, question, extra=True)
    extra_trials = tuple(replace(trial, run=number) for number in range(2, 6))
    test = PlannedCase("n", "gate", "a", "m", extra_trials=extra_trials)
    trial_after = next_trial(test, made_records(records))
    assert (trial_after.run if trial_after else None) == run


@pytest.mark.parametrize(
    ("was", "runs", "extra"),
    [((1, 1), 1, [2, 3, 4, 5]), ((3, 3), 3, [4, 5]), ((3, 3), 5, []), ((2, 3), 1, [])],
)
def test_cases_that_always_passed_have_extra_trials(
    was: tuple[int, int], runs: int, extra: list[int]
) -> None:
    case = Case("a", "Is it?")
    arms = [Arm("baseline", None), Arm("skill", "SKILL")]
    subject = Subject("chat", "m")
    settings = Settings(runs=runs)
    trials = trials_of("gate", case, subject, arms, settings=settings)
    cases = {"a": CaseResult(*was, 0, 9, case_digest(case))}
    accepted = AcceptedResults(
        models={"m": ModelResults("m", "2026-01-02", "s", cases)}
    )
    test = planned_case("n", case, trials, settings, accepted=accepted)
    assert [trial.run for trial in test.extra_trials] == extra
    assert all(trial.question.run == trial.run for trial in test.extra_trials)
    assert {trial.arm for trial in test.extra_trials} <= {"skill"}
    marked = planned_case(
        "n", case, trials, settings, accepted=accepted, compared=False
    )
    assert marked.extra_trials == ()


def nights(
    was: list[list[float]], now: list[list[float]], runs: int
) -> Iterator[list[str]]:
    """The cases of the first skill that are red, in nights of teams that accepted one
    run.
    """
    draw = random.Random(7)
    for _ in range(5):
        accepted = accept(draw, was, 1)
        for _ in range(20):
            first, *others = night(draw, accepted, now, runs)
            yield [case.test.case for case in first.regressed] + [
                case.test.skill for other in others for case in other.regressed
            ]


def test_an_unchanged_model_is_red_in_at_most_one_night_of_twenty() -> None:
    """It is right in 85 %, and one run was accepted of 20 skills with 6 cases."""
    chances = [[0.85] * 6] * 20
    assert sum(map(bool, nights(chances, chances, 1))) <= 5


def test_a_broken_rule_is_red_in_every_night() -> None:
    was = [[1.0, *[0.85] * 5], *[[0.85] * 6] * 3]
    now = [[0.0, *[0.85] * 5], *was[1:]]
    assert all("case-0" in red for red in nights(was, now, 1))
