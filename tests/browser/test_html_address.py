"""The address of the HTML page: what the reader looks at can be linked to and gone back from."""

import json
from pathlib import Path

import pytest

from pytest_upskill.reports.html.case_data import anchor
from support.browser import Page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

ONE = f"case-{anchor('release-notes', 'two-issues', 'sonnet')}"
OTHER = f"case-{anchor('release-notes', 'empty-range', 'opus')}"


def back(page: Page, steps: int = -1) -> None:
    page.js(f"history.go({steps})")


def is_open(page: Page, case: str) -> bool:
    return bool(page.js(f"document.querySelector('#{case} + .detail') !== null"))


def test_filters_sort_and_case_are_in_the_address(page: Page, report: Path) -> None:
    page.open(report)
    page.click("[data-state=failed]")
    page.click("[data-state='no signal']")
    page.click(".cases th:nth-child(1) button")
    page.click(".cases th:nth-child(1) button")
    assert page.js("location.hash") == "#?state=failed%2Cno+signal&sort=-case"
    page.press("/")
    page.type("100% & more?#")
    page.wait("location.hash.endsWith('&q=100%25+%26+more%3F%23')")
    page.open(report, page.js("location.hash"))
    assert page.js("document.querySelector('[type=search]').value") == "100% & more?#"
    assert page.texts("[aria-pressed=true]")[0].startswith("failed ")
    assert page.texts("[aria-pressed=true]")[1].startswith("no signal ")
    assert page.texts("[aria-sort=descending]") == ["case"]
    assert page.texts(".count") == ["0 of 48 shown"]
    page.click(".clear")
    assert page.js("location.hash") == "#?sort=-case"
    assert page.js("document.querySelector('[type=search]').value") == ""
    page.assert_quiet()


def test_back_and_forward_undo_filters_and_cases(page: Page, report: Path) -> None:
    page.open(report)
    page.click("[data-state=regressed]")
    page.click(f"#{ONE} .open")
    assert page.js("location.hash") == f"#{ONE}?state=regressed"
    back(page)
    page.wait("location.hash === '#?state=regressed'")
    page.wait_for(".count", "1 of 48 shown")
    assert not is_open(page, ONE)
    back(page)
    page.wait("location.hash === ''")
    page.wait_for(".count", "48 of 48 shown")
    assert page.js("document.querySelectorAll('[aria-pressed=true]').length") == 0
    back(page, 2)
    page.wait(f"location.hash === '#{ONE}?state=regressed'")
    page.wait(f"document.querySelector('#{ONE} + .detail')")
    page.wait_for(".count", "1 of 48 shown")
    page.click(f"#{ONE} .open")  # closes it
    assert page.js("location.hash") == "#cases?state=regressed"
    back(page)
    page.wait(f"document.querySelector('#{ONE} + .detail')")
    page.assert_quiet()


def test_typing_does_not_fill_the_history(page: Page, report: Path) -> None:
    page.open(report)
    before = page.js("history.length")
    page.press("/")
    for letter in "revert":
        page.type(letter)
    page.wait("location.hash === '#?q=revert'")
    assert page.js("history.length") == before
    page.click(".clear")
    assert page.js("history.length") == before + 1
    back(page)
    page.wait("document.querySelector('[type=search]').value === 'revert'")
    page.wait_for(".count", "4 of 48 shown")


def test_links_to_sections_keep_filters(page: Page, report: Path) -> None:
    page.size(1280, 500)
    page.open(report, "#cases?state=failed")
    assert page.boxes("#cases")[0]["top"] < 100
    page.click("nav a[href='#overview']")
    page.wait("location.hash === '#overview?state=failed'")
    page.wait("scrollY < 100")
    assert page.texts("[aria-pressed=true]")
    back(page)
    page.wait("location.hash === '#cases?state=failed'")
    page.js(f"location.hash = '{OTHER}'")  # an old link, to a case that is filtered out
    page.wait(f"document.querySelector('#{OTHER} + .detail')")
    page.wait_for(".count", "48 of 48 shown")
    page.wait(f"location.hash === '#{OTHER}'")
    page.assert_quiet()


@pytest.mark.parametrize(
    "fragment",
    [
        "#%",
        "#%E0%A4%A",
        "#__proto__",
        "#?__proto__=1&constructor=2",
        "#?state=nonsense,__proto__&sort=-toString&model=none",
        "#<img src=x onerror=window.hit=1>?q=<script>window.hit=2</script>",
        "#" + "x" * 100_000,
    ],
)
def test_any_fragment_is_harmless(page: Page, report: Path, fragment: str) -> None:
    page.open(report, fragment)
    assert page.texts(".count")[0].endswith("of 48 shown")
    page.click(f"#{ONE} .open") if page.texts(f"#{ONE}") else page.click(".clear")
    assert page.js("typeof window.hit") == "undefined"
    page.js(f"location.hash = {json.dumps(ONE)}")
    page.wait(f"document.querySelector('#{ONE} + .detail')")
    page.assert_quiet()


def test_many_changes_are_no_problem(page: Page, report: Path) -> None:
    page.open(report)
    page.press("/")
    page.js(
        "(field => { for (let n = 0; n < 1000; n++) {"
        " field.value = 'x'.repeat(n % 7); field.dispatchEvent(new Event('input')); } })"
        "(document.querySelector('[type=search]'))"
    )
    page.wait("location.hash === '#?q=xxxxx'")
    page.wait_for(".count", "0 of 48 shown")
    page.assert_quiet()
