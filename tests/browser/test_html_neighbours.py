"""The matrix of neighbours in a real browser: widths, contrast, details by keyboard, no scripts."""

from pathlib import Path

import pytest

from support.browser import CONTRASTS
from support.chromium import ChromiumPage
from support.made import made_run
from support.made_studies import LONG, made_matrix
from support.pages import PAYLOADS, write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

SCREENSHOTS = Path(__file__).parents[2] / "build/screenshots"
SIX = ("pdf", "docs-writer", "csv", "xlsx", LONG, PAYLOADS[0])


@pytest.fixture
def matrix_page(tmp_path: Path) -> Path:
    matrices = (made_matrix(), made_matrix(SIX, model="loop/opus"))
    return write_page(made_run(cases=0, matrices=matrices), tmp_path)


@pytest.mark.parametrize("width", [390, 1200])
def test_the_matrix_fits_its_window(page: ChromiumPage, matrix_page: Path, width: int) -> None:
    page.size(width)
    page.open_without_script(matrix_page)
    assert page.js("document.documentElement.scrollWidth") <= width
    words = page.texts("table.neighbours td .word")
    assert {"hurts", "helps", "unknown", "incomplete"} == set(words)
    cells = page.boxes("table.neighbours td.hurts")
    assert all(cell["width"] > 60 for cell in cells)
    if width == 390:  # each row is a card
        assert all(cell["right"] <= width for cell in cells)
    assert page.js("typeof window.hit") == "undefined"
    page.screenshot(SCREENSHOTS / f"neighbours-{width}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_matrix_can_be_read(page: ChromiumPage, matrix_page: Path, scheme: str) -> None:
    page.media(scheme=scheme)
    page.open_without_script(matrix_page)
    found: list[tuple[float, str, str]] = page.js(CONTRASTS)
    assert len(found) > 100
    assert [pair for pair in found if pair[0] < 4.5] == []


def test_all_numbers_of_a_pair_open_by_keyboard(page: ChromiumPage, matrix_page: Path) -> None:
    page.open_without_script(matrix_page)
    page.js("document.querySelector('td.hurts summary').focus()")
    assert page.js("document.querySelector('td.hurts details').open") is False
    page.press("Enter")
    assert page.js("document.querySelector('td.hurts details').open") is True
    told = page.js("document.querySelector('td.hurts details').innerText")
    assert "change -20 (-35 to -5)" in told
    assert "docs-writer opened in 6 of 10 trials, first in 6" in told
    label = page.js("document.querySelector('td.hurts summary').getAttribute('aria-label')")
    assert label == "Numbers of pdf with docs-writer"
