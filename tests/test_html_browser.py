"""The HTML report in a real browser: it draws, sorts, filters and opens, and lets nothing run."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser import Browser, Page, chromium, running_browser
from made import made_run
from pages import CASES, PAYLOADS, hostile_run, large_run, readable_run
from pytest_upskill.reports.html import html_report, shell
from pytest_upskill.reports.html.data import anchor, rows_of
from pytest_upskill.results import RunResults

pytestmark = pytest.mark.xdist_group("browser")

SCREENSHOTS = Path(__file__).parents[1] / "build/screenshots"
LINKED = f"case-{anchor('release-notes', 'two-issues', 'sonnet')}"

# Of every piece of text that can be seen: its contrast with what is behind it.
CONTRASTS = """(() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.disabled || element.tagName === "SCRIPT"
      || element.closest("button:disabled, title, desc, noscript, option")) continue;
    const { fill, color } = getComputedStyle(element);
    const both = [light(element.closest("svg") ? fill : color), light(behind(element))];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    found.push([ratio, `${element.tagName}.${element.getAttribute("class")}`, element.textContent]);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.size(1280)
    page.media()
    yield page
    page.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    notes = ["144 of 288 answers re-used, which saved 57,000 tokens. --skill-fresh asks anew."]
    return write(readable_run(), tmp_path_factory.mktemp("report"), notes)


def write(results: RunResults, folder: Path, notes: list[str] | None = None) -> Path:
    file = folder / "report.html"
    file.write_bytes(html_report(results, notes or []).encode())
    return file


def rows(page: Page) -> list[str]:
    """The names of the cases that are shown, with their models."""
    found = page.js(
        "[...document.querySelectorAll('.cases tbody')].filter(body => !body.hidden)"
        ".map(body => body.querySelector('.open').textContent + ' '"
        " + body.querySelector('[data-name=model]').textContent)"
    )
    assert isinstance(found, list)
    return found


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    found: list[dict[str, float]] = page.js(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".map(element => element.getBoundingClientRect().toJSON())"
    )
    return found


def is_quiet(page: Page) -> bool:
    """Nothing was logged, nothing asked for but the file itself."""
    assert page.problems == []
    assert [url.partition("#")[0] for url in page.requests] == page.requests[:1]
    assert page.requests[0].startswith("file:")
    return True


def test_without_a_browser_ci_fails_and_a_developer_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match="no Chromium: "):
        chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Chromium: "):
        chromium()


def test_the_plots_are_drawn_where_the_numbers_say(page: Page, report: Path) -> None:
    page.open(report)
    (plot,) = boxes(page, ".dumbbell")
    without, with_skill = (
        boxes(page, ".dumbbell .dot.baseline"),
        boxes(page, ".dumbbell .dot.skill"),
    )
    assert len(without) == len(with_skill) == 4
    summaries = readable_run().summaries

    def share(box: dict[str, float]) -> float:
        return ((box["left"] + box["right"]) / 2 - plot["left"]) / plot["width"]

    low, high = share(boxes(page, ".dumbbell .dot.skill")[3]), share(with_skill[2])
    assert summaries[2].skill_rate == 1.0
    assert summaries[3].skill_rate
    scale = (high - low) / (1.0 - summaries[3].skill_rate)
    for row, one, two in zip(summaries, without, with_skill, strict=True):
        assert row.skill_rate is not None
        assert row.baseline_rate is not None
        assert share(one) == pytest.approx(high - scale * (1 - row.baseline_rate), abs=0.01)
        assert share(two) == pytest.approx(high - scale * (1 - row.skill_rate), abs=0.01)
        assert one["top"] == pytest.approx(two["top"], abs=1)
    (plane,) = boxes(page, ".plane")
    points = boxes(page, ".plane .dot")
    assert len(points) == 8
    assert all(plane["left"] <= p["left"] < p["right"] <= plane["right"] for p in points)
    (spot,) = boxes(page, ".plane .spot")
    (middle,) = [
        p for p in points if abs(p["x"] + p["width"] / 2 - spot["x"] - spot["width"] / 2) < 1
    ]
    assert middle["top"] > spot["top"]
    assert len(boxes(page, ".plane .frontier")) == 2 * 4 + 1
    assert is_quiet(page)


