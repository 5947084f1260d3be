"""OpenAI's Batch API, through the official SDK: a file of requests, a batch, files of results."""

import json
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
from .sdk import clean, said_in
from .sdk_batches import SdkBatches

_MARK: Final = "pytest-upskill"  # of the metadata
_GOES_ON: Final = ("validating", "in_progress", "finalizing", "cancelling")
_ENDED: Final = ("completed", "failed", "expired", "cancelled")
_ENDS: Final = {"expired": "it expired in its batch", "cancelled": "its batch was cancelled"}
_CODES: Final = {
    "batch_expired": "it expired in its batch, before it was asked",
    "batch_cancelled": _ENDS["cancelled"],
}


class OpenAIBatches(SdkBatches):
    """The batches of one model."""

    limits: Final = Limits(50_000, 200_000_000)

    async def submit(self, requests: Sequence[Request], mark: str) -> str:
        path = f"/v1{requests[0].path}"
        asked = (
            {"custom_id": one.id, "method": "POST", "url": path, "body": one.body}
            for one in requests
        )
        lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in asked)
        with self._translated():
            file = await self._client.files.create(
                file=(f"pytest-upskill-{mark}.jsonl", lines.encode("utf-8", "replace")),
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
        seen = 0
        with self._translated():
            async for batch in self._client.batches.list(limit=100):  # the newest first
                seen += 1
                if batch.created_at < since - CLOCKS or seen > MOST_LISTED:
                    break
                if (batch.metadata or {}).get(_MARK) == mark:
                    return id_of(batch, self._address), True
        return None

    async def state(self, batch: str) -> BatchState:
        with self._translated():
            found = await self._client.batches.retrieve(batch)
            ended = known_state(found, "status", (*_ENDED, *_GOES_ON)) in _ENDED
            counts = found.request_counts
            done = number_of(counts, "completed") + number_of(counts, "failed")
            return BatchState(ended, done, number_of(counts, "total"), self._problem(found))

    def _problem(self, batch: Any) -> str:
        """Why a batch has no result for some requests."""
        if batch.status != "failed":
            return _ENDS.get(str(batch.status), "")
        errors = (getattr(batch.errors, "data", None) or ())[:3]
        said = "; ".join(dict.fromkeys(str(one.message) for one in errors if one.message))
        return f"the batch was refused: {clean(said, self._secrets) or 'no reason given'}"

    async def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]:
        with self._translated():
            found = await self._client.batches.retrieve(batch)
            for file in filter(None, (found.output_file_id, found.error_file_id)):
                name = id_of(file, self._address)
                content = self._client.files.with_streaming_response.content(name)
                async with content as reply:
                    lines = lines_of(reply.iter_bytes(), number)
                    async with aclosing(lines) as source:
                        async for line in source:
                            yield self._result(line)

    def _result(self, line: dict[str, Any]) -> BatchResult:
        own_id, error = str(line.get("custom_id", "")), line.get("error")
        if isinstance(error, dict) and error:
            known = _CODES.get(str(error.get("code")))
            return BatchResult(own_id, problem=known or said_in(error, "no result", self._secrets))
        response = line.get("response")
        response = response if isinstance(response, dict) else {}
        body, status = response.get("body"), response.get("status_code")
        if status == 200:
            return BatchResult(own_id, body)
        said = said_in(body, "no result", self._secrets)
        problem = f"{status} {said}" if isinstance(status, int) else said
        return BatchResult(own_id, None, problem, status if isinstance(status, int) else None)

    def adapts(self, question: Question, result: BatchResult) -> bool:
        return result.status in (400, 404, 422) and self._adapts(question, result.problem)
