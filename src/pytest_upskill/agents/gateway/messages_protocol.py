"""Anthropic's Messages."""

import json
from collections.abc import Iterator
from secrets import token_hex
from typing import Final

from ...models.anthropic_messages import STOPS, usage_of
from ...models.sdk import stop_word
from ...models.tool_turns import object_of
from ...trials.answer import Answer
from ...trials.tools import ToolCall
from .protocol import (
    AgentRequest,
    Body,
    Item,
    ItemKind,
    ModelReply,
    Protocol,
    ReplyStream,
    Target,
    dicts,
    limit_of,
    text_of,
    texts_in,
    tool_of,
)

_THOUGHT: Final = ("thinking", "signature")
_STOPPED: Final = {"length": "max_tokens", "refusal": "refusal"}
_ERRORS: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


class Messages(Protocol):
    path = "/messages"
    count_path = "/messages/count_tokens"

    def url(self, base: str, target: Target, model: str) -> str:
        """Anthropic's SDK adds the version itself."""
        return super().url(base if base.endswith("/v1") else f"{base}/v1", target, model)

    def asked(self, body: Body) -> AgentRequest:
        if not isinstance(body.get("messages"), list):
            raise ValueError("messages: a list is required")
        return AgentRequest(
            text_of(body.get("model")),
            texts_in(body.get("system")),
            tuple(item for message in dicts(body["messages"]) for item in _items(message)),
            tuple(
                tool_of(tool.get("name"), tool.get("description"), tool.get("input_schema"))
                for tool in dicts(body.get("tools"))
            ),
            limit_of(body, "max_tokens"),
            body.get("stream") is True,
            forbids=body.get("tool_choice") == {"type": "none"},
        )

    def said(self, body: Body) -> ModelReply:
        blocks = dicts(body.get("content"))
        return ModelReply(
            "".join(text_of(one.get("text")) for one in blocks if one.get("type") == "text"),
            "\n".join(filter(None, (text_of(one.get("thinking")) for one in blocks))),
            tuple(_call(one) for one in blocks if one.get("type") == "tool_use"),
            usage_of(body.get("usage")),
            stop_word(body.get("stop_reason"), STOPS),
            text_of(body.get("id")),
        )

    def reading(self) -> ReplyStream:
        return MessagesStream()

    def written(self, answer: Answer, request: AgentRequest) -> Body:
        blocks: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
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
        asked = (usage.input or 0) - (usage.cached or 0) - (usage.written or 0)
        return {
            "id": f"msg_{token_hex(8)}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": blocks,
            "stop_reason": "tool_use" if answer.calls else _STOPPED.get(answer.stop, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": max(0, asked),
                "cache_read_input_tokens": usage.cached or 0,
                "cache_creation_input_tokens": usage.written or 0,
                "output_tokens": usage.output or 0,
            },
        }

    def events(self, body: Body) -> Iterator[Body]:
        yield {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
        for index, block in enumerate(dicts(body["content"])):
            start, deltas = _in_parts(block)
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = {name: body.get(name) for name in ("stop_reason", "stop_sequence")}
        counts = body.get("usage")
        usage = {"output_tokens": counts.get("output_tokens") if isinstance(counts, dict) else None}
        yield {"type": "message_delta", "delta": stop, "usage": usage}
        yield {"type": "message_stop"}

    def error(self, status: int, message: str) -> Body:
        kind = _ERRORS.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


def _in_parts(block: Body) -> tuple[Body, list[Body]]:
    """How a stream begins a block, and how it goes on."""
    match block.get("type"):
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block.get("text")}]
        case "tool_use":
            written = json.dumps(block.get("input"))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
        case "thinking":
            deltas = [{"type": f"{name}_delta", name: block.get(name)} for name in _THOUGHT]
            return {**block, **dict.fromkeys(_THOUGHT, "")}, deltas
        case _:
            return block, []


def _items(message: Body) -> list[Item]:
    role, content = message.get("role"), message.get("content")
    kind: ItemKind = (
        "assistant" if role == "assistant" else "system" if role == "system" else "user"
    )
    if isinstance(content, str):
        return [Item(kind, content)] if content else []
    items = list[Item]()
    for block in dicts(content):
        match block.get("type"):
            case "text":
                items.append(Item(kind, text_of(block.get("text"))))
            case "thinking":
                items.append(Item("thinking", text_of(block.get("thinking"))))
            case "tool_use":
                call = _call(block)
                items.append(Item("call", call.arguments, call.id, call.name))
            case "tool_result":
                told, failed = texts_in(block.get("content")), block.get("is_error") is True
                key = text_of(block.get("tool_use_id"))
                items.append(Item("result", told, key, failed=failed))
    return items


def _call(block: Body) -> ToolCall:
    arguments = block.get("input")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(text_of(block.get("id")), text_of(block.get("name")), written)


class MessagesStream(ReplyStream):
    """Blocks grow by deltas; the usage at the start is made exact at the end."""

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
                block = event.get("content_block")
                self._blocks[index] = dict(block) if isinstance(block, dict) else {}
            case "content_block_delta" if isinstance(index, int):
                delta = event.get("delta")
                for key, part in delta.items() if isinstance(delta, dict) else ():
                    if key in _GROWING and isinstance(part, str):
                        self._parts.setdefault((index, key), []).append(part)
            case "message_delta":
                delta, usage = event.get("delta"), event.get("usage")
                if isinstance(delta, dict) and delta.get("stop_reason"):
                    self._message["stop_reason"] = delta["stop_reason"]
                if isinstance(usage, dict):
                    before = self._message.get("usage")
                    known = {name: one for name, one in usage.items() if one is not None}
                    self._message["usage"] = {
                        **(before if isinstance(before, dict) else {}),
                        **known,
                    }
            case "message_stop":
                self.ended = True

    def body(self) -> Body:
        content = list[Body]()
        for index, block in sorted(self._blocks.items()):
            whole = dict(block)
            for key, name in _GROWING.items():
                if parts := self._parts.get((index, key)):
                    start = "" if key == "partial_json" else text_of(block.get(name))
                    whole[name] = start + "".join(parts)
            content.append(whole)
        message = {**self._message, "content": content}
        if not self.ended and isinstance(usage := message.get("usage"), dict):
            message["usage"] = {**usage, "output_tokens": None}  # 1, or so, from the start
        return message


_GROWING: Final = {"text": "text", "thinking": "thinking", "partial_json": "input"}
