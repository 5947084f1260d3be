"""Which errors have the same cause, and how that is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.errors import ModelError
from pytest_upskill.results.causes import cause_lines, find_causes, same_cause
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.written_calls import ADVICE, PROBLEM


def errored(model: str, error: str, agent: str = "chat") -> Record:
    return Record("gate", "c", model, "skill", 1, "errored", error=error, agent=agent)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "budget reached ($0.0098 of $0.01): raise it",
            "budget reached (<$0.001 of $1): raise it",
        ),
        (
            "this call could exceed the budget ($0.001 of $0.01 spent): raise it",
            "budget reached ($0.0098 of $0.01): raise it",
        ),
        (
            "budget reached (900 of 1,000 tokens)",
            "budget reached (1,010 of 1,000 tokens)",
        ),
        (
            "can't connect to http://127.0.0.1:40001/v1",
            "can't connect to http://127.0.0.1:54321/v1",
        ),
        (
            "Connect call failed ('127.0.0.1', 9)",
            "Connect call failed ('127.0.0.1', 99)",
        ),
        ("500 from http://h/v1: oops (5 attempts)", "500 from http://h/v1: oops"),
        ("down (request id req_0548c93e)", "down (request id req_9f48aa3e)"),
        ("down, request_id: 7f3c", "down, request_id: 9a"),
        ("oops req_011CSHoEeqs5C35K2UUqR7Fy", "oops req_011CSHoEfqs5C35K2UUqR7Fz"),
        (
            "oops 8b6f1e9e-3c1d-4f9a-9d5f-0c9a5a1f7d11",
            "oops 0b6f1e9e-3c1d-4f9a-9d5f-0c9a5a1f7d12",
        ),
        ("Used 29734, try again in 6.2s.", "Used 30001, try again in 860ms."),
    ],
)
def test_sums_ports_ids_and_tries_make_no_other_cause(one: str, other: str) -> None:
    assert same_cause(one) == same_cause(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("401 from http://h/v1: no", "403 from http://h/v1: no"),
        (
            "404 from http://h/v1: gpt-4 not found",
            "404 from http://h/v1: gpt-5 not found",
        ),
        ("can't connect to http://10.0.0.1/v1", "can't connect to http://10.0.0.2/v1"),
        (
            "can't connect to http://localhost:11434/v1",
            "can't connect to http://localhost:1234/v1",
        ),
        (
            "can't connect to http://[::1]:8000/v1",
            "can't connect to http://[::1]:8001/v1",
        ),
        ("the gateway says HTTP 401", "the gateway says HTTP 503"),
        ("Error code: 401 - {'error': 'no'}", "Error code: 429 - {'error': 'no'}"),
        ("the agent ended with status 1", "the agent ended with status 137"),
        ("budget reached ($1 of $1)", "can't connect to http://h/v1"),
        (
            "the judge is unsure about 'It is short.'",
            "the judge is unsure about 'It is long.'",
        ),
    ],
)
def test_other_errors_are_other_causes(one: str, other: str) -> None:
    assert same_cause(one) != same_cause(other)


@given(st.text())
def test_any_text_has_a_cause(text: str) -> None:
    assert same_cause(text) == same_cause(text)


def test_a_megabyte_takes_no_time() -> None:
    for part in ("req_", "1,", "a1b2", "request id ", "0-", "$", " (5 attempts"):
        same_cause(part * (1_000_000 // len(part)))


def test_models_of_the_same_dead_server_are_one_cause() -> None:
    records = [
        (
            "a",
            errored(
                "m", "m: can't connect to http://h:1/v1 (5 attempts). Is it running?"
            ),
        ),
        ("a", errored("m", "m: can't connect to http://h:1/v1. Is it running?")),
        (
            "b",
            errored("n", "n: can't connect to http://h:1/v1. Is it running?", "loop"),
        ),
        ("c", errored("m", "the judge gave no ruling: j: 401 from http://j/v1")),
    ]
    first, second = find_causes(records)
    assert (
        first.text
        == "m, n: can't connect to http://h:1/v1 (5 attempts). Is it running?"
    )
    assert (list(first.tests), first.answers) == (["a", "b"], 3)
    assert cause_lines([second, first]) == [
        f"3 answers are missing in 2 tests: {first.text}",
        "1 answer is missing: the judge gave no ruling: j: 401 from http://j/v1.",
    ]


def test_many_causes_are_counted() -> None:
    words = "abcde"
    records = [(word, errored("m", f"m: {word} broke.")) for word in words]
    *told, last = cause_lines(find_causes(records))
    assert told == [f"1 answer is missing: m: {word} broke." for word in words[:3]]
    assert last == "2 more for 2 other reasons."


def test_of_calls_as_text_it_is_told_in_how_many_trials() -> None:
    error = f"m: {PROBLEM}. {ADVICE}"
    answered = Record(
        "gate", "c", "m", "skill", 2, "failed", agent="loop", activity=Activity()
    )
    records = [
        ("a", errored("m", error, "loop")),
        ("b", errored("m", error, "loop")),
        ("b", answered),
        ("b", errored("n", "n: down", "loop")),  # on another model
        ("c", Record("gate", "c", "m", "skill", 1, "passed")),  # has no tools
    ]
    first, *_ = cause_lines(find_causes(records))
    assert first == f"m: {PROBLEM} in 2 of 3 trials. {ADVICE}."


def test_what_a_server_says_is_shown_on_one_safe_line() -> None:
    (line,) = cause_lines(
        find_causes([("a", errored("m", "m: \x1b[31mno\n::error::x" + "y" * 9999))])
    )
    assert "\x1b" not in line
    assert "\n" not in line
    assert len(line) < 600


@pytest.mark.parametrize(
    ("problem", "tries", "told"),
    [
        ("it is down.", "", "it is down. Wait"),
        ("it is down..", " (2 attempts)", "it is down (2 attempts). Wait"),
        ("it is down", "", "it is down. Wait"),
    ],
)
def test_no_message_has_two_periods(problem: str, tries: str, told: str) -> None:
    assert ModelError(problem, "Wait").message(str, tries) == told
    assert ModelError(problem).message(str) == problem
