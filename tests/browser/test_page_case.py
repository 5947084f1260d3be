"""An opened case on the page: arms, checks and their marks, differences,
what an agent did.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import grade, parse_checks
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import Rerun, RunResults
from pytest_upskill.trials.answer import Answer, AnswerFile, SideCalls, Usage
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run, with_listing
from support.axe import violations
from support.browser import Page
from support.made import REASONS, made_run

ANSWER = """\
# Build 😀

Use **sm_90** and `arch`, see [the *docs*](https://example.org/a_(b)) and \
![logo](logo.png).

- one
  - inner

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
WITH = ".card[data-arm=skill]"
TRIAL = ".trial[data-trial=skill]"
FOCUSED = "[document.activeElement.tagName, document.activeElement.textContent]"


def answered(answer: str, expected: Any = None, **more: Any) -> RunResults:
    """A run whose answers are all the same, and graded."""
    made = made_run(**{"cases": 1, **more})
    checks = grade(parse_checks(expected or EXPECTED, KINDS, ()), Answer(answer))
    records = [replace(one, output=answer, checks=checks) for one in made.records]
    return replace(made, records=tuple(records))


def opened(
    page: Page,
    results: RunResults,
    folder: Path,
    more: str = "",
    earlier: Earlier | None = None,
) -> None:
    """Open the page at its first case."""
    file = folder / "report.html"
    file.write_bytes(run_page(results, (), earlier).encode())
    test = results.tests[0]
    page.open(file, f"#{case_anchor(test.skill, test.case, test.label)}{more}")


def press(page: Page, selector: str, text: str = "") -> None:
    """Click the first of these elements that has the text."""
    page.js(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        f".find(one => one.textContent.includes({json.dumps(text)})).click()"
    )
    page.settle()


def test_markdown_is_rendered_and_its_marks_say_what_checks_found(
    page: Page, tmp_path: Path
) -> None:
    opened(page, answered(ANSWER), tmp_path)
    answer = f"{WITH} .answer .markdown"
    assert page.texts(f"{answer} mark.found") == ["sm_90", "9.0"]
    assert page.texts(f"{answer} mark.unwanted") == ["push"]
    titles = page.js(
        f"[...document.querySelectorAll('{answer} mark')].map(one => one.title)"
    )
    assert titles == [
        '✔ regex: "sm_.." matches "sm_90" in the answer',
        '✔ contains: "9.0" is in the answer',
        '✘ not_contains: "push" is in the answer',
    ]
    assert page.texts(f"{answer} :is(strong, em, li li, th)") == [
        *("sm_90", "docs", "inner", "key", "value")
    ]
    assert page.texts(f"{answer} .image") == ["image: logo"]
    assert page.texts(f"{answer} > p:last-child") == ["Do not <b>push</b> this."]
    link = page.js(
        f"(({{href, rel}}) => [href, rel])(document.querySelector('{answer} a'))"
    )
    assert link == ["https://example.org/a_(b)", "noopener noreferrer"]
    assert violations(page) == []
    page.assert_quiet()


def test_a_check_leads_to_its_places_even_if_they_are_markup(
    page: Page, tmp_path: Path
) -> None:
    opened(page, answered(ANSWER), tmp_path)
    page.click(f"{TRIAL} .place.unwanted")
    page.settle()
    assert page.js(FOCUSED) == ["MARK", "push"]
    press(page, f"{TRIAL} .checks li:nth-child(4) .place")  # the # of the heading
    page.wait("document.activeElement.tagName === 'MARK'")
    page.wait("document.activeElement.textContent === '#'")
    assert page.js("new URLSearchParams(location.hash.slice(1)).get('show')") == "raw"
    assert page.texts(f"{WITH} .answer mark") == ["#", "sm_90", "9.0", "push"]
    press(page, "[aria-label=Show] button", "Rendered")
    assert page.texts(f"{WITH} .answer .markdown mark") == ["sm_90", "9.0", "push"]
    page.assert_quiet()


def test_marks_are_at_the_right_place_in_odd_texts(page: Page, tmp_path: Path) -> None:
    odd = "😀\u202e\x1b[0m std::gate\r\n::gate *gate*\n\n" + "é gate &amp; a\\*b " * 3
    results = answered(odd, {"contains": "gate", "not_regex": "ga"})
    for way in ("", "&show=raw"):
        opened(page, results, tmp_path, way)
        # Two checks overlap: each piece is told to be of both, or of one.
        assert page.texts(f"{WITH} .answer mark") == ["ga", "te"] * 6
        assert "\\u202e\\x1b[0m std" in page.texts(f"{WITH} .answer")[0]


def test_arms_models_and_runs_can_be_switched(page: Page, tmp_path: Path) -> None:
    made = made_run(cases=2, runs=3, models=("haiku", "sonnet"), passes=_second_fails)
    made = replace(made, rerun=Rerun(("--skill-runs", "3")))
    opened(page, made, tmp_path)
    assert page.texts(".case h2")[0].startswith("gate case-0 passed")
    # The first run that failed with the skill is shown.
    assert page.texts("[aria-label=Run] [aria-pressed=true]") == ["Run 2 ✘ ✘"]
    assert page.texts(".card h3") == [
        "without the skill ✘ failed",
        "with the skill ✘ failed",
    ]
    assert page.texts(".card .first-failed") == [f"contains: {REASONS[0]}"] * 2
    press(page, "[aria-label=Run] button", "Run 3")
    assert page.texts(f"{WITH} h3") == ["with the skill ✔ passed"]
    command = "pytest -vv 'skills/gate/skill_meta.json::case-0[haiku]' --skill-runs 3"
    assert page.texts(".rerun code") == [command]
    press(page, ".models a", "sonnet")
    assert page.texts(".models [aria-current]") == ["✔ sonnet"]
    assert "case-0[sonnet]" in page.texts(".rerun code")[0]
    page.js("history.back()")
    page.wait("document.querySelector('.rerun code').textContent.includes('haiku')")
    assert page.texts("[aria-label=Run] [aria-pressed=true]") == ["Run 3 ✘ ✔"]
    page.assert_quiet()


def _second_fails(_case: int, _model: str, arm: str, run: int) -> bool:
    return arm == "skill" and run != 2


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1024, 768), (390, 844)])
def test_both_answers_begin_on_the_first_screen(
    page: Page, tmp_path: Path, width: int, height: int
) -> None:
    long_line = "x" * 3_000 + "\n\n```\n" + "y" * 3_000 + "\n```\n"
    made = answered(ANSWER + long_line, runs=3, models=("haiku", "sonnet", "opus"))
    question = "Write the notes.\n" * 40
    page.size(width, height)
    opened(page, replace(made, questions={("gate", "case-0"): question}), tmp_path)
    for way in ("Rendered", "Raw"):
        press(page, "[aria-label=Show] button", way)
        first, second = page.boxes(".card .answer")
        assert max(first["top"], second["top"]) < height - 40
        assert (first["top"] == second["top"]) == (width > 390)
        assert page.js("document.documentElement.scrollWidth") <= width
    press(page, "[aria-label=Show] button", "Diff")
    assert page.js("document.documentElement.scrollWidth") <= width


