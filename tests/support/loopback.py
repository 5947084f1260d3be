"""A real HTTP/1.1 server on 127.0.0.1 that speaks four model protocols
and misbehaves on demand.

Also as the clouds have them: /model/ID/invoke (Bedrock), …/models/ID:rawPredict and
POST /token (Google), /openai/deployments/ID/chat/completions (Azure).

It answers POST /v1/messages (Anthropic), POST /v1/chat/completions and
/v1/responses (OpenAI) and /v1beta/models/ID:generateContent (Google), all with any
path prefix, plain or as a stream, and GET /v1/models. A script decides what it
answers: a plain function that must not block, because it runs on the server's only
thread (use Reply.delay to wait).

    with LoopbackServer(lambda asked: Reply(asked.question.upper())) as server:
        client = AsyncAnthropic(base_url=server.url, api_key="none")
        client = AsyncOpenAI(base_url=server.url + "/v1", api_key="none")

With ``together=3``, no model answers before three are asked at once.
"""

import asyncio
import json
import socket
import threading
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Self

from support.exchange import Asked, Fault, Kind, Protocol, Reply, Stop, unreliable
from support.http_answers import Answer, answer, client_left, send
from support.protocols import ODD_ANSWERS, answer_to, error_in, understood

__all__ = [
    "ODD_ANSWERS",
    "Asked",
    "Fault",
    "Kind",
    "LoopbackServer",
    "Protocol",
    "Reply",
    "Stop",
    "unreliable",
]

GOOGLE_TOKEN = "ya29.loopback-0123456789abcdef"
GEMINI_VERBS = (":generateContent", ":streamGenerateContent")
LONGEST_WAIT = 300.0  # seconds for requests that shall be in flight together


class LoopbackServer:
    """Serves inside its ``with`` block; leaving the block ends all requests,
    even hung ones.

    ``together``: the first so many requests to models are answered only once all of
    them are in flight. If they never are, leaving the block fails.
    """

    def __init__(
        self, script: Callable[[Asked], Reply | Fault], together: int = 1
    ) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.most_in_flight = 0
        self._script = script
        self._in_flight = 0
        self._together = together
        self._most_waiting = self._waiting = 0
        self._lets_go = together <= 1
        self._attempts: Counter[tuple[object, ...]] = Counter()
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(
            target=asyncio.run, args=[self._serve()], daemon=True
        )
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if raised is None and self._together > 1:
            counts = f"{self._most_waiting} of {self._together}"
            assert self._most_waiting == self._together, (
                f"{counts} requests were in flight"
            )

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        # The limit is for headers; a high one also speeds up large bodies.
        server = await asyncio.start_server(
            self._accept, sock=self._listener, limit=2**20
        )
        self._ready.set()
        await self._closing.wait()
        # A client that is accepted while the server closes would keep its
        # socket open. So stop accepting, and let asyncio's accepting tasks (all
        # the other tasks) end first.
        with suppress(NotImplementedError):  # Windows has another event loop
            self._loop.remove_reader(self._listener)
            while len(asyncio.all_tasks()) > len(self._connections) + 1:
                await asyncio.sleep(0)
        # asyncio.run then cancels the tasks of the connections and waits for them
        server.close()

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = self._loop.create_task(self._converse(reader, writer))
        self._connections.add(task)  # the loop holds only weak references
        task.add_done_callback(self._connections.discard)
        # Not in a "finally" of the task, which never runs if it is
        # cancelled before its first step.
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
                # Both SDKs always send the length, so chunked
                # requests are not supported.
                content = await reader.readexactly(
                    int(headers.get("content-length", "0"))
                )
                self._in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self._in_flight)
                try:
                    asked_before = len(self.asked)
                    decided = self._decide(first, headers, content)
                    if len(self.asked) > asked_before and not self._lets_go:
                        await self._wait_for_others(reader)
                    keep_alive = await send(decided, reader, writer)
                finally:
                    self._in_flight -= 1
                keep_alive &= headers.get("connection", "").lower() != "close"
            writer.close()  # sends the buffer, unlike the abort below
            await writer.wait_closed()

    async def _wait_for_others(self, reader: StreamReader) -> None:
        self._waiting += 1
        self._most_waiting = max(self._most_waiting, self._waiting)
        self._lets_go |= self._waiting == self._together
        ends = self._loop.time() + LONGEST_WAIT
        while not self._lets_go and not await client_left(reader, 0.01):
            self._lets_go |= self._loop.time() > ends
        self._waiting -= 1

    def _decide(self, first: str, headers: dict[str, str], content: bytes) -> Answer:
        method, path = first.partition("?")[0].split(" ")[:2]
        known = method == "POST" and path.endswith(
            ("/v1/messages", "/v1/chat/completions", "/v1beta/openai/chat/completions")
        )
        known |= method == "POST" and path.endswith(("/v1/responses", *GEMINI_VERBS))
        in_cloud = method == "POST" and path.endswith(("/invoke", ":rawPredict"))
        known |= in_cloud or (method == "POST" and "/openai/deployments/" in path)
        # Even on an unknown path, the client must be able to read the error.
        is_anthropic = (
            path.endswith("/messages") if known else "anthropic-version" in headers
        )
        is_anthropic |= in_cloud
        protocol: Protocol = "anthropic" if is_anthropic else "openai"
        if path.endswith("/responses"):
            protocol = "responses"
        if "/v1beta/models/" in path:
            protocol = "gemini"
        if method == "POST" and path == "/token":
            token = {
                "access_token": GOOGLE_TOKEN,
                "expires_in": 3600,
                "token_type": "Bearer",
            }
            return answer(json.dumps(token).encode())
        if method == "GET" and path.endswith("/v1/models"):
            model = {
                "id": "loopback",
                "object": "model",
                "created": 0,
                "owned_by": "loopback",
            }
            return answer(json.dumps({"object": "list", "data": [model]}).encode())
        if not known:
            return error_in(
                protocol, 404, f"no such path: {method} {path}", "not_found_error"
            )
        try:
            asked = self._understand(protocol, headers, content, first.split(" ")[1])
        except Exception as error:
            return error_in(
                protocol, 400, f"not understood: {error!r}", "invalid_request_error"
            )
        try:
            return answer_to(asked, self._script(asked))
        except Exception as error:
            # Send it to the client: an assertion that fails on
            # this thread fails no test.
            return error_in(
                protocol, 500, f"the script raised {error!r}", "script_error"
            )

    def _understand(
        self, protocol: Protocol, headers: dict[str, str], content: bytes, target: str
    ) -> Asked:
        asked = understood(protocol, headers, content, target)
        same = (protocol, asked.model, asked.system, asked.question, asked.results)
        self._attempts[same] += 1
        self.asked.append(replace(asked, attempt=self._attempts[same]))
        return self.asked[-1]
