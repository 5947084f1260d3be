"""All providers, and how a model's name as people write it is resolved.

Nothing here imports an SDK or opens a connection, so a wrong name costs nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .._util.texts import guess
from ..errors import Setting, SettingsError
from .clouds import AzureProvider, BedrockProvider, VertexProvider
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
from .model import ModelName, ModelSpec, Provider
from .scripted import ScriptedProvider

# The newest model of each family that the installed SDK knows;
# a test fails when one is behind.
ALIASES: Final[Mapping[str, str]] = {
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
_SERVER_PROTOCOLS: Final = ("chat", "messages", "responses")  # of most servers today
# upskill's names for providers, before a dot.
_UPSKILL_PREFIXES: Final = {
    "google": "gemini",
    "googleoai": "gemini",
    "anthropic-vertex": "vertex",
}
_GENERIC: Final = GenericProvider(
    "generic",
    "generic.NAME",
    base_url_envs=("GENERIC_BASE_URL",),
    key_envs=("GENERIC_API_KEY",),
    speaks=(*_SERVER_PROTOCOLS, "gemini"),  # LiteLLM's proxy has all of them
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
            # New models refuse some of agents' requests in Chat
            speaks=("responses", "chat"),
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
            speaks=_SERVER_PROTOCOLS,
            key_envs=("HF_TOKEN",),
            needs_key=True,
        ),
        ChatProvider(
            "openrouter",
            "openrouter:qwen/qwen3-8b",
            "https://openrouter.ai/api/v1",
            price_list="openrouter",
            speaks=_SERVER_PROTOCOLS,
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
            speaks=_SERVER_PROTOCOLS,
        ),
        _GENERIC,
        LocalProvider("local", "local:FILE.gguf", bare=True),
        ScriptedProvider("scripted", "scripted:answers.json"),
    )
}
HOSTED: Final[Mapping[str, Hosted]] = {
    name: provider
    for name, provider in PROVIDERS.items()
    if isinstance(provider, Hosted)
}


def model_with_key(env: Mapping[str, str]) -> tuple[str, str] | None:
    """A model that can be asked with a key of the environment,
    and the variable that has it.

    None of a cloud: nobody knows which models you may use.
    """
    for name, provider in HOSTED.items():
        variable, key = provider.key_in(env) or ("", "")
        if key and provider.needs_key:
            return "haiku" if name == "anthropic" else provider.example, variable
    return None


def resolve(
    model: ModelName, env: Mapping[str, str], providers: Providers = PROVIDERS
) -> ModelSpec:
    """The model that a name means, or SettingsError with the names that would work."""
    return replace(_resolve(model, env, providers), by=model.by)


def _resolve(
    model: ModelName, env: Mapping[str, str], providers: Providers
) -> ModelSpec:
    name = model.name
    if name in ALIASES:
        return providers["anthropic"].resolve(model, ALIASES[name], env)
    if name in providers and providers[name].bare:
        return providers[name].resolve(model, "", env)
    prefix, colon, model_id = name.partition(":")
    if colon and prefix in providers and prefix != _GENERIC.name:
        if not model_id:
            raise _no_name(model, providers[prefix])
        return providers[prefix].resolve(model, model_id, env)
    prefix, dot, model_id = name.partition(".")
    prefix = _UPSKILL_PREFIXES.get(prefix, prefix)
    if dot and model_id and isinstance(hosted := providers.get(prefix), Hosted):
        return _dotted(model, hosted, model_id, env)
    if model.base_url:
        return _GENERIC.resolve(model, name, env)
    if provider := providers.get(name.rstrip(".")):
        raise _no_name(model, provider)
    if suggestion := _suggestion(name):
        raise model.error(*suggestion)
    examples = [p.example for n, p in providers.items() if n != _GENERIC.name]
    names = (
        f"Known names: {', '.join(ALIASES)}, local, {', '.join(examples)}, and any name"
        " that "
    )
    hint = (names, "the server at ", Setting(model.by.url_setting), " knows.")
    raise model.error(f"unknown model{_guess(name, providers)}", hint)


def _no_name(model: ModelName, provider: Provider) -> SettingsError:
    start = f"{provider.name}{'.' if provider == _GENERIC else ':'}"
    return model.error(
        f'a name must follow "{start}"', f"For example: {provider.example}"
    )


def _dotted(
    model: ModelName, provider: Hosted, model_id: str, env: Mapping[str, str]
) -> ModelSpec:
    """upskill's form: provider.MODEL or provider.MODEL.effort."""
    if "?" in model_id:  # parameters of fast-agent
        plain = f"{provider.name}.{model_id.partition('?')[0]}"
        effort = "" if provider == _GENERIC else f", or {plain}.low for low effort"
        raise model.error(
            'parameters after "?" are not supported', f"Use {plain}{effort}."
        )
    plain_id, _, last = model_id.rpartition(".")
    if not plain_id or last not in EFFORTS or provider == _GENERIC:
        return provider.resolve(model, model_id, env)
    return replace(provider.resolve(model, plain_id, env), effort=last)


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