def test_answers_are_compared_by_lines_and_words(page: Page, tmp_path: Path) -> None:
    before = (
        "".join(f"line {n}\n" for n in range(20)) + "Set arch to 8.0 in the file.\n"
    )
    after = before.replace("8.0", "9.0").replace("line 3\n", "")
    made = made_run(cases=1, runs=1)

    def record(old: Record) -> Record:
        return replace(old, output=after if old.arm == "skill" else before)

    now = replace(made, records=tuple(map(record, made.records)))
    opened(page, now, tmp_path, "&show=diff")
    assert page.texts(".diff del") == ["line 3\n", "Set arch to 8.0 in the file.\n"]
    assert page.texts(".diff ins b") == ["9"]
    assert page.texts(".diff button") == ["⋯ 10 lines that are the same"]
    page.click(".diff button")
    page.wait("document.querySelectorAll('.diff .line').length === 22")
    old = replace(
        now,
        records=tuple(
            replace(one, outcome="passed", output="Set it.") for one in now.records
        ),
    )
    opened(page, now, tmp_path, "&show=earlier", Earlier("before", old))
    assert page.texts(".change .word") == ["answer"]
    assert page.texts(".arms h3") == ["then ✔ passed", "now ✔ passed"]
    assert page.texts(".diff del") == ["Set it.\n"]
    page.assert_quiet()


