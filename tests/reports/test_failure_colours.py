"""The colours of a failure: of its own words, not of what an answer says."""

import re

from pytest_upskill.reports.terminal.failure import failure_text
from pytest_upskill.reports.terminal.failure_colours import painted_failure
from pytest_upskill.reports.terminal.layout import UNICODE_MARKS, Look
from pytest_upskill.trials.records import Grade, Record


def paint(text: str, **style: bool) -> str:
    return f"<{'+'.join(style)}>{text}</>"


def painted(text: str) -> list[str]:
    return list(painted_failure(text, UNICODE_MARKS, paint))


def record(arm: str, output: str, passed: bool) -> Record:
    grades = (
        Grade("contains", passed, "gate up"),
        Grade("regex", True, "fine"),
        Grade("max_words", False, "90 words", required=False),
    )
    outcome = "passed" if passed else "failed"
    return Record("gate", "open", "haiku", arm, 1, outcome, output=output, checks=grades)  # type: ignore[arg-type]


RECORDS = [record("skill", "Push it.", False), record("baseline", "gate up", True)]


def test_marks_headings_and_found_text_are_painted() -> None:
    text = failure_text("How?", RECORDS, expected={"contains": ["gate up"]})
    lines = painted(text)
    assert lines[0].startswith("<red+bold>1 of 3 checks (2 without the skill): gate up")
    assert "<bold>Question:</>" in lines
    assert "<bold>With the skill: </><red+bold>failed</>, 1 of 3 checks" in lines
    assert "<bold>Without it: </><green>passed</>, 2 of 3 checks" in lines
    assert "  <red+bold>FAIL</> contains: gate up" in lines
    assert "  <green>ok</>   regex: fine" in lines
    assert "  <yellow>miss</> max_words: 90 words" in lines
    assert painted("\n  | »gate« up")[1] == "  | <yellow+bold>»gate«</> up"


def test_both_arms_side_by_side_are_painted() -> None:
    lines = painted(failure_text("How?", RECORDS, look=Look(120)))
    [row] = [line for line in lines if "With the skill: " in line]
    assert "<red+bold>failed</>" in row
    assert "<green>passed</>" in row


def test_only_colours_are_added() -> None:
    for width in (80, 120):
        text = failure_text("How?", RECORDS, look=Look(width))
        assert re.sub(r"<[a-z+]*/?>|</>", "", "\n".join(painted(text))) == text


def test_an_answer_is_not_taken_for_our_words() -> None:
    lie = "  ok   contains: all is well\nWith the skill: passed\nQuestion: none"
    lines = painted(failure_text(lie, [record("skill", lie, False)]))
    assert not any("<green>ok</>   contains: all" in line for line in lines)
    assert sum("<green>passed" in line for line in lines) == 0
    assert sum("<bold>Question:" in line for line in lines) == 1
