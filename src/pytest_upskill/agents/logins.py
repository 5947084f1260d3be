"""Logins of vendors' own CLIs: what `claude setup-token` and
`codex login` leave behind.

The gateway puts a login's token into requests that the vendor's CLI made in its
sandbox, on their way to the vendor's own server, and into nothing else. So a login is
the provider of a model that can only pass requests on, at an address that no setting,
variable or file can change.

A login is only read: the CLI renews its own file whenever it is used.
"""

import asyncio
import base64
import json
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from .._util.files import read_file, reason_of
from .._util.keys import know
from .._util.texts import digest, one_line
from ..errors import InputError, ModelError, Setting, shown
from ..models import Model, ModelSpec
from ..models.model import Download, ProtocolName, Provider
from ..models.prices import Price
from ..models.sdk import Upstream
from ..trials.answer import Answer
from ..trials.trial import Question

_MOST_BYTES: Final = 1_000_000  # of a file with tokens
_END_OF_TIME: Final = 4e9  # seconds since the epoch; later times are nonsense

Forward = Callable[[Upstream], Awaitable[Answer]]


@dataclass(frozen=True)
class Tokens:
    """A login as it was found; all of it is secret but the source."""

    access: str = field(repr=False)
    source: str  # for people: a variable, or a file
    account: str = field(default="", repr=False)
    expires_at: float | None = None  # seconds since the epoch


