"""The model that a first run can use: of a login, a key, a server on this machine,
or embedded.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import ProxyHandler, build_opener

from ..agents.probe import is_installed
from ..agents.roster import Roster
from ..agents.sandboxes.kinds import kind_of
from ..errors import InputError, SettingsError
from ..models import local
from ..models.providers import HOSTED, model_with_key

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
    agent: str = ""  # that asks it on the user's login

    @property
    def free(self) -> bool:
        return self.is_embedded or self.base_url is not None


def first_model(env: Mapping[str, str], *, writes_cases: bool = False) -> FirstModel:
    """What is there, the best first. A login is for the vendor's CLI,
    which writes no cases.
    """
    model = None if writes_cases else _model_of_login(env)
    return model or model_of_key(env) or _model_of_server() or embedded_model()


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


def _model_of_login(env: Mapping[str, str]) -> FirstModel | None:
    """That of the first CLI that is installed and logged in, if it has a sandbox."""
    for agent, source in logged_in(env).items():
        login = Roster().agent(agent).login
        with suppress(SettingsError):
            kind_of("auto", may_fetch=False)
            assert login
            reason = f"by {agent}, on your login ({source})"
            return FirstModel(login.first_model, reason, agent=agent)
    return None


def logged_in(env: Mapping[str, str]) -> dict[str, str]:
    """The CLIs that are installed and logged in, and where their logins were found."""
    roster, sources = Roster(), dict[str, str]()
    for login in roster.logins:
        if (
            is_installed(roster.agent(login.agent))
            and not HOSTED[login.vendor].set_in(env)[0]
        ):
            with suppress(InputError):
                tokens = login.find(env)
                sources |= {login.agent: tokens.source} if tokens else {}
    return sources


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
        [entry for entry in models if isinstance(entry, dict)]
        if isinstance(models, list)
        else []
    )
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    return [name for name in names if _NAME.fullmatch(name) and "embed" not in name]
