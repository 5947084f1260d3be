"""Every page at every width: none is wider than its window, and no name is broken within a word."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.trend_page import trend_page
from pytest_upskill.reports.numbers import metrics
from support.axe import violations
from support.browser import Page
from support.chromium import ChromiumPage
from support.made import ENTRIES, made_run, made_triggers
from support.made_studies import EVERY_WORD, made_contrast, made_study
from support.pages import readable_run

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

WIDTHS = [320, 390, 600, 704, 720, 740, 760, 780, 800, 830, 860, 900, 960, 1024, 1200, 1280, 1920]
MODELS = (
    "haiku",
    "claude-code/claude-sonnet-4-5",
    "hf:Qwen/Qwen2.5-72B-Instruct",
    "unsloth/GLM-4.7-Flash-GGUF:Q4_0",
    "loop/opus",
)
SKILLS = ("gate", "release-notes-for-libraries", "warehouse_sql_for_analysts")


def many() -> str:
    """Three skills on five models, with names of several kinds."""
    made = made_run(
        skills=SKILLS, models=MODELS, cases=8, runs=5, arms=("baseline", "previous", "skill")
    )
    names = {
        f"case-{number}": name
        for number, name in enumerate(
            ("health_check_after_failover", "Zustandsprüfung", "x" * 150, "a b c d e f g " * 9)
        )
    }
    skills = tuple(replace(skill, against="release/2026-10-hotfix") for skill in made.skills)
    return html_report(
        replace(
            made,
            skills=skills,
            tests=tuple(replace(t, case=names.get(t.case, t.case)) for t in made.tests),
            records=tuple(replace(r, case=names.get(r.case, r.case)) for r in made.records),
        )
    )


def studies() -> str:
    long = made_contrast("without Commands of the warehouse for analysts", (-20, -30, -10), "shown")
    many = [replace(EVERY_WORD[2], name=f"{skill} with {n}") for skill in SKILLS for n in range(9)]
    return html_report(
        made_run(
            cases=0,
            studies=(
                made_study([*EVERY_WORD, long], model=MODELS[3]),
                made_study([*many, *EVERY_WORD], model=MODELS[1]),
            ),
        )
    )


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: html_report(readable_run()),
    "many": many,
    "no baseline": lambda: html_report(made_run(arms=("skill",), models=MODELS, runs=3)),
    "triggers": lambda: html_report(made_triggers(skills=SKILLS, models=MODELS, only=False)),
    "studies": studies,
    "trend": lambda: trend_page(ENTRIES, metrics()["lift"]),
}
# Words of names that are on several lines although they would fit into one.
BROKEN = """[...document.querySelectorAll(".name, th, .word, .state, h1, h2, h3, .open, b")]
  .filter((element) => element.checkVisibility() && !element.closest("svg"))
  .flatMap((element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const found = [];
    const vertical = getComputedStyle(element).writingMode !== "horizontal-tb";
    while (walker.nextNode()) {
      for (const word of walker.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        const boxes = [...range.getClientRects()].filter((box) => box.width && box.height);
        const lines = new Set(boxes.map((box) => Math.round(vertical ? box.left : box.top)));
        if (lines.size > 1 && word[0].length < 60) found.push(word[0]);
      }
    }
    return found;
  })"""
WIDER = """[...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
    && element.getBoundingClientRect().right > innerWidth + 1
    && !element.closest(".scroll, .wide, .grid-scroll, .bar, svg"))
  .map((element) => `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`)
  .slice(0, 8)"""


def loaded(page: Page, folder: Path, kind: str) -> None:
    file = folder / "page.html"
    file.write_bytes(PAGES[kind]().encode())
    page.navigate(file.as_uri())
    page.wait("location.protocol === 'file:' && document.readyState === 'complete'")
    page.wait("!document.getElementById('data') || document.documentElement.dataset.ready")


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_fits_windows_of_all_widths(page: Page, tmp_path: Path, kind: str) -> None:
    page.size(1280)
    loaded(page, tmp_path, kind)
    page.js("document.querySelectorAll('.open').forEach((one, n) => n % 9 || one.click())")
    for width in WIDTHS:
        page.size(width)
        found = page.js("document.documentElement.scrollWidth")
        assert (found, page.js(WIDER)) == (width, []), f"at {width}"
        assert page.js(BROKEN) == [], f"at {width}"


@pytest.mark.parametrize("width", [720, 860, 1200])
def test_the_verdict_is_in_sight(page: Page, tmp_path: Path, width: int) -> None:
    page.size(width)
    loaded(page, tmp_path, "many")
    words = page.boxes(".numbers [data-name=verdict] .word")
    assert len(words) == 15
    assert all(word["left"] > 0 and word["right"] < width for word in words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_axe_finds_nothing(page: ChromiumPage, tmp_path: Path, kind: str, scheme: str) -> None:
    page.media(scheme=scheme)
    loaded(page, tmp_path, kind)
    page.js("document.querySelectorAll('.open').forEach((one, n) => n % 20 || one.click())")
    page.js("scrollTo(0, 1200)")
    assert violations(page) == []
