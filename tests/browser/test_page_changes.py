"""What changed since an earlier run, and what studies found, in a real browser."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pytest_upskill.reports.page import run_page
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import Page
from support.chromium import ChromiumPage
from support.made import made_run
from support.made_studies import LONG, UNCHANGED, made_study
from support.pages import PAYLOADS, write_page

HOSTILE = PAYLOADS[0]
RATES = {"gate on haiku": (0.5, 0.75, 1.0), HOSTILE: (0.1, 0.2)}


def before(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case != 5


def after(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and not 1 <= case <= 2


def two_runs() -> tuple[Earlier, RunResults]:
    runs = [
        made_run(passes=passes, models=("haiku", "opus"), runs=2)
        for passes in (before, after)
    ]
    old = replace(runs[0], started=runs[0].started - timedelta(days=1))
    return Earlier(HOSTILE, old, rates=RATES), runs[1]


def opened(page: Page, folder: Path, fragment: str = "") -> None:
    earlier, later = two_runs()
    file = folder / "page.html"
    text = run_page(later, earlier=earlier, view="changes")
    file.write_bytes(text.encode("utf-8", "replace"))
    page.open(file, fragment)


def test_changes_are_listed_worst_first_and_open_with_what_differs(
    page: ChromiumPage, tmp_path: Path
) -> None:
    opened(page, tmp_path)
    assert page.texts(".changes tbody .verdict") == ["broke"] * 4 + ["fixed"] * 2
    assert page.texts(".changes .rows tbody .num")[0] == "2/2 → 0/2"
    assert page.texts(".rates td:last-child") == ["50% 75% 100% 67%"]
    assert HOSTILE in page.texts(".changes .facts")[0]
    assert violations(page) == []
    page.click(".changes .chip:nth-of-type(2)")
    page.wait_for(".changes tbody .verdict", "fixed", "fixed")
    page.click(".changes tbody .case-name")
    page.wait("document.querySelector('article.case')")
    assert page.texts(".diff del") == ["No idea.\n"]
    assert page.texts(".diff ins") == ["Type gate up.\n"]
    page.js("history.back()")
    page.wait("document.querySelectorAll('.changes .rows tbody tr').length === 2")
    page.assert_quiet()


def test_a_run_without_changes_has_no_tab_for_them(page: Page, tmp_path: Path) -> None:
    earlier, _ = two_runs()
    file = tmp_path / "page.html"
    file.write_text(run_page(earlier.results, earlier=earlier), "utf-8")
    page.open(file, "#view=changes")
    assert page.texts(".tabs") == []
    assert page.texts(".overview .plot")


def test_a_study_is_a_table_with_its_sentences(
    page: ChromiumPage, tmp_path: Path
) -> None:
    contrasts = [replace(UNCHANGED, name=name) for name in (LONG, *PAYLOADS)]
    studies = (made_study(), made_study(contrasts, model="opus"))
    page.open(write_page(made_run(cases=0, studies=studies), tmp_path))
    assert page.texts(".block h2")[0] == "What skills do to each other"
    assert page.texts(".block:first-of-type tbody tr td")[:2] == [
        *("pdf with docs-writer", "-20 (-35 to -5)")
    ]
    for width in (390, 1280):
        page.size(width)
        assert page.js("document.documentElement.scrollWidth") <= width
    assert page.js("typeof window.hit") == "undefined"
    assert violations(page) == []
    page.assert_quiet()