def long_transcript() -> tuple[Turn, ...]:
    turns = [Turn("user", "Do it.")]
    for n in range(1, 41):
        path = "skills/gate/SKILL.md" if n == 7 else f"{n}.txt"
        turns.append(
            Turn("call", json.dumps({"path": path}), "read", reply=n, seconds=0.5)
        )
        failed = n in (12, 30)
        turns.append(
            Turn("result", f"line {n}", "read", reply=n, seconds=0.2, failed=failed)
        )
    shell = json.dumps({"command": ["bash", "-lc", "ls -la\nexit"], "timeout": 9})
    turns += [
        Turn("assistant", "Now I **know**.", reply=41),
        Turn("call", shell, "shell", reply=41),
        Turn("result", "total 0", "shell", reply=41),
        Turn("assistant", "Done: see report.md.", reply=42),
    ]
    return tuple(turns)


def test_what_an_agent_did(page: Page, tmp_path: Path) -> None:
    made = with_listing(agent_run(cases=1), "name")
    pixel = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"
        "+A8AAQUBAScY42YAAAAASUVORK5CYII="
    )
    files = (
        AnswerFile.of("report.md", b"# Report\n\nTotal: **12**\n"),
        replace(AnswerFile.of("plot.png", b"\0"), data=pixel),
    )

    def record(old: Record) -> Record:
        answer = "Done: see report.md."
        return replace(old, transcript=long_transcript(), output=answer, files=files)

    results = replace(made, records=tuple(map(record, made.records)))
    opened(page, results, tmp_path)
    assert page.texts(f"{WITH} .files .markdown strong") == ["12"]
    assert page.js(f"document.querySelector('{WITH} .files img').naturalWidth") == 1
    assert page.texts(WITH)[0].count("Done: see report.md.") == 1
    assert "in the agent's list wick-0 (name only)" in page.texts(TRIAL)[0]
    lines = page.texts(f"{TRIAL} .step")
    assert lines[1].split() == ["1", "read", "1.txt", "0.2", "s"]
    assert "✘ failed" in lines[12]
    assert [line for line in lines if "opened the skill" in line] == [lines[7]]
    assert page.texts(f"{TRIAL} .step.said strong") == ["know"]
    assert lines[-2].split() == ["$", "ls", "-la", "exit"]
    assert page.texts(f"{TRIAL} .time figcaption") == [
        "model 20.0 s\ntools 8.0 s\nskill opened after 4.7 s"
    ]
    press(page, f"{TRIAL} .outline button", "30.txt")
    assert page.js("document.activeElement.textContent").startswith("30read 30.txt")
    press(page, f"{TRIAL} .step", "$ ls -la")
    assert page.texts(f"{TRIAL} .inside pre") == ["ls -la\nexit", "total 0"]
    assert page.texts(f"{TRIAL} .arguments code") == ["9"]
    assert violations(page) == []
    page.assert_quiet()


def test_what_a_user_answered(page: Page, tmp_path: Path) -> None:
    talk = (
        Turn("user", "Ship it."),
        Turn("assistant", "Where to?", reply=1, seconds=1.0),
        Turn("answer", "To **Norway** <b>now</b>.", reply=1, seconds=9.0),
        Turn("assistant", "It is on its way.", reply=2, seconds=1.0),
    )
    user = SideCalls("cheap", 1, Usage(1000, 10), 0.25)
    made = agent_run(cases=1)
    records = (
        replace(one, transcript=talk, output="On its way.", user=user)
        for one in made.records
    )
    opened(page, replace(made, records=tuple(records)), tmp_path)
    assert page.texts(f"{TRIAL} .step.answer") == ["The user\n\nTo Norway <b>now</b>."]
    assert page.texts(f"{TRIAL} .time figcaption") == ["model 2.0 s\ntools 0.0 s"]
    assert "the user: 1 call, 1,010 tokens, $0.25" in page.texts(TRIAL)[0]
    assert violations(page) == []
    page.assert_quiet()
