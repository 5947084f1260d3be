"""Replies as streams: from the body of a plain reply to the events of a real server."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]


def events(protocol: str, body: Body, *, usage: bool = True) -> list[bytes]:
    """``usage``: whether a client of Chat Completions asked for it."""
    if protocol == "anthropic":
        return [_named(event) for event in _messages(body)]
    if protocol == "responses":
        numbered = enumerate(_responses(body))
        return [
            _named({**event, "sequence_number": number}) for number, event in numbered
        ]
    if protocol == "gemini":
        return [_data(json.dumps(event)) for event in _gemini(body)]
    return [_data(json.dumps(event)) for event in _chat(body, usage)] + [
        _data("[DONE]")
    ]


def error_event(protocol: str, message: str, kind: str) -> bytes:
    """How a server says in the middle of a stream that it can't go on."""
    error = {"type": kind, "message": message}
    if protocol == "anthropic":
        return _named({"type": "error", "error": error})
    if protocol == "gemini":
        return _data(
            json.dumps({"error": {"code": 503, "message": message, "status": kind}})
        )
    if protocol == "responses":
        event = {"type": "error", "code": kind, "message": message, "param": None}
        return _named({**event, "sequence_number": 0})
    return _data(json.dumps({"error": {**error, "code": kind, "param": None}}))


def _named(event: Body) -> bytes:
    return f"event: {event['type']}\n".encode() + _data(json.dumps(event))


def _data(text: str) -> bytes:
    return f"data: {text}\n\n".encode()


def _parts(text: str) -> Iterator[str]:
    """A text in parts, none of them empty."""
    size = max(1, len(text) // 3)
    return (text[start : start + size] for start in range(0, len(text), size))


def _messages(body: Body) -> Iterator[Body]:
    begun = {**body["usage"], "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**body, "content": [], "stop_reason": None, "usage": begun},
    }
    for index, block in enumerate(body["content"]):
        kind = block["type"]
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        start = {
            key: empty.get(key, value) for key, value in block.items() if key != "type"
        }
        start["type"] = kind
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": body["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": body["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _deltas(block: Body) -> Iterator[Body]:
    if block["type"] == "text":
        for part in _parts(block["text"]):
            yield {"type": "text_delta", "text": part}
    elif block["type"] == "thinking":
        for part in _parts(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": part}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        given = block["input"]
        for part in _parts(given if isinstance(given, str) else json.dumps(given)):
            yield {"type": "input_json_delta", "partial_json": part}


def _chat(body: Body, usage: bool) -> Iterator[Body]:
    choice = body["choices"][0]
    message = choice["message"]
    head = {"id": body["id"], "object": "chat.completion.chunk", "created": 0}
    head["model"] = body["model"]

    def chunk(delta: Body, finish: object = None) -> Body:
        return {
            **head,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    yield chunk({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "content", "refusal"):
        for part in _parts(message.get(name) or ""):
            yield chunk({name: part})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        start = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [start]})
        for part in _parts(function["arguments"]):
            yield chunk(
                {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            )
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**head, "choices": [], "usage": body["usage"]}


def _gemini(body: Body) -> Iterator[Body]:
    (candidate,) = body["candidates"]
    head = {name: body[name] for name in ("modelVersion", "responseId")}
    asked = {"promptTokenCount": body["usageMetadata"]["promptTokenCount"]}
    begun = {
        **head,
        "usageMetadata": {**asked, "totalTokenCount": asked["promptTokenCount"]},
    }
    for part in candidate["content"]["parts"]:
        for text in _parts(part["text"]) if "text" in part else [""]:
            one = {**part, "text": text} if text else part
            yield {
                **begun,
                "candidates": [{"content": {"role": "model", "parts": [one]}}],
            }
    last = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
    yield {**body, "candidates": [last]}


def _responses(body: Body) -> Iterator[Body]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {
                **item,
                **{key: empty for key, empty in _EMPTY.items() if key in item},
            },
        }
        if item["type"] == "message":
            part = item["content"][0]
            inside = {**place, "content_index": 0}
            yield {
                **inside,
                "type": "response.content_part.added",
                "part": {**part, "text": ""},
            }
            for text in _parts(part["text"]):
                yield {
                    **inside,
                    "type": "response.output_text.delta",
                    "delta": text,
                    "logprobs": [],
                }
            yield {
                **inside,
                "type": "response.output_text.done",
                "text": part["text"],
                "logprobs": [],
            }
            yield {**inside, "type": "response.content_part.done", "part": part}
        elif item["type"] == "function_call":
            for text in _parts(item["arguments"]):
                yield {
                    **place,
                    "type": "response.function_call_arguments.delta",
                    "delta": text,
                }
            yield {
                **place,
                "type": "response.function_call_arguments.done",
                "arguments": item["arguments"],
                "name": item["name"],
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    end = "incomplete" if body["status"] == "incomplete" else "completed"
    yield {"type": f"response.{end}", "response": body}


_EMPTY: Mapping[str, object] = {"arguments": "", "content": [], "status": "in_progress"}
