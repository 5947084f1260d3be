"""Logins of vendors' own CLIs: what `claude setup-token` and
`codex login` leave behind.

The gateway puts a login's token into requests that the vendor's CLI made in its
sandbox, on their way to the vendor's own server, and into nothing else. So a login is
the provider of a model that can only pass requests on, at an address that no setting,
variable or file can change.
"""

import asyncio
import base64
import json
import math
import os
import sys
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar, Final

from .._util.files import read_file, reason_of, replace_file, resolved, why_unwritable
from .._util.keys import know
from .._util.texts import digest, one_line
from ..errors import InputError, ModelError, Setting, shown
from ..models import Model, ModelSpec
from ..models.model import Download, ProtocolName, Provider
from ..models.prices import Price
from ..models.sdk import Upstream
from ..trials.answer import Answer
from ..trials.trial import Question

_MOST_BYTES: Final = 1_000_000  # of a file with tokens, or of a reply with new ones
_EARLY: Final = 300.0  # seconds before its end that a token is refreshed
_REFRESH_SECONDS: Final = 30.0
_END_OF_TIME: Final = 4e9  # seconds since the epoch; later times are nonsense
_CLAIMS: Final = "https://api.openai.com/auth"  # of OpenAI's tokens

Forward = Callable[[Upstream], Awaitable[Answer]]


class LoginRefused(ModelError):
    """The vendor does not take a token: it has expired, or was revoked."""


@dataclass(frozen=True)
class Tokens:
    """A login as it was found; all of it is secret but the source."""

    access: str = field(repr=False)
    source: str  # for people: a variable, or a file
    refresh: str = field(default="", repr=False)
    account: str = field(default="", repr=False)
    expires_at: float | None = None
    file: Path | None = None  # where the CLI keeps it

    @property
    def is_stale(self) -> bool:
        return self.expires_at is not None and self.expires_at < time.time() + _EARLY

    @property
    def can_be_refreshed(self) -> bool:
        return bool(self.refresh and self.file)


