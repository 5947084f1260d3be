"""The page of a run in a real browser: first screen, filters, keys, links, size,
hostility.
"""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from pytest_upskill._util import texts
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import CONTRASTS, Page
from support.chromium import ChromiumPage
from support.made import made_run
from support.pages import PAYLOADS, hostile_run, readable_run, write_page
from support.words import TOO_FEW

WIDTHS = (390, 1024, 1440)
ROWS = ".cases tbody tr:not(.space)"
LINK = f"#{case_anchor('release-notes', 'two-issues', 'sonnet')}"
TITLE = ".case h2"


def many_models() -> RunResults:
    return made_run(
        cases=9, models=[f"a-model-with-a-long-name-{n}" for n in range(12)], runs=2
    )


def many_skills() -> RunResults:
    return made_run(
        skills=[f"skill-{n}" for n in range(9)], models=("haiku", "opus"), runs=2
    )


RUNS: dict[str, Callable[[], RunResults]] = {
    "readable": readable_run,
    "hostile": hostile_run,
    "many models": many_models,
    "many skills": many_skills,
}


def names(page: Page) -> list[str]:
    """The cases of the rows that are drawn."""
    return page.texts(f"{ROWS} .case-name")


def address(page: Page) -> dict[str, list[str]]:
    return parse_qs(page.js("location.hash.slice(1)"))


def in_sight(page: Page, selector: str) -> bool:
    """Whether the first match is within the window."""
    box = page.boxes(selector)[0]
    wide, high = page.js("[innerWidth, innerHeight]")
    return (
        box["top"] >= 0
        and box["bottom"] <= high
        and box["left"] >= 0
        and box["right"] <= wide
    )


# The first screen.


def test_the_first_screen_says_what_is_wrong_and_leads_to_it(
    page: Page, report: Path
) -> None:
    page.size(1440)
    page.open(report)
    assert [state.lower() for state in page.texts(".outcome .state")] == ["failed"]
    counts = [" ".join(text.split()) for text in page.texts(".count-of")]
    assert counts == ["9 failed (1 regressed)", "1 error", "38 passed"]
    assert page.texts(".summary .subject b") == ["sonnet", "local", "haiku", "opus"]
    assert page.texts(".summary tbody tr:first-child .word") == [
        "regressed",
        TOO_FEW,
    ]
    assert page.texts(".summary tbody tr:first-child .lift b") == ["+39"]
    assert page.texts(".summary tbody tr:first-child .change") == ["-50"]
    assert names(page)[0] == "two-issues"
    broken = ".cases .cell.bad"
    assert in_sight(page, broken)
    assert in_sight(page, ".summary tr:last-child")
    page.click(broken)
    page.wait("document.querySelector('.case')")
    assert "two-issues" in page.texts(TITLE)[0]
    assert address(page)["case"] == [LINK.removeprefix("#case=")]
    page.assert_quiet()


def test_many_rows_without_problems_are_folded(page: Page, tmp_path: Path) -> None:
    page.open(
        write_page(
            made_run(skills=[f"s{n}" for n in range(12)], passes=passes), tmp_path
        )
    )
    assert len(page.texts(".summary tbody tr")) == 8
    page.click(".folded a")
    page.wait("document.querySelectorAll('.summary tbody tr').length === 12")
    assert address(page) == {"rows": ["all"]}


