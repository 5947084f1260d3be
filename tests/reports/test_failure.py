"""What a failed case shows: question, expected, both answers."""

import re
from dataclasses import replace
from typing import Any

import pytest

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


def record(
    arm: Any = "skill", run: int = 1, output: str = "No idea.", **more: Any
) -> Record:
    reason = '"gate up" is not in the answer'
    checks = (
        Grade("contains", passed=False, reason=reason),
        Grade("not_contains", passed=True, reason="fine"),
    )
    values = {
        "outcome": "failed",
        "output_tokens": 1234,
        "seconds": 1.26,
        "checks": checks,
    }
    return Record(
        "gate", "open", "haiku", arm, run, output=output, **{**values, **more}
    )


def test_a_failure_shows_question_checks_and_both_answers() -> None:
    baseline = record("baseline", output="Type gate up.", outcome="passed", checks=())
    assert failure_text("How?\nSay it.", [baseline, record()]).split("\n") == [
        '"gate up" is not in the answer',
        "",
        "Question:",
        "  | How?",
        "  | Say it.",
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


def test_a_failure_shows_the_answer_at_the_git_ref_too() -> None:
    before = record("previous", output="Type gate up.", outcome="passed", checks=())
    text = failure_text("How?", [before, record()], against="main")
    assert text.index("With the skill: failed") < text.index(
        "With the skill at main: passed"
    )


def test_a_check_that_is_not_required_is_a_miss_and_not_in_the_headline() -> None:
    grades = (
        Grade("max_words", passed=False, reason="90 words", required=False),
        Grade("words", passed=False, reason='"up" is not a word'),
        Grade("contains", passed=True, reason="fine", required=False),
    )
    shown = failure_text("How?", [record(checks=grades)]).split("\n")
    assert shown[0] == '1 of 3 checks: "up" is not a word'
    assert shown[5:9] == [
        "With the skill: failed, 1 of 3 checks",
        "  miss max_words: 90 words",
        '  FAIL words: "up" is not a word',
        "  ok   contains: fine",
    ]


def test_a_failure_without_a_baseline_shows_one_answer() -> None:
    text = failure_text("How?", [record(output_tokens=None, seconds=None)])
    assert "Without it" not in text
    assert "  Answer:\n  | No idea." in text
    assert "With no skill: failed" in failure_text("How?", [record()], has_skill=False)


def test_a_failure_is_harmless() -> None:
    evil = "\x1b[2J\u202e\x9b\ud800"
    grades = (Grade("contains", passed=False, reason=evil),)
    text = failure_text(
        evil, [record(output=evil, checks=grades), record("baseline", output=evil)]
    )
    assert not set(text) & set(evil) - set("[2J")
    assert text.count("\\x1b[2J\\u202e\\x9b\\ud800") == 5


def test_a_long_failure_is_shortened_except_with_vv() -> None:
    question, answer = "q" * 5_000, "a" * 11_600
    short = failure_text(question, [marked(output=answer)])
    assert "[… 2,000 characters left out …]" in short
    assert "[… 3,600 characters left out …]" in short
    whole = failure_text(
        question, [record(output=answer)], look=TerminalLook(verbosity=2)
    )
    assert question in whole
    assert answer in whole
    assert "left out" not in whole


@pytest.mark.parametrize(("longer", "is_cut"), [(39, False), (199, False), (200, True)])
def test_text_is_not_cut_if_that_saves_little(longer: int, is_cut: bool) -> None:
    text = failure_text("q" * (3000 + longer), [record(output="a" * (8000 + longer))])
    assert text.count(f"[… {longer} characters left out …]") == 2 * is_cut


def runs(outcomes: str, arm: Any = "skill") -> list[Any]:
    """A record for each letter: p passed, f failed."""
    return [
        record(
            arm, run, f"{arm} {run}", outcome="passed" if letter == "p" else "failed"
        )
        for run, letter in enumerate(outcomes, start=1)
    ]


def titles(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("Run ")]


def test_failed_runs_are_shown_before_those_that_passed() -> None:
    text = failure_text("How?", [*runs("pffp"), *runs("pppf", "baseline")])
    assert text.startswith('2 of 4 runs passed: "gate up" is not in the answer\n')
    assert "With the skill: 2 of 4 runs passed. Without it: 3 of 4." in text
    assert titles(text) == [
        *("Run 2, with the skill: failed", "Run 2, without it: passed"),
        *("Run 3, with the skill: failed", "Run 3, without it: passed"),
        *("Run 1, with the skill: passed", "Run 1, without it: passed"),
    ]
    assert "| skill 2" in text
    assert "| baseline 1" in text


BRIEF = TerminalLook(80, verbosity=0)


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
    assert "No idea. No idea." in text
    assert text.endswith("…")
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


def test_without_v_found_text_is_marked_and_nothing_does_harm() -> None:
    text = failure_text(
        "\x1b[2J", [marked(output="the gate \x1b[2J\u202e")], look=BRIEF
    )
    assert text.split("\n")[-1] == "With the skill: the »gate« \\x1b[2J\\u202e"
    assert "\x1b" not in text
    empty = failure_text("How?", [record(output="")], look=BRIEF)
    assert empty.endswith("With the skill: (an empty answer)")


def test_a_standing_replaces_the_count_in_the_headline() -> None:
    text = failure_text("How?", runs("pffp"), standing="regression: now\x1b 2 of 4")
    headline = 'regression: now\\x1b 2 of 4: "gate up" is not in the answer'
    assert text.split("\n")[0] == headline


@pytest.mark.parametrize(
    ("verbosity", "outcomes", "shown", "left"),
    [
        (1, "fffffppp", [1, 2, 6], "5 more runs not shown: -vv shows all."),
        (1, "pf", [2, 1], ""),
        (2, "pffffff", [2, 3, 4, 5, 6, 7, 1], ""),
    ],
)
def test_how_many_runs_are_shown(
    verbosity: int, outcomes: str, shown: list[int], left: str
) -> None:
    text = failure_text("How?", runs(outcomes), look=TerminalLook(verbosity=verbosity))
    assert [int(title.split(",")[0][4:]) for title in titles(text)] == shown
    assert text.split("\n")[-1] == left if left else "not shown" not in text


def test_answers_are_side_by_side_from_110_columns_on() -> None:
    answers = ["A\tB " * 30 + "end", "門" * 70]
    records = [
        record(output=answers[0]),
        record("baseline", output=answers[1], outcome="passed"),
    ]
    narrow = failure_text("How?", records, look=TerminalLook(109, verbosity=1))
    assert "│" not in narrow
    assert f"  | {'門' * 52}\n  | {'門' * 18}" in narrow
    whole = failure_text(
        "How?", records, look=TerminalLook(width=200, verbosity=2)
    ).split("\n")
    assert {f"  | {answer}" for answer in answers} < set(whole)
    for width in (110, 111, 140):
        lines = failure_text(
            "How?", records, look=TerminalLook(width, verbosity=1)
        ).split("\n")
        start = next(
            n
            for n, line in enumerate(lines)
            if line.startswith("With the skill: failed")
        )
        rows = lines[start:]
        assert rows[0].split("│")[1] == " Without it: passed"
        assert {text_width(row.split("│")[0]) for row in rows} == {(width - 3) // 2 + 1}
        assert max(map(text_width, rows)) <= width
        left = [row.split("│")[0].strip() for row in rows]
        assert "".join(part[2:] for part in left if part.startswith("| ")).endswith(
            "end"
        )
        assert sum(row.split("│")[1].count("門") for row in rows) == 70


@pytest.mark.parametrize("width", [60, 80, 109, 120])
def test_question_expected_and_answers_are_wrapped_to_the_width(width: int) -> None:
    words = "the gate opens " * 20 + "門" * 99
    records = [marked(output=words), marked("baseline", output=f"{words}.")]
    expected = {"contains": words}
    text = failure_text(
        words, records, expected=expected, look=TerminalLook(width, verbosity=1)
    )
    lines = text.split("\n")
    assert max(map(text_width, lines)) <= width
    asked = lines[3 : lines.index("", 3)]
    assert len(asked) > 4
    assert all(line.startswith("  | ") for line in asked)
    assert all(line.startswith("  ") for line in lines if "門" in line)
    assert text.count("»gate«") == 2 * 20
    records = [record(output=words), record("baseline", output=words)]
    whole = failure_text(
        words, records, expected=expected, look=TerminalLook(width, verbosity=2)
    )
    assert whole.split("\n").count(f"  | {words}") == 3
    assert f'  contains: "{words}"' in whole.split("\n")


def test_three_answers_take_160_columns() -> None:
    records = [record(arm, output=arm) for arm in ("skill", "previous", "baseline")]
    for width, rows in ((159, 0), (160, 1)):
        text = failure_text(
            "How?", records, against="main", look=TerminalLook(width, verbosity=1)
        )
        assert (
            sum(line.count("│") == 2 and "at main" in line for line in text.split("\n"))
            == rows
        )
    text = failure_text("How?", records[:1], look=TerminalLook(200, verbosity=1))
    assert "│" not in text


def marked(arm: Any = "skill", *, output: str) -> Record:
    """A record whose check found every "gate"."""
    made = record(arm, output=output)
    places = tuple(
        (n, n + 4) for n in range(len(output)) if output.startswith("gate", n)
    )
    return replace(
        made, checks=tuple(replace(one, found=places) for one in made.checks[:1])
    )


def test_the_same_answer_is_shown_once() -> None:
    records = [
        record(arm, run, "Lift it.") for run in (1, 2) for arm in ("skill", "baseline")
    ]
    text = failure_text("How?", records)
    assert text.count("| Lift it.") == 1
    same = (
        "Same answer: run 1, with the skill; run 1, without it; run 2, with the skill;"
        " run 2,"
    )
    assert same in " ".join(text.split())
    whole = failure_text("How?", records, look=TerminalLook(verbosity=2))
    assert whole.count("| Lift it.") == 4
    brief = failure_text("How?", records[:2], look=BRIEF)
    assert "With the skill (without it: same answer): Lift it." in brief


def test_found_text_is_marked() -> None:
    records = [marked(output="a gate\nand gate")]
    text = failure_text("gate?", records, expected={"contains": "x"})
    assert "  | a »gate«\n  | and »gate«" in text
    assert "  | gate?" in text
    assert 'Expected (found text is marked »like this«):\n  contains: "x"' in text
    plain = failure_text("gate?", [record(output="a gate")], expected={"contains": "x"})
    assert "»" not in plain
    assert "Expected:" in plain


def test_marks_survive_a_cut_and_hidden_ones_are_mentioned() -> None:
    answer = "gate" + "." * 5993 + "gate" + "." * 9000 + "gate" + "." * 1994 + "gate"
    text = failure_text("How?", [marked(output=answer)])
    assert text.count("»") == text.count("«") == 4
    assert ".»gat«\n" in text
    assert "\n  | »te«" in text
    assert "including found" not in text
    hidden = "." * 8000 + "gate" + "." * 8000
    text = failure_text("How?", [marked(output=hidden)])
    assert "[… 8,004 characters left out, including found text …]" in text


def test_a_failure_has_an_ascii_form() -> None:
    records = [marked(output="gate " * 900), marked("baseline", output="no gate")]
    look = TerminalLook(width=120, marks=ASCII_MARKS, verbosity=1)
    expected = {"contains": "x" * 3000}
    text = failure_text("q" * 9000, records, expected=expected, look=look)
    assert text.isascii()
    assert ">>gate<<" in text
    assert " | Without it" in text


def test_the_names_of_checks_are_harmless_too() -> None:
    grades = (Grade("ev\x1b[31mil\n", passed=False, reason="a\nreason\x07"),)
    text = failure_text(
        "How?", [record(checks=grades)], expected={"\x1b]8;;x\x07": ["\u202e"]}
    )
    assert "  FAIL ev\\x1b[31mil: a reason\\x07" in text.split("\n")
    assert '  \\x1b]8;;x\\x07: "\\u202e"' in text.split("\n")


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        (
            {"contains": ["a", "b"], "max_words": 5},
            ['contains: "a", "b"', "max_words: 5"],
        ),
        ({"contains": "a", "case_sensitive": True}, ['contains: "a" (case-sensitive)']),
        ([{"regex": "a+", "required": False}], ['regex: "a+" (not required)']),
        ({"all_of": [{"words": "a"}, {"json": True}]}, ['words: "a"', "json: true"]),
        (
            {"any_of": [{"words": "a", "json": True}, {"words": "b"}]},
            ['any_of: words: "a"; and json: true; or words: "b"'],
        ),
        ({"not": {"contains": "a"}}, ['not: contains: "a"']),
        (
            {"judge": ["It is kind.", "It is short."]},
            ["judge: It is kind.", "judge: It is short."],
        ),
        ({"json_schema": {"type": "object"}}, ['json_schema: {"type": "object"}']),
        ({"judge": None, "contains": "ä"}, ['contains: "ä"']),
        ([None, {"own_check": {"value": 1}}], ['own_check: {"value": 1}']),
    ],
)
def test_each_check_says_what_it_expects(expected: Any, shown: list[str]) -> None:
    assert list(expected_lines(expected)) == shown


