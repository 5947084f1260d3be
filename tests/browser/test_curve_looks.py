"""The curve of lift against tokens in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.part_effects import Parts, ShorterVersion
from pytest_upskill.stats import Lift
from support.browser import Page
from support.made import made_run
from support.pages import write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

SIZES = {120: 0.1, 260: 0.6, 400: 0.75}


def lift(value: float) -> Lift:
    return Lift(value, value - 0.2, min(1.0, value + 0.2), 0.01)


@pytest.mark.parametrize("width", [390, 1200])
def test_the_curve_is_drawn_where_the_numbers_say(page: Page, tmp_path: Path, width: int) -> None:
    versions = [
        ShorterVersion(size, lift(value), lift(value - 0.8)) for size, value in SIZES.items()
    ]
    made = Parts("wick", "haiku", 800, lift(0.8), (), tuple(versions))
    page.size(width)
    page.open(write_page(replace(made_run(cases=2), parts=(made,)), tmp_path))
    page.assert_quiet()
    assert page.js("document.documentElement.scrollWidth") <= width
    (plot,) = page.boxes(".curve.plot")
    (bare,) = page.boxes(".curve .dot.baseline")
    dots = page.boxes(".curve circle.dot.skill")
    middles = [(one["x"] + one["width"] / 2, one["y"] + one["height"] / 2) for one in dots]
    left = bare["x"] + bare["width"] / 2
    for (x, _), size in zip(middles, SIZES, strict=True):
        assert (x - left) / (middles[-1][0] - left) == pytest.approx(size / 400, abs=0.02)
    assert [y for _, y in middles] == sorted((y for _, y in middles), reverse=True)
    for name in page.boxes(".curve text.name"):
        assert plot["x"] - 1 <= name["x"]
        assert name["right"] <= plot["right"] + 10
