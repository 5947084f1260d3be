"""OpenAI's Responses."""

import json
from collections.abc import Iterator
from dataclasses import replace
from secrets import token_hex
from typing import Final

from ...models.openai_responses import STOPS, usage_in
from ...models.sdk import stop_word
from ...models.tool_turns import dicts_in
from ...trials.answer import Answer
from ...trials.transcript import Tool, ToolCall
from .door import Door, Passed, UnlistedContent
from .http import Body, dict_of, text_of, texts_in
from .protocol import (
    AgentRequest,
    Item,
    Protocol,
    ReplyStream,
    reply_of,
    tool_of,
)

_NO_SPACE: Final = "functions"  # the group of the tools that are in none
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


_DOOR: Final = Door(
    keys=frozenset(
        (
            "model",
            "stream",
            "stream_options",
            "instructions",
            "input",
            "tools",
            "tool_choice",
            "max_output_tokens",
            "max_tool_calls",
            "include",
            "temperature",
            "top_p",
            "top_logprobs",
            "truncation",
            "parallel_tool_calls",
            "user",
            "reasoning",
            "text",
            "context_management",
            "prompt_cache_key",
            "prompt_cache_retention",
            "prompt_cache_options",
            "safety_identifier",
            "store",
            "metadata",
            "client_metadata",
            "background",
            "service_tier",
        )
    ),
    kinds=frozenset(
        (
            "text",
            "summary_text",
            "reasoning_text",
            "input_text",
            "output_text",
            "refusal",
            "input_image",
            "input_file",
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
            "tool_search_call",
            "tool_search_output",
            "additional_tools",
            "local_shell_call",
            "local_shell_call_output",
            "apply_patch_call",
            "apply_patch_call_output",
            "compaction",
            "compaction_trigger",
            "direct",
        )
    ),
)


