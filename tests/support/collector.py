"""An OpenTelemetry collector on 127.0.0.1 that decodes OTLP over HTTP."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401  so that pytester keeps it
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)


class Collector:
    """Keeps what it got: ``spans`` are plain dictionaries."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [
            {
                "name": span.name,
                "id": span.span_id,
                "parent": span.parent_span_id,
                "start": span.start_time_unix_nano,
                "end": span.end_time_unix_nano,
                "status": (span.status.code, span.status.message),
                "attributes": _attributes(span),
                "events": [(event.name, _attributes(event)) for event in span.events],
            }
            for request in self.requests
            for part in request.resource_spans
            for scope in part.scope_spans
            for span in scope.spans
        ]


def _attributes(holder: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in holder.attributes}


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
