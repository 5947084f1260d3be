"""One request of an agent, passed on to the server of its model, and the reply on its way back.

The engine decides when it goes out and whether it goes out again: only as long as nothing of a
reply was passed on. Replies are read as fast as they come and wait here for the agent, so that a
slow one holds up no call of others.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..._util.keys import without_keys
from ...errors import ModelError
from ...models import Model, ModelSpec
from ...models.clouds import Cloud
from ...models.rate_limits import last_quotas, quotas_of
from ...models.reply_size import MOST_BYTES, TooLarge, check_values
from ...models.sdk import Relays, Upstream
from ...models.sdk_errors import connection_error, message_in, not_a_reply, status_error
from ...trials.answer import Answer, Quota
from ...trials.trial import Question
from .http import Event, ReplyHead, Splitter, event_of
from .protocol import AgentRequest, Body, ModelReply, Protocol, ReplyStream, Target

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.web import BaseRequest, StreamResponse


_COUNT_SECONDS: Final = 20.0
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
# An agent can do something about these, such as shorten its request; the rest is not its business.
_FOR_THE_AGENT: Final = (400, 404, 405, 413, 415, 422)
# Of a reply, that an agent gets to see.
_KEPT_HEADERS: Final = ("content-type", "request-id", "x-request-id")
# How a stream says what a status would have said.
_LIKE_STATUS: Final = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "invalid_request_error": 400,
    "authentication_error": 401,
}


Part = ReplyHead | bytes | None  # None: that is all


class ForwardedRequest:
    """A request and what comes of it. ``parts`` is the reply for the agent, as it arrives."""

    def __init__(
        self,
        session: "ClientSession",
        protocol: Protocol,
        target: Target,
        asked: AgentRequest,
        question: Question,
        body: bytes,
        headers: Mapping[str, str],
        *,
        unchanged: bytes | None = None,
    ) -> None:
        """``unchanged``: the request without our wish for its usage, if we added that."""
        self.asked = asked
        self.question = question  # the same for the engine
        self.upstream: Upstream | None = None
        self.said: ModelReply | None = None  # as much as arrived
        self.broken = False  # whether a reply ended before its end, without a word
        self.parts: asyncio.Queue[Part] = asyncio.Queue()
        self.refusal: tuple[ReplyHead, bytes] | None = None  # of the last attempt
        self.left = False  # whether the agent hung up
        self._session = session
        self._protocol = protocol
        self._body = body
        self._headers = headers
        self._target = target
        self._unchanged = unchanged
        self._passed = False  # whether the agent got any of a reply
        self._told = False  # whether the stream itself says what is wrong
        self._sending: asyncio.Task[Answer] | None = None

    @property
    def is_mendable(self) -> bool:
        """Whether the agent can do something about a failure: ask otherwise, or once more."""
        return self.refusal is not None or self._passed

    def leave(self) -> None:
        """The agent hung up: so do we."""
        self.left = True
        if self._sending:
            self._sending.cancel()

    async def pass_on(
        self, request: "BaseRequest", head: ReplyHead, seconds: float
    ) -> "StreamResponse":
        """Pass the reply on as it arrives; if it breaks off, so that the client can see it."""
        from aiohttp import web

        reply = web.StreamResponse(status=head.status, headers=head.headers)
        await reply.prepare(request)
        while (part := await self.parts.get()) is not None:
            assert isinstance(part, bytes)
            async with asyncio.timeout(seconds):
                await reply.write(part)
        if self.broken and request.transport:
            request.transport.close()  # once what there is was sent; the end mark is not
        return reply

    async def send(self, model: Model) -> Answer:
        """Pass the request on; called by the engine when it is its turn."""
        upstream = getattr(model, "upstream", None)
        if self.left:
            raise ModelError("the agent hung up")
        if isinstance(upstream, Upstream):
            self.upstream = upstream
            self._sending = asyncio.ensure_future(self._send(upstream))
        elif isinstance(model, Relays):
            self._sending = asyncio.ensure_future(self._relay(model))
        else:
            self._sending = asyncio.ensure_future(self._ask(model))
        try:
            return await self._sending
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.left and not (task and task.cancelling()):
                raise ModelError("the agent hung up", paid=()) from None
            self.broken = True
            raise
        finally:
            self._sending.cancel()

    async def _ask(self, model: Model) -> Answer:
        """Ask a model that has no server, such as a script, and write what its server would."""
        answer = await model.ask(self.question.without_keys())
        self._write(self._protocol.written(answer, self.asked))
        return answer

    async def _relay(self, model: Relays) -> Answer:
        """Have a model's own client pass the request on, whose reply comes whole."""
        self.refusal = None
        body = await model.relay(json.loads(self._body), self._relay_refused)
        self._passed = True
        return self._answered(self._write(body), last_quotas())

    def _relay_refused(self, status: int, said: str) -> None:
        if status in _FOR_THE_AGENT:
            form = json.dumps(self._protocol.error(status, said))
            self.refusal = ReplyHead(status, {"content-type": _JSON}), without_keys(form).encode()

    def _write(self, body: Body) -> ModelReply:
        """Write a whole reply for the agent, as a stream if it asked for one."""
        self.said = self._protocol.said(body)
        if self.asked.stream:
            self.parts.put_nowait(ReplyHead(200, {"content-type": _EVENTS}))
            for event in self._protocol.events(body):
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.parts.put_nowait(_masked(f"{name}data: {json.dumps(event)}\n\n".encode()))
            if self._protocol.last_event:
                self.parts.put_nowait(self._protocol.last_event)
        else:
            self.parts.put_nowait(ReplyHead(200, {"content-type": _JSON}))
            self.parts.put_nowait(_masked(json.dumps(body).encode()))
        return self.said

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
                    if not (self._unchanged and "stream_options" in error.problem):
                        raise error
                elif reply.content_type == _EVENTS:
                    return await self._stream(reply, upstream)
                else:
                    return await self._whole(reply, upstream)
            # An old server, which does not know the wish.
            self._body, self._unchanged = self._unchanged, None
            return await self._send(upstream)
        except (aiohttp.ClientError, TooLarge) as error:
            raise self._lost(connection_error(error, upstream.spec, upstream.secrets)) from None
        except ModelError as error:
            raise self._lost(error) from None

    def _lost(self, error: ModelError) -> ModelError:
        """What is left of a call once the agent has a part of the reply: no second attempt."""
        if not self._passed:
            return error
        self.broken = not self._told
        paid = astuple(self.said.usage) if self.said else ()
        return ModelError(error.problem, paid=paid)

    async def _refused(self, reply: "ClientResponse", upstream: Upstream) -> ModelError:
        raw = await _read(reply)
        text = raw.decode("utf-8", "replace")
        body = _parsed(raw)
        if reply.status in _FOR_THE_AGENT:
            self.refusal = ReplyHead(reply.status, _kept(reply)), without_keys(text).encode()
        said = message_in(body, text or reply.reason or "", upstream.secrets)
        error = status_error(
            reply.status, body, said, reply.headers, upstream.spec, upstream.secrets
        )
        if reply.status == 404:
            error.fatal = False  # perhaps it is what this agent asked for, not the model
        why = why_no_path(reply.status, self._protocol.path, said, upstream.spec)
        return ModelError(error.problem, why) if why else error

    async def _whole(self, reply: "ClientResponse", upstream: Upstream) -> Answer:
        raw = await _read(reply)
        check_values(raw)
        body = _loaded(raw)
        if body is None:
            raise not_a_reply(upstream.spec, raw.decode("utf-8", "replace"))
        self.said = self._protocol.said(body)
        self._passed = True
        self.parts.put_nowait(ReplyHead(200, _kept(reply)))
        self.parts.put_nowait(_masked(raw))
        return self._answer(reply)

    async def _stream(self, reply: "ClientResponse", upstream: Upstream) -> Answer:
        splitter, reading, size = Splitter(), self._protocol.reading(), 0
        held = list[bytes]()  # until the first event shows that there is an answer
        try:
            async for part in reply.content.iter_any():
                size += len(part)
                if size > MOST_BYTES:
                    raise TooLarge
                for event in splitter.feed(part):
                    self._pass(event, reading, held, reply, upstream)
            if rest := splitter.rest:
                self._pass(event_of(rest), reading, held, reply, upstream)
        finally:
            self.said = self._protocol.said(reading.body())
        if not reading.ended:
            raise ModelError(
                f"the reply from {upstream.spec.address} broke off",
                "Try again",
                transient=True,
                paid=astuple(self.said.usage),
            )
        return self._answer(reply)

    def _pass(
        self,
        event: Event,
        reading: ReplyStream,
        held: list[bytes],
        reply: "ClientResponse",
        upstream: Upstream,
    ) -> None:
        """Pass an event on and take note of it."""
        if event.data is not None:
            if event.is_error:
                error = _told(event.data, upstream)
                if not self._passed:
                    raise error
                self._told = True
                self.parts.put_nowait(_masked(event.raw))
                raise error
            reading.add(event.data)
        if self._unchanged and event.data and self._protocol.is_ours(event.data):
            return
        held.append(_masked(event.raw))
        if event.data is None and not self._passed:
            return  # a comment, such as "still at work"
        if not self._passed:
            self._passed = True
            self.parts.put_nowait(ReplyHead(200, _kept(reply)))
        self.parts.put_nowait(b"".join(held))
        held.clear()

    def _answer(self, reply: "ClientResponse") -> Answer:
        assert self.said
        told = {name.lower(): value for name, value in reply.headers.items()}
        return self._answered(self.said, quotas_of(told, datetime.now(UTC)))

    def _answered(self, said: ModelReply, quotas: tuple[Quota, ...]) -> Answer:
        return Answer(
            said.text,
            said.usage,
            said.stop,
            calls=said.calls,
            thinking=said.thinking,
            quotas=quotas,
        )


