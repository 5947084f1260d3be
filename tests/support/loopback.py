"""A real HTTP/1.1 server on 127.0.0.1 that speaks four model protocols and misbehaves on demand.

Also as the clouds have them: /model/ID/invoke (Bedrock), …/models/ID:rawPredict and POST /token
(Google), /openai/deployments/ID/chat/completions (Azure).

It answers POST /v1/messages (Anthropic), POST /v1/chat/completions and /v1/responses (OpenAI) and
/v1beta/models/ID:generateContent (Google), all with any path prefix, plain or as a stream, and GET
/v1/models. A script decides what it answers: a
plain function that must not block, because it runs on the server's only thread (use Reply.delay to
wait).

    with LoopbackServer(lambda asked: Reply(asked.question.upper())) as server:
        client = AsyncAnthropic(base_url=server.url, api_key="none")
        client = AsyncOpenAI(base_url=server.url + "/v1", api_key="none")
"""

import asyncio
import hashlib
import json
import socket
import struct
import sys
import threading
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Literal, Self
from urllib.parse import unquote

from support.streams import error_event, events

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

GOOGLE_TOKEN = "ya29.loopback-0123456789abcdef"
ANTHROPIC_STOP = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"}
# OpenAI reports a refusal in a field of the message, not in the finish reason.
GEMINI_STOP = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
OPENAI_STOP = {"end": "stop", "length": "length", "refusal": "stop"}

JSON = "application/json"
GEMINI_VERBS = (":generateContent", ":streamGenerateContent")
# Faults that are a well-formed HTTP response with status 200: body and content type.
ODD_ANSWERS = {
    "garbage": (b"<<< this is not JSON >>>", JSON),
    "empty_body": (b"", JSON),
    "wrong_type": (b"These are plain words.", "text/plain"),
    "html": (b"<html><body><h1>502 Bad Gateway</h1></body></html>", "text/html"),
}


@dataclass(frozen=True)
class Asked:
    """A request."""

    protocol: Protocol
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    system: str  # "" if there is none
    question: str  # the text of the last user message that is more than results of tools
    attempt: int  # 1 the first time this came in (as far as fields here tell), then 2, …
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
    """A good answer. The four token counts do not overlap; ``raw`` replaces top-level fields.

    ``calls`` are tools with their arguments, as an object or as text; ``thinking`` gets a
    signature where the protocol has one.
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

    status: an error in the protocol's own form. reset: half an answer, then RST. hang: no answer
    until the server closes. trickle: a good answer, one byte per second. garbage, empty_body,
    wrong_type and html: see ODD_ANSWERS. For streams also: cut: half of it, then the end of the
    connection. stall: half of it, then nothing. error_first, error_later: an event that tells an
    error, at the start or in the middle.
    """

    kind: Kind
    status: int = 500
    retry_after: str | None = None
    message: str = "the loopback server was told to fail"
    error_type: str = "api_error"
    details: tuple[Mapping[str, object], ...] = ()  # Google's
    headers: Mapping[str, str] = field(default_factory=dict)


def unreliable(asked: Asked) -> Reply | Fault:
    """A script that fails about every sixth attempt, depending on the question alone."""
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


@dataclass(frozen=True)
class _Answer:
    head: bytes
    body: bytes
    way: str = "whole"  # or the kind of fault
    delay: float = 0.0
    parts: tuple[bytes, ...] = ()  # of a stream, in place of the body
    gate: threading.Event | None = None


