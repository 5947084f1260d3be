"""The errors of both official SDKs, as ModelError.

The SDKs come from the same generator and name their exceptions alike. The text of an
error may come from any server: it is shortened, made harmless, and secrets are removed
in case the server quotes them.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from types import ModuleType
from typing import Any, Final

from .._util.keys import HIDDEN, know, password_of, without_credentials
from .._util.texts import one_line
from ..errors import ModelError, Setting
from ..trials.answer import Usage
from .model import ModelSpec, basic_auth, shown_address
from .reply_size import MOST_BYTES, MOST_VALUES, TooLarge
from .tool_turns import dicts_in

Secrets = tuple[str, ...]
MORE_TIME: Final = (
    *("Raise ", Setting("timeout"), ", or lower ", Setting("concurrency")),
    " if calls wait in the server's queue",
)
_MAX_SHOWN: Final = 200
# A proxy may quote its own key, which is unknown here.
_FOREIGN_KEY: Final = re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}")
# A gateway gave up on the server, which may have worked all the same, for money.
_TIMED_OUT: Final = (408, 504, 524)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_UNPAID: Final = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")
_TOO_LONG: Final = re.compile(r"context|(prompt|input) is too long", re.IGNORECASE)
_SCHEMA: Final = re.compile(r"schema|format|output_config|structured", re.IGNORECASE)
_RETRY_DELAY: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")

# Servers refuse tools in many words, in one sentence and either order: "X does not
# support tools", "tool use is not supported".
_TOOLS: Final = (
    r"(?:\btools?\b(?![.\[]\d)|\btool[ _-]?(?:use|usage|call\w*|choice)"
    r"|\bfunction[ _-]?(?:call\w*|tools?))"
)
_NOT: Final = (
    r"(?:\bnot (?:\w+"
    r" )?(?:support\w*|enabled|available|allowed|permitted|implemented)|n't support"
    r"|\bunsupported|\bunrecognized|\bno support|\black(?:s|ing)?\b|\b(?:is|are)"
    r" disabled"
    r"|\bno endpoints found that support|\bextra (?:inputs|fields))"
)
_NO_TOOLS: Final = re.compile(
    rf"{_NOT}[^.]{{0,80}}?{_TOOLS}|{_TOOLS}[^.]{{0,80}}?{_NOT}"
    r"|\b(?:can't|cannot|not able to|unable to) (?:use|call|handle) tools"
    r"|\b(?:unexpected|invalid|unknown) (?:parameter|field|name|argument|property)"
    r":? ?['\"`]?tools\b(?![.\[]\d)",
    re.IGNORECASE,
)
_NO_TOOLS_STATUSES: Final = (400, 404, 405, 422, 500, 501)


@contextmanager
def translated_errors(
    sdk: ModuleType, spec: ModelSpec, secrets: Secrets, *, tools: bool = False
) -> Iterator[list[Usage]]:
    """Turn everything that calls raise into ModelError;
    the usage of a reply goes into the list.

    A refused call costs nothing. A reply that can't be used, or that got lost, may be
    charged for. ``tools`` says whether any were sent: the server may not support them.
    """
    usages: list[Usage] = []
    try:
        with _as_model_errors(sdk, spec, secrets, tools):
            yield usages
    except ModelError as error:
        if usages:
            error.paid = astuple(usages[0])
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
        message, headers = error_text(error, secrets), error.response.headers
        if tools and (hint := no_tools_hint(error.status_code, message)):
            problem = (
                f"the model takes no tools: {error.status_code} from {spec.address}:"
                f" {message}"
            )
            raise ModelError(problem, hint, fatal=True, no_tools=True) from None
        raise status_error(
            error.status_code,
            error.body,
            message=message,
            headers=headers,
            spec=spec,
            secrets=secrets,
        ) from None
    except (
        sdk.APIConnectionError,
        aiohttp.ClientError,
        TooLarge,
        *_broken_streams(),
    ) as error:
        raise connection_error(error, spec, secrets) from None
    except (sdk.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError):
        raise not_a_reply(spec) from None
    except getattr(sdk, "AnthropicError", getattr(sdk, "OpenAIError", ())) as error:
        raise ModelError(clean(str(error), secrets), paid=()) from None
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
    ) as error:
        problem = f"unreadable reply ({clean(repr(error), secrets)})"
        raise ModelError(problem, paid=()) from None


def _broken_streams() -> list[type[Exception]]:
    """What the SDKs' HTTP client raises in the middle of a streamed reply."""
    client = sys.modules.get("httpx2")
    return [client.TransportError] if client else []


