"""OpenTelemetry: a span for each trial, if the environment asks for it."""

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.plugin import otel
from pytest_upskill.plugin.otel import captures_content, exporters_wanted
from pytest_upskill.results.run import RunResults
from support.collector import Collector
from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.made import made_record, made_run
from support.runs import run_skills

CASES = [case("Open?", "gate up", "Type", id="open"), case("Shut?", "gate down", id="shut")]


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
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    trace = "0af7651916cd43dd8448eb211c80319c"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace}-b7ad6b7169203331-01")
    with Collector() as collector, LoopbackServer(lambda _: Reply("Type gate up.")) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        run = run_skills(pytester, server, "--skill-runs", "2", "-n", workers)
    assert run.status == 1  # since a case fails
    assert set(collector.paths) == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "pytest-upskill"
    *trials, whole = collector.spans
    assert whole["name"] == "upskill run"
    assert whole["parent"].hex() == "b7ad6b7169203331"
    assert len(trials) == 8
    assert {span["parent"] for span in trials} == {whole["id"]}
    assert {span["trace"].hex() for span in collector.spans} == {trace}
    assert {span["kind"] for span in trials} == {3}  # of a client
    for span in trials:  # from the moment when it was asked, for as long as the answer took
        assert span["start"] != whole["start"]
        length = (span["end"] - span["start"]) / 10**9
        assert length == pytest.approx(span["attributes"]["upskill.seconds"], abs=0.001)
    first = next(span for span in trials if span["attributes"]["upskill.arm"] == "skill")
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai_compatible",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.output_tokens": 5,
        "server.address": "127.0.0.1",
        "upskill.case": "open",
    }
    assert expected.items() <= first["attributes"].items()
    assert [(name, event["upskill.check.asks"]) for name, event in first["events"]] == [
        ("gen_ai.evaluation.result", "gate up"),
        ("gen_ai.evaluation.result", "Type"),
    ]
    assert "Type gate up." not in str(collector.requests)


def exported(results: RunResults | None = None) -> list[str]:
    """The notes of an export."""
    return otel.OtelExport({}, dict).pytest_upskill_finished(results or made_run(cases=1))


def test_a_trial_without_an_answer_has_the_status_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = made_record("gate", "case-0", "haiku", "skill", 1, outcome="errored", error="no network")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/here")
        assert exported(replace(made_run(cases=1), records=(lost,))) == []
    assert collector.paths == ["/here"]
    assert collector.spans[0]["status"] == (2, "no network")


def test_an_exporter_that_fails_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    with Collector(status=400) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        [note] = exported()
    assert note.startswith(f"No trace was sent by otlp_proto_http to {collector.url}")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    [note] = exported()
    assert "has no exporter 'zipkin'" in note


def test_a_collector_that_is_gone_fails_no_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.socket() as taken:  # it listens to nobody
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        run = run_skills(pytester, model)
    assert (run.status, run.outcomes) == (0, {"passed": 1})
    [note] = [line for line in run.result.outlines if "trace" in line.lower()]
    assert url in note
    assert run.result.errlines == []


def test_without_the_packages_a_note_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    [note] = exported()
    assert 'pip install "pytest-upskill[otel]"' in note


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


@pytest.mark.parametrize(("status", "notes"), [("200 OK", 0), ("400 Bad", 1)])
def test_only_the_beginning_of_a_reply_is_read(
    status: str, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = f"HTTP/1.1 {status}\r\ncontent-length: 1000000000000\r\n\r\n".encode()
    with careless_collector(start, b"x" * 4096) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        assert len(exported()) == notes


@pytest.mark.parametrize("start", ["content-length: 9999\r\n\r\n", "x-slow: "])
def test_a_reply_that_drips_does_not_hold_up_the_run(
    start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "_SECONDS_IN_ALL", 0.2)
    monkeypatch.setattr(otel, "_SECONDS", 0.3)
    with careless_collector(f"HTTP/1.1 200 OK\r\n{start}".encode(), b"x") as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        [note] = exported()
    assert note.startswith(f"No trace was sent by otlp_proto_http to {url}: ")
