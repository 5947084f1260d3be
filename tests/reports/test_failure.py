"""What a failed case shows: question, expected, the answers and what agents did."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.features.reference import ORACLE
from pytest_upskill.reports.terminal.failure import (
    expected_lines,
    failure_text,
    painted_failure,
)
from pytest_upskill.reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    TerminalLook,
    text_width,
)
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.transcript import Activity, Turn
from support.agent_runs import agent_run

BRIEF = TerminalLook(80, verbosity=0)
FULL = TerminalLook(80, verbosity=2)


def record(
    arm: Any = "skill", run: int = 1, output: str = "No idea.", **more: Any
) -> Record:
    checks = (
        Grade("contains", passed=False, reason='"gate up" is not in the answer'),
        Grade("not_contains", passed=True, reason="fine"),
    )
    values = {
        "outcome": "failed",
        "output_tokens": 1234,
        "seconds": 1.26,
        "checks": checks,
        **more,
    }
    return Record("gate", "open", "haiku", arm, run, output=output, **values)


def runs(outcomes: str, arm: Any = "skill") -> list[Record]:
    """A record for each letter: p passed, f failed."""
    records = []
    for run, letter in enumerate(outcomes, start=1):
        outcome = "passed" if letter == "p" else "failed"
        records.append(record(arm, run, f"{arm} {run}", outcome=outcome))
    return records


def marked(output: str) -> Record:
    """With "gate" found by a check."""
    places = tuple(match.span() for match in re.finditer("gate", output))
    grade = Grade("contains", passed=False, reason="no", found=places)
    return record(output=output, checks=(grade,))


def test_a_failure_shows_question_expected_checks_and_both_answers() -> None:
    baseline = record("baseline", output="Type gate up.", outcome="passed", checks=())
    records = [baseline, record()]
    text = failure_text("How?\nSay it.", records, expected={"contains": ["gate up"]})
    assert text.split("\n") == [
        '"gate up" is not in the answer',
        "",
        "Question:",
        "  | How?",
        "  | Say it.",
        "",
        "Expected:",
        '  contains: "gate up"',
        "",
        "With the skill: failed",
        '  FAIL contains: "gate up" is not in the answer',
        "  ok   not_contains: fine",
        "  Answer (1,234 tokens, 1.3 s):",
        "  | No idea.",
        "",
        "Without it: passed",
        "  Answer (1,234 tokens, 1.3 s):",
        "  | Type gate up.",
    ]


def test_without_v_a_failure_is_check_question_and_start_of_the_answer() -> None:
    answers = [
        record(output="No idea.\n" * 99),
        record("previous", outcome="passed"),
        record("baseline"),
    ]
    text = failure_text("How do I\nopen it? " * 30, answers, against="main", look=BRIEF)
    lines = text.split("\n")
    assert lines[0] == '"gate up" is not in the answer'
    assert lines[1].startswith("Question: How do I open it? How do I open it?")
    assert lines[3].startswith(
        "With the skill (with the skill at main: passed, without it: failed"
    )
    assert lines[4].endswith("…")
    assert len(lines) == 5
    assert max(map(text_width, lines)) <= 80


def test_without_v_several_runs_are_counted_and_the_first_failed_one_is_shown() -> None:
    text = failure_text("How?", [*runs("pffp"), *runs("pppf", "baseline")], look=BRIEF)
    assert text.split("\n") == [
        '2 of 4 runs passed: "gate up" is not in the answer',
        "Question: How?",
        "With the skill: 2 of 4 runs passed. Without it: 3 of 4.",
        "Run 2, with the skill: skill 2",
    ]


@pytest.mark.parametrize(
    ("verbosity", "outcomes", "shown"),
    [(1, "fffffppp", [1, 2, 6]), (1, "pf", [2, 1]), (2, "pfff", [2, 3, 4, 1])],
)
def test_failed_runs_are_shown_before_those_that_passed(
    verbosity: int, outcomes: str, shown: list[int]
) -> None:
    text = failure_text("How?", runs(outcomes), look=TerminalLook(verbosity=verbosity))
    assert [int(run) for run in re.findall(r"^Run (\d), with", text, re.M)] == shown
    hidden = len(outcomes) - len(shown)
    assert (f"{hidden} more runs not shown: -vv shows all." in text) == bool(hidden)


@pytest.mark.parametrize(
    ("grades", "headline"),
    [
        ([Grade("words", passed=False, reason="no \x1b")], "no \\x1b"),
        (
            [
                Grade("max_words", passed=False, reason="long", required=False),
                Grade("words", passed=False, reason="no word"),
                Grade("contains", passed=True, reason="fine"),
            ],
            "1 of 3 checks: no word",
        ),
    ],
)
def test_the_headline_names_required_checks(grades: list[Grade], headline: str) -> None:
    text = failure_text("How?", [record(checks=tuple(grades))])
    assert text.split("\n")[0] == headline


def test_a_standing_replaces_the_count_in_the_headline() -> None:
    text = failure_text("How?", runs("pffp"), standing="regression: now 2 of 4")
    headline = 'regression: now 2 of 4: "gate up" is not in the answer'
    assert text.split("\n")[0] == headline


def test_found_text_is_marked_and_nothing_does_harm() -> None:
    hostile = "the gate \x1b[2J\u202e\ud800"
    for look in (BRIEF, TerminalLook(verbosity=1), FULL):
        text = failure_text(hostile, [marked(hostile)], look=look)
        assert "the »gate« \\x1b[2J\\u202e\\ud800" in text
        assert not set(text) & {"\x1b", "\u202e", "\ud800"}
    look = TerminalLook(marks=ASCII_MARKS)
    assert ">>gate<<" in failure_text("→", [marked(hostile)], look=look)
    assert failure_text("→", [marked(hostile)], look=look).isascii()


def test_long_texts_are_cut_except_with_vv() -> None:
    question = "q" * 5_000
    answer = "a" * 11_600
    text = failure_text(question, [record(output=answer)])
    assert "[… 2,000 characters left out …]" in text
    assert "[… 3,600 characters left out …]" in text
    assert max(map(text_width, text.split("\n"))) <= 80
    text = failure_text(question, [record(output=answer)], look=FULL)
    assert question in text
    assert answer in text


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        (
            {"contains": ["a", "b"], "max_words": 5},
            ['contains: "a", "b"', "max_words: 5"],
        ),
        (
            [{"regex": "ä", "required": False}, None],
            ['regex: "ä"', "required: false"],
        ),
        ({"not": {"contains": "a"}}, ['not: {"contains": "a"}']),
        ({"judge": None, "json": True}, ["json: true"]),
    ],
)
def test_what_is_expected_is_as_it_was_written(expected: Any, shown: list[str]) -> None:
    assert list(expected_lines(expected)) == shown


# Tasks and agents.


def task(arm: Any = "skill", reward: float = 0, **values: Any) -> Record:
    grade = Grade("verifier", reward == 1, f"reward {reward:g}", share=reward)
    outcome: Any = "passed" if reward == 1 else "failed"
    made = Record(
        "gate", "open", "haiku", arm, 1, outcome, "done", checks=(grade,), score=reward
    )
    return replace(made, **{"files": (AnswerFile("out.txt", "x", 1, "d1"),), **values})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (task("baseline"), "same answer"),
        (task("baseline", output="Done!"), "failed"),
        (task("baseline", files=()), "failed"),
        (task("baseline", 0.5), "reward 0.5"),
        (task("baseline", 1), "passed"),
    ],
)
def test_an_answer_is_the_same_if_its_files_and_its_result_are(
    other: Record, words: str
) -> None:
    text = failure_text("How?", [task(), other], look=BRIEF)
    assert f"\nWith the skill (without it: {words}): done" in text


def test_references_and_empty_answers_have_their_names() -> None:
    reference = task(output="", agent=ORACLE)
    empty = task("baseline", output="", files=(), agent=ORACLE)
    text = failure_text("How?", [reference, empty], look=BRIEF)
    line = "With the reference (with an empty answer: failed): (made out.txt)"
    assert text.split("\n")[2] == line


def test_the_last_lines_of_a_verifier_are_shown() -> None:
    output = "\n".join(f"line {number}" for number in range(20))
    grade = Grade("verifier", passed=False, reason="no", share=0, output=output)
    lines = failure_text("How?", [task(checks=(grade,))], look=BRIEF).split("\n")
    assert lines[3:] == [
        "  What the verifier printed last:",
        *(f"  | line {number}" for number in range(10, 20)),
    ]


def agent_records(**more: Any) -> list[Record]:
    failed = agent_run(cases=1, passes=lambda _case, _model, arm, _run: arm != "skill")
    return [replace(record, **more) for record in failed.records]


def test_what_an_agent_did_is_a_line_and_its_last_steps_with_v() -> None:
    text = failure_text("How?", agent_records(), look=BRIEF)
    assert "\nAgent: 5 turns, 4 tool calls, opened the skill\nWith the skill" in text
    assert "report.md" not in text
    text = failure_text("How?", agent_records()).partition("\n\nWithout it")[0]
    assert text.split("\n")[-8:] == [
        "    made data/out.bin (3 bytes)",
        "  The last 6 of 10 steps:",
        "    skill gave: # pdf Run scripts/sum.py, then write a heading.",
        "    calls bash: python sum.py --try 0",
        "    bash failed: sum.py: no such file exit status 2",
        "    calls bash: python sum.py --try 1",
        "    bash gave: total 1,234.50",
        "    says: The report is in report.md.",
    ]
    assert "  All 10 steps:" in failure_text("How?", agent_records(), look=FULL)


def test_what_an_agent_said_can_do_no_harm() -> None:
    bad = "\x1b]0;owned\x07 \u202e ::error::x\n::error::y " + "z" * 5_000_000
    turns = (
        Turn("call", bad, bad, reply=1),
        Turn("result", bad, bad, failed=True, reply=1),
    )
    records = agent_records(
        transcript=turns,
        files=(AnswerFile(bad, bad, 9, ""),),
        activity=Activity(2, 1, activated=True, findings=(bad,)),
    )
    for look in (TerminalLook(verbosity=1), FULL):
        text = failure_text("How?", records, look=look)
        assert not set("\x1b\x07\u202e") & set(text)
        assert "\n::error::" not in text
        assert len(text) < 40_000


# Colours.


def paint(text: str, **style: bool) -> str:
    return f"<{'+'.join(style)}>{text}</>"


def test_headings_grades_and_found_text_are_painted() -> None:
    grades = (*record().checks, Grade("max", passed=False, reason="9", required=False))
    lie = "  ok   contains: all is well\nQuestion: none\na »gate«"
    text = failure_text(lie, [record(output=lie, checks=grades)])
    lines = list(painted_failure(text.split("\n"), UNICODE_MARKS, paint))
    assert lines[0] == f"<red+bold>{text.splitlines()[0]}</>"
    assert "<bold>Question:</>" in lines
    assert '  <red+bold>FAIL</> contains: "gate up" is not in the answer' in lines
    assert "  <green>ok</>   not_contains: fine" in lines
    assert "  <yellow>miss</> max: 9" in lines
    assert "  |   ok   contains: all is well" in lines
    assert "  | a <yellow>»gate«</>" in lines
    assert re.sub(r"<[a-z+]+>|</>", "", "\n".join(lines)) == text
