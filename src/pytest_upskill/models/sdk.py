"""What both official SDKs share: how a client is made,
and how an answer is made of a reply.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from ssl import SSLContext
from types import ModuleType
from typing import Any, Final, Protocol, runtime_checkable

from .._util.texts import digest, one_line
from ..trials.answer import Answer, Usage
from ..trials.trial import Question
from .model import ModelSpec, basic_auth
from .reply_size import limit_size
from .sdk_errors import Secrets, error_text, never_ended, secrets_of, translated_errors
from .tool_turns import ToolTurn, stop_with

# A server that accepts no connection within this many seconds is asked again; the
# answer itself may take all of the timeout.
CONNECT_SECONDS: Final = 10.0
# The SDKs look for a key in their environment if they get none:
# never send a server a foreign one.
NO_KEY: Final = "no-key"
_LARGE: Final = 1_000_000  # bytes
_SDK_HEADERS: Final = (
    "accept",
    "content-type",
    "user-agent",
    "x-stainless",
    "anthropic-version",
)
# Parts of a request that servers refuse without naming them, as they are tried.
_UNNAMED: Final = ({"cache"}, {"schema"}, {"cache", "schema"})
# Why a reply ended, if its server failed: what there is of it is no answer.
_FAILED: Final = ("error", "abort", "insufficient_system_resource")
OnRefusal = Callable[[int, str], None]  # called with the status and the message
Request = tuple[str, dict[str, Any]]  # path and body


async def _send_in_parts(request: Any) -> None:
    """aiohttp warns of a large body in one piece, which is an error
    in many a project's tests.
    """
    # A file to upload is sent in parts already
    content = getattr(request, "_content", b"")
    if len(content) > _LARGE:
        request._content = BytesIO(content)


# Hooks of the SDKs' HTTP client, which run in the task that asks.
_HOOKS: Final = {"request": [_send_in_parts], "response": [limit_size]}


@cache
def _tls_context() -> SSLContext:
    """One for all clients: reading the machine's certificates takes
    longer than a local call.
    """
    import httpx2

    return httpx2.create_ssl_context()


def client_options(sdk: ModuleType, spec: ModelSpec, timeout: float) -> dict[str, Any]:
    """The arguments of both SDKs' clients."""
    # Only the engine knows whether a call waits for others in the server's queue.
    limits = sdk.Timeout(None, connect=min(timeout, CONNECT_SECONDS))
    url, headers = basic_auth(spec.base_url)
    return {
        "base_url": url,
        "default_headers": headers,
        "timeout": limits,
        "max_retries": 0,  # the engine retries
        # A redirect would take the skill to a server that nobody named, and lose the
        # question: most of them turn it into a GET.
        "http_client": sdk.DefaultAioHttpClient(
            timeout=limits,
            event_hooks=_HOOKS,
            follow_redirects=False,
            verify=_tls_context(),
        ),
    }


def keep_to_its_provider(client: Any, sdk: ModuleType, spec: ModelSpec) -> None:
    """Take from a client for another server what the SDK read from
    its provider's environment.

    OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS and the ids of
    organisation and project are read whatever the address is, and the
    constructors have no argument against it.
    """
    if spec.provider.name == sdk.__name__:
        return
    client._custom_headers = basic_auth(spec.base_url)[1]
    for name in (
        "organization",
        "project",
        "admin_api_key",
        "webhook_secret",
        "webhook_key",
    ):
        if isinstance(vars(client).get(name), str):
            setattr(client, name, None)


@dataclass(frozen=True)
class Upstream:
    """The server of a model, for requests that an agent writes itself."""

    spec: ModelSpec
    url: str
    # What the provider wants besides the protocol's own: keys
    headers: Mapping[str, str]
    secrets: Secrets

    @classmethod
    def of(cls, client: Any, spec: ModelSpec, secrets: Secrets) -> "Upstream":
        """As an SDK's client would ask; it knows which headers carry its key."""
        headers = {
            **client.default_headers,
            **client.auth_headers,
            **client._custom_headers,
        }
        provider_headers = {
            name: value
            for name, value in headers.items()
            if isinstance(value, str) and not name.lower().startswith(_SDK_HEADERS)
        }
        return cls(spec, str(client.base_url).rstrip("/"), provider_headers, secrets)