def secrets_of(spec: ModelSpec, key: str) -> Secrets:
    """What a server gets and might quote: the key, then user and password of its
    URL.
    """
    encoded = basic_auth(spec.base_url)[1].get("Authorization", "").rpartition(" ")[2]
    secrets = (key, encoded, *password_of(spec.base_url or ""))
    know(*secrets)
    return secrets


def clean(text: str, secrets: Secrets) -> str:
    """A server's text on one line, without the key or anything that looks like one."""
    return one_line(
        without_credentials(_FOREIGN_KEY.sub(HIDDEN, text), secrets), _MAX_SHOWN
    )


def not_a_reply(spec: ModelSpec, reply: object = "") -> ModelError:
    quoted = ""
    if isinstance(reply, str) and reply.strip():
        quoted = f": {one_line(without_credentials(reply, secrets_of(spec, '')), 80)!r}"
    problem = f"invalid reply from {spec.address}{quoted}"
    return ModelError(problem, "Check the address", transient=True, paid=())


def never_ended(reason: object) -> ModelError:
    """For a reply that its server broke off."""
    why = one_line(str(reason), 40) if reason else "no text and no stop reason"
    problem = f"the reply never ended ({why})"
    return ModelError(
        problem, "Try again, or use another model", transient=True, paid=()
    )


def error_text(error: Any, secrets: Secrets) -> str:
    return message_in(error.body, str(error.message), secrets)


def message_in(body: object, default: str, secrets: Secrets) -> str:
    """The message of an error in any protocol's form."""
    error = _error_in(body)
    message = error.get("message") if isinstance(error, dict) else error
    return clean(
        message if isinstance(message, str) and message.strip() else default, secrets
    )


def _error_in(body: object) -> object:
    """The error in a body; Google puts it into a list where it
    speaks OpenAI's protocol.
    """
    if isinstance(body, list) and len(body) == 1:
        (body,) = body
    return body.get("error", body) if isinstance(body, dict) else None


def refuses_schema(message: str) -> bool:
    """Whether an error may say that the server can't enforce a schema."""
    return bool(_SCHEMA.search(message))


def no_tools_hint(status: int, message: str) -> str:
    """What to do if an error says that tools are not supported; else empty."""
    if status not in _NO_TOOLS_STATUSES:
        return ""
    if "--jinja" in message:
        return "Start llama-server with --jinja"
    if "--enable-auto-tool-choice" in message or "--tool-call-parser" in message:
        return "Start vLLM with --enable-auto-tool-choice and --tool-call-parser"
    if _NO_TOOLS.search(message):
        return "An agent needs a model that calls tools: use another one"
    return ""


