"""Studies in the terminal, in Markdown and on the page."""

import io
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from _pytest._io import TerminalWriter

from pytest_upskill._util.texts import harmless
from pytest_upskill.cli.output import _coloured
from pytest_upskill.reports.markdown import LIMIT, markdown_summary
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.study_tables import arm_table, contrast_table
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.reports.terminal.study_lines import study_lines
from pytest_upskill.results.contrasts import Study, StudyArm
from support.made import made_run
from support.made_studies import (
    EVERY_WORD,
    HURTS,
    LONG,
    MISSING,
    UNCHANGED,
    made_contrast,
    made_study,
)
from support.pages import PAYLOADS, page_words

BAD_NAMES = [
    "\x1b[2J::error::gone",
    "<script>alert(1)</script>",
    "</td><script>window.hit=1</script>",
    "| a | [x](http://evil.example) @octocat",
    "|`a`|\n# b",
    "x" * 10_000,
    "漢字" * 100,
    "##[error]y",
    *PAYLOADS,
]
LOST = (-40, -62, -18)


def hostile() -> Study:
    names = [*BAD_NAMES, *(f"{'x' * 2000} (line {number})" for number in (4, 9))]
    made = made_study([made_contrast(name, LOST) for name in names])
    arms = tuple(
        replace(arm, opened={BAD_NAMES[2]: 3, BAD_NAMES[0]: 2}) for arm in made.arms
    )
    bad = BAD_NAMES[1]
    return replace(
        made,
        arms=arms,
        title=bad,
        legend=bad,
        model=bad,
        error=bad,
        conclusions=tuple(BAD_NAMES),
    )


def many(number: int = 30) -> Study:
    others = [
        replace(UNCHANGED, name=f"{LONG}-{n} with pdf") for n in range(number - 1)
    ]
    return made_study([*others, HURTS])


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbosity", [0, 1])
@pytest.mark.parametrize("study", [made_study(), hostile(), many()])
def test_no_line_is_wider_than_the_terminal(
    width: int, verbosity: int, study: Study
) -> None:
    lines = study_lines([study], TerminalLook(width, ASCII_MARKS, verbosity=verbosity))
    assert max(map(text_width, lines)) <= width
    assert harmless("\n".join(lines)) == "\n".join(lines)


def test_the_tables_at_80_columns() -> None:
    lines = study_lines([made_study([HURTS, UNCHANGED, MISSING])], TerminalLook(80))
    assert lines == [
        "",
        "What skills do to each other · loop/haiku · 10 cases × 4 runs · 480 trials, 3",
        "  without an answer, $1.23",
        "",
        "contrast              change           tokens  verdict",
        "──────────────────────────────────────────────────────────────",
        "pdf with docs-writer  -20 (-35 to -5)     -31  hurts",
        "csv with pdf          +3 (-12 to +18)     -31  no change shown",
        "csv with all others   –                     –  incomplete",
        "",
        "By how many points the lift changes; the intervals hold for all 3 of them",
        "  together.",
        "",
        "arm                        score  tokens  opened",
        "────────────────────────────────────────────────────────────────────",
        "pdf with docs-writer: on   80%     1,131  pdf 9, docs-writer 6 of 10",
        "pdf with docs-writer: off  80%     1,131  pdf 9, docs-writer 6 of 10",
        "",
        "pdf loses 20 points when docs-writer is installed.",
        "Of 6 pairs: 1 hurts.",
    ]


def test_names_that_differ_look_different() -> None:
    lines = study_lines([hostile()], TerminalLook(80, ASCII_MARKS, verbosity=1))
    rule = next(number for number, line in enumerate(lines) if set(line) == {"-"})
    rows = lines[rule + 1 : rule + 1 + len(hostile().contrasts)]
    assert len({line.split("  ")[0] for line in rows}) == len(rows)


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    contrasts = [replace(contrast, tokens=None) for contrast in EVERY_WORD]
    assert contrast_table(made_study(contrasts)).headers == (
        "contrast",
        "change",
        "verdict",
    )
    plain = made_study(arms=(StudyArm("a", 0.5), StudyArm("b")))
    assert arm_table(plain, every=True).rows == (("a", "50%"), ("b", "–"))
    assert arm_table(made_study(arms=(StudyArm("a"),)), every=True).rows == ()
    assert contrast_table(made_study([])).rows == ()