@pytest.mark.parametrize("width", [360, 1280])
def test_names_in_the_plot_of_six_models_do_not_collide(
    page: Page, tmp_path: Path, width: int
) -> None:
    models = [f"provider/model-{n}" for n in range(6)]
    made = made_run(models=models, cases=20, passes=lambda n, m, *_: n < 17 + (int(m[-1]) % 3))
    records = [replace(r, cost=0.001 + 0.0001 * int(r.model[-1])) for r in made.records]
    page.size(width)
    page.open(write(replace(made, records=tuple(records)), tmp_path))
    names = boxes(page, ".plane .name")
    assert len(names) == 6
    for number, one in enumerate(names):
        for two in names[number + 1 :]:
            apart = one["right"] <= two["left"] or two["right"] <= one["left"]
            assert apart or one["bottom"] <= two["top"] + 3 or two["bottom"] <= one["top"] + 3


def test_filters_leave_what_they_say(page: Page, report: Path) -> None:
    results = rows_of(readable_run())
    page.open(report)
    assert len(rows(page)) == len(results) == 48
    for state in ("failed", "regressed", "no signal", "flaky"):
        page.click(f"[data-state='{state}']")
        wanted = [r.test.case + " " + r.test.model for r in results if state in r.states]
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
    assert is_quiet(page)


def choose(page: Page, key: str, value: str) -> None:
    found = f"document.querySelector('select[data-key={key}]')"
    page.js(f"{found}.value = {json.dumps(value)}")
    page.js(f"{found}.dispatchEvent(new Event('change'))")


def test_text_is_found_in_questions_and_answers(page: Page, report: Path) -> None:
    page.open(report)
    page.press("/")
    page.type("mind: revert")
    assert rows(page) == [f"revert {model}" for model in ("haiku", "sonnet", "opus", "local")]
    page.click(".clear")
    page.press("/")
    page.type("run 2: ## 2.4.0")
    wanted = [
        f"{row.test.case} {row.test.model}"
        for row in rows_of(readable_run())
        if any("run 2: ## 2.4.0" in (record.output or "") for record in row.records)
    ]
    assert rows(page) == wanted
    assert 0 < len(wanted) < 48


def test_headers_sort_and_say_so(page: Page, report: Path) -> None:
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
    sorts = page.js(
        "[...document.querySelectorAll('.cases th')].map(head => head.getAttribute('aria-sort'))"
    )
    assert [number for number, sort in enumerate(sorts) if sort != "none"] == [4]
    assert sorts[4] == "ascending"


def test_a_case_opens_by_click_with_all_there_is_to_say(page: Page, report: Path) -> None:
    page.open(report)
    page.click(f"#{LINKED} .open")
    opened = f"#{LINKED} + .detail"
    (text,) = page.texts(opened)
    for told in (
        "skills/release-notes/skill_meta.json:67",
        "regression: accepted 12 of 12 on 2026-01-01, now 0 of 3",
        "Mind: two-issues.",
        "Without the skill ✓ passed",
        "With the skill ✗ failed",
        '"### Breaking" is not in the answer',
        'the judge quotes "Migration: write `--color=always`"',
        "512 of them cached",
        "stored answer",
        "two-issues, run 1: Here are the release notes",
    ):
        assert told.casefold() in text.casefold(), told
    assert page.js("location.hash") == f"#{LINKED}"
    page.click(f"{opened} .share button")
    page.wait("document.querySelector('.share [role=status]').textContent")
    page.click(f"{opened} [data-run='3']")
    assert "two-issues, run 3" in page.texts(f"{opened} .card")[0]
    page.click(f"{opened} [data-show=diff]")
    assert page.texts(f"{opened} .diff")
    page.click(f"#{LINKED} .open")
    assert page.texts(opened) == []
    assert is_quiet(page)


