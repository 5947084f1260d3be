"""A model as the engine asks it, its name as people write it, and its provider."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol, get_args, runtime_checkable
from urllib.parse import unquote, urlsplit

from .._util.keys import without_credentials
from .._util.texts import digest
from ..errors import ModelError, NoKeyError, Setting, SettingsError, Text
from ..trials.answer import Answer
from ..trials.trial import Question
from .prices import Price

# Anthropic's Messages, OpenAI's Chat Completions and Responses,
# Google's generateContent.
ProtocolName = Literal["messages", "chat", "responses", "gemini"]
PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
# Called with the bytes loaded and the bytes in total
Progress = Callable[[int, int], None]
Download = Callable[[str], Progress]  # called before a download, with its description
# Whose models may be small, unlike judges; students have a teacher
_TESTED: Final = "models"
_WITH_LOGINS: Final = ("anthropic", "openai")  # of a CLI of their own
_SUBSCRIPTION_TOKEN: Final = "sk-ant-oat"  # how tokens of Claude subscriptions start


@runtime_checkable
class Model(Protocol):
    """An adapter to one model; a subclass needs only ``ask``."""

    @property
    def endpoint(self) -> str:
        """The same for models that share a server and a key, and so rate limits;
        never shown.
        """
        return f"model {id(self)}"

    @property
    def address(self) -> str:
        """Where the model is, safe to show; empty if it has no address."""
        return ""

    @property
    def most_in_flight(self) -> int | None:
        """How many questions it works on at once, if it has a limit of its own."""
        return None

    @abstractmethod
    async def ask(self, question: Question) -> Answer:
        """Answer, or raise ModelError; the engine fills in ``seconds``."""

    async def close(self) -> None:
        """Free what the model holds, at the end of the run."""
        return  # else type checkers take the method for an abstract one


@dataclass(frozen=True)
class NamedBy:
    """Which setting named a model, for errors about the model."""

    setting: str = "models"
    url_setting: str = "base_url"
    origin: str = ""  # the file and key that the name was read from, if any
    agent: bool = False  # whether an agent asks it


@dataclass(frozen=True)
class ModelName:
    """A model as a person named it."""

    name: str
    base_url: str | None = None  # the server for names that no provider knows
    folder: Path = Path()  # files in the name are relative to it
    by: NamedBy = NamedBy()

    def error(self, problem: str, hint: Text = "") -> SettingsError:
        by = self.by
        name = without_credentials(self.name)
        return SettingsError(by.setting, problem, hint, value=name, origin=by.origin)


@dataclass(frozen=True)
class ModelSpec:
    """A resolved model: its provider, its id there, and how to reach it."""

    name: str
    provider: "Provider"
    model_id: str
    base_url: str | None = None
    effort: str | None = None  # reasoning effort
    file: str | None = None  # weights of an embedded model, if not the default ones
    options: tuple[tuple[str, int], ...] = ()  # of an embedded model's server
    by: NamedBy = field(default=NamedBy(), compare=False)

    @property
    def address(self) -> str:
        """Where it is, safe to show."""
        return shown_address(self.base_url or "")

    def error(self, problem: str, hint: Text = "") -> SettingsError:
        return ModelName(self.name, by=self.by).error(problem, hint)

    def no_key(self, problem: str, hint: Text) -> NoKeyError:
        name = without_credentials(self.name)
        return NoKeyError(
            self.by.setting, problem, hint, value=name, origin=self.by.origin
        )


@dataclass(frozen=True)
class ModelLimits:
    """What a model can do, where that is less or more than usual;
    settings of the user win.
    """

    output: int | None = None  # tokens of an answer
    context: int | None = None  # tokens of a question with its answer
    seconds: float | None = None  # for an answer


@dataclass(frozen=True)
class Provider(ABC):
    """Models whose names share a prefix; only ``open`` must be implemented.

    Only ``open`` may import an SDK or use the network,
    so that a wrong name costs nothing.
    """

    name: str  # the prefix
    example: str  # a full model name, for hints
    # Environment variables, in order
    key_envs: tuple[str, ...] = field(default=(), kw_only=True)
    needs_key: bool = field(default=False, kw_only=True)
    # Whether the prefix alone names a model
    bare: bool = field(default=False, kw_only=True)
    opening: ClassVar[str] = "starting"  # what ``open`` does, in words
    longer_prompts: ClassVar[str] = ""  # how to have its models take them

    def resolve(
        self,
        model: ModelName,
        model_id: str,
        env: Mapping[str, str],  # noqa: ARG002
    ) -> ModelSpec:
        """The model of a name whose part after the prefix is ``model_id``,
        or SettingsError.
        """
        return ModelSpec(model.name, self, model_id)

    def require(
        self,
        spec: ModelSpec,
        env: Mapping[str, str],
        download: Download,  # noqa: ARG002
    ) -> None:
        """Raise SettingsError if the model can't be asked: no key, no package, no
        file.
        """
        for variable, value in self.login_in(env).items():
            if not (value.isascii() and value.isprintable()):
                raise spec.error(
                    f"{variable} holds a character that no key has",
                    "Copy the key again, without line breaks.",
                )
        variable, key = self.key_in(env) or ("", "")
        if key.startswith(_SUBSCRIPTION_TOKEN):
            problem = f"{variable} holds the token of a login, not a key"
            fix = (
                f"Set {self.key_envs[0]} to a key of the API, or"
                " CLAUDE_CODE_OAUTH_TOKEN to it"
            )
            raise spec.error(
                problem, (f"{fix} and add ", Setting("login"), " for claude.")
            )
        if not key and self.needs_key:
            variable = self.key_envs[0]
            state = "is empty" if variable in env else "is not set"
            hint: Text = f"Set {variable}, or name another model."
            if spec.by.setting == _TESTED and not spec.by.agent:  # local takes no tools
                setting = Setting(spec.by.setting)
                hint = (f"Set {variable}, or try without a key: ", setting, " local")
            elif spec.by.agent and self.name in _WITH_LOGINS:
                hint = (
                    f"{hint} claude and codex can also use your login: ",
                    Setting("login"),
                    ".",
                )
            raise spec.no_key(f"{variable} {state}", hint)

    def key_in(self, env: Mapping[str, str]) -> tuple[str, str] | None:
        """The first environment variable that holds a key, and the key."""
        variable, key = first_set(env, self.key_envs)
        return (variable, key) if key else None

    def login_in(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """The environment variables of a login, which are secret."""
        return dict([key]) if (key := self.key_in(env)) else {}

    def place_in(self, env: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The environment variables with which another machine asks the same server;
        not secret.
        """
        return {}

    def note(self, env: Mapping[str, str]) -> str:  # noqa: ARG002
        """A warning about its settings in the environment, without a period;
        mostly empty.
        """
        return ""

    def identity(self, spec: ModelSpec) -> str | None:
        """Everything about a model that shapes its answers;
        None if they must not be stored.
        """
        return digest(
            self.name,
            without_user(spec.base_url or ""),
            spec.model_id,
            spec.effort or "",
        )

    def takes_tools(self, spec: ModelSpec) -> bool:  # noqa: ARG002
        """Whether a model may call tools, which an agent needs."""
        return True

    def limits(self, spec: ModelSpec) -> ModelLimits:  # noqa: ARG002
        """The limits that come with a model."""
        return ModelLimits()

    def protocols(self, spec: ModelSpec) -> tuple[ProtocolName, ...]:  # noqa: ARG002
        """The protocols in which agents may ask a model, best first."""
        return PROTOCOLS

    def caches_from(self, spec: ModelSpec) -> int | None:  # noqa: ARG002
        """Tokens of the shortest prompt prefix that its server caches on request; None
        if it needs no request, or is unknown.
        """
        return None

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        """What its tokens cost; None if unknown."""
        return None

    def refusal_hint(self, status: int, message: str) -> Text:  # noqa: ARG002
        """What to check after an error that every question will get; mostly empty."""
        return ""

    def refusal(
        self,
        status: int,  # noqa: ARG002
        error: object,  # noqa: ARG002
        message: str,  # noqa: ARG002
        headers: Mapping[str, str],  # noqa: ARG002
        spec: ModelSpec,  # noqa: ARG002
    ) -> ModelError | None:
        """What an error of its server means, where that is another thing than usual."""
        return None

    @abstractmethod
    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        """Connect to the model; heavy imports belong here."""


