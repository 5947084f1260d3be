"""The page of a run beside an earlier one, in real browsers."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.case_data import case_anchor
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import Page
from support.made import made_run
from support.pages import ALL_PAYLOADS, hostile_run

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

BROKE = case_anchor("gate", "case-1", "haiku")


def before(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def after(case: int, _model: str, arm: str, run: int) -> bool:
    return arm == "skill" and (case != 1 or run == 2)


def write_comparison(folder: Path, earlier: RunResults, later: RunResults) -> Path:
    file = folder / "both.html"
    made = html_report(later, earlier=Earlier("20260101T000000Z-abcdef", earlier))
    file.write_bytes(made.encode())
    return file


@pytest.fixture
def comparison(tmp_path: Path) -> Path:
    runs = (made_run(cases=3, runs=3, passes=passes) for passes in (before, after))
    return write_comparison(tmp_path, *runs)


def test_a_link_of_the_section_opens_the_case_with_both_answers(
    page: Page, comparison: Path
) -> None:
    page.open(comparison)
    assert page.texts("#changed .group-of a") == ["case-1"]
    page.click("#changed .group-of a")
    page.wait("document.querySelector('.since')")
    assert page.texts(".since > .facts") == [
        "passed before, and fails now · passed 3/3 → 1/3 · could be chance"
    ]
    assert [text.lower() for text in page.texts(".since .card h3")] == [
        "then ✓ passed",
        "now ✗ failed",
    ]
    assert page.texts(".since pre") == ["Type gate up.", "No idea."]
    page.click(".since [data-since=diff]")
    assert page.texts(".since .diff del") == ["Type gate up.\n"]
    assert page.texts(".since .diff ins") == ["No idea.\n"]
    page.click(".since [data-then='2']")
    assert page.texts(".since .diff del") == []
    assert page.js("location.hash") == f"#{BROKE}?since=diff&then=2"
    page.js("history.back()")
    page.wait(f"location.hash === '#{BROKE}?since=diff'")
    page.wait("document.querySelector('.since [data-then=\"1\"]').ariaPressed === 'true'")
    page.assert_quiet()


def test_the_address_says_what_is_compared(page: Page, comparison: Path) -> None:
    page.open(comparison, f"#{BROKE}?of=baseline&then=3")
    assert page.texts(".since [aria-pressed=true]") == ["3 ✗→✗", "without the skill", "answers"]
    assert "The same answer as now." in page.texts(".since .note")
    page.open(comparison, f"#{BROKE}?of=nonsense&then=99&since=x")
    assert page.texts(".since [aria-pressed=true]") == ["1 ✓→✗", "with the skill", "answers"]


def test_an_unchanged_case_has_no_such_part(page: Page, comparison: Path) -> None:
    page.open(comparison, f"#{case_anchor('gate', 'case-0', 'haiku')}")
    assert page.texts(".opened")
    assert page.texts(".since") == []


@pytest.mark.parametrize("width", [390, 760, 1280, 1920])
def test_it_fits_and_can_be_used_by_everybody(page: Page, comparison: Path, width: int) -> None:
    page.size(width)
    page.open(comparison, f"#{BROKE}")
    for box in page.boxes("#changed, #changed *, .since, .since *"):
        assert box["right"] <= width + 1
    assert violations(page) == []


def test_hostile_answers_do_no_harm(page: Page, tmp_path: Path) -> None:
    later = hostile_run()
    records = [replace(r, output=f"before\n{ALL_PAYLOADS}") for r in later.records]
    earlier = replace(later, records=tuple(records))
    page.open(write_comparison(tmp_path, earlier, later))
    page.js("document.querySelector('#changed .group-of a').click()")
    page.wait("document.querySelector('.since')")
    page.click(".since [data-since=diff]")
    assert "before" in page.texts(".since .diff del")[0]
    assert page.js("window.hit ?? null") is None
    page.assert_quiet()