def test_the_diff_shows_what_is_gone_and_what_is_new(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=1)
    old = "One line stays.\nThe quick brown fox jumps over the lazy dog.\nGone.\nLast."
    new = "One line stays.\nThe quick red fox jumps over the lazy dog.\nLast.\nNew."
    records = [replace(r, output=new if r.arm == "skill" else old) for r in made.records]
    page.open(write(replace(made, records=tuple(records)), tmp_path))
    page.click(".open")
    page.click("[data-show=diff]")
    assert [text.strip() for text in page.texts(".diff del")] == ["brown", "Gone."]
    assert [text.strip() for text in page.texts(".diff ins")] == ["red", "New."]
    shown = page.js("document.querySelector('.diff').textContent")
    assert shown.startswith("One line stays.\nThe quick ")


def test_a_case_opens_by_keyboard_alone(page: Page, report: Path) -> None:
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


def test_a_link_opens_its_case_and_wins_over_filters(page: Page, report: Path) -> None:
    page.open(report, f"#{LINKED}")
    (row,) = boxes(page, f"#{LINKED}")
    assert 0 <= row["top"] < 200
    assert page.texts(f"#{LINKED} + .detail")
    assert page.js("document.querySelector('.link').href").endswith(f"report.html#{LINKED}")
    other = f"case-{anchor('release-notes', 'empty-range', 'opus')}"
    page.click("[data-state=regressed]")
    assert rows(page) == ["two-issues sonnet"]
    page.js(f"location.hash = '{other}'")
    page.wait(f"document.querySelector('#{other} + .detail')")
    assert len(rows(page)) == 48
    assert 0 <= boxes(page, f"#{other}")[0]["top"] < 200
    page.js("history.back()")
    page.wait(f"location.hash === '#{LINKED}'")
    page.wait(f"Math.abs(document.getElementById('{LINKED}').getBoundingClientRect().top) < 200")


def test_three_arms_are_compared_two_at_a_time(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=1, arms=("baseline", "previous", "skill"))
    skills = tuple(replace(skill, against="v1.2") for skill in made.skills)
    page.open(write(replace(made, skills=skills), tmp_path))
    assert "at v1.2" in " ".join(page.texts(".cases th"))
    assert len(boxes(page, ".dumbbell .dot.previous")) == 1
    page.click(".open")
    assert [text.split("\n")[0].split(" ✓")[0] for text in page.texts(".card h3")] == [
        "Without the skill",
        "With the skill",
    ]
    page.js(
        "(select => { select.value = 'previous'; select.dispatchEvent(new Event('change')) })"
        "(document.querySelector('.controls select'))"
    )
    assert page.texts(".card h3")[0].startswith("With it at v1.2")


def test_nothing_of_a_hostile_run_becomes_more_than_text(page: Page, tmp_path: Path) -> None:
    page.open(write(hostile_run(), tmp_path, list(PAYLOADS)))
    opened = page.js("document.querySelectorAll('.open').length")
    assert opened == 3 * 2 * len(PAYLOADS)
    page.js("document.querySelectorAll('.open').forEach(button => button.click())")
    page.js("document.querySelectorAll('[data-run=\"1\"]').forEach(button => button.click())")
    assert page.js("document.querySelectorAll('.detail .card').length") == 2 * opened
    page.js("document.querySelectorAll('[data-show=diff]').forEach(button => button.click())")
    page.js("document.querySelectorAll('*').forEach(element => element.focus?.())")
    page.js("new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))")
    assert page.js("typeof window.hit") == "undefined"
    assert page.js("document.scripts.length") == 2
    foreign = "img, iframe, base, animate, object, embed, form, textarea, [onload], [onerror]"
    foreign += ", [onfocus], [autofocus], a:not([href^='#']), style ~ style"
    assert page.js(f"document.querySelectorAll({json.dumps(foreign)}).length") == 0
    assert page.js("document.querySelector('.opened pre').textContent").startswith(PAYLOADS[0])
    assert page.js("getComputedStyle(document.body).display") == "block"
    assert is_quiet(page)