class LoopbackServer:
    """Serves inside its ``with`` block; leaving the block ends all requests, even hung ones."""

    def __init__(self, script: Callable[[Asked], Reply | Fault]) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.most_in_flight = 0
        self._script = script
        self._in_flight = 0
        self._attempts: Counter[tuple[object, ...]] = Counter()
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=asyncio.run, args=[self._serve()], daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        # The limit is for headers; a high one also speeds up large bodies.
        server = await asyncio.start_server(self._accept, sock=self._listener, limit=2**20)
        self._ready.set()
        await self._closing.wait()
        # A client that is accepted while the server closes would keep its socket open. So stop
        # accepting, and let asyncio's accepting tasks (all the other tasks) end first.
        with suppress(NotImplementedError):  # Windows has another event loop
            self._loop.remove_reader(self._listener)
            while len(asyncio.all_tasks()) > len(self._connections) + 1:
                await asyncio.sleep(0)
        server.close()  # asyncio.run then cancels the tasks of the connections and waits for them

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = self._loop.create_task(self._converse(reader, writer))
        self._connections.add(task)  # the loop holds only weak references
        task.add_done_callback(self._connections.discard)
        # Not in a "finally" of the task, which never runs if it is cancelled before its first step.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        # The client may leave at any point; that is no error.
        with suppress(OSError, EOFError):
            keep_alive = True
            while keep_alive:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head[:-4].split("\r\n")
                pairs = (line.partition(":") for line in lines)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                # Both SDKs always send the length, so chunked requests are not supported.
                content = await reader.readexactly(int(headers.get("content-length", "0")))
                self._in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self._in_flight)
                try:
                    keep_alive = await _send(self._decide(first, headers, content), reader, writer)
                finally:
                    self._in_flight -= 1
                keep_alive &= headers.get("connection", "").lower() != "close"
            writer.close()  # sends the buffer, unlike the abort below
            await writer.wait_closed()

    def _decide(self, first: str, headers: dict[str, str], content: bytes) -> _Answer:
        method, path = first.partition("?")[0].split(" ")[:2]
        known = method == "POST" and path.endswith(
            ("/v1/messages", "/v1/chat/completions", "/v1beta/openai/chat/completions")
        )
        known |= method == "POST" and path.endswith(("/v1/responses", *GEMINI_VERBS))
        in_cloud = method == "POST" and path.endswith(("/invoke", ":rawPredict"))
        known |= in_cloud or (method == "POST" and "/openai/deployments/" in path)
        # Even on an unknown path, the client must be able to read the error.
        is_anthropic = path.endswith("/messages") if known else "anthropic-version" in headers
        is_anthropic |= in_cloud
        protocol: Protocol = "anthropic" if is_anthropic else "openai"
        if path.endswith("/responses"):
            protocol = "responses"
        if "/v1beta/models/" in path:
            protocol = "gemini"
        if method == "POST" and path.endswith(":countTokens"):
            return _answer(json.dumps({"totalTokens": 4711}).encode())
        if method == "POST" and path.endswith("/v1/messages/count_tokens"):
            return _answer(json.dumps({"input_tokens": 4711}).encode())
        if method == "POST" and path == "/token":
            token = {"access_token": GOOGLE_TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            return _answer(json.dumps(token).encode())
        if method == "GET" and path.endswith("/v1/models"):
            model = {"id": "loopback", "object": "model", "created": 0, "owned_by": "loopback"}
            return _answer(json.dumps({"object": "list", "data": [model]}).encode())
        if not known:
            return _error(protocol, 404, f"no such path: {method} {path}", "not_found_error")
        try:
            asked = self._understand(protocol, headers, content, first.split(" ")[1])
        except Exception as error:
            return _error(protocol, 400, f"not understood: {error!r}", "invalid_request_error")
        try:
            action = self._script(asked)
            if isinstance(action, Reply):
                return replace(_reply(asked, action), delay=action.delay, gate=action.gate)
            if action.kind in ("reset", "hang", "trickle", "cut", "stall"):
                return replace(_reply(asked, Reply("never seen whole")), way=action.kind)
            if action.kind in ("error_first", "error_later"):
                return _broken(asked, action)
            if action.kind == "status":
                told = dict(action.headers)
                if action.retry_after:
                    told["retry-after"] = action.retry_after
                more = _lines(told)
                if path.endswith("/invoke"):
                    refused = json.dumps({"message": action.message}).encode()
                    more += f"x-amzn-errortype: {action.error_type}\r\n"
                    return _answer(refused, JSON, action.status, more)
                return _error(
                    *(protocol, action.status, action.message, action.error_type, more),
                    action.details,
                )
            return _answer(*ODD_ANSWERS[action.kind])
        except Exception as error:
            # Send it to the client: an assertion that fails on this thread fails no test.
            return _error(protocol, 500, f"the script raised {error!r}", "script_error")

    def _understand(
        self, protocol: Protocol, headers: dict[str, str], content: bytes, target: str
    ) -> Asked:
        body = json.loads(content)
        model = ""
        if protocol == "gemini":
            path, _, query = target.partition("?")
            model, _, verb = path.rpartition("/models/")[2].rpartition(":")
            assert (query == "alt=sse") == (verb == "streamGenerateContent"), target
            headers = {**headers, ":stream": "yes" if query else ""}
            said = list(_contents(body))
        elif target.endswith("/invoke"):
            model = unquote(target.split("/")[-2])
        elif target.endswith(":rawPredict"):
            model = unquote(target.rpartition("/")[2].removesuffix(":rawPredict"))
        if protocol != "gemini":
            said = _input(body) if protocol == "responses" else body["messages"]
        texts = [(message["role"], _text(message.get("content"))) for message in said]
        system = "\n".join(text for role, text in texts if role in ("system", "developer"))
        if protocol == "anthropic":
            system = _text(body.get("system"))
        elif protocol == "gemini":
            system = _text(body.get("systemInstruction", {}).get("parts"))
        elif protocol == "responses":
            system = "\n".join(filter(None, (body.get("instructions"), system)))
        of_user = (text for role, text in reversed(texts) if role == "user" and text)
        question = next(of_user, "")
        results = tuple(result for message in said for result in _results(message))
        same = (protocol, model or str(body.get("model", "")), system, question, results)
        self._attempts[same] += 1
        attempt = self._attempts[same]
        asked = Asked(protocol, headers, body, system, question, attempt, results, model)
        self.asked.append(replace(asked, target=target, content=content))
        return self.asked[-1]


async def _send(answer: _Answer, reader: StreamReader, writer: StreamWriter) -> bool:
    """Send the answer; return False if the connection can't be used again."""
    if answer.way == "hang":
        await _client_left(reader, None)
        return False
    if answer.way == "reset":
        writer.write(answer.head + answer.body[: len(answer.body) // 2] + _half(answer.parts))
        if answer.parts:
            await writer.drain()
            await asyncio.sleep(0.05)  # an RST takes back what the client has not read yet
        # Without lingering, closing the socket sends RST instead of FIN.
        no_linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
        writer.transport.abort()
        return False
    if answer.delay and await _client_left(reader, answer.delay):
        return False
    if answer.parts:
        writer.write(answer.head + _half(answer.parts))
        await writer.drain()
        if answer.way == "stall":
            await _client_left(reader, None)
        if answer.way in ("cut", "stall"):
            return False
        while answer.gate and not answer.gate.is_set():
            if await _client_left(reader, 0.01):
                return False
        writer.write(b"".join(map(_chunk, answer.parts[len(answer.parts) // 2 :])) + b"0\r\n\r\n")
    elif answer.way == "trickle":
        writer.write(answer.head)
        for byte in answer.body:
            writer.write(bytes([byte]))
            if await _client_left(reader, 1.0):
                return False
    else:
        writer.write(answer.head + answer.body)
    await writer.drain()
    return True


def _half(parts: tuple[bytes, ...]) -> bytes:
    return b"".join(map(_chunk, parts[: len(parts) // 2]))


def _chunk(part: bytes) -> bytes:
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"


async def _client_left(reader: StreamReader, seconds: float | None) -> bool:
    """Wait, but no longer than the client does."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # A waiting client sends nothing, so this returns when the connection ends.
            await reader.read(1)
            return True
    return False


def _text(content: object) -> str:
    """The text of a message or system prompt: a string, or a list of blocks."""
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else ""


def _results(message: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the tool results in a message."""
    content = message.get("content")
    if message["role"] == "tool":  # in Responses, an output
        yield _text(content)
    elif isinstance(content, list):
        for block in content:
            if block.get("type") == "tool_result":
                yield _text(block.get("content"))


def _input(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a request of Responses, as messages of Chat Completions."""
    items = body["input"]
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return [
        {"role": "tool", "content": item["output"]}
        if item.get("type") == "function_call_output"
        else {"role": item.get("role", "assistant"), "content": item.get("content")}
        for item in items
    ]


def _contents(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The contents of a request of Google's protocol, as messages of Chat Completions."""
    for content in body["contents"]:
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                yield {"role": "tool", "content": response["response"].get("output")}
        yield {"role": content.get("role", "user"), "content": content["parts"]}


def _candidate(reply: Reply) -> dict[str, object]:
    """What a reply of Google's protocol has besides its id and model. Calls have no ids."""
    parts: list[dict[str, object]] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    for name, given in reply.calls:
        args = json.loads(given) if isinstance(given, str) else given
        parts.append({"functionCall": {"name": name, "args": args}, "thoughtSignature": "c2ln"})
    content = {"role": "model", "parts": parts}
    asked = reply.input_tokens + reply.cache_read
    return {
        "candidates": [{"content": content, "finishReason": GEMINI_STOP[reply.stop], "index": 0}],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": reply.output_tokens - bool(reply.thinking),
            "thoughtsTokenCount": int(bool(reply.thinking)),
            "totalTokenCount": asked + reply.output_tokens,
            "cachedContentTokenCount": reply.cache_read,
        },
    }


def _content(asked: Asked, reply: Reply) -> list[dict[str, object]]:
    """The blocks of a message."""
    blocks: list[dict[str, object]] = []
    if reply.thinking:
        signature = hashlib.sha256(reply.thinking.encode()).hexdigest()
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text:  # the real service sends no block for an empty text
        blocks.append({"type": "text", "text": reply.text})
    for number, (name, arguments) in enumerate(reply.calls, len(asked.results) + 1):
        blocks.append(
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        )
    return blocks


def _said(asked: Asked, reply: Reply) -> dict[str, object]:
    """The message of a completion."""
    said: dict[str, object] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.stop == "refusal":
        said |= {"content": None, "refusal": reply.text}
    if reply.thinking:
        said["reasoning_content"] = reply.thinking
    if reply.calls:
        said["content"] = reply.text or None
        said["tool_calls"] = [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for number, (name, given) in enumerate(reply.calls, len(asked.results) + 1)
        ]
    return said


def _reply(asked: Asked, reply: Reply) -> _Answer:
    body: dict[str, object] = {"id": f"loopback-{token_hex(4)}", "model": asked.model}
    calling = reply.calls and reply.stop == "end"
    if asked.protocol == "anthropic":
        body |= {
            "type": "message",
            "role": "assistant",
            "content": _content(asked, reply),
            "stop_reason": "tool_use" if calling else ANTHROPIC_STOP[reply.stop],
            "usage": {
                "input_tokens": reply.input_tokens,
                "output_tokens": reply.output_tokens,
                "cache_read_input_tokens": reply.cache_read,
                "cache_creation_input_tokens": reply.cache_write,
            },
        }
    elif asked.protocol == "responses":
        body |= _response(asked, reply)
    elif asked.protocol == "gemini":
        body = {"responseId": "loopback", "modelVersion": asked.model, **_candidate(reply)}
    else:
        finish = "tool_calls" if calling else OPENAI_STOP[reply.stop]
        prompt_tokens = reply.input_tokens + reply.cache_read + reply.cache_write
        cached = {"cached_tokens": reply.cache_read, "cache_write_tokens": reply.cache_write}
        body |= {
            "object": "chat.completion",
            "created": 0,
            "choices": [{"index": 0, "message": _said(asked, reply), "finish_reason": finish}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": reply.output_tokens,
                "total_tokens": prompt_tokens + reply.output_tokens,
                "prompt_tokens_details": cached,
            },
        }
    body |= reply.raw
    if asked.body.get("stream") or asked.headers.get(":stream"):
        options = asked.body.get("stream_options") or {}
        parts = events(asked.protocol, body, usage=bool(options.get("include_usage")))
        return _stream(parts, _lines(reply.headers))
    return _answer(json.dumps(body).encode(), more=_lines(reply.headers))


def _response(asked: Asked, reply: Reply) -> dict[str, object]:
    """What a reply of Responses has besides its id and model."""
    output: list[dict[str, object]] = []
    done = {"status": "completed"}
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if reply.text:
        part: dict[str, object] = {"type": "output_text", "text": reply.text, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        output.append({**message, **done})
    for number, (name, given) in enumerate(reply.calls, len(asked.results) + 1):
        arguments = given if isinstance(given, str) else json.dumps(given)
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call-{number}"}
        output.append({**call, "name": name, "arguments": arguments, **done})
    asked_tokens = reply.input_tokens + reply.cache_read + reply.cache_write
    cut = reply.stop == "length"
    return {
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": asked_tokens,
            "input_tokens_details": {"cached_tokens": reply.cache_read},
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked_tokens + reply.output_tokens,
        },
    }


def _broken(asked: Asked, fault: Fault) -> _Answer:
    """A stream that tells an error."""
    whole = _reply(asked, Reply("never seen whole")).parts
    told = error_event(asked.protocol, fault.message, fault.error_type)
    before = whole[: len(whole) // 2] if fault.kind == "error_later" else ()
    return _stream([*before, told], _lines(fault.headers))


def _stream(parts: Sequence[bytes], more: str) -> _Answer:
    head = f"HTTP/1.1 200 \r\ncontent-type: text/event-stream\r\n{more}"
    return _Answer(f"{head}transfer-encoding: chunked\r\n\r\n".encode(), b"", parts=tuple(parts))


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _error(
    protocol: Protocol,
    status: int,
    message: str,
    kind: str,
    more: str = "",
    details: Sequence[Mapping[str, object]] = (),
) -> _Answer:
    error: dict[str, object] = {"type": kind, "message": message}
    body: dict[str, object] = {"type": "error", "error": error}
    if protocol == "gemini" or details:
        error = {"code": status, "message": message, "status": kind, "details": details}
        body = {"error": error}
        if protocol == "openai":  # as Google has it there
            return _answer(json.dumps([body]).encode(), JSON, status, more)
    elif protocol != "anthropic":
        # Some real errors set the type, some the code; set both.
        body = {"error": {**error, "param": None, "code": kind}}
    return _answer(json.dumps(body).encode(), JSON, status, more)


def _answer(body: bytes, content_type: str = JSON, status: int = 200, more: str = "") -> _Answer:
    # The reason phrase may be empty; statuses such as Anthropic's 529 have none.
    head = f"HTTP/1.1 {status} \r\ncontent-type: {content_type}\r\n{more}"
    return _Answer(f"{head}content-length: {len(body)}\r\n\r\n".encode("latin-1"), body)
