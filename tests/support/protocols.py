"""The protocols of models: requests as a script gets them,
and what it returns as clients do.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any
from urllib.parse import unquote

from support.exchange import Asked, Fault, Protocol, Reply
from support.http_answers import JSON, Answer, answer, header_lines, stream
from support.streams import error_event, events

ANTHROPIC_STOP = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"}
# OpenAI reports a refusal in a field of the message, not in the finish reason.
GEMINI_STOP = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
OPENAI_STOP = {"end": "stop", "length": "length", "refusal": "stop"}
# Faults that are a well-formed HTTP response with status 200: body and content type.
ODD_ANSWERS = {
    "garbage": (b"<<< this is not JSON >>>", JSON),
    "empty_body": (b"", JSON),
    "wrong_type": (b"These are plain words.", "text/plain"),
    "html": (b"<html><body><h1>502 Bad Gateway</h1></body></html>", "text/html"),
}


def understood(
    protocol: Protocol, headers: dict[str, str], content: bytes, target: str
) -> Asked:
    """The request as a script gets it, but for its attempt."""
    body = json.loads(content)
    model = ""
    if protocol == "gemini":
        path, _, query = target.partition("?")
        model, _, verb = path.rpartition("/models/")[2].rpartition(":")
        assert (query == "alt=sse") == (verb == "streamGenerateContent"), target
        headers = {**headers, ":stream": "yes" if query else ""}
    elif target.endswith("/invoke"):
        model = unquote(target.split("/")[-2])
    elif target.endswith(":rawPredict"):
        model = unquote(target.rpartition("/")[2].removesuffix(":rawPredict"))
    messages = _messages(protocol, body)
    texts = [(message["role"], _text(message.get("content"))) for message in messages]
    system = "\n".join(text for role, text in texts if role in ("system", "developer"))
    if protocol == "anthropic":
        system = _text(body.get("system"))
    elif protocol == "gemini":
        system = _text(body.get("systemInstruction", {}).get("parts"))
    elif protocol == "responses":
        system = "\n".join(filter(None, (body.get("instructions"), system)))
    of_user = (text for role, text in reversed(texts) if role == "user" and text)
    results = tuple(result for message in messages for result in _results(message))
    return Asked(
        *(protocol, headers, body, system, next(of_user, ""), 1, results, model),
        target=target,
        content=content,
    )


def answer_to(asked: Asked, action: Reply | Fault) -> Answer:
    """What a script returned, in the protocol of the request."""
    if isinstance(action, Reply):
        return replace(reply_to(asked, action), delay=action.delay, gate=action.gate)
    if action.kind in ("reset", "hang", "trickle", "cut", "stall"):
        return replace(reply_to(asked, Reply("never seen whole")), way=action.kind)
    if action.kind in ("error_first", "error_later"):
        return _broken(asked, action)
    if action.kind != "status":
        return answer(*ODD_ANSWERS[action.kind])
    headers = dict(action.headers)
    if action.retry_after:
        headers["retry-after"] = action.retry_after
    if asked.target.partition("?")[0].endswith("/invoke"):
        headers["x-amzn-errortype"] = action.error_type
        refused = json.dumps({"message": action.message}).encode()
        return answer(refused, JSON, action.status, header_lines(headers))
    return error_in(
        asked.protocol,
        action.status,
        action.message,
        action.error_type,
        more=header_lines(headers),
        details=action.details,
    )


def _messages(protocol: Protocol, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request, in the form of Chat Completions."""
    if protocol == "gemini":
        return list(_contents(body))
    return _input(body) if protocol == "responses" else list(body["messages"])


def _text(content: object) -> str:
    """The text of a message or system prompt: a string, or a list of blocks."""
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else ""


