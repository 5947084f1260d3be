"""The matrix of neighbours in the terminal, in Markdown and on the page."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest
from _pytest._io import TerminalWriter
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.texts import harmless
from pytest_upskill.cli.output import _coloured
from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.study_sections import curve
from pytest_upskill.reports.markdown import LIMIT, markdown_summary
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.reports.terminal.study_lines import (
    curve_lines,
    neighbour_lines,
    part_lines,
    study_lines,
)
from pytest_upskill.results.arm_comparison import points_words
from pytest_upskill.results.effects import loss_words
from pytest_upskill.results.neighbours import Matrix, PairVerdict, conclusion, matrix_sentences
from pytest_upskill.results.part_effects import (
    Parts,
    ShorterVersion,
    part_conclusions,
    part_sentence,
)
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_bytes
from pytest_upskill.stats import Lift
from pytest_upskill.trials.plan import SkillInfo
from support.made import made_run
from support.made_studies import LONG, TINY, made_matrix, made_parts, part
from support.pages import PAYLOADS

HURTS, HELPS, UNKNOWN, INCOMPLETE = get_args(PairVerdict)
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
    lines = neighbour_lines(made_matrix(skills, bare=()), TerminalLook(width))
    assert max(map(text_width, lines)) <= width
    assert harmless("\n".join(lines)) == "\n".join(lines)


def test_the_table_at_80_columns() -> None:
    title, _, *table, last = neighbour_lines(made_matrix(), TerminalLook(80))
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
    lines = neighbour_lines(made_matrix(SIX, [TINY], bare=()), TerminalLook(80))
    text = "\n".join(lines)
    assert text.count("skill    ") == text.count("lift alone  ") > 1
    assert text.count(f"0 {UNKNOWN}") == 36


def test_of_many_skills_only_what_is_shown_is_told() -> None:
    names = [f"skill-{number}" for number in range(12)]
    lines = neighbour_lines(made_matrix(names, bare=()), TerminalLook(80))
    assert "Only pairs with an effect are listed below; the HTML page has all." in lines
    assert any(line.startswith("46 more pairs: ") for line in lines)
    whole = neighbour_lines(made_matrix(names, bare=()), TerminalLook(80, verbosity=1))
    assert len(whole) > len(lines) + 46
    assert any(line.startswith("skill-1 with skill-2: ") for line in whole)


def test_ascii_is_enough() -> None:
    "\n".join(neighbour_lines(made_matrix(SIX[:4]), TerminalLook(80, ASCII_MARKS))).encode("ascii")


def test_the_head_of_the_page_leads_to_the_matrix_and_the_cases() -> None:
    page = html_report(made_run(matrices=(made_matrix(),)), [])
    for name in ("Overview", "Neighbours", "Cases"):
        assert f'<a href="#{name.lower()}">{name}</a>' in page
        assert f'id="{name.lower()}"' in page
    assert 'href="#neighbours"' not in html_report(made_run(), [])


def test_a_run_has_the_lines_of_all_its_matrices() -> None:
    run = made_run(matrices=(made_matrix(), made_matrix(model="opus")))
    assert sum(line.startswith("Neighbours") for line in study_lines(run, TerminalLook(80))) == 2
    assert study_lines(made_run(), TerminalLook(80)) == []


def test_markdown_has_a_table_and_sentences() -> None:
    run = made_run(cases=0, matrices=(made_matrix(),))
    text = markdown_summary(run)
    assert "### Neighbours on loop/haiku" in text
    for sentence in matrix_sentences(made_matrix()):
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
    matrix = made_matrix(names, bare=(names[0],), error=PAYLOADS[0], model=PAYLOADS[1])
    page = page_of(matrix)
    assert not {"script", "img", "iframe", "svg"} & set(page.tags)
    assert harmless(page.words) == page.words


NONE = Lift(0.0, -0.04, 0.06, 1.0)
BAD_NAMES = [
    "\x1b[2J::error::gone",
    "<script>alert(1)</script>",
    "| a | [x](http://evil.example) @octocat",
    "",
    "x" * 10_000,
    "漢字" * 100,
    "##[error]y",
]


def hostile() -> Parts:
    parts = [part(name, 9, NONE, could_go=True) for name in BAD_NAMES]
    long = [part(f"{'x' * 2000} (line {number})", 9, NONE) for number in (4, 9)]
    return replace(
        made_parts(*parts, *long), not_measured={BAD_NAMES[0]: "why"}, error=BAD_NAMES[1]
    )


def results(*found: Parts) -> RunResults:
    return RunResults(
        started=datetime(2026, 11, 16, tzinfo=UTC),
        seconds=1.0,
        skills=(SkillInfo("pages", "skills/pages", "d", 100),),
        model_ids={"m": "m"},
        tests=(),
        records=(),
        parts=found,
    )


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_hostile_headings_fit_the_terminal(width: int, verbosity: int) -> None:
    lines = part_lines(hostile(), TerminalLook(width, ASCII_MARKS, verbosity=verbosity))
    assert max(map(text_width, lines)) <= width
    assert "\x1b" not in "".join(lines)
    if verbosity >= 0:
        rule = next(number for number, line in enumerate(lines) if set(line) == {"-"})
        names = [line.split("  ")[0] for line in lines[rule + 1 : rule + 1 + len(hostile().parts)]]
        assert len(set(names)) == len(names)


def test_hostile_headings_are_harmless_in_markdown_and_in_the_page() -> None:
    text = markdown_summary(results(hostile()))
    assert "<script>" not in text
    assert "@octocat" not in text
    table = [line for line in text.split("\n") if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {8}
    page = html_report(results(hostile()))
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_all_reports_say_the_same() -> None:
    missed = part("Alignment", 31, Lift(-0.4, -0.62, -0.18, 0.0), "shown")
    found = made_parts(part("Troubleshooting", 212, NONE, could_go=True), missed)
    shown = "\n".join(part_lines(found, TerminalLook(120)))
    assert "Troubleshooting     6     212  212 (210 to 214)  0 (-4 to +6)" in shown
    for text in (shown, markdown_summary(results(found)), html_report(results(found))):
        plain = re.sub(r"<[^>]+>|[\\*]", "", text)
        assert part_conclusions(found)[-1] in " ".join(plain.split())
        assert "-40 (-62 to -18)" in plain
        assert "pages on m: about 100 tokens, lift +60 (+40 to +80), 20 cases × 2 runs" in plain


@pytest.mark.parametrize(("width", "there"), [(80, False), (120, True)])
def test_a_column_without_room_is_not_explained(width: int, there: bool) -> None:
    long = part("Troubleshooting of everything", 212, Lift(0.0, -0.3, 0.3, 1.0), needed=60)
    lines = part_lines(made_parts(long), TerminalLook(width))
    assert any("  saved  " in line for line in lines) == there
    assert ("Saved: " in " ".join(lines)) == there


@pytest.mark.parametrize("paint", [TerminalWriter(io.StringIO()).markup, _coloured])
def test_every_word_can_be_painted(paint: Callable[..., str]) -> None:
    unknown = part("Troubleshooting", 212, Lift(0.0, -0.3, 0.3, 1.0), needed=60)
    missed = part("Alignment", 31, Lift(-0.4, -0.62, -0.18, 0.0), "shown")
    found = made_parts(unknown, missed, part("Pages", 12, NONE, could_go=True))
    shown = "\n".join(part_lines(found, TerminalLook(120, paint=paint)))
    assert {"not known", "missed", "could go"} == {
        word for word in ("not known", "missed", "could go") if word in shown
    }


def test_many_parts_are_told_in_the_table_only() -> None:
    many = [part(f"part {number}", 9, Lift(0.0, -0.3, 0.3, 1.0), needed=60) for number in range(30)]
    missed = part("Alignment", 31, Lift(-0.4, -0.62, -0.18, 0.0), "shown")
    lines = part_lines(made_parts(*many, missed), TerminalLook(80))
    assert f"{part_sentence(missed, 0.1)}." in lines
    assert "30 more parts in the table." in lines
    assert len([line for line in lines if line.startswith("part 7")]) == 1


def test_a_file_of_results_has_the_parts(tmp_path: Path) -> None:
    before = results(hostile())
    file = tmp_path / "out.json"
    file.write_bytes(results_bytes(before))
    assert read_run(file).parts == before.parts


def lift(value: float, reach: float = 0.2) -> Lift:
    return Lift(value, max(-1.0, value - reach), min(1.0, value + reach), 0.01)


def parts_with(*versions: ShorterVersion, tokens: int = 800, whole: Lift | None = None) -> Parts:
    return Parts("wick", "haiku", tokens, whole or lift(0.8), (), versions)


def test_the_curve_goes_from_the_baseline_to_the_whole_skill() -> None:
    made = parts_with(
        ShorterVersion(400, lift(0.75), lift(-0.05), folder="skills/wick.short"),
        ShorterVersion(200, lift(-0.1), lift(-0.9)),
    )
    page = curve(made)
    assert page
    assert "<title>Lift of wick on haiku against its tokens</title>" in page
    assert (
        f"<desc>0 tokens: the baseline; 200 tokens, a version: {points_words(lift(-0.1))}; "
        f"400 tokens, the chosen version: {points_words(lift(0.75))}; "
        f"800 tokens, the whole skill: {points_words(lift(0.8))}</desc>"
    ) in page
    assert len(re.findall('class="dot baseline"', page)) == 1
    assert len(re.findall('class="dot skill"', page)) == 3
    assert len(re.findall('class="spot"', page)) == 1
    assert len(re.findall('class="joint"', page)) == 3


def test_nothing_is_drawn_without_a_measured_version() -> None:
    assert curve(parts_with()) is None
    assert curve(parts_with(ShorterVersion(400, None, None))) is None


SHARES = st.floats(-1, 1, allow_nan=False)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), SHARES, SHARES, SHARES), min_size=1, max_size=8),
    st.integers(1, 10**6),
)
def test_all_is_drawn_inside_the_picture(
    written: list[tuple[int, float, float, float]], tokens: int
) -> None:
    made = [
        ShorterVersion(size, Lift(sorted(found)[1], min(found), max(found), 0.5), None)
        for size, *found in written
    ]
    page = curve(parts_with(*made, tokens=tokens))
    assert page
    places = re.findall(r'(?:c?x[12]?)="(-?[\d.]+)%"', page)
    assert all(0 <= float(place) <= 100 for place in places)
    heights = re.findall(r'\b(?:c?y[12]?)="(-?[\d.]+)"', page)
    (height,) = re.findall(r'width="100%" height="([\d.]+)"', page)
    assert all(0 <= float(place) <= float(height) for place in heights)


def studied(*found: Parts) -> RunResults:
    return replace(made_run(cases=2), parts=found)


def test_every_report_has_the_table() -> None:
    kept, lost = lift(-0.02, 0.05), Lift(-0.9, -0.95, -0.8, 0.001)
    made = parts_with(
        ShorterVersion(400, lift(0.75), kept, folder="skills/wick.short", cases=40),
        ShorterVersion(200, lift(-0.1), lost, cases=40),
        ShorterVersion(100, None, None, cases=40),
    )
    assert curve_lines(made, TerminalLook(80)) == [
        "haiku, 40 held-out cases",
        "             tokens  lift               against the whole skill",
        "──────────────────────────────────────────────────────────────────",
        "whole skill     800  +80 (+60 to +100)  –",
        f"saved           400  +75 (+55 to +95)   {loss_words(kept)}",
        f"shorter         200  -10 (-30 to +10)   {loss_words(lost)}",
        "shorter         100  –                  not known: not measured",
    ]
    text = markdown_summary(studied(made))
    assert "### wick, shorter" in text
    assert "|  | tokens | lift | against the whole skill |\n| --- | --- | --- | --- |\n" in text
    assert f"| saved | 400 | +75 (+55 to +95) | {loss_words(kept)} |" in text
    page = html_report(studied(made))
    assert f'<span class="word hurts">{loss_words(lost)}</span>' in page
    assert 'class="plot curve"' in page


def test_nothing_is_said_of_versions_without_any() -> None:
    assert curve_lines(parts_with(), TerminalLook(80)) == []
    assert "shorter" not in markdown_summary(studied(parts_with()))
    assert "plot curve" not in html_report(studied(parts_with()))


def test_names_are_no_markup() -> None:
    bad = "<img src=x onerror=alert(1)>|\n# x"
    made = replace(parts_with(ShorterVersion(9, lift(0.5), lift(0))), skill=bad, model=bad)
    page, text = html_report(studied(made)), markdown_summary(studied(made))
    assert "<img" not in page + text
    assert "\n# x" not in text
