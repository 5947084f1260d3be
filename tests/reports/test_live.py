"""The text of the progress line, and the numbers on the line of a test."""

from dataclasses import replace
from fnmatch import fnmatch
from typing import Any, Final

import pytest

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, UNICODE_MARKS
from pytest_upskill.reports.terminal.live import Progress, item_numbers, progress_line
from pytest_upskill.trials.records import Outcome, Record
from support.agent_runs import agent_run


def test_agents_at_work_are_told_with_their_turns_and_tokens() -> None:
    progress = Progress(4, 12, 2, 0, 900, None, None, agents=3, turns=12)
    line = (
        "upskill: 4 of 12 answers, 3 agents at work (12 turns), 900 tokens, 2 calls in"
        " flight"
    )
    assert progress_line(progress, 90) == line
    assert progress_line(progress, 79) == line.removesuffix(", 2 calls in flight")


def test_an_agent_that_waits_for_its_first_reply_is_at_work() -> None:
    line = progress_line(Progress(0, 2, 1, 0, 0, None, None, agents=1), 79)
    assert (
        line
        == "upskill: 0 of 2 answers, 1 agent at work (0 turns), 0 tokens, 1 call in"
        " flight"
    )


@pytest.mark.parametrize(
    ("known", "waits"),
    [
        ({}, "starting"),
        ({"opening": "loading the anthropic SDK"}, "loading the anthropic SDK"),
        ({"agents": 2}, "2 agents starting"),
        ({"agents": 2, "turns": 1}, "2 agents at work (1 turn), "),
        (
            {"agents": 2, "opening": "loading the openai SDK"},
            "2 agents starting, loading the op*",
        ),
        ({"done": 3}, "waiting for others"),
    ],
)
def test_what_a_run_waits_for_is_said_if_nothing_is_in_flight(
    known: dict[str, Any], waits: str
) -> None:
    line = progress_line(replace(Progress(0, 12, 0, 0, 0, None, None), **known), 200)
    assert "0 in flight" not in line
    assert fnmatch(line, f"upskill: ? of 12 answers, {waits}*")


HALF: Final = Progress(
    done=34,
    all=1200,
    in_flight=16,
    reused=12,
    tokens=41200,
    cost=0.123,
    seconds_left=100,
)


def test_the_line_has_all_numbers() -> None:
    assert (
        progress_line(HALF, 120)
        == "upskill: 34 of 1,200 answers, 16 in flight, about 2 min left, 12 from"
        " cache, "
        "41,200 tokens, $0.12"
    )


def test_the_line_counts_waiting_questions() -> None:
    line = progress_line(Progress(1, 40, 0, 0, 0, None, None, pausing=16), 79)
    assert line == "upskill: 1 of 40 answers, 16 waiting to retry, 0 tokens"
    line = progress_line(Progress(1, 40, 0, 0, 0, None, None, elsewhere=39), 79)
    assert line == "upskill: 1 of 40 answers, 39 asked by another run, 0 tokens"


@pytest.mark.parametrize("width", [0, 5, 30, 50, 79])
def test_the_line_fits(width: int) -> None:
    line = progress_line(HALF, width)
    assert len(line) <= width
    assert "upskill: 34 of 1,200 answers".startswith(line) or line.endswith(
        ("answers", "flight", "left", "cache", "tokens")
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1 s"), (89, "89 s"), (95, "2 min"), (7200, "2.0 h")],
)
def test_the_time_left_is_rounded_for_people(seconds: float, text: str) -> None:
    progress = Progress(1, 2, 1, 0, 0, None, seconds)
    assert f"about {text} left" in progress_line(progress, 120)


def test_the_numbers_of_a_test_have_turns_and_whether_the_skill_was_opened() -> None:
    results = agent_run(cases=1, runs=2, opens=lambda _case, run: run == 1)
    shown = item_numbers(results.records, UNICODE_MARKS)
    assert shown.endswith("4 → 4.5 turns · opened 1/2 · 50 → 150 tokens")


def made_record(arm: str, passed: bool, tokens: int | None = 100) -> Record:
    outcome: Outcome = "passed" if passed else "failed"
    return Record("s", "c", "m", arm, 1, outcome, input_tokens=tokens, output_tokens=11)


def test_tokens_are_means_and_left_out_where_they_are_not_known() -> None:
    skill = [
        made_record("skill", passed=True, tokens=1100),
        made_record("skill", passed=False, tokens=1900),
    ]
    without = [
        made_record("baseline", passed=False),
        made_record("baseline", passed=False),
    ]
    numbers = "1/2 · without 0/2 · 111 → 1,511 tokens"
    assert item_numbers(without + skill, UNICODE_MARKS) == numbers
    assert item_numbers(skill, ASCII_MARKS) == "1/2 - 1,511 tokens"
    unknown = [
        made_record("skill", passed=True, tokens=None),
        made_record("skill", passed=True),
    ]
    assert item_numbers(unknown, UNICODE_MARKS) == "2/2"
    previous = [*skill, made_record("previous", passed=True)]
    assert (
        item_numbers(previous, ASCII_MARKS, "a" * 30)
        == f"1/2 - at {'a' * 19}~ 1/1 - 1,511 tokens"
    )
    assert item_numbers([], UNICODE_MARKS) == ""
