"""Records: graded trials that cross processes and go to disk."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import MOST, MOST_SECONDS, form_of, json_values
from pytest_upskill.trials.answer import Answer, AnswerFile, NoAnswer, Usage, joined
from pytest_upskill.trials.records import (
    Grade,
    Record,
    dump_records,
    load_records,
    make_record,
)
from pytest_upskill.trials.transcript import Activity, Turn
from pytest_upskill.trials.trial import Question, Trial
from support.strategies import ACTIVITIES, ANSWER_FILES, ANY_TEXT, TRANSCRIPTS

QUESTION = Question("haiku", "Be kind.", (("user", "Hello"),), 100, 2)
TRIAL = Trial("gate", "open-gate", "haiku", "skill", 2, QUESTION)


@pytest.mark.parametrize(
    ("grades", "outcome"),
    [
        (
            (
                Grade("contains", passed=True, reason=""),
                Grade("contains", passed=True, reason=""),
            ),
            "passed",
        ),
        (
            (
                Grade("contains", passed=True, reason=""),
                Grade("contains", passed=False, reason=""),
            ),
            "failed",
        ),
        (
            (
                Grade("contains", passed=True, reason=""),
                Grade("words", passed=False, reason="", required=False),
            ),
            "passed",
        ),
    ],
)
def test_trial_passes_if_its_required_checks_do(
    grades: tuple[Grade, ...], outcome: str
) -> None:
    assert make_record(TRIAL, Answer("x"), grades).outcome == outcome


@pytest.mark.parametrize(
    ("grades", "score"),
    [
        ([(True, 1.0), (True, 0.1), (True, 0.2)], 1.0),
        ([(False, 1.0), (False, 3.0)], 0.0),
        ([(True, 1.0), (False, 3.0)], 0.25),
    ],
)
def test_score_is_the_share_of_weight_that_passed(
    grades: list[tuple[bool, float]], score: float
) -> None:
    given = tuple(
        Grade("words", *one, required=False) for one in [(p, "", w) for p, w in grades]
    )
    assert make_record(TRIAL, Answer("x"), given).score == score


def test_graded_record_has_trial_answer_and_checks() -> None:
    grades = (Grade("contains", passed=True, reason="because"),)
    answer = Answer("text", Usage(10, 5, 2), seconds=1.23456, stored=True)
    assert make_record(TRIAL, answer, grades) == Record(
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


def test_errored_record_has_a_reason_and_no_answer() -> None:
    record = make_record(TRIAL, NoAnswer("no answer in time"))
    assert (record.outcome, record.error) == ("errored", "no answer in time")
    assert (record.skill, record.case, record.label) == ("gate", "open-gate", "haiku")
    assert (record.arm, record.run) == ("skill", 2)
    assert (record.output, record.tokens, record.seconds, record.checks) == (
        None,
        None,
        None,
        (),
    )
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
def test_tokens_need_input_and_output(usage: Usage, tokens: int | None) -> None:
    assert make_record(TRIAL, Answer("x", usage), ()).tokens == tokens


TEXT, COUNT = ANY_TEXT, st.none() | st.integers(0, MOST)
RECORDS = st.builds(
    Record,
    skill=TEXT,
    case=TEXT,
    model=TEXT,
    arm=st.sampled_from(["skill", "baseline"]),
    run=st.integers(1, MOST),
    outcome=st.sampled_from(["passed", "failed", "errored"]),
    output=st.none() | TEXT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cached_tokens=COUNT,
    seconds=st.none() | st.floats(0, MOST_SECONDS),
    stored=st.booleans(),
    checks=st.lists(
        st.builds(Grade, TEXT, st.booleans(), TEXT, st.floats(0, 9), st.booleans())
    ).map(tuple),
    error=st.none() | TEXT,
    score=st.none() | st.floats(0, 1),
    files=ANSWER_FILES,
    transcript=TRANSCRIPTS,
    agent=st.sampled_from(["chat", "loop"]),
    activity=st.none() | ACTIVITIES,
)


@given(RECORDS)
def test_record_round_trips_through_json(record: Record) -> None:
    text = json.dumps(json_values(record))
    assert form_of(Record).validate_python(json.loads(text)) == record


@given(st.lists(RECORDS, max_size=3))
def test_records_round_trip_through_text(records: list[Record]) -> None:
    text = dump_records(records)
    assert load_records(text) == records
    assert text.isascii()  # they ride on test reports and in JUnit files


def test_json_of_a_record_has_every_field() -> None:
    names = [field.name for field in dataclasses.fields(Record)]
    files = (AnswerFile.of("a", b""),)
    turns = (Turn("user", "q"),)
    done = Activity(3, 2, activated=True, read=("a.md",))
    usage = Usage(9, 5, 0, 7, hour=2)
    answer = Answer("x", usage, files=files, transcript=turns, activity=done)
    record = make_record(dataclasses.replace(TRIAL, agent="loop"), answer, ())
    written = json_values(record)
    assert list(written) == names
    assert record.usage == answer.usage


def test_a_test_report_carries_no_defaults() -> None:
    record = make_record(
        TRIAL, Answer("x", Usage(1, 2, 0)), (Grade("words", passed=True, reason="yes"),)
    )
    assert json.loads(dump_records([record])) == [
        {
            "skill": "gate",
            "case": "open-gate",
            "model": "haiku",
            "arm": "skill",
            "run": 2,
            "outcome": "passed",
            "output": "x",
            "input_tokens": 1,
            "output_tokens": 2,
            "cached_tokens": 0,
            "seconds": 0.0,
            "checks": [{"check": "words", "passed": True, "reason": "yes"}],
            "score": 1.0,
        }
    ]


def test_record_has_the_files_and_transcript_of_its_answer() -> None:
    files, transcript = (AnswerFile.of("a", b"b"),), (Turn("user", "q"),)
    record = make_record(TRIAL, Answer("x", files=files, transcript=transcript), ())
    assert (record.files, record.transcript) == (files, transcript)


def test_record_tells_the_agent_even_without_an_answer() -> None:
    trial, done = (
        dataclasses.replace(TRIAL, agent="loop", model="haiku"),
        Activity(4, 3, activated=True),
    )
    record = make_record(trial, Answer("x", activity=done), ())
    assert (record.agent, record.label, record.activity) == ("loop", "loop/haiku", done)
    assert make_record(trial, NoAnswer("no sandbox")).agent == "loop"


def test_huge_weights_still_give_a_share() -> None:
    grades = (
        Grade("a", passed=True, reason="", weight=1e308),
        Grade("b", passed=False, reason="", weight=1e308),
    )
    assert make_record(TRIAL, Answer("x"), grades).score == 0.5


def test_an_unknown_duration_stays_unknown() -> None:
    answers = [Answer("a", seconds=1.0), Answer("b", seconds=None)]
    assert make_record(TRIAL, joined(answers), ()).seconds is None
