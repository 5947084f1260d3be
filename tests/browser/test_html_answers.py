"""An opened case in real browsers: marks of checks, Markdown, SKILL.md, long transcripts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import KINDS, grade, parse_checks
from pytest_upskill.results.run import Rerun, RunResults
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.axe import violations
from support.browser import Page
from support.made import made_run
from support.pages import write_page

pytestmark = pytest.mark.xdist_group("browser")

ANSWER = """\
# Build 😀

Use **sm_90** and `arch`, see [the *docs*](https://example.org/a_(b)) and ![logo](logo.png).

- one
  - inner
- two

1. first

> quoted
> text

| key | value |
|---|---|
| a | `b` |

```toml
arch = "9.0"
```

Do not <b>push</b> this.
"""
EXPECTED = {
    "contains": ["9.0", "sm_100"],
    "not_contains": "push",
    "regex": ["(?m)^#", "sm_.."],
}


def answered(answer: str, expected: Any = None, **more: Any) -> RunResults:
    """A run of one case, whose answers are graded."""
    made = made_run(cases=1, **more)
    checks = grade(parse_checks(expected or EXPECTED, KINDS, ()), Answer(answer))
    records = [replace(one, output=answer, checks=checks) for one in made.records]
    return replace(made, records=tuple(records))


def opened(page: Page, results: RunResults, folder: Path, query: str = "") -> str:
    """Open the page at its first case; the address of the case."""
    file = write_page(results, folder)
    page.open(file)
    case: str = page.js("document.querySelector('tr[id]').id")
    page.open(file, f"#{case}{query}")
    return case


def inside(page: Page, selector: str) -> list[str]:
    """Of the answer with the skill."""
    return page.texts(f".card[data-arm=skill] {selector}")


def test_what_checks_found_is_marked_and_says_which_check(page: Page, tmp_path: Path) -> None:
    opened(page, answered(ANSWER), tmp_path)
    assert inside(page, ".answer mark.found") == ["sm_90", "9.0"]
    assert inside(page, ".answer mark.unwanted") == ["push"]
    titles = page.js(
        "[...document.querySelectorAll('[data-arm=skill] .answer mark')].map(one => one.title)"
    )
    assert titles == [
        'ok regex: "sm_.." matches "sm_90" in the answer',
        'ok contains: "9.0" is in the answer',
        'FAIL not_contains: "push" is in the answer',
    ]
    assert inside(page, ".tag.missing") == ["missing"]
    # What is found looks otherwise than what must not be there, also without colours.
    looks = page.js(
        "['.found', '.unwanted'].map(kind => getComputedStyle(document.querySelector("
        "`.answer mark${kind}`)).textDecorationStyle)"
    )
    assert looks == ["solid", "wavy"]
    assert inside(page, ".mark-legend .key") == ["found by a check", "must not be there"]
    page.assert_quiet()


def test_a_check_leads_to_its_places_even_if_they_are_markup(page: Page, tmp_path: Path) -> None:
    opened(page, answered(ANSWER), tmp_path)
    assert "only raw shows" in inside(page, ".answer .note")[0]
    assert inside(page, ".to-place") == ["1 place", "1 place", "1 place", "1 place"]
    focused = "[document.activeElement.tagName, document.activeElement.textContent]"
    page.js("document.querySelector('[data-arm=skill] .to-place.unwanted').click()")
    assert page.js(focused) == ["MARK", "push"]
    page.js("document.querySelectorAll('[data-arm=skill] .to-place')[2].click()")  # the heading's #
    assert page.js(focused) == ["MARK", "#"]
    assert page.js("new URLSearchParams(location.hash.split('?')[1]).get('text')") == "raw"
    assert inside(page, ".answer mark") == ["#", "sm_90", "9.0", "push"]
    page.assert_quiet()


@pytest.mark.nightly
def test_places_are_visited_one_after_the_other(page: Page, tmp_path: Path) -> None:
    text = "gate one, gate two, gate three"
    opened(page, answered(text, {"contains": ["gate", "gate two"]}), tmp_path)
    assert inside(page, ".to-place") == ["3 places", "1 place"]
    at = "[...document.querySelectorAll('[data-arm=skill] mark')].indexOf(document.activeElement)"
    found = []
    for _ in range(4):
        page.js("document.querySelector('[data-arm=skill] .to-place').click()")
        found.append(page.js(at))
    assert found == [0, 1, 3, 0]
    for _ in range(2):  # " two" is a mark of its own, but no place of its own
        page.js("document.querySelectorAll('[data-arm=skill] .to-place')[1].click()")
        assert page.js(at) == 1


@pytest.mark.nightly
def test_marks_are_at_the_right_place_in_odd_texts(page: Page, tmp_path: Path) -> None:
    odd = "😀\u202e\x1b[0m std::gate\r\n::gate *gate*\n\n" + "é gate " * 3
    opened(page, answered(odd, {"contains": "gate", "not_regex": "ga"}), tmp_path, "?text=raw")
    for text in ("raw", "rendered"):
        page.js(f"document.querySelector('[data-text={text}]').click()")
        # Two checks overlap: each piece names those that it belongs to.
        assert inside(page, ".answer mark") == ["ga", "te"] * 6
        checks = page.js(
            "[...document.querySelectorAll('[data-arm=skill] .answer mark')]"
            ".map(one => one.dataset.checks)"
        )
        assert checks == ["0 1", "0"] * 6


def test_markdown_is_rendered_from_text_alone(page: Page, tmp_path: Path) -> None:
    opened(page, answered(ANSWER), tmp_path)
    assert inside(page, ".markdown h4") == ["Build 😀"]
    assert inside(page, ".markdown strong") == ["sm_90"]
    assert inside(page, ".markdown em") == ["docs"]
    assert inside(page, ".markdown .address") == ["https://example.org/a_(b)", "logo.png"]
    assert inside(page, ".markdown .image") == ["image: logo"]
    assert inside(page, ".markdown li li") == ["inner"]
    assert inside(page, ".markdown ol > li") == ["first"]
    assert inside(page, ".markdown blockquote") == ["quoted\ntext"]
    assert inside(page, ".markdown [role=columnheader]") == ["key", "value"]
    assert inside(page, ".markdown [role=cell] code") == ["b"]
    assert inside(page, ".markdown .language") == ["toml"]
    assert inside(page, ".markdown pre") == ['arch = "9.0"']
    assert "Do not <b>push</b> this." in inside(page, ".markdown p")[-1]
    assert page.js("document.querySelectorAll('.markdown :is(a, b, img)').length") == 0
    page.assert_quiet()


def test_raw_is_a_switch_that_the_address_keeps(page: Page, tmp_path: Path) -> None:
    case = opened(page, answered(ANSWER), tmp_path)
    assert inside(page, ".answer pre") == ['arch = "9.0"']
    page.click("[data-text=raw]")
    assert inside(page, ".answer pre") == [ANSWER]
    assert page.js("document.activeElement.dataset.text") == "raw"
    assert page.js("location.hash") == f"#{case}?text=raw"
    page.js("history.back()")
    page.wait("document.querySelector('.answer .markdown')")
    page.open(tmp_path / "report.html", f"#{case}?text=raw")
    assert len(inside(page, ".answer > div > pre")) == 1
    page.assert_quiet()


HOSTILE = {
    "quotes": ">" * 30_000,
    "deep quotes": "\n".join("> " * n + "x" for n in range(200)),
    "brackets": "[" * 20_000 + "a" + "](b)" * 8_000,
    "lists": "\n".join("  " * n + "- x" for n in range(240)),
    "stars": "*a **b _c __d " * 4_000,
    "ticks": " ".join("`" * n for n in range(300)),
    "unclosed": "```py\n<script>window.hit = 1</script>\n" * 700,
    "bars": "|" * 20_000 + "\n" + "|-" * 20 + "\n" + "|" * 20_000,
    "rows": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 5_500,
    "escapes": "\\" * 50_000,
    "links": "[a](javascript:window.hit=2)" * 2_000,
    "one line": "word " * 12_000,
    "too long": "# a\n" * 16_000,
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_markdown_hangs_or_runs(page: Page, tmp_path: Path, kind: str) -> None:
    text = HOSTILE[kind]
    opened(page, answered(text, {"contains": "x"}), tmp_path)
    assert page.js("document.querySelectorAll('.card .answer').length") == 2
    assert page.js("typeof window.hit") == "undefined"
    deepest = page.js(
        "Math.max(...[...document.querySelectorAll('.answer *')].map((one) => {"
        "let depth = 0; for (; !one.matches('.answer'); one = one.parentNode) depth += 1; "
        "return depth; }))"
    )
    assert deepest < 45
    if kind == "too long":
        assert inside(page, ".answer .note") == ["Shown raw: it is too long to be rendered."]
    page.assert_quiet()


SKILL = "---\nname: gate\ndescription: Gates.\n---\n\n# Gates\n\n- Type **gate up**.\n"


def skilled(previous: str | None = None) -> RunResults:
    made = answered("gate up", {"contains": "gate up"})
    ref = "v1.0" if previous else None
    skills = [replace(one, text=SKILL, previous_text=previous, against=ref) for one in made.skills]
    return replace(made, skills=tuple(skills))


@pytest.mark.nightly
def test_skill_md_is_shown_beside_the_answer(page: Page, tmp_path: Path) -> None:
    case = opened(page, skilled(SKILL.replace("gate up", "gate open")), tmp_path)
    page.click("[data-show=skill]")
    assert page.js("location.hash") == f"#{case}?show=skill"
    assert page.texts(".pair > .card > h3") == ["SKILL.md", "With the skill ✓ passed"]
    assert page.texts(".skill-view h4") == ["Gates"]
    assert page.texts(".skill-view .language") == ["frontmatter"]
    page.click("[data-skill-show=raw]")
    assert page.texts(".skill-view pre") == [SKILL]
    page.click("[data-skill-show=diff]")
    assert page.texts(".skill-view del")[0].startswith("open")
    assert page.texts(".skill-view ins")[0].startswith("up")
    assert page.texts("[data-skill-show=diff]") == ["diff to v1.0"]
    page.assert_quiet()


@pytest.mark.nightly
def test_skill_md_is_in_the_part_of_its_skill(page: Page, tmp_path: Path) -> None:
    page.open(write_page(skilled(), tmp_path))
    assert page.texts(".skill-file > summary") == ["SKILL.md"]
    assert page.texts(".skill-view") == []
    page.click(".skill-file > summary")
    page.wait("document.querySelector('.skill-file .skill-view')")
    assert page.texts(".skill-view h4") == ["Gates"]
    assert page.texts("[data-skill-show]") == ["rendered", "raw"]
    page.open(write_page(made_run(), tmp_path))
    assert page.texts(".skill-file") == []
    page.assert_quiet()


@pytest.mark.nightly
def test_answer_command_and_code_are_copied(page: Page, tmp_path: Path) -> None:
    results = replace(answered(ANSWER), rerun=Rerun(("--skill-runs", "3")))
    opened(page, results, tmp_path)
    command = "pytest -vv 'skills/gate/skill_meta.json::case-0[haiku]' --skill-runs 3"
    assert page.texts(".command") == [command]
    page.js(
        "Object.defineProperty(navigator, 'clipboard', { value: "
        "{ writeText: async (text) => { window.copied = text; } } })"
    )
    for selector, text in (
        (".rerun button", command),
        ("[data-arm=skill] .answer-head button", ANSWER),
        ("[data-arm=skill] .code button", 'arch = "9.0"'),
    ):
        page.js(f"document.querySelector({json.dumps(selector)}).click()")
        page.wait(f"window.copied === {json.dumps(text)}")
    page.assert_quiet()


@pytest.mark.nightly
def test_ways_through_a_long_transcript(page: Page, tmp_path: Path) -> None:
    made = agent_run(cases=1)
    turns = [Turn("user", "Do it.")]
    for n in range(1, 41):
        path = "skills/gate/SKILL.md" if n == 7 else f"{n}.txt"
        turns.append(Turn("call", f'{{"path": "{path}"}}', "read", reply=n))
        turns.append(Turn("result", f"line {n}", "read", reply=n, failed=n in (12, 30)))
    records = [replace(one, transcript=tuple(turns)) for one in made.records]
    opened(page, replace(made, records=tuple(records)), tmp_path)
    page.click("[data-arm=skill] .transcript > summary")
    page.wait("document.querySelector('[data-arm=skill] .to-skill')")
    assert inside(page, ".to-skill") == ["turn 7: opened the skill"]
    page.click("[data-arm=skill] .to-skill")
    assert page.js("document.activeElement.dataset.turn") == "7"
    for turn in ("12", "30", "12"):
        page.click("[data-arm=skill] .to-failed")
        assert f'"{turn}.txt"' in page.js("document.activeElement.textContent")
        assert page.js("document.activeElement.parentNode.open")
    steps = "[...document.querySelectorAll('[data-arm=skill] .step')]"
    page.js("document.querySelectorAll('[data-arm=skill] .transcript .group button')[0].click()")
    assert page.js(f"{steps}.every(one => one.open)")
    page.js("document.querySelectorAll('[data-arm=skill] .transcript .group button')[1].click()")
    assert not page.js(f"{steps}.some(one => one.open)")
    page.assert_quiet()


@pytest.mark.nightly
@pytest.mark.parametrize("query", ["", "?text=raw", "?show=diff", "?show=skill"])
def test_axe_finds_nothing_in_an_opened_case(page: Page, tmp_path: Path, query: str) -> None:
    results = answered(ANSWER)
    skills = tuple(replace(one, text=SKILL + ANSWER) for one in results.skills)
    opened(page, replace(results, skills=skills), tmp_path, query)
    assert violations(page) == []


@pytest.mark.nightly
def test_no_line_of_an_answer_or_a_skill_makes_the_page_wider(page: Page, tmp_path: Path) -> None:
    long = "x" * 300
    text = f"---\nname: {long}\n---\n# {long}\n\n{long}\n\n```\n{long}\n```\n\n|a|{long}|\n|-|-|\n"
    made = made_run(cases=1, arms=("previous", "skill"))
    texts = {"text": text, "previous_text": long, "against": f"release/{long[:90]}"}
    skills = tuple(replace(skill, **texts) for skill in made.skills)  # type: ignore[arg-type]
    checks = (Grade(long, False, long),)
    records = tuple(replace(one, output=text, checks=checks) for one in made.records)
    page.open(write_page(replace(made, skills=skills, records=records), tmp_path))
    page.click(".open")
    for width in (320, 720, 860, 1280):
        page.size(width)
        assert page.js("document.documentElement.scrollWidth") == width, width
    page.click("[data-show=skill]")
    page.click(".skill-file > summary")
    page.wait("document.querySelectorAll('.skill-view').length === 2")
    assert violations(page) == []
    for shown in ("rendered", "raw", "diff"):
        page.js(
            f"document.querySelectorAll('[data-skill-show={shown}]').forEach(one => one.click())"
        )
        for width in (320, 720, 860, 1280):
            page.size(width)
            assert page.js("document.documentElement.scrollWidth") == width, (shown, width)
