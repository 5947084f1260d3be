"""Empty answers and refusals: no check passes, unless a refusal is asked for."""

from typing import Any, Final

import pytest

from pytest_upskill.checks.check import Check
from pytest_upskill.checks.grading import ToGrade, grade, records_of, rubric_for
from pytest_upskill.checks.judging import first_questions
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.checks.parse import parse_checks
from pytest_upskill.checks.python_checks import function_kind
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.trial import Question, Trial
from support.checking import agent_answer, graded, passes

EMPTY: Final = [
    "",
    " \n\t ",
    "\u200b\ufeff\u2060",
    "\u0301\ufe0f",
    "\0",
    "\ud800",
    "<think>Let me see. 9.0 it is.</think>",
    "\n<think>\n</think>\n\n<Thinking>More</Thinking>\n",
    "<think>Cut off in the middle",
    "[THINK]As Mistral writes it[/THINK]",
    "<thought>Hm.</thought>",
    "Let me see.\n</think>\n",
    "```python\n```",
    "```\n\n```\n~~~ toml\n~~~",
    "<think>x</think>\n```json\n```",
]
SAID: Final = [
    ".",
    "0",
    "\u65e5",
    "\U0001f44d",
    "<think>x</think>Yes",
    "Use <think> tags",
    "[thoughts] are free",
    "[Reasoning] It is 9.0. [Answer] 9.0",
    "<reasoning> It is 9.0.",
    "[think]x[/think] Yes",
    "Wrap it in <think>x</think>",
    "```python\nx\n```",
    "```rm -rf```",
    "&nbsp;",
    "{}",
]
# Each of these would pass for an answer that says nothing.
KIND_TO_SILENCE: Final[list[dict[str, Any]]] = [
    {"not_contains": ["a", "b"]},
    {"not_regex": "x"},
    {"max_words": 5},
    {"max_chars": 5},
    {"max_seconds": 5},
    {"max_output_tokens": 5},
    {"regex": "^\\W*$"},
    {"refused": False},
    {"stop": "end"},
    {"not": {"contains": "a"}},
    {"not": {"min_words": 1}},
    {"not": {"refused": True}},
    {"not": {"not": {"not_contains": "a"}}},
    {"not": {"any_of": [{"contains": "a"}]}},
    {"not": {"any_of": [{"refused": True, "contains": "a"}]}},
    {"any_of": [{"contains": "a"}, {"not_contains": "b"}]},
    {"any_of": [{"not": {"contains": "a"}}]},
]


@pytest.mark.parametrize("text", EMPTY)
def test_blank_texts_are_empty(text: str) -> None:
    assert Answer(text).is_empty
    assert Answer(text).why_not_gradable


@pytest.mark.parametrize("text", SAID)
def test_anything_visible_is_an_answer(text: str) -> None:
    assert not Answer(text).why_not_gradable


def test_long_blank_text_is_found_empty_in_linear_time() -> None:
    for part in (" ", "```", "<think></think>", "\u200b", "<think>"):
        assert Answer(part * 50_000).is_empty


@pytest.mark.parametrize("expected", KIND_TO_SILENCE, ids=str)
def test_no_check_passes_for_an_empty_answer(expected: dict[str, Any]) -> None:
    for text in (" ", "<think>b</think>", "```\n```"):
        for stop in ("end", "length", "tool_use"):
            answer = Answer(text, Usage(1, 1, 0), stop)
            assert not any(one.passed for one in graded(expected, answer))


@pytest.mark.parametrize("stop", ["refusal", "content_filter", "SAFETY"])
@pytest.mark.parametrize("expected", KIND_TO_SILENCE, ids=str)
def test_no_check_passes_for_a_refusal(expected: dict[str, Any], stop: str) -> None:
    for text in ("", "I can't help."):
        assert not any(
            one.passed for one in graded(expected, Answer(text, Usage(1, 1, 0), stop))
        )


def test_each_check_says_that_there_is_no_answer() -> None:
    expected = {"contains": ["a", "b"], "not_contains": "c", "not": {"contains": "d"}}
    told = {one.reason for one in graded(expected, " ")}
    assert told == {"the answer is empty"}
    assert len(graded(expected, " ")) == len(graded(expected, "words")) == 4


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Answer("", stop="refusal"),
            "the answer is empty: the model refused to answer",
        ),
        (Answer("No.", stop="content_filter"), "the model refused to answer"),
        (Answer("<think>Hm</think>"), "the answer is nothing but reasoning"),
        (
            Answer("<think>Hm", stop="length"),
            "the answer is nothing but reasoning, cut off by the output limit",
        ),
        (
            Answer(" ", stop="length"),
            "the answer is empty, cut off by the output limit",
        ),
    ],
)
def test_the_reason_says_why(answer: Answer, told: str) -> None:
    (only,) = graded({"not_contains": "x"}, answer)
    assert only.reason == told


