"""The matrix of neighbours in the terminal, in Markdown and on the page."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import get_args

import pytest

from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.markdown import LIMIT, markdown_summary
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Look, text_width
from pytest_upskill.reports.terminal.matrix_lines import neighbour_lines
from pytest_upskill.reports.terminal.study_lines import study_lines
from pytest_upskill.results.neighbours import Matrix, Word, conclusion, sentences
from support.made import made_run
from support.made_studies import LONG, TINY, made_matrix
from support.pages import PAYLOADS

HURTS, HELPS, UNKNOWN, INCOMPLETE = get_args(Word)
SIX = ("pdf", "docs-writer", "csv", "xlsx", LONG, "開く-かぎ")
HOSTILE = (
    "</td><script>window.hit=1</script>",
    "\x1b[2J\x1b[31m",
    "|`a`|\n# b",
    "@all #1",
    '" x="',
)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("skills", [("pdf", "csv"), SIX[:3], SIX, HOSTILE])
def test_no_line_is_wider_than_the_terminal(width: int, skills: tuple[str, ...]) -> None:
    lines = neighbour_lines(made_matrix(skills, bare=()), Look(width))
    assert max(map(text_width, lines)) <= width
    assert harmless("\n".join(lines)) == "\n".join(lines)


def test_the_table_at_80_columns() -> None:
    title, _, *table, last = neighbour_lines(made_matrix(), Look(80))
    assert title == "Neighbours · loop/haiku · 480 trials, 3 without an answer, $1.23"
    assert [re.split(" {2,}", line) for line in table[:8]] == [
        ["skill", "lift alone", "+ pdf", "+ docs-writer", "+ csv", "+ all"],
        [table[1]],
        ["pdf", "+60", "-", f"-20 {HURTS}", f"+3 {UNKNOWN}", f"+15 {HELPS}"],
        ["", "+30 to +90", "-35 to -5", "-12 to +18", "+3 to +27"],
        ["", "~120 cases"],
        ["docs-writer", "+60", f"0 {UNKNOWN}", "-", f"-10 {INCOMPLETE}", f"-20 {HURTS}"],
        ["", "+30 to +90", "-26 to +26", "-40 to +20", "-35 to -5"],
        ["", "~68 cases"],
    ]
    assert table[4].index("~120") == table[2].index("+3 ")
    assert last == f"{conclusion(made_matrix())}."


def test_every_pair_is_in_one_of_the_tables() -> None:
    lines = neighbour_lines(made_matrix(SIX, [TINY], bare=()), Look(80))
    text = "\n".join(lines)
    assert text.count("skill    ") == text.count("lift alone  ") > 1
    assert text.count(f"0 {UNKNOWN}") == 36


def test_of_many_skills_only_what_is_shown_is_told() -> None:
    names = [f"skill-{number}" for number in range(12)]
    lines = neighbour_lines(made_matrix(names, bare=()), Look(80))
    assert "Pairs are told below if something is shown; the HTML page has all." in lines
    assert any(line.startswith("46 more pairs: ") for line in lines)
    whole = neighbour_lines(made_matrix(names, bare=()), Look(80, verbosity=1))
    assert len(whole) > len(lines) + 46
    assert any(line.startswith("skill-1 with skill-2: ") for line in whole)


def test_ascii_is_enough() -> None:
    "\n".join(neighbour_lines(made_matrix(SIX[:4]), Look(80, ASCII_MARKS))).encode("ascii")


def test_the_head_of_the_page_leads_to_the_matrix_and_the_cases() -> None:
    page = html_report(made_run(matrices=(made_matrix(),)), [])
    for name in ("Overview", "Neighbours", "Cases"):
        assert f'<a href="#{name.lower()}">{name}</a>' in page
        assert f'id="{name.lower()}"' in page
    assert 'href="#neighbours"' not in html_report(made_run(), [])


def test_a_run_has_the_lines_of_all_its_matrices() -> None:
    run = made_run(matrices=(made_matrix(), made_matrix(model="loop/opus")))
    assert sum(line.startswith("Neighbours") for line in study_lines(run, Look(80))) == 2
    assert study_lines(made_run(), Look(80)) == []


def test_markdown_has_a_table_and_sentences() -> None:
    run = made_run(cases=0, matrices=(made_matrix(),))
    text = markdown_summary(run)
    assert "### Neighbours on loop/haiku" in text
    for sentence in sentences(made_matrix()):
        assert f"- {sentence}" in text.replace("\\", "")
    cells = f"| **-20 {HURTS}**<br>-35 to -5 | +3 {UNKNOWN}<br>"
    assert f"| pdf | +60<br>+30 to +90 | – {cells}" in text
    assert "~120 cases" in text
    assert "Passed" not in text
    assert "Nothing was tested" not in text
    whole = markdown_summary(made_run(matrices=(made_matrix(),)))
    assert whole.index("**Passed.**") < whole.index("### Neighbours")


def test_markdown_of_many_and_hostile_skills_stays_a_comment() -> None:
    names = [f"{LONG}-{number}" for number in range(30)]
    text = markdown_summary(made_run(cases=0, matrices=(made_matrix(names, bare=()),)))
    assert len(text) < LIMIT
    assert "No room for a table of 900 pairs." in text
    text = markdown_summary(made_run(cases=0, matrices=(made_matrix(HOSTILE, bare=()),)))
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(HOSTILE)
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


class Cells(HTMLParser):
    """The classes of table cells, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds = list[str]()
        self.tags = list[str]()
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "td":
            self.kinds.append(str(dict(attrs).get("class")))

    def handle_data(self, data: str) -> None:
        self.words += data


def page_of(*matrices: Matrix) -> Cells:
    return Cells(html_report(made_run(cases=0, matrices=matrices)))


def test_the_page_says_in_words_what_it_says_in_colours() -> None:
    page = page_of(made_matrix())
    assert [kind for kind in page.kinds if kind not in ("num", "None")] == [
        *("alone", "self", HURTS, UNKNOWN, HELPS),
        *("alone", UNKNOWN, "self", INCOMPLETE, HURTS),
    ]
    assert page.words.count(UNKNOWN) >= 2
    assert page.words.count(f"-20 {HURTS}") == 2
    assert "~120 cases" in page.words
    assert "change -20 (-35 to -5)" in page.words
    assert "docs-writer opened in 6 of 10 trials, first in 6" in page.words
    assert "stopped early" in page.words
    assert "Cases" not in page.words  # there are none
    assert "script" not in page.tags


def test_a_page_of_tests_has_the_matrix_beside_them() -> None:
    run = made_run(matrices=(made_matrix(),))
    page = Cells(html_report(run))
    assert "Neighbours" in page.words
    assert "Cases" in page.words
    assert "Neighbours" not in Cells(html_report(replace(run, matrices=()))).words


def test_hostile_names_stay_text_on_the_page() -> None:
    names = (*HOSTILE, *PAYLOADS[:3])
    matrix = made_matrix(names, bare=(names[0],), error=PAYLOADS[0], model=f"loop/{PAYLOADS[1]}")
    page = page_of(matrix)
    assert not {"script", "img", "iframe", "svg"} & set(page.tags)
    assert harmless(page.words) == page.words
