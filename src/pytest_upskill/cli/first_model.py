"""The model that a first run can use: of a key, of a server on this machine, or embedded."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import ProxyHandler, build_opener

from ..models import local
from ..models.providers import model_with_key

SERVERS: Final = {  # on this machine, by the ports that they have unless told otherwise
    "Ollama": 11434,
    "llama-server": 8080,
    "LM Studio": 1234,
}
_SECONDS: Final = 1.0
_MOST_BYTES: Final = 1_000_000
_NAME: Final = re.compile(r"\w[\w./:@+-]{0,200}", re.ASCII)


@dataclass(frozen=True)
class FirstModel:
    """A model that can be asked, and why this one."""

    name: str
    reason: str
    base_url: str | None = None  # of a server on this machine
    is_embedded: bool = False

    @property
    def free(self) -> bool:
        return self.is_embedded or self.base_url is not None


def first_model(env: Mapping[str, str]) -> FirstModel:
    """What is there, the best first."""
    return model_of_key(env) or _model_of_server() or embedded_model()


def named_model(name: str) -> FirstModel:
    """The run is in another folder, so the path of a file is made absolute."""
    provider, _, written = name.partition(":")
    file = re.split("[?:]", written, maxsplit=1)[0]
    if provider in ("local", "scripted") and Path(file).is_file():
        name = f"{provider}:{Path(file).resolve()}{written.removeprefix(file)}"
    return FirstModel(name, "as you say", is_embedded=name == "local")


def model_of_key(env: Mapping[str, str]) -> FirstModel | None:
    if not (keyed := model_with_key(env)):
        return None
    model, variable = keyed
    return FirstModel(model, f"since {variable} is set")


def embedded_model() -> FirstModel:
    reason = "a small embedded one, since no API key is set"
    if not local.installed():
        reason += f"; it needs: {local.INSTALL}"
    return FirstModel("local", reason, is_embedded=True)


def _model_of_server() -> FirstModel | None:
    """The first model of the first server that answers."""
    opener = build_opener(ProxyHandler({}))  # a proxy would look at itself
    for server, port in SERVERS.items():
        url = f"http://127.0.0.1:{port}/v1"
        with suppress(OSError, ValueError, RecursionError):
            with opener.open(f"{url}/models", timeout=_SECONDS) as reply:
                names = _names_in(json.loads(reply.read(_MOST_BYTES)))
            if names:
                return FirstModel(names[0], f"of {server} on port {port}", base_url=url)
    return None


def _names_in(listing: Any) -> list[str]:
    """The names of models that can chat, of a server's list; it may be any JSON."""
    models = listing.get("data") if isinstance(listing, dict) else None
    entries = (
        [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    )
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    return [name for name in names if _NAME.fullmatch(name) and "embed" not in name]
