"""The endpoint of a trial: who may send requests, which, and how many.

All requests are hostile: an agent does what an unknown skill tells it to.
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
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ..._util.keys import HIDDEN, without_keys
from ..._util.texts import one_line
from ...models import ModelSpec
from ...models.model import ProtocolName
from ...models.reply_size import TooLarge, check_values
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question
from ..agent import Call
from ..logins import LoginProvider
from ..recorder import Recorder
from ..staging import InstalledSkill
from .chat_protocol import Chat
from .door import UnlistedContent, passed_headers
from .forwarding import ForwardedRequest
from .gemini_protocol import Gemini
from .http import (
    Body,
    Refusal,
    ReplyHead,
    answer,
    client_session,
    dict_of,
    read,
    response,
    serving,
    tokens_in,
)
from .messages_protocol import Messages
from .protocol import AgentRequest, Protocol, Target, is_forced, question_of
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
# For an agent to send a request, or to take a part of a reply
_IO_SECONDS: Final = 60.0
# With those beside the conversation; more look like an endless loop
_REQUESTS_PER_TURN: Final = 10
_MOST_FINDINGS: Final = 40
_LEFT_OUT: Final = "asked the provider for {}, which was left out"
_REFUSED: Final = "sent {}, which is not passed on"
_NO_RETRY: Final = {"x-should-retry": "false"}  # the SDKs respect it
_FAULTS: Final = 3  # in a row, of those that an agent could fix
# Seconds for an agent to end by itself, once all requests are refused
_GRACE: Final = 5.0
_FUTILE_REQUESTS: Final = 5  # in that time


class Endpoint:
    """``url`` and ``token`` are what an agent needs in place of its
    provider's address and key.
    """

    def __init__(
        self,
        question: Question,
        spec: ModelSpec,
        call: Call,
        *,
        session: "ClientSession",
        port: int,
        skills: Sequence[InstalledSkill] = (),
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.token = f"trialkey-{secrets.token_urlsafe(24)}"
        self.model = spec.model_id or spec.name  # what the agent must ask for
        self.stop = ""  # max_turns if that limit was reached, or decided
        self.no_answer = ""  # why a request of the conversation has no answer
        self.finished = asyncio.Event()  # the agent need not be waited for any more
        self.has_requests = False  # to the model
        self.log = RequestLog(self.token)
        self._question = question
        self._spec = spec
        self._call = call
        self._session = session
        self._skills = skills
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._until_opened = bool(question.task and question.task.until_opened)
        self._max_turns = question.task.max_turns if question.task else None
        self._has_network = bool(question.task and question.task.needs.network)
        provider = spec.provider
        self._login = provider.login if isinstance(provider, LoginProvider) else None
        speaks = provider.protocols(spec)
        self._protocols = [
            protocol for name, protocol in PROTOCOLS.items() if name in speaks
        ]
        self._loop = asyncio.get_running_loop()
        self._findings = Counter[str]()
        self._requests = 0
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._large_places = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._calls = set[asyncio.Task[Reply]]()
        self._faults = 0  # in a row
        self._final_refusal = ""  # the reply to all further requests
        self._grace: asyncio.TimerHandle | None = None

    def write_to(self, recorder: Recorder) -> str:
        """Write all requests into a recorder; returns the final text of the agent."""
        final = self.log.write_to(recorder)
        if self.stop == "decided":
            recorder.is_decided()
        for finding, times in self._findings.items():
            recorder.add_finding(
                finding if times == 1 else f"{finding} ({times:,} times)"
            )
        return final

    async def close(self) -> None:
        """End running calls."""
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
            self._check_request(request)
            if reply := self._models_reply(request.method, path, protocol):
                return answer(200, reply)
            if request.method == "HEAD" and path == "/":
                return answer(200, {})  # some agents check that the server is up
            if request.method != "POST" or target is None:
                requested = self._short(f"{request.method} {path}", 100)
                raise Refusal(
                    404, f"no such path here: {requested}", f"asked for {requested}"
                )
            async with self._places:
                return await self._serve(request, protocol, target)
        except Refusal as refusal:
            if refusal.finding:
                self._add_finding(refusal.finding)
            form = protocol.error(refusal.status, refusal.message)
            response = answer(refusal.status, form, _NO_RETRY)
            if refusal.status != 404 or request.can_read_body:
                response.force_close()  # what follows may be no request
            return response

    def _check_request(self, request: "BaseRequest") -> None:
        """Refuse all that is not for this endpoint."""
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            host = self._short(", ".join(hosts), 100) or "none"
            raise Refusal(421, "there is no such host here", f"asked for host {host}")
        tokens = list(tokens_in(request.headers, request.query))
        expected = self.token.encode()
        if not any(hmac.compare_digest(token, expected) for token in tokens):
            problem = "a wrong token" if tokens else "no token"
            raise Refusal(401, f"{problem} was sent", f"sent {problem}")

    def _protocol_of(self, path: str, query: str) -> tuple[Protocol, Target | None]:
        """The protocol of a path and its meaning; for an unknown path,
        whose errors to use.
        """
        for protocol in self._protocols:
            if target := protocol.target(path, query):
                return protocol, target
        same = [each for each in self._protocols if path.startswith(f"{each.version}/")]
        return (same or self._protocols)[-1], None

    def _models_reply(self, method: str, path: str, protocol: Protocol) -> Body | None:
        """The reply to a request for the list of models, or for the only one."""
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
            raw = await read(request, _MOST_BYTES, _IO_SECONDS)
            body = _loaded(raw)
            self._check_login(request)
            if target.counts:
                return answer(200, protocol.count_reply(max(1, len(raw) // 4)))  # about
            try:
                body, left_out = protocol.pass_on(body, network=self._has_network)
                parsed = protocol.parse_request(body)
                if is_forced(body):
                    parsed = replace(parsed, tools=())  # beside the conversation
                if target.model:
                    parsed = replace(parsed, model=target.model, stream=target.stream)
                self._check_parsed(parsed)
                headers, values = passed_headers(
                    request.headers.items(),
                    network=self._has_network,
                    also=self._login.headers if self._login else None,
                )
                for name in islice(dict.fromkeys((*left_out, *values)), _MOST_FINDINGS):
                    self._add_finding(_LEFT_OUT.format(self._short(name, 80)))
                forwarded = self._forwarded(headers, protocol, target, body, parsed)
            except UnlistedContent as unlisted:
                raise self._refused(unlisted) from None
            except (ValueError, RecursionError) as error:
                raise Refusal(
                    400, str(error), "sent a request of a wrong form"
                ) from None
            del raw, body
            self._check_over()
            return await self._pass_on(request, forwarded)

    def _check_login(self, request: "BaseRequest") -> None:
        """Refuse what the agent did not ask itself, but a script of its own,
        on a login.
        """
        agent = request.headers.get("User-Agent", "")
        if self._login and not self._login.is_own(request.headers):
            problem = f"only {self._login.agent} itself may ask on this login"
            raise Refusal(
                403,
                problem,
                f"asked its model by {self._short(agent, 80) or 'a script'}",
            )

    def _check_parsed(self, parsed: AgentRequest) -> None:
        """Refuse other models."""
        if parsed.model not in (self._spec.model_id, self._spec.name, self.model):
            model = self._short(parsed.model, 80) or "no model"
            problem = f"there is no model {model} here, only {self.model}"
            raise Refusal(404, problem, f"asked for model {model}")

    def _refused(self, unlisted: UnlistedContent) -> Refusal:
        """What content of a request is refused, as a provider would fetch,
        run or open it.
        """
        name = self._short(unlisted.name, 100)
        if unlisted.is_address:
            problem = "there is no network: send images and files with the request"
            return Refusal(400, problem, f"asked the provider to fetch {name}")
        return Refusal(400, f"{name} can't be sent here", _REFUSED.format(name))

    def _forwarded(
        self,
        headers: Mapping[str, str],
        protocol: Protocol,
        target: Target,
        body: Body,
        parsed: AgentRequest,
    ) -> ForwardedRequest:
        """The request to pass on, for this model only."""
        asks_for_usage = (
            dict_of(body.get("stream_options")).get("include_usage") is True
        )
        protocol.prepare(body, self.model, self._spec.effort)
        return ForwardedRequest(
            self._session,
            protocol,
            target,
            request=parsed,
            question=question_of(parsed, self._question),
            body=_dumped(body),
            headers=headers,
            hides_usage=not asks_for_usage,
        )

    def _check_decided(self, logged: LoggedRequest) -> None:
        """End a trigger's trial before the call that would show the skill."""
        if not self._until_opened or logged.is_side:
            return
        if self.log.is_decided(logged, Recorder(self._question, self._skills)):
            logged.unsent, self.stop = True, "decided"
            self._end("this trial is decided")
            raise Refusal(400, self._final_refusal)

    def _check_turns(self, logged: LoggedRequest) -> None:
        """Refuse what is beyond the trial's turns, in a way that agents don't retry."""
        max_turns, self._requests = self._max_turns, self._requests + 1
        if max_turns is not None and (
            (self.log.turns > max_turns and not logged.is_side)
            or self._requests > _REQUESTS_PER_TURN * (max_turns + 1)
        ):
            self.log.end(logged, None, 0.0, 0.0)
            self.stop = "max_turns"
            self._end(f"the limit of this trial is reached: {max_turns} turns")
            raise Refusal(400, self._final_refusal)

    def _check_over(self) -> None:
        """Refuse requests after the end. Some agents would retry for minutes."""
        if not self._final_refusal:
            return
        finding = "sent a request after the end of the trial"
        self._add_finding(finding)
        if self._findings[finding] >= _FUTILE_REQUESTS:
            self.finished.set()
        raise Refusal(400, self._final_refusal)

    def _end(self, refusal: str) -> None:
        """Refuse all further requests. The agent gets a moment to end,
        if its work still counts.
        """
        if not self._final_refusal:
            self._final_refusal = refusal
            if self._until_opened:
                self.finished.set()
                return
            self._grace = self._loop.call_later(_GRACE, self.finished.set)

    def _note_outcome(
        self, logged: LoggedRequest, forwarded: ForwardedRequest, reply: Reply
    ) -> None:
        """End the trial if a request had no answer.

        Requests beside the conversation may fail, and a few times also those that the
        agent can fix: they were refused as they are, or their reply broke off.
        """
        if logged.is_side or self._final_refusal:
            return
        if isinstance(reply, Answer):
            self._faults, self.no_answer = 0, ""
        elif forwarded.hung_up:
            self._add_finding("hung up before its model answered")
        else:
            self._faults += 1
            self._add_finding(f"a request had no answer: {one_line(reply.reason, 200)}")
            self.no_answer = self.no_answer or reply.reason
            is_final = logged.offers_tools and not forwarded.agent_can_retry
            if is_final or self._faults >= _FAULTS:
                self._end(_no_answer(self.no_answer))

    async def _pass_on(
        self, request: "BaseRequest", forwarded: ForwardedRequest
    ) -> "StreamResponse":
        began, self.has_requests = self._loop.time(), True
        logged = self.log.begin(forwarded.request, began)
        self._check_decided(logged)
        self._check_turns(logged)
        task = asyncio.ensure_future(self._call(forwarded.question, forwarded.send))
        self._calls.add(task)

        def ended(task: "asyncio.Task[Reply]") -> None:
            self._calls.discard(task)
            now = self._loop.time()
            self.log.end(logged, forwarded.reply, now - began, now)
            if not task.cancelled() and not task.exception():
                self._note_outcome(logged, forwarded, task.result())
            forwarded.parts.put_nowait(None)

        task.add_done_callback(ended)
        try:
            first = await forwarded.parts.get()
            if isinstance(first, ReplyHead):
                return await forwarded.pass_on(request, first, _IO_SECONDS)
            if forwarded.refusal:
                head, body = forwarded.refusal
                return response(head, body)
            reply = (
                task.result() if not task.cancelled() else NoAnswer("the trial is over")
            )
            reason = reply.reason if isinstance(reply, NoAnswer) else "no reply"
            raise Refusal(400, _no_answer(reason))
        finally:
            forwarded.hang_up()

    def _short(self, text: str, longest: int) -> str:
        """A text of the agent's for a finding. It is masked before a
        cut could split the token.
        """
        return one_line(text.replace(self.token, HIDDEN), longest)

    def _add_finding(self, finding: str) -> None:
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
        """An endpoint for a trial within the block, on a socket of
        ``Sandbox.listen``.
        """
        self._session = self._session or client_session()
        port = listener.getsockname()[1]
        endpoint = Endpoint(
            question, spec, call, session=self._session, port=port, skills=skills
        )
        async with serving(listener, endpoint.handle, endpoint.close):
            yield endpoint

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None


def _no_answer(reason: str) -> str:
    return f"the model gave no answer: {reason}"


def _loaded(raw: bytes) -> Body:
    """The body of a request; Refusal if it is no JSON object that can be understood."""
    try:
        check_values(raw, _MOST_VALUES)
        body = json.loads(raw)
    except TooLarge:
        raise Refusal(
            413, "too many values", "sent a request that is too large"
        ) from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(
            400, "the body is no JSON object", "sent a request that is no JSON object"
        )
    return body


def _dumped(body: Body) -> bytes:
    """As JSON, with our keys masked in all texts."""
    return without_keys(json.dumps(body)).encode()
