"""Texts in an opened case: nothing in them runs, loads, hides or hangs the page."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.records import Grade
from support.browser import Page
from support.made import made_run
from support.pages import PAYLOADS, hostile_run

# All text of the page and of its attributes, whether it can be seen or not.
ALL_TEXT = """[document.body.innerText, ...[...document.querySelectorAll("body *")]
  .flatMap((element) => [...element.attributes])
  .map((attribute) => attribute.value)].join("\\n")"""
FOREIGN = ", ".join(
    [
        *(
            "img",
            "iframe",
            "base",
            "animate",
            "object",
            "embed",
            "form",
            "textarea",
            "style ~ style",
        ),
        *(
            "[onload]",
            "[onerror]",
            "[onfocus]",
            "[autofocus]",
            "a[href]:not([href^='#'], [href^='http'])",
            "[style]",
        ),
    ]
)


def opened(
    page: Page,
    results: RunResults,
    folder: Path,
    more: str = "",
    earlier: Earlier | None = None,
) -> None:
    file = folder / "report.html"
    file.write_bytes(run_page(results, (), earlier).encode())
    test = results.tests[0]
    page.open(file, f"#{case_anchor(test.skill, test.case, test.label)}{more}")


def test_a_hostile_run_stays_text(page: Page, tmp_path: Path) -> None:
    results = hostile_run(2)
    old = replace(
        results, records=tuple(replace(r, outcome="passed") for r in results.records)
    )
    for show in ("rendered", "raw", "diff", "earlier"):
        opened(
            page, results, tmp_path, f"&run=1&show={show}", Earlier(PAYLOADS[0], old)
        )
        for selector in (
            "details > summary",
            ".transcript > h4 button",
            ".place",
            ".more",
        ):
            page.js(
                f"document.querySelectorAll({json.dumps(selector)}).forEach(one =>"
                " one.click())"
            )
            page.settle()
        page.js("document.querySelectorAll('*').forEach(element => element.focus?.())")
        page.settle()
        assert page.js("typeof window.hit") == "undefined"
        assert page.js(f"document.querySelectorAll({json.dumps(FOREIGN)}).length") == 0
        shown = page.js(ALL_TEXT)
        assert "\\u202e" in shown
        assert harmless(shown) == shown  # nothing reorders, hides or rings
        assert page.js("document.documentElement.scrollWidth - innerWidth") <= 0
        page.assert_quiet()


@pytest.mark.nightly
def test_answers_of_a_megabyte_do_not_hang_the_page(page: Page, tmp_path: Path) -> None:
    pairs = [
        ("one long line " * 80_000, "one other line " * 80_000),
        (
            "".join(f"{n}\n" for n in range(150_000)),
            "".join(f"{n * 7}\n" for n in range(150_000)),
        ),
        ("a b\n" * 250_000, "a c\n" * 250_000),
        ("x" * 1_000_000, "\n" * 1_000_000),
    ]
    for pair in pairs:
        made = made_run(cases=1, runs=1)
        spans = tuple((n, n + 1) for n in range(0, 20_000, 2))
        checks = (Grade("regex", passed=True, reason="found", found=spans),)
        records = [
            replace(record, output=pair[record.arm == "skill"], checks=checks)
            for record in made.records
        ]
        opened(page, replace(made, records=tuple(records)), tmp_path)
        assert len(page.boxes(".card .answer")) == 2
        page.js("location.hash += '&show=diff'")
        page.wait("document.querySelector('.diff')")
        assert page.js("document.querySelectorAll('.diff :is(ins, del)').length") >= 2
    page.assert_quiet()


HOSTILE = {
    "quotes": ">" * 29_000,
    "deep quotes": "\n".join("> " * n + "x" for n in range(200)),
    "brackets": "[" * 20_000 + "a" + "](b)" * 2_000,
    "lists": "\n".join("  " * n + "- x" for n in range(200)),
    "stars": "*a **b _c __d " * 2_000,
    "underlines": "_" * 20_000 + "a",
    "unclosed": "```py\n<script>window.hit = 1</script>\n" * 700,
    "rows": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 2_800,
    "links": (
        "[a](javascript:window.hit=2)" * 900
        + "[b](data:text/html,x) [c](//example.org)"
    ),
    "html": (
        "<img src=x onerror='window.hit=3'><style>*{display:none}</style><base"
        " href=//a>" * 9
    ),
    "too long": "# a\n" * 16_000,
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, marks=() if kind in ("html", "links") else pytest.mark.nightly
        )
        for kind in HOSTILE
    ],
)
def test_no_markdown_hangs_or_runs(page: Page, tmp_path: Path, kind: str) -> None:
    text = HOSTILE[kind]
    made = made_run(cases=1)
    spans = tuple(found.span() for found in re.finditer("x", text))
    checks = (Grade("contains", passed=True, reason="found", found=spans),)
    records = [replace(record, output=text, checks=checks) for record in made.records]
    opened(page, replace(made, records=tuple(records)), tmp_path)
    assert page.js("document.querySelectorAll('.card .answer').length") == 2
    assert page.js("typeof window.hit") == "undefined"
    foreign = ".answer :is(img, style, base, script, iframe, form, a:not([href^=http]))"
    assert page.js(f"document.querySelectorAll('{foreign}').length") == 0
    deepest = page.js(
        "Math.max(...[...document.querySelectorAll('.answer *')].map((one) => {let"
        " depth = 0; for (; !one.matches('.answer'); one = one.parentNode) depth += 1;"
        " return depth; }))"
    )
    assert deepest < 45
    page.assert_quiet()
