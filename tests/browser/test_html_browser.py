"""The HTML report in a real browser: its table sorts and filters, its cases open."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill._util.texts import dollars
from pytest_upskill.reports.html.case_data import anchor
from pytest_upskill.reports.html.case_rows import rows_of
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.axe import violations
from support.browser import Page
from support.chromium import ChromiumPage
from support.made import made_run
from support.pages import CASES, readable_run, write_page

pytestmark = pytest.mark.xdist_group("browser")

LINKED = f"case-{anchor('release-notes', 'two-issues', 'sonnet')}"


def rows(page: Page) -> list[str]:
    """The names of the cases that are shown, with their models."""
    found = page.js(
        "[...document.querySelectorAll('.cases tbody')].filter(body => !body.hidden)"
        ".map(body => body.querySelector('.open').textContent + ' '"
        " + body.querySelector('[data-name=model]').textContent)"
    )
    assert isinstance(found, list)
    return found


def test_filters_keep_matching_rows(page: Page, report: Path) -> None:
    results = rows_of(readable_run())
    page.open(report)
    assert len(rows(page)) == len(results) == 48
    for state in ("failed", "regressed", "no signal", "flaky"):
        page.click(f"[data-state='{state}']")
        wanted = [r.test.case + " " + r.test.label for r in results if state in r.states]
        assert rows(page) == wanted
        assert wanted
        assert page.texts(".count") == [f"{len(wanted)} of 48 shown"]
        assert page.texts("[aria-pressed=true]") == [f"{state} {len(wanted)}"]
        page.click(f"[data-state='{state}']")
    page.click("[data-state=failed]")
    page.click("[data-state=flaky]")
    either = [r for r in results if {"failed", "flaky"} & set(r.states)]
    assert len(rows(page)) == len(either)
    page.click(".clear")
    assert len(rows(page)) == 48
    choose(page, "model", "opus")
    assert rows(page) == [f"{case} opus" for case in CASES]
    choose(page, "tag", "wording")
    assert rows(page) == [f"{case} opus" for case in CASES[1::3]]
    page.press("/")
    page.type("SCOPE-in")
    assert rows(page) == []  # by model and tag, too
    choose(page, "tag", "")
    assert rows(page) == ["scope-in-brackets opus"]
    page.assert_quiet()


def choose(page: Page, key: str, value: str) -> None:
    found = f"document.querySelector('select[data-key={key}]')"
    page.js(f"{found}.value = {json.dumps(value)}")
    page.js(f"{found}.dispatchEvent(new Event('change'))")


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5E"
    "rkJggg=="
)


def test_an_opened_case_shows_what_an_agent_did(page: Page, tmp_path: Path) -> None:
    made = agent_run(cases=1)
    files = (
        AnswerFile.of("out/a.txt", b"one\ntwo"),
        AnswerFile("b.png", None, 73, "1", "changed", PNG),
        AnswerFile("c.bin", None, 1, "2", "made"),
        AnswerFile("d.txt", None, 0, "", "deleted"),
    )
    first, second = made.records
    page.open(write_page(replace(made, records=(first, replace(second, files=files))), tmp_path))
    page.js("document.querySelectorAll('.open').forEach(button => button.click())")
    assert page.texts(".card > .facts")[1::2] == [
        "4 turns · 3 tool calls",
        "5 turns · 4 tool calls · opened the skill · read references/layout.md · "
        "ran scripts/sum.py",
    ]
    assert page.texts("details.files summary") == ["Files (2)", "Files (4)"]
    assert page.texts("details.files .facts") == []
    page.js("document.querySelectorAll('details.files').forEach(found => { found.open = true })")
    page.wait_for(
        "details.files .file > summary", "made report.md 26 bytes", "made out/a.txt 7 bytes"
    )
    assert page.texts("details.files .facts")[1:] == [
        "changed b.png 73 bytes",
        "made c.bin 1 byte, not a text, or too large",
        "deleted d.txt",
    ]
    assert len(page.texts("details.files pre")) == 1  # of more than three files none is open
    page.click(".file:not([open]) > summary")
    page.wait("document.querySelectorAll('details.files pre')[1].checkVisibility()")
    assert page.texts("details.files pre")[1:] == ["one\ntwo"]
    page.wait("document.querySelector('details.files img').complete")
    assert page.js("document.querySelector('details.files img').naturalWidth") == 2
    assert page.texts(".transcript > summary") == [
        "Transcript (10 steps, 1 failed call, 0.4 s in tools)",
        "Transcript (12 steps, 1 failed call, 0.4 s in tools)",
    ]
    page.js("document.querySelectorAll('.transcript').forEach(found => { found.open = true })")
    page.wait("document.querySelectorAll('.transcript .turn').length === 9")
    assert page.texts(".transcript .turn")[4:] == [
        "Turn 1 · 1.5 s · 900 tokens in · 1 call · 0.0 s in tools",
        "Turn 2 · 0.8 s · 1 call",
        "Turn 3 · 1 call, 1 failed · 0.2 s in tools",
        "Turn 4 · 1 call · 0.2 s in tools",
        "Turn 5",
    ]
    calls = ".transcript .step > summary"
    assert page.texts(calls)[5:] == [
        "system You are an agent in /workspace.",
        "thinking Let me see what is there.",
        'calls list {"path": "."} → 11 characters',
        'calls skill {"name": "pdf"} → 48 characters',
        'calls bash {"command": "python sum.py --try 0"} ✗ failed, 34 characters',
        'calls bash {"command": "python sum.py --try 1"} → 14 characters',
    ]
    assert page.texts(".step .result") == []  # folded
    page.js("document.querySelectorAll('.step').forEach(found => { found.open = true })")
    assert "bash failed · 0.2 s\n\nsum.py: no such file" in page.texts(".step.failed .result")[1]
    # The pictures are data of the file: nothing is fetched.
    page.assert_quiet()


@pytest.mark.nightly
def test_the_middle_of_a_long_transcript_is_left_out(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=1)
    turns = (Turn("call", "ls", "bash"), *[Turn("result", "no", "bash", failed=True)] * 150)
    first, *rest = made.records
    page.open(
        write_page(replace(made, records=(replace(first, transcript=turns), *rest)), tmp_path)
    )
    page.js("document.querySelectorAll('.open').forEach(button => button.click())")
    page.js("document.querySelectorAll('.transcript').forEach(found => { found.open = true })")
    page.wait("document.querySelector('.transcript .note')")
    assert page.texts("details.transcript .note") == ["1 step not shown."]
    page.assert_quiet()


def test_text_is_found_in_questions_and_answers(page: Page, report: Path) -> None:
    page.open(report)
    page.press("/")
    page.type("mind: revert")
    assert rows(page) == [f"revert {model}" for model in ("haiku", "sonnet", "opus", "local")]
    page.click(".clear")
    page.press("/")
    page.type("run 2: ## 2.4.0")
    wanted = [
        f"{row.test.case} {row.test.label}"
        for row in rows_of(readable_run())
        if any("run 2: ## 2.4.0" in (record.output or "") for record in row.records)
    ]
    assert rows(page) == wanted
    assert 0 < len(wanted) < 48


def test_headers_sort_and_announce_the_order(page: Page, report: Path) -> None:
    page.open(report)
    in_order = rows(page)
    page.click(".cases th:nth-child(1) button")
    assert rows(page) == sorted(in_order, key=lambda name: name.split()[0])
    page.click(".cases th:nth-child(1) button")
    assert rows(page)[0].startswith("two-issues")
    page.click(".cases th:nth-child(5) button")
    lifts = page.texts(".cases td[data-name=lift]")
    numbers = [int(lift.replace("−", "-")) for lift in lifts if lift != "–"]
    assert numbers == sorted(numbers)
    assert numbers[0] < 0 < numbers[-1]
    page.click(".cases th:nth-child(6) button")
    checks = [text.split(" → ")[1] for text in page.texts(".cases td[data-name=checks]")]
    shares = [float(one) / float(all_) for one, all_ in (text.split("/") for text in checks)]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] == 1
    page.click(".cases th:nth-child(8) button")
    costs = [text.split(" → ") for text in page.texts(".cases td[data-name^='$']")]
    assert {len(pair) for pair in costs} == {2}  # an answer that is missing costs nothing
    after = [float(pair[1].strip("$").replace(",", "")) for pair in costs]
    assert after == sorted(after)
    sorts = page.js(
        "[...document.querySelectorAll('.cases th')].map(head => head.getAttribute('aria-sort'))"
    )
    assert [number for number, sort in enumerate(sorts) if sort != "none"] == [7]
    assert sorts[7] == "ascending"


def test_a_click_opens_a_case_with_all_its_details(page: Page, report: Path) -> None:
    page.open(report)
    page.click(f"#{LINKED} .open")
    opened = f"#{LINKED} + .detail"
    (text,) = page.texts(opened)
    for words in (
        "skills/release-notes/skill_meta.json:67",
        "regression: 0 of 3 passed (accepted: 12 of 12, 2026-01-01)",
        "Mind: two-issues.",
        "Without the skill ✓ passed",
        "With the skill ✗ failed",
        '"### Breaking" is not in the answer',
        'the judge quotes "Migration: write `--color=always`"',
        "512 of them cached",
        "from cache",
        "two-issues, run 1: Here are the release notes",
    ):
        assert words.casefold() in text.casefold(), words
    assert page.js("location.hash") == f"#{LINKED}"
    page.click(f"{opened} .share button")
    page.wait("document.querySelector('.share [role=status]').textContent")
    page.click(f"{opened} [data-run='3']")
    assert "two-issues, run 3" in page.texts(f"{opened} .card")[0]
    page.click(f"{opened} [data-show=diff]")
    assert page.texts(f"{opened} .diff")
    page.click(f"#{LINKED} .open")
    assert page.texts(opened) == []
    page.assert_quiet()


def test_the_diff_shows_deletions_and_insertions(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=1)
    old = "One line stays.\nThe quick brown fox jumps over the lazy dog.\nGone.\nLast."
    new = "One line stays.\nThe quick red fox jumps over the lazy dog.\nLast.\nNew."
    records = [replace(r, output=new if r.arm == "skill" else old) for r in made.records]
    page.open(write_page(replace(made, records=tuple(records)), tmp_path))
    page.click(".open")
    page.click("[data-show=diff]")
    assert [text.strip() for text in page.texts(".diff del")] == ["brown", "Gone."]
    assert [text.strip() for text in page.texts(".diff ins")] == ["red", "New."]
    shown = page.js("document.querySelector('.diff').textContent")
    assert shown.startswith("One line stays.\nThe quick ")


def test_a_case_opens_by_keyboard(page: Page, report: Path) -> None:
    page.open(report)
    page.press("/")
    assert page.js("document.activeElement.type") == "search"
    page.type("breaking-change")
    for _ in range(30):
        page.press("Tab")
        if page.js("document.activeElement.classList.contains('open')"):
            break
    assert page.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key in ("Enter", " "):
        page.press(key)
        assert page.js("document.activeElement.getAttribute('aria-expanded')") == (
            "true" if key == "Enter" else "false"
        )


def test_a_link_opens_its_case_and_overrides_filters(page: Page, report: Path) -> None:
    page.open(report, f"#{LINKED}")
    (row,) = page.boxes(f"#{LINKED}")
    assert 0 <= row["top"] < 200
    assert page.texts(f"#{LINKED} + .detail")
    assert page.js("document.querySelector('.link').href").endswith(f"report.html#{LINKED}")
    other = f"case-{anchor('release-notes', 'empty-range', 'opus')}"
    page.click("[data-state=regressed]")
    assert rows(page) == ["two-issues sonnet"]
    page.js(f"location.hash = '{other}'")
    page.wait(f"document.querySelector('#{other} + .detail')")
    page.wait_for(".count", "48 of 48 shown")
    assert len(rows(page)) == 48
    page.settle()
    assert 0 <= page.boxes(f"#{other}")[0]["top"] < 200
    page.js("history.back()")
    page.wait(f"location.hash === '#{LINKED}?state=regressed'")
    page.wait(f"document.querySelector('#{LINKED} + .detail')")
    page.settle()
    assert 0 <= page.boxes(f"#{LINKED}")[0]["top"] < 900


@pytest.mark.nightly
def test_three_arms_are_compared_two_at_a_time(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=1, arms=("baseline", "previous", "skill"))
    skills = tuple(replace(skill, against="v1.2") for skill in made.skills)
    page.open(write_page(replace(made, skills=skills), tmp_path))
    assert "at v1.2" in " ".join(page.texts(".cases th"))
    assert len(page.boxes(".dumbbell .dot.previous")) == 1
    page.click(".open")
    assert [text.split("\n")[0].split(" ✓")[0] for text in page.texts(".card h3")] == [
        "Without the skill",
        "With the skill",
    ]
    page.js(
        "(select => { select.value = 'previous'; select.dispatchEvent(new Event('change')) })"
        "(document.querySelector('.controls select'))"
    )
    assert page.texts(".card h3")[0].startswith("With the skill at v1.2")


def test_cases_replace_the_placeholder(page: Page, report: Path) -> None:
    page.open(report)
    assert "Loading" not in page.js("document.getElementById('cases').textContent")
    file = report.with_name("broken.html")
    text = re.sub(r'id="data">[^<]*<', 'id="data"><', report.read_text("utf-8"))
    file.write_text(text, "utf-8")
    page.navigate(file.as_uri())
    page.wait("document.querySelector('#table')?.innerText.startsWith('This browser is')")
    assert len(page.texts("#table")) == 1


def test_without_javascript_the_page_says_so(page: ChromiumPage, report: Path) -> None:
    page.open_without_script(report)
    (shown,) = page.texts("#cases")
    assert "needs JavaScript" in shown
    assert "Loading" not in shown
    assert page.js("document.querySelector('#table').textContent") == "Loading the cases…"


@pytest.mark.nightly
def test_costs_are_formatted_as_in_python(page: Page, tmp_path: Path) -> None:
    costs = [2e-7, 0.0000524, 0.0000999, 0.0015, 0.1234, 2.5]
    made = made_run(cases=len(costs))
    records = [
        replace(record, cost=costs[int(record.case[-1])] if record.arm == "skill" else 0.0)
        for record in made.records
    ]
    page.open(write_page(replace(made, records=tuple(records)), tmp_path))
    shown = page.texts(".cases td[data-name='$/1000']")
    assert shown == [f"$0 → {dollars(1000 * cost)}" for cost in costs]


def test_axe_finds_nothing(page: ChromiumPage, report: Path) -> None:
    page.open(report, f"#{LINKED}")
    assert violations(page) == []
    page.assert_quiet()
