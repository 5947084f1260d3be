"""What the two official SDKs share: making a client, and translating their errors.

Both come from the same generator and name their exceptions alike, so one translation serves
both. The text of an error may come from any server: it is shortened, made harmless, and the key
is removed in case the server quotes it.
"""

import base64
import json
import re
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from io import BytesIO
from types import ModuleType
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import unquote, urlsplit

from .._util.credentials import without_credentials
from .._util.keys import HIDDEN, know, password_of
from .._util.texts import one_line
from ..errors import ModelError, Setting
from ..trials.answer import Answer, Usage
from . import google_errors
from .port import ModelSpec, shown_address
from .rate_limits import heard_quotas, note_reply, note_start, retry_after
from .reply_size import MOST_BYTES, MOST_VALUES, TooLarge, limit_size
from .tool_support import hint_without_tools
from .tool_turns import ToolTurn, stop_with

_SHOWN: Final = 200
_LARGE: Final = 1_000_000  # bytes
# A proxy may quote its own key, which is unknown here.
_FOREIGN_KEY: Final = re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}")
# A server that accepts no connection within this many seconds is asked again; the answer itself
# may take all of the timeout.
CONNECT_SECONDS: Final = 10.0
# The SDKs look for a key in their environment if they get none: never send a server a foreign one.
NO_KEY: Final = "no-key"
# A gateway gave up on the server, which may have worked all the same, for money.
_TIMED_OUT: Final = (408, 504, 524)
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_UNPAID: Final = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")
_SDK_HEADERS: Final = ("accept", "content-type", "user-agent", "x-stainless", "anthropic-version")
_TOO_LONG: Final = re.compile(r"context|(prompt|input) is too long", re.IGNORECASE)
# What an error says if a server can't enforce a schema.
OF_SCHEMA: Final = re.compile(r"schema|format|output_config|structured", re.IGNORECASE)
Secrets = tuple[str, ...]
Refused = Callable[[int, str], None]  # called with the status and the words of a refusal
MORE_TIME: Final = ("Raise ", Setting("timeout"), ", or ask for less")


async def _send_in_parts(request: Any) -> None:
    """aiohttp warns of a large body in one piece, which is an error in many a project's tests."""
    content = getattr(request, "_content", b"")  # a file to upload is sent in parts already
    if len(content) > _LARGE:
        request._content = BytesIO(content)


# Of the SDKs' HTTP client: they run in the task that asks.
_HOOKS: Final = {"request": [note_start, _send_in_parts], "response": [note_reply, limit_size]}


def client_options(sdk: ModuleType, spec: ModelSpec, timeout: float) -> dict[str, Any]:
    """The arguments of both SDKs' clients."""
    limits = sdk.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    url, headers = _without_password(spec.base_url)
    return {
        "base_url": url,
        "default_headers": headers,
        "timeout": limits,
        "max_retries": 0,  # the engine retries
        # 1.7 ms of CPU time per call, instead of 2.8 with the SDKs' default transport.
        # A redirect would take the skill to a server that nobody named, and lose the question: most
        # of them turn it into a GET.
        "http_client": sdk.DefaultAioHttpClient(
            timeout=limits, event_hooks=_HOOKS, follow_redirects=False, verify=_trusted(url)
        ),
    }


def _trusted(url: str | None) -> ssl.SSLContext | bool:
    """Whose certificates count; none have to be read, which takes 20 ms, to reach this machine."""
    parts = urlsplit(url or "")
    if parts.scheme == "http" and parts.hostname in _THIS_MACHINE:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return True


def keep_to_its_provider(client: Any, sdk: ModuleType, spec: ModelSpec) -> None:
    """Take from a client for another server what the SDK read from its provider's environment.

    OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS and the ids of organisation and project are
    read whatever the address is, and the constructors have no argument against it.
    """
    if spec.provider.name == sdk.__name__:
        return
    client._custom_headers = _without_password(spec.base_url)[1]
    for name in ("organization", "project", "admin_api_key", "webhook_secret", "webhook_key"):
        if isinstance(vars(client).get(name), str):
            setattr(client, name, None)