def price_of(spec: ModelSpec, overrides: Mapping[str, Price]) -> Price | None:
    """The price of a model, None if unknown; overrides are by its name in the run,
    or its id.
    """
    for name in (spec.name, spec.model_id):
        if name in overrides:
            return overrides[name]
    return spec.provider.price(spec)


# What pytest_upskill_models returns for each prefix: a provider,
# or a function of the model's name.
ModelSource = Provider | Callable[[str], Model]


def shown_address(url: str) -> str:
    """A URL without anything that may be a password or a key; empty if it is not a
    URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else ""


def without_user(url: str) -> str:
    """A URL without user and password: who asks does not shape the answers."""
    scheme, slashes, location = url.partition("://")
    host, slash, path = location.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def basic_auth(url: str | None) -> tuple[str | None, dict[str, str]]:
    """A URL without user and password, and the header that carries them.

    aiohttp refuses a URL with a password next to the header of a key. The password
    wins: it is for the proxy that the request reaches first.
    """
    parts = urlsplit(url or "")
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    encoded = base64.b64encode(
        unquote(user if ":" in user else f"{user}:").encode()
    ).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {encoded}"}


def first_set(env: Mapping[str, str], variables: Iterable[str]) -> tuple[str, str]:
    """The first of these variables that is set, and its value; both empty if none
    is.
    """
    for variable in variables:
        if value := env.get(variable, "").strip():
            return variable, value
    return "", ""
