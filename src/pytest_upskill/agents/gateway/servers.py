"""Servers that don't speak the protocol of an agent, and versions of those that do."""

from typing import Final, NamedTuple

from ...models import ModelSpec
from ...models.clouds import Cloud


class _Newer(NamedTuple):
    """A protocol that a server may not know, as it came later than Chat Completions."""

    title: str
    servers: str


# By path. See the release notes of each server.
_NEWER: Final = {
    "/messages": _Newer(
        "Anthropic Messages", "Ollama 0.14.0, vLLM 0.11.1, llama.cpp of January 2026"
    ),
    "/responses": _Newer("OpenAI Responses", "Ollama 0.13.3, vLLM 0.11.1, llama.cpp of March 2026"),
}
_NO_SUCH_PATH: Final = (404, 405, 501)


def why_no_path(status: int, path: str, said: str, spec: ModelSpec) -> str:
    """What a refusal means if the path is not known at someone's own server; mostly nothing.

    The same status may be about the model, which such a server then names.
    """
    newer = _NEWER.get(path)
    theirs = spec.provider.needs_key and spec.base_url == getattr(spec.provider, "base_url", None)
    theirs |= isinstance(spec.provider, Cloud)
    if not newer or status not in _NO_SUCH_PATH or theirs or spec.model_id in said:
        return ""
    need = f"These do, and later ones: {newer.servers}, a LiteLLM proxy"
    return f"This server does not seem to speak {newer.title} (/v1{path}). {need}"
