"""Changes, triggers, studies and the trend in a real browser."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pytest_upskill.reports.numbers import metrics
from pytest_upskill.reports.page import run_page, trend_page
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import Page
from support.chromium import ChromiumPage
from support.made import ENTRIES, made_entry, made_row, made_run, made_triggers
from support.made_studies import (
    EVERY_WORD,
    LONG,
    UNCHANGED,
    made_model_change,
    made_routing,
    made_study,
)
from support.pages import PAYLOADS

HOSTILE = PAYLOADS[0]


def compared(changed_cases: int = 2) -> str:
    def before(case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and case != 5

    def after(case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and not 1 <= case <= changed_cases

    runs: list[RunResults] = [
        made_run(passes=passes, models=("haiku", "opus"), runs=2)
        for passes in (before, after)
    ]
    earlier = replace(runs[0], started=runs[0].started - timedelta(days=1))
    return run_page(runs[1], earlier=Earlier(HOSTILE, earlier))


def studies() -> str:
    many = [
        replace(UNCHANGED, name=name)
        for name in (*map(str, range(30)), LONG, *PAYLOADS)
    ]
    both = (made_study(), made_study([*EVERY_WORD, *many], model="opus"))
    return run_page(made_run(cases=0, studies=both))


def routings() -> str:
    many = made_routing(
        *PAYLOADS, LONG, skills=[f"skill-{number}" for number in range(40)]
    )
    return run_page(
        made_run(cases=0, sections=(made_routing(), replace(many, model="opus")))
    )


def model_changes() -> str:
    def passes(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and (model == "old" or case > 9)

    many = made_model_change(passes, skills=(*PAYLOADS, LONG, *map(str, range(30))))
    changes = (made_model_change(passes), replace(many, agent="loop"))
    return run_page(made_run(cases=0, sections=changes))


def trend() -> str:
    rows = [
        *ENTRIES,
        made_entry(1, made_row(0.1, skill=HOSTILE, model=HOSTILE), HOSTILE),
    ]
    return trend_page(rows, metrics()["lift"])


PAGES: dict[str, Callable[[], str]] = {
    "view=changes": compared,
    "view=triggers": lambda: run_page(
        made_triggers(skills=("gate", HOSTILE), only=False)
    ),
    "contrast=1.0": studies,
    "route=0.row.pdf": routings,
    "view=studies": model_changes,
    "metric=lift": trend,
}
IN_GATE = ("view=changes", "metric=lift")


def show(page: Page, folder: Path, view: str) -> None:
    file = folder / "page.html"
    file.write_bytes(PAGES[view]().encode("utf-8", "replace"))
    page.open(file, f"#{view}")


@pytest.mark.parametrize(
    "view",
    [
        view if view in IN_GATE else pytest.param(view, marks=pytest.mark.nightly)
        for view in PAGES
    ],
)
def test_each_view_fits_its_window_and_anybody_can_use_it(
    page: ChromiumPage, tmp_path: Path, view: str
) -> None:
    show(page, tmp_path, view)
    for width in (390, 1024, 1440):
        page.size(width)
        assert page.js("document.documentElement.scrollWidth") <= width
    page.assert_quiet()
    assert page.js("typeof window.hit") == "undefined"
    for scheme in ("light", "dark"):
        page.media(scheme=scheme)
        page.settle()
        assert violations(page) == []


def test_changes_are_listed_worst_first_and_open_with_what_differs(
    page: Page, tmp_path: Path
) -> None:
    show(page, tmp_path, "view=changes")
    kinds = page.texts(".since .cases tbody .verdict")
    assert kinds == ["broke"] * 4 + ["fixed"] * 2
    assert page.texts(".since .cases tbody .num")[0] == "2/2 → 0/2"
    assert HOSTILE in page.js("document.querySelector('.compared').textContent")
    page.js("document.querySelector('.chip[title^=failed]').click()")
    page.wait_for(".since .cases tbody .verdict", "fixed", "fixed")
    page.click(".since .cases tbody .case-name")
    page.wait("document.querySelector('article.case')")
    assert "Type gate up." in page.js(
        "document.querySelector('article.case').textContent"
    )
    page.js("history.back()")
    page.wait("document.querySelectorAll('.since .cases tbody tr').length === 2")


def test_a_query_is_a_row_that_opens_like_a_case(page: Page, tmp_path: Path) -> None:
    show(page, tmp_path, "view=triggers")
    assert len(page.texts(".triggers > .frame tbody tr")) == 2
    queries = page.texts(".triggers .cases .case-name")
    assert len(queries) == 14
    assert queries[0] == "Please trigger-needs-2"  # never opens the skill, and should
    page.js("document.querySelectorAll('.triggers .choice button')[3].click()")
    page.wait("document.querySelectorAll('.triggers .cases tbody tr').length === 6")
    page.click(".triggers .cases .case-name")
    page.wait("document.querySelector('article.case')")


def test_contrasts_without_a_change_are_folded_and_one_shows_its_arms(
    page: Page, tmp_path: Path
) -> None:
    show(page, tmp_path, "contrast=1.0")
    assert page.texts(".study tbody .verdict .word") == [
        *(contrast.word for contrast in EVERY_WORD),
        *("hurts", "helps", "incomplete"),
    ]
    (arms,) = page.texts(".study .selected .numbers")
    assert "docs-writer 6 of 10" in arms
    page.click(".study .folded button")
    page.wait(
        "document.querySelectorAll('.study')[1].querySelectorAll('tbody tr').length"
        " > 20"
    )


def test_a_row_of_a_routing_opens_its_queries_the_wrong_ones_first(
    page: Page, tmp_path: Path
) -> None:
    show(page, tmp_path, "route=0.row.pdf")
    queries = ".routing .queries tbody"
    assert page.texts(f"{queries} .case-name") == ["Fill it in", "Merge these"]
    assert page.texts(f"{queries} .word") == ["wrong skill", "right"]
    assert (
        "docx 1, pdf 1, 1 run without a result: down"
        in page.texts(f"{queries} .evidence")[0]
    )
    assert page.texts(".confusions td.bad")[:3] == ["1", "2", "1"]
    page.click(".routing .rows .case-name")  # of a skill
    page.wait("document.querySelectorAll('.routing .queries').length === 1")
    page.js(
        "document.querySelectorAll('.routing')[1].querySelector('.folded"
        " button').click()"
    )
    rows = (
        "document.querySelectorAll('.routing')[1].querySelector('.rows').ariaRowCount"
    )
    page.wait(f"Number({rows}) > 40")


def test_the_trend_has_a_line_for_each_model_and_any_metric(
    page: Page, tmp_path: Path
) -> None:
    show(page, tmp_path, "metric=lift")
    assert page.texts(".trend h2") == [HOSTILE, "wick"]
    assert page.js("document.querySelectorAll('.trend-plot polyline').length") == 3
    assert page.js("document.querySelectorAll('.trend-plot .interval').length") == 4
    assert page.js("document.querySelectorAll('.trend-plot .some').length") == 1
    assert "+70 +60 to +80" in page.texts(".trend tbody .span")
    for number, name in enumerate(page.texts(".metrics button")):
        page.js(f"document.querySelectorAll('.metrics button')[{number}].click()")
        page.wait_for(".metrics [aria-pressed=true]", name)
        ticks = page.js(
            "[...document.querySelectorAll('.tick')].map((tick) => tick.textContent)"
        )
        assert len(ticks) > 3
        assert not any("NaN" in tick for tick in ticks)


def test_a_skill_on_two_models_is_a_row_with_its_verdict(
    page: Page, tmp_path: Path
) -> None:
    show(page, tmp_path, "view=studies")
    first = ".study:first-of-type"
    assert page.texts(f"{first} tbody .word") == ["still helps"]
    assert page.texts(f"{first} tbody .case-name") == ["gate"]
    assert "On new: broke: gate (10 cases); helps: gate." in page.texts(
        f"{first} .selected b"
    )
    page.js("document.querySelector('.study .fold').open = true")
    page.wait("document.querySelector('.study .fold .numbers')")
    assert "100%" in page.texts(f"{first} .fold .numbers")[0]
