"""The page of a run in a real browser: the answer, filters, keys, links, hostility."""

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from pytest_upskill._util import texts
from pytest_upskill.reports.answers import answer_words, words_of_tests
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.run import RunResults
from support.axe import violations
from support.browser import CONTRASTS, Page
from support.chromium import ChromiumPage
from support.made import made_run, made_triggers
from support.pages import PAYLOADS, hostile_run, readable_run, write_page

WIDTHS = (390, 1024, 1280)
ROWS = ".cases .rows tbody tr:not(.space)"
LINK = f"#{case_anchor('release-notes', 'two-issues', 'sonnet')}"
TITLE = ".case h2"
# How many milliseconds a search takes until it is drawn.
SEARCH = """new Promise((resolve) => {
  const start = performance.now();
  const input = document.querySelector('input[type=search]');
  input.value = 'case-7';
  input.dispatchEvent(new Event('input', { bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(
    () => resolve(performance.now() - start)));
})"""


def shown(case: int, _model: str, arm: str, _run: int) -> bool:
    """Two of ten cases pass without the skill, all but one with it."""
    return case < 2 if arm == "baseline" else case != 9


def unclear(case: int, _model: str, arm: str, run: int) -> bool:
    """The skill helps three cases, and takes two away."""
    return case in (3, 4) if arm == "baseline" else case in (0, 1, 2) and run != 3


def one_skill() -> RunResults:
    """It helps on a model; on another one, nothing is shown."""

    def passes(case: int, model: str, arm: str, run: int) -> bool:
        rule = shown if model == "opus" else unclear
        return rule(case, model, arm, run)

    return made_run(models=("haiku", "opus"), cases=10, runs=3, passes=passes)


def many_skills(skills: int = 9, cases: int = 6) -> RunResults:
    names = [f"skill-{number:03d}" for number in range(skills)]
    return made_run(skills=names, models=("haiku", "opus", "local"), cases=cases)


def many_models() -> RunResults:
    models = [f"a-model-with-a-long-name-{number}" for number in range(12)]
    return made_run(cases=9, models=models, runs=2)


RUNS: dict[str, Callable[[], RunResults]] = {
    "readable": readable_run,
    "hostile": hostile_run,
    "many models": many_models,
    "many skills": many_skills,
    "triggers": lambda: made_triggers(skills=("gate", PAYLOADS[0]), only=False),
}


def names(page: Page) -> list[str]:
    """The cases of the rows that are drawn."""
    return page.texts(f"{ROWS} .case-name")


def address(page: Page) -> dict[str, list[str]]:
    return parse_qs(page.js("location.hash.slice(1)"))


def chips(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.texts(".cases .chip.toggle")]


def ends_of_lines(page: Page) -> dict[str, tuple[str, str]]:
    """The class and the width of each model's line in the plot."""
    pairs = page.js(
        "[...document.querySelectorAll('.plot tbody tr')].map((row) => ["
        "row.querySelector('.subject').innerText,"
        " row.querySelector('.dumbbell').getAttribute('class'),"
        " getComputedStyle(row.querySelector('.way')).strokeWidth])"
    )
    return {name: (kind, width) for name, kind, width in pairs}


# The first screen.


def test_first_screen_answers_and_colours_only_what_is_shown(
    page: Page, tmp_path: Path
) -> None:
    run = one_skill()
    page.open(write_page(run, tmp_path))
    (verdict,) = run.verdicts
    said = " ".join(page.texts(".say")[0].split())
    assert f"gate {said}" == answer_words(verdict).replace(": ", " ", 1)
    assert page.texts(".outcome p") == [f"✘ {words_of_tests(run)}"]
    haiku, opus = run.rows
    assert (haiku.verdict, opus.verdict) == ("unclear", "helps")
    lines = ends_of_lines(page)
    assert lines["haiku"] == ("dumbbell none", "1.5px")
    assert lines["opus"] == ("dumbbell good", "5px")
    assert page.texts(".plot .both")[1:] == ["20% → 20%", "20% → 90%", "20% → 55%"]
    assert chips(page)[0] == "only with 10"
    assert page.js("document.querySelectorAll('.plot .signal-bar')[1].ariaLabel") == (
        "7 only with, 2 both pass, 1 both fail"
    )
    # Two of three runs are no evidence.
    filled = page.js(
        "[...document.querySelectorAll('.plot tbody .signal-bar')]"
        ".map((bar) => bar.querySelectorAll('.filled').length)"
    )
    assert filled == [1, 1, 2]
    assert names(page)[:2] == ["case-3", "case-4"]
    assert all(box["bottom"] <= 900 for box in page.boxes(".plot tr, .cases .bar"))
    page.assert_quiet()


