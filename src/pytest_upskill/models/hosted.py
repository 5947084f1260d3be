"""Providers with a server: its address, prices, prompt cache and adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from .._util.texts import digest
from ..errors import InputError, Setting, SettingsError
from .model import (
    Model,
    ModelName,
    ModelSpec,
    ProtocolName,
    Provider,
    shown_address,
    without_user,
)
from .prices import FREE, Price, listed_price

_OLLAMA_PORT: Final = 11434
_NOT_A_URL: Final = "not the URL of a server"
_URL_FORM: Final = "It starts with http:// or https://, and often ends with /v1."
# Prompt prefixes of this many tokens are cached. Cached tokens cost a tenth to a half;
# what is too short is not cached, so a number that is too low does no harm.
_CACHES_FROM: Final = 1024
# Claude models with another number, by a part of their id; the first match counts.
_CLAUDE_CACHES_FROM: Final = {
    **dict.fromkeys(("opus-4-5", "opus-4-6", "haiku-4-5"), 4096),
    **dict.fromkeys(("opus-4-7", "haiku-3", "3-haiku", "3-5-haiku"), 2048),
    **dict.fromkeys(("opus-5", "fable-5", "mythos-5"), 512),
}


@dataclass(frozen=True)
class Hosted(Provider):
    """Models behind a server."""

    base_url: str | None = None
    # Variables that replace the address; the first set counts
    base_url_envs: tuple[str, ...] = ()
    price_list: str = ""  # the provider's id in genai-prices
    speaks: tuple[ProtocolName, ...] = field(default=(), kw_only=True)
    protocol: ClassVar[str]

    def protocols(self, spec: ModelSpec) -> tuple[ProtocolName, ...]:  # noqa: ARG002
        return self.speaks

    def resolve(
        self, model: ModelName, model_id: str, env: Mapping[str, str]
    ) -> ModelSpec:
        return ModelSpec(model.name, self, model_id, self.base_url_in(env))

    def base_url_in(self, env: Mapping[str, str]) -> str | None:
        """The address of the server: from the environment, else the provider's own."""
        variable, url = self.set_in(env)
        if variable and not _is_url(url):
            raise InputError(variable, _NOT_A_URL, _URL_FORM)
        return url or self.base_url

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        """The variable that replaces the address, and the address; empty if none
        does.
        """
        return next(iter(self._all_set_in(env)), ("", ""))

    def _all_set_in(self, env: Mapping[str, str]) -> list[tuple[str, str]]:
        values = [
            (variable, env.get(variable, "").strip()) for variable in self.base_url_envs
        ]
        return [(variable, value) for variable, value in values if value]

    def note(self, env: Mapping[str, str]) -> str:
        addresses = self._all_set_in(env)
        if len({value.rstrip("/") for _, value in addresses}) < 2:
            return ""
        (used, _), (ignored, _) = addresses[:2]
        return f"{used} and {ignored} name different servers; {used} is used"

    def identity(self, spec: ModelSpec) -> str | None:
        url = without_user(spec.base_url or "").rstrip("/")
        return digest(self.protocol, url, spec.model_id, spec.effort or "")

    def price(self, spec: ModelSpec) -> Price | None:
        return listed_price(self.price_list, spec.model_id) if self.price_list else None


class MessagesProvider(Hosted):
    """A server that speaks Anthropic's Messages."""

    protocol = "anthropic"
    opening = "loading the anthropic SDK"

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        from .anthropic_messages import AnthropicModel

        return AnthropicModel(spec, timeout)

    def caches_from(self, spec: ModelSpec) -> int | None:
        model_id = spec.model_id.replace(".", "-")
        if self.name != "anthropic" and "claude" not in model_id:
            return None
        minimums = (
            tokens for part, tokens in _CLAUDE_CACHES_FROM.items() if part in model_id
        )
        return next(minimums, _CACHES_FROM)


class ChatProvider(Hosted):
    """A server that speaks OpenAI's Chat Completions."""

    protocol = "openai"
    opening = "loading the openai SDK"

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        from .openai_chat import OpenAIModel

        return OpenAIModel(spec, timeout)


class OpenAIProvider(ChatProvider):
    """OpenAI itself, which caches prompts only after a first answer,
    and not for all models.
    """

    def caches_from(self, spec: ModelSpec) -> int | None:  # noqa: ARG002
        return _CACHES_FROM


class HuggingFaceProvider(ChatProvider):
    """Its router picks the server, and so the price, unless the name ends with one."""

    def price(self, spec: ModelSpec) -> Price | None:
        model_id, _, server = spec.model_id.partition(":")
        return listed_price(f"huggingface_{server}", model_id) if server else None


class OllamaProvider(ChatProvider):
    """The user's own server, which costs nothing."""

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        """OLLAMA_HOST may lack the scheme, the port and the path."""
        variable, host = super().set_in(env)
        if not host:
            return "", ""
        url = host
        if "://" not in host:
            has_port = (
                host.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in host
            )
            url = f"http://{host}" if has_port else f"http://{host}:{_OLLAMA_PORT}"
        return variable, (
            url if url.rstrip("/").endswith("/v1") else f"{url.rstrip('/')}/v1"
        )

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        return FREE


class GeminiProvider(ChatProvider):
    """Google's own server, at its address for Chat Completions."""

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        """The variable names the root, as for Google's own tools."""
        variable, root = super().set_in(env)
        if not root:
            return "", ""
        root = root.rstrip("/").removesuffix("/openai").removesuffix("/v1beta")
        return variable, f"{root}/v1beta/openai"


class GenericProvider(ChatProvider):
    """Any server; its address is a setting."""

    def resolve(
        self, model: ModelName, model_id: str, env: Mapping[str, str]
    ) -> ModelSpec:
        url = model.base_url
        if url and not _is_url(url):
            raise SettingsError(model.by.url_setting, _NOT_A_URL, _URL_FORM)
        if not (url := url or self.base_url_in(env)):
            raise model.error(
                "the address of its server is not known",
                (
                    "Give ",
                    Setting(model.by.url_setting),
                    f" URL, or set {self.base_url_envs[0]}.",
                ),
            )
        return ModelSpec(model.name, self, model_id, url)


def _is_url(url: str) -> bool:
    return shown_address(url).startswith(("http://", "https://"))
