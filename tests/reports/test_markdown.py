"""--skill-markdown: a short comment, which no text from outside breaks."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.markdown import (
    MARKER,
    MAX_LENGTH,
    escaped,
    markdown_summary,
)
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.trials.records import Grade
from support.made import accepted_count, helps, made_run

HOSTILE = (
    "</summary></details><script>alert(1)</script>\n\n```\n~~~\n````\n</details>\n<img"
    " src=x onerror=y> ![i](http://x.example/i.png) [l](http://x.example)"
    " http://x.example www.x.example @all a@x.example #12 | a | b |\n# h\n- - x\n1."
    " y\n> z\n---\n<!-- c"
)

COMMENT = """\
<!-- pytest-upskill -->
## ✅ gate helps: +79 points over 2 models (+54 to +100)

- 4 of 24 tests failed; all 4 fail without the skill, too

| model | pass rate | lift | interval | verdict | tokens | $ per 1,000 |
|-|-|-|-|-|-|-|
| haiku | 8 → 83 % | +75 | +46 to +100 | helps | 50→150 | 0.50 → 1.50 |
| opus | 0 → 83 % | +83 | +59 to +100 | helps | 50→150 | 0.50 → 1.50 |
| all models | 4 → 83 % | +79 | +54 to +100 | helps | | |

- only with 19: case-3, case-4, case-5, case-6 and 6 more
- both pass 1: case-2 (1 of 2): they tell nothing
- both fail 4: case-0, case-1: not in SKILL.md, or a wrong check

<details><summary>1 note</summary>

- a note

</details>
"""

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


def only_with(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def hostile(text: str, results: RunResults) -> RunResults:
    """Every text that comes from outside is this one."""
    grades = (Grade(text, passed=False, reason=text),)
    records = [
        replace(
            record, output=text, checks=grades if record.outcome == "failed" else ()
        )
        for record in results.records
    ]
    return replace(
        results,
        records=tuple(records),
        questions=dict.fromkeys(results.questions, text),
    )


def head_of(results: RunResults, failed: int | None = None) -> str:
    marker, title, *_ = markdown_summary(results, (), failed).splitlines()
    assert marker == MARKER
    return title.removeprefix("## ")


def narrow(text: str) -> str:
    """Without what aligns the columns of tables."""
    return re.sub(r"( )+|(-)-+(?=\|)", r"\1\2", text)


def unfolded(text: str) -> list[str]:
    return re.sub("<details>.*?</details>", "", text, flags=re.DOTALL).splitlines()


def test_a_comment_has_the_verdict_a_table_and_what_the_cases_say() -> None:
    def passes(number: int, model: str, arm: str, _run: int) -> bool:
        return number > 1 and (arm == "skill" or (number == 2 and model == "haiku"))

    results = made_run(models=("haiku", "opus"), cases=12, passes=passes)
    assert narrow(markdown_summary(results, ["a note"])) == COMMENT


def test_the_head_says_what_fell_most_and_on_which_models() -> None:
    passing = {"haiku": 7, "sonnet": 2, "opus": 12}
    accepted = {number: accepted_count(5, 5) for number in range(12)}
    fallen = made_run(
        models=list(passing),
        cases=12,
        runs=5,
        passes=lambda number, model, arm, _: arm == "skill" and number < passing[model],
        accepted=accepted,
    )
    assert head_of(fallen) == "❌ gate fell on 2 of 3 models: 100 → 17, 100 → 58 %"
    line = "- gate fell on haiku: case-7 (5 of 5 → 0 of 5), case-8 (5 of 5 → 0 of 5), "
    assert line in markdown_summary(fallen)

    never = made_run(
        skills=("gate", "door"),
        cases=12,
        runs=5,
        passes=lambda *_: False,
        accepted=accepted,
    )
    assert head_of(never) == "❌ gate fell on haiku: 100 → 0 %; 1 more skill fell"


def test_the_head_says_why_a_run_fails_or_what_it_shows() -> None:
    good = made_run(cases=12, passes=only_with)
    assert head_of(good).startswith("✅ gate helps: +100 points (")
    assert "1 other test failed" in markdown_summary(good, failed=1)

    two = made_run(skills=("gate", "door"), cases=12, passes=only_with)
    assert head_of(two) == "✅ 2 of 2 skills help, none hurts"
    unchanged = tuple(
        replace(skill, against="main", text="a", previous_text="a")
        for skill in two.skills
    )
    assert head_of(replace(two, skills=unchanged)) == "⚪ No skill changed"

    gates = Gates(min_pass_rate=1.0)
    failing = made_run(cases=12, passes=lambda *_: False, gates=gates)
    assert head_of(failing).startswith("❌ gate on haiku: ")
    assert head_of(made_run(cases=0)) == "❌ Nothing was tested"
    stopped = made_run(cases=12, passes=only_with, interrupted="Ctrl-C", lost=("x",))
    assert head_of(stopped) == "❌ interrupted: Ctrl-C; 1 of 13 tests did not run"


@pytest.mark.parametrize(
    ("skills", "models", "cases"), [(1, 1, 3), (1, 8, 60), (1, 40, 12), (30, 3, 6)]
)
def test_at_most_thirty_lines_are_unfolded(
    skills: int, models: int, cases: int
) -> None:
    results = made_run(
        skills=[f"skill-{number}" for number in range(skills)],
        models=[f"model-{number}" for number in range(models)],
        cases=cases,
        passes=helps,
        accepted={number: accepted_count(1) for number in range(cases)},
    )
    text = markdown_summary(results, ["a note"] * 100, failed=3)
    assert len(unfolded(text)) <= 30
    assert "No idea." not in text


def test_hostile_text_stays_text() -> None:
    results = hostile(HOSTILE, made_run(models=(HOSTILE, "opus"), runs=5))
    page = Page(markdown_summary(results, [HOSTILE], failed=9))
    assert set(page.tags) <= OURS
    assert page.tags["details"] == page.tags["table"] == 1
    assert page.open == []


@given(
    st.text(
        st.sampled_from("<>&`~|\\[]()!#*_-+=.:/@\n\r\t \x00\ud800w1a"), max_size=60
    ),
    st.integers(1, 40),
)
def test_no_text_breaks_out_or_makes_it_too_long(text: str, times: int) -> None:
    name = f"{text * times}x"
    results = hostile(name, made_run(skills=(name,), models=(name, "b"), cases=9))
    written = markdown_summary(results, [name] * 20, failed=3)
    assert len(written) < MAX_LENGTH
    page = Page(written)
    assert set(page.tags) <= OURS
    assert (page.tags["h2"], page.tags["table"], page.tags["tr"]) == (1, 1, 4)
    assert page.tags["details"] == 1
    assert page.open == []


@given(st.text())
def test_escaped_text_is_one_plain_paragraph(text: str) -> None:
    assert set(Page(f"x {escaped(text)}").tags) <= {"p"}
    assert set(Page(f"- {escaped(text)}").tags) <= {"ul", "li"}
    assert not re.search(r"(?<!\\)(\\\\)*\|", escaped(text))


@pytest.mark.parametrize(
    "text", ["see #12", "@all", "http://x.example", "WWW.x.example"]
)
def test_nothing_calls_people_or_refers_to_issues(text: str) -> None:
    shown = Page(escaped(text)).texts["p"][0]
    assert shown.replace("\u200b", "").strip() == text
    assert "\u200b" in shown
