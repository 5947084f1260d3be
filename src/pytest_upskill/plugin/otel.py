"""Sends spans by OpenTelemetry (the extra ``otel``) if its environment variables ask for it.

Otherwise nothing of OpenTelemetry is imported.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from .. import __version__
from .._util.credentials import without_credentials
from .._util.keys import without_keys
from .._util.texts import counted, one_line
from ..models import ModelSpec
from ..models.model import shown_address
from ..reports.export.spans import (
    EVALUATION,
    SpanContext,
    SpanData,
    TrialKey,
    Value,
    run_span,
    trial_spans,
)
from ..results.run import RunResults
from ..trials.answer import Answer

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_TIMEOUTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_INSTALL: Final = 'pip install "pytest-upskill[otel]"'
_SECONDS: Final = 3.0  # for one request: a run must not wait for a dead server
_SECONDS_IN_ALL: Final = 20.0
_BATCH: Final = 200
_LONGEST_REPLY: Final = 8192  # bytes of a collector's reply
# Who sets one of these has a session of their own.
_SESSIONS: Final = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
)


def exporters_wanted(env: Mapping[str, str]) -> list[str]:
    """The names of the exporters that OpenTelemetry's variables ask for."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    exporters = env.get("OTEL_TRACES_EXPORTER", "").strip()
    if not exporters and not any(env.get(name, "").strip() for name in _ENDPOINTS):
        return []
    names = [name.strip() for name in (exporters or "otlp").split(",")]
    protocol = next((env[name] for name in _PROTOCOLS if env.get(name)), "http/protobuf")
    otlp = "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"
    chosen = [otlp if name == "otlp" else name for name in names if name not in ("", "none")]
    return list(dict.fromkeys(chosen))


def captures_content(env: Mapping[str, str]) -> bool:
    return env.get(_CONTENT, "").strip().lower() in ("true", "span_only", "span_and_event")


class OtelExport:
    """Implements pytest_upskill_finished: sends the spans of a run."""

    def __init__(
        self, specs: Mapping[str, ModelSpec], answers: Callable[[], Mapping[TrialKey, list[Answer]]]
    ) -> None:
        self._specs = specs
        self._answers = answers

    def pytest_upskill_finished(self, results: RunResults) -> list[str]:
        """Send the spans, if an exporter is configured; a line for each problem."""
        exporters = exporters_wanted(os.environ)
        if not exporters or not results.records:
            return []
        context = SpanContext(self._specs, self._answers(), captures_content(os.environ))
        try:
            spans = _spans(results, context)
        except ImportError:
            return [f"No trace was sent: OpenTelemetry is not installed. Run: {_INSTALL}"]
        return [note for name in exporters for note in _send(spans, name)]


def _send(spans: "Sequence[ReadableSpan]", name: str) -> Iterator[str]:
    entries = list(entry_points(group="opentelemetry_traces_exporter", name=name))
    if not entries:
        yield f"No trace was sent: OpenTelemetry has no exporter {name!r}. Run: {_INSTALL}"
        return
    sent = [0]

    def export() -> None:
        try:
            for number in _exported(spans, _exporter(name, entries[0].load())):
                sent.append(number)
        except Exception as error:  # an exporter must not fail the run
            log.append(repr(error))

    with _log_kept() as log:
        # A collector that sends a byte now and then is never late, and would hold up the run.
        worker = threading.Thread(target=export, name="upskill-otel", daemon=True)
        worker.start()
        worker.join(_SECONDS_IN_ALL + _SECONDS)
        if worker.is_alive():
            log.append("no answer in time")
    if sent[-1] < len(spans):
        share = f"{sent[-1]:,} of {counted(len(spans), 'span')}"
        result = f"Only {share} were sent by {name}" if sent[-1] else f"No trace was sent by {name}"
        yield f"{result}{_endpoint()}" + (
            f": {one_line(without_credentials(log[-1]), 200)}" if log else ""
        )


def _endpoint() -> str:
    """The address in the environment, without secrets."""
    named = (os.environ.get(variable) for variable in _ENDPOINTS)
    address = next(filter(None, named), None)
    return f" to {one_line(shown_address(address), 100)}" if address else ""


def _exporter(name: str, make: "Callable[..., SpanExporter]") -> "SpanExporter":
    timed = any(os.environ.get(variable) for variable in _TIMEOUTS)
    options: dict[str, Any] = {"timeout": _SECONDS} if name.startswith("otlp") and not timed else {}
    if name == "otlp_proto_http" and not any(map(os.environ.get, _SESSIONS)):
        options["session"] = _limited_session()
    return make(**options)


def _limited_session() -> "requests.Session":
    """Reads only the beginning of a collector's reply, which may have no end."""
    import requests

    def read(response: requests.Response, **_: object) -> None:
        response._content = b"".join(islice(response.iter_content(1), _LONGEST_REPLY))
        response.close()

    session = requests.Session()
    session.hooks["response"] = [read]
    return session


def _exported(spans: "Sequence[ReadableSpan]", exporter: "SpanExporter") -> Iterator[int]:
    """How many spans were sent so far, until the first failure."""
    from opentelemetry.sdk.trace.export import SpanExportResult

    until = time.monotonic() + _SECONDS_IN_ALL
    sent = 0
    try:
        while sent < len(spans) and time.monotonic() < until:
            batch = spans[sent : sent + _BATCH]
            if exporter.export(batch) is not SpanExportResult.SUCCESS:
                break
            sent += len(batch)
            yield sent
    finally:
        exporter.shutdown()


@contextmanager
def _log_kept() -> Iterator[list[str]]:
    """Catch what OpenTelemetry logs: it goes into our one line, not to the terminal."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("opentelemetry")
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _spans(results: RunResults, context: SpanContext) -> "Sequence[ReadableSpan]":
    """Made with a provider of their own, not the one that a project's tests may set up."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import SpanKind, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    env = os.environ
    named = "OTEL_SERVICE_NAME" in env or "service.name" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "pytest-upskill"})
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("pytest_upskill", __version__)
    # A CI job that is traced itself passes on its span in this variable.
    outer = TraceContextTextMapPropagator().extract({"traceparent": env.get("TRACEPARENT", "")})
    run = run_span(results)
    parent = tracer.start_span(run.name, outer, SpanKind.INTERNAL, start_time=run.start)
    _fill(parent, run)
    inside = set_span_in_context(parent)
    for data in trial_spans(results, context):
        span = tracer.start_span(data.name, inside, SpanKind.CLIENT, start_time=data.start)
        _fill(span, data)
        span.end(data.end)
    parent.end(run.end)
    return memory.get_finished_spans()


def _fill(span: "Span", data: SpanData) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attributes(_without_keys(data.attributes))
    for event in data.events:
        span.add_event(EVALUATION, _without_keys(event), data.end)
    if data.error is not None:
        span.set_status(StatusCode.ERROR, without_keys(data.error))


def _without_keys(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: without_keys(value) if isinstance(value, str) else value
        for name, value in attributes.items()
    }