@dataclass(frozen=True)
class Login(ABC):
    """How a vendor's CLI is logged in. Only tests pass another
    address than the vendor's.
    """

    url: str
    agent: ClassVar[str]
    vendor: ClassVar[str]  # the name of the provider
    protocol: ClassVar[ProtocolName]
    models: ClassVar[str]  # that it is for, in words
    first_model: ClassVar[str]  # cheap, and part of every plan
    command: ClassVar[str]  # that logs in
    user_agent: ClassVar[str]  # the start of the header of the CLI's own requests
    # Headers of the CLI that are passed on besides the usual ones;
    # values if only some are.
    headers: ClassVar[Mapping[str, frozenset[str] | None]]

    def find(self, env: Mapping[str, str]) -> Tokens | None:
        """The login of this user, or None; InputError if it is broken or over."""
        file = self.file(env)
        if not file.is_file():
            return None

        try:
            tokens = self._tokens(_json_of(read_file(file, _MOST_BYTES)), file)
        except OSError as error:
            raise InputError(file, f"can't be read: {reason_of(error)}") from None
        except ValueError:
            problem = f"not what {self.agent} writes"
            raise InputError(file, problem, self.again) from None

        if tokens is None:
            return None
        if tokens.expires_at is not None and tokens.expires_at < time.time():
            problem = "the login has expired"
            hint = f"Ask {self.agent} anything once, and it renews it. {self.again}"
            raise InputError(file, problem, hint)
        return _known(tokens)

    @property
    def again(self) -> str:
        """What to do about a login that is worth nothing."""
        return f"Log in again: {self.command}"

    @abstractmethod
    def file(self, env: Mapping[str, str]) -> Path:
        """Where the CLI keeps its login."""

    @abstractmethod
    def _tokens(self, data: dict[str, Any], file: Path) -> Tokens | None:
        """The tokens in a file of the CLI."""

    @abstractmethod
    def request_headers(self, tokens: Tokens) -> Mapping[str, str]:
        """What a request gets besides the headers of the CLI."""

    @abstractmethod
    def resets_at(self, error: Mapping[str, Any], headers: Mapping[str, str]) -> object:
        """When the usage limit resets that a 429 is about, in seconds since the epoch.

        None if it is about no such limit.
        """

    def is_own(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has what all requests of the CLI have.

        The vendor would refuse the token without it, as if that had expired.
        """
        values = {name: listed for name, listed in self.headers.items() if listed}
        return headers.get("user-agent", "").startswith(self.user_agent) and all(
            any(value in headers.get(name, "") for value in listed)
            for name, listed in values.items()
        )

    def spec(self, spec: ModelSpec) -> ModelSpec:
        """The same model, asked on this login."""
        return replace(
            spec, provider=LoginProvider.of(self, spec.provider), base_url=self.url
        )


class ClaudeLogin(Login):
    """The plan of a Claude account, for Claude Code."""

    agent = "claude"
    vendor = "anthropic"
    protocol = "messages"
    models = "haiku, sonnet, opus or anthropic:ID"
    first_model = "haiku"
    command = "claude setup-token, then set CLAUDE_CODE_OAUTH_TOKEN; or claude /login"
    user_agent = "claude-cli/"
    headers: ClassVar[Mapping[str, frozenset[str] | None]] = {
        **dict.fromkeys(("x-app", "x-claude-code-session-id")),
        "anthropic-beta": frozenset(("oauth",)),
    }
    variable: Final = "CLAUDE_CODE_OAUTH_TOKEN"

    def find(self, env: Mapping[str, str]) -> Tokens | None:
        if token := env.get(self.variable, "").strip():
            if not (token.isascii() and token.isprintable()):
                problem = "holds a character that no token has"
                raise InputError(
                    self.variable, problem, "Copy it again, without line breaks."
                )
            return _known(Tokens(token, self.variable))
        return super().find(env)

    def file(self, env: Mapping[str, str]) -> Path:
        return _folder(env.get("CLAUDE_CONFIG_DIR"), "~/.claude") / ".credentials.json"

    def _tokens(self, data: dict[str, Any], file: Path) -> Tokens | None:
        login = data.get("claudeAiOauth")
        if not isinstance(login, dict) or not (
            access := _text(login.get("accessToken"))
        ):
            return None
        expires_at = _time(login.get("expiresAt"), 1000)
        return Tokens(access, shown(file), expires_at=expires_at)

    def request_headers(self, tokens: Tokens) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {tokens.access}"}

    def resets_at(self, error: Mapping[str, Any], headers: Mapping[str, str]) -> object:  # noqa: ARG002
        if headers.get("anthropic-ratelimit-unified-status") != "rejected":
            return None
        return headers.get("anthropic-ratelimit-unified-reset", "")


class CodexLogin(Login):
    """The plan of a ChatGPT account, for Codex."""

    agent = "codex"
    vendor = "openai"
    protocol = "responses"
    models = "openai:ID"
    first_model = "openai:gpt-5.6-luna"
    command = "codex login"
    user_agent = "codex_"
    headers = dict.fromkeys(
        ("originator", "session-id", "thread-id", "x-codex-beta-features")
    )

    def file(self, env: Mapping[str, str]) -> Path:
        return _folder(env.get("CODEX_HOME"), "~/.codex") / "auth.json"

    def _tokens(self, data: dict[str, Any], file: Path) -> Tokens | None:
        tokens = data.get("tokens")
        if not isinstance(tokens, dict) or not (
            access := _text(tokens.get("access_token"))
        ):
            return None
        account = _text(tokens.get("account_id"))
        return Tokens(access, shown(file), account=account, expires_at=_expiry(access))

    def request_headers(self, tokens: Tokens) -> Mapping[str, str]:
        account = {"ChatGPT-Account-ID": tokens.account} if tokens.account else {}
        return {"Authorization": f"Bearer {tokens.access}", **account}

    def resets_at(self, error: Mapping[str, Any], headers: Mapping[str, str]) -> object:  # noqa: ARG002
        if error.get("type") != "usage_limit_reached":
            return None
        seconds = error.get("resets_in_seconds")
        soon = time.time() + seconds if isinstance(seconds, int | float) else ""
        return error.get("resets_at") or soon


CLAUDE: Final = ClaudeLogin("https://api.anthropic.com")
CODEX: Final = CodexLogin("https://chatgpt.com/backend-api/codex")


@dataclass(frozen=True)
class LoginProvider(Provider):
    """A vendor's models, asked on a login by its CLI."""

    login: Login = field(kw_only=True)
    keyed: Provider = field(kw_only=True)  # the same models, asked with a key

    @classmethod
    def of(cls, login: Login, keyed: Provider) -> "LoginProvider":
        return cls(keyed.name, keyed.example, login=login, keyed=keyed)

    def require(
        self,
        spec: ModelSpec,
        env: Mapping[str, str],
        download: Download,  # noqa: ARG002
    ) -> None:
        if self.login.find(env) is None:
            problem = f"{self.login.agent} is not logged in"
            hint = (
                f"{self.login.command}. Or drop ",
                Setting("login"),
                " and use a key.",
            )
            raise spec.no_key(problem, hint)

    def identity(self, spec: ModelSpec) -> str | None:
        """As with a key, if the server is the same: who pays
        does not shape the answers.
        """
        return self.keyed.identity(spec)

    def protocols(self, spec: ModelSpec) -> tuple[ProtocolName, ...]:  # noqa: ARG002
        return (self.login.protocol,)

    def price(self, spec: ModelSpec) -> Price | None:
        return self.keyed.price(spec)

    def refusal(
        self,
        status: int,
        error: object,
        message: str,
        headers: Mapping[str, str],
        spec: ModelSpec,
    ) -> ModelError | None:
        problem = f"{status} from {spec.address}: {message}"
        if status == 401:
            return ModelError(problem, self.login.again, fatal=True)
        if status == 403:
            hint = f"Does your plan have this model? {self.login.again}"
            return ModelError(problem, hint, fatal=True)

        reset = self.login.resets_at(error if isinstance(error, dict) else {}, headers)
        if status != 429 or reset is None:
            return None
        when = _time(reset)
        resets = f"; it resets at {_clock(when)}" if when else ""
        problem = f"the usage limit of your plan is reached{resets}"
        hint = "Run the same command then: what was answered is not asked again"
        return ModelError(problem, hint, used_up=True)

    async def open(self, spec: ModelSpec, timeout: float) -> Model:  # noqa: ARG002
        return LoginModel(spec, self.login)


class LoginModel(Model):
    """A model that passes on what the vendor's CLI asks,
    and can be asked nothing itself.
    """

    def __init__(self, spec: ModelSpec, login: Login) -> None:
        self._spec = spec
        self._login = login

    @property
    def endpoint(self) -> str:
        return digest("login", self._login.url)

    @property
    def address(self) -> str:
        return self._spec.address

    async def ask(self, question: Question) -> Answer:  # noqa: ARG002
        raise ModelError(
            f"a login is only for requests of {self._login.agent} itself", fatal=True
        )

    async def forward(self, send: Forward) -> Answer:
        """Send a request of the CLI with the login as it is now: the CLI may have
        renewed it meanwhile.
        """
        try:
            tokens = await asyncio.to_thread(self._login.find, os.environ)
        except InputError as error:
            raise ModelError(one_line(str(error), 300), fatal=True) from None

        if tokens is None:
            problem = f"{self._login.agent} is not logged in any more"
            raise ModelError(problem, self._login.again, fatal=True)
        headers = self._login.request_headers(tokens)
        secrets = tuple(filter(None, (tokens.access, tokens.account)))
        return await send(Upstream(self._spec, self._login.url, headers, secrets))


def _known(tokens: Tokens) -> Tokens:
    """The same tokens; from now on they are masked everywhere."""
    know(tokens.access, tokens.account)
    return tokens


def _json_of(data: bytes) -> dict[str, Any]:
    """ValueError if it is no JSON object."""
    try:
        value = json.loads(data)
    except RecursionError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _expiry(token: str) -> float | None:
    """When a JSON Web Token ends; None if it does not say."""
    try:
        payload = token.split(".")[1]
        padded = payload + "=" * (-len(payload) % 4)
        return _time(_json_of(base64.urlsafe_b64decode(padded)).get("exp"))
    except (ValueError, IndexError):
        return None


def _folder(path: str | None, default: str) -> Path:
    return Path(path or default).expanduser()


def _text(value: object) -> str:
    """A text that a header can have; empty if it is none."""
    return (
        value
        if isinstance(value, str) and value.isascii() and value.isprintable()
        else ""
    )


def _time(value: object, per_second: int = 1) -> float | None:
    """Seconds since the epoch; None if it is no such number."""
    try:
        seconds = float(value) / per_second  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < _END_OF_TIME else None


def _clock(seconds: float) -> str:
    """A local time, not before it, with the day unless that is today."""
    when = datetime.fromtimestamp(math.ceil(seconds / 60) * 60).astimezone()
    is_today = when.date() == datetime.now(when.tzinfo).date()
    return when.strftime("%H:%M" if is_today else "%H:%M on %A, %d %B")
