"""Other shapes of the summary: a matrix for many rows, a line per row with -q."""

import re
from typing import Any

import pytest

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Look, text_width
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.results.summary import Summary
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.trials.plan import SkillInfo
from support.made import LONG_MODEL, PAID, lines, made_summary

MODELS = ["haiku", "sonnet", "opus", "openai:gpt-5.4-mini", LONG_MODEL]


def row(model: str, skill: str, before: int, after: int, **more: Any) -> Summary:
    """Of ten cases so many pass without the skill, and with it."""
    rates = [(float(n < before), float(n < after)) for n in range(10)]
    numbers = {"baseline_tokens": 812.0, "skill_tokens": 640.0, "cases": 12, **more}
    return made_summary(model, skill, rates=rates, tokens=(9.0, 12.0), **numbers)


def many(**more: Any) -> list[Summary]:
    """Fifteen rows less one: three skills on five models."""
    helped = [row(model, f"skill-{n}", 0, 9, **more) for n in range(3) for model in MODELS]
    return helped[:-1]


def without_baseline(model: str, skill: str) -> Summary:
    return made_summary(model, skill, rates=[(None, 1.0)], skill_rate=0.83, skill_tokens=23456.0)


def verdicts_in(shown: list[str]) -> list[str]:
    return [line for line in shown if re.match(r"\S+ on \S+: ", line)]


def test_twelve_rows_are_tables_and_thirteen_a_matrix() -> None:
    for number, heads in ((12, 3), (13, 0)):
        shown = lines(*many()[:number])
        assert sum(line.startswith("model ") for line in shown) == heads
        assert ("-v shows the table of each skill." in shown) is (heads == 0)
        assert bool(verdicts_in(shown)) is (heads > 0)


def test_a_matrix_has_a_row_for_each_skill_and_a_column_for_each_model() -> None:
    rows = many()
    rows[1] = row("sonnet", "skill-0", 4, 8, errored=1)
    rows[2] = row("opus", "skill-0", 9, 0)
    header, rule, *body = lines(*rows)[:5]
    assert header.split() == ["skill", *MODELS]
    assert set(rule) == {"─"}
    assert re.split(" {2,}", body[0]) == [
        *("skill-0", "0→90 +90", "40→80 +40!", "90→0 -90", "0→90 +90", "0→90 +90"),
    ]
    assert body[2].split() == ["skill-2", *["0→90", "+90"] * 4, "-"]
    assert lines(*rows)[-4:] == [
        "Helps 12, incomplete 1, hurts 1.",
        "hurts: skill-0 on opus",
        "incomplete: skill-0 on sonnet",
        "-v shows the table of each skill.",
    ]
    assert "! is incomplete" in "\n".join(lines(*rows))
    assert "! is incomplete" not in "\n".join(lines(*many()))


def test_a_matrix_without_a_baseline_has_one_rate() -> None:
    shown = lines(*(without_baseline(model, f"s{n}") for n in range(3) for model in MODELS))
    assert shown[2].split() == ["s0", *["83"] * 5]
    assert shown[-1] == "-v shows the table of each skill."


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_matrix_is_broken_where_the_models_do_not_fit(width: int) -> None:
    wide = [*many(), row("日本語のモデル" * 5, "ein-langer-name-" * 4, 1, 2)]
    for verbosity in (0, 1):
        shown = lines(*wide, width=width, verbosity=verbosity)
        assert max(map(text_width, shown)) <= width
    heads = [line for line in lines(*many(), width=width) if line.startswith("skill ")]
    assert len(heads) == {60: 2, 80: 2, 100: 1, 120: 1}[width]
    assert [name[:8] for line in heads for name in line.split()[1:]] == [m[:8] for m in MODELS]


def test_v_has_tables_and_verdicts_below_the_matrix() -> None:
    shown = lines(*many(), verbosity=1, notes=["A note."])
    order = [
        next(n for n, line in enumerate(shown) if line.startswith(start))
        for start in ("skill ", "skill-0 ·", "skill-2 ·", "A note.", "skill-0 on haiku", "Helps 14")
    ]
    assert order == sorted(order)
    assert len(verdicts_in(shown)) == 14
    assert not any("-v shows" in line for line in shown)


def test_many_that_hurt_are_not_all_named() -> None:
    rows = [row(model, f"s{n}", 9, 0) for n in range(3) for model in MODELS]
    text = " ".join(lines(*rows, width=200))
    assert "hurts: s0 on haiku, " in text
    assert "and 10 more" in text


def test_colour_and_escapes_of_a_matrix() -> None:
    painted = []

    def paint(text: str, **style: bool) -> str:
        painted.append((text, style))
        return text

    rows = [row("ev\x1b[31mil", "skill-0", 0, 9, errored=2), *many()[1:]]
    skills = [SkillInfo(f"skill-{n}", "p", "0" * 64, 9) for n in range(3)]
    shown = summary_lines(skills, verdicts_of(rows), Look(99, ASCII_MARKS, paint))
    assert ("+90", {"green": True, "bold": True}) in painted
    assert ("!", {"red": True}) in painted
    assert "\n".join(shown).isascii()
    assert "\x1b" not in "\n".join(shown)
    assert "0->90 +90" in "\n".join(shown)


