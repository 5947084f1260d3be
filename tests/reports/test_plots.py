"""The plots of a skill hold any numbers."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.plots import Point, efficient, frontier, points_of
from pytest_upskill.results.verdict import sweet_spot
from support.made import made_run
from support.pages import readable_run


def test_no_point_beats_the_efficient_frontier() -> None:
    def point(x: float, rate: float) -> Point:
        return Point("m", "skill", x, rate)

    found = [point(3, 0.9), point(1, 0.2), point(2, 0.1), point(3, 0.5), point(4, 0.9)]
    assert efficient(found) == [point(1, 0.2), point(3, 0.9)]


def test_cost_is_drawn_if_prices_are_known_else_tokens() -> None:
    known = points_of(readable_run().verdicts)
    assert known
    assert known[1].is_cost
    assert known[1].is_log  # from 0.06 to 33 USD
    free = made_run(models=("a", "b"))
    records = [replace(record, cost=None) for record in free.records]
    known = points_of(replace(free, records=tuple(records)).verdicts)
    assert known
    assert (known[1].is_cost, known[1].is_log) == (False, False)
    records = [replace(record, input_tokens=None) for record in records]
    results = replace(free, records=tuple(records))
    assert points_of(results.verdicts) is None
    assert "Cost is not drawn" in html_report(results)


@given(st.lists(st.floats(1e-4, 1e6), min_size=1, max_size=8), st.booleans())
def test_any_amounts_get_round_ticks(costs: list[float], free: bool) -> None:
    """Also where answers without the skill cost nothing."""
    models = [f"model-{n}" for n in range(len(costs))]
    prices = dict(zip(models, costs, strict=True))
    made = made_run(models=models, cases=1)
    records = [
        replace(record, cost=0.0 if free and record.arm == "baseline" else prices[record.label])
        for record in made.records
    ]
    page = html_report(replace(made, records=tuple(records)))
    (plane,) = re.findall(r'<svg class="plot plane".*?</desc>(.*?)</svg>', page)
    ticks = re.findall(r'<text class="tick" x="([\d.]+)%" [^>]*text-anchor="middle"', plane)
    assert 1 <= len(ticks) <= 6
    places = re.findall(r'x[12]?="(-?[\d.]+)%"', plane)
    assert all(0 <= float(place) <= 100 for place in places)


def test_a_model_that_never_answered_does_not_hide_the_others() -> None:
    made = made_run(models=("a", "b"))
    records = [
        replace(r, outcome="errored", cost=None, output=None) if r.label == "b" else r
        for r in made.records
    ]
    page = html_report(replace(made, records=tuple(records)))
    assert page.count('class="dot skill"') == 2  # of the model a, in either plot


def test_the_ring_is_around_what_the_sentence_names() -> None:
    """A model that is harmed by the skill is the best without it."""

    def passes(number: int, model: str, arm: str, _run: int) -> bool:
        return (arm == "baseline" or number > 8) if model == "good" else number == 0

    made = made_run(models=("good", "poor"), cases=15, passes=passes)
    priced = [replace(r, cost=0.01 if r.label == "poor" else r.cost) for r in made.records]
    verdicts = replace(made, records=tuple(priced)).verdicts
    assert (sweet_spot(verdicts) or "").startswith("good without the skill (100%)")
    parts = re.findall(r'<circle[^>]*class="([^"]+)"', frontier(verdicts) or "")
    assert parts[parts.index("spot") + 1] == "dot baseline"
