"""The trials of a run as spans, by OpenTelemetry's semantic conventions for generative AI.

These are plain values. To send them takes optional packages, and is done elsewhere.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ..._util.texts import one_line, shortened
from ...models import ModelSpec
from ...results.run import RunResults
from ...trials.answer import Answer
from ...trials.records import Record
from ...trials.subject import CHAT, Arm
from ...trials.trial import Trial

Value = str | bool | int | float | list[str]

EVALUATION: Final = "gen_ai.evaluation.result"
# Names of the conventions; providers that they lack keep their own names.
_PROVIDERS: Final = {
    "hf": "huggingface",
    "generic": "openai_compatible",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
}
_FINISH: Final = {"end": "stop", "refusal": "content_filter"}
_LONGEST_CONTENT: Final = 50_000


class TrialKey(NamedTuple):
    """Identifies a trial and its record."""

    skill: str
    case: str
    model: str
    arm: Arm
    run: int

    @classmethod
    def of(cls, trial: Trial | Record) -> "TrialKey":
        return cls(trial.skill, trial.case, trial.label, trial.arm, trial.run)


@dataclass(frozen=True)
class SpanData:
    """A span: times in nanoseconds since 1970, and the error if its status is one."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, Value]
    events: tuple[Mapping[str, Value], ...] = ()  # one for each check
    error: str | None = None


@dataclass(frozen=True)
class SpanContext:
    """What spans need in addition to the results of a run."""

    specs: Mapping[str, ModelSpec]
    answers: Mapping[TrialKey, list[Answer]] = field(default_factory=dict)
    content: bool = False  # whether questions and answers may be sent


def run_span(results: RunResults) -> SpanData:
    """The parent of the spans of all trials."""
    start = _nanoseconds(results.started.timestamp())
    attributes: dict[str, Value] = {
        "upskill.skills": [skill.name for skill in results.skills],
        "upskill.models": list(results.model_ids),
        "upskill.tests": len(results.tests),
    }
    if results.gate.passed is not None:
        attributes["upskill.gate.passed"] = results.gate.passed
        attributes["upskill.gate.reasons"] = list(results.gate.reasons)
    if results.interrupted is not None:
        attributes["upskill.interrupted"] = results.interrupted
    if results.commit:
        attributes["vcs.ref.head.revision"] = results.commit.id
    end = start + _nanoseconds(results.seconds)
    return SpanData("upskill run", start, end, _valid(attributes))


def trial_spans(results: RunResults, context: SpanContext) -> Iterator[SpanData]:
    for record in results.records:
        answers = context.answers.get(TrialKey.of(record), [])
        model_id = results.model_ids.get(record.label, record.label)
        start, end = _times(results, answers)
        yield SpanData(
            _name(record, model_id),
            start,
            end,
            _valid(
                {
                    **_model(model_id, context.specs.get(record.model)),
                    **_agent(record),
                    **_usage(record, answers),
                    **_trial(record),
                    **(_content(results, record) if context.content else {}),
                }
            ),
            tuple(map(_valid, _evaluations(record, with_reasons=context.content))),
            one_line(record.error or "", 500) if record.outcome == "errored" else None,
        )


def _name(record: Record, model_id: str) -> str:
    if record.agent == CHAT:
        return f"chat {one_line(model_id, 100)}"
    return f"invoke_agent {one_line(record.agent, 100)}"


def _agent(record: Record) -> dict[str, Value]:
    """The conventions' names for an agent; nothing for a plain completion."""
    if record.agent == CHAT:
        return {}
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": record.agent,
        "upskill.agent": record.agent,
    }
    if activity := record.activity:
        attributes |= {"upskill.turns": activity.turns, "upskill.tool_calls": activity.tool_calls}
        if activity.activated is not None:
            attributes["upskill.activated"] = activity.activated
    return attributes


def _times(results: RunResults, answers: list[Answer]) -> tuple[int, int]:
    """From the first question asked in this run to the last answer.

    A cached answer was not asked for, and a missing one has no time: both get the start of the
    run.
    """
    calls = [(answer.asked_at, answer.seconds or 0.0) for answer in answers if answer.asked_at]
    began = results.started.timestamp()
    start = min((at for at, _ in calls), default=began)
    end = max((at + seconds for at, seconds in calls), default=began)
    return _nanoseconds(start), _nanoseconds(end)


def _model(model_id: str, spec: ModelSpec | None) -> dict[str, Value]:
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model_id,
    }
    if spec:
        attributes["gen_ai.provider.name"] = _PROVIDERS.get(spec.provider.name, spec.provider.name)
        server = urlsplit(spec.base_url or "")
        if server.hostname:
            attributes["server.address"] = server.hostname
            attributes["server.port"] = server.port or (443 if server.scheme == "https" else 80)
    return attributes


def _usage(record: Record, answers: list[Answer]) -> dict[str, Value]:
    tokens = {
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": record.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": record.written_tokens or None,
    }
    attributes: dict[str, Value] = {key: n for key, n in tokens.items() if n is not None}
    if answers:
        stop = answers[-1].stop
        attributes["gen_ai.response.finish_reasons"] = [_FINISH.get(stop, stop)]
    if record.outcome == "errored":
        attributes["error.type"] = "no_answer" if record.output is None else "not_graded"
    return attributes


def _trial(record: Record) -> dict[str, Value]:
    attributes: dict[str, Value] = {
        "upskill.skill": record.skill,
        "upskill.case": record.case,
        "upskill.model": record.model,
        "upskill.arm": record.arm,
        "upskill.run": record.run,
        "upskill.outcome": record.outcome,
        "upskill.stored": record.stored,
    }
    numbers = {"score": record.score, "cost": record.cost, "seconds": record.seconds}
    values = {f"upskill.{name}": value for name, value in numbers.items() if value is not None}
    return {**attributes, **values}


def _content(results: RunResults, record: Record) -> dict[str, Value]:
    question = results.questions.get((record.skill, record.case), "")
    attributes: dict[str, Value] = {"gen_ai.input.messages": _message("user", question)}
    if record.output is not None:
        attributes["gen_ai.output.messages"] = _message("assistant", record.output)
    return attributes


def _message(role: str, text: str) -> str:
    content = shortened(text, _LONGEST_CONTENT)
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])


def _evaluations(record: Record, *, with_reasons: bool) -> Iterator[Mapping[str, Value]]:
    """One for each check; its reason may quote the answer, so it counts as content."""
    for grade in record.checks:
        explained = {"gen_ai.evaluation.explanation": grade.reason} if with_reasons else {}
        yield {
            "gen_ai.evaluation.name": grade.check,
            "gen_ai.evaluation.score.value": float(grade.passed),
            "gen_ai.evaluation.score.label": "pass" if grade.passed else "fail",
            **explained,
            **({"upskill.check.asks": grade.asks} if grade.asks else {}),
        }


def _valid(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Without lone surrogates, which can't be encoded."""

    def valid(value: Value) -> Value:
        if isinstance(value, list):
            return [str(valid(part)) for part in value]
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        return value

    return {name: valid(value) for name, value in attributes.items()}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
