"""Batches: many requests in one, answered within a day at half the price.

The batch APIs of OpenAI and Anthropic, through the official SDKs. Results are lines of
JSON in any order, which may be anything; what belongs to no request is left out.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from .._util.texts import one_line
from ..errors import ModelError
from ..trials.answer import Answer
from ..trials.trial import Question
from .reply_size import MOST_BYTES, RESULTS, TooLarge, check_values
from .sdk import SdkModel
from .sdk_errors import clean, message_in

_SUBMIT_SECONDS: Final = 600.0  # a batch may be hundreds of megabytes
_EXTRA_LINES: Final = 1_000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_OPENAI_RUNNING: Final = ("validating", "in_progress", "finalizing", "cancelling")
_OPENAI_ENDED: Final = ("completed", "failed", "expired", "cancelled")
_OPENAI_PROBLEMS: Final = {
    "expired": "it expired in its batch",
    "cancelled": "its batch was cancelled",
    "batch_expired": "it expired in its batch, before it was asked",
    "batch_cancelled": "its batch was cancelled",
}
_ANTHROPIC_STATES: Final = ("in_progress", "canceling", "ended")
_ANTHROPIC_STATUS: Final = {"invalid_request_error": 400, "not_found_error": 404}
_ANTHROPIC_PROBLEMS: Final = {
    "expired": "it expired in its batch, before it was asked",
    "canceled": "its batch was cancelled",
}


class BatchLimits(NamedTuple):
    """What a batch may have at most."""

    requests: int
    size: int  # in bytes


@dataclass(frozen=True)
class BatchRequest:
    """One question of a batch, as the server gets it."""

    id: str
    body: dict[str, Any]
    path: str  # what it would be sent to alone; all requests of a batch have the same
    size: int  # in bytes


@dataclass(frozen=True)
class BatchState:
    """How far a batch is."""

    ended: bool
    done: int  # requests that have a result
    problem: str = ""  # why it ended without all results


@dataclass(frozen=True)
class BatchResult:
    """What came of one request: a reply, else a ``problem``,
    with the server's status if known.
    """

    id: str
    reply: Any = None
    problem: str = ""
    status: int | None = None


class Batching(ABC):
    """The batches of one model: they ask and read as its single calls do.

    All calls raise ModelError.
    """

    limits: BatchLimits
    adaptable: tuple[int, ...]  # statuses of refusals that another request may avoid

    def __init__(self, model: SdkModel) -> None:
        self._model = model
        self._client = model.client
        self._translated = model.translated
        self._address = model.address
        self._secrets = model.secrets

    def request(self, request_id: str, question: Question) -> BatchRequest:
        """The very request that would be sent alone."""
        path, body = self._model.request_for(question)
        size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        return BatchRequest(request_id, body, path, size + len(request_id) + 200)

    @abstractmethod
    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        """Have the server begin with a batch; its id there."""

    @abstractmethod
    async def state(self, batch: str) -> BatchState: ...

    @abstractmethod
    def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]: ...

    def answer(self, reply: Any, question: Question) -> Answer:
        """The answer in the reply of a result."""
        return self._model.read(reply, question)

    def adapts(self, question: Question, result: BatchResult) -> bool:
        """Whether the next request for a question leaves out what this server
        refused.
        """
        return result.status in self.adaptable and self._model.adapts(
            question, result.problem
        )


class OpenAIBatches(Batching):
    """A file of requests, a batch, files of results."""

    limits = BatchLimits(50_000, 200_000_000)
    adaptable = (400, 404, 422)

    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        path = f"/v1{requests[0].path}"
        lines = (
            {
                "custom_id": request.id,
                "method": "POST",
                "url": path,
                "body": request.body,
            }
            for request in requests
        )
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        with self._translated():
            file = await self._client.files.create(
                file=("pytest-upskill.jsonl", text.encode("utf-8", "replace")),
                purpose="batch",
                timeout=_SUBMIT_SECONDS,
            )
            batch = await self._client.batches.create(
                input_file_id=_id_of(file, self._address),
                endpoint=path,
                completion_window="24h",
            )
            return _id_of(batch, self._address)

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            info = await self._client.batches.retrieve(batch)
            ended = (
                _state_of(info, "status", (*_OPENAI_ENDED, *_OPENAI_RUNNING))
                in _OPENAI_ENDED
            )
            counts = info.request_counts
            finished = _number_of(counts, "completed", "failed")
            return BatchState(ended, finished, self._problem(info))

    def _problem(self, batch: Any) -> str:
        """Why a batch has no result for some requests."""
        if batch.status != "failed":
            return _OPENAI_PROBLEMS.get(str(batch.status), "")
        errors = (getattr(batch.errors, "data", None) or ())[:3]
        reasons = "; ".join(
            dict.fromkeys(str(error.message) for error in errors if error.message)
        )
        return (
            "the batch was refused:"
            f" {clean(reasons, self._secrets) or 'no reason given'}"
        )

    async def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]:
        with self._translated():
            info = await self._client.batches.retrieve(batch)
            for file in filter(None, (info.output_file_id, info.error_file_id)):
                name = _id_of(file, self._address)
                content = self._client.files.with_streaming_response.content(name)
                async with content as reply:
                    lines = _lines_of(reply.iter_bytes(), number)
                    async with aclosing(lines) as source:
                        async for line in source:
                            yield self._result(line)

    def _result(self, line: dict[str, Any]) -> BatchResult:
        request_id, error = str(line.get("custom_id", "")), line.get("error")
        if isinstance(error, dict) and error:
            problem = _OPENAI_PROBLEMS.get(str(error.get("code")))
            problem = problem or message_in(error, "no result", self._secrets)
            return BatchResult(request_id, problem=problem)
        response = line.get("response")
        response = response if isinstance(response, dict) else {}
        body, status = response.get("body"), response.get("status_code")
        if status == 200:
            return BatchResult(request_id, body)
        message = message_in(body, "no result", self._secrets)
        if not isinstance(status, int):
            return BatchResult(request_id, problem=message)
        return BatchResult(request_id, problem=f"{status} {message}", status=status)


class AnthropicBatches(Batching):
    """Message Batches."""

    limits = BatchLimits(100_000, 256_000_000)
    adaptable = (400,)

    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        forms = [
            {"custom_id": request.id, "params": request.body} for request in requests
        ]
        with self._translated():
            batch = await self._client.messages.batches.create(
                requests=forms, timeout=_SUBMIT_SECONDS
            )
            return _id_of(batch, self._address)

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            info = await self._client.messages.batches.retrieve(batch)
            ended = _state_of(info, "processing_status", _ANTHROPIC_STATES) == "ended"
            if info.archived_at:
                return BatchState(ended, 0, "its results are no longer kept")
            names = ("succeeded", "errored", "canceled", "expired")
            return BatchState(
                ended, _number_of(getattr(info, "request_counts", None), *names)
            )

    async def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]:
        from anthropic._decoders.jsonl import AsyncJSONLDecoder

        with self._translated():
            # Not batches.results: it goes to any address that the reply names,
            # with the key.
            reply = await self._client.get(
                f"/v1/messages/batches/{batch}/results",
                options={"headers": {"Accept": RESULTS}},
                cast_to=AsyncJSONLDecoder[object],
                stream=True,
            )
            async with aclosing(reply.http_response):
                lines = _lines_of(reply.http_response.aiter_bytes(), number)
                async with aclosing(lines) as source:
                    async for line in source:
                        yield self._result(line)

    def _result(self, line: dict[str, Any]) -> BatchResult:
        request_id, result = str(line.get("custom_id", "")), line.get("result")
        result = result if isinstance(result, dict) else {}
        kind = result.get("type")
        if kind == "succeeded":
            return BatchResult(request_id, result.get("message"))
        if kind in _ANTHROPIC_PROBLEMS:
            return BatchResult(request_id, problem=_ANTHROPIC_PROBLEMS[kind])
        error = result.get("error")
        inner = error.get("error") if isinstance(error, dict) else None
        name = inner.get("type") if isinstance(inner, dict) else None
        message = message_in(error, "no result", self._secrets)
        return BatchResult(
            request_id, problem=message, status=_ANTHROPIC_STATUS.get(str(name))
        )


def batches_of(
    requests: Sequence[BatchRequest], limits: BatchLimits
) -> list[list[BatchRequest]]:
    """Requests in batches that a server takes, each of one path, in order."""
    by_path: dict[str, list[list[BatchRequest]]] = {}
    sizes: dict[str, int] = {}
    for request in requests:
        path = request.path
        batches = by_path.setdefault(path, [])
        size = sizes.get(path, 0) + request.size
        if not batches or len(batches[-1]) >= limits.requests or size > limits.size:
            batches.append([])
            size = request.size
        batches[-1].append(request)
        sizes[path] = size
    return [batch for batches in by_path.values() for batch in batches]


def _id_of(batch: object, address: str) -> str:
    """The id of a batch or a file, which becomes a part of addresses."""
    batch_id = getattr(batch, "id", batch)
    if isinstance(batch_id, str) and _ID.fullmatch(batch_id):
        return batch_id
    raise ModelError(
        f"no usable id of the batch from {address}", "Check the address", paid=()
    )


def _state_of(batch: object, name: str, states: Collection[str]) -> str:
    """The state of a batch; ModelError if it is not one of these."""
    state = getattr(batch, name, None)
    if isinstance(state, str) and state in states:
        return state
    shown = one_line(str(state), 40) if state else "none"
    raise ModelError(f"unknown state of the batch: {shown}", transient=True)


def _number_of(counts: object, *names: str) -> int:
    numbers = (getattr(counts, name, None) for name in names)
    return sum(number for number in numbers if isinstance(number, int))


async def _lines_of(
    chunks: AsyncIterator[bytes], number: int
) -> AsyncGenerator[dict[str, Any]]:
    """The objects in lines of JSON, as they arrive;
    broken and endless lines are left out.

    It stops if there are many more lines than there were requests.
    """
    line, too_long, lines = bytearray(), False, 0
    async for chunk in chunks:
        for part in chunk.splitlines(keepends=True):
            too_long |= len(line) + len(part) > MOST_BYTES
            if too_long:
                line.clear()
            else:
                line += part
            if part.endswith((b"\n", b"\r")):
                if value := _object(bytes(line)):
                    yield value
                line.clear()
                too_long, lines = False, lines + 1
                if lines > 2 * number + _EXTRA_LINES:
                    return
    if value := _object(bytes(line)):
        yield value


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        check_values(line)
        value = json.loads(line)
    except (ValueError, RecursionError, TooLarge):
        return None
    return value if isinstance(value, dict) else None
