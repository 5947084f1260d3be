"""Batches: many requests in one, answered within a day at half the price.

What the engine needs of a server with a batch API, and how results are read: lines of JSON in any
order, which may be anything; what belongs to no request is left out.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from .._util.texts import one_line
from ..errors import ModelError
from ..trials.answer import Answer
from ..trials.trial import Question
from .reply_size import MOST_BYTES, TooLarge, check_values

SUBMIT_SECONDS: Final = 600.0  # a batch may be hundreds of megabytes
CLOCKS: Final = 86_400.0  # seconds by which the clocks of two machines may differ
MOST_LISTED: Final = 2_000  # batches that are looked through
_EXTRA_LINES: Final = 1_000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


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
    all: int
    problem: str = ""  # why it ended without all results


@dataclass(frozen=True)
class BatchResult:
    """What came of one request: a reply, else a ``problem``, with the server's status if known."""

    id: str
    reply: Any = None
    problem: str = ""
    status: int | None = None


class Batching(Protocol):
    """The batches of a model. All calls raise ModelError."""

    @property
    def limits(self) -> BatchLimits: ...

    def request(self, request_id: str, question: Question) -> BatchRequest:
        """The very request that would be sent alone."""

    async def submit(self, requests: Sequence[BatchRequest], mark: str) -> str:
        """Have the server begin with a batch; its id there."""

    async def find(
        self, mark: str, number: int, since: float, others: Collection[str]
    ) -> tuple[str, bool] | None:
        """The id of a batch of ``number`` requests whose ``submit`` may have failed, if any.

        And whether that is certain, which takes a server that stores marks. ``others`` are
        batches that it can't be.
        """

    async def state(self, batch: str) -> BatchState: ...

    def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]: ...

    def answer(self, reply: Any, question: Question) -> Answer:
        """The answer in the reply of a result."""

    def adapts(self, question: Question, result: BatchResult) -> bool:
        """Whether the next request for a question leaves out what this server refused."""


def request_of(request_id: str, body: dict[str, Any], path: str = "") -> BatchRequest:
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return BatchRequest(request_id, body, path, size + len(request_id) + 200)


def batches_of(requests: Sequence[BatchRequest], limits: BatchLimits) -> list[list[BatchRequest]]:
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


def id_of(batch: object, address: str) -> str:
    """The id of a batch or a file, which becomes a part of addresses."""
    batch_id = getattr(batch, "id", batch)
    if isinstance(batch_id, str) and _ID.fullmatch(batch_id):
        return batch_id
    raise ModelError(f"no usable id of the batch from {address}", "Check the address", paid=())


def state_of(batch: object, name: str, states: Collection[str]) -> str:
    """The state of a batch; ModelError if it is not one of these."""
    state = getattr(batch, name, None)
    if isinstance(state, str) and state in states:
        return state
    shown = one_line(str(state), 40) if state else "none"
    raise ModelError(f"unknown state of the batch: {shown}", transient=True)


def number_of(counts: object, name: str) -> int:
    number = getattr(counts, name, None)
    return number if isinstance(number, int) else 0


async def lines_of(chunks: AsyncIterator[bytes], number: int) -> AsyncGenerator[dict[str, Any]]:
    """The objects in lines of JSON, as they arrive; broken and endless lines are left out.

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


async def first_results(results: AsyncGenerator[BatchResult]) -> AsyncGenerator[BatchResult]:
    """The first result of each request."""
    ids = set[str]()
    async with aclosing(results) as source:
        async for result in source:
            if result.id not in ids:
                ids.add(result.id)
                yield result
