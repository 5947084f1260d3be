"""OpenTelemetry: a span for each trial, sent to whom the environment names, and to nobody else."""

import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.models import ModelSpec
from pytest_upskill.models.names import PROVIDERS
from pytest_upskill.plugin.otel import captures_content, exporters_wanted
from pytest_upskill.reports.export.spans import Known, TrialKey, run_span, trial_spans
from pytest_upskill.settings import Gates
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade
from support.collector import Collector
from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.made import STARTED, made_record, made_run

ADDRESS = "https://user:secret@api.example/v1"
SPEC = ModelSpec("haiku", PROVIDERS["anthropic"], "id-of-haiku", ADDRESS)
CASES = [case("Open?", "gate up", "Type", id="open"), case("Shut?", "gate down", id="shut")]


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    write_skill(pytester.path / "skills/gate", CASES)
    return ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, []),
        ({"OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp, console"}, ["otlp_proto_http", "console"]),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            ["otlp_proto_grpc"],
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "TRUE"}, []),
        ({"OTEL_SERVICE_NAME": "x"}, []),
    ],
)
def test_the_environment_says_whether_and_to_whom(env: dict[str, str], wanted: list[str]) -> None:
    assert exporters_wanted(env) == wanted


@pytest.mark.parametrize("value", ["", "false", "no_content", "event_only"])
def test_content_is_sent_only_if_that_is_said(value: str) -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert not captures_content({name: value})
    assert captures_content({name: "True"})
    assert captures_content({name: "SPAN_ONLY"})


def test_a_span_has_the_names_of_the_conventions() -> None:
    made = made_run(cases=1)
    key = TrialKey.of(made.records[1])
    asked_at = STARTED.timestamp() + 2
    answer = Answer("Type gate up.", stop="end", seconds=1.25, asked_at=asked_at)
    _, span = trial_spans(made, Known({"haiku": SPEC}, {key: [answer]}))
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


def test_several_questions_of_a_trial_are_one_span_from_the_first_to_the_last() -> None:
    made = made_run(cases=1, arms=("skill",))
    answers = [
        Answer("a", seconds=1.0, asked_at=STARTED.timestamp() + 1),
        Answer("b", seconds=2.0, asked_at=STARTED.timestamp() + 5, stop="length"),
    ]
    (span,) = trial_spans(made, Known({}, {TrialKey.of(made.records[0]): answers}))
    assert span.end - span.start == 6 * 10**9
    assert span.attributes["gen_ai.response.finish_reasons"] == ["length"]


def test_what_was_stored_is_a_moment_and_says_so() -> None:
    made = made_run(cases=1, arms=("skill",))
    made = replace(made, records=(replace(made.records[0], stored=True),))
    stored = Answer("a", seconds=9.0, stored=True)
    (span,) = trial_spans(made, Known({}, {TrialKey.of(made.records[0]): [stored]}))
    assert span.start == span.end == run_span(made).start
    assert span.attributes["upskill.stored"] is True


def test_an_error_has_a_type_and_a_reason() -> None:
    lost = made_record("gate", "case-0", "haiku", "skill", 1, outcome="errored", checks=())
    for output, kind in ((None, "no_answer"), ("x", "not_graded")):
        record = replace(lost, output=output, error="no network\nat all")
        (span,) = trial_spans(replace(made_run(cases=1), records=(record,)), Known({}))
        assert span.attributes["error.type"] == kind
        assert span.error == "no network at all"


def test_the_run_has_a_span_with_its_gate() -> None:
    span = run_span(made_run(gates=Gates(min_lift=1.0)))
    assert span.attributes["upskill.gate.passed"] is False
    assert span.attributes["vcs.ref.head.revision"] == "c0ffee" * 6 + "c0ff"
    assert span.end - span.start == 12.5 * 10**9
    assert "upskill.gate.passed" not in run_span(made_run()).attributes


