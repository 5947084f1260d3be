"""Batches: many requests in one, answered within a day at half the price.

What the engine needs of a server that takes them, and how their results are read. These are lines
of JSON in any order, and may be anything: what belongs to no request is left out.
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
_MORE_LINES: Final = 1_000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


class Limits(NamedTuple):
    """What a batch may have at most."""

    requests: int
    size: int  # in bytes


@dataclass(frozen=True)
class Request:
    """One question of a batch, as the server gets it."""

    id: str
    body: dict[str, Any]
    path: str  # what it would be sent to alone; all requests of a batch have the same
    size: int  # in bytes


@dataclass(frozen=True)
class BatchState:
    """How far a batch is: ``done`` are the requests that have a result.

    ``problem``: why it ended without all results, in words.
    """

    ended: bool
    done: int
    all: int
    problem: str = ""


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
    def limits(self) -> Limits: ...

    def request(self, own_id: str, question: Question) -> Request:
        """The very request that would be sent alone."""

    async def submit(self, requests: Sequence[Request], mark: str) -> str:
        """Have the server begin with a batch; its id there."""

    async def find(
        self, mark: str, number: int, since: float, others: Collection[str]
    ) -> tuple[str, bool] | None:
        """The id of a batch of so many requests whose ``submit`` may have failed, if there is one.

        And whether that is sure: not if the server doesn't tell marks. ``others`` it is not.
        """

    async def state(self, batch: str) -> BatchState: ...

    def results(self, batch: str, number: int) -> AsyncGenerator[BatchResult]: ...

    def answer(self, reply: Any, question: Question) -> Answer:
        """The answer in the reply of a result."""

    def adapts(self, question: Question, result: BatchResult) -> bool:
        """Whether the next request for a question leaves out what this server refused."""


def request_of(own_id: str, body: dict[str, Any], path: str = "") -> Request:
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return Request(own_id, body, path, size + len(own_id) + 200)


def parts_of(requests: Sequence[Request], limits: Limits) -> list[list[Request]]:
    """Requests in batches that a server takes, each of one path, in order."""
    parts: dict[str, list[list[Request]]] = {}
    sizes: dict[str, int] = {}
    for one in requests:
        own = parts.setdefault(one.path, [])
        size = sizes.get(one.path, 0) + one.size
        if not own or len(own[-1]) >= limits.requests or size > limits.size:
            own.append([])
            size = one.size
        own[-1].append(one)
        sizes[one.path] = size
    return [part for own in parts.values() for part in own]


def id_of(batch: object, address: str) -> str:
    """The id of a batch or a file, which becomes a part of addresses."""
    found = getattr(batch, "id", batch)
    if isinstance(found, str) and _ID.fullmatch(found):
        return found
    raise ModelError(f"no usable id of the batch from {address}", "Check the address", paid=())


def known_state(batch: object, name: str, known: Collection[str]) -> str:
    """The state of a batch; ModelError if it is none that we know, or the reply is none."""
    found = getattr(batch, name, None)
    if isinstance(found, str) and found in known:
        return found
    said = one_line(str(found), 40) if found else "none"
    raise ModelError(f"unknown state of the batch: {said}", transient=True)


def number_of(counts: object, name: str) -> int:
    found = getattr(counts, name, None)
    return found if isinstance(found, int) else 0


async def lines_of(chunks: AsyncIterator[bytes], number: int) -> AsyncGenerator[dict[str, Any]]:
    """The objects in lines of JSON, as they arrive; nothing for a broken or endless line.

    Not many more of them than the requests that there were.
    """
    kept, too_long, seen = bytearray(), False, 0
    async for chunk in chunks:
        for part in chunk.splitlines(keepends=True):
            too_long |= len(kept) + len(part) > MOST_BYTES
            if too_long:
                kept.clear()
            else:
                kept += part
            if part.endswith((b"\n", b"\r")):
                if found := _object(bytes(kept)):
                    yield found
                kept.clear()
                too_long, seen = False, seen + 1
                if seen > 2 * number + _MORE_LINES:
                    return
    if found := _object(bytes(kept)):
        yield found


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        check_values(line)
        found = json.loads(line)
    except (ValueError, RecursionError, TooLarge):
        return None
    return found if isinstance(found, dict) else None


async def first_results(results: AsyncGenerator[BatchResult]) -> AsyncGenerator[BatchResult]:
    """Each request once, with the first result that there is."""
    seen = set[str]()
    async with aclosing(results) as source:
        async for one in source:
            if one.id not in seen:
                seen.add(one.id)
                yield one
