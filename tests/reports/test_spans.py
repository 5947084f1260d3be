"""OpenTelemetry spans of a run: names, times, and what is kept private."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.reports.export.spans import SpanContext, TrialKey, run_span, trial_spans
from pytest_upskill.settings import Gates
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade
from support.agent_runs import agent_run
from support.made import STARTED, made_record, made_run

ADDRESS = "https://user:secret@api.example/v1"
SPEC = ModelSpec("haiku", PROVIDERS["anthropic"], "id-of-haiku", ADDRESS)


def test_a_span_has_the_names_of_the_conventions() -> None:
    made = made_run(cases=1)
    key = TrialKey.of(made.records[1])
    asked_at = STARTED.timestamp() + 2
    answer = Answer("Type gate up.", stop="end", seconds=1.25, asked_at=asked_at)
    _, span = trial_spans(made, SpanContext({"haiku": SPEC}, {key: [answer]}))
    assert span.name == "chat id-of-haiku"
    assert (span.start, span.end) == (int(asked_at) * 10**9, int((asked_at + 1.25) * 10**9))
    assert span.error is None
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "id-of-haiku",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "api.example",
        "server.port": 443,
        "upskill.skill": "gate",
        "upskill.case": "case-0",
        "upskill.model": "haiku",
        "upskill.arm": "skill",
        "upskill.run": 1,
        "upskill.outcome": "passed",
        "upskill.stored": False,
        "upskill.score": 1.0,
        "upskill.cost": 0.0015,
        "upskill.seconds": 1.25,
    }
    assert span.events == (
        {
            "gen_ai.evaluation.name": "contains",
            "gen_ai.evaluation.score.value": 1.0,
            "gen_ai.evaluation.score.label": "pass",
        },
    )


def test_a_trial_of_an_agent_is_a_span_of_an_agent() -> None:
    _, span = trial_spans(agent_run(cases=1), SpanContext({"haiku": SPEC}))
    assert span.name == "invoke_agent loop"
    expected = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "loop",
        "gen_ai.request.model": "id-of-haiku",
        "gen_ai.provider.name": "anthropic",
        "upskill.agent": "loop",
        "upskill.model": "haiku",
        "upskill.turns": 5,
        "upskill.tool_calls": 4,
        "upskill.activated": True,
    }
    assert {name: span.attributes.get(name) for name in expected} == expected


def test_several_questions_of_a_trial_are_one_span_from_the_first_to_the_last() -> None:
    made = made_run(cases=1, arms=("skill",))
    answers = [
        Answer("a", seconds=1.0, asked_at=STARTED.timestamp() + 1),
        Answer("b", seconds=2.0, asked_at=STARTED.timestamp() + 5, stop="length"),
    ]
    (span,) = trial_spans(made, SpanContext({}, {TrialKey.of(made.records[0]): answers}))
    assert span.end - span.start == 6 * 10**9
    assert span.attributes["gen_ai.response.finish_reasons"] == ["length"]


def test_a_cached_answer_takes_no_time() -> None:
    made = made_run(cases=1, arms=("skill",))
    made = replace(made, records=(replace(made.records[0], stored=True),))
    stored = Answer("a", seconds=9.0, stored=True)
    (span,) = trial_spans(made, SpanContext({}, {TrialKey.of(made.records[0]): [stored]}))
    assert span.start == span.end == run_span(made).start
    assert span.attributes["upskill.stored"] is True


def test_an_error_has_a_type_and_a_reason() -> None:
    lost = made_record("gate", "case-0", "haiku", "skill", 1, outcome="errored", checks=())
    for output, kind in ((None, "no_answer"), ("x", "not_graded")):
        record = replace(lost, output=output, error="no network\nat all")
        (span,) = trial_spans(replace(made_run(cases=1), records=(record,)), SpanContext({}))
        assert span.attributes["error.type"] == kind
        assert span.error == "no network at all"


def test_the_run_has_a_span_with_its_gate() -> None:
    span = run_span(made_run(gates=Gates(min_lift=1.0)))
    assert span.attributes["upskill.gate.passed"] is False
    assert span.attributes["vcs.ref.head.revision"] == "c0ffee" * 6 + "c0ff"
    assert span.end - span.start == 12.5 * 10**9
    assert "upskill.gate.passed" not in run_span(made_run()).attributes


@given(st.text(), st.text())
def test_content_is_sent_only_if_asked_for(answer: str, question: str) -> None:
    secret, asked = f"s3cret{answer}\ud800", f"qu3stion{question}"
    grades = (Grade("regex", False, f'fits "{secret}"', asks="x"),)
    record = made_record("gate", "case-0", "haiku", "skill", 1, output=secret, checks=grades)
    made = replace(made_run(cases=1), records=(record,), questions={("gate", "case-0"): asked})
    (closed,) = trial_spans(made, SpanContext({"haiku": SPEC}))
    assert "s3cret" not in repr(closed)
    assert "qu3stion" not in repr(closed)
    assert "secret@" not in repr(closed)  # the password of an address
    (opened,) = trial_spans(made, SpanContext({"haiku": SPEC}, content=True))
    (message,) = json.loads(str(opened.attributes["gen_ai.output.messages"]))
    assert message["parts"] == [{"type": "text", "content": secret}]
    assert "s3cret" in str(opened.events[0]["gen_ai.evaluation.explanation"])
    texts = [value for value in opened.attributes.values() if isinstance(value, str)]
    assert all(text.encode("utf-8") for text in texts)