@dataclass(frozen=True)
class Login(ABC):
    """How a vendor's CLI is logged in. Only tests pass other
    addresses than the vendor's.
    """

    url: str
    token_url: str
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
    client_id: ClassVar[str]  # public, the same for all users

    def find(self, env: Mapping[str, str]) -> Tokens | None:
        """The login of this user, or None; InputError if its file is broken."""
        file = self.file(env)
        if not file.is_file():
            return None
        return _known(self._read(file))

    @abstractmethod
    def file(self, env: Mapping[str, str]) -> Path:
        """Where the CLI keeps its login."""

    @abstractmethod
    def _tokens(self, data: dict[str, Any], file: Path) -> Tokens | None:
        """The tokens in a file of the CLI."""

    @abstractmethod
    def _add_new(self, data: dict[str, Any], reply: Mapping[str, Any]) -> None:
        """Put new tokens into the content of such a file."""

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

    def refreshed(self, old: Tokens) -> Tokens:
        """Other tokens than the old ones, which may be there already.

        A lock keeps two runs from using the same refresh token, which would log the
        user out. ModelError if there are none.
        """
        assert old.file
        file = resolved(old.file)  # a link may lead to another folder
        try:
            with _locked(file.parent):
                now = self._read(file)
                if now and now.access != old.access:
                    return _known(now) or now
                if now is None or not now.refresh:
                    raise self.error("there is no refresh token", shown(file))
                if problem := why_unwritable(file) or why_unwritable(
                    file.parent, folder=True
                ):
                    raise self.error(problem, shown(file))
                data = _json_of(read_file(file, _MOST_BYTES))
                self._add_new(data, self._fetch(now.refresh))
                new = _known(self._tokens(data, file))
                _save(file, json.dumps(data, indent=2).encode())
                if new is None or new.access == old.access:
                    raise self.error("no new token came", self.token_url)
                return new
        except (InputError, OSError, ValueError) as error:
            problem = reason_of(error) if isinstance(error, OSError) else str(error)
            raise self.error(one_line(problem, 200), shown(file)) from None

    def error(self, problem: str, where: str) -> ModelError:
        return ModelError(
            f"{where}: {problem}", f"Log in again: {self.command}", fatal=True
        )

    def _read(self, file: Path) -> Tokens | None:
        try:
            return self._tokens(_json_of(read_file(file, _MOST_BYTES)), file)
        except OSError as error:
            raise InputError(file, f"can't be read: {reason_of(error)}") from None
        except ValueError:
            problem = f"not what {self.agent} writes"
            raise InputError(file, problem, f"Log in again: {self.command}") from None

    def _fetch(self, refresh: str) -> dict[str, Any]:
        """The vendor's reply to a refresh token."""
        form = {"grant_type": "refresh_token", "refresh_token": refresh}
        body = json.dumps({**form, "client_id": self.client_id}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "pytest-upskill"}
        request = urllib.request.Request(self.token_url, body, headers)
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=_REFRESH_SECONDS) as reply:
                return _json_of(reply.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            error.close()
            raise self.error(
                f"refused to refresh it ({error.code})", self.token_url
            ) from None
        except (OSError, HTTPException) as error:
            why = one_line(str(error), 200)
            problem = f"can't be reached to refresh the login of {self.agent} ({why})"
            raise ModelError(
                f"{self.token_url} {problem}", "Try again", transient=True
            ) from None


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
    client_id = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
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
        expires = _time(login.get("expiresAt"), 1000)
        return Tokens(
            access, shown(file), _text(login.get("refreshToken")), "", expires, file
        )

    def _add_new(self, data: dict[str, Any], reply: Mapping[str, Any]) -> None:
        names = {"accessToken": "access_token", "refreshToken": "refresh_token"}
        new = {name: _text(reply.get(theirs)) for name, theirs in names.items()}
        data["claudeAiOauth"] |= {name: token for name, token in new.items() if token}
        seconds = reply.get("expires_in")
        if isinstance(seconds, int | float) and 0 < seconds < _END_OF_TIME:
            data["claudeAiOauth"]["expiresAt"] = round((time.time() + seconds) * 1000)

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
    client_id = "app_EMoamEEZ73f0CkXaXp7hrann"

    def file(self, env: Mapping[str, str]) -> Path:
        return _folder(env.get("CODEX_HOME"), "~/.codex") / "auth.json"

    def _tokens(self, data: dict[str, Any], file: Path) -> Tokens | None:
        tokens = data.get("tokens")
        if not isinstance(tokens, dict) or not (
            access := _text(tokens.get("access_token"))
        ):
            return None
        know(_text(tokens.get("id_token")))
        claims = _claims(_text(tokens.get("id_token"))).get(_CLAIMS)
        account = claims.get("chatgpt_account_id") if isinstance(claims, dict) else ""
        account = _text(tokens.get("account_id")) or _text(account)
        expires = _time(_claims(access).get("exp"))
        return Tokens(
            access,
            shown(file),
            _text(tokens.get("refresh_token")),
            account,
            expires,
            file,
        )

    def _add_new(self, data: dict[str, Any], reply: Mapping[str, Any]) -> None:
        names = ("id_token", "access_token", "refresh_token")
        data["tokens"] |= {
            name: reply[name] for name in names if _text(reply.get(name))
        }
        data["last_refresh"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def request_headers(self, tokens: Tokens) -> Mapping[str, str]:
        account = {"ChatGPT-Account-ID": tokens.account} if tokens.account else {}
        return {"Authorization": f"Bearer {tokens.access}", **account}

    def resets_at(self, error: Mapping[str, Any], headers: Mapping[str, str]) -> object:  # noqa: ARG002
        if error.get("type") != "usage_limit_reached":
            return None
        seconds = error.get("resets_in_seconds")
        soon = time.time() + seconds if isinstance(seconds, int | float) else ""
        return error.get("resets_at") or soon


CLAUDE: Final = ClaudeLogin(
    "https://api.anthropic.com", "https://platform.claude.com/v1/oauth/token"
)
CODEX: Final = CodexLogin(
    "https://chatgpt.com/backend-api/codex", "https://auth.openai.com/oauth/token"
)


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
        again = f"Log in again: {self.login.command}"
        if status == 401:
            return LoginRefused(problem, again, fatal=True)
        if status == 403:
            return ModelError(
                problem, f"Does your plan have this model? {again}", fatal=True
            )
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
        self._spec, self._login = spec, login
        self._tokens: Tokens | None = None
        self._refreshing = asyncio.Lock()

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
        """Send a request of the CLI with the login; once more if its token has
        expired.
        """
        tokens = await self._current(None)
        try:
            return await send(self._upstream(tokens))
        except LoginRefused:
            if not tokens.can_be_refreshed:
                raise
        return await send(self._upstream(await self._current(tokens)))

    async def _current(self, refused: Tokens | None) -> Tokens:
        """The tokens to use: refreshed if they expire soon, or if they were refused."""
        async with self._refreshing:
            tokens, is_first = self._tokens, self._tokens is None
            try:
                tokens = tokens or await asyncio.to_thread(self._login.find, os.environ)
            except InputError as error:  # its file changed meanwhile
                raise ModelError(one_line(str(error), 300), fatal=True) from None
            if tokens is None:
                raise self._login.error("not logged in any more", self._login.agent)
            # Later on only if it is refused: by a wrong clock, new tokens look stale,
            # too.
            if tokens.can_be_refreshed and (
                tokens == refused or (is_first and tokens.is_stale)
            ):
                tokens = await asyncio.to_thread(self._login.refreshed, tokens)
            self._tokens = tokens
            return tokens

    def _upstream(self, tokens: Tokens) -> Upstream:
        headers = self._login.request_headers(tokens)
        secrets = tuple(filter(None, (tokens.access, tokens.refresh, tokens.account)))
        return Upstream(self._spec, self._login.url, headers, secrets)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take a refresh token to another server."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _save(file: Path, content: bytes) -> None:
    """Write tokens, even if the file can't be replaced,
    as one that is mounted by itself can't.

    The old ones are worth nothing by now.
    """
    try:
        replace_file(file, content)  # bytes are written as they are
    except OSError:
        with file.open("r+b") as stream:
            stream.write(content)
            stream.truncate()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, without a file of our own in it."""
    if sys.platform == "win32":  # folders can't be locked
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _known(tokens: Tokens | None) -> Tokens | None:
    """The same tokens; from now on they are masked everywhere."""
    if tokens:
        know(tokens.access, tokens.refresh, tokens.account)
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


def _claims(token: str) -> dict[str, Any]:
    """What a JSON Web Token says, unverified; empty if it is none."""
    try:
        payload = token.split(".")[1]
        return _json_of(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError):
        return {}


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