def test_tokens_have_an_interval_where_there_is_room() -> None:
    study = made_study([replace(HURTS, tokens_span=(-35.6, -26.4)), UNCHANGED])
    narrow, wide = (
        "\n".join(study_lines([study], TerminalLook(width))) for width in (80, 120)
    )
    assert " -31  hurts" in narrow
    assert "-31 (-36 to -26)  hurts" in wide
    assert "| -31 (-36 to -26) |" in markdown_summary(
        made_run(cases=0, studies=(study,))
    )
    assert [row[2] for row in contrast_table(study, brief=True).rows] == ["-31", "-31"]


def test_of_many_contrasts_those_without_a_change_are_folded() -> None:
    table = contrast_table(many(), 12)
    assert [row[0] for row in table.rows] == [HURTS.name]
    assert table.folded == "29 more: 29 no change shown"
    assert len(contrast_table(many()).rows) == 30
    shown = "\n".join(study_lines([many()], TerminalLook(80)))
    assert "29 more: 29 no change shown (-v shows them)." in shown
    assert "29 more" not in "\n".join(
        study_lines([many()], TerminalLook(80, verbosity=1))
    )


def test_all_reports_say_the_same() -> None:
    study = made_study()
    run = made_run(cases=0, studies=(study,))
    shown = "\n".join(study_lines([study], TerminalLook(120)))
    for text in (shown, markdown_summary(run), page_words(run_page(run))):
        plain = " ".join(re.sub(r"<[^>]+>|[\\*]", " ", text).split())
        for contrast in study.contrasts:
            assert contrast.name in plain
            assert contrast.word in plain
        for words in ("-20 (-35 to -5)", study.title, *study.conclusions):
            assert words in plain


@pytest.mark.parametrize("paint", [TerminalWriter(io.StringIO()).markup, _coloured])
def test_every_word_can_be_painted(paint: Callable[..., str]) -> None:
    shown = "\n".join(study_lines([made_study()], TerminalLook(120, paint=paint)))
    assert all(contrast.word in shown for contrast in EVERY_WORD)


def test_a_run_has_the_lines_of_all_its_studies() -> None:
    both = (made_study(), made_study(model="opus"))
    lines = study_lines(both, TerminalLook(80))
    assert sum(line.startswith("What skills do") for line in lines) == 2
    assert study_lines((), TerminalLook(80)) == []


def test_markdown_of_a_study_alone_is_no_verdict_on_tests() -> None:
    study = made_study([HURTS, UNCHANGED])
    text = markdown_summary(made_run(cases=0, studies=(study,)))
    assert "| pdf with docs-writer | -20 (-35 to -5) | -31 | **hurts** |" in text
    assert "| csv with pdf | +3 (-12 to +18) | -31 | no change shown |" in text
    assert "Passed" not in text
    assert "Nothing was tested" not in text
    whole = markdown_summary(made_run(studies=(study,), passes=lambda *_: True))
    assert whole.index("**Passed:**") < whole.index("### What skills do to each other")


def test_markdown_of_many_and_hostile_names_stays_a_comment() -> None:
    names = [f"{LONG}-{number}" for number in range(1000)]
    study = made_study([made_contrast(name, LOST) for name in names])
    assert len(markdown_summary(made_run(cases=0, studies=(study,) * 9))) < LIMIT
    text = markdown_summary(made_run(cases=0, studies=(hostile(),)))
    assert "<script>" not in text
    assert "@octocat" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {5}
