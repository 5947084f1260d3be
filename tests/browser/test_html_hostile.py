"""The HTML report in a real browser: nothing that it shows can run, load or hang it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.html import shell
from support.browser import Page
from support.made import made_run
from support.pages import PAYLOADS, hostile_run, large_run, write_page

pytestmark = pytest.mark.xdist_group("browser")

# All text of the page and of its attributes, whether it can be seen or not.
ALL_TEXT = """[document.documentElement.textContent, ...[...document.querySelectorAll("*")]
  .flatMap((element) => [...element.attributes].map((attribute) => attribute.value))].join("\\n")"""


@pytest.mark.parametrize("cases", [2, pytest.param(len(PAYLOADS), marks=pytest.mark.nightly)])
def test_a_hostile_run_stays_text(page: Page, tmp_path: Path, cases: int) -> None:
    page.open(write_page(hostile_run(cases), tmp_path, list(PAYLOADS)))
    opened = page.js("document.querySelectorAll('.open').length")
    assert opened == 3 * 2 * cases
    page.js("document.querySelectorAll('.open').forEach(button => button.click())")
    page.js("document.querySelectorAll('[data-run=\"1\"]').forEach(button => button.click())")
    assert page.js("document.querySelectorAll('.detail .card').length") == 2 * opened
    page.js("document.querySelectorAll('details').forEach(found => { found.open = true })")
    page.wait("document.querySelectorAll('.step').length > 50")
    page.wait("document.querySelectorAll('.skill-view').length === 3")
    answers = page.js(ALL_TEXT)
    page.js("document.querySelectorAll('[data-skill-show=diff]').forEach(one => one.click())")
    page.js(
        "document.querySelectorAll('.opened')[0].querySelectorAll('.to-place').forEach("
        "one => one.click())"
    )
    page.js("document.querySelector('[data-text=raw]').click()")
    page.js("document.querySelectorAll('[data-show=diff]').forEach(button => button.click())")
    page.js("document.querySelectorAll('*').forEach(element => element.focus?.())")
    page.settle()
    assert page.js("typeof window.hit") == "undefined"
    assert page.js("document.scripts.length") == 2
    foreign = "img, iframe, base, animate, object, embed, form, [onload], [onerror]"
    foreign += ", textarea, [onfocus], [autofocus], a:not([href^='#']), style ~ style"
    assert page.js(f"document.querySelectorAll({json.dumps(foreign)}).length") == 0
    assert page.js("document.querySelector('.opened pre').textContent").startswith(PAYLOADS[0])
    assert page.js("getComputedStyle(document.body).display") == "block"
    for shown in (answers, page.js(ALL_TEXT)):
        assert "\\u202e" in shown
        assert harmless(shown) == shown  # nothing reorders, hides or rings
    page.assert_quiet()


def test_the_policy_stops_injected_scripts(page: Page, tmp_path: Path) -> None:
    """The other test could pass with no policy at all; this one shows that it counts."""
    body = "<img src='http://127.0.0.1:9/x.png' onerror='window.hit = 1'><script>window.hit = 2"
    body += "</script><p style='color: red' id=p>Text</p>"
    file = tmp_path / "page.html"
    file.write_text(shell("Title", body, "document.documentElement.dataset.ready = 'yes'"))
    page.open(file)
    assert page.js("typeof window.hit") == "undefined"
    assert page.js("getComputedStyle(document.getElementById('p')).color") != "rgb(255, 0, 0)"
    assert [problem for problem in page.problems if "Content Security Policy" in problem]


@pytest.mark.nightly
def test_answers_of_a_megabyte_do_not_hang_the_page(page: Page, tmp_path: Path) -> None:
    pairs = [
        ("one long line " * 80_000, "one other line " * 80_000),
        ("".join(f"{n}\n" for n in range(150_000)), "".join(f"{n * 7}\n" for n in range(150_000))),
        ("a b\n" * 250_000, "a c\n" * 250_000),
        ("x" * 1_000_000, "\n" * 1_000_000),
    ]
    made = made_run(cases=len(pairs))
    records = [
        replace(record, output=pairs[int(record.case[-1])][record.arm == "skill"])
        for record in made.records
    ]
    page.open(write_page(replace(made, records=tuple(records)), tmp_path))
    for number in range(len(pairs)):
        page.click(f".cases tbody:nth-of-type({number + 1}) .open")
        detail = f".cases tbody:nth-of-type({number + 1}) .detail"
        assert "Show all" in page.texts(f"{detail} .card")[0]
        page.click(f"{detail} [data-show=diff]")
        (words,) = page.texts(f"{detail} .runs .note")
        assert "Only the first 50,000 characters are compared." in words
        assert page.js(f"document.querySelectorAll('{detail} .diff :is(ins, del)').length") >= 2
    page.assert_quiet()


@pytest.mark.nightly
def test_a_large_page_opens_and_filters(page: Page, tmp_path: Path) -> None:
    page.open(write_page(large_run(), tmp_path))
    assert page.texts(".count") == ["600 of 600 shown"]
    page.click("[data-state=failed]")
    assert page.texts(".count") == ["99 of 600 shown"]
    page.click(".cases tbody:not([hidden]) .open")
    assert "Cut to keep this file small" in page.texts(".detail")[0]
    page.assert_quiet()