@pytest.mark.parametrize(
    ("before", "after", "style"),
    [
        (0, 9, {"green": True, "bold": True}),
        (9, 0, {"red": True, "bold": True}),
        (4, 6, None),  # no effect shown
        (6, 4, None),
        (9, 10, None),  # not needed
    ],
)
@pytest.mark.parametrize(("number", "verbosity"), [(1, 0), (1, -1), (13, 0)])
def test_a_lift_is_painted_only_where_the_verdict_says_that_it_is_shown(
    before: int, after: int, style: dict[str, bool] | None, number: int, verbosity: int
) -> None:
    painted = {}

    def paint(text: str, **how: bool) -> str:
        painted[text.split(" ")[0]] = how
        return text

    rows = [row("haiku", f"s{n}", before, after) for n in range(number)]
    skills = [SkillInfo(one.skill, "p", "0" * 64, 9) for one in rows]
    summary_lines(skills, verdicts_of(rows), Look(120, ASCII_MARKS, paint, verbosity))
    assert painted.get(f"{10 * (after - before):+d}") == style


def test_q_is_one_line_for_each_skill_and_model() -> None:
    rows = [row("local", "wick", 0, 10), row("haiku", "door", 9, 10, errored=2, not_run=1)]
    assert lines(*rows, width=100, verbosity=-1, notes=["Trouble."]) == [
        "wick  local   0% → 100%  +100 (+61 to +100)  812 → 640 tokens  helps",
        "door  haiku  90% → 100%  +10 (-24 to +40)    812 → 640 tokens  "
        "incomplete (2 errors, 1 not run)",
        "Trouble.",
    ]
    ascii_lines = lines(*rows, width=100, verbosity=-1, marks=ASCII_MARKS)
    assert "0% -> 100%" in ascii_lines[0]


def test_q_says_how_many_cases_were_asked_if_not_all() -> None:
    rows = [row("local", "wick", 0, 10), row("haiku", "door", 9, 10, errored=2)]
    subsets = {("wick", "local"): "10 of 12 cases", ("door", "haiku"): "10 of 11 cases"}
    for width in (80, 120):
        shown = lines(*rows, width=width, verbosity=-1, subsets=subsets)
        assert shown[0].endswith("  helps (10 of 12 cases)")
        assert shown[1].endswith("  incomplete (2 errors, 10 of 11 cases)")
        assert max(map(text_width, shown)) <= width
    # Where there is no room for it, the numbers stay.
    assert lines(*rows, width=60, verbosity=-1, subsets=subsets)[0].endswith("  helps")
    alone = without_baseline("haiku", "gate")
    assert lines(alone, verbosity=-1, subsets={("gate", "haiku"): "1 of 2 cases"}) == [
        "gate  haiku  83%  -  23,456 tokens  (1 of 2 cases)"
    ]


def test_q_tells_models_apart_and_shows_no_more_of_them_in_less_room() -> None:
    names = [f"scripted:a-long-name-of-a-model-{kind}.json" for kind in ("good", "poor", "odd")]
    before = 0
    for width in range(50, 160):
        shown = lines(*(row(name, "wick", 0, 10) for name in names), width=width, verbosity=-1)
        models = [line.split()[1] for line in shown]
        assert len(set(models)) == 3
        assert max(map(text_width, shown)) <= width
        assert len(models[0]) >= before
        before = len(models[0])


def test_q_without_a_baseline_has_what_is_known() -> None:
    shown = lines(without_baseline("haiku", "gate"), verbosity=-1)
    assert shown == ["gate  haiku  83%  -  23,456 tokens"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_q_is_never_broader_than_the_terminal(width: int) -> None:
    big = {"baseline_tokens": 123_456.0, "skill_tokens": 234_567.0}
    rows = [row(LONG_MODEL, "conventional-commits-" * 2, 5, 5, errored=12, **big)]
    rows += [row("haiku", "日本語" * 9, 5, 5, **PAID), row("x" * 60, "door", 0, 10)]
    shown = lines(*rows, width=width, verbosity=-1)
    assert len(shown) == 3
    assert max(map(text_width, shown)) <= width
    assert all(re.search(r"50% ?→ ?50%|0% ?→ ?100%", line) for line in shown)


def test_the_sweet_spot_tells_of_which_skill_it_is() -> None:
    costs = [{"baseline_cost": c, "skill_cost": c} for c in (0.001, 0.01)]
    rows = [
        row(model, skill, 0, 9, **cost)
        for skill in ("gate", "door")
        for model, cost in zip(("haiku", "opus"), costs, strict=True)
    ]
    spots = [line for line in lines(*rows) if line.startswith("Sweet spot")]
    assert [spot.split(":")[0] for spot in spots] == ["Sweet spot of gate", "Sweet spot of door"]
    assert lines(*rows[:2])[-1].startswith("Sweet spot: haiku")