def test_switch_shows_other_amounts_and_the_address_keeps_it(
    page: Page, tmp_path: Path
) -> None:
    page.open(write_page(one_skill(), tmp_path))
    assert page.texts(".overview .choice button") == [
        *("Pass rate", "Cost", "Tokens", "Time")
    ]
    page.click(".overview .choice button:nth-of-type(2)")
    page.wait_for(".overview .choice [aria-pressed=true]", "Cost")
    assert page.texts(".plot .both")[1] == "$0.50 → $1.50"
    assert page.texts(".plot tbody .change b") == ["+200%", "+200%"]
    assert address(page) == {"measure": ["cost"]}


def test_a_hundred_skills_are_a_row_each_the_worst_first(
    page: Page, tmp_path: Path
) -> None:
    def passes(case: int, model: str, arm: str, run: int) -> bool:
        return shown(case, model, arm, run)

    made = made_run(
        skills=[f"skill-{number:03d}" for number in range(99)],
        models=("haiku", "opus", "local"),
        cases=10,
        passes=passes,
    )
    worse = made_run(
        skills=("worst",),
        models=("haiku", "opus", "local"),
        cases=10,
        passes=lambda case, _model, arm, _run: arm == "baseline" or case < 2,
    )
    both = replace(
        made,
        skills=made.skills + worse.skills,
        tests=made.tests + worse.tests,
        records=made.records + worse.records,
        questions={**made.questions, **worse.questions},
    )
    page.open(write_page(both, tmp_path))
    assert page.texts(".say") == ["99 of 100 skills help, 1 hurts"]
    assert "by chance alone" in page.texts(".overview .note")[0]
    rows = page.texts(".skills tbody .subject")
    assert (len(rows), rows[0]) == (100, "worst")
    assert page.texts(".skills tbody tr:first-child .on") == ["-80"] * 3
    page.click(".skills tbody tr:nth-child(2) .signals")
    page.wait("document.querySelector('.plot')")
    assert address(page) == {"skill": ["skill-000"]}
    assert page.texts(".shown") == ["30 of 3,000 tests"]
    page.js("history.back()")
    page.wait("document.querySelectorAll('.skills tbody tr').length === 100")
    page.assert_quiet()


# Filters, search, address.


def test_chips_filter_and_the_address_keeps_them(page: Page, tmp_path: Path) -> None:
    page.open(write_page(one_skill(), tmp_path))
    assert chips(page) == [
        *("only with 10", "only without 2", "both pass 2", "both fail 6"),
        "✘ failed 8",
    ]
    page.click(".chip[href*=without]")
    page.wait_for(".shown", "2 of 20 tests")
    assert "read the two answers first" in page.texts(".bar .hint")[0]
    assert address(page) == {"signal": ["only without"]}
    page.click(".plot tbody tr:nth-child(2) .subject a")
    page.wait("document.querySelector('.nothing')")  # opus has none
    page.js("history.back()")
    page.wait_for(".shown", "2 of 20 tests")
    page.open(tmp_path / "report.html", "#signal=both+fail&model=opus")
    assert page.texts(".shown") == ["1 of 20 tests"]


def test_a_search_looks_into_answers_and_leaves_no_history(
    page: Page, report: Path
) -> None:
    page.open(report)
    before = page.js("history.length")
    page.press("/")
    page.type("security-fix, run 2")
    page.wait_for(f"{ROWS} .case-name", "security-fix")
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
        "#outcome=odd&measure=odd&view=odd",
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
    cases = names(page)
    for key in ("j", "j", "k", "j"):
        page.press(key)
    page.wait_for(".cases tr.current .case-name", cases[1])
    page.press("Enter")
    page.wait_for(".around span", "2 of 12")
    page.press("j")
    page.wait_for(".around span", "3 of 12")
    page.press("Escape")
    page.wait_for(".cases tr.current .case-name", cases[2])
    page.press("?")
    page.wait("document.querySelector('.keys')")
    page.press("Control+k")
    assert address(page) == {}


