"""Grading an answer, and the records that cross processes and go to disk."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks import KINDS, grade, parse_checks
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.records import (
    Grade,
    Record,
    dump_records,
    errored_record,
    graded_record,
    load_records,
)
from pytest_upskill.trials.transcript import Turn
from pytest_upskill.trials.trial import Question, Trial
from support.strategies import ANSWER_FILES, ANY_TEXT, COUNTS, TRANSCRIPTS

QUESTION = Question("haiku", "Be kind.", (("user", "Hello"),), 100, 2)
TRIAL = Trial("gate", "open-gate", "haiku", "skill", 2, QUESTION)


def graded(expected: Any, answer: Answer) -> tuple[Grade, ...]:
    return grade(parse_checks(expected, KINDS, ()), answer)


def passes(answer: str, **expected: str) -> bool:
    (only,) = graded(expected, Answer(answer))
    return only.passed


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("gate up", "Type `gate up`."),
        ("GATE up", "type gAtE Up"),
        ("STRASSE", "die Straße"),
        ("straße", "DIE STRASSE"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("a\nb", "x a\nb y"),
    ],
)
def test_a_text_is_found_whatever_its_case(wanted: str, answer: str) -> None:
    assert passes(answer, contains=wanted)
    assert not passes(answer, not_contains=wanted)


@pytest.mark.parametrize(
    ("text", "answer"), [("9.0", "900"), ("gate up", "gate  up"), ("gate", "gat"), ("a", "")]
)
def test_another_text_is_not_found(text: str, answer: str) -> None:
    assert not passes(answer, contains=text)
    assert passes(answer, not_contains=text)


def test_every_check_is_held_in_its_order_with_a_reason() -> None:
    expected = {"contains": ["9.0", "cuda"], "not_contains": ["8.0", "7.0"]}
    assert graded(expected, Answer("9.0 and 8.0")) == (
        Grade("contains", True, '"9.0" is in the answer'),
        Grade("contains", False, '"cuda" is not in the answer'),
        Grade("not_contains", False, '"8.0" is in the answer'),
        Grade("not_contains", True, '"7.0" is not in the answer'),
    )


def test_a_check_that_failed_on_an_answer_cut_off_says_so() -> None:
    expected = {"contains": ["9.0", "cuda"]}
    kept, lost = graded(expected, Answer("9.0 and", stop="length"))
    assert kept.reason == '"9.0" is in the answer'
    assert lost.reason == '"cuda" is not in the answer (cut off by the output limit)'


@pytest.mark.parametrize(
    ("grades", "outcome"),
    [
        ((Grade("contains", True, ""), Grade("contains", True, "")), "passed"),
        ((Grade("contains", True, ""), Grade("contains", False, "")), "failed"),
        ((Grade("contains", True, ""), Grade("words", False, "", required=False)), "passed"),
    ],
)
def test_a_trial_passes_if_all_of_its_required_checks_do(
    grades: tuple[Grade, ...], outcome: str
) -> None:
    assert graded_record(TRIAL, Answer("x"), grades).outcome == outcome


@pytest.mark.parametrize(
    ("grades", "score"),
    [
        ([(True, 1.0), (True, 0.1), (True, 0.2)], 1.0),
        ([(False, 1.0), (False, 3.0)], 0.0),
        ([(True, 1.0), (False, 3.0)], 0.25),
    ],
)
def test_the_score_is_the_share_of_weight_that_passed(
    grades: list[tuple[bool, float]], score: float
) -> None:
    given = tuple(Grade("words", *one, required=False) for one in [(p, "", w) for p, w in grades])
    assert graded_record(TRIAL, Answer("x"), given).score == score


def test_a_graded_record_tells_of_its_trial_answer_and_checks() -> None:
    grades = (Grade("contains", True, "because"),)
    answer = Answer("text", Usage(10, 5, 2), seconds=1.23456, stored=True)
    assert graded_record(TRIAL, answer, grades) == Record(
        skill="gate",
        case="open-gate",
        model="haiku",
        arm="skill",
        run=2,
        outcome="passed",
        output="text",
        input_tokens=10,
        output_tokens=5,
        cached_tokens=2,
        seconds=1.235,
        stored=True,
        checks=grades,
        error=None,
        score=1.0,
    )


def test_an_errored_record_has_the_reason_and_no_answer() -> None:
    record = errored_record(TRIAL, "no answer in time")
    assert (record.outcome, record.error) == ("errored", "no answer in time")
    assert (record.skill, record.case, record.model) == ("gate", "open-gate", "haiku")
    assert (record.arm, record.run) == ("skill", 2)
    assert (record.output, record.tokens, record.seconds, record.checks) == (None, None, None, ())
    assert record.score is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(10, 5, 3), 15),
        (Usage(10, 5), 15),
        (Usage(0, 0), 0),
        (Usage(10, None), None),
        (Usage(None, 5), None),
        (Usage(), None),
    ],
)
def test_tokens_are_known_only_if_both_sides_are(usage: Usage, tokens: int | None) -> None:
    assert graded_record(TRIAL, Answer("x", usage), ()).tokens == tokens


TEXT, COUNT = ANY_TEXT, COUNTS
RECORDS = st.builds(
    Record,
    skill=TEXT,
    case=TEXT,
    model=TEXT,
    arm=st.sampled_from(["skill", "baseline"]),
    run=st.integers(min_value=1),
    outcome=st.sampled_from(["passed", "failed", "errored"]),
    output=st.none() | TEXT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cached_tokens=COUNT,
    seconds=st.none() | st.floats(min_value=0, allow_infinity=False),
    stored=st.booleans(),
    checks=st.lists(
        st.builds(Grade, TEXT, st.booleans(), TEXT, st.floats(0, 9), st.booleans())
    ).map(tuple),
    error=st.none() | TEXT,
    score=st.none() | st.floats(0, 1),
    files=ANSWER_FILES,
    transcript=TRANSCRIPTS,
)


@given(RECORDS)
def test_a_record_comes_back_from_json_as_it_was(record: Record) -> None:
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


@given(st.lists(RECORDS, max_size=3))
def test_records_come_back_from_text_as_they_were(records: list[Record]) -> None:
    text = dump_records(records)
    assert load_records(text) == records
    assert text.isascii()  # they ride on test reports and in JUnit files


def test_json_of_a_record_has_every_field() -> None:
    names = [field.name for field in dataclasses.fields(Record)]
    answer = Answer("x", files=(AnswerFile.of("a", b""),), transcript=(Turn("user", "q"),))
    assert list(graded_record(TRIAL, answer, ()).to_json()) == names


def test_json_of_a_plain_completion_is_what_it_always_was() -> None:
    record = graded_record(TRIAL, Answer("x", Usage(1, 2, 0)), (Grade("words", True, "yes"),))
    assert json.dumps(record.to_json()) == (
        '{"skill": "gate", "case": "open-gate", "model": "haiku", "arm": "skill", "run": 2, '
        '"outcome": "passed", "output": "x", "input_tokens": 1, "output_tokens": 2, '
        '"cached_tokens": 0, "seconds": 0.0, "stored": false, "checks": [{"check": "words", '
        '"passed": true, "reason": "yes", "weight": 1.0, "required": true, "asks": ""}], '
        '"error": null, "score": 1.0, "judge_calls": 0, "judge_input_tokens": null, '
        '"judge_output_tokens": null, "cost": null}'
    )


def test_a_record_carries_the_files_and_the_transcript_of_its_answer() -> None:
    files, transcript = (AnswerFile.of("a", b"b"),), (Turn("user", "q"),)
    record = graded_record(TRIAL, Answer("x", files=files, transcript=transcript), ())
    assert (record.files, record.transcript) == (files, transcript)