# Providers whose server speaks Chat Completions, so that
# "generic." can name its models.
_SERVERS: Final = {
    "aliyun": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "deepseek": "https://api.deepseek.com",
    "groq": "https://api.groq.com/openai/v1",
    "metaai": "https://api.meta.ai/v1",
    "moonshot": "https://api.moonshot.ai/v1",
    "openresponses": "http://localhost:8080/v1",
    "tensorzero": "http://localhost:3000/openai/v1",
    "xai": "https://api.x.ai/v1",
    "zai": "https://api.z.ai/api/paas/v4",
}
# Providers that can't be reached.
_UNSUPPORTED: Final = {
    "cli": "Name the model that the agent uses, and the agent by itself.",
    "codexresponses": (
        "A ChatGPT login can't be used; use openai:ID with OPENAI_API_KEY."
    ),
}
# Short names mean different models in each version of fast-agent:
# an example of each family.
_FAMILIES: Final = {
    "deepseek": "hf:deepseek-ai/DeepSeek-V3.2",
    "gemini": "gemini:gemini-3.5-flash",
    "gemma": "hf:google/gemma-3-27b-it",
    "glm": "hf:zai-org/GLM-4.7",
    "gpt-oss": "hf:openai/gpt-oss-120b",
    "grok": "openrouter:x-ai/grok-4",
    "kimi": "hf:moonshotai/Kimi-K2.5",
    "minimax": "hf:MiniMaxAI/MiniMax-M2.5",
    "qwen": "hf:Qwen/Qwen3-8B",
}
_CLAUDE: Final = re.compile(r"(haiku|sonnet|opus)\d*")


def _suggestion(name: str) -> tuple[str, str] | None:
    """The problem with a name that only fast-agent knows, and what to use;
    None for other names.
    """
    plain = name.partition("?")[0]
    prefix, _, model_id = plain.partition(".")
    if prefix in _UNSUPPORTED:
        return f'"{prefix}" is not supported', _UNSUPPORTED[prefix]
    if prefix == "responses" and model_id:
        return '"responses" is not supported', f"Use openai.{model_id}."
    if prefix in _SERVERS and model_id:
        server = f"set GENERIC_BASE_URL={_SERVERS[prefix]} and GENERIC_API_KEY"
        hint = f"Use openrouter:ID, or {server} for generic.{model_id}."
        return f'"{prefix}" is not a known provider', hint
    if match := _CLAUDE.fullmatch(plain):
        return "unknown model", f'Use "{match[1]}" for the newest one, or anthropic:ID.'
    for family, example in _FAMILIES.items():
        if plain.lower().startswith(family) and "/" not in plain:
            return (
                "unknown model",
                f"Write the model out with its provider, such as {example}.",
            )
    return None
