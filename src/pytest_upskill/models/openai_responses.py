"""OpenAI's Responses: newer reasoning models call tools only there;
some take nothing else.

Nothing is stored on the server: thinking comes encrypted, and is sent back.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from ..trials.answer import Answer, Usage
from ..trials.transcript import Step, ToolCall
from ..trials.trial import Question
from .model import ModelSpec
from .sdk import answer_of
from .tool_turns import (
    ToolTurn,
    calls_from,
    dicts_in,
    dumped,
    loaded,
    name_of,
    object_text,
)

PATH: Final = "/responses"
STOPS: Final = {
    "completed": "end",
    "max_output_tokens": "length",
    "content_filter": "refusal",
}


def request_for(question: Question, spec: ModelSpec) -> dict[str, Any]:
    items: list[dict[str, Any]] = [
        {"role": role, "content": text} for role, text in question.messages
    ]
    for step in question.steps:
        items += _items(step)
        items += (
            {
                "type": "function_call_output",
                "call_id": result.call,
                "output": result.text,
            }
            for result in step.results
        )
        items += [{"role": "user", "content": step.answer}] if step.answer else []
    tools = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": json.loads(tool.schema),
            "strict": False,
        }
        for tool in question.tools
    ]
    request: dict[str, Any] = {
        "model": spec.model_id,
        "instructions": question.system,
        "input": items,
        "max_output_tokens": question.max_output,
        "store": False,
    }
    if tools:  # then the turn goes back
        request |= {"tools": tools, "include": ["reasoning.encrypted_content"]}
    if question.schema:
        form = {"name": "reply", "strict": True, "schema": json.loads(question.schema)}
        request["text"] = {"format": {"type": "json_schema", **form}}
    if spec.effort:
        request["reasoning"] = {"effort": spec.effort}
    return request


def _items(step: Step) -> list[dict[str, Any]]:
    """A turn as it came; else made of text and calls."""
    items = dicts_in(loaded(step, list))
    ids = [call.id for call in step.calls]
    if items and ids == [item.get("call_id") for item in items if _is_call(item)]:
        return items
    text = [{"role": "assistant", "content": step.text}] if step.text.strip() else []
    return [*text, *({"type": "function_call", **_call(call)} for call in step.calls)]


def _call(call: ToolCall) -> dict[str, str]:
    return {
        "call_id": call.id,
        "name": name_of(call),
        "arguments": object_text(call.arguments),
    }


def answer_in(reply: dict[str, Any], usage: Usage, question: Question) -> Answer:
    """The answer in a reply, which may be anything with a list of outputs."""
    items = list(filter(_can_go_back, dicts_in(reply["output"])))
    uses = list(filter(_is_call, items))
    calls = calls_from(
        ((use.get("call_id"), use.get("name"), use.get("arguments")) for use in uses),
        question.steps,
    )
    for use, call in zip(uses, calls, strict=True):
        use.update(_call(call))
    text = "".join(_texts(items, "message", "content", "text"))
    refusal = "".join(_texts(items, "message", "content", "refusal"))
    thinking = "\n\n".join(_texts(reply["output"], "reasoning", "summary", "text"))
    details = reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    reason = "refusal" if refusal else reason or reply.get("status")
    turn = ToolTurn(tuple(calls), thinking, dumped(items)) if question.tools else None
    return answer_of(text or refusal, usage, reason, STOPS, turn)


def failure_in(reply: dict[str, Any]) -> str:
    """Why a reply with a good status has no answer; mostly empty."""
    if reply.get("status") not in ("failed", "cancelled"):
        return ""
    error = reply.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or reply["status"])


def _is_call(item: dict[str, Any]) -> bool:
    return item.get("type") == "function_call"


def _can_go_back(item: dict[str, Any]) -> bool:
    """The server stores nothing, so thinking can only go back encrypted."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content"))


def _texts(items: list[Any], kind: str, inside: str, key: str) -> Iterator[str]:
    for item in dicts_in(items):
        for part in dicts_in(item.get(inside)) if item.get("type") == kind else ():
            if isinstance(part.get(key), str):
                yield part[key]


def usage_in(reply: dict[str, Any]) -> Usage:
    """What the server counted; Usage keeps only counts."""
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = details.get("cached_tokens")
    return Usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        0 if usage and cached is None else cached,
        details.get("cache_write_tokens") or 0,
    )