def test_the_policy_stops_what_would_get_through(page: Page, tmp_path: Path) -> None:
    """The other test could pass with no policy at all; this one shows that it counts."""
    body = "<img src='http://127.0.0.1:9/x.png' onerror='window.hit = 1'><script>window.hit = 2"
    body += "</script><p style='color: red' id=p>Text</p>"
    file = tmp_path / "page.html"
    file.write_text(shell("Title", body, "document.documentElement.dataset.ready = 'yes'"))
    page.open(file)
    assert page.js("typeof window.hit") == "undefined"
    assert page.js("getComputedStyle(document.getElementById('p')).color") != "rgb(255, 0, 0)"
    assert [problem for problem in page.problems if "Content Security Policy" in problem]


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
    page.open(write(replace(made, records=tuple(records)), tmp_path))
    for number in range(len(pairs)):
        page.click(f".cases tbody:nth-of-type({number + 1}) .open")
        detail = f".cases tbody:nth-of-type({number + 1}) .detail"
        assert "Show all" in page.texts(f"{detail} .card")[0]
        page.click(f"{detail} [data-show=diff]")
        (told,) = page.texts(f"{detail} .runs .note")
        assert "Only the first 50,000 characters are compared." in told
        assert page.js(f"document.querySelectorAll('{detail} .diff :is(ins, del)').length") >= 2
    assert is_quiet(page)


def test_a_large_page_opens_and_filters(page: Page, tmp_path: Path) -> None:
    page.open(write(large_run(), tmp_path))
    assert len(rows(page)) == 600
    page.click("[data-state=failed]")
    assert 0 < len(rows(page)) < 600
    page.click(".cases tbody:not([hidden]) .open")
    assert "Cut to keep this file small" in page.texts(".detail")[0]
    assert is_quiet(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page: Page, report: Path, scheme: str) -> None:
    page.media(scheme=scheme)
    page.open(report, f"#{LINKED}")
    page.click(f"#{LINKED} + .detail [data-show=diff]")
    back = page.js("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    found: list[tuple[float, str, str]] = page.js(CONTRASTS)
    assert len(found) > 500
    assert [pair for pair in found if pair[0] < 4.5] == []


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_the_page_is_as_wide_as_its_window(page: Page, report: Path, width: int) -> None:
    page.size(width)
    page.open(report, f"#{LINKED}")
    assert page.js("document.documentElement.scrollWidth") == width
    cards = boxes(page, ".card")
    is_stacked = cards[0]["bottom"] <= cards[1]["top"]
    assert is_stacked == (width < 600)
    sizes = page.js(
        "[...document.querySelectorAll('.plot text')].map(text => getComputedStyle(text).fontSize)"
    )
    assert min(float(size.removesuffix("px")) for size in sizes) >= 11


def test_printed_it_has_the_opened_case_and_no_controls(page: Page, report: Path) -> None:
    page.size(700)  # a sheet of A4 without its margins
    page.open(report, f"#{LINKED}")
    page.media(kind="print")
    assert page.js("document.documentElement.scrollWidth") == 700
    assert page.texts(".filters, .controls, nav, .share") == []
    assert len(page.texts(".card")) == 2
    assert len(page.texts("pre")) == 3
    assert page.js("getComputedStyle(document.querySelector('pre')).maxHeight") == "none"
    assert page.js("document.querySelector('.plot').checkVisibility()")
    assert page.call("Page.printToPDF")["data"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_screenshots_are_kept(page: Page, report: Path, width: int, scheme: str) -> None:
    """For people to look at: build/screenshots."""
    page.size(width)
    page.media(scheme=scheme)
    page.open(report)
    page.screenshot(SCREENSHOTS / f"report-{width}-{scheme}.png")
    page.click(f"#{LINKED} .open")
    (top,) = [box["top"] for box in boxes(page, f"#{LINKED}")]
    top += page.js("scrollY") - 20
    page.screenshot(SCREENSHOTS / f"case-{width}-{scheme}.png", top=top, height=1600)
    assert len(list(SCREENSHOTS.glob(f"*-{width}-{scheme}.png"))) == 2
