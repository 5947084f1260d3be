"""--skill-markdown: a comment that GitHub takes, and that no text from outside
breaks.
"""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.markdown import (
    LIMIT,
    MARKER,
    escaped,
    fenced,
    in_html,
    markdown_summary,
)
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.records import Grade
from support.agent_runs import agent_run
from support.made import (
    accepted_count,
    helps,
    made_record,
    made_run,
    with_missing_cases,
)

HOSTILE = (
    "</summary></details><script>alert(1)</script>\n\n```\n~~~\n````\n</details>\n<img"
    " src=x onerror=y> ![i](http://x.example/i.png) [l](http://x.example)"
    " http://x.example www.x.example @all a@x.example #12 | a | b |\n# h\n- - x\n1."
    " y\n> z\n---\n<!-- c"
)

OURS = {
    "h2",
    "h3",
    "p",
    "strong",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
OURS |= {"details", "summary", "pre", "code"}


class Page(HTMLParser):
    """What GitHub's own parser of Markdown makes of a text,
    as tags and as what they hold.
    """

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        # HTML stays: what GitHub filters out is not counted on
        raw = Options.CMARK_OPT_UNSAFE
        self.html = cmarkgfm.github_flavored_markdown_to_html(markdown, raw)
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = [("lang", "text")] if tag == "pre" else []
        assert [pair for pair in attrs if pair not in allowed] == []
        self.tags[tag] += 1
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.texts[tag][-1] += data


def regressed(**more: Any) -> RunResults:
    """Case 0 passed five of five runs when it was accepted, and one now; case 1 is
    new.
    """

    def passes(number: int, _model: str, arm: str, run: int) -> bool:
        return arm == "skill" and (run == 1 or number > 1)

    accepted = {number: accepted_count(5, 5) for number in (0, 2, 3, 4, 5)}
    return made_run(runs=5, passes=passes, accepted=accepted, **more)


def hostile(text: str, results: RunResults | None = None) -> RunResults:
    """Every text that comes from outside is this one."""
    made = results or regressed(models=(text,))
    grades = (Grade(text, passed=False, reason=text),)
    records = [
        replace(
            record, output=text, checks=grades if record.outcome == "failed" else ()
        )
        for record in made.records
    ]
    return replace(
        made, records=tuple(records), questions=dict.fromkeys(made.questions, text)
    )


def head(results: RunResults, failed: int | None = None) -> str:
    """The first line that is shown."""
    marker, title, *_ = markdown_summary(results, (), failed).splitlines()
    assert marker == MARKER
    return title.removeprefix("## ")


def test_what_changed_comes_first_then_the_table_then_regressions() -> None:
    text = markdown_summary(regressed(), ["a note"])
    title = "❌ gate fell on haiku: 100→84"
    assert text.startswith(
        f"{MARKER}\n## {title}\n\n**Failed:** 2 failed, 4 passed.\n\n| skill "
    )
    page = Page(text)
    assert page.texts["h3"] == ["Regressions", "Failed cases"]
    assert page.texts["summary"] == [
        "Verdicts in full",
        "case-0 on haiku: 1 of 5 passed (accepted: 5 of 5, 2026-01-01)",
        "case-1 on haiku: passed 1 of 5",
    ]
    worse = page.texts["details"][1]
    assert "How do I open case-0?" in worse
    assert "Answer with the skill, run 2:\nNo idea." in worse
    assert 'contains: "gate up" is not in the answer' in worse
    assert (
        text.index("| gate | haiku |") < text.index("a note") < text.index("<details>")
    )


def test_the_head_names_the_skill_that_fell_most_and_on_which_models() -> None:
    passing = {"haiku": 7, "sonnet": 2, "opus": 12}
    fallen = made_run(
        models=list(passing),
        cases=12,
        runs=5,
        passes=lambda number, model, arm, _: arm == "skill" and number < passing[model],
        accepted={n: accepted_count(5, 5) for n in range(12)},
    )
    assert head(fallen) == "❌ gate fell on 2 of 3 models: 100→17, 100→58"
    several = made_run(
        skills=("gate", "door"),
        cases=12,
        runs=5,
        passes=lambda *_: False,
        accepted={n: accepted_count(5, 5) for n in range(12)},
    )
    assert head(several) == "❌ gate fell on haiku: 100→0; 1 more skill fell"


def test_without_a_change_the_head_says_why_the_run_fails_or_what_it_shows() -> None:
    two = made_run(skills=("gate", "door"), passes=lambda n, *_: n > 1)
    assert head(two) == "❌ gate: 2 failed of 6 tests; door: 2 failed of 6 tests"
    passing = made_run(cases=12, passes=lambda _n, _m, arm, _r: arm == "skill")
    assert head(passing).startswith("✅ gate on haiku: helps, +100 (")
    assert head(passing, failed=1) == "❌ 1 other test failed"
    models = made_run(
        cases=12, models=("a", "b"), passes=lambda _n, _m, arm, _r: arm == "skill"
    )
    assert head(models) == "✅ 24 passed; helps 2"
    accepted = {n: accepted_count(5, 5) for n in range(12)}
    same = made_run(cases=12, runs=5, passes=lambda *_: True, accepted=accepted)
    assert head(same) == "✅ No skill fell: 12 passed"
    assert head(made_run(cases=0)) == "❌ Nothing was tested"


def test_the_worst_rows_come_first_and_many_are_folded() -> None:
    def passes(_number: int, model: str, arm: str, _run: int) -> bool:
        return (arm == "skill") == (model != "model-29")

    names = [f"model-{number}" for number in range(30)]
    page = Page(markdown_summary(made_run(models=names, cases=12, passes=passes)))
    assert page.texts["td"][:2] == ["gate", "model-29"]
    assert page.texts["summary"][:2] == ["10 more rows", "Verdicts in full"]
    assert page.tags["tr"] == 32


def test_of_agents_the_table_has_only_how_often_they_opened_the_skill() -> None:
    headers = Page(markdown_summary(agent_run(cases=4))).texts["th"]
    assert "opened" in headers
    assert not {"turns", "tool calls", "checks"} & set(headers)


def test_notable_cases_are_listed_below_the_verdict() -> None:
    def passes(number: int, _model: str, arm: str, _run: int) -> bool:
        return number == 1 or (arm == "baseline") == (number == 0 or number == 2)

    made = made_run(cases=4, runs=3, passes=passes)
    records = tuple(replace(record, case=f"{record.case}*") for record in made.records)
    tests = tuple(replace(test, case=f"{test.case}*") for test in made.tests)
    text = markdown_summary(replace(made, records=records, tests=tests))
    assert re.search(
        r"\n  - [a-z ]+: case-0\\\*, case-2\\\*\n  - [a-z ]+: case-1\\\*\n", text
    )
    assert Page(text.partition("### Failed")[0]).tags["ul"] == 2
    details = Page(markdown_summary(made)).texts["details"][1:]
    assert ["Without the skill: passed 3 of 3 runs." in words for words in details] == [
        True,
        True,
    ]


def test_without_a_baseline_there_are_no_baseline_numbers() -> None:
    text = markdown_summary(made_run(cases=1, passes=lambda *_: False, arms=("skill",)))
    assert "Failed cases" in text
    assert "ithout the skill" not in text


@pytest.mark.parametrize(
    ("cost", "shown"), [(None, False), (0.0, False), (0.001, True)]
)
def test_the_cost_column_is_shown_only_if_something_costs_money(
    cost: float | None, shown: bool
) -> None:
    made = made_run(models=("a", "b"))
    records = [replace(r, cost=cost if r.label == "a" else None) for r in made.records]
    page = Page(markdown_summary(replace(made, records=tuple(records))))
    assert ("$/1000" in page.texts["th"]) is shown
    assert page.tags["td"] == 2 * page.tags["th"]


def test_of_a_run_that_passes_only_sentences_are_folded() -> None:
    text = markdown_summary(made_run(passes=lambda *_: True))
    assert "**Passed:** 6 passed." in text
    assert text.count("<details>") == 1


def test_cases_missing_from_all_shards_fail_the_comment() -> None:
    run = with_missing_cases(made_run(), 2)
    assert (
        f"**Failed:** 1 failed, 5 passed.\n\n- {run.unfinished[0]}"
        in markdown_summary(run)
    )


def test_a_case_without_an_answer_shows_the_error() -> None:
    made = made_run(cases=2, passes=lambda *_: True)
    lost = made_record(
        "gate", "case-0", "haiku", "baseline", 1, outcome="errored", output=None
    )
    records = (replace(lost, checks=(), error="no network"), *made.records[1:])
    page = Page(markdown_summary(replace(made, records=records)))
    assert page.texts["summary"][1:] == ["case-0 on haiku: not answered, or not graded"]
    assert "no network" in page.texts["details"][1]


def test_accepted_failures_are_not_listed() -> None:
    made = made_run(
        passes=lambda *_: False, accepted={n: accepted_count(0) for n in range(6)}
    )
    assert markdown_summary(made).count("<details>") == 1


def test_cases_name_their_skill_if_there_are_several() -> None:
    made = made_run(skills=("gate", "door"), cases=1, passes=lambda *_: False)
    assert Page(markdown_summary(made)).texts["summary"][1:] == [
        "gate: case-0 on haiku: passed 0 of 1",
        "door: case-0 on haiku: passed 0 of 1",
    ]


def test_hostile_text_stays_text() -> None:
    results = hostile(HOSTILE)
    page = Page(markdown_summary(results, [HOSTILE], failed=1))
    assert set(page.tags) <= OURS
    assert page.tags["details"] == page.tags["summary"] == 3
    assert page.open == []
    assert "<script>alert(1)</script>" in page.texts["code"][0]  # as text, whole


@given(
    st.text(st.sampled_from("<>&`~|\\[]()!#*_-+=.:/@\n\r\t \x00\ud800w1a"), max_size=60)
)
def test_no_text_breaks_out(text: str) -> None:
    page = Page(markdown_summary(hostile(text + "x"), [text]))
    assert set(page.tags) <= OURS
    assert page.tags["details"] == 3
    assert page.tags["tr"] == 2
    assert page.tags["h2"] == 1
    assert page.open == []


@given(st.text())
def test_a_fence_holds_any_text(text: str) -> None:
    page = Page(fenced(text))
    assert page.tags == {"pre": 1, "code": 1}


@given(st.text())
def test_escaped_text_is_one_plain_paragraph(text: str) -> None:
    assert set(Page(f"x {escaped(text)}").tags) <= {"p"}
    assert set(Page(f"- {escaped(text)}").tags) <= {"ul", "li"}
    summary = Page(f"<summary>{in_html(text, 100)}</summary>")
    assert set(summary.tags) == {"summary"}


@pytest.mark.parametrize(
    "text", ["see #12", "@all", "http://x.example", "WWW.x.example"]
)
def test_nothing_calls_people_or_refers_to_issues(text: str) -> None:
    shown = Page(escaped(text)).texts["p"][0]
    assert shown.replace("\u200b", "").strip() == text
    assert "\u200b" in shown


@pytest.mark.parametrize(
    "results",
    [
        made_run(models=[f"model-{n}" for n in range(300)], cases=2),
        made_run(skills=[f"skill-{n}" for n in range(300)], cases=2),
        made_run(
            skills=[f"{n}" * 900 for n in range(50)], models=["@" * 900] * 1, cases=2
        ),
    ],
    ids=["models", "skills", "names"],
)
def test_tables_of_hundreds_of_rows_are_cut(results: RunResults) -> None:
    notes = ["<" * 3000] * 300
    text = markdown_summary(results, notes, failed=1)
    assert len(text) < LIMIT
    page = Page(text)
    rows = page.tags["tr"] - page.tags["table"]
    left_out = len(results.verdicts) - rows
    assert rows >= 5
    assert left_out > 0
    assert f"No room for {left_out} more row" in text
    assert re.search("^- and \\d+ more$", text, re.MULTILINE)  # of the notes


@pytest.mark.parametrize("answer", ["No. " * 5000, "`" * 9000])
def test_details_are_dropped_whole_from_the_end_and_counted(answer: str) -> None:
    text = markdown_summary(
        hostile(answer, made_run(cases=90, passes=lambda *_: False))
    )
    assert 40_000 < len(text) < LIMIT
    shown = Page(text).tags["details"] - 1
    assert shown >= 3
    assert text.endswith(f"\n\nFailed cases: no room for {90 - shown} more.\n")


def test_a_short_case_does_not_jump_the_queue() -> None:
    made = hostile("No. " * 5000, made_run(cases=20, passes=lambda *_: False))
    last = made.records[-1].case
    short = [
        replace(record, output="x", checks=()) if record.case == last else record
        for record in made.records
    ]
    questions = {
        key: "x" if last in key else text for key, text in made.questions.items()
    }
    text = markdown_summary(replace(made, records=tuple(short), questions=questions))
    assert len(text) < LIMIT - 1_500
    assert "<summary>case-1 on " in text
    assert f"<summary>{last} on " not in text


def test_regressions_come_before_other_failures() -> None:
    accepted = {number: accepted_count(1) for number in range(200)}
    made = hostile(
        "No. " * 900, made_run(cases=400, passes=lambda *_: False, accepted=accepted)
    )
    text = markdown_summary(made)
    assert len(text) < LIMIT
    shown = Page(text).tags["details"] - 1
    assert f"Regressions: no room for {200 - shown} more" in text
    assert "Failed cases: no room for 200 more" in text


@given(st.text(min_size=1, max_size=300), st.integers(1, 40), st.integers(1, 5))
def test_any_run_stays_below_the_limit(text: str, times: int, models: int) -> None:
    names = [f"{text * times}{number}" for number in range(models)]
    made = hostile(text * times, made_run(models=names, cases=9, passes=helps))
    assert len(markdown_summary(made, [text * times] * 20, failed=3)) < LIMIT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("`x` *y* _z_", r"\`x\` \*y\* \_z\_"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("two\nlines", "two lines"),
        ("[a](b)", r"\[a\](b)"),
        ("hi @all", "hi @&#8203;all"),
        ("\x1b[31m", r"\\x1b\[31m"),
    ],
)
def test_text_from_outside_is_plain_in_markdown(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_no_text_leaves_its_cell(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(\\\\)*\|", shown)
    assert "<" not in shown


def test_failed_tests_fail_the_comment() -> None:
    passing = made_run(passes=lambda *_: True)
    assert "**Passed:** 6 passed." in markdown_summary(passing)
    assert "**Failed:** 1 failed, 5 passed." in markdown_summary(made_run())
    assert "**Failed:** 6 passed.\n\n| skill" in markdown_summary(passing, failed=1)


def test_an_interrupted_run_did_not_pass() -> None:
    run = made_run(interrupted="Ctrl-C", lost=("x",), passes=lambda *_: True)
    (reason,) = run.unfinished
    assert "**Interrupted:** 6 passed, 1 not run.\n\n| skill" in markdown_summary(run)
    assert head(run) == f"❌ {reason}"
    failed = markdown_summary(run, failed=1)
    assert f"**Failed:** 6 passed, 1 not run.\n\n- {reason}" in failed


def test_a_failed_case_of_an_agent_tells_what_it_did() -> None:
    text = markdown_summary(agent_run(cases=1, passes=lambda *_: False))
    assert "5 turns, 4 tool calls, opened the skill." in text
