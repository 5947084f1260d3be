"""What the passes of a case say about a skill."""

import pytest

from pytest_upskill.results.row import count_signals
from pytest_upskill.results.signals import SIGNALS, signal_of
from pytest_upskill.trials.plan import Count
from support.made import by_count, made_run


@pytest.mark.parametrize(
    ("runs", "without", "with_skill", "signal"),
    [
        (1, 0, 1, "only with"),
        (1, 1, 0, "only without"),
        (2, 1, 2, "only with"),  # half is enough
        (3, 1, 2, "mixed"),
        (3, 3, 1, "only without"),
        (5, 5, 5, "both pass"),
        (5, 0, 0, "both fail"),
        (5, 4, 4, "mixed"),
    ],
)
def test_signal_says_where_a_case_passes(
    runs: int, without: int, with_skill: int, signal: str
) -> None:
    assert signal_of(Count(without, runs), Count(with_skill, runs)).signal == signal


@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        (1, set()),
        (2, set()),
        (3, {(0, 3)}),
        (4, {(0, 4)}),
        (5, {(0, 4), (0, 5), (1, 5)}),
    ],
)
def test_signal_is_shown_only_by_an_exact_test(
    runs: int, shown: set[tuple[int, int]]
) -> None:
    found = set()
    for low in range(runs + 1):
        for high in range(low, runs + 1):
            up = signal_of(Count(low, runs), Count(high, runs))
            down = signal_of(Count(high, runs), Count(low, runs))
            assert up.is_shown == down.is_shown
            if up.is_shown:
                found.add((low, high))
                assert (up.signal, down.signal) == ("only with", "only without")
    assert found == shown


def test_each_signal_of_a_row_is_counted() -> None:
    counts = [(0, 3), (0, 3), (3, 0), (3, 3), (0, 0), (1, 2)]
    run = made_run(cases=6, runs=3, passes=by_count(*counts))
    (row,) = run.rows
    assert row.signals == dict(zip(SIGNALS, (2, 1, 1, 1, 1), strict=True))
    shown = [case.signal_shown for case in run.by_case]
    assert shown == [True, True, True, False, False, False]

    alone = made_run(arms=("skill",)).rows[0]
    assert alone.signals == count_signals(alone.by_case) == {}