async def count(
    session: "ClientSession", url: str, body: bytes, headers: Mapping[str, str]
) -> Body:
    """What a server says of the size of a request; nothing if it does not."""
    import aiohttp

    try:
        async with (
            asyncio.timeout(_COUNT_SECONDS),
            session.post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=_proxy_for(url),
            ) as reply,
        ):
            counted = _loaded(await _read(reply))
            return counted if counted and reply.status == 200 else {}
    except (aiohttp.ClientError, TooLarge, TimeoutError):
        return {}


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a server.

    aiohttp would look for it, too, but also for a password in ~/.netrc, beside which it refuses
    the header of a key.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _kept(reply: "ClientResponse") -> dict[str, str]:
    return {
        name: without_keys(reply.headers[name]) for name in _KEPT_HEADERS if name in reply.headers
    }


async def _read(reply: "ClientResponse") -> bytes:
    parts, size = list[bytes](), 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise TooLarge
    return b"".join(parts)


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _loaded(raw: bytes) -> Body | None:
    body = _parsed(raw)
    return body if isinstance(body, dict) else None


def _masked(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "surrogateescape")
    return without_keys(text).encode("utf-8", "surrogateescape")


def _told(event: Body, upstream: Upstream) -> ModelError:
    """The error that a stream tells in place of a status."""
    response = event.get("response")
    inner = response if isinstance(response, dict) else event
    error = inner.get("error")
    kinds = [error.get("type"), error.get("code")] if isinstance(error, dict) else []
    kinds += [event.get("code")]
    known = [_LIKE_STATUS.get(one) for one in kinds if isinstance(one, str)]
    known += [one for one in kinds if isinstance(one, int) and 400 <= one < 600]
    status = next(filter(None, known), 500)
    said = message_in(inner, json.dumps(event)[:500], upstream.secrets)
    return status_error(status, inner, said, {}, upstream.spec, upstream.secrets)


class _Newer(NamedTuple):
    """A protocol that a server may not know, as it came later than Chat Completions."""

    title: str
    servers: str


# By path. See the release notes of each server.
_NEWER: Final = {
    "/messages": _Newer(
        "Anthropic Messages", "Ollama 0.14.0, vLLM 0.11.1, llama.cpp of January 2026"
    ),
    "/responses": _Newer("OpenAI Responses", "Ollama 0.13.3, vLLM 0.11.1, llama.cpp of March 2026"),
}
_NO_SUCH_PATH: Final = (404, 405, 501)


def why_no_path(status: int, path: str, said: str, spec: ModelSpec) -> str:
    """What a refusal means if the path is not known at someone's own server; mostly nothing.

    The same status may be about the model, which such a server then names.
    """
    newer = _NEWER.get(path)
    theirs = spec.provider.needs_key and spec.base_url == getattr(spec.provider, "base_url", None)
    theirs |= isinstance(spec.provider, Cloud)
    if not newer or status not in _NO_SUCH_PATH or theirs or spec.model_id in said:
        return ""
    need = f"These do, and later ones: {newer.servers}, a LiteLLM proxy"
    return f"This server does not seem to speak {newer.title} (/v1{path}). {need}"