def agent_records(**more: Any) -> list[Record]:
    failed = agent_run(cases=1, passes=lambda _case, _model, arm, _run: arm != "skill")
    return [replace(one, **more) for one in failed.records]


def test_what_an_agent_did_is_a_line_and_more_of_it_with_v() -> None:
    shown = failure_text("How?", agent_records(), look=BRIEF)
    assert "\nAgent: 5 turns, 4 tool calls, opened the skill\nWith the skill" in shown
    assert "report.md" not in shown
    shown = failure_text("How?", agent_records(), look=TerminalLook(verbosity=1))
    assert shown.count("The last 5 of ") == 2  # both arms
    assert shown.partition("Without it")[0].split("\n")[-12:-2] == [
        "  | No idea.",
        "  Files:",
        "    made report.md (26 bytes)",
        "    made data/out.bin (3 bytes)",
        "  The last 5 of 10 steps:",
        "    calls bash: python sum.py --try 0",
        "    bash failed: sum.py: no such file exit status 2",
        "    calls bash: python sum.py --try 1",
        "    bash gave: total 1,234.50",
        "    says: The report is in report.md.",
    ]
    most = failure_text("How?", agent_records(), look=TerminalLook(verbosity=2))
    assert "  All 12 steps:" in most
    assert (
        "    skill gave:\n      | # pdf\n      | \n      | Run scripts/sum.py" in most
    )
    assert "      | Total: 1,234.50" in most