def _without_password(url: str | None) -> tuple[str | None, dict[str, str]]:
    """A URL without user and password, and the header that carries them.

    aiohttp refuses a URL with a password next to the header of a key. The password wins: it is
    for the proxy that the request reaches first.
    """
    parts = urlsplit(url or "")
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    coded = base64.b64encode(unquote(user if ":" in user else f"{user}:").encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {coded}"}


@dataclass(frozen=True)
class Upstream:
    """The server of a model, for requests that an agent writes itself."""

    spec: ModelSpec
    url: str
    headers: Mapping[str, str]  # what the provider wants besides the protocol's own: keys
    secrets: Secrets

    @classmethod
    def of(cls, client: Any, spec: ModelSpec, secrets: Secrets) -> "Upstream":
        """As an SDK's client would ask; it knows which headers carry its key."""
        headers = {**client.default_headers, **client.auth_headers, **client._custom_headers}
        own = {
            name: value
            for name, value in headers.items()
            if isinstance(value, str) and not name.lower().startswith(_SDK_HEADERS)
        }
        return cls(spec, str(client.base_url).rstrip("/"), own, secrets)


@runtime_checkable
class Relays(Protocol):
    """A model whose own client must pass on what an agent writes, as it signs each request."""

    async def relay(self, body: dict[str, Any], refused: Refused) -> dict[str, Any]:
        """The whole reply to a request, or ModelError, once ``refused`` was told if it was."""
        ...


@contextmanager
def translated_errors(
    sdk: ModuleType, spec: ModelSpec, secrets: Secrets, *, tools: bool = False
) -> Iterator[list[Usage]]:
    """Turn everything that calls raise into ModelError; the usage of a reply goes into the list.

    A refused call costs nothing. A reply that can't be used, or that got lost, may be charged for.
    ``tools`` were sent: the server may take none.
    """
    told: list[Usage] = []
    try:
        with _as_model_errors(sdk, spec, secrets, tools):
            yield told
    except ModelError as error:
        if told:
            error.paid = astuple(told[0])
        raise


@contextmanager
def _as_model_errors(
    sdk: ModuleType, spec: ModelSpec, secrets: Secrets, tools: bool
) -> Iterator[None]:
    import aiohttp  # the SDK has done so by now

    try:
        yield
    except ModelError:
        raise
    except sdk.APIStatusError as error:
        said, headers = error_text(error, secrets), error.response.headers
        if tools and (hint := hint_without_tools(error.status_code, said)):
            problem = f"the model takes no tools: {error.status_code} from {spec.address}: {said}"
            raise ModelError(problem, hint, fatal=True, no_tools=True) from None
        raise status_error(error.status_code, error.body, said, headers, spec, secrets) from None
    except (sdk.APIConnectionError, aiohttp.ClientError, TooLarge, *_broken_streams()) as error:
        raise connection_error(error, spec, secrets) from None
    except (sdk.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError):
        raise not_a_reply(spec) from None
    except getattr(sdk, "AnthropicError", getattr(sdk, "OpenAIError", ())) as error:
        raise ModelError(clean(str(error), secrets), paid=()) from None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        problem = f"unreadable reply ({clean(repr(error), secrets)})"
        raise ModelError(problem, paid=()) from None


def _broken_streams() -> list[type[Exception]]:
    """What the SDKs' HTTP client raises in the middle of a reply that is read as it arrives."""
    client = sys.modules.get("httpx2")
    return [client.TransportError] if client else []


def secrets_of(spec: ModelSpec, key: str) -> Secrets:
    """What a server gets and might quote: the key, then user and password of its URL."""
    coded = _without_password(spec.base_url)[1].get("Authorization", "").rpartition(" ")[2]
    secrets = (key, coded, *password_of(spec.base_url or ""))
    know(*secrets)
    return secrets


def clean(text: str, secrets: Secrets) -> str:
    """A server's text on one line, without the key or anything that looks like one."""
    return one_line(without_credentials(_FOREIGN_KEY.sub(HIDDEN, text), secrets), _SHOWN)


def not_a_reply(spec: ModelSpec, reply: object = "") -> ModelError:
    quoted = ""
    if isinstance(reply, str) and reply.strip():
        said = without_credentials(reply, secrets_of(spec, ""))
        quoted = f": {one_line(said, 80)!r}"
    return ModelError(
        f"invalid reply from {spec.address}{quoted}",
        "Check the address",
        transient=True,
        paid=(),
    )


def empty_reply(stop: str, usage: Usage | None = None) -> ModelError:
    paid = astuple(usage) if usage else ()
    if stop == "length":
        problem = "empty reply: reasoning used up the output limit"
        return ModelError(problem, ("Raise ", Setting("max_output")), paid=paid)
    hint = "Try again, or use another model"
    return ModelError("empty reply", hint, transient=True, paid=paid)


def answer_of(text: str, usage: Usage, stop: str, turn: ToolTurn | None = None) -> Answer:
    """The answer of a reply. Only the turn of an agent may be empty; a refusal calls nothing."""
    if turn is None and not text.strip() and stop != "refusal":
        raise empty_reply(stop)
    calls, thinking, raw = turn or ToolTurn()
    if stop == "refusal":
        calls = ()
    return Answer(
        text,
        usage,
        stop_with(stop, calls),
        calls=calls,
        thinking=thinking,
        raw=raw,
        quotas=heard_quotas(),
    )


def stop_word(reason: object, words: Mapping[str, str]) -> str:
    """Why an answer ended: our word, else the server's own; without one, it ended well."""
    return words.get(reason, one_line(reason, 40)) if reason and isinstance(reason, str) else "end"


def error_text(error: Any, secrets: Secrets) -> str:
    return said_in(error.body, str(error.message), secrets)


def said_in(body: object, otherwise: str, secrets: Secrets) -> str:
    """The message of an error in any protocol's form."""
    inner = _error_in(body)
    message = inner.get("message") if isinstance(inner, dict) else inner
    if isinstance(message, str) and message.strip():
        return clean(message, secrets)
    return clean(otherwise, secrets)


def _error_in(body: object) -> object:
    """What an error says of itself; Google's is in a list where it speaks OpenAI's protocol."""
    if isinstance(body, list) and len(body) == 1:
        (body,) = body
    return body.get("error", body) if isinstance(body, dict) else None


def status_error(
    status: int,
    body: object,
    said: str,
    headers: Mapping[str, str],
    spec: ModelSpec,
    secrets: Secrets,
) -> ModelError:
    """What a reply with an error status means; ``headers`` are found in any case."""
    problem, inner = f"{status} from {spec.address}: {said}", _error_in(body)
    if status in _REDIRECTS:
        where = shown_address(headers.get("location") or "")
        leads = f"a redirect to {clean(where, secrets) or 'another address'}, which is not followed"
        hint = "Check the address, or name the one that it leads to"
        return ModelError(f"{status} from {spec.address}: {leads}", hint, fatal=True)
    if why := spec.provider.why_refused(status, said):
        return ModelError(problem, why, fatal=True)
    if status in (401, 403) or (status == 400 and google_errors.is_of_key(inner)):
        name = " or ".join(spec.provider.key_envs) or "the server's key"
        return ModelError(problem, f"Check {name}", fatal=True)
    if status == 404:
        return ModelError(problem, f"Check the model's name ({spec.model_id})", fatal=True)
    if status == 413 or (status == 400 and _TOO_LONG.search(said)):
        return ModelError(problem, "The prompt is too long for this model")
    if status == 402 or (status in (400, 429) and _is_unpaid(body, said)):
        return ModelError(problem, "Check the plan and the billing of your account", fatal=True)
    if status == 429 and "request too large" in said.lower():
        return ModelError(problem, "The prompt is too long for your rate limit")
    wait = retry_after(headers, datetime.now(UTC))
    wait = google_errors.retry_delay(inner) if wait is None else wait
    if status in (429, 529) or (status == 503 and wait is not None):
        lower = ("Lower ", Setting("concurrency"), ", or wait")
        return ModelError(problem, lower, rate_limited=True, retry_after=wait)
    if status in (408, 409, 424) or status >= 500:  # 424: the model failed, of Bedrock and TGI
        hint = "Server error: try again later"
        paid = () if status in _TIMED_OUT else None
        return ModelError(problem, hint, transient=True, retry_after=wait, paid=paid)
    return ModelError(problem)


def _is_unpaid(body: object, said: str) -> bool:
    """Whether an account has no credit left, which no waiting changes."""
    inner = _error_in(body)
    codes = [inner.get("code"), inner.get("type")] if isinstance(inner, dict) else []
    return (
        any(code in codes for code in _UNPAID)
        or "credit balance is too low" in said.lower()
        or google_errors.is_used_up(inner)
    )


def connection_error(error: BaseException, spec: ModelSpec, secrets: Secrets) -> ModelError:
    """Ask aiohttp what happened: the SDKs call any broken connection a timeout."""
    import aiohttp

    causes = list(_causes(error))
    if any(isinstance(one, TooLarge) for one in causes):
        most = f"{MOST_BYTES / 1e6:.0f} MB, or {MOST_VALUES:,} values"
        problem = f"the reply from {spec.address} is too large (more than {most})"
        return ModelError(problem, "Check the address", paid=())
    met = next((one for one in causes if isinstance(one, aiohttp.ClientError)), causes[-1])
    what = clean(str(causes[-1]) or type(causes[-1]).__name__, secrets)
    if isinstance(met, aiohttp.SocketTimeoutError):
        problem = f"no answer from {spec.address} in time"
        return ModelError(problem, MORE_TIME, transient=True, paid=())
    if isinstance(met, aiohttp.ConnectionTimeoutError):
        what = "connection timed out"
    if isinstance(met, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return ModelError(
            f"can't connect to {spec.address} ({what})",
            "Is the server running, and the address right?",
            unreachable=True,
        )
    problem = f"lost the connection to {spec.address} ({what})"
    return ModelError(problem, "Try again", transient=True, paid=())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error:
        yield error
        error = error.__cause__
