"""OpenTelemetry: a span for each trial, if the environment asks for it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.plugin import otel
from pytest_upskill.plugin.otel import captures_content, exporters_wanted
from support.collector import Collector
from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.made import made_run

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
def test_the_environment_chooses_the_exporters(env: dict[str, str], wanted: list[str]) -> None:
    assert exporters_wanted(env) == wanted


@pytest.mark.parametrize("value", ["", "false", "no_content", "event_only"])
def test_content_is_sent_only_if_enabled(value: str) -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert not captures_content({name: value})
    assert captures_content({name: "True"})
    assert captures_content({name: "SPAN_ONLY"})


def test_a_collector_reads_a_span_for_each_trial(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace}-b7ad6b7169203331-01")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        before = time.time_ns()
        result = pytester.runpytest_inprocess(*args, "--skill-runs", "2", f"-n{workers}")
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


def test_spans_have_the_address_and_the_duration(
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
def test_an_exporter_that_fails_is_a_note_not_a_failure(
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
    message = (
        "has no exporter 'zipkin'"
        if problem == "unknown"
        else "sent by otlp_proto_http to http://127.0.0.1:"
    )
    assert message in notes[0]
    assert result.errlines == []


def test_without_the_packages_a_note_says_what_to_install(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]
    pytester.makeconftest("import sys\nsys.modules['opentelemetry'] = None")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    result = pytester.runpytest_subprocess(*args)
    assert result.ret == 0
    message = " ".join(result.outlines)
    assert message.count("No trace was sent: OpenTelemetry is not installed.") == 1
    assert 'pip install "pytest-upskill[otel]"' in message


def test_the_extra_names_what_is_imported() -> None:
    import tomllib

    file = Path(__file__).parents[2] / "pyproject.toml"
    project: dict[str, Any] = tomllib.loads(file.read_text())
    extra = project["project"]["optional-dependencies"]["otel"]
    groups = project["dependency-groups"].values()
    assert set(extra) <= {one for group in groups for one in group if isinstance(one, str)}


@contextmanager
def careless_collector(start: bytes, goes_on: bytes) -> Iterator[str]:
    """The address of a server that never comes to the end of its reply."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(start)
                    while not ended.wait(0.0 if len(goes_on) > 1 else 0.05):
                        connection.sendall(goes_on)

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(20)


def notes_of_export(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    return otel.OtelExport({}, dict).pytest_upskill_finished(made_run(cases=1))


@pytest.mark.parametrize(("status", "notes"), [("200 OK", 0), ("400 Bad", 1)])
def test_only_the_beginning_of_a_reply_is_read(
    status: str, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = f"HTTP/1.1 {status}\r\ncontent-length: 1000000000000\r\n\r\n".encode()
    with careless_collector(start, b"x" * 4096) as url:
        assert len(notes_of_export(url, monkeypatch)) == notes


@pytest.mark.parametrize("start", ["content-length: 9999\r\n\r\n", "x-slow: "])
def test_a_reply_that_drips_does_not_hold_up_the_run(
    start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "_SECONDS_IN_ALL", 0.5)
    monkeypatch.setattr(otel, "_SECONDS", 1.0)
    with careless_collector(f"HTTP/1.1 200 OK\r\n{start}".encode(), b"x") as url:
        [note] = notes_of_export(url, monkeypatch)
    assert note == f"No trace was sent by otlp_proto_http to {url}: no answer in time"
