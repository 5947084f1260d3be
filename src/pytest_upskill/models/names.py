"""From the name of a model, as people write it, to where it is and how it is asked.

Nothing here imports an SDK or opens a connection, so a wrong name costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from .._util.texts import guess
from ..errors import SettingsError

Protocol = Literal["anthropic", "openai", "local", "scripted"]

# The newest of each family that the installed SDK knows; a test tells when this is behind.
ALIASES: Final[Mapping[str, str]] = {
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}
_OLLAMA_PORT: Final = 11434
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True)
class Provider:
    """Where the models of one prefix live."""

    protocol: Protocol
    example: str
    base_url: str | None = None
    base_url_env: str | None = None
    key_envs: tuple[str, ...] = ()
    needs_key: bool = True


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(
        "anthropic",
        f"anthropic:{ALIASES['haiku']}",
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ),
    "openai": Provider(
        "openai",
        "openai:gpt-5.4-mini",
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        ("OPENAI_API_KEY",),
    ),
    "hf": Provider(
        "openai",
        "hf:Qwen/Qwen3-8B",
        "https://router.huggingface.co/v1",
        key_envs=("HF_TOKEN",),
    ),
    "openrouter": Provider(
        "openai",
        "openrouter:qwen/qwen3-8b",
        "https://openrouter.ai/api/v1",
        key_envs=("OPENROUTER_API_KEY",),
    ),
    "ollama": Provider(
        "openai",
        "ollama:qwen3:8b",
        "http://localhost:11434/v1",
        "OLLAMA_HOST",
        needs_key=False,
    ),
    "generic": Provider(
        "openai",
        "generic.NAME",
        base_url_env="GENERIC_BASE_URL",
        key_envs=("GENERIC_API_KEY",),
        needs_key=False,
    ),
    "local": Provider("local", "local", needs_key=False),
    "scripted": Provider("scripted", "scripted:answers.json", needs_key=False),
}


@dataclass(frozen=True)
class ModelSpec:
    """A model whose name is understood."""

    name: str
    provider: str
    model_id: str
    base_url: str | None = None
    effort: str | None = None

    @property
    def protocol(self) -> Protocol:
        return PROVIDERS[self.provider].protocol

    @property
    def address(self) -> str:
        """Where it is, fit to be shown."""
        return shown_address(self.base_url or "")


def resolve(
    name: str, base_url: str | None, env: Mapping[str, str], folder: Path = Path()
) -> ModelSpec:
    """Say which model a name means, or raise SettingsError with what would work.

    A file in the name (local:FILE, scripted:FILE) is relative to ``folder``.
    """
    if name in ALIASES:
        return _spec(name, "anthropic", ALIASES[name], env)
    if name == "local":
        return ModelSpec(name, "local", env.get("PYTEST_UPSKILL_MODEL", ""))
    prefix, colon, rest = name.partition(":")
    if colon and prefix in PROVIDERS and prefix != "generic":
        if not rest:
            problem = f"after {prefix!r} and the colon a name is missing"
            raise SettingsError(f"--model {name}", problem, f"For example: {_example(prefix)}")
        if PROVIDERS[prefix].protocol in ("local", "scripted"):
            rest = str(folder / Path(rest).expanduser())
        return _spec(name, prefix, rest, env)
    prefix, dot, rest = name.partition(".")
    hosted = prefix in PROVIDERS and PROVIDERS[prefix].protocol in ("anthropic", "openai")
    if dot and hosted and rest:
        return _dotted(name, prefix, rest, base_url, env)
    if base_url:
        return ModelSpec(name, "generic", name, _checked("--skill-base-url", base_url))
    raise SettingsError(f"--model {name}", f"no model of this name is known{_hint(name)}", KNOWN)


def _spec(name: str, provider: str, model_id: str, env: Mapping[str, str]) -> ModelSpec:
    return ModelSpec(name, provider, model_id, base_url_of(provider, env))


def base_url_of(provider: str, env: Mapping[str, str]) -> str | None:
    """The address of a provider: what the environment says, else its own."""
    known = PROVIDERS[provider]
    given = env.get(known.base_url_env or "", "").strip()
    if given and provider == "ollama":
        given = _ollama_url(given)
    return _checked(str(known.base_url_env), given) if given else known.base_url


def _ollama_url(host: str) -> str:
    """OLLAMA_HOST may lack the scheme, and then the port is Ollama's own unless it is given."""
    url = host
    if "://" not in host:
        has_port = host.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in host
        url = f"http://{host}" if has_port else f"http://{host}:{_OLLAMA_PORT}"
    return url if url.rstrip("/").endswith("/v1") else f"{url.rstrip('/')}/v1"


def _checked(where: str, url: str) -> str:
    if not shown_address(url).startswith(("http://", "https://")):
        raise SettingsError(
            where,
            "this is not the address of a server",
            "It begins with http:// or https://, and often ends with /v1.",
        )
    return url


def shown_address(url: str) -> str:
    """An address without what may be a password or a key in it; empty if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else ""


def _dotted(
    name: str, provider: str, rest: str, base_url: str | None, env: Mapping[str, str]
) -> ModelSpec:
    """upskill's form: provider.MODEL or provider.MODEL.effort."""
    model_id, _, last = rest.rpartition(".")
    effort = last if model_id and last in EFFORTS else None
    spec = _spec(name, provider, model_id if effort else rest, env)
    if provider == "generic":
        url = _checked("--skill-base-url", base_url) if base_url else spec.base_url
        if not url:
            raise SettingsError(
                f"--model {name}",
                "the address of its server is not known",
                "Give --skill-base-url URL, or set GENERIC_BASE_URL.",
            )
        return ModelSpec(name, provider, rest, url)
    return ModelSpec(name, provider, spec.model_id, spec.base_url, effort)


def _example(provider: str) -> str:
    return "local:FILE.gguf" if provider == "local" else PROVIDERS[provider].example


def _hint(name: str) -> str:
    if name.startswith("claude-"):
        return f' (did you mean "anthropic:{name}"?)'
    if name.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-")):
        return f' (did you mean "openai:{name}"?)'
    return guess(name, [*ALIASES, *PROVIDERS])


KNOWN: Final = (
    f"Known are {', '.join(ALIASES)}; local, local:FILE.gguf; "
    f"{', '.join(p.example for n, p in PROVIDERS.items() if n not in ('local', 'generic'))}; "
    "and any name that a server given with --skill-base-url knows."
)


def key_of(spec: ModelSpec, env: Mapping[str, str]) -> tuple[str, str] | None:
    """The first environment variable that holds a key for this model, and the key."""
    for variable in PROVIDERS[spec.provider].key_envs:
        if value := env.get(variable, "").strip():
            return variable, value
    return None


def require_key(spec: ModelSpec, env: Mapping[str, str]) -> None:
    provider = PROVIDERS[spec.provider]
    found = key_of(spec, env)
    if found and not (found[1].isascii() and found[1].isprintable()):
        raise SettingsError(
            f"--model {spec.name}",
            f"{found[0]} holds a character that no key has",
            "Copy the key again, without line breaks.",
        )
    if found or not provider.needs_key:
        return
    variable = provider.key_envs[0]
    state = "is empty" if variable in env else "is not set"
    raise SettingsError(
        f"--model {spec.name}",
        f"{variable} {state}",
        f"Set {variable} to a key of yours, or try without one: --model local",
    )