@settings(deadline=None)
@given(st.text(), st.text())
def test_no_answer_and_no_question_is_sent_unless_that_is_said(answer: str, question: str) -> None:
    secret, asked = f"s3cret{answer}\ud800", f"qu3stion{question}"
    grades = (Grade("regex", False, f'fits "{secret}"', asks="x"),)
    record = made_record("gate", "case-0", "haiku", "skill", 1, output=secret, checks=grades)
    made = replace(made_run(cases=1), records=(record,), questions={("gate", "case-0"): asked})
    (closed,) = trial_spans(made, Known({"haiku": SPEC}))
    assert "s3cret" not in repr(closed)
    assert "qu3stion" not in repr(closed)
    assert "secret@" not in repr(closed)  # the password of an address
    (opened,) = trial_spans(made, Known({"haiku": SPEC}, content=True))
    (message,) = json.loads(str(opened.attributes["gen_ai.output.messages"]))
    assert message["parts"] == [{"type": "text", "content": secret}]
    assert "s3cret" in str(opened.events[0]["gen_ai.evaluation.explanation"])
    texts = [value for value in opened.attributes.values() if isinstance(value, str)]
    assert all(text.encode("utf-8") for text in texts)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_collector_reads_a_span_for_each_trial(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace}-b7ad6b7169203331-01")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        before = time.time_ns()
        result = pytester.runpytest_inprocess(*args, "--skill-runs", "2", workers)
    assert result.ret == 1  # since a case fails
    assert set(collector.paths) == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "pytest-upskill"
    *trials, run = collector.spans
    assert run["name"] == "upskill run"
    assert run["parent"].hex() == "b7ad6b7169203331"
    assert len(trials) == 8
    assert {span["parent"] for span in trials} == {run["id"]}
    assert {span["trace"].hex() for span in collector.spans} == {trace}
    assert {span["kind"] for span in trials} == {3}  # of a client
    assert all(before <= span["start"] <= span["end"] <= run["end"] for span in trials)
    first = next(span for span in trials if span["attributes"]["upskill.arm"] == "skill")
    assert first["attributes"]["gen_ai.operation.name"] == "chat"
    assert first["attributes"]["upskill.case"] == "open"
    assert first["attributes"]["gen_ai.usage.output_tokens"] > 0
    assert [(name, event["upskill.check.asks"]) for name, event in first["events"]] == [
        ("gen_ai.evaluation.result", "gate up"),
        ("gen_ai.evaluation.result", "Type"),
    ]
    assert "Type gate up." not in str(collector.requests)


def test_where_a_model_is_and_how_long_it_took_is_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    with Collector() as collector, LoopbackServer(lambda _: Reply("gate up", delay=0.05)) as model:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/here")
        url = ["--skill-base-url", f"{model.url}/v1"]
        pytester.runpytest_inprocess("--skill", "skills", "--model", "m", *url)
    assert collector.paths == ["/here"]
    for span in collector.spans[:-1]:
        attributes = span["attributes"]
        assert attributes["server.address"] == "127.0.0.1"
        assert attributes["gen_ai.provider.name"] == "openai_compatible"
        assert attributes["gen_ai.response.finish_reasons"] == ["stop"]
        assert span["end"] - span["start"] >= 0.05 * 10**9
        assert (span["end"] - span["start"]) / 10**9 == pytest.approx(
            attributes["upskill.seconds"], abs=0.01
        )


def test_a_trial_without_an_answer_has_the_status_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(fake="def answer(question): raise RuntimeError('no network')")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        pytester.runpytest_inprocess("--skill", "skills", "--model", "scripted:fake.py:answer")
    for span in collector.spans[:-1]:
        assert span["status"][0] == 2
        assert "no network" in span["status"][1]
        assert span["attributes"]["error.type"] == "no_answer"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


@pytest.mark.parametrize("problem", ["gone", "refusing", "unknown"])
def test_an_exporter_that_fails_is_one_note_and_no_failure(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with Collector(status=400) as collector:
        urls = {"gone": f"http://127.0.0.1:{free_port()}", "refusing": collector.url}
        if problem == "unknown":
            monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
        else:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", urls[problem])
        result = pytester.runpytest_subprocess(*args)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    notes = [line for line in result.outlines if "trace" in line.lower()]
    assert len(notes) == 1
    told = (
        "has no exporter 'zipkin'"
        if problem == "unknown"
        else "sent by otlp_proto_http to http://127.0.0.1:"
    )
    assert told in notes[0]
    assert result.errlines == []


def test_without_the_packages_it_says_what_to_install(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]
    pytester.makeconftest("import sys\nsys.modules['opentelemetry'] = None")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    result = pytester.runpytest_subprocess(*args)
    assert result.ret == 0
    told = " ".join(result.outlines)
    assert told.count("No trace was sent: OpenTelemetry is asked for, but not installed.") == 1
    assert 'pip install "pytest-upskill[otel]"' in told


def test_the_extra_names_what_is_imported() -> None:
    import tomllib

    file = Path(__file__).parents[2] / "pyproject.toml"
    project: dict[str, Any] = tomllib.loads(file.read_text())
    extra = project["project"]["optional-dependencies"]["otel"]
    assert set(extra) <= set(project["dependency-groups"]["dev"])
