"""OpenAI's Responses."""

import json
from collections.abc import Iterator
from secrets import token_hex
from typing import Final

from ...models.openai_responses import STOPS, usage_in
from ...models.sdk import stop_word
from ...models.tool_turns import dicts_in
from ...trials.answer import Answer
from ...trials.transcript import ToolCall
from .door import Door, Passed, UnlistedContent
from .http import Body, dict_of, limit_of, text_of, texts_in
from .protocol import AgentRequest, Item, ModelReply, Protocol, ReplyStream, tool_of

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
            # The endpoint knows those of its trial.
            "previous_response_id",
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
    door = _DOOR

    def pass_on(self, body: Body, *, network: bool) -> Passed:
        """An item without its content would be looked up in the account."""
        for item in dicts_in(body.get("input")):
            is_message = item.get("type") in (None, "message")
            if is_message and None in (item.get("role"), item.get("content")):
                raise UnlistedContent("a message without its content")
        return super().pass_on(body, network=network)

    def parse_request(self, body: Body) -> AgentRequest:
        content = body.get("input")
        if not isinstance(content, str | list):
            raise ValueError("input: a text or a list is required")
        if isinstance(content, str):
            content = [{"role": "user", "content": content}]
        items = dicts_in(content)
        tools = [
            (name, tool) for place in (body, *items) for name, tool in _tools_in(place)
        ]
        system = [text_of(body.get("instructions"))]
        system += [texts_in(item.get("content")) for item in items if _is_system(item)]
        return AgentRequest(
            text_of(body.get("model")),
            "\n\n".join(filter(None, system)),
            tuple(
                part for item in items if not _is_system(item) for part in _items(item)
            ),
            tuple(
                tool_of(
                    name,
                    tool.get("description"),
                    tool.get("parameters") or tool.get("format"),
                )
                for name, tool in tools
            ),
            limit_of(body, "max_output_tokens"),
            body.get("stream") is True,
            text_of(body.get("previous_response_id")),
            text_of(dict_of(body.get("client_metadata")).get("thread_id")),
            frozenset(name for name, tool in tools if tool.get("type") == "custom"),
            body.get("tool_choice") == "none",
        )

    def parse_reply(self, body: Body) -> ModelReply:
        texts, thoughts, calls, refused = (
            list[str](),
            list[str](),
            list[ToolCall](),
            False,
        )
        for item in dicts_in(body.get("output")):
            kind = text_of(item.get("type"))
            if kind == "message":
                for part in dicts_in(item.get("content")):
                    texts.append(
                        text_of(part.get("text")) or text_of(part.get("refusal"))
                    )
                    refused = refused or part.get("type") == "refusal"
            elif kind == "reasoning":
                thoughts += [
                    texts_in(item.get("summary")),
                    texts_in(item.get("content")),
                ]
            elif kind.endswith("_call") and text_of(item.get("call_id")):
                calls.append(_call(item))
        reason = dict_of(body.get("incomplete_details")).get("reason")
        if body.get("status") == "failed":
            reason = "error"
        stop = "tools" if calls else stop_word(reason, STOPS)
        return ModelReply(
            "".join(texts),
            usage_in(body),
            "refusal" if refused else stop,
            calls=tuple(calls),
            thinking="\n".join(filter(None, thoughts)),
            id=text_of(body.get("id")),
        )

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
        return (
            {**event, "sequence_number": at} for at, event in enumerate(_events(body))
        )

    def prepare(self, body: Body, model: str, effort: str | None) -> None:
        super().prepare(body, model, effort)
        if effort:
            body["reasoning"] = dict_of(body.get("reasoning")) | {"effort": effort}


# What of an item comes in parts, and the names of the events that bring them.
_PARTS: Final = {
    "message": ("content", ""),
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


def _events(body: Body) -> Iterator[Body]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        kind = item["type"]
        key, event = _PARTS[kind]
        added = {**item, "status": "in_progress", key: [] if kind == "message" else ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": added,
        }
        if kind == "message":
            (part,) = item["content"]
            place["content_index"] = 0
            started = {**part, "text": ""}
            yield {"type": "response.content_part.added", **place, "part": started}
            fields = {**place, "logprobs": []}
            yield {
                "type": "response.output_text.delta",
                **fields,
                "delta": part["text"],
            }
            yield {"type": "response.output_text.done", **fields, "text": part["text"]}
            yield {"type": "response.content_part.done", **place, "part": part}
        else:
            yield {"type": f"{event}.delta", **place, "delta": item[key]}
            yield {
                "type": f"{event}.done",
                **place,
                "name": item["name"],
                key: item[key],
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{body['status']}", "response": body}


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


def _is_system(item: Body) -> bool:
    return item.get("role") in ("system", "developer")


def _items(item: Body) -> list[Item]:
    kind = text_of(item.get("type"))
    if kind.endswith("_output"):
        output = item.get("output", item.get("tools"))
        text = texts_in(output) or (json.dumps(output) if output else "")
        return [Item("result", text, text_of(item.get("call_id")))]
    if kind == "reasoning":
        return [Item("thinking", texts_in(item.get("summary")))]
    if kind.endswith("_call"):
        call = _call(item)
        return [Item("call", call.arguments, call.id, call.name)]
    if item.get("role") == "assistant":
        return [Item("assistant", texts_in(item.get("content")))]
    return [Item("user", texts_in(item.get("content")))] if item.get("role") else []


def _call(item: Body) -> ToolCall:
    """The call of a function has arguments, that of a free-form tool a text,
    others an action.
    """
    name = text_of(item.get("name")) or text_of(item.get("type")).removesuffix("_call")
    name = _full_name(text_of(item.get("namespace")), name)
    for key in ("arguments", "input"):
        if isinstance(item.get(key), str):
            return ToolCall(text_of(item.get("call_id")), name, item[key])
    action = item.get("arguments") or item.get("action") or item.get("operation")
    return ToolCall(
        text_of(item.get("call_id")), name, json.dumps(action, ensure_ascii=False)
    )


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
