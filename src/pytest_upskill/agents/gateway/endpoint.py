"""The endpoint of a trial: who may come in, what may be asked, and how often.

All that comes in is hostile: an agent does what a skill that nobody knows tells it to.
"""

import asyncio
import hmac
import json
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ..._util.keys import HIDDEN, without_keys
from ..._util.texts import one_line
from ...models import ModelSpec
from ...models.model import ProtocolName
from ...models.reply_size import TooLarge, check_values
from ...models.sdk import Upstream
from ...trials.activity import UNTOLD
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question
from ..agent import Call
from ..recorder import Recorder
from ..staging import InstalledSkill
from .chat_protocol import Chat
from .forwarding import ForwardedRequest, count
from .gemini_protocol import Gemini
from .http import Refusal, ReplyHead, answer, client_session, read, response, serving, tokens_in
from .messages_protocol import Messages
from .protocol import AgentRequest, Body, Protocol, Target, is_forced, question_of
from .request_log import LoggedRequest, RequestLog
from .responses_protocol import Responses

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.web import BaseRequest, StreamResponse

PROTOCOLS: Final[Mapping[ProtocolName, Protocol]] = {
    "messages": Messages(),
    "chat": Chat(),
    "responses": Responses(),
    "gemini": Gemini(),
}
_MOST_BYTES: Final = 50_000_000  # of a request
_MOST_VALUES: Final = 500_000  # of its JSON
_LARGE: Final = 4_000_000
_AT_ONCE: Final = 16  # requests; more wait
_LARGE_AT_ONCE: Final = 2
_SLOW: Final = 60.0  # seconds for an agent to send a request, or to take a part of a reply
_BESIDES: Final = 10  # requests for each turn that may be made, before it looks like no end
_MOST_FINDINGS: Final = 40
# All that goes on to a server; keys, cookies, proxies and the rest do not.
_FORWARDED: Final = ("accept", "anthropic-version", "anthropic-beta", "openai-beta", "user-agent")
_NO_RETRY: Final = {"x-should-retry": "false"}  # what the SDKs look at
_FAULTS: Final = 3  # in a row, of those that an agent could mend
_GRACE: Final = 5.0  # seconds for an agent to end by itself, once there is no more to ask
_IN_VAIN: Final = 5  # requests in that time


