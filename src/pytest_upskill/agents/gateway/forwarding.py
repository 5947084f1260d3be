"""One request of an agent, passed on to the server of its model,
and the reply on its way back.

The engine decides when it goes out and whether it goes out again: only as long as
nothing of a reply was passed on. Replies are read as fast as they come and wait here
for the agent, so that a slow one holds up no call of others.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import astuple
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..._util.keys import hide_keys, without_keys
from ...errors import ModelError
from ...models import Model, ModelSpec
from ...models.clouds import Cloud
from ...models.reply_size import MOST_BYTES, TooLarge, check_values
from ...models.sdk import Relays, Upstream
from ...models.sdk_errors import connection_error, message_in, not_a_reply, status_error
from ...trials.answer import Answer
from ...trials.trial import Question
from ..logins import LoginModel, LoginProvider
from .http import Body, Event, ReplyHead, Splitter, dict_of, event_of
from .protocol import AgentRequest, Protocol, Target

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.web import BaseRequest, StreamResponse


_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
# Passed on, as an agent can react to them, for example by a shorter request.
_AGENT_STATUSES: Final = (400, 404, 405, 413, 415, 422)
# Headers of a reply that are passed on.
_KEPT_HEADERS: Final = ("content-type", "request-id", "x-request-id")
# Statuses of errors that arrive within a stream.
_STATUS_OF_ERROR: Final = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "usage_limit_reached": 429,
    "invalid_request_error": 400,
    "authentication_error": 401,
}
# Protocols that servers may not speak yet, by path, and the first versions that do.
_NEWER: Final = {
    "/messages": (
        "Anthropic Messages",
        "Ollama 0.14.0, vLLM 0.11.1, llama.cpp of January 2026",
    ),
    "/responses": (
        "OpenAI Responses",
        "Ollama 0.13.3, vLLM 0.11.1, llama.cpp of March 2026",
    ),
}
_NO_SUCH_PATH: Final = (404, 405, 501)

Part = ReplyHead | bytes | None  # None is the end


class ForwardedRequest:
    """A request and what comes of it. ``parts`` is the reply for the agent,
    as it arrives.
    """

    def __init__(
        self,
        session: "ClientSession",
        protocol: Protocol,
        target: Target,
        *,
        request: AgentRequest,
        question: Question,
        body: bytes,
        headers: Mapping[str, str],
        hides_usage: bool,
    ) -> None:
        """``hides_usage``: whether only we asked for the usage of a stream."""
        self.request = request
        self.question = question  # the same for the engine
        self.reply: Answer | None = None  # as much as arrived
        self.broke_off = False  # whether a reply ended early, without an error
        self.parts: asyncio.Queue[Part] = asyncio.Queue()
        self.refusal: tuple[ReplyHead, bytes] | None = None  # of the last attempt
        self.hung_up = False  # whether the agent did
        self._session = session
        self._protocol = protocol
        self._body = body
        self._headers = {**headers, "Content-Type": _JSON}
        self._target = target
        self._hides_usage = hides_usage
        self._reply_begun = False  # whether the agent got a part of it
        self._error_passed = False  # whether the agent got an error by the stream
        self._sending: asyncio.Task[Answer] | None = None

    @property
    def agent_can_retry(self) -> bool:
        """Whether the agent can react to a failure: by another request,
        or the same again.
        """
        return self.refusal is not None or self._reply_begun

    def hang_up(self) -> None:
        """End the call once the agent hung up."""
        self.hung_up = True
        if self._sending:
            self._sending.cancel()

    async def pass_on(
        self, request: "BaseRequest", head: ReplyHead, seconds: float
    ) -> "StreamResponse":
        """Pass the reply on as it arrives; if it breaks off,
        so that the client can see it.
        """
        from aiohttp import web

        reply = web.StreamResponse(status=head.status, headers=head.headers)
        await reply.prepare(request)
        while (part := await self.parts.get()) is not None:
            assert isinstance(part, bytes)
            async with asyncio.timeout(seconds):
                await reply.write(part)
        if self.broke_off and request.transport:
            # Once what there is was sent; the end mark is not
            request.transport.close()
        return reply

    async def send(self, model: Model) -> Answer:
        """Pass the request on; called by the engine when it is its turn."""
        upstream = getattr(model, "upstream", None)
        if self.hung_up:
            raise ModelError("the agent hung up")
        if isinstance(model, LoginModel):
            self._sending = asyncio.ensure_future(model.forward(self._send))
        elif isinstance(upstream, Upstream):
            self._sending = asyncio.ensure_future(self._send(upstream))
        elif isinstance(model, Relays):
            self._sending = asyncio.ensure_future(self._relay(model))
        else:
            self._sending = asyncio.ensure_future(self._ask(model))
        try:
            return await self._sending
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.hung_up and not (task and task.cancelling()):
                raise ModelError("the agent hung up", paid=()) from None
            self.broke_off = True
            raise
        finally:
            self._sending.cancel()

    async def _ask(self, model: Model) -> Answer:
        """Ask a model that has no server, such as a script,
        and write what its server would.
        """
        answer = await model.ask(hide_keys(self.question))
        self._write(self._protocol.reply_body(answer, self.request))
        return answer

    async def _relay(self, model: Relays) -> Answer:
        """Have a model's own client pass the request on, whose reply comes whole."""
        self.refusal = None
        body = await model.relay(json.loads(self._body), self._relay_refused)
        self._reply_begun = True
        return self._write(body)

    def _relay_refused(self, status: int, message: str) -> None:
        if status in _AGENT_STATUSES:
            form = json.dumps(self._protocol.error(status, message))
            self.refusal = (
                ReplyHead(status, {"content-type": _JSON}),
                without_keys(form).encode(),
            )

    def _write(self, body: Body) -> Answer:
        """Write a whole reply for the agent, as a stream if it asked for one."""
        self.reply = self._protocol.parse_reply(body)
        if self.request.stream:
            self.parts.put_nowait(ReplyHead(200, {"content-type": _EVENTS}))
            for event in self._protocol.events(body):
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.parts.put_nowait(
                    _masked(f"{name}data: {json.dumps(event)}\n\n".encode())
                )
            if self._protocol.last_event:
                self.parts.put_nowait(self._protocol.last_event)
        else:
            self.parts.put_nowait(ReplyHead(200, {"content-type": _JSON}))
            self.parts.put_nowait(_masked(json.dumps(body).encode()))
        return self.reply

    async def _send(self, upstream: Upstream) -> Answer:
        import aiohttp

        self.refusal = None
        url = self._protocol.url(upstream.url, self._target, upstream.spec.model_id)
        query = f"?{self._target.query}" if self._target.query else ""
        try:
            async with self._session.post(
                f"{url}{query}",
                data=self._body,
                headers={**self._headers, **self._protocol.headers(upstream.headers)},
                allow_redirects=False,
                proxy=_proxy_for(upstream.url),
            ) as reply:
                if reply.status != 200:
                    error = await self._refused(reply, upstream)
                    if not (self._hides_usage and "stream_options" in error.problem):
                        raise error
                elif reply.content_type == _EVENTS:
                    return await self._stream(reply, upstream)
                else:
                    return await self._read_whole(reply, upstream)
            # An old server, which does not know the option that we added.
            body = json.loads(self._body)
            body.pop("stream_options", None)
            self._body, self._hides_usage = json.dumps(body).encode(), False
            return await self._send(upstream)
        except (aiohttp.ClientError, TooLarge) as error:
            raise self._lost(
                connection_error(error, upstream.spec, upstream.secrets)
            ) from None
        except ModelError as error:
            raise self._lost(error) from None

    def _lost(self, error: ModelError) -> ModelError:
        """The error of a call, without a retry once the agent has a part of the
        reply.
        """
        if not self._reply_begun:
            return error
        self.broke_off = not self._error_passed
        paid = astuple(self.reply.usage) if self.reply else ()
        return ModelError(error.problem, paid=paid)

    async def _refused(self, reply: "ClientResponse", upstream: Upstream) -> ModelError:
        raw = await _read(reply)
        text = raw.decode("utf-8", "replace")
        body = _parsed(raw)
        if reply.status in _AGENT_STATUSES:
            self.refusal = (
                ReplyHead(reply.status, _headers_of(reply)),
                without_keys(text).encode(),
            )
        message = message_in(body, text or reply.reason or "", upstream.secrets)
        spec = upstream.spec
        error = status_error(
            reply.status,
            body,
            message=message,
            headers=reply.headers,
            spec=spec,
            secrets=upstream.secrets,
        )
        if reply.status == 404:
            error.fatal = False  # the path may be unknown, not the model
        hint = why_no_path(reply.status, self._protocol.path, message, spec)
        return ModelError(error.problem, hint) if hint else error

    async def _read_whole(self, reply: "ClientResponse", upstream: Upstream) -> Answer:
        raw = await _read(reply)
        check_values(raw)
        body = _parsed(raw)
        if not isinstance(body, dict):
            raise not_a_reply(upstream.spec, raw.decode("utf-8", "replace"))
        self.reply = self._protocol.parse_reply(body)
        self._reply_begun = True
        self.parts.put_nowait(ReplyHead(200, _headers_of(reply)))
        self.parts.put_nowait(_masked(raw))
        return self.reply

    async def _stream(self, reply: "ClientResponse", upstream: Upstream) -> Answer:
        reading = self._protocol.stream()
        held = list[bytes]()  # until the first event shows that there is an answer
        try:
            async for event in _events(reply):
                if event.data is not None:
                    if event.is_error:
                        if self._reply_begun:
                            self._error_passed = True
                            self.parts.put_nowait(_masked(event.raw))
                        raise _stream_error(event.data, upstream)
                    reading.add(event.data)
                    if self._hides_usage and self._protocol.is_added_usage(event.data):
                        continue
                held.append(_masked(event.raw))
                if not self._reply_begun:
                    if event.data is None:
                        continue  # a comment, such as "still at work"
                    self._reply_begun = True
                    self.parts.put_nowait(ReplyHead(200, _headers_of(reply)))
                self.parts.put_nowait(b"".join(held))
                held.clear()
        finally:
            self.reply = self._protocol.parse_reply(reading.body())
        if not reading.ended:
            problem = f"the reply from {upstream.spec.address} broke off"
            paid = astuple(self.reply.usage)
            raise ModelError(problem, "Try again", transient=True, paid=paid)
        return self.reply


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a server.

    aiohttp would look it up, too, but would also use ~/.netrc,
    and refuse our header with a key.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _headers_of(reply: "ClientResponse") -> dict[str, str]:
    names = (name for name in _KEPT_HEADERS if name in reply.headers)
    return {name: without_keys(reply.headers[name]) for name in names}


