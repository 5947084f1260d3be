"""From a model name, as people write it, to the model and its provider.

Nothing here imports an SDK or opens a connection, so a wrong name costs nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .._util.texts import guess
from ..errors import Setting, SettingsError
from .clouds import AzureProvider, BedrockProvider, VertexProvider
from .fast_agent_names import instead_of
from .hosted import (
    ChatProvider,
    GeminiProvider,
    GenericProvider,
    Hosted,
    HuggingFaceProvider,
    MessagesProvider,
    OllamaProvider,
    OpenAIProvider,
)
from .local import LocalProvider
from .port import ModelName, ModelSpec, Provider
from .scripted import ScriptedProvider

# The newest model of each family that the installed SDK knows; a test fails when one is behind.
ALIASES: Final[Mapping[str, str]] = {
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
_OF_SERVERS: Final = ("chat", "messages", "responses")  # what new versions of most servers speak
# What upskill calls providers, before a dot.
_OTHERWISE: Final = {"google": "gemini", "googleoai": "gemini", "anthropic-vertex": "vertex"}
_GENERIC: Final = GenericProvider(
    "generic",
    "generic.NAME",
    base_url_envs=("GENERIC_BASE_URL",),
    key_envs=("GENERIC_API_KEY",),
    speaks=(*_OF_SERVERS, "gemini"),  # LiteLLM's proxy has all of them
)

Providers = Mapping[str, Provider]

PROVIDERS: Final[Providers] = {
    provider.name: provider
    for provider in (
        MessagesProvider(
            "anthropic",
            f"anthropic:{ALIASES['haiku']}",
            "https://api.anthropic.com",
            ("ANTHROPIC_BASE_URL",),
            price_list="anthropic",
            batches=True,
            speaks=("messages",),
            key_envs=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
            needs_key=True,
        ),
        OpenAIProvider(
            "openai",
            "openai:gpt-5.4-mini",
            "https://api.openai.com/v1",
            ("OPENAI_BASE_URL", "OPENAI_API_BASE"),  # the second is the older name
            price_list="openai",
            batches=True,
            speaks=("responses", "chat"),  # in Chat its new models refuse some that agents send
            key_envs=("OPENAI_API_KEY",),
            needs_key=True,
        ),
        GeminiProvider(
            "gemini",
            "gemini:gemini-3.5-flash",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            ("GOOGLE_GEMINI_BASE_URL",),
            price_list="google",
            speaks=("chat", "gemini"),
            key_envs=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            needs_key=True,
        ),
        HuggingFaceProvider(
            "hf",
            "hf:Qwen/Qwen3-8B",
            "https://router.huggingface.co/v1",
            speaks=_OF_SERVERS,
            key_envs=("HF_TOKEN",),
            needs_key=True,
        ),
        ChatProvider(
            "openrouter",
            "openrouter:qwen/qwen3-8b",
            "https://openrouter.ai/api/v1",
            price_list="openrouter",
            speaks=_OF_SERVERS,
            key_envs=("OPENROUTER_API_KEY",),
            needs_key=True,
        ),
        BedrockProvider(
            "bedrock",
            f"bedrock:us.anthropic.{ALIASES['haiku']}",
            None,
            ("ANTHROPIC_BEDROCK_BASE_URL",),
            price_list="aws",
            speaks=("messages",),
            key_envs=("AWS_BEARER_TOKEN_BEDROCK",),
            settings=("AWS_REGION",),
        ),
        VertexProvider(
            "vertex",
            f"vertex:{ALIASES['haiku']}",
            None,
            ("ANTHROPIC_VERTEX_BASE_URL",),
            price_list="google",
            speaks=("messages",),
            settings=("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
        ),
        AzureProvider(
            "azure",
            "azure:DEPLOYMENT",
            None,
            ("AZURE_OPENAI_ENDPOINT",),
            price_list="azure",
            speaks=("responses", "chat"),
            key_envs=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
            settings=("AZURE_OPENAI_ENDPOINT",),
        ),
        OllamaProvider(
            "ollama",
            "ollama:qwen3:8b",
            "http://localhost:11434/v1",
            ("OLLAMA_HOST",),
            speaks=_OF_SERVERS,
        ),
        _GENERIC,
        LocalProvider("local", "local:FILE.gguf", bare=True),
        ScriptedProvider("scripted", "scripted:answers.json"),
    )
}
HOSTED: Final[Mapping[str, Hosted]] = {
    name: provider for name, provider in PROVIDERS.items() if isinstance(provider, Hosted)
}


def resolve(
    wanted: ModelName, env: Mapping[str, str], providers: Providers = PROVIDERS
) -> ModelSpec:
    """The model that a name means, or SettingsError with the names that would work."""
    return replace(_resolve(wanted, env, providers), by=wanted.by)


def _resolve(wanted: ModelName, env: Mapping[str, str], providers: Providers) -> ModelSpec:
    name = wanted.name
    if name in ALIASES:
        return providers["anthropic"].resolve(wanted, ALIASES[name], env)
    if name in providers and providers[name].bare:
        return providers[name].resolve(wanted, "", env)
    prefix, colon, rest = name.partition(":")
    if colon and prefix in providers and prefix != _GENERIC.name:
        if not rest:
            raise _no_name(wanted, providers[prefix])
        return providers[prefix].resolve(wanted, rest, env)
    prefix, dot, rest = name.partition(".")
    prefix = _OTHERWISE.get(prefix, prefix)
    if dot and rest and isinstance(hosted := providers.get(prefix), Hosted):
        return _dotted(wanted, hosted, rest, env)
    if wanted.base_url:
        return _GENERIC.resolve(wanted, name, env)
    if provider := providers.get(name.rstrip(".")):
        raise _no_name(wanted, provider)
    if instead := instead_of(name):
        raise wanted.error(*instead)
    examples = [p.example for n, p in providers.items() if n != _GENERIC.name]
    known = f"Known names: {', '.join(ALIASES)}, local, {', '.join(examples)}, and any name that "
    hint = (known, "the server at ", Setting(wanted.by.url_setting), " knows.")
    raise wanted.error(f"unknown model{_guess(name, providers)}", hint)


def _no_name(wanted: ModelName, provider: Provider) -> SettingsError:
    start = f"{provider.name}{'.' if provider == _GENERIC else ':'}"
    return wanted.error(f'a name must follow "{start}"', f"For example: {provider.example}")


def _dotted(wanted: ModelName, provider: Hosted, rest: str, env: Mapping[str, str]) -> ModelSpec:
    """upskill's form: provider.MODEL or provider.MODEL.effort."""
    if "?" in rest:  # parameters of fast-agent
        plain = f"{provider.name}.{rest.partition('?')[0]}"
        effort = "" if provider == _GENERIC else f", or {plain}.low for low effort"
        raise wanted.error('parameters after "?" are not supported', f"Use {plain}{effort}.")
    model_id, _, last = rest.rpartition(".")
    if not model_id or last not in EFFORTS or provider == _GENERIC:
        return provider.resolve(wanted, rest, env)
    return replace(provider.resolve(wanted, model_id, env), effort=last)


def _guess(name: str, providers: Providers) -> str:
    if name.startswith("claude-"):
        return f' (did you mean "anthropic:{name}"?)'
    if name.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-")):
        name = name.partition("?")[0]
        with_effort = name.rpartition(".")[2] in EFFORTS
        return f' (did you mean "openai{"." if with_effort else ":"}{name}"?)'
    if name.startswith("google:"):
        return f' (did you mean "gemini:{name.partition(":")[2]}"?)'
    return guess(name, [*ALIASES, *providers])
