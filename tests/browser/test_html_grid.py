"""The grid of cases and models on the HTML page, its keys, its bar and the links of its counts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports.html.case_data import anchor
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import Page
from support.chromium import ChromiumPage
from support.made import checked_run, made_run, made_triggers
from support.pages import write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

MODELS = ("haiku", "loop/opus")
FOCUS = "document.activeElement"


def lifts(number: int, _model: str, arm: str, run: int) -> bool:
    """Lifts of 0 (all pass), +100, −100, 0 (none passes), +50."""
    if arm == "baseline":
        return number in (0, 2)
    return number in (0, 1) or (number == 4 and run == 1)


def small_run() -> RunResults:
    """Five cases on two models; on the second, case-1 has an error and case-4 did not run."""
    made = made_run(models=MODELS, cases=5, runs=2, passes=lifts)
    records = [
        replace(record, outcome="errored", error="down", output=None)
        if (record.case, record.label, record.run) == ("case-1", MODELS[1], 1)
        else record
        for record in made.records
        if (record.case, record.label) != ("case-4", MODELS[1])
    ]
    return replace(made, records=tuple(records))


def grid_rows(page: Page) -> list[list[str]]:
    """What each row shows, without the smaller numbers."""
    found: list[list[str]] = page.js(
        "[...document.querySelectorAll('.by-model tbody tr')].map(row => [...row.cells]"
        ".map(cell => { const copy = cell.cloneNode(true); copy.querySelector('small')?.remove();"
        " return copy.textContent; }))"
    )
    return found


def test_the_grid_shows_the_worst_case_first(page: Page, tmp_path: Path) -> None:
    page.open(write_page(small_run(), tmp_path))
    assert page.texts(".by-model thead th") == ["case", *MODELS]
    assert grid_rows(page) == [
        ["case-2", "−100 ✗", "−100 ✗"],
        ["case-3", "0 ✗", "0 ✗"],
        ["case-0", "0", "0"],
        ["case-4", "+50 ✗", "not run"],
        ["case-1", "+100", "+100 !"],
    ]
    assert page.texts(".by-model small")[:2] == ["100→0", "100→0"]
    colours = page.js(
        "['.down-3', '.zero', '.up-2', '.up-3'].map(kind =>"
        " getComputedStyle(document.querySelector('.by-model ' + kind)).backgroundColor)"
    )
    assert len(set(colours)) == 4
    page.assert_quiet()


def test_a_cell_opens_its_case_by_click_and_by_key(page: Page, tmp_path: Path) -> None:
    page.open(write_page(small_run(), tmp_path))
    case = f"case-{anchor('gate', 'case-3', MODELS[1])}"
    page.click("[data-state=worse]")
    page.click(".by-model tbody tr:nth-child(2) td:nth-child(3) a")
    page.wait(f"document.querySelector('#{case} + .detail')")
    page.wait_for(".count", "10 of 10 shown")  # it was filtered out
    page.settle()
    assert 0 <= page.boxes(f"#{case}")[0]["top"] < 200
    page.js("document.querySelector('.by-model [tabindex=\"0\"]').focus()")
    stops = "document.querySelectorAll('.by-model [tabindex=\"0\"]').length"
    assert page.js(stops) == 1
    page.js("document.querySelector('.by-model tbody a').focus()")
    for key, text in (
        ("ArrowRight", "−100 ✗100→0"),
        ("ArrowDown", "0 ✗0→0"),
        ("End", "0 ✗0→0"),
        ("Home", "case-3"),
        ("ArrowUp", "case-2"),
        ("ArrowUp", "case-2"),
        ("ArrowLeft", "case-2"),
        ("ArrowRight", "−100 ✗100→0"),
    ):
        page.press(key)
        assert page.js(f"{FOCUS}.textContent") == text, key
    assert page.js(stops) == 1
    page.press("Enter")
    other = f"case-{anchor('gate', 'case-2', MODELS[0])}"
    page.wait(f"document.querySelector('#{other} + .detail')")
    page.wait(f"{FOCUS}.closest('tr')?.id === '{other}'")
    page.assert_quiet()


def test_without_a_baseline_the_grid_shows_pass_rates(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=5, runs=2, passes=lifts, arms=("skill",))
    page.open(write_page(made, tmp_path))
    assert page.texts(".case-grid h3") == ["Pass rate by case and model, worst first"]
    assert [row[1] for row in grid_rows(page)] == ["0 ✗", "0 ✗", "50 ✗", "100", "100"]
    kinds = page.js("[...document.querySelectorAll('.by-model td a')].map(cell => cell.className)")
    assert kinds == ["down-3", "down-3", "zero", "up-3", "up-3"]


def test_queries_are_not_in_the_grid(page: Page, tmp_path: Path) -> None:
    page.open(write_page(made_triggers(only=False), tmp_path))
    assert page.texts(".case-grid h3") == ["Lift by case and model, worst first"]
    assert sorted(row[0] for row in grid_rows(page)) == [f"case-{n}" for n in range(6)]


def test_a_lift_of_checks_is_not_explained_by_pass_rates(page: Page, tmp_path: Path) -> None:
    page.open(write_page(checked_run([(1, 6), (3, 2)]), tmp_path))
    assert [row[1] for row in grid_rows(page)] == ["−14 ✗", "+71 ✗"]
    assert page.texts(".by-model small") == []


def test_of_many_cases_the_worst_are_shown_first(page: Page, tmp_path: Path) -> None:
    models = [f"provider/model-{n}" for n in range(12)]
    names = [f"case-{n}" for n in range(500)]
    made = made_run(models=models, cases=500)
    page.open(write_page(made, tmp_path))
    assert len(page.js("[...document.querySelectorAll('.by-model tbody tr')].map(r => r.id)")) == 25
    page.click(".case-grid .more")
    shown = page.js("[...document.querySelectorAll('.by-model tbody th')].map(h => h.textContent)")
    assert sorted(shown) == sorted(names)
    assert page.js("document.querySelectorAll('.by-model td a').length") == 6000
    assert page.texts(".case-grid .more") == ["Show the 25 worst cases"]
    page.click(".case-grid .more")
    assert page.js("document.querySelectorAll('.by-model tbody tr').length") == 25
    page.assert_quiet()


def test_each_skill_has_its_grid(page: Page, tmp_path: Path) -> None:
    page.open(write_page(made_run(skills=("gate", "__proto__", "wick"), cases=3), tmp_path))
    assert page.js(
        "[...document.querySelectorAll('.by-model')].map(grid => grid.closest('section').id)"
    ) == [f"skill-{anchor(name)}" for name in ("gate", "__proto__", "wick")]


def focused_case(page: Page) -> str:
    found = page.js(f"{FOCUS}.closest('.cases tbody')?.querySelector('.open').textContent")
    return str(found)


def test_keys_go_from_case_to_case(page: Page, tmp_path: Path) -> None:
    page.open(write_page(made_run(cases=6), tmp_path))
    for key, case in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.press(key)
        assert focused_case(page) == f"case-{case}"
    assert page.js("document.querySelectorAll('.detail').length") == 0
    page.press("Enter")
    assert page.js("document.querySelectorAll('.detail').length") == 1
    page.press("j")  # now the next one opens, and the address follows
    assert focused_case(page) == "case-1"
    assert page.js("document.querySelector('.detail').previousSibling.id").startswith(
        "case-gate-case-1"
    )
    assert page.js("document.querySelectorAll('.detail').length") == 1
    page.wait("location.hash.startsWith('#case-gate-case-1')")
    page.press("o")
    assert page.js("document.querySelectorAll('.detail').length") == 0
    page.click("[data-state=failed]")
    page.js(f"{FOCUS}.blur()")
    page.press("j")  # of those that are shown
    assert focused_case(page) == "case-4"
    page.press("j")
    assert focused_case(page) == "case-4"
    page.assert_quiet()


def test_keys_do_nothing_while_typing_or_with_modifiers(page: Page, tmp_path: Path) -> None:
    page.open(write_page(made_run(cases=3), tmp_path))
    page.press("/")
    assert page.js(f"{FOCUS}.type") == "search"
    for letter in "jko?/":
        page.press(letter)
    assert page.js(f"{FOCUS}.value") == "jko?/"
    assert not page.js("document.querySelector('dialog').open")
    page.js(f"{FOCUS}.blur()")
    for keys in ("ctrlKey", "altKey", "metaKey"):
        page.js(
            "['j', 'k', 'o', '/', '?'].forEach(key => document.body.dispatchEvent("
            f"new KeyboardEvent('keydown', {{ key, {keys}: true, bubbles: true }})))"
        )
    assert page.js(f"{FOCUS} === document.body")
    assert not page.js("document.querySelector('dialog').open")


def test_help_lists_the_keys_and_gives_the_focus_back(page: Page, tmp_path: Path) -> None:
    page.open(write_page(made_run(cases=3), tmp_path))
    page.press("j")
    page.press("?")
    assert page.js("document.querySelector('dialog').open")
    words = page.texts("dialog kbd")
    assert {"j", "k", "o", "Enter", "/", "?", "Esc"} <= set(words)
    for _ in range(4):
        page.press("Tab")
        inside = f"{FOCUS} === document.body || {FOCUS}.closest('dialog') !== null"
        assert page.js(inside)
    page.press("j")  # is for the page
    page.press("Escape")
    page.wait("!document.querySelector('dialog').open")
    page.settle()
    assert focused_case(page) == "case-0"
    page.click(".keys")
    page.wait("document.querySelector('dialog').open")
    page.click("dialog button")
    page.wait("!document.querySelector('dialog').open")
    page.wait(f"{FOCUS}.className === 'keys'")
    page.assert_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_help(page: ChromiumPage, tmp_path: Path, scheme: str) -> None:
    page.media(scheme=scheme)
    page.open(write_page(small_run(), tmp_path))
    page.press("?")
    assert violations(page) == []


def scroll_to(page: Page, selector: str) -> None:
    page.js(f"document.querySelector('{selector}').scrollIntoView()")
    page.settle()


def test_the_bar_says_where_the_reader_is(page: Page, tmp_path: Path) -> None:
    page.size(1000, 400)
    results = made_triggers(skills=("gate", "wick"), models=MODELS, only=False)
    page.open(write_page(results, tmp_path))
    assert page.texts(".bar") == []  # the head says it
    gate = f"skill-{anchor('gate')}"
    scroll_to(page, f"#{gate}")
    assert re.fullmatch(r"gate\s+haiku\s+\S.*\s+loop/opus\s+\S.*", page.texts(".bar")[0])
    scroll_to(page, "#triggers")
    assert page.texts(".bar") == ["Triggers"]
    case = f"case-{anchor('wick', 'case-3', MODELS[1])}"
    scroll_to(page, f"#{case}")
    (text,) = page.texts(".bar")
    assert text.split()[0] == "wick"
    assert MODELS[1] in text
    assert text.split()[-1] == "case-3"
    page.click(".bar .word")
    page.wait("location.hash === '#cases?skill=wick&model=loop%2Fopus'")
    page.wait_for(".count", "13 of 52 shown")  # cases and triggers
    page.assert_quiet()


def test_the_bar_covers_nothing_that_is_gone_to(page: Page, tmp_path: Path) -> None:
    page.size(1000, 400)
    page.open(write_page(made_run(cases=30), tmp_path))
    for key in ["j"] * 14 + ["k"] * 12:
        page.press(key)
        page.settle()
        free = page.js(f"{FOCUS}.getBoundingClientRect().top")
        assert free >= page.js("document.querySelector('.bar').offsetHeight")
    for _ in range(8):
        page.press("Shift+Tab")
        page.settle()
        height = page.js("document.querySelector('.bar').offsetHeight")
        assert page.js(f"{FOCUS}.getBoundingClientRect().top") >= height
    page.js("location.hash = 'cases'")
    page.settle()
    assert page.boxes("#cases h2")[0]["top"] >= page.boxes(".bar")[0]["bottom"]


def test_counts_and_verdicts_are_links(page: Page, tmp_path: Path) -> None:
    page.size(1280, 400)
    made = made_run(skills=("gate", "wick"), models=MODELS, cases=6)
    tests = tuple(
        replace(test, of=8) if (test.skill, test.model) == ("wick", "haiku") else test
        for test in made.tests
    )
    results = replace(made, tests=tests, expects_all=True)
    page.open(write_page(results, tmp_path))
    (count,) = page.texts(".outcome li:first-child a")
    assert count == "4 failed"
    page.click(".outcome li:first-child a")
    page.wait("location.hash === '#cases?outcome=failed'")
    page.wait_for(".count", "4 of 24 shown")
    page.settle()
    assert page.boxes("#cases")[0]["top"] < 200
    page.click(".outcome li:nth-child(2) a")
    page.wait(f"location.hash === '#skill-{anchor('wick')}?outcome=failed'")
    page.click(".matrix .word")
    page.wait(f"location.hash.startsWith('#skill-{anchor('gate')}')")
    page.click(f"#skill-{anchor('wick')} .verdicts li:nth-child(2) .word")
    page.wait("location.hash === '#cases?skill=wick&model=loop%2Fopus'")
    page.wait_for(".count", "6 of 24 shown")
    page.assert_quiet()


def test_filters_by_arm_verdict_and_change(page: Page, tmp_path: Path) -> None:
    def passes(number: int, _model: str, arm: str, _run: int) -> bool:
        return number < {"baseline": 1, "previous": 3, "skill": 2}.get(arm, 0) or number == 5

    made = made_run(cases=6, passes=passes, arms=("baseline", "previous", "skill"))
    skills = tuple(replace(skill, against="v1") for skill in made.skills)
    page.open(write_page(replace(made, skills=skills), tmp_path), "#?state=failed")
    assert page.texts(".count") == ["3 of 6 shown"]
    for arm, count in (("baseline", 4), ("previous", 2), ("", 3)):
        page.js(
            f"(field => {{ field.value = '{arm}'; field.dispatchEvent(new Event('change')) }})"
            "(document.querySelector('[data-key=arm]'))"
        )
        assert page.texts(".count") == [f"{count} of 6 shown"]
        assert page.texts("[data-state=failed]") == [f"failed {count}"]
    page.click(".clear")
    names = page.texts("[data-key=changed] option") or page.js(
        "[...document.querySelectorAll('[data-key=changed] option')].map(one => one.text)"
    )
    assert names == ["changed or not", "worse than at v1"]
    page.open(write_page(replace(made, skills=skills), tmp_path), "#?changed=worse")
    assert page.texts(".count") == ["1 of 6 shown"]
