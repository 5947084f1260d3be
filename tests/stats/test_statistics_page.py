"""The numbers in docs/statistics.md match the functions."""

import re
from pathlib import Path
from statistics import fmean

import pytest

from pytest_upskill.stats import (
    CasePasses,
    detectable_lift,
    paired_lift,
    wilson,
    worsened,
)

PAGE = (Path(__file__).parents[2] / "docs/statistics.md").read_text()
RUNS = 5
PASSES = [
    (int(without), int(with_skill))
    for without, with_skill in re.findall(r" (\d)→(\d) (?=\|)", PAGE)
]
DIFFERENCES = [(with_skill - without) / RUNS for without, with_skill in PASSES]
BASELINE = fmean(without / RUNS for without, _ in PASSES)
SKILL = fmean(with_skill / RUNS for _, with_skill in PASSES)


def rate(value: float) -> str:
    low, high = wilson(value, len(PASSES))
    return f"{value:.0%} ({low:.0%} to {high:.0%})".replace("%", " %")


def numbers() -> dict[str, str]:
    lift = paired_lift(DIFFERENCES)
    (fallen,) = worsened([[CasePasses((5, 5), (3, 5))] * 3])
    assert not worsened([[CasePasses((5, 5), (3, 5))]])[0].found
    assert fallen.found
    return {
        "baseline": f"Without the skill {rate(BASELINE)}",
        "skill": f"with it {rate(SKILL)}",
        "lift": (
            f"{lift.lift * 100:+.0f} points ({lift.low * 100:+.0f} to"
            f" {lift.high * 100:+.0f}), p = {lift.p_value:.3f}"
        ),
        "detectable": (
            "Eight cases like these show a lift of "
            f"{(detectable_lift(DIFFERENCES) or 0) * 100:.0f} points or more"
        ),
        "regression": f"in each of three cases it is (p = {fallen.p_value:.3f})",
        "recall20": f"{wilson(1.0, 20).low * 100:.0f} %",
        "recall5": f"{wilson(1.0, 5).low * 100:.0f} %",
    }


def test_page_has_eight_cases() -> None:
    assert len(PASSES) == 8


@pytest.mark.parametrize("name", numbers())
def test_number_on_the_page_is_correct(name: str) -> None:
    written = re.search(
        rf"<!-- number: {re.escape(name)} -->(.*?)<!-- end -->", PAGE, re.S
    )
    assert written, f"docs/statistics.md has no number {name}"
    assert written[1] == numbers()[name]


def test_every_number_on_the_page_is_checked() -> None:
    assert set(re.findall(r"<!-- number: (.*?) -->", PAGE)) == set(numbers())
