"""The summary of a run: a block for each skill, or one table of many."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_upskill.features.reference import ORACLE, REFERENCE
from pytest_upskill.reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Marks,
    TerminalLook,
    text_width,
)
from pytest_upskill.reports.terminal.summary_text import results_lines
from pytest_upskill.results.run import RunResults
from support.agent_runs import agent_run
from support.made import checked_run, made_run, made_triggers
from support.made_studies import made_routing, made_study

MODELS = ("haiku", "sonnet", "opus")


def passes(case: int, model: str, arm: str, run: int) -> bool:
    """Case 0 always fails, 8 to 11 always pass; the skill is of less use to opus."""
    if case == 0 or case >= 8:
        return case >= 8
    if case == 7 and model == "opus":
        return arm == "baseline"
    if case < 4 and model == "opus":
        return run == 1
    return arm == "skill" or (case == 6 and run == 2)


def of_skills(number: int) -> RunResults:
    skills = tuple(f"skill-{number:03d}" for number in range(number))
    run = made_run(skills=skills, models=MODELS, cases=12, passes=passes)
    worse = []
    for record in run.records:
        # One skill is of no use: its baseline passes everything.
        is_better = record.skill == "skill-001" and record.arm == "baseline"
        worse.append(replace(record, outcome="passed") if is_better else record)
    return replace(run, records=tuple(worse))


def shown(results: RunResults, width: int = 80, verbosity: int = 0) -> list[str]:
    return results_lines(results, TerminalLook(width, verbosity=verbosity))


THREE = made_run(models=MODELS, cases=12, runs=3, passes=passes)


def test_a_skill_on_three_models() -> None:
    assert shown(THREE) == [
        "gate · 12 cases × 3 runs · SKILL.md about 127 tokens",
        "",
        "model       pass rate  lift    interval  verdict  tokens  $ per 1,000",
        "─────────────────────────────────────────────────────────────────────",
        "haiku       36 → 92 %   +56  +24 to +87  helps    50→150  0.50 → 1.50",
        "sonnet      36 → 92 %   +56  +24 to +87  helps    50→150  0.50 → 1.50",
        "opus        53 → 67 %   +14  -20 to +48  unclear  50→150  0.50 → 1.50",
        "all models  42 → 83 %   +42  +16 to +67  helps",
        "",
        "only with    17  case-4, case-5 and 5 more",
        "only without  1  case-7 (1 of 3): read the two answers first",
        "both pass    12  case-8, case-9 and 2 more: they tell nothing",
        "both fail     3  case-0: not in SKILL.md, or a wrong check",
        "mixed         3  case-1 (1 of 3), case-2 (1 of 3) and 1 more: ask more often",
        "a new run with about 60 cases would settle opus",
    ]


def test_one_model_has_no_row_of_all_models() -> None:
    run = made_run(cases=12, passes=passes)
    assert [line.split()[0] for line in shown(run)[4:6] if line] == ["haiku"]
    assert shown(run)[-1] == "one run each: what varies is not seen"


def test_verbose_lines_have_p_values_checks_and_sentences() -> None:
    lines = shown(THREE, 120, verbosity=1)
    assert " 0.023  helps     33/36 " in lines[4]
    assert "haiku: +56 points (+24 to +87), 200% more tokens" in lines
    assert not any(" more" in line for line in lines if line.startswith("only"))


def test_cases_that_may_pass_by_chance_are_not_named() -> None:
    run = made_run(models=["opus"], cases=12, runs=3, passes=passes)
    assert run.verdicts[0].verdict == "unclear"
    assert "only with    3" in shown(run)
    assert not any("would settle" in line for line in shown(run))


def test_many_skills_are_a_table_of_the_worst() -> None:
    lines = shown(of_skills(30))
    assert lines[0].startswith("29 of 30 skills help, none hurts, 1 is unclear;")
    header = "the 20 worst  verdict  lift    interval  haiku  sonnet  only without"
    assert lines[2] == f"{header}  both fail"
    row = "skill-001     unclear   -11  -35 to +18     -8      -8             4"
    assert lines[4] == f"{row}          0"
    assert lines[-1].startswith("and 10 more: 10 help  ")
    assert lines[-1].endswith("  all: -v, or the page")
    assert len(lines) == 2 + 2 + 20 + 1


def test_every_skill_has_a_block_with_v() -> None:
    lines = shown(of_skills(5), verbosity=1)
    assert sum(line.startswith("skill-00") for line in lines) == 5


def test_missing_answers_hide_the_rates() -> None:
    records = list(THREE.records)
    records[0] = replace(records[0], outcome="errored", error="gone", score=None)
    lines = shown(replace(THREE, records=tuple(records)))
    [haiku] = [line for line in lines if line.startswith("haiku ")]
    assert haiku.split()[:6] == ["haiku", "-", "-", "-", "incomplete", "50→150"]
    assert haiku.endswith(" 1")


def test_shares_of_checks_have_their_own_header() -> None:
    lines = shown(checked_run([(1, 6), (2, 7), (0, 5), (3, 7), (1, 4), (2, 6)]))
    assert lines[0].endswith("· share of checks passed")
    assert lines[2].startswith("model  checks passed  lift")


def test_references_are_told_in_a_sentence() -> None:
    run = made_run(models=["o"], passes=lambda _case, _model, arm, _run: arm == "skill")
    tests = tuple(replace(test, agent=ORACLE, kind=REFERENCE) for test in run.tests)
    records = tuple(replace(record, agent=ORACLE) for record in run.records)
    run = replace(run, tests=tests, records=records, model_ids={ORACLE: ""})
    assert shown(run) == ["gate: references pass: 6 of 6; empty answers fail: 6 of 6"]


def test_triggers_have_recall_and_false_alarms() -> None:
    lines = shown(made_triggers())
    assert lines[:5] == [
        "triggers · 4 queries that need gate, 3 that don't × 3 runs",
        "",
        "skill  model         recall    interval  false alarms   interval",
        "────────────────────────────────────────────────────────────────",
        "gate   claude/haiku     67%  25% to 92%           11%  1% to 65%",
    ]
    assert 'not opened for: "Please trigger-needs-2" (0 of 3)' in lines
    assert lines[-2].endswith(" \\")


def test_only_what_is_shown_is_painted() -> None:
    look = TerminalLook(paint=lambda text, **style: f"<{'+'.join(style)}:{text}>")
    lines = results_lines(THREE, look)
    painted = [line for line in lines[4:8] if "<green+bold:" in line]
    assert len(painted) == 3
    assert not any("green" in line for line in lines if "unclear" in line)
    assert "<bold:case-4>, <bold:case-5> and 5 more" in lines[9]


def studied() -> RunResults:
    """Of which no test is a part."""
    return made_run(cases=0, studies=(made_study(),), sections=(made_routing(),))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_of_studies_fit(width: int) -> None:
    lines = results_lines(studied(), TerminalLook(width, ASCII_MARKS))
    assert max(map(text_width, lines)) <= width
    assert "".join(lines).isascii()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("marks", [UNICODE_MARKS, ASCII_MARKS])
@pytest.mark.parametrize(
    "make",
    [
        lambda: THREE,
        lambda: of_skills(30),
        made_triggers,
        agent_run,
        lambda: made_run(models=["anthropic:" + "m" * 60, "anthropic:" + "n" * 60]),
        lambda: made_run(skills=["日本" * 30], models=["\x1b[2J" * 20]),
    ],
)
def test_lines_fit_any_terminal(
    make: Callable[[], RunResults], marks: Marks, width: int
) -> None:
    for verbosity in (0, 1):
        lines = results_lines(make(), TerminalLook(width, marks, verbosity=verbosity))
        too_wide = [line for line in lines if text_width(line) > width]
        assert not too_wide
        assert "\x1b" not in "".join(lines)
        if marks is ASCII_MARKS:
            assert "".join(lines).replace("日", "").replace("本", "").isascii()
