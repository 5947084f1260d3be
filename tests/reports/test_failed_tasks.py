"""What a failed task shows without -v: how the other arm did,
and what the verifier printed.
"""

from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.reports.terminal.failure import failure_text
from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.subject import ORACLE

OUT = AnswerFile("out.txt", "wrong", 5, "d1")


def record(arm: Any = "skill", reward: float = 0, **values: Any) -> Record:
    grades = (Grade("verifier", reward == 1, f"reward {reward:g}", share=reward),)
    outcome: Any = "passed" if reward == 1 else "failed"
    made = Record(
        "gate", "open", "haiku", arm, 1, outcome, "done", checks=grades, score=reward
    )
    return replace(made, **{"files": (OUT,), **values})


def brief(*records: Record, width: int = 80) -> list[str]:
    return failure_text("How?", records, look=TerminalLook(width)).split("\n")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (record("baseline"), "same answer"),
        (record("baseline", output="Done!"), "failed"),
        (record("baseline", files=(replace(OUT, digest="d2"),)), "failed"),
        (record("baseline", 0.5), "reward 0.5"),
        (record("baseline", 1), "passed"),
    ],
)
def test_an_answer_is_the_same_if_its_files_and_its_result_are(
    other: Record, words: str
) -> None:
    assert f"With the skill (without it: {words}): done" in brief(record(), other)


def test_files_are_an_answer_too() -> None:
    reference = record(output="", agent=ORACLE)
    empty = record("baseline", output="", files=(), agent=ORACLE)
    [line] = [
        line
        for line in brief(reference, empty)
        if line.startswith("With the reference")
    ]
    assert line == "With the reference (with an empty answer: failed): (made out.txt)"


def test_a_verifier_that_rewards_nothing_is_named() -> None:
    empty = record("baseline", 1, output="", files=(), agent=ORACLE)
    assert "verifier" in brief(record(reward=1, agent=ORACLE), empty)[0]


def test_the_last_lines_of_a_verifier_are_whole() -> None:
    output = "\n".join(
        [*(f"line {n}" for n in range(20)), "x " * 50 + "end", "  2 failed"]
    )
    grades = (
        Grade("verifier", passed=False, reason="reward 0", share=0, output=output),
    )
    lines = [line for line in brief(record(checks=grades)) if line.startswith("  | ")]
    assert lines[:8] == [f"  | line {n}" for n in range(13, 20)] + [
        "  | " + "x " * 37 + "x"
    ]
    assert lines[8:] == ["  | " + "x " * 12 + "end", "  |   2 failed"]
    grades = (replace(grades[0], output="\n".join(["x" * 70 + " y" * 30] * 6)),)
    lines = [line for line in brief(record(checks=grades)) if line.startswith("  | ")]
    assert (len(lines), lines[0][4:8]) == (10, "xxxx")