def test_an_agent_that_did_not_open_the_skill_says_so() -> None:
    failed = agent_run(cases=1, passes=lambda *_: False, opens=lambda *_: False)
    assert "3 tool calls, did not open the skill" in failure_text(
        "How?", failed.records
    )
    other = [
        replace(one, activity=replace(one.activity, opened=("docs-writer",)))
        for one in failed.records
        if one.activity
    ]
    told = failure_text("How?", other)
    assert "3 tool calls, did not open the skill, but docs-writer" in told


def test_files_tell_what_became_of_them() -> None:
    files = (
        AnswerFile("a.md", "x", 1, "", "changed"),
        AnswerFile("b.md", None, 0, "", "deleted"),
        *(AnswerFile.of(f"{n}.txt", b"x") for n in range(30)),
    )
    shown = failure_text(
        "How?", agent_records(files=files), look=TerminalLook(verbosity=1)
    )
    assert (
        "    changed a.md (1 byte)\n    deleted b.md\n    made 0.txt (1 byte)" in shown
    )
    assert "    and 12 more files" in shown


def test_what_an_agent_said_can_do_no_harm() -> None:
    bad = "\x1b]0;owned\x07 \u202e ::error::x\n::error::y " + "z" * 5_000_000
    activity = Activity(2, 1, activated=True, findings=(bad,))
    turns = (
        Turn("call", bad, bad, reply=1),
        Turn("result", bad, bad, failed=True, reply=1),
    )
    files = (AnswerFile(bad, bad, 9, ""),)
    records = agent_records(transcript=turns, files=files, activity=activity)
    for verbosity in (1, 2):
        for marks in (ASCII_MARKS, UNICODE_MARKS):
            look = TerminalLook(80, marks, verbosity=verbosity)
            shown = failure_text("How?", records, look=look)
            assert not set("\x1b\x07\u202e") & set(shown)
            assert "\n::error::" not in shown
            assert len(shown) < 40_000
            assert marks is UNICODE_MARKS or shown.isascii()
            assert verbosity == 2 or max(map(text_width, shown.split("\n"))) <= 80