async def _parts(reply: "ClientResponse") -> AsyncIterator[bytes]:
    size = 0
    async for part in reply.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise TooLarge
        yield part


async def _read(reply: "ClientResponse") -> bytes:
    return b"".join([part async for part in _parts(reply)])


async def _events(reply: "ClientResponse") -> AsyncIterator[Event]:
    splitter = Splitter()
    async for part in _parts(reply):
        for event in splitter.feed(part):
            yield event
    if splitter.tail:
        yield event_of(splitter.tail)


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _masked(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "surrogateescape")
    return without_keys(text).encode("utf-8", "surrogateescape")


def _stream_error(event: Body, upstream: Upstream) -> ModelError:
    """The error in an event of a stream, as if it were a status."""
    inner = dict_of(event.get("response")) or event
    error = dict_of(inner.get("error"))
    status = 500
    for kind in (event.get("code"), error.get("code"), error.get("type")):
        if isinstance(kind, str):
            status = _STATUS_OF_ERROR.get(kind, status)
        elif isinstance(kind, int) and 400 <= kind < 600:
            status = kind
    message = message_in(inner, json.dumps(event)[:500], upstream.secrets)
    return status_error(
        status,
        inner,
        message=message,
        headers={},
        spec=upstream.spec,
        secrets=upstream.secrets,
    )


def why_no_path(status: int, path: str, message: str, spec: ModelSpec) -> str:
    """A hint if a server of the user's own does not know a path; empty otherwise.

    The same status may be about the model, which the message then names.
    """
    theirs = spec.provider.needs_key and spec.base_url == getattr(
        spec.provider, "base_url", None
    )
    theirs |= isinstance(spec.provider, Cloud | LoginProvider)
    if (
        path not in _NEWER
        or status not in _NO_SUCH_PATH
        or theirs
        or spec.model_id in message
    ):
        return ""
    title, servers = _NEWER[path]
    hint = f"These do, and later ones: {servers}, a LiteLLM proxy"
    return f"This server does not seem to speak {title} (/v1{path}). {hint}"