class Endpoint:
    """``url`` and ``token`` are what an agent needs in place of its provider's address and key."""

    def __init__(
        self,
        question: Question,
        spec: ModelSpec,
        call: Call,
        session: "ClientSession",
        port: int,
        skills: Sequence[InstalledSkill] = (),
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.token = f"trialkey-{secrets.token_urlsafe(24)}"
        self.model = spec.model_id or spec.name  # what the agent must ask for
        self.stop = ""  # max_turns if that limit was reached, or decided
        self.no_answer = ""  # why a request of the conversation has no answer
        self.over = asyncio.Event()  # whether nobody needs to wait for the agent any more
        self.asked = False  # whether there was any request to the model
        self._untold = _names_of(question)  # of the skill under test, while no request has one
        self.record = RequestLog(self.token)
        self._question = question
        self._spec = spec
        self._call = call
        self._session = session
        self._skills = skills
        self._until_opened = bool(question.task and question.task.until_opened)
        self._most = question.task.max_turns if question.task else None  # turns
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        speaks = spec.provider.protocols(spec)
        self._protocols = [one for name, one in PROTOCOLS.items() if name in speaks]
        self._loop = asyncio.get_running_loop()
        self._findings = Counter[str]()
        self._requests = 0
        self._upstream: Upstream | None = None  # known from the first call on
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._large_places = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._calls = set[asyncio.Task[Reply]]()
        self._faults = 0  # in a row
        self._last_word = ""  # what all further requests are told
        self._grace: asyncio.TimerHandle | None = None

    def tell(self, recorder: Recorder) -> str:
        """Write what went through into a recorder; returns the final text of the agent."""
        if self.asked and self._untold:
            recorder.found(UNTOLD)
        final = self.record.tell(recorder)
        if self.stop == "decided":
            recorder.is_decided()
        for finding, times in self._findings.items():
            recorder.found(finding if times == 1 else f"{finding} ({times:,} times)")
        return final

    async def close(self) -> None:
        """End the calls that are on their way."""
        if self._grace:
            self._grace.cancel()
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def handle(self, request: "BaseRequest") -> "StreamResponse":
        """Answer a request."""
        path, _, query = request.raw_path.partition("?")
        protocol, target = self._protocol_of(path, query)
        try:
            self._check(request)
            if local := self._answered_here(request.method, path, protocol):
                return answer(200, local)
            if request.method == "HEAD" and path == "/":
                return answer(200, {})  # some agents look whether anyone is there
            if request.method != "POST" or target is None:
                asked = self._short(f"{request.method} {path}", 100)
                raise Refusal(404, f"no such path here: {asked}", f"asked for {asked}")
            async with self._places:
                return await self._serve(request, protocol, target)
        except Refusal as refusal:
            if refusal.finding:
                self._found(refusal.finding)
            form = protocol.error(refusal.status, refusal.message)
            response = answer(refusal.status, form, _NO_RETRY)
            if refusal.status != 404 or request.can_read_body:
                response.force_close()  # what follows may be no request
            return response

    def _check(self, request: "BaseRequest") -> None:
        """Refuse all that is not for this endpoint."""
        if request.method == "CONNECT" or not request.raw_path.startswith("/"):
            host = self._short(request.raw_path.partition("?")[0], 100)
            raise Refusal(403, "this is no proxy: there is no network", f"asked for {host}")
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            host = self._short(", ".join(hosts), 100) or "none"
            raise Refusal(421, "there is no such host here", f"asked for host {host}")
        given = list(tokens_in(request.headers, request.query))
        token = self.token.encode()
        if not any(hmac.compare_digest(one, token) for one in given):
            what = "a wrong token" if given else "no token"
            raise Refusal(401, f"{what} was sent", f"sent {what}")

    def _protocol_of(self, path: str, query: str) -> tuple[Protocol, Target | None]:
        """Which protocol a path is of, and what it means; if it is of none, whose errors to use."""
        for protocol in self._protocols:
            if target := protocol.target(path, query):
                return protocol, target
        same = [one for one in self._protocols if path.startswith(f"{one.version}/")]
        return (same or self._protocols)[-1], None

    def _answered_here(self, method: str, path: str, protocol: Protocol) -> Body | None:
        """The list of models, or the one that there is."""
        if method not in ("GET", "HEAD"):
            return None
        path = path.removeprefix(protocol.version)
        if path in (f"/models/{self.model}", f"/models/{quote(self.model, safe='')}"):
            return protocol.model(self.model)
        return protocol.models(self.model) if path == "/models" else None

    async def _serve(
        self, request: "BaseRequest", protocol: Protocol, target: Target
    ) -> "StreamResponse":
        large = (request.content_length or _MOST_BYTES) > _LARGE
        async with self._large_places if large else nullcontext():
            raw = await read(request, _MOST_BYTES, _SLOW)
            body = _loaded(raw)
            if self._untold and self._names_skill(raw):
                self._untold = ()
            try:
                asked = protocol.asked(body)
                if is_forced(body):
                    asked = replace(asked, tools=())  # beside the conversation
                if target.model:
                    asked = replace(asked, model=target.model, stream=target.stream)
                self._check_body(protocol, body, asked)
                if target.counts:
                    return await self._count(request, protocol, target, body, len(raw))
                exchange = self._exchange(request, protocol, target, body, asked)
            except (ValueError, RecursionError) as error:
                raise Refusal(400, str(error), "sent a request of a wrong form") from None
            del raw, body
            self._check_over()
            return await self._pass_on(request, exchange)

    def _names_skill(self, raw: bytes) -> bool:
        """Whether a request names the skill under test, besides in what the agent was asked."""
        asked = {form for _, text in self._question.messages for form in _in_json(text.strip())}
        for name in self._untold:
            rest = raw
            for text in asked:
                if name == text:  # told as well, if it is there once more
                    rest = rest.replace(text, b"", 1)
                elif name in text:
                    rest = rest.replace(text, b"")
            if name in rest:
                return True
        return False

    def _check_body(self, protocol: Protocol, body: Body, asked: AgentRequest) -> None:
        if asked.model not in (self._spec.model_id, self._spec.name, self.model):
            wanted = self._short(asked.model, 80) or "no model"
            problem = f"there is no model {wanted} here, only {self.model}"
            raise Refusal(404, problem, f"asked for model {wanted}")
        network = bool(self._question.task and self._question.task.needs.network)
        if not network and (url := next(protocol.fetched(body), None)):
            address = self._short(url, 100)
            problem = "there is no network: send images and files with the request"
            raise Refusal(400, problem, f"asked the provider to fetch {address}")

    def _exchange(
        self,
        request: "BaseRequest",
        protocol: Protocol,
        target: Target,
        body: Body,
        asked: AgentRequest,
    ) -> ForwardedRequest:
        """The request as it goes on: for this model only, and without what reaches beyond it."""
        if not (self._question.task and self._question.task.needs.network):
            for name in protocol.without_reach(body):
                self._found(f"asked the provider for {one_line(name, 60)}, which was left out")
        plain = _dumped({**body, "model": self.model})
        protocol.prepare(body, self.model, self._spec.effort)
        prepared = _dumped(body)
        return ForwardedRequest(
            self._session,
            protocol,
            target,
            asked,
            question_of(asked, self._question),
            prepared,
            self._headers(request),
            unchanged=plain if "stream_options" in body and plain != prepared else None,
        )

    async def _count(
        self,
        request: "BaseRequest",
        protocol: Protocol,
        target: Target,
        body: Body,
        size: int,
    ) -> "StreamResponse":
        """How many tokens a request has. Servers that know ask nothing for it."""
        counted: int | None = None
        if self._upstream:
            for _ in protocol.without_reach(body):
                pass
            protocol.prepare(body, self.model, None)
            url = protocol.url(self._upstream.url, target, self.model)
            headers = {**self._headers(request), **protocol.headers(self._upstream.headers)}
            told = await count(self._session, url, _dumped(body), headers)
            counted = protocol.tokens_in(told)
        return answer(200, protocol.counted(counted or max(1, size // 4)))

    def _headers(self, request: "BaseRequest") -> dict[str, str]:
        headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        return {**headers, "Content-Type": "application/json"}

    def _check_decided(self, kept: LoggedRequest) -> None:
        """End a trial that is only about whether the skill is opened, before the next call."""
        if not self._until_opened or kept.helps:
            return
        if self.record.is_decided(kept, Recorder(self._question, self._skills)):
            kept.unsent, self.stop = True, "decided"
            self._end("this trial is decided")
            raise Refusal(400, self._last_word)

    def _check_turns(self, kept: LoggedRequest) -> None:
        """Refuse what is beyond the trial's turns, in a way that agents don't try again.

        Money and tokens are limited by the engine, and time by the trial.
        """
        most, self._requests = self._most, self._requests + 1
        if most is not None and (
            (self.record.turns > most and not kept.helps) or self._requests > _BESIDES * (most + 1)
        ):
            self.record.end(kept, None, 0.0, 0.0)
            self.stop = "max_turns"
            self._end(f"the limit of this trial is reached: {most} turns")
            raise Refusal(400, self._last_word)

    def _check_over(self) -> None:
        """Refuse what is asked again in vain. Some agents would do so for minutes."""
        if not self._last_word:
            return
        finding = "asked again in vain"
        self._found(finding)
        if self._findings[finding] >= _IN_VAIN:
            self.over.set()
        raise Refusal(400, self._last_word)

    def _end(self, last_word: str) -> None:
        """Pass nothing on any more; the agent has a moment to end by itself.

        Not if it was only to open a skill: nobody looks at what it would still do.
        """
        if not self._last_word:
            self._last_word = last_word
            if self._until_opened:
                self.over.set()
                return
            self._grace = self._loop.call_later(_GRACE, self.over.set)

    def _heard(self, kept: LoggedRequest, exchange: ForwardedRequest, reply: Reply) -> None:
        """Take note of what the engine says of a request.

        Requests beside the conversation may fail. So may one that the agent can mend, because it
        was refused as it is, or broke off half way; but not again and again.
        """
        if kept.helps or self._last_word:
            return
        if isinstance(reply, Answer):
            self._faults, self.no_answer = 0, ""
        elif exchange.left:
            self._found("hung up before its model answered")
        else:
            self._faults += 1
            self._found(f"a request had no answer: {one_line(reply.reason, 200)}")
            self.no_answer = self.no_answer or reply.reason
            for_good = kept.offers_tools and not exchange.is_mendable
            if for_good or self._faults >= _FAULTS:
                self._end(_no_answer(self.no_answer))

    async def _pass_on(
        self, request: "BaseRequest", exchange: ForwardedRequest
    ) -> "StreamResponse":
        began, self.asked = self._loop.time(), True
        kept = self.record.begin(exchange.asked, began)
        self._check_decided(kept)
        self._check_turns(kept)
        task = asyncio.ensure_future(self._call(exchange.question, exchange.send))
        self._calls.add(task)

        def ended(task: "asyncio.Task[Reply]") -> None:
            self._calls.discard(task)
            self._upstream = exchange.upstream or self._upstream
            now = self._loop.time()
            self.record.end(kept, exchange.said, now - began, now)
            if not task.cancelled() and not task.exception():
                self._heard(kept, exchange, task.result())
            exchange.parts.put_nowait(None)

        task.add_done_callback(ended)
        try:
            first = await exchange.parts.get()
            if isinstance(first, ReplyHead):
                return await exchange.pass_on(request, first, _SLOW)
            if exchange.refusal:
                head, body = exchange.refusal
                return response(head, body)
            reply = task.result() if not task.cancelled() else NoAnswer("the trial is over")
            reason = reply.reason if isinstance(reply, NoAnswer) else "no reply"
            raise Refusal(400, _no_answer(reason))
        finally:
            exchange.leave()

    def _short(self, text: str, most: int) -> str:
        """A text of the agent's for a finding; a token that is cut could not be masked."""
        return one_line(text.replace(self.token, HIDDEN), most)

    def _found(self, finding: str) -> None:
        finding = without_keys(finding.replace(self.token, HIDDEN))
        if finding in self._findings or len(self._findings) < _MOST_FINDINGS:
            self._findings[finding] += 1


class Gateway:
    """Serves the endpoints of all trials of a run, in the loop that it is used in."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None  # shared by all endpoints

    @asynccontextmanager
    async def endpoint(
        self,
        question: Question,
        spec: ModelSpec,
        call: Call,
        listener: socket.socket,
        skills: Sequence[InstalledSkill] = (),
    ) -> AsyncIterator[Endpoint]:
        """An endpoint for a trial within the block, on a socket of ``Sandbox.listen``."""
        self._session = self._session or client_session()
        port = listener.getsockname()[1]
        endpoint = Endpoint(question, spec, call, self._session, port, skills)
        async with serving(listener, endpoint.handle, endpoint.close):
            yield endpoint

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None


def _names_of(question: Question) -> tuple[bytes, ...]:
    """The skill under test as a request would name it; nothing without one."""
    skills = question.task.skills if question.task else ()
    names = (skill.name for skill in skills if skill.tested)
    return tuple(written for name in names for written in _in_json(name))


def _in_json(text: str) -> tuple[bytes, ...]:
    """A text as it may stand in a JSON string; nothing for an empty one."""
    forms = (json.dumps(text, ensure_ascii=escaped)[1:-1].encode() for escaped in (True, False))
    return tuple(filter(None, forms))


def _no_answer(reason: str) -> str:
    return f"the model gave no answer: {reason}"


def _loaded(raw: bytes) -> Body:
    """The body of a request; Refusal if it is no JSON object that can be understood."""
    try:
        check_values(raw, _MOST_VALUES)
        body = json.loads(raw)
    except TooLarge:
        raise Refusal(413, "too many values", "sent a request that is too large") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "the body is no JSON object", "sent a request that is no JSON object")
    return body


def _dumped(body: Body) -> bytes:
    """No server needs to see a key of ours in a text."""
    return without_keys(json.dumps(body)).encode()