@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_lands_on_its_case(page: Page, report: Path, width: int) -> None:
    page.size(width, 844)
    page.open(report, LINK)
    assert "two-issues" in page.texts(TITLE)[0]
    assert page.boxes(TITLE)[0]["bottom"] < 844
    page.click(".around a")
    page.wait(f"document.querySelector({json.dumps(ROWS)})")
    page.click(f"{ROWS}:nth-of-type(5) .cell")
    page.wait("document.querySelector('.case')")
    assert page.js("scrollY") == 0


# Looks.


@pytest.mark.parametrize("kind", RUNS)
def test_a_page_fits_its_window_and_anybody_can_use_it(
    page: ChromiumPage, tmp_path: Path, kind: str
) -> None:
    file = write_page(RUNS[kind](), tmp_path)
    for width in WIDTHS:
        page.size(width)
        page.open(file)
        assert page.js("document.documentElement.scrollWidth") <= width
        assert {round(box["height"]) for box in page.boxes(ROWS)} == {40}
        assert violations(page) == []
        page.click(".cases .rows .cell")
        page.wait("document.querySelector('.case')")
        assert page.js("document.documentElement.scrollWidth") <= width
    page.assert_quiet()


def test_colours_can_be_told_apart_in_light_and_dark(
    page: ChromiumPage, tmp_path: Path
) -> None:
    page.open(write_page(one_skill(), tmp_path), "#signal=only+with")
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
    page.open(write_page(many_skills(skills=100, cases=10), tmp_path))
    assert page.texts(".shown") == ["3,000 tests"]
    assert len(page.boxes(ROWS)) < 100
    page.js("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait("document.querySelector('.cases [aria-rowindex=\"1001\"]')")
    assert len(page.boxes(ROWS)) < 100
    page.press("/")
    page.type("skill-077 case-7")
    page.wait_for(f"{ROWS} .case-name", "skill-077 / case-7")
    page.assert_quiet()


@pytest.mark.nightly
def test_three_thousand_tests_open_and_are_searched_at_once(
    page: Page, tmp_path: Path
) -> None:
    file = write_page(many_skills(skills=100, cases=10), tmp_path)
    opening = []
    searching = []
    # The best of a few, since other programs take their time, too.
    for _ in range(5):
        page.open(file)
        opening.append(page.js("performance.now()"))
        searching.append(page.js(SEARCH))
        assert page.texts(".shown") == ["300 of 3,000 tests"]
    assert min(opening) < 1500
    assert min(searching) < 300


def test_nothing_hostile_runs(page: Page, tmp_path: Path) -> None:
    run = hostile_run()
    page.open(write_page(run, tmp_path, PAYLOADS))
    assert len(names(page)) > 5
    anchors = [case_anchor(t.skill, t.case, t.label) for t in run.tests[:3]]
    for fragment in ("", "q=window", *anchors):
        page.js(f"location.hash = {json.dumps(fragment)}")
        page.settle()
        page.js(
            "document.querySelectorAll('summary, .case button').forEach((button) =>"
            " button.click())"
        )
        page.settle()
    assert page.texts(".case h2")
    assert page.js("window.hit ?? null") is None
    foreign = "iframe, base, form, #app script"
    assert page.js(f"document.querySelectorAll('{foreign}').length") == 0
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
    numbers = [0, 0.0004, 0.0021, 0.05, 0.0994, 0.0996, 0.1, 1 / 3, 0.999, 1, 1.25]
    numbers += [12, 999.99, 1000, 12345.6, 1e6]
    for write in (texts.percent, texts.points, texts.whole, texts.dollars):
        name = write.__name__
        made = page.js(f"(() => {{ {code}; return {numbers}.map(format.{name}); }})()")
        assert made == [write(number) for number in numbers], name


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
