"""The last lines of a run: whether the skills help, which tests failed, what was spent,
what to do next.
"""

import shlex
from collections.abc import Callable
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
from pytest_upskill.settings import Gates
from support.made import accepted_count, made_run, made_triggers

from .test_summary_text import THREE, of_skills


def shown(results: RunResults | None, width: int = 80, **ending: Any) -> list[str]:
    return closing_lines(results, Ending(**ending), TerminalLook(width))


def helps(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def hurts(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "baseline"


def is_easy(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return True


def is_hard(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return False


def test_a_run_ends_with_its_answer_what_failed_and_what_is_next() -> None:
    ending: dict[str, Any] = {
        "failed": True,
        "page": "skills.html#case",
        "spent": Spent(0.16, 21_600, calls=120, stored=60),
        "next": ["pytest", "--lf", "-v"],
    }
    assert shown(THREE, **ending) == [
        "✔ gate helps: +42 points over 3 models (+16 to +67); unclear alone on opus",
        "✘ 7 of 36 tests failed: 6 fail without the skill, too; 1 fails only with it",
        "page: skills.html#case",
        "spent $0.16, 180 calls (60 from cache)",
        "next: pytest --lf -v",
    ]


@pytest.mark.parametrize(
    ("passes", "cases", "lines"),
    [
        (helps, 8, ["✔ gate helps: +100 points (+63 to +100)"]),
        (
            hurts,
            8,
            [
                "✘ gate hurts: -100 points (-100 to -63)",
                "✘ 8 of 8 tests failed; all 8 fail only with the skill",
            ],
        ),
        (
            is_easy,
            8,
            ["· gate is unclear: 0 points (-37 to +37);"],
        ),
        (helps, 3, ["· gate: 3 cases: no verdict; six or more are needed"]),
        (
            is_hard,
            1,
            [
                "· gate: 1 case: no verdict; six or more are needed",
                "✘ 1 of 1 test failed; it fails without the skill, too",
            ],
        ),
        (
            is_hard,
            2,
            [
                "· gate: 2 cases: no verdict; six or more are needed",
                "✘ 2 of 2 tests failed; both fail without the skill, too",
            ],
        ),
    ],
)
def test_the_mark_is_that_of_the_verdict(
    passes: Callable[..., bool], cases: int, lines: list[str]
) -> None:
    failed = any(line.startswith("✘") for line in lines)
    run = made_run(passes=passes, cases=cases)
    assert [line[: len(lines[0])] for line in shown(run, 200, failed=failed)][:1] == (
        lines[:1]
    )
    assert shown(run, 200, failed=failed)[1:] == lines[1:]


def test_many_skills_are_counted() -> None:
    lines = shown(of_skills(30), failed=True)
    assert lines[0] == "✔ 29 of 30 skills help, none hurts, 1 is unclear"
    assert lines[1].startswith("✘ 120 of 1,080 tests failed: 87 fail without")


def test_errors_are_no_failed_tests() -> None:
    records = [
        replace(record, outcome="errored", error="nobody home")
        for record in made_run().records
    ]
    run = replace(made_run(), records=tuple(records))
    answer, tests = shown(run, 200, failed=True)
    assert answer.startswith("! gate: nothing measured: 6 of 6 answers without ")
    assert tests == "✘ 6 errors in 6 tests"


def test_regressions_of_a_skill_are_one_reason() -> None:
    accepted = {number: accepted_count(8, 8) for number in range(6)}
    run = made_run(passes=hurts, runs=5, accepted=accepted)
    lines = shown(run, 200, failed=True)
    assert lines[0] == "✘ gate on haiku fell 100 → 0 since 2026-01-01"
    assert lines[-1].startswith("✘ gate failed: gate on haiku: 6 regressions: case-0,")


def test_reasons_are_cut_but_the_last_stays() -> None:
    skills = [f"skill-{number}" for number in range(9)]
    run = made_run(skills=skills, passes=is_hard, gates=Gates(min_lift=0.5))
    lines = shown(run, failed=True, problems=["no room on the disk"])
    reasons = [line for line in lines if line.startswith("✘ gate failed")]
    assert lines[2] == "✘ no room on the disk"
    assert len(reasons) == 4
    assert "✘ and 5 more reasons" in lines
    assert "skill-8" in reasons[-1]


def test_a_failed_run_says_so() -> None:
    passed = made_run(passes=is_easy)
    assert shown(passed, failed=True)[-1] == "✘ failed: see above"
    assert "✘" not in "".join(shown(passed))


def test_triggers_are_told_by_recall_and_false_alarms() -> None:
    assert shown(made_triggers(), failed=True) == [
        "· gate on claude/haiku: recall 67%, false alarms 11%",
        "✘ 1 of 7 tests failed",
    ]


def test_nothing_to_say() -> None:
    assert shown(None) == []
    assert shown(None, problems=["odd"]) == ["! odd"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_fit_and_are_ascii_where_that_is_all(width: int) -> None:
    ending = Ending(
        failed=True,
        problems=["x " * 90],
        notes=["… → note"],
        spent=Spent(1.0, unpriced=9, calls=3, unanswered=1, stored=5),
        before_next="fix the errors, then the same command asks only what is missing",
        next=["pytest", "--skill", "skills"],
    )
    for run in (THREE, of_skills(5), made_triggers()):
        lines = closing_lines(run, ending, TerminalLook(width, ASCII_MARKS))
        assert max(map(text_width, lines)) <= width
        assert "".join(lines).isascii()


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
    words = ["pytest", "--lf", "--skill", "my skills", "-k", "a or b", "x" * 60]
    lines = command_lines("next: ", [shlex.quote(word) for word in words], 30)
    assert lines == [
        "next: pytest --lf \\",
        "  --skill 'my skills' \\",
        "  -k 'a or b' \\",
        f"  {'x' * 60}",
    ]
    text = "\n".join(lines).removeprefix("next: ").replace("\\\n", "")
    assert shlex.split(text) == words
