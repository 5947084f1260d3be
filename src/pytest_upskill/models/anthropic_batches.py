"""Anthropic's Message Batches, through the official SDK.

They have no place for a mark: a batch whose id got lost is found by its time and size, and known
for sure by the ids of its requests once it has ended.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Any, Final

from ..trials.trial import Question
from .batching import (
    CLOCKS,
    MOST_LISTED,
    SUBMIT_SECONDS,
    BatchResult,
    BatchState,
    Limits,
    Request,
    id_of,
    known_state,
    lines_of,
    number_of,
)
from .reply_size import RESULTS
from .sdk import said_in
from .sdk_batches import SdkBatches

_STATUS: Final = {"invalid_request_error": 400, "not_found_error": 404}
_STATES: Final = ("in_progress", "canceling", "ended")
_ENDS: Final = {
    "expired": "it expired in its batch, before it was asked",
    "canceled": "its batch was cancelled",
}


class AnthropicBatches(SdkBatches):
    """The batches of one model."""

    limits: Final = Limits(100_000, 256_000_000)

    async def submit(self, requests: Sequence[Request], mark: str) -> str:  # noqa: ARG002
        asked = [{"custom_id": one.id, "params": one.body} for one in requests]
        with self._translated():
            batch = await self._client.messages.batches.create(
                requests=asked, timeout=SUBMIT_SECONDS
            )
            return id_of(batch, self._address)

    async def find(
        self,
        mark: str,  # noqa: ARG002
        number: int,
        since: float,
        others: Collection[str],
    ) -> tuple[str, bool] | None:
        seen = 0
        with self._translated():
            async for batch in self._client.messages.batches.list(limit=100):  # the newest first
                seen += 1
                if batch.created_at.timestamp() < since - CLOCKS or seen > MOST_LISTED:
                    break
                if _counts(batch)[1] == number and batch.id not in others:
                    return id_of(batch, self._address), False
        return None

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            found = await self._client.messages.batches.retrieve(batch)
            ended = known_state(found, "processing_status", _STATES) == "ended"
            done, number = _counts(found)
            if found.archived_at:
                return BatchState(ended, 0, number, "its results are no longer kept")
            return BatchState(ended, done, number)

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
        own_id, result = str(line.get("custom_id", "")), line.get("result")
        result = result if isinstance(result, dict) else {}
        kind = result.get("type")
        if kind == "succeeded":
            return BatchResult(own_id, result.get("message"))
        if kind in _ENDS:
            return BatchResult(own_id, problem=_ENDS[kind])
        error = result.get("error")
        inner = error.get("error") if isinstance(error, dict) else None
        name = inner.get("type") if isinstance(inner, dict) else None
        said = said_in(error, "no result", self._secrets)
        return BatchResult(own_id, problem=said, status=_STATUS.get(str(name)))

    def adapts(self, question: Question, result: BatchResult) -> bool:
        return result.status == 400 and self._adapts(question, result.problem)


def _counts(batch: Any) -> tuple[int, int]:
    """The requests that are done, and all of them."""
    counts = getattr(batch, "request_counts", None)
    names = ("succeeded", "errored", "canceled", "expired", "processing")
    *done, processing = (number_of(counts, name) for name in names)
    return sum(done), sum(done) + processing
