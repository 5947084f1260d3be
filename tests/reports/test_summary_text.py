"""The summary at the end of a run: titles, tables, notes, verdicts."""

import re
from dataclasses import replace

from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.trials.plan import SkillInfo
from support.made import (
    GATE,
    MODELS,
    lines,
    made_run,
    made_summary,
    many_rows,
    ten_cases,
)
from support.pages import data_of
from support.words import HELPS, HURTS, TOO_FEW


def verdicts_in(shown: list[str]) -> list[str]:
    return [line for line in shown if re.match(r"\S+ on \S+: ", line)]


def test_titles_and_notes_fit_the_terminal() -> None:
    skill = SkillInfo("s" * 64, "skills/s", "0" * 64, 12345)
    rows = [made_summary("x" * 60, skill.name, cases=100, not_run=100)]
    shown = summary_lines([skill], verdicts_of(rows), TerminalLook(80))
    assert max(map(len, shown)) <= 80


def test_each_skill_has_a_block_with_its_models() -> None:
    rows = [
        made_summary("haiku"),
        made_summary("opus"),
        made_summary("haiku", "door", cases=1, runs=1),
    ]
    shown = lines(*rows)
    titles = [line for line in shown if "tokens ·" in line]
    assert titles == [
        "gate · about 1,234 tokens · 12 cases × 3 runs",
        "door · about 99 tokens · 1 case × 1 run",
    ]
    first = [line.split()[0] for line in shown if line and line not in titles]
    rule = "─" * len(shown[3])
    assert first[:7] == ["model", rule, "haiku", "opus", "model", first[5], "haiku"]
    assert [line.split(":")[0] for line in shown[-3:]] == [
        "gate on haiku",
        "gate on opus",
        "door on haiku",
    ]


def test_notes_come_between_tables_and_verdicts() -> None:
    note = "Two calls were made again \x1b[2J" + ", and again" * 10
    rows = [made_summary("haiku", "gate"), made_summary("haiku", "door")]
    shown = lines(*rows, width=80, notes=[note])
    start = next(n for n, line in enumerate(shown) if line.startswith("Two calls"))
    assert shown[start - 1] == ""
    assert shown[start].startswith("Two calls were made again \\x1b[2J, and again")
    assert shown[start + 2] == ""
    assert shown[-2].startswith("gate on haiku: ")
    assert max(map(len, shown)) <= 80


def test_the_verdict_stands_below_the_table() -> None:
    (verdict,) = verdicts_of([made_summary(not_run=1)])
    assert f"haiku: {verdict.word}: {verdict.sentence}." in lines(
        made_summary(not_run=1)
    )


def test_a_note_under_the_table_is_harmless() -> None:
    assert "\x1b" not in "\n".join(lines(made_summary("ev\x1b[31mil", not_run=1)))


def test_colours_come_only_from_the_function_given() -> None:
    row = made_summary("ev\x1b[31mil", errored=2)
    assert "\x1b" not in "\n".join(lines(row))
    painted: list[tuple[str, dict[str, bool]]] = []

    def paint(text: str, **style: bool) -> str:
        painted.append((text, {name: on for name, on in style.items() if on}))
        return f"\x1b[1m{text}\x1b[0m"

    shown = summary_lines([GATE], verdicts_of([row]), TerminalLook(120, paint=paint))
    assert ("gate", {"bold": True}) in painted
    assert "+41" not in [text for text, _ in painted]  # of a run that is incomplete
    assert ("2", {"red": True}) in painted
    assert re.sub(r"\x1b\[[01]m", "", "\n".join(shown)) == "\n".join(lines(row))


def test_twelve_rows_are_tables_and_thirteen_a_matrix() -> None:
    for number, heads in ((12, 3), (13, 0)):
        shown = lines(*many_rows()[:number])
        assert sum(line.startswith("model ") for line in shown) == heads
        assert ("-v shows the table of each skill." in shown) is (heads == 0)
        assert bool(verdicts_in(shown)) is (heads > 0)


def test_v_adds_tables_and_verdicts_to_the_matrix() -> None:
    shown = lines(*many_rows(), verbosity=1, notes=["A note."])
    order = [
        next(n for n, line in enumerate(shown) if line.startswith(start))
        for start in (
            "skill ",
            "skill-0 ·",
            "skill-2 ·",
            "A note.",
            "skill-0 on haiku",
            f"{HELPS.capitalize()} 14",
        )
    ]
    assert order == sorted(order)
    assert len(verdicts_in(shown)) == 14
    assert not any("-v shows" in line for line in shown)


def test_many_that_hurt_are_not_all_named() -> None:
    rows = [ten_cases(model, f"s{n}", 9, 0) for n in range(3) for model in MODELS]
    text = " ".join(lines(*rows, width=200))
    assert f"{HURTS}: s0 on haiku, " in text
    assert "and 10 more" in text


def test_the_sweet_spot_names_its_skill() -> None:
    costs = [{"baseline_cost": c, "skill_cost": c} for c in (0.001, 0.01)]
    rows = [
        ten_cases(model, skill, 0, 9, **cost)
        for skill in ("gate", "door")
        for model, cost in zip(("haiku", "opus"), costs, strict=True)
    ]
    spots = [line for line in lines(*rows) if line.startswith("Sweet spot")]
    assert [spot.split(":")[0] for spot in spots] == [
        "Sweet spot of gate",
        "Sweet spot of door",
    ]
    assert lines(*rows[:2])[-1].startswith(f"Sweet spot: {TOO_FEW}: haiku")


def marked(text: str, **style: bool) -> str:
    return f"<{' '.join(style)}>{text}<>"


def fallen(against: str = "main") -> RunResults:
    """A skill without any effect that was perfect at the ref."""
    made = made_run(
        cases=12,
        arms=("baseline", "previous", "skill"),
        passes=lambda _number, _model, arm, _run: arm == "previous",
    )
    return replace(made, skills=(replace(made.skills[0], against=against),))


def test_worse_than_at_the_ref_is_as_loud_as_a_verdict() -> None:
    run = fallen()
    for width in (60, 80, 120):
        look = TerminalLook(width, paint=marked)
        text = summary_lines(run.skills, run.verdicts, look)
        (row,) = [line for line in text if line.startswith("haiku ")]
        assert "<red bold>-100<>" in row
        assert "  since main: <red bold>worse<>, -100 " in "\n".join(text)
        header = text[2]
        assert " since " in header
    table = markdown_summary(run)
    assert "| model | without | main | with | lift | since main | " in table
    assert "| 0% | 100% | 0% | 0 (" in table
    assert f"| **{run.verdicts[0].worse_since}**, " in table
    page = data_of(run_page(run))
    assert page["rows"][0]["worse"] == run.verdicts[0].worse_since
    assert ["since", "since main"] in page["columns"]


def test_the_name_of_a_ref_is_harmless_everywhere() -> None:
    run = fallen("<q>|\x1b[31m")
    assert "&lt;q&gt;\\|" in markdown_summary(run)