def status_error(
    status: int,
    body: object,
    *,
    message: str,
    headers: Mapping[str, str],
    spec: ModelSpec,
    secrets: Secrets,
) -> ModelError:
    """What a reply with an error status means; ``headers`` ignore case."""
    problem, error = f"{status} from {spec.address}: {message}", _error_in(body)
    if refusal := spec.provider.refusal(status, error, message, headers, spec):
        return refusal
    if status in _REDIRECTS:
        target = (
            clean(shown_address(headers.get("location") or ""), secrets)
            or "another address"
        )
        problem = (
            f"{status} from {spec.address}: a redirect to {target}, which is not"
            " followed"
        )
        return ModelError(
            problem, "Check the address, or name the one that it leads to", fatal=True
        )
    if refusal_hint := spec.provider.refusal_hint(status, message):
        return ModelError(problem, refusal_hint, fatal=True)
    if status in (401, 403) or (status == 400 and _is_invalid_google_key(error)):
        name = " or ".join(spec.provider.key_envs) or "the server's key"
        return ModelError(problem, f"Check {name}", fatal=True)
    if status == 404:
        return ModelError(
            problem, f"Check the model's name ({spec.model_id})", fatal=True
        )
    if status == 413 or (status == 400 and _TOO_LONG.search(message)):
        return ModelError(
            problem,
            f"The prompt is too long for this model{spec.provider.longer_prompts}",
        )
    if status == 402 or (status in (400, 429) and _is_unpaid(error, message)):
        return ModelError(
            problem, "Check the plan and the billing of your account", fatal=True
        )
    if status == 429 and "request too large" in message.lower():
        return ModelError(problem, "The prompt is too long for your rate limit")
    wait = retry_after(headers, datetime.now(UTC))
    wait = _google_retry_delay(error) if wait is None else wait
    if status in (429, 529) or (status == 503 and wait is not None):
        hint = ("Lower ", Setting("concurrency"), ", or wait")
        return ModelError(problem, hint, rate_limited=True, retry_after=wait)
    # 424: the model failed, of Bedrock and TGI
    if status in (408, 409, 424) or status >= 500:
        timed_out = status in _TIMED_OUT
        return ModelError(
            problem,
            MORE_TIME if timed_out else "Server error: try again later",
            transient=True,
            retry_after=wait,
            timed_out=timed_out,
            paid=() if timed_out else None,
        )
    return ModelError(problem)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that a server asks to wait: a number, or until a date;
    it may send anything.
    """
    milliseconds = _number(headers.get("retry-after-ms") or "")
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    header = headers.get("retry-after") or ""
    seconds = _number(header)
    if seconds is None:
        try:
            seconds = (parsedate_to_datetime(header) - now).total_seconds()
        # No date, or one without a time zone
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _is_unpaid(error: object, message: str) -> bool:
    """Whether an account has no credit, which no waiting changes."""
    codes = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    return (
        any(code in codes for code in _UNPAID)
        or "credit balance is too low" in message.lower()
        or _is_google_quota_used_up(error)
    )


def _is_invalid_google_key(error: object) -> bool:
    """Google answers 400 to an invalid key."""
    return any(
        detail.get("reason") == "API_KEY_INVALID" for detail in _google_details(error)
    )


def _is_google_quota_used_up(error: object) -> bool:
    """Whether the quota of a day is used up, or zero: waiting takes too long."""
    details = _google_details(error)
    quotas = [
        quota for detail in details for quota in dicts_in(detail.get("violations"))
    ]
    return any("PerDay" in str(quota.get("quotaId")) for quota in quotas)


def _google_retry_delay(error: object) -> float | None:
    for detail in _google_details(error):
        if match := _RETRY_DELAY.fullmatch(str(detail.get("retryDelay"))):
            return float(match[1])
    return None


def _google_details(error: object) -> list[dict[str, Any]]:
    return dicts_in(error.get("details")) if isinstance(error, dict) else []


def connection_error(
    error: BaseException, spec: ModelSpec, secrets: Secrets
) -> ModelError:
    """Ask aiohttp what happened: the SDKs call any broken connection a timeout."""
    import aiohttp

    causes = list(_causes(error))
    if any(isinstance(cause, TooLarge) for cause in causes):
        limit = f"{MOST_BYTES / 1e6:.0f} MB, or {MOST_VALUES:,} values"
        problem = f"the reply from {spec.address} is too large (more than {limit})"
        return ModelError(problem, "Check the address", paid=())
    cause = next(
        (cause for cause in causes if isinstance(cause, aiohttp.ClientError)),
        causes[-1],
    )
    reason = clean(str(causes[-1]) or type(causes[-1]).__name__, secrets)
    no_connection = isinstance(cause, aiohttp.ConnectionTimeoutError)
    if no_connection:
        reason = "connection timed out"
    if no_connection or isinstance(cause, aiohttp.ClientConnectorError):
        provider_url = getattr(spec.provider, "base_url", None)
        # A provider's own server is neither started nor named by the user.
        is_own = spec.provider.needs_key and spec.base_url == provider_url
        hint = (
            "Check your network"
            if is_own
            else "Is the server running, and the address right?"
        )
        return ModelError(
            f"can't connect to {spec.address} ({reason})",
            hint,
            unreachable=True,
            no_connection=no_connection,
        )
    problem = f"lost the connection to {spec.address} ({reason})"
    return ModelError(problem, "Try again", transient=True, paid=())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error:
        yield error
        error = error.__cause__