def _results(message: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the tool results in a message."""
    content = message.get("content")
    if message["role"] == "tool":  # in Responses, an output
        yield _text(content)
    elif isinstance(content, list):
        for block in content:
            if block.get("type") == "tool_result":
                yield _text(block.get("content"))


def _input(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a request of Responses, as messages of Chat Completions."""
    items = body["input"]
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return [
        (
            {"role": "tool", "content": item["output"]}
            if item.get("type") == "function_call_output"
            else {"role": item.get("role", "assistant"), "content": item.get("content")}
        )
        for item in items
    ]


def _contents(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The contents of a request of Google's protocol, as messages of Chat
    Completions.
    """
    for content in body["contents"]:
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                yield {"role": "tool", "content": response["response"].get("output")}
        yield {"role": content.get("role", "user"), "content": content["parts"]}


def reply_to(asked: Asked, reply: Reply) -> Answer:
    body: dict[str, object] = {"id": f"loopback-{token_hex(4)}", "model": asked.model}
    calling = reply.calls and reply.stop == "end"
    if asked.protocol == "anthropic":
        body |= {
            "type": "message",
            "role": "assistant",
            "content": _content(asked, reply),
            "stop_reason": "tool_use" if calling else ANTHROPIC_STOP[reply.stop],
            "usage": {
                "input_tokens": reply.input_tokens,
                "output_tokens": reply.output_tokens,
                "cache_read_input_tokens": reply.cache_read,
                "cache_creation_input_tokens": reply.cache_write,
            },
        }
    elif asked.protocol == "responses":
        body |= _response(asked, reply)
    elif asked.protocol == "gemini":
        body = {
            "responseId": "loopback",
            "modelVersion": asked.model,
            **_candidate(reply),
        }
    else:
        finish = "tool_calls" if calling else OPENAI_STOP[reply.stop]
        prompt_tokens = reply.input_tokens + reply.cache_read + reply.cache_write
        cached = {
            "cached_tokens": reply.cache_read,
            "cache_write_tokens": reply.cache_write,
        }
        body |= {
            "object": "chat.completion",
            "created": 0,
            "choices": [
                {"index": 0, "message": _said(asked, reply), "finish_reason": finish}
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": reply.output_tokens,
                "total_tokens": prompt_tokens + reply.output_tokens,
                "prompt_tokens_details": cached,
            },
        }
    body |= reply.raw
    if asked.body.get("stream") or asked.headers.get(":stream"):
        options = asked.body.get("stream_options") or {}
        parts = events(asked.protocol, body, usage=bool(options.get("include_usage")))
        return stream(parts, header_lines(reply.headers))
    return answer(json.dumps(body).encode(), more=header_lines(reply.headers))


def _broken(asked: Asked, fault: Fault) -> Answer:
    """A stream that tells an error."""
    whole = reply_to(asked, Reply("never seen whole")).parts
    told = error_event(asked.protocol, fault.message, fault.error_type)
    before = whole[: len(whole) // 2] if fault.kind == "error_later" else ()
    return stream([*before, told], header_lines(fault.headers))


def error_in(
    protocol: Protocol,
    status: int,
    message: str,
    kind: str,
    *,
    more: str = "",
    details: Sequence[Mapping[str, object]] = (),
) -> Answer:
    error: dict[str, object] = {"type": kind, "message": message}
    body: dict[str, object] = {"type": "error", "error": error}
    if protocol == "gemini" or details:
        error = {"code": status, "message": message, "status": kind, "details": details}
        body = {"error": error}
        if protocol == "openai":  # as Google has it there
            return answer(json.dumps([body]).encode(), JSON, status, more)
    elif protocol != "anthropic":
        # Some real errors set the type, some the code; set both.
        body = {"error": {**error, "param": None, "code": kind}}
    return answer(json.dumps(body).encode(), JSON, status, more)


def _content(asked: Asked, reply: Reply) -> list[dict[str, object]]:
    """The blocks of a message."""
    blocks: list[dict[str, object]] = []
    if reply.thinking:
        signature = hashlib.sha256(reply.thinking.encode()).hexdigest()
        blocks.append(
            {"type": "thinking", "thinking": reply.thinking, "signature": signature}
        )
    if reply.text:  # the real service sends no block for an empty text
        blocks.append({"type": "text", "text": reply.text})
    for number, (name, arguments) in enumerate(reply.calls, len(asked.results) + 1):
        blocks.append(
            {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": name,
                "input": arguments,
            }
        )
    return blocks


def _said(asked: Asked, reply: Reply) -> dict[str, object]:
    """The message of a completion."""
    said: dict[str, object] = {
        "role": "assistant",
        "content": reply.text,
        "refusal": None,
    }
    if reply.stop == "refusal":
        said |= {"content": None, "refusal": reply.text}
    if reply.thinking:
        said["reasoning_content"] = reply.thinking
    if reply.calls:
        said["content"] = reply.text or None
        said["tool_calls"] = [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for number, (name, given) in enumerate(reply.calls, len(asked.results) + 1)
        ]
    return said


def _response(asked: Asked, reply: Reply) -> dict[str, object]:
    """What a reply of Responses has besides its id and model."""
    output: list[dict[str, object]] = []
    done = {"status": "completed"}
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if reply.text:
        part: dict[str, object] = {
            "type": "output_text",
            "text": reply.text,
            "annotations": [],
        }
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [part],
        }
        output.append({**message, **done})
    for number, (name, given) in enumerate(reply.calls, len(asked.results) + 1):
        arguments = given if isinstance(given, str) else json.dumps(given)
        call = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call-{number}",
        }
        space, _, own_name = name.rpartition(".")
        named = {"namespace": space, "name": own_name} if space else {"name": name}
        output.append({**call, **named, "arguments": arguments, **done})
    asked_tokens = reply.input_tokens + reply.cache_read + reply.cache_write
    cut = reply.stop == "length"
    return {
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": asked_tokens,
            "input_tokens_details": {"cached_tokens": reply.cache_read},
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked_tokens + reply.output_tokens,
        },
    }


def _candidate(reply: Reply) -> dict[str, object]:
    """What a reply of Google's protocol has besides its id and model.
    Calls have no ids.
    """
    parts: list[dict[str, object]] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    for name, given in reply.calls:
        args = json.loads(given) if isinstance(given, str) else given
        parts.append(
            {"functionCall": {"name": name, "args": args}, "thoughtSignature": "c2ln"}
        )
    content = {"role": "model", "parts": parts}
    asked = reply.input_tokens + reply.cache_read
    return {
        "candidates": [
            {"content": content, "finishReason": GEMINI_STOP[reply.stop], "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": reply.output_tokens - bool(reply.thinking),
            "thoughtsTokenCount": int(bool(reply.thinking)),
            "totalTokenCount": asked + reply.output_tokens,
            "cachedContentTokenCount": reply.cache_read,
        },
    }
