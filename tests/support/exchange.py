"""What a script of a loopback server gets and returns: requests, replies and faults."""

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["anthropic", "openai", "responses", "gemini"]
Stop = Literal["end", "length", "refusal"]
Kind = Literal[
    "status",
    "reset",
    "hang",
    "trickle",
    "garbage",
    "empty_body",
    "wrong_type",
    "html",
    "cut",
    "stall",
    "error_first",
    "error_later",
]


@dataclass(frozen=True)
class Asked:
    """A request."""

    protocol: Protocol
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    system: str  # "" if there is none
    # The text of the last user message that is more than results of tools
    question: str
    # 1 the first time this came in (as far as fields here tell), then 2, …
    attempt: int
    results: tuple[str, ...] = ()  # of all tools so far
    path_model: str = ""  # as Google's and Bedrock's paths name it
    target: str = ""  # path and query
    content: bytes = b""

    @property
    def model(self) -> str:
        return self.path_model or str(self.body.get("model", ""))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        tools = self.body.get("tools", ())
        if self.protocol == "gemini":
            tools = [one for tool in tools for one in tool["functionDeclarations"]]
        return tuple(str(tool.get("function", tool).get("name")) for tool in tools)


@dataclass(frozen=True)
class Reply:
    """A good answer. The four token counts do not overlap;
    ``raw`` replaces top-level fields.

    ``calls`` are tools with their arguments, as an object or as text; ``thinking`` gets
    a signature where the protocol has one.
    """

    text: str = ""
    stop: Stop = "end"
    input_tokens: int = 10
    output_tokens: int = 5
    cache_read: int = 0
    cache_write: int = 0
    delay: float = 0.0
    gate: threading.Event | None = None  # a stream waits for it in its middle
    calls: tuple[tuple[str, object], ...] = ()
    thinking: str = ""
    raw: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A bad answer. The fields after ``kind`` are for "status" only.

    status: an error in the protocol's own form. reset: half an answer, then RST.
    hang: no answer until the server closes. trickle: a good answer, one byte per
    second. garbage, empty_body, wrong_type and html: as in
    ``support.protocols.ODD_ANSWERS``. For streams also: cut: half of it, then the end
    of the connection. stall: half of it, then nothing. error_first, error_later: an
    event that tells an error, at the start or in the middle.
    """

    kind: Kind
    status: int = 500
    retry_after: str | None = None
    message: str = "the loopback server was told to fail"
    error_type: str = "api_error"
    details: tuple[Mapping[str, object], ...] = ()  # Google's
    headers: Mapping[str, str] = field(default_factory=dict)


def unreliable(asked: Asked) -> Reply | Fault:
    """A script that fails about every sixth attempt, depending on the question
    alone.
    """
    digest = hashlib.sha256(f"{asked.question} {asked.attempt}".encode()).digest()
    chance = int.from_bytes(digest[:4], "big") / 2**32
    if chance < 0.05:
        return Fault("status", 429)
    if chance < 0.10:
        return Fault("status", 429, retry_after="0")
    if chance < 0.15:
        return Fault("status", 500)
    if chance < 0.17:
        return Fault("reset")
    return Reply(asked.question.upper(), delay=0.005)
