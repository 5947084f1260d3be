"""Requests of agents, good and bad, in all protocols."""

import json
from typing import Any

from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.models.model import ProtocolName

Json = dict[str, Any]
EVIL = "https://evil.example/?q=1"
PNG = "data:image/png;base64,iVBORw0KGgo="
CACHE = {"cache_control": {"type": "ephemeral", "ttl": "1h", "scope": "global"}}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}},
    "$schema": "https://j.s",
}
TEXT = {"type": "text", "text": "Look."}
URL_IMAGE = {"type": "image", "source": {"type": "url", "url": EVIL}}
DATA_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "a/b", "data": "aGk="},
}
SHELL = {
    "type": "shell",
    "environment": {
        "type": "container_auto",
        "network_policy": {"type": "allowlist", "allowed_domains": ["evil.example"]},
    },
}


def asking(protocol: ProtocolName, *content: Json, **more: Any) -> Json:
    """A request with these parts in its message, and with more keys."""
    said = {"role": "user", "content": list(content)}
    where: Json = {
        "messages": {"messages": [said]},
        "chat": {"messages": [said]},
        "responses": {"input": [said]},
        "gemini": {"contents": [{"role": "user", "parts": list(content)}]},
    }[protocol]
    return {"model": "model-1", **where, **more}


def passed(
    protocol: ProtocolName, body: Json, network: bool = False
) -> tuple[Json, list[str]]:
    before = json.dumps(body)
    result = PROTOCOLS[protocol].pass_on(body, network=network)
    assert json.dumps(body) == before
    return result


def document(*content: Json) -> Json:
    return {"type": "document", "source": {"type": "content", "content": list(content)}}


def image(protocol: ProtocolName, url: Any) -> Json:
    if protocol == "messages":
        return {"type": "image", "source": {"type": "url", "url": url}}
    if protocol == "chat":
        return {"type": "image_url", "image_url": {"url": url}}
    if protocol == "responses":
        return {"type": "input_image", "image_url": url}
    return {"fileData": {"fileUri": url}}


FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}
OWN: dict[ProtocolName, Json] = {
    "messages": {"name": "bash", "input_schema": SCHEMA},
    "chat": FUNCTION,
    "responses": {"type": "function", "name": "bash", "parameters": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "bash", "parameters": SCHEMA}]},
}