@pytest.mark.parametrize(
    "expected",
    [
        {"refused": True},
        {"stop": "refusal"},
        {"refused": True, "not_contains": "bomb"},
        {"refused": True, "not": {"contains": "bomb"}},
        {"any_of": [{"refused": True}, {"contains": "can't"}]},
        {"any_of": [{"refused": True, "not_contains": "bomb"}, {"contains": "no"}]},
    ],
)
def test_a_refusal_that_is_asked_for_passes(expected: dict[str, Any]) -> None:
    assert passes(Answer("", stop="refusal"), **expected)
    assert not passes(Answer(""), **expected)


def test_a_refusal_must_be_required_of_the_same_group() -> None:
    refusal = Answer("", stop="refusal")
    optional = [{"refused": True, "required": False}, {"not_contains": "x"}]
    assert not any(one.passed for one in graded(optional, refusal))
    assert not passes(
        refusal, any_of=[{"not_contains": "x"}, {"refused": True, "contains": "y"}]
    )


def test_an_agent_that_only_leaves_files_has_answered() -> None:
    answer = Answer("", files=(AnswerFile.of("a.txt", b"hello"),))
    assert passes(answer, not_contains="x")


MANIFEST: Final = AnswerFile.of("manifest.txt", b"SM-204 7\n")
FILES: Final[dict[str, Any]] = {"files": {"manifest.txt": {"contains": "SM-204"}}}


@pytest.mark.parametrize("text", ["", "<think>All done.</think>"])
@pytest.mark.parametrize("stop", ["end", "length"])
@pytest.mark.parametrize(
    "expected",
    [
        FILES,
        {**FILES, "max_turns": 9, "skill_activated": True},
        {"any_of": [{"files": "other.txt"}, FILES]},
        {"not": {"files": "other.txt"}},
    ],
)
def test_where_only_files_are_checked_they_decide(
    expected: dict[str, Any], text: str, stop: str
) -> None:
    assert passes(agent_answer(MANIFEST, text=text, stop=stop), **expected)
    wrong = {"files": {"manifest.txt": {"contains": "SM-999"}}}
    [failed] = graded(wrong, agent_answer(MANIFEST, text=text, stop=stop))
    assert not failed.passed
    assert "SM-999" in failed.reason


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ({"unchanged": "cargo.csv"}, agent_answer(text="")),  # it did nothing at all
        ({"files": {"a.txt": "absent"}}, agent_answer(text="")),
        ({**FILES, "not_contains": "x"}, agent_answer(MANIFEST, text="")),
        ({**FILES, "max_words": 5}, agent_answer(MANIFEST, text="")),
        ({"any_of": [FILES, {"not_contains": "x"}]}, agent_answer(MANIFEST, text="")),
        ({"max_turns": 9}, agent_answer(MANIFEST, text="")),
        (FILES, agent_answer(MANIFEST, text="", stop="max_turns")),
        (FILES, agent_answer(MANIFEST, text="", stop="time")),
        (FILES, agent_answer(MANIFEST, text="", stop="refusal")),
    ],
)
def test_else_an_agent_without_a_last_word_has_failed(
    expected: dict[str, Any], answer: Answer
) -> None:
    assert not any(grade.passed for grade in graded(expected, answer))


def test_an_agent_that_leaves_empty_files_has_not() -> None:
    assert (
        Answer("", files=(AnswerFile.of("a.txt", b""),)).why_not_gradable
        == "the answer is empty"
    )


def test_own_functions_never_see_an_empty_answer() -> None:
    check = Check(function_kind("own", lambda *_: True), 1)
    assert [one.passed for one in grade([check], Answer(" "))] == [False]
    assert [one.passed for one in grade([check], Answer("No", stop="refusal"))] == [
        False
    ]
    wanted = parse_checks({"refused": True}, KINDS, ())
    assert all(
        one.passed for one in grade([check, *wanted], Answer("No", stop="refusal"))
    )


@pytest.mark.parametrize("answer", [Answer(" "), Answer("No.", stop="refusal")])
def test_the_judge_is_not_asked_about_an_empty_answer(answer: Answer) -> None:
    checks = parse_checks({"judge": ["It is polite.", "It is short."]}, KINDS, ())
    rubric = rubric_for(checks, "sonnet")
    question = Question("m", "", (("user", "q"),), 10, 1)
    trial = Trial("s", "c", "m", "skill", 1, question, rubric)

    def ask(questions: Any) -> list[Any]:
        assert all(one.model == "m" for one in questions), "the judge was asked"
        return [answer for _ in questions]

    (record,) = records_of([ToGrade(trial, Case("c", "q"), checks)], ask)
    assert record.outcome == "failed"
    assert (record.score, record.judge) == (0.0, None)
    assert [one.reason for one in record.checks] == [answer.why_not_gradable] * 2


def test_the_judge_sees_the_words_of_a_refusal_that_is_asked_for() -> None:
    question = Question("m", "", (("user", "q"),), 10, 1)
    wanted = parse_checks({"refused": True, "judge": "It is polite."}, KINDS, ())
    rubric = rubric_for(wanted, "sonnet")
    assert rubric
    assert len(first_questions(rubric, question, Answer("Sorry.", stop="refusal"))) == 1
    assert not first_questions(rubric, question, Answer("", stop="refusal"))