class Responses(Protocol):
    path = "/responses"
    content = "input"
    limits = ("max_output_tokens",)
    door = _DOOR

    def pass_on(self, body: Body, *, network: bool) -> Passed:
        """What is stored in the account is not looked up for an agent."""
        if body.get("previous_response_id"):
            raise UnlistedContent("previous_response_id")
        for item in dicts_in(body.get("input")):
            is_message = item.get("type") in (None, "message")
            if is_message and None in (item.get("role"), item.get("content")):
                raise UnlistedContent("a message without its content")
        return super().pass_on(body, network=network)

    def parse_request(self, body: Body) -> AgentRequest:
        if isinstance(body.get("input"), str):
            body = {**body, "input": [{"role": "user", "content": body["input"]}]}
        return replace(
            super().parse_request(body),
            thread=text_of(dict_of(body.get("client_metadata")).get("thread_id")),
            free_form=frozenset(
                name for name, tool in _all_tools(body) if tool.get("type") == "custom"
            ),
        )

    def items(self, body: Body) -> Iterator[Item]:
        yield Item("instruction", text_of(body.get("instructions")))
        for item in dicts_in(body["input"]):
            yield from _items(item)

    def tools(self, body: Body) -> Iterator[Tool]:
        for name, tool in _all_tools(body):
            yield tool_of(tool, name)

    def parse_reply(self, body: Body) -> Answer:
        output = dicts_in(body.get("output"))
        items = [
            item for each in output for item in _items({**each, "role": "assistant"})
        ]
        reason = dict_of(body.get("incomplete_details")).get("reason")
        if body.get("status") == "failed":
            reason = "error"
        stop = stop_word(reason, STOPS)
        if any(item.kind == "call" for item in items):
            stop = "tools"
        if any(_refuses(each) for each in output):
            stop = "refusal"
        return reply_of(items, usage_in(body), stop=stop)

    def stream(self) -> ReplyStream:
        return ResponsesStream()

    def reply_body(self, answer: Answer, request: AgentRequest) -> Body:
        output = list[Body]()
        if answer.text:
            part: Body = {"type": "output_text", "text": answer.text, "annotations": []}
            message = {
                "type": "message",
                "id": f"msg_{token_hex(8)}",
                "role": "assistant",
            }
            output.append({**message, "status": "completed", "content": [part]})
        output += [
            _written_call(call, call.name in request.free_form) for call in answer.calls
        ]
        usage, cut = answer.usage, answer.stop == "length"
        return {
            "id": f"resp_{token_hex(8)}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "error": None,
            "model": request.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": usage.input or 0,
                "input_tokens_details": {"cached_tokens": usage.cached or 0},
                "output_tokens": usage.output or 0,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.tokens,
            },
        }

    def events(self, body: Body) -> Iterator[Body]:
        begun = {**body, "status": "in_progress", "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        for index, item in enumerate(body["output"]):
            event = {"type": "response.output_item.done", "output_index": index}
            yield {**event, "item": item}
        yield {"type": f"response.{body['status']}", "response": body}

    def prepare(self, body: Body, model: str, effort: str | None) -> None:
        super().prepare(body, model, effort)
        if effort:
            body["reasoning"] = dict_of(body.get("reasoning")) | {"effort": effort}


def _all_tools(body: Body) -> Iterator[tuple[str, Body]]:
    for place in (body, *dicts_in(body.get("input"))):
        yield from _tools_in(place)


def _tools_in(place: Body, space: str = "") -> Iterator[tuple[str, Body]]:
    """Tools with their names. They may be in groups, and in items of the input."""
    for tool in dicts_in(place.get("tools")):
        name = text_of(tool.get("name")) or text_of(tool.get("type"))
        if tool.get("type") == "namespace" and not space:
            yield from _tools_in(tool, name)
        else:
            yield _full_name(space, name), tool


def _full_name(space: str, name: str) -> str:
    """The name of a tool in a group: ``clock.sleep``."""
    return f"{space}.{name}" if space and space != _NO_SPACE else name


def _written_call(call: ToolCall, free_form: bool) -> Body:
    space, _, name = call.name.rpartition(".")
    call_fields: Body = {"call_id": call.id, "name": name, "status": "completed"}
    if space:
        call_fields["namespace"] = space
    if free_form:
        head = {
            "type": "custom_tool_call",
            "id": f"ctc_{token_hex(8)}",
            "input": call.arguments,
        }
    else:
        head = {
            "type": "function_call",
            "id": f"fc_{token_hex(8)}",
            "arguments": call.arguments,
        }
    return head | call_fields


def _items(item: Body) -> list[Item]:
    kind = text_of(item.get("type"))
    key = text_of(item.get("call_id"))
    if kind.endswith("_output"):
        output = item.get("output", item.get("tools"))
        text = texts_in(output) or (json.dumps(output) if output else "")
        return [Item("result", text, key)]
    if kind == "reasoning":
        texts = [texts_in(item.get("summary")), texts_in(item.get("content"))]
        return [Item("thinking", "\n".join(filter(None, texts)))]
    if kind.endswith("_call") and key:
        return [_call(item, key)]
    if item.get("role") == "assistant":
        return [Item("assistant", _said(item.get("content")))]
    if item.get("role") in ("system", "developer"):
        return [Item("instruction", texts_in(item.get("content")))]
    return [Item("user", texts_in(item.get("content")))] if item.get("role") else []


def _said(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") or part.get("refusal") for part in dicts_in(content)]
    return "".join(map(text_of, texts))


def _refuses(item: Body) -> bool:
    parts = dicts_in(item.get("content"))
    return any(part.get("type") == "refusal" for part in parts)


def _call(item: Body, key: str) -> Item:
    """The call of a function has arguments, that of a free-form tool a text,
    others an action.
    """
    name = text_of(item.get("name")) or text_of(item.get("type")).removesuffix("_call")
    name = _full_name(text_of(item.get("namespace")), name)
    texts = [item.get(field) for field in ("arguments", "input")]
    text = next((text for text in texts if isinstance(text, str)), None)
    if text is None:
        action = item.get("arguments") or item.get("action") or item.get("operation")
        text = json.dumps(action, ensure_ascii=False)
    return Item("call", text, key, name)


class ResponsesStream(ReplyStream):
    """The last event has the whole reply, events before it have whole items."""

    def __init__(self) -> None:
        self._response: Body = {}
        self._items: list[Body] = []
        self._text: list[str] = []  # of the item that is being written

    def add(self, event: Body) -> None:
        kind, response, item = (
            event.get("type"),
            event.get("response"),
            event.get("item"),
        )
        if isinstance(response, dict):
            self._response = response
            self.ended = kind in _ENDS
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._items.append(item)
            self._text.clear()
        elif kind == "response.output_text.delta":
            self._text.append(text_of(event.get("delta")))

    def body(self) -> Body:
        if self.ended and self._response.get("output"):
            return self._response
        begun = [{"type": "message", "content": [{"text": "".join(self._text)}]}]
        return {**self._response, "output": self._items + (begun if self._text else [])}