class SdkModel(ABC):
    """An adapter to one model through an SDK."""

    most_in_flight: int | None = None

    def __init__(self, sdk: ModuleType, spec: ModelSpec, timeout: float) -> None:
        self.sdk, self.spec = sdk, spec
        self._variable, self._key = spec.provider.key_in(os.environ) or ("", "")
        self.secrets = secrets_of(spec, self._key)
        self._left_out = frozenset[str]()  # parts of requests that the server refuses
        self.client = self._connect(client_options(sdk, spec, timeout))
        keep_to_its_provider(self.client, sdk, spec)

    @abstractmethod
    def _connect(self, options: dict[str, Any]) -> Any:
        """The SDK's client."""

    @property
    def address(self) -> str:
        return self.spec.address

    @property
    def endpoint(self) -> str:
        return digest(self.spec.base_url or "", self._key)

    @property
    def upstream(self) -> Upstream | None:
        return Upstream.of(self.client, self.spec, self.secrets)

    async def close(self) -> None:
        await self.client.close()

    def translated(self, *, tools: bool = False) -> AbstractContextManager[list[Usage]]:
        return translated_errors(self.sdk, self.spec, self.secrets, tools=tools)

    @abstractmethod
    async def ask(self, question: Question) -> Answer: ...

    @abstractmethod
    def _request(self, question: Question, left_out: frozenset[str]) -> Request:
        """The path and body of a question, without some parts."""

    @abstractmethod
    def _refused_in(self, message: str, question: Question) -> str:
        """The part that an error says the server refuses;
        empty if it says nothing of that.
        """

    async def _send(self, question: Question) -> Any:
        """The reply to a question. What a server refuses is left out, now and later.

        Servers refuse in many words, or none. Any other cause fails again.
        """
        sdk, tried = self.sdk, list[Request]()
        refusals = (
            sdk.BadRequestError,
            sdk.UnprocessableEntityError,
            sdk.NotFoundError,
        )
        named = left_out = self._left_out
        while True:
            path, body = request = self._request(question, left_out)
            tried.append(request)
            try:
                reply = await self.client.post(path, body=body, cast_to=object)
            except refusals as error:
                named |= {self._refused_in(error_text(error, self.secrets), question)}
                sets = [named]
                if not isinstance(error, sdk.NotFoundError):
                    sets += (named | guess for guess in _UNNAMED)
                untried = (
                    less for less in sets if self._request(question, less) not in tried
                )
                if (less := next(untried, None)) is None:
                    raise
                left_out = less
            else:
                self._left_out |= left_out
                return reply


@runtime_checkable
class Relays(Protocol):
    """A model whose own client must pass on what an agent writes,
    as it signs each request.
    """

    async def relay(
        self, body: dict[str, Any], on_refusal: OnRefusal
    ) -> dict[str, Any]:
        """The whole reply to a request, or ModelError, after
        ``on_refusal`` if it was refused.
        """
        ...


def answer_of(
    text: str,
    usage: Usage,
    reason: object,
    words: Mapping[str, str],
    turn: ToolTurn | None = None,
) -> Answer:
    """The answer of a reply that ended for this reason, also if it has no text.

    ModelError if its server failed, or says neither a word nor why.
    Tool calls of a refusal are dropped.
    """
    calls, thinking, raw = turn or ToolTurn()
    if reason in _FAILED or not (reason or text.strip() or calls):
        raise never_ended(reason)
    stop = stop_word(reason, words)
    if stop == "refusal":
        calls = ()
    stop = stop_with(stop, calls)
    return Answer(text, usage, stop, calls=calls, thinking=thinking, raw=raw)


def stop_word(reason: object, words: Mapping[str, str]) -> str:
    """Why an answer ended: our word, else the server's own; ``end`` without one."""
    return (
        words.get(reason, one_line(reason, 40))
        if reason and isinstance(reason, str)
        else "end"
    )
