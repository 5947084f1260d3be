"""Studies in a real browser: widths, contrast, folded tables by keyboard, no scripts."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.browser import CONTRASTS
from support.chromium import ChromiumPage
from support.made import made_run
from support.made_studies import EVERY_WORD, LONG, UNCHANGED, made_study
from support.pages import PAYLOADS, write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]


@pytest.fixture
def study_page(tmp_path: Path) -> Path:
    names = [f"{LONG} with {number}" for number in range(30)]
    many = [replace(UNCHANGED, name=name) for name in (*names, *PAYLOADS)]
    studies = (made_study(), made_study([*EVERY_WORD, *many], model="loop/opus"))
    return write_page(made_run(cases=0, studies=studies), tmp_path)


@pytest.mark.parametrize("width", [390, 1200])
def test_studies_fit_their_window(page: ChromiumPage, study_page: Path, width: int) -> None:
    page.size(width)
    page.open_without_script(study_page)
    assert page.js("document.documentElement.scrollWidth") <= width
    words = " ".join(page.texts("section.skill td .word"))
    assert all(contrast.word in words for contrast in EVERY_WORD)
    assert page.js("typeof window.hit") == "undefined"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_studies_can_be_read(page: ChromiumPage, study_page: Path, scheme: str) -> None:
    page.media(scheme=scheme)
    page.open_without_script(study_page)
    found: list[tuple[float, str, str]] = page.js(CONTRASTS)
    assert len(found) > 50
    assert [pair for pair in found if pair[0] < 4.5] == []


def test_all_arms_open_by_keyboard(page: ChromiumPage, study_page: Path) -> None:
    page.open_without_script(study_page)
    page.js("document.querySelector('section.skill summary').focus()")
    assert page.js("document.querySelector('section.skill details').open") is False
    page.press("Enter")
    assert page.js("document.querySelector('section.skill details').open") is True
    assert "docs-writer 6 of 10" in page.js(
        "document.querySelector('section.skill details').innerText"
    )
