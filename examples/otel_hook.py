"""A conftest.py that sends a trace of a run by OpenTelemetry,
with a span for each answer.

pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http

Every span begins with the run. Spans are lost if no collector answers.
Questions, answers and the reasons of checks are not sent: they may quote anything.
"""

import os

from pytest_upskill import RunResults


def pytest_upskill_finished(results: RunResults) -> str | None:
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import StatusCode, set_span_in_context

    provider = TracerProvider(
        resource=Resource.create({"service.name": "pytest-upskill"})
    )
    queue = len(results.records) + 512  # spans beyond it would be dropped
    exporter = OTLPSpanExporter(timeout=5)  # the run waits for it
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=queue))
    tracer = provider.get_tracer("pytest_upskill")
    start = round(results.started.timestamp() * 1e9)
    run = tracer.start_span("upskill run", start_time=start)
    for record in results.records:
        span = tracer.start_span(
            f"chat {record.model}", set_span_in_context(run), start_time=start
        )
        attributes = {
            "gen_ai.request.model": results.model_ids.get(record.label),
            "gen_ai.usage.input_tokens": record.input_tokens,
            "gen_ai.usage.output_tokens": record.output_tokens,
            "upskill.skill": record.skill,
            "upskill.case": record.case,
            "upskill.arm": record.arm,
            "upskill.run": record.run,
            "upskill.outcome": record.outcome,
        }
        span.set_attributes(
            {name: value for name, value in attributes.items() if value is not None}
        )
        for grade in record.checks:
            passed = {
                "gen_ai.evaluation.name": grade.check,
                "gen_ai.evaluation.score.value": grade.passed,
            }
            span.add_event("gen_ai.evaluation.result", passed)
        if record.outcome == "errored":
            span.set_status(StatusCode.ERROR, record.error)
        span.end(start + round((record.seconds or 0) * 1e9))
    run.end(start + round(results.seconds * 1e9))
    provider.shutdown()
    return f"handed {len(results.records)} spans to the exporter"
