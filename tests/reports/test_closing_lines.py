"""The last lines of a run: the skills, the worst first, what was spent,
what to do next.
"""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.reports.terminal.closing_lines import (
    Ending,
    Spent,
    closing_lines,
    command_lines,
    spent_words,
)
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import missing_words
from pytest_upskill.settings import Gates
from pytest_upskill.trials.plan import PlannedCase
from support.agent_runs import agent_run, with_listing
from support.made import accepted_count, made_triggers
from support.made import made_run as any_run
from support.words import HELPS, HURTS, INCOMPLETE, NO_EFFECT, NOT_NEEDED, TOO_FEW


def always(*_: Any) -> bool:
    return True


def helps(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def hurts(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "baseline"


def made_run(**more: Any) -> RunResults:
    """Of a skill that all depends on."""
    return any_run(**{"passes": helps, **more})


def shown(results: RunResults | None, width: int = 80, **ending: Any) -> list[str]:
    return closing_lines(results, Ending(**ending), TerminalLook(width))


def without_answers(results: RunResults, case: str) -> RunResults:
    """Of one case."""
    records = [
        (
            replace(one, outcome="errored", error="nobody home")
            if one.case == case
            else one
        )
        for one in results.records
    ]
    return replace(results, records=tuple(records))


def test_a_skill_that_helps() -> None:
    run = made_run(skills=["wick"], cases=10)
    assert shown(run) == [f"✔ wick {HELPS} haiku +100 (+61 to +100)"]


def test_a_line_that_is_too_long_is_wrapped() -> None:
    run = made_run(cases=10, models=["scripted:a-long-name.py:answer"])
    assert shown(run, width=58) == [
        f"✔ gate {HELPS} scripted:a-long-name.py:answer +100 (+61 to",
        "  +100)",
    ]


def test_a_failed_run_never_ends_on_a_tick_alone() -> None:
    run = made_run(cases=10)
    assert shown(run, failed=True) == [
        "✘ failed: see above",
        f"✔ gate {HELPS} haiku +100 (+61 to +100)",
    ]
    problem = shown(run, failed=True, problems=["--skill-markdown x: can't be written"])
    assert problem[0] == "✘ --skill-markdown x: can't be written"
    assert len(problem) == 2


def test_failed_tests_are_counted_and_cross_their_skill() -> None:
    run = made_run(cases=10, passes=lambda n, *rest: n > 2 and helps(n, *rest))
    [line] = shown(run, failed=True)
    assert line == f"✘ gate {HELPS} haiku +70 (+29 to +89); 3 failed of 10 tests"


def test_no_cross_without_a_failed_run() -> None:
    run = made_run(
        cases=10, passes=hurts, accepted={n: accepted_count(0) for n in range(10)}
    )
    [line] = shown(run)
    assert line.startswith(f"! gate {HURTS} haiku -100 (-100 to -61)")


@pytest.mark.parametrize(
    ("cases", "passes", "line"),
    [
        (20, always, f"· gate {NOT_NEEDED} on haiku (100% pass without it)"),
        (20, lambda n, *_: n == 0, f"· gate {NO_EFFECT} on haiku 0 (-17 to +17)"),
        (10, lambda n, *_: n == 0, f"· gate {TOO_FEW} on haiku 0 (-31 to +31)"),
    ],
)
def test_what_is_neither_good_nor_bad(cases: int, passes: Any, line: str) -> None:
    run = made_run(cases=cases, passes=passes)
    accepted = [replace(test, expected=accepted_count(0)) for test in run.tests]
    run = run if passes is always else replace(run, tests=tuple(accepted))
    assert shown(run)[0].startswith(line)


def test_missing_answers_are_not_failed_tests() -> None:
    run = without_answers(made_run(cases=10), "case-3")
    [line] = shown(run, failed=True)
    assert (
        line == f"✘ gate {INCOMPLETE} on haiku +80 to +100"
        f" ({missing_words(run.summaries[0])})"
    )


def test_without_a_baseline() -> None:
    assert shown(made_run(cases=4, arms=["skill"])) == ["✔ gate passes 100% on haiku"]
    [line] = shown(
        made_run(cases=4, arms=["skill"], passes=lambda n, *_: n < 2), failed=True
    )
    assert line == "✘ gate passes 50% on haiku; 2 failed of 4 tests"


def test_a_skill_that_got_worse_since_a_ref() -> None:
    arms = ["baseline", "previous", "skill"]
    run = made_run(
        cases=10, arms=arms, passes=lambda _n, _m, arm, _r: arm == "previous"
    )
    run = replace(run, skills=tuple(replace(one, against="HEAD") for one in run.skills))
    line, *_ = shown(run, failed=True)
    assert line.startswith("✘ gate worse since HEAD -100")
    two = made_run(
        cases=10,
        arms=arms,
        models=["haiku", "opus"],
        passes=lambda _n, m, arm, _r: (
            arm != "baseline" if m == "opus" else arm == "previous"
        ),
    )
    two = replace(two, skills=tuple(replace(one, against="HEAD") for one in two.skills))
    [line] = shown(two, 250, failed=True)
    assert "worse since HEAD on haiku -100" in line
    assert f"{HELPS} opus +100" in line


def test_several_models_share_a_line_with_the_worst_first_and_many_are_counted() -> (
    None
):
    def passes(number: int, model: str, arm: str, run: int) -> bool:
        return (helps if model != "tiny" else hurts)(number, model, arm, run)

    run = made_run(models=["opus", "haiku", "tiny"], cases=10, passes=passes)
    [line] = shown(run, 140, failed=True)
    first = (
        f"✘ gate {HURTS} tiny -100 (-100 to -61); {HELPS} opus +100 (+61 to +100),"
        " haiku"
    )
    assert line.startswith(first)
    run = made_run(models=[*"abcde", "tiny"], cases=10, passes=passes)
    [line] = shown(run, 70, failed=True)
    assert line == f"✘ gate {HURTS} 1 model; {HELPS} 5 models; 10 failed of 60 tests"


def test_a_skill_that_no_agent_opened() -> None:
    run = agent_run(opens=lambda *_: False)
    assert any("never opened by loop/haiku" in line for line in shown(run))
    name_only, unlisted = (with_listing(run, sent) for sent in ("name", "not listed"))
    assert any(
        "(its description was not sent whole)" in line for line in shown(name_only)
    )
    assert any("never listed by loop/haiku" in line for line in shown(unlisted))


def test_triggers_are_told_by_recall_and_false_alarms() -> None:
    lines = shown(made_triggers())
    assert any("recall " in line and "false alarms " in line for line in lines)


def test_gates_and_interruptions_come_first() -> None:
    run = made_run(cases=20, gates=Gates(min_pass_rate=1, min_lift=0.99), passes=always)
    lines = shown(run, failed=True)
    assert lines[0] == f"✘ gate failed: {run.gate.reasons[0]}"
    assert lines[1].startswith(f"✘ gate {NOT_NEEDED} on haiku")
    lost = tuple(test.nodeid for test in run.tests[:2])
    stopped = replace(run, gates=Gates(), interrupted="enough", lost=lost)
    assert shown(stopped, failed=True, not_reached=["door"])[:2] == [
        f"✘ {stopped.unfinished[0]}",
        "✘ not reached: door",
    ]


def test_many_reasons_and_many_skills_are_counted() -> None:
    names = [f"skill-{number}" for number in range(9)]
    run = made_run(skills=names, cases=8, gates=Gates(min_lift=1, confident=True))
    lines = shown(run, failed=True)
    assert sum(line.startswith("✘ gate failed: ") for line in lines) == 5
    assert "✘ and 4 more reasons" in lines
    assert sum(line.startswith("✘ skill-") for line in lines) == 5
    assert lines[-1] == "and 4 more skills: ✘ 4"


def test_the_worst_skills_are_shown() -> None:
    good = made_run(skills=[f"good-{number}" for number in range(8)], cases=8)
    bad = made_run(skills=["bad"], cases=8, passes=hurts)
    both = replace(
        good,
        skills=(*good.skills, *bad.skills),
        tests=(*good.tests, *bad.tests),
        records=(*good.records, *bad.records),
    )
    lines = shown(both, failed=True)
    assert lines[0] == f"✘ bad {HURTS} haiku -100 (-100 to -54); 8 failed of 8 tests"
    assert lines[1].startswith(f"✔ good-0 {HELPS} haiku")
    assert lines[-1] == "and 4 more skills: ✔ 4"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_fit_and_are_ascii_where_that_is_all(width: int) -> None:
    evil = "\x1b[2J\u202e" + "很长的名字" * 20
    run = made_run(skills=[evil, "b" * 90], models=["m" * 70, "o" * 70], cases=6)
    run = replace(run, gates=Gates(min_lift=1, confident=True), interrupted=evil)
    spent = Spent(0.42, 1000, calls=130, stored=590, most_usd=1.0)
    ending = Ending(
        failed=True,
        not_reached=[evil],
        notes=[evil],
        spent=spent,
        next=["pytest", "--lf", "-v", "--skill", "skills"],
    )
    lines = closing_lines(run, ending, TerminalLook(width))
    assert max(map(text_width, lines)) <= width
    assert not set("".join(lines)) & set("\x1b\u202e")
    plain = closing_lines(made_run(), ending, TerminalLook(width, ASCII_MARKS))
    assert any(line.startswith("FAIL ") for line in plain)
    assert any(line.startswith("ok ") for line in plain)


def test_marks_are_painted() -> None:
    def paint(text: str, **style: bool) -> str:
        return f"<{' '.join(style)}>{text}</>"

    run = made_run(cases=10, gates=Gates(max_token_growth=0.1))
    lines = closing_lines(run, Ending(failed=True), TerminalLook(100, paint=paint))
    assert lines[0].startswith("<red bold>✘</> <red>gate failed: ")
    [line] = closing_lines(made_run(cases=10), Ending(), TerminalLook(100, paint=paint))
    assert line == f"<green bold>✔</> gate {HELPS} haiku +100 (+61 to +100)"


def test_some_of_the_cases() -> None:
    run = made_run(cases=10)
    tests: tuple[PlannedCase, ...] = tuple(replace(test, of=30) for test in run.tests)
    assert shown(replace(run, tests=tests)) == [
        f"✔ gate {HELPS} haiku +100 (+61 to +100); only 10 of 30 cases"
    ]


def test_page_spent_and_next_are_last() -> None:
    lines = shown(
        made_run(cases=10),
        page="r.html#case-a",
        spent=Spent(0.42, 9000, calls=130, stored=590, most_usd=1.0),
        before_next="all answers so far are kept",
        next=["pytest", "-k", "'a b'"],
    )
    assert lines[1:] == [
        "page: r.html#case-a",
        "spent $0.42 of $1.00, 720 calls (590 from cache)",
        "all answers so far are kept",
        "next: pytest -k 'a b'",
    ]


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(0.42, 9, calls=3), "spent $0.42, 3 calls"),
        (Spent(None, 1234, calls=1), "spent 1,234 tokens, 1 call"),
        (Spent(0.0, 9, calls=3, most_usd=2.5), "spent $0 of $2.50, 3 calls"),
        (
            Spent(None, 900, calls=2, most_tokens=5000),
            "spent 900 of 5,000 tokens, 2 calls",
        ),
        (
            Spent(1.5, 90, 40, calls=2),
            "spent $1.50 and 40 tokens of unknown price, 2 calls",
        ),
        (
            Spent(0.5, 90, calls=2, stored=1, unanswered=3),
            "spent $0.50, 6 calls (1 from cache, 3 without an answer)",
        ),
        (Spent(stored=20), "spent nothing: 20 answers from cache"),
        (Spent(stored=1, source="a.jsonl"), "spent nothing: 1 answer from a.jsonl"),
        (Spent(), "spent nothing: no call was answered"),
        (Spent(2.0, 90, calls=2, counts="answer"), "spent $2.00, 2 answers"),
        (
            Spent(0.5, 90, calls=2, stored=1, unanswered=1, counts="answer"),
            "spent $0.50, 3 answers (1 from cache), 1 call without an answer",
        ),
    ],
)
def test_what_was_spent(spent: Spent, words: str) -> None:
    assert spent_words(spent) == words


def test_a_long_command_can_be_pasted() -> None:
    nodeid = f"{'folder/' * 8}skill_meta.json::a case[haiku]"
    words = [
        "pytest",
        "--lf",
        "--skill",
        "my skills",
        "-k",
        "a or b",
        "--model",
        "m" * 99,
        nodeid,
    ]
    lines = command_lines("next: ", [shlex.quote(word) for word in words], 50)
    assert max(map(len, lines)) <= 50
    assert all(line.endswith("\\") for line in lines[:-1])
    assert not any(line.endswith(("--skill \\", "-k \\")) for line in lines)
    text = "\n".join(lines).removeprefix("next: ").replace("\\\n", "")
    assert shlex.split(text) == words


def test_nothing_to_say() -> None:
    assert shown(None) == []
    assert shown(None, problems=["odd"]) == ["! odd"]
