"""Answers as plain values."""

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import form_of, json_values
from pytest_upskill._util.keys import hide_keys
from pytest_upskill.trials.answer import (
    MAX_FILE_BYTES,
    Answer,
    AnswerFile,
    Usage,
    joined,
)
from pytest_upskill.trials.transcript import Activity, Turn
from support.strategies import ANSWERS


@given(ANSWERS)
def test_answer_round_trips_through_json(answer: Answer) -> None:
    text = json.dumps(json_values(answer, brief=True))
    assert form_of(Answer).validate_python(json.loads(text)) == answer


def test_json_of_a_completion_has_no_files_and_no_transcript() -> None:
    answer = Answer("gate up", Usage(3, 2, None), "length", 1.5, stored=True)
    assert json_values(answer, brief=True) == {
        "text": "gate up",
        "usage": {"input": 3, "output": 2},
        "stop": "length",
        "seconds": 1.5,
    }


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("Stra\u00dfe\r\n".encode(), "Stra\u00dfe\r\n"),
        (b"\xff\xfe", None),
        (b"a\0b", None),
        (b"x" * MAX_FILE_BYTES, "x" * MAX_FILE_BYTES),
        (b"x" * (MAX_FILE_BYTES + 1), None),
    ],
)
def test_only_text_files_are_kept_whole(data: bytes, text: str | None) -> None:
    digest = hashlib.sha256(data).hexdigest()
    assert AnswerFile.of("a/b.txt", data) == AnswerFile(
        "a/b.txt", text, len(data), digest
    )


def test_answers_of_a_trial_are_joined() -> None:
    old, new = AnswerFile.of("a.txt", b"old"), AnswerFile.of("a.txt", b"new")
    other = AnswerFile.of("b.txt", b"b")
    first = Answer(
        "one", Usage(1, 2, 0), "length", 1.0, stored=True, files=(old, other)
    )
    turn = Turn("assistant", "two")
    second = Answer(
        "two", Usage(10, None, 0), "end", 0.5, files=(new,), transcript=(turn,)
    )
    assert joined([first, second]) == Answer(
        "one\n\ntwo",
        Usage(11, None, 0),
        "end",
        1.5,
        files=(new, other),
        transcript=(turn,),
    )


def test_joined_answers_of_agents_keep_what_they_did() -> None:
    first = Activity(
        2, 1, activated=False, opened=(), read=("a.md",), scripts=(), findings=("cut",)
    )
    second = Activity(
        3,
        4,
        activated=True,
        opened=("gate",),
        read=("a.md", "b.md"),
        scripts=("run.sh",),
        findings=("cut",),
    )
    answers = [
        Answer("one", activity=first, workspace=b"1"),
        Answer("two", activity=second, workspace=b"2"),
    ]
    whole = joined(answers)
    assert whole.activity == Activity(
        5,
        5,
        activated=True,
        opened=("gate",),
        read=("a.md", "b.md"),
        scripts=("run.sh",),
        findings=("cut",),
    )
    assert whole.workspace == b"2"
    assert joined([Answer("one")]).activity is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            Answer("Half done.", stop="max_turns"),
            "the agent stopped at its limit of 7 turns",
        ),
        (
            Answer("", stop="time", seconds=600.0),
            "the agent stopped at its time limit of 600 s",
        ),
        (Answer("No.", stop="refusal"), "the model refused to go on"),
        (Answer(" \n"), "the agent's final answer is empty"),
        (
            Answer("<think>hm", stop="length"),
            "the agent's final answer is empty, cut off by the output limit",
        ),
        (Answer("Done."), ""),
    ],
)
def test_an_agent_that_reached_a_limit_or_said_nothing_has_failed(
    answer: Answer, reason: str
) -> None:
    # Also if it left files.
    files = (AnswerFile.of("out.txt", b"made"),)
    assert (
        replace(answer, activity=Activity(7, 3), files=files).why_not_gradable == reason
    )


def test_keys_are_masked_in_all_of_an_agents_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "sk-ant-0123456789abcdefghij"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    answer = Answer(
        key,
        files=(AnswerFile(key, key, 1, "0"),),
        transcript=(Turn("result", key),),
        activity=Activity(
            1,
            1,
            activated=True,
            opened=(key,),
            read=(key,),
            scripts=(key,),
            findings=(key,),
        ),
    )
    assert key not in repr(hide_keys(answer))


@given(st.integers() | st.floats() | st.text() | st.lists(st.integers()) | st.none())
def test_usage_keeps_only_counts(value: Any) -> None:
    is_count = (
        type(value) in (int, float) and 0 <= value <= 2**53 and value == int(value)
    )
    expected = int(value) if is_count else None
    usage = Usage(value, value, value, value, value)
    names = ("input", "output", "cached", "written", "hour")
    assert asdict(usage) == dict.fromkeys(names, expected)


def test_a_boolean_is_no_count() -> None:
    assert Usage(input=True, output=False) == Usage()
