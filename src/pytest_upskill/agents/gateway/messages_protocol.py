"""Anthropic's Messages."""

import json
from collections.abc import Iterator
from secrets import token_hex
from typing import Final

from ...models.anthropic_messages import STOPS, usage_of
from ...models.sdk import stop_word
from ...models.tool_turns import dicts_in, object_of
from ...trials.answer import Answer
from .door import Door
from .http import Body, dict_of, json_text, text_of, texts_in
from .protocol import (
    AgentRequest,
    Item,
    ItemKind,
    Protocol,
    ReplyStream,
    Target,
    reply_of,
)

_THOUGHT: Final = ("thinking", "signature")
# What a delta has, and which field of its block grows by it.
_GROWING: Final = {"text": "text", "thinking": "thinking", "partial_json": "input"}
_STOPPED: Final = {"length": "max_tokens", "refusal": "refusal"}
_ERRORS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
}


_DOOR: Final = Door(
    keys=frozenset(
        (
            "model",
            "max_tokens",
            "stream",
            "stop_sequences",
            "temperature",
            "top_k",
            "top_p",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "metadata",
            "thinking",
            "output_config",
            "output_format",
            "context_management",
            "diagnostics",
            "service_tier",
            "speed",
            "inference_geo",
            "cache_control",
        )
    ),
    kinds=frozenset(
        (
            "text",
            "image",
            "document",
            "tool_reference",
            "base64",
            "url",
            "content",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "tool_result",
            "tool_addition",
            "tool_removal",
            "tool_definition",
            "direct",
        )
    ),
)


class Messages(Protocol):
    path = "/messages"
    door = _DOOR
    count_path = "/messages/count_tokens"

    def url(self, base: str, target: Target, model: str) -> str:
        """Anthropic's SDK adds the version itself."""
        return super().url(
            base if base.endswith("/v1") else f"{base}/v1", target, model
        )

    def items(self, body: Body) -> Iterator[Item]:
        yield Item("instruction", texts_in(body.get("system")))
        for message in dicts_in(body["messages"]):
            yield from _items(message)

    def parse_reply(self, body: Body) -> Answer:
        return reply_of(
            _items({"role": "assistant", "content": body.get("content")}),
            usage_of(body.get("usage")),
            stop=stop_word(body.get("stop_reason"), STOPS),
        )

    def stream(self) -> ReplyStream:
        return MessagesStream()

    def reply_body(self, answer: Answer, request: AgentRequest) -> Body:
        blocks: list[Body] = (
            [{"type": "text", "text": answer.text}] if answer.text else []
        )
        blocks += [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.name,
                "input": object_of(call.arguments),
            }
            for call in answer.calls
        ]
        usage = answer.usage
        input_tokens = (usage.input or 0) - (usage.cached or 0) - (usage.written or 0)
        return {
            "id": f"msg_{token_hex(8)}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": blocks,
            "stop_reason": (
                "tool_use" if answer.calls else _STOPPED.get(answer.stop, "end_turn")
            ),
            "stop_sequence": None,
            "usage": {
                "input_tokens": max(0, input_tokens),
                "cache_read_input_tokens": usage.cached or 0,
                "cache_creation_input_tokens": usage.written or 0,
                "output_tokens": usage.output or 0,
            },
        }

    def events(self, body: Body) -> Iterator[Body]:
        yield {
            "type": "message_start",
            "message": {**body, "content": [], "stop_reason": None},
        }
        for index, block in enumerate(dicts_in(body["content"])):
            start, deltas = _in_parts(block)
            yield {
                "type": "content_block_start",
                "index": index,
                "content_block": start,
            }
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = {name: body.get(name) for name in ("stop_reason", "stop_sequence")}
        usage = {"output_tokens": dict_of(body.get("usage")).get("output_tokens")}
        yield {"type": "message_delta", "delta": stop, "usage": usage}
        yield {"type": "message_stop"}

    def error(self, status: int, message: str) -> Body:
        kind = _ERRORS.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


def _in_parts(block: Body) -> tuple[Body, list[Body]]:
    """The start of a block in a stream, and its deltas."""
    match block.get("type"):
        case "text":
            return {**block, "text": ""}, [
                {"type": "text_delta", "text": block.get("text")}
            ]
        case "tool_use":
            arguments = json.dumps(block.get("input"))
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": arguments}
            ]
        case "thinking":
            deltas = [
                {"type": f"{name}_delta", name: block.get(name)} for name in _THOUGHT
            ]
            return {**block, **dict.fromkeys(_THOUGHT, "")}, deltas
        case _:
            return block, []


def _items(message: Body) -> list[Item]:
    role, content = message.get("role"), message.get("content")
    kind: ItemKind = role if role in ("assistant", "system") else "user"
    if isinstance(content, str):
        return [Item(kind, content)] if content else []
    items = list[Item]()
    for block in dicts_in(content):
        match block.get("type"):
            case "text":
                items.append(Item(kind, text_of(block.get("text"))))
            case "thinking":
                items.append(Item("thinking", text_of(block.get("thinking"))))
            case "tool_use":
                items.append(_call(block))
            case "tool_result":
                text, failed = (
                    texts_in(block.get("content")),
                    block.get("is_error") is True,
                )
                key = text_of(block.get("tool_use_id"))
                items.append(Item("result", text, key, failed=failed))
    return items


def _call(block: Body) -> Item:
    arguments = json_text(block.get("input"))
    name = text_of(block.get("name"))
    return Item("call", arguments, text_of(block.get("id")), name)


class MessagesStream(ReplyStream):
    """Blocks grow by deltas; the usage of the start is replaced by that of the end."""

    def __init__(self) -> None:
        self._message: Body = {}
        self._blocks: dict[int, Body] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}

    def add(self, event: Body) -> None:
        index = event.get("index")
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                self._message = dict(event["message"])
            case "content_block_start" if isinstance(index, int):
                self._blocks[index] = dict(dict_of(event.get("content_block")))
            case "content_block_delta" if isinstance(index, int):
                for key, part in dict_of(event.get("delta")).items():
                    if key in _GROWING and isinstance(part, str):
                        self._parts.setdefault((index, key), []).append(part)
            case "message_delta":
                usage, stop = (
                    event.get("usage"),
                    dict_of(event.get("delta")).get("stop_reason"),
                )
                if stop:
                    self._message["stop_reason"] = stop
                if isinstance(usage, dict):
                    counts = {
                        name: count
                        for name, count in usage.items()
                        if count is not None
                    }
                    self._message["usage"] = (
                        dict_of(self._message.get("usage")) | counts
                    )
            case "message_stop":
                self.ended = True

    def body(self) -> Body:
        content = list[Body]()
        for index, block in sorted(self._blocks.items()):
            merged = dict(block)
            for key, name in _GROWING.items():
                if parts := self._parts.get((index, key)):
                    start = "" if key == "partial_json" else text_of(block.get(name))
                    merged[name] = start + "".join(parts)
            content.append(merged)
        message = {**self._message, "content": content}
        if not self.ended and isinstance(usage := message.get("usage"), dict):
            # That of the start is no count
            message["usage"] = {**usage, "output_tokens": None}
        return message
