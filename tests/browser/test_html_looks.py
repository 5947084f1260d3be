"""The HTML report in a real browser: plots, colours, widths, print; screenshots to look at."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from pytest_upskill.reports.html.case_data import anchor
from pytest_upskill.results.run import RunResults
from support.agent_runs import agent_run
from support.browser import CONTRASTS, Page
from support.chromium import ChromiumPage
from support.made import made_run
from support.pages import readable_run, write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

SCREENSHOTS = Path(__file__).parents[2] / "build/screenshots"
LINKED = f"case-{anchor('release-notes', 'two-issues', 'sonnet')}"


def test_the_plots_are_drawn_where_the_numbers_say(page: Page, report: Path) -> None:
    page.open(report)
    (plot,) = page.boxes(".dumbbell")
    without, with_skill = (
        page.boxes(".dumbbell .dot.baseline"),
        page.boxes(".dumbbell .dot.skill"),
    )
    assert len(without) == len(with_skill) == 4
    rates = [row.pairs("rate", over="baseline") for row in readable_run().summaries]
    means = [tuple(map(fmean, zip(*pairs, strict=True))) for pairs in rates]

    def share(box: dict[str, float]) -> float:
        return ((box["left"] + box["right"]) / 2 - plot["left"]) / plot["width"]

    low, high = share(page.boxes(".dumbbell .dot.skill")[3]), share(with_skill[2])
    assert means[2][1] == 1.0
    assert means[3][1]
    scale = (high - low) / (1.0 - means[3][1])
    for (bare, skilled), one, two in zip(means, without, with_skill, strict=True):
        assert share(one) == pytest.approx(high - scale * (1 - bare), abs=0.01)
        assert share(two) == pytest.approx(high - scale * (1 - skilled), abs=0.01)
        assert one["top"] == pytest.approx(two["top"], abs=1)
    (plane,) = page.boxes(".plane")
    points = page.boxes(".plane .dot")
    assert len(points) == 8
    assert all(plane["left"] <= p["left"] < p["right"] <= plane["right"] for p in points)
    assert page.boxes(".plane .spot") == []  # so few cases support no choice
    assert len(page.boxes(".plane .frontier")) == 2 * 4 + 1
    page.assert_quiet()


@pytest.mark.parametrize("models", [("haiku",), ("haiku", "sonnet", "opus")])
def test_no_picture_is_much_lower_than_its_card(
    page: Page, tmp_path: Path, models: tuple[str, ...]
) -> None:
    page.open(write_page(made_run(models=models), tmp_path))
    plots, cards = page.boxes("figure .plot"), page.boxes("figure")
    assert len(plots) == 2
    for plot, card in zip(plots, cards, strict=True):
        assert card["height"] - plot["height"] < 130  # title, legend, padding


@pytest.mark.parametrize("width", [360, 1280])
def test_names_in_the_plot_of_six_models_do_not_collide(
    page: Page, tmp_path: Path, width: int
) -> None:
    models = [f"provider/model-{n}" for n in range(6)]
    made = made_run(models=models, cases=20, passes=lambda n, m, *_: n < 17 + (int(m[-1]) % 3))
    records = [replace(r, cost=0.001 + 0.0001 * int(r.label[-1])) for r in made.records]
    page.size(width)
    page.open(write_page(replace(made, records=tuple(records)), tmp_path))
    names = page.js(  # without the halo around them, which may overlap
        "[...document.querySelectorAll('.plane .name')].map(name => name.getBBox()).map(box =>"
        " ({left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height}))"
    )
    assert len(names) == 6
    for number, one in enumerate(names):
        for two in names[number + 1 :]:
            apart = one["right"] <= two["left"] or two["right"] <= one["left"]
            assert apart or one["bottom"] <= two["top"] + 4 or two["bottom"] <= one["top"] + 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(page: ChromiumPage, report: Path, scheme: str) -> None:
    page.media(scheme=scheme)
    page.open(report, f"#{LINKED}")
    page.click(f"#{LINKED} + .detail [data-show=diff]")
    back = page.js("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    found: list[tuple[float, str, str]] = page.js(CONTRASTS)
    assert len(found) > 500
    assert [pair for pair in found if pair[0] < 4.5] == []


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_the_page_is_as_wide_as_its_window(page: Page, report: Path, width: int) -> None:
    page.size(width)
    page.open(report, f"#{LINKED}")
    assert page.js("document.documentElement.scrollWidth") == width
    cards = page.boxes(".card")
    is_stacked = cards[0]["bottom"] <= cards[1]["top"]
    assert is_stacked == (width < 600)
    sizes = page.js(
        "[...document.querySelectorAll('.plot text')].map(text => getComputedStyle(text).fontSize)"
    )
    assert min(float(size.removesuffix("px")) for size in sizes) >= 11


def wide_run() -> RunResults:
    """Three skills on five models, with prices, some names long."""
    models = ("haiku", "sonnet", "openai/gpt-5-mini", "hf:Qwen/Qwen2.5-72B-Instruct", "local")
    return made_run(skills=("gate", "release-notes-for-libraries", "wick"), models=models)


@pytest.mark.parametrize("width", [360, 720, 860, 1280])
def test_tables_of_five_models_fit(page: Page, tmp_path: Path, width: int) -> None:
    page.size(width)
    page.open(write_page(wide_run(), tmp_path))
    cells = page.boxes(":is(.numbers, .matrix) :is(th, td, .word)")
    assert len(cells) > 150
    assert page.js(
        "[...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)"
    )
    assert all(cell["left"] >= 0 and cell["right"] <= width for cell in cells)
    first, second = page.boxes(".matrix tbody tr:first-child > *")[:2]
    is_card = first["bottom"] <= second["top"]
    assert is_card == (width < 1056)
    names = page.js(
        "[...document.querySelectorAll('.numbers tr:last-child td')].map(cell =>"
        " [cell.dataset.name, getComputedStyle(cell, '::before').content])"
    )
    assert {name for name, _ in names} >= {"with", "tokens", "errors", "verdict"}
    for name, shown in names:  # Firefox tells the rule, not what comes of it
        assert shown in ([f'"{name}"', "attr(data-name)"] if is_card else ["none"])
    page.screenshot(SCREENSHOTS / f"skills-{width}-light.png")


def test_a_scrolling_table_has_a_shadow_and_sticky_names(page: Page, tmp_path: Path) -> None:
    page.size(1060)
    page.open(write_page(agent_run(), tmp_path))
    found = "document.querySelector('.numbers').parentElement"
    assert page.js(f"{found}.scrollWidth > {found}.clientWidth")
    assert page.js(f"getComputedStyle({found}).backgroundAttachment") == "local, scroll"
    page.js(f"{found}.scrollLeft = 999")
    (table,) = page.boxes(".numbers")[:1]
    (box,) = page.boxes(".scroll:has(.numbers)")[:1]
    (name,) = page.boxes(".numbers tbody th")[:1]
    assert table["left"] < box["left"] == name["left"]
    assert table["right"] == pytest.approx(box["right"], abs=1)


def test_printing_keeps_opened_cases_and_hides_controls(page: ChromiumPage, report: Path) -> None:
    page.size(700)  # a sheet of A4 without its margins
    page.open(report, f"#{LINKED}")
    page.media(kind="print")
    assert page.js("document.documentElement.scrollWidth") == 700
    assert page.texts(".filters, .controls, nav, .share") == []
    assert len(page.texts(".card")) == 2
    assert len(page.texts(".card .answer")) == 2
    assert page.js("getComputedStyle(document.querySelector('pre')).maxHeight") == "none"
    assert page.js("document.querySelector('.plot').checkVisibility()")
    assert page.call("Page.printToPDF")["data"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_screenshots_are_kept(page: ChromiumPage, report: Path, width: int, scheme: str) -> None:
    """For people to look at: build/screenshots."""
    page.size(width)
    page.media(scheme=scheme)
    page.open(report)
    whole = SCREENSHOTS / f"report-{width}-{scheme}.png"
    opened = SCREENSHOTS / f"case-{width}-{scheme}.png"
    page.screenshot(whole)
    page.click(f"#{LINKED} .open")
    (row,) = page.boxes(f"#{LINKED}")
    page.screenshot(opened, top=row["top"] + page.js("scrollY") - 20, height=1600)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in (whole, opened))
