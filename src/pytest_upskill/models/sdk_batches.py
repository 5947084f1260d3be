"""The batch APIs of OpenAI and Anthropic, through the official SDKs."""

import json
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Any, Final

from ..trials.answer import Answer
from ..trials.trial import Question
from .batching import (
    CLOCKS,
    MOST_LISTED,
    SUBMIT_SECONDS,
    BatchLimits,
    BatchRequest,
    BatchResult,
    BatchState,
    id_of,
    lines_of,
    number_of,
    request_of,
    state_of,
)
from .reply_size import RESULTS
from .sdk import SdkModel
from .sdk_errors import clean, message_in

_MARK: Final = "pytest-upskill"  # a key of OpenAI's metadata
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


class SdkBatches:
    """The batches of one model: they ask and read as its single calls do."""

    adaptable: tuple[int, ...]  # statuses of refusals that another request may avoid

    def __init__(self, model: SdkModel) -> None:
        self._model = model
        self._client = model.client
        self._translated = model.translated
        self._address = model.address
        self._secrets = model.secrets

    def request(self, request_id: str, question: Question) -> BatchRequest:
        path, body = self._model.request_for(question)
        return request_of(request_id, body, path)

    def answer(self, reply: Any, question: Question) -> Answer:
        return self._model.read(reply, question)

    def adapts(self, question: Question, result: BatchResult) -> bool:
        return result.status in self.adaptable and self._model.adapts(question, result.problem)


class OpenAIBatches(SdkBatches):
    """A file of requests, a batch, files of results."""

    limits: Final = BatchLimits(50_000, 200_000_000)
    adaptable = (400, 404, 422)

    async def submit(self, requests: Sequence[BatchRequest], mark: str) -> str:
        path = f"/v1{requests[0].path}"
        lines = (
            {"custom_id": request.id, "method": "POST", "url": path, "body": request.body}
            for request in requests
        )
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        with self._translated():
            file = await self._client.files.create(
                file=(f"pytest-upskill-{mark}.jsonl", text.encode("utf-8", "replace")),
                purpose="batch",
                timeout=SUBMIT_SECONDS,
            )
            batch = await self._client.batches.create(
                input_file_id=id_of(file, self._address),
                endpoint=path,
                completion_window="24h",
                metadata={_MARK: mark},
            )
            return id_of(batch, self._address)

    async def find(
        self,
        mark: str,
        number: int,  # noqa: ARG002
        since: float,
        others: Collection[str],  # noqa: ARG002
    ) -> tuple[str, bool] | None:
        listed = 0
        with self._translated():
            async for batch in self._client.batches.list(limit=100):  # the newest first
                listed += 1
                if batch.created_at < since - CLOCKS or listed > MOST_LISTED:
                    break
                if (batch.metadata or {}).get(_MARK) == mark:
                    return id_of(batch, self._address), True
        return None

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            info = await self._client.batches.retrieve(batch)
            ended = state_of(info, "status", (*_OPENAI_ENDED, *_OPENAI_RUNNING)) in _OPENAI_ENDED
            counts = info.request_counts
            finished = number_of(counts, "completed") + number_of(counts, "failed")
            return BatchState(ended, finished, number_of(counts, "total"), self._problem(info))

    def _problem(self, batch: Any) -> str:
        """Why a batch has no result for some requests."""
        if batch.status != "failed":
            return _OPENAI_PROBLEMS.get(str(batch.status), "")
        errors = (getattr(batch.errors, "data", None) or ())[:3]
        reasons = "; ".join(dict.fromkeys(str(error.message) for error in errors if error.message))
        return f"the batch was refused: {clean(reasons, self._secrets) or 'no reason given'}"

    async def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]:
        with self._translated():
            info = await self._client.batches.retrieve(batch)
            for file in filter(None, (info.output_file_id, info.error_file_id)):
                name = id_of(file, self._address)
                content = self._client.files.with_streaming_response.content(name)
                async with content as reply:
                    lines = lines_of(reply.iter_bytes(), number)
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


class AnthropicBatches(SdkBatches):
    """Message Batches.

    They have no place for a mark: a batch whose id got lost is found by its time and size, and
    recognised for certain by the ids of its requests once it has ended.
    """

    limits: Final = BatchLimits(100_000, 256_000_000)
    adaptable = (400,)

    async def submit(self, requests: Sequence[BatchRequest], mark: str) -> str:  # noqa: ARG002
        forms = [{"custom_id": request.id, "params": request.body} for request in requests]
        with self._translated():
            batch = await self._client.messages.batches.create(
                requests=forms, timeout=SUBMIT_SECONDS
            )
            return id_of(batch, self._address)

    async def find(
        self,
        mark: str,  # noqa: ARG002
        number: int,
        since: float,
        others: Collection[str],
    ) -> tuple[str, bool] | None:
        listed = 0
        with self._translated():
            async for batch in self._client.messages.batches.list(limit=100):  # the newest first
                listed += 1
                if batch.created_at.timestamp() < since - CLOCKS or listed > MOST_LISTED:
                    break
                if _counts(batch)[1] == number and batch.id not in others:
                    return id_of(batch, self._address), False
        return None

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            info = await self._client.messages.batches.retrieve(batch)
            ended = state_of(info, "processing_status", _ANTHROPIC_STATES) == "ended"
            finished, number = _counts(info)
            if info.archived_at:
                return BatchState(ended, 0, number, "its results are no longer kept")
            return BatchState(ended, finished, number)

    async def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]:
        from anthropic._decoders.jsonl import AsyncJSONLDecoder

        with self._translated():
            # Not batches.results: it goes to any address that the reply names, with the key.
            reply = await self._client.get(
                f"/v1/messages/batches/{batch}/results",
                options={"headers": {"Accept": RESULTS}},
                cast_to=AsyncJSONLDecoder[object],
                stream=True,
            )
            async with aclosing(reply.http_response):
                lines = lines_of(reply.http_response.aiter_bytes(), number)
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
        return BatchResult(request_id, problem=message, status=_ANTHROPIC_STATUS.get(str(name)))


def _counts(batch: Any) -> tuple[int, int]:
    """The requests that have a result, and all of them."""
    counts = getattr(batch, "request_counts", None)
    names = ("succeeded", "errored", "canceled", "expired", "processing")
    *finished, processing = (number_of(counts, name) for name in names)
    return sum(finished), sum(finished) + processing