def test_a_long_run_of_an_agent_shows_its_end() -> None:
    turns = tuple(
        Turn(kind, f"step {n}", "bash", reply=n)
        for n in range(500)
        for kind in ("call", "result")
    )
    shown = failure_text(
        "How?", agent_records(transcript=turns), look=TerminalLook(verbosity=1)
    )
    assert "The last 6 of 1,000 steps:" in shown
    assert "step 499" in shown
    assert "step 496" not in shown


def paint(text: str, **style: bool) -> str:
    return f"<{'+'.join(style)}>{text}</>"


def painted(text: str) -> list[str]:
    return list(painted_failure(text.split("\n"), UNICODE_MARKS, paint))


def graded(arm: str, output: str, passed: bool) -> Record:
    grades = (
        Grade("contains", passed, "gate up"),
        Grade("regex", passed=True, reason="fine"),
        Grade("max_words", passed=False, reason="90 words", required=False),
    )
    return Record(
        "gate",
        "open",
        "haiku",
        arm,
        1,
        "passed" if passed else "failed",
        output=output,
        checks=grades,
    )


RECORDS = [
    graded("skill", "Push it.", passed=False),
    graded("baseline", "gate up", passed=True),
]


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
    lines = painted(failure_text("How?", RECORDS, look=TerminalLook(120, verbosity=1)))
    [row] = [line for line in lines if "With the skill: " in line]
    assert "<red+bold>failed</>" in row
    assert "<green>passed</>" in row


def test_only_colours_are_added() -> None:
    for width in (80, 120):
        text = failure_text("How?", RECORDS, look=TerminalLook(width, verbosity=1))
        assert re.sub(r"<[a-z+]*/?>|</>", "", "\n".join(painted(text))) == text


def test_an_answer_is_not_taken_for_our_words() -> None:
    lie = "  ok   contains: all is well\nWith the skill: passed\nQuestion: none"
    lines = painted(failure_text(lie, [graded("skill", lie, passed=False)]))
    assert not any("<green>ok</>   contains: all" in line for line in lines)
    assert sum("<green>passed" in line for line in lines) == 0
    assert sum("<bold>Question:" in line for line in lines) == 1