def passes(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def test_a_row_of_the_summary_selects_its_cases(page: Page, report: Path) -> None:
    page.open(report)
    page.click(".summary tbody tr:first-child .rates")
    page.wait("document.querySelectorAll('.cases th').length === 3")
    assert address(page) == {"skill": ["release-notes"], "model": ["sonnet"]}
    assert page.texts(".shown") == ["12 of 48 tests"]
    assert "fell 100 → 50" in page.texts(".selected")[0]


# Filters, search, address.


def test_filters_are_chips_that_count_and_the_address_keeps_them(
    page: Page, report: Path
) -> None:
    page.open(report)
    assert page.texts(".shown") == ["48 tests"]
    chips = [" ".join(chip.split()) for chip in page.texts(".chip")]
    assert chips == ["▼ regressed 1", "✘ failed 9", "! error 1", "✔ passed 38"]
    page.click(".chip.bad:nth-of-type(2)")
    page.wait_for(".shown", "9 of 48 tests")
    page.click(".menu button")
    page.click(".menu [aria-label=model] .value")
    page.wait_for(".shown", "7 of 48 tests")  # the model with the most of them
    assert address(page) == {"outcome": ["failed"], "model": ["local"]}
    assert len(names(page)) == 7
    page.js("history.back()")
    page.wait_for(".shown", "9 of 48 tests")
    page.js("history.forward()")
    page.wait_for(".shown", "7 of 48 tests")
    page.click(".chip:not(.toggle)")
    page.wait_for(".shown", "9 of 48 tests")
    page.open(report, "#outcome=failed&model=local&tag=format")
    assert page.texts(".shown") == ["2 of 48 tests"]


def test_a_search_looks_into_answers_and_leaves_no_history(
    page: Page, report: Path
) -> None:
    page.open(report)
    before = page.js("history.length")
    page.press("/")
    page.type("security-fix, run 2")
    page.wait_for(f"{ROWS} .case-name", "security-fix")
    chips = [" ".join(chip.split()) for chip in page.texts(".chip")]
    assert chips == ["✘ failed 1", "✔ passed 3"]  # of what the search shows
    assert page.js("history.length") == before
    page.press("Escape")
    page.press("Escape")
    page.wait_for(".shown", "48 tests")
    page.press("/")
    page.type("no such thing")
    page.wait("document.querySelector('.nothing')")


@pytest.mark.parametrize(
    "fragment",
    [
        "#case=gone",
        "#outcome=odd&sort=odd&view=odd",
        "#%E0%A4%A",
        "#<img src=x>",
        "#__proto__",
    ],
)
def test_any_address_is_harmless(page: Page, report: Path, fragment: str) -> None:
    page.open(report, fragment)
    assert page.texts("h1") == ["release-notes"]
    page.assert_quiet()


# Keys and links.


def test_keys_go_from_case_to_case(page: Page, report: Path) -> None:
    page.open(report)
    shown = names(page)
    for key in ("j", "j", "k", "j"):
        page.press(key)
    page.wait_for(".cases tr.current .case-name", shown[1])
    page.press("Enter")
    page.wait_for(".around span", "2 of 12")
    page.press("j")
    page.wait_for(".around span", "3 of 12")
    page.press("Escape")
    page.wait_for(".cases tr.current .case-name", shown[2])
    assert in_sight(page, ".cases tr.current .case-name")
    page.press("?")
    page.wait("document.querySelector('.keys')")
    page.press("Control+k")
    assert address(page) == {}


@pytest.mark.parametrize(
    "width",
    [390, *(pytest.param(width, marks=pytest.mark.nightly) for width in WIDTHS[1:])],
)
def test_a_link_lands_on_its_case(page: Page, report: Path, width: int) -> None:
    page.size(width, 844)
    page.open(report, LINK)
    assert "two-issues" in page.texts(TITLE)[0]
    assert in_sight(page, TITLE)
    page.click(".around a")
    page.wait(f"document.querySelector({json.dumps(ROWS)})")
    page.js("scrollTo(0, 0)")
    page.click(f"{ROWS}:nth-of-type(5) .cell:not(.good)")
    page.wait("document.querySelector('.case')")
    assert in_sight(page, TITLE)
    assert page.js("scrollY") == 0


# Looks.


@pytest.mark.parametrize(
    "kind",
    [
        (
            kind
            if kind in ("readable", "hostile")
            else pytest.param(kind, marks=pytest.mark.nightly)
        )
        for kind in RUNS
    ],
)
def test_a_page_fits_its_window(page: Page, tmp_path: Path, kind: str) -> None:
    file = write_page(RUNS[kind](), tmp_path)
    for width in WIDTHS:
        page.size(width)
        page.open(file)
        assert page.js("document.documentElement.scrollWidth") <= width
        assert max(box["right"] for box in page.boxes(".summary td")) <= width
        assert {round(box["height"]) for box in page.boxes(ROWS)} == {40}
        page.click(".cases .cell")
        page.wait("document.querySelector('.case')")
        assert page.js("document.documentElement.scrollWidth") <= width
    page.assert_quiet()


@pytest.mark.parametrize(
    ("kind", "width"),
    [("readable", 1440), pytest.param("many models", 390, marks=pytest.mark.nightly)],
)
def test_everybody_can_use_it(
    page: ChromiumPage, tmp_path: Path, kind: str, width: int
) -> None:
    page.size(width)
    page.open(write_page(RUNS[kind](), tmp_path))
    page.click(".folds summary")
    page.click(".menu button")
    page.press("?")
    for scheme in ("light", "dark"):
        page.media(scheme=scheme)
        page.settle()
        assert violations(page) == []
        assert [found for found in page.js(CONTRASTS) if found[0] < 4.5] == []


def test_without_javascript_the_page_says_so(page: ChromiumPage, report: Path) -> None:
    page.open_without_script(report)
    assert "needs JavaScript" in page.js("document.querySelector('#app').textContent")


# Size and hostility.


def test_many_cases_are_drawn_as_far_as_they_are_seen(
    page: Page, tmp_path: Path
) -> None:
    page.open(write_page(made_run(cases=2_000), tmp_path))
    assert page.texts(".shown") == ["2,000 tests"]
    assert len(page.boxes(ROWS)) < 100
    assert page.js("document.documentElement.scrollHeight") > 80_000
    page.js("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait("document.querySelector('.cases [aria-rowindex=\"2001\"]')")
    assert len(page.boxes(ROWS)) < 100
    page.press("/")
    page.type("case-1777")
    page.wait_for(f"{ROWS} .case-name", "case-1777")
    page.assert_quiet()


def test_nothing_hostile_runs(page: Page, tmp_path: Path) -> None:
    run = hostile_run()
    page.open(write_page(run, tmp_path, PAYLOADS))
    assert len(names(page)) > 5
    for fragment in ("", "#q=window", LINK):
        page.js(f"location.hash = {json.dumps(fragment)}")
        page.settle()
    for test in run.tests[:3]:
        page.js(f"location.hash = '{case_anchor(test.skill, test.case, test.label)}'")
        page.wait("document.querySelector('.case')")
        page.js(
            "document.querySelectorAll('summary, .case button').forEach(one =>"
            " one.click())"
        )
        page.settle()
    assert page.js("window.hit ?? null") is None
    assert (
        page.js("document.querySelectorAll('iframe, base, form, #app script').length")
        == 0
    )
    page.assert_quiet()


def test_the_policy_stops_what_is_injected(page: Page, report: Path) -> None:
    page.open(report)
    page.js(
        "document.body.append(Object.assign(document.createElement('img'),"
        " {src: 'http://127.0.0.1:9/x.png'}))"
    )
    page.run(
        "try { document.body.innerHTML = '<b>x</b>' } catch (error) { window.stopped"
        " = 1 }"
    )
    page.wait("window.stopped")
    assert page.js("document.querySelector('h1') !== null")
    assert page.problems


# The viewer writes numbers and invisible characters as Python does.


def viewer_code(start: str, stop: str) -> str:
    text = (files("pytest_upskill.reports.page") / "viewer/data.js").read_text("utf-8")
    return text[text.index(start) : text.index(stop)]


def test_numbers_are_written_as_in_python(page: ChromiumPage, report: Path) -> None:
    page.open(report)
    code = viewer_code("const DASH", "const counted")
    numbers = [
        0,
        0.0004,
        0.0021,
        0.05,
        0.0994,
        0.0996,
        0.1,
        1 / 3,
        0.5,
        0.999,
        1,
        1.25,
        12,
        999.99,
    ]
    numbers += [1000, 12345.6, 1e6]
    for name, write in {
        "percent": texts.percent,
        "points": texts.points,
        "whole": texts.whole,
        "dollars": texts.dollars,
    }.items():
        chosen = (
            [n for n in numbers if n * 2 % 1 or n % 1 == 0]
            if name == "whole"
            else numbers
        )
        made = page.js(f"(() => {{ {code}; return {chosen}.map(format.{name}); }})()")
        assert made == [write(number) for number in chosen], name


def test_what_can_not_be_seen_is_written_as_in_python(
    page: ChromiumPage, report: Path
) -> None:
    page.open(report)
    code = viewer_code("const JOINED", "// As htm's")
    letters = [
        chr(code)
        for code in (*range(0x3000), 0x3164, 0xFEFF, 0xFFA0, 0xFFF9, 0x1BCA0, 0xE0041)
    ]
    odd = ["a\r\nb", "می‌خواهم", "👩‍💻", "\u202eabc", "x\ud800y", *letters]
    made = page.js(f"(() => {{ {code}; return {json.dumps(odd)}.map(visible); }})()")
    assert made == [texts.visible(text) for text in odd]
