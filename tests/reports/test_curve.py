"""The curve of lift against tokens."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.curve import curve_lines
from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.curve import curve
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.terminal.layout import Look
from pytest_upskill.results.arm_comparison import points_words
from pytest_upskill.results.losses import loss_words
from pytest_upskill.results.parts import Parts, Version
from pytest_upskill.results.run import RunResults
from pytest_upskill.stats import Lift
from support.made import made_run


def lift(value: float, reach: float = 0.2) -> Lift:
    return Lift(value, max(-1.0, value - reach), min(1.0, value + reach), 0.01)


def parts_with(*versions: Version, tokens: int = 800, whole: Lift | None = None) -> Parts:
    return Parts("wick", "haiku", tokens, whole or lift(0.8), (), versions)


def test_the_curve_goes_from_the_baseline_to_the_whole_skill() -> None:
    made = parts_with(
        Version(400, lift(0.75), lift(-0.05), folder="skills/wick.short"),
        Version(200, lift(-0.1), lift(-0.9)),
    )
    page = curve(made)
    assert page
    assert "<title>Lift of wick on haiku against its tokens</title>" in page
    assert (
        f"<desc>0 tokens: the baseline; 200 tokens, a version: {points_words(lift(-0.1))}; "
        f"400 tokens, the chosen version: {points_words(lift(0.75))}; "
        f"800 tokens, the whole skill: {points_words(lift(0.8))}</desc>"
    ) in page
    assert len(re.findall('class="dot baseline"', page)) == 1
    assert len(re.findall('class="dot skill"', page)) == 3
    assert len(re.findall('class="spot"', page)) == 1
    assert len(re.findall('class="joint"', page)) == 3


def test_nothing_is_drawn_without_a_measured_version() -> None:
    assert curve(parts_with()) is None
    assert curve(parts_with(Version(400, None, None))) is None


SHARES = st.floats(-1, 1, allow_nan=False)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), SHARES, SHARES, SHARES), min_size=1, max_size=8),
    st.integers(1, 10**6),
)
def test_all_is_drawn_inside_the_picture(
    written: list[tuple[int, float, float, float]], tokens: int
) -> None:
    made = [
        Version(size, Lift(sorted(found)[1], min(found), max(found), 0.5), None)
        for size, *found in written
    ]
    page = curve(parts_with(*made, tokens=tokens))
    assert page
    places = re.findall(r'(?:c?x[12]?)="(-?[\d.]+)%"', page)
    assert all(0 <= float(place) <= 100 for place in places)
    heights = re.findall(r'\b(?:c?y[12]?)="(-?[\d.]+)"', page)
    (height,) = re.findall(r'width="100%" height="([\d.]+)"', page)
    assert all(0 <= float(place) <= float(height) for place in heights)


def studied(*found: Parts) -> RunResults:
    return replace(made_run(cases=2), parts=found)


def test_every_report_has_the_table() -> None:
    kept, lost = lift(-0.02, 0.05), Lift(-0.9, -0.95, -0.8, 0.001)
    made = parts_with(
        Version(400, lift(0.75), kept, folder="skills/wick.short", cases=40),
        Version(200, lift(-0.1), lost, cases=40),
        Version(100, None, None, cases=40),
    )
    assert curve_lines(made, Look(80)) == [
        "haiku, 40 held-out cases",
        "             tokens  lift               against the whole skill",
        "──────────────────────────────────────────────────────────────────",
        "whole skill     800  +80 (+60 to +100)  –",
        f"saved           400  +75 (+55 to +95)   {loss_words(kept)}",
        f"shorter         200  -10 (-30 to +10)   {loss_words(lost)}",
        "shorter         100  –                  not known: not measured",
    ]
    text = markdown_summary(studied(made))
    assert "### wick, shorter" in text
    assert "|  | tokens | lift | against the whole skill |\n| --- | --- | --- | --- |\n" in text
    assert f"| saved | 400 | \\+75 (+55 to +95) | {loss_words(kept)} |" in text
    page = html_report(studied(made))
    assert f'<span class="word hurts">{loss_words(lost)}</span>' in page
    assert 'class="plot curve"' in page


def test_nothing_is_said_of_versions_without_any() -> None:
    assert curve_lines(parts_with(), Look(80)) == []
    assert "shorter" not in markdown_summary(studied(parts_with()))
    assert "plot curve" not in html_report(studied(parts_with()))


def test_names_are_no_markup() -> None:
    bad = "<img src=x onerror=alert(1)>|\n# x"
    made = replace(parts_with(Version(9, lift(0.5), lift(0))), skill=bad, model=bad)
    page, text = html_report(studied(made)), markdown_summary(studied(made))
    assert "<img" not in page + text
    assert "\n# x" not in text
