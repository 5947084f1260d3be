"""The parts of a skill in the terminal, in Markdown and in the page."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from _pytest._io import TerminalWriter

from pytest_upskill.cli.output import _coloured
from pytest_upskill.reports.html.report_page import html_report
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Look, text_width
from pytest_upskill.reports.terminal.part_lines import part_lines
from pytest_upskill.results.from_json import read_run
from pytest_upskill.results.parts import Parts, conclusions, part_sentence
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.to_json import results_bytes
from pytest_upskill.stats import Lift
from pytest_upskill.trials.plan import SkillInfo
from support.made_studies import made_parts, part

NONE = Lift(0.0, -0.04, 0.06, 1.0)
HOSTILE = [
    "\x1b[2J::error::gone",
    "<script>alert(1)</script>",
    "| a | [x](http://evil.example) @octocat",
    "",
    "x" * 10_000,
    "漢字" * 100,
    "##[error]y",
]


def hostile() -> Parts:
    parts = [part(name, 9, NONE, could_go=True) for name in HOSTILE]
    long = [part(f"{'x' * 2000} (line {number})", 9, NONE) for number in (4, 9)]
    return replace(made_parts(*parts, *long), not_measured={HOSTILE[0]: "why"}, error=HOSTILE[1])


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
    lines = part_lines(hostile(), Look(width, ASCII_MARKS, verbosity=verbosity))
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
    shown = "\n".join(part_lines(found, Look(120)))
    assert "Troubleshooting     6     212  212 (210 to 214)  0 (-4 to +6)" in shown
    for text in (shown, markdown_summary(results(found)), html_report(results(found))):
        plain = re.sub(r"<[^>]+>|[\\*]", "", text)
        assert conclusions(found)[-1] in " ".join(plain.split())
        assert "-40 (-62 to -18)" in plain
        assert "pages on m: about 100 tokens, lift +60 (+40 to +80), 20 cases × 2 runs" in plain


@pytest.mark.parametrize(("width", "there"), [(80, False), (120, True)])
def test_a_column_without_room_is_not_explained(width: int, there: bool) -> None:
    long = part("Troubleshooting of everything", 212, Lift(0.0, -0.3, 0.3, 1.0), needed=60)
    lines = part_lines(made_parts(long), Look(width))
    assert any("  saved  " in line for line in lines) == there
    assert ("Saved: " in " ".join(lines)) == there


@pytest.mark.parametrize("paint", [TerminalWriter(io.StringIO()).markup, _coloured])
def test_every_word_can_be_painted(paint: Callable[..., str]) -> None:
    unknown = part("Troubleshooting", 212, Lift(0.0, -0.3, 0.3, 1.0), needed=60)
    missed = part("Alignment", 31, Lift(-0.4, -0.62, -0.18, 0.0), "shown")
    found = made_parts(unknown, missed, part("Pages", 12, NONE, could_go=True))
    shown = "\n".join(part_lines(found, Look(120, paint=paint)))
    assert {"not known", "missed", "could go"} == {
        word for word in ("not known", "missed", "could go") if word in shown
    }


def test_many_parts_are_told_in_the_table_only() -> None:
    many = [part(f"part {number}", 9, Lift(0.0, -0.3, 0.3, 1.0), needed=60) for number in range(30)]
    missed = part("Alignment", 31, Lift(-0.4, -0.62, -0.18, 0.0), "shown")
    lines = part_lines(made_parts(*many, missed), Look(80))
    assert f"{part_sentence(missed, 0.1)}." in lines
    assert "30 more parts in the table." in lines
    assert len([line for line in lines if line.startswith("part 7")]) == 1


def test_a_file_of_results_has_the_parts(tmp_path: Path) -> None:
    before = results(hostile())
    file = tmp_path / "out.json"
    file.write_bytes(results_bytes(before))
    assert read_run(file).parts == before.parts
