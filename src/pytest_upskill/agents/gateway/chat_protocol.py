"""OpenAI's Chat Completions, which most other servers speak too."""

from collections.abc import Iterator
from secrets import token_hex
from typing import Final

from ...models.openai_chat import STOPS, usage_of
from ...models.sdk import stop_word
from ...models.tool_turns import dicts_in
from ...trials.answer import Answer
from .door import Door
from .http import Body, dict_of, json_text, text_of, texts_in
from .protocol import (
    AgentRequest,
    Item,
    Protocol,
    ReplyStream,
    reply_of,
)

_STOPPED: Final = {"length": "length", "refusal": "content_filter"}


_DOOR: Final = Door(
    keys=frozenset(
        (
            "model",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "stop",
            "seed",
            "user",
            "messages",
            "tools",
            "functions",
            "tool_choice",
            "function_call",
            "parallel_tool_calls",
            "response_format",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "typical_p",
            "random_seed",
            "do_sample",
            "frequency_penalty",
            "presence_penalty",
            "repetition_penalty",
            "repeat_penalty",
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "n",
            "modalities",
            "reasoning",
            "reasoning_effort",
            "verbosity",
            "thinking",
            "enable_thinking",
            "preserve_thinking",
            "thinking_budget",
            "include_reasoning",
            "reasoning_format",
            "reasoning_split",
            "prompt_mode",
            "chat_template_kwargs",
            "safe_prompt",
            "tool_stream",
            "cache_prompt",
            "prompt_cache_key",
            "prompt_cache_retention",
            "prompt_cache_options",
            "safety_identifier",
            "metadata",
            "usage",
            "store",
            "service_tier",
        )
    ),
    kinds=frozenset(
        (
            "text",
            "image_url",
            "video_url",
            "audio_url",
            "file",
            "refusal",
            "thinking",
            "function",
            "custom",
        )
    ),
)


class Chat(Protocol):
    path = "/chat/completions"
    limits = ("max_completion_tokens", "max_tokens")
    door = _DOOR
    last_event = b"data: [DONE]\n\n"

    def items(self, body: Body) -> Iterator[Item]:
        for message in dicts_in(body["messages"]):
            yield from _items(message)

    def parse_reply(self, body: Body) -> Answer:
        choices = dicts_in(body.get("choices"))
        choice = choices[0] if choices else {}
        message = dict_of(choice.get("message"))
        stop = stop_word(choice.get("finish_reason"), STOPS)
        return reply_of(
            _items({**message, "role": "assistant"}),
            usage_of(body.get("usage")),
            stop="refusal" if text_of(message.get("refusal")) else stop,
        )

    def stream(self) -> ReplyStream:
        return ChatStream()

    def reply_body(self, answer: Answer, request: AgentRequest) -> Body:
        message: Body = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in answer.calls
            ]
        stop = "tool_calls" if answer.calls else _STOPPED.get(answer.stop, "stop")
        input_tokens, output_tokens = answer.usage.input or 0, answer.usage.output or 0
        return {
            "id": f"chatcmpl-{token_hex(8)}",
            "object": "chat.completion",
            "created": 0,
            "model": request.model,
            "choices": [{"index": 0, "message": message, "finish_reason": stop}],
            "usage": {
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                "prompt_tokens_details": {"cached_tokens": answer.usage.cached or 0},
            },
        }

    def events(self, body: Body) -> Iterator[Body]:
        (choice,) = body["choices"]
        message = choice["message"]
        calls = [
            {**call, "index": at}
            for at, call in enumerate(message.get("tool_calls", ()))
        ]
        content = {**message, "content": message["content"] or ""}
        if calls:
            content["tool_calls"] = calls
        head = {**body, "object": "chat.completion.chunk"}
        usage = head.pop("usage")
        for delta, stop in ((content, None), ({}, choice["finish_reason"])):
            choices = [{"index": 0, "delta": delta, "finish_reason": stop}]
            yield {**head, "choices": choices, **({"usage": usage} if stop else {})}

    def prepare(self, body: Body, model: str, effort: str | None) -> None:
        super().prepare(body, model, effort)
        if effort:
            body["reasoning_effort"] = effort
        if body.get("stream") is True:
            body["stream_options"] = dict_of(body.get("stream_options")) | {
                "include_usage": True
            }

    def is_added_usage(self, event: Body) -> bool:
        return event.get("choices") == [] and isinstance(event.get("usage"), dict)


def _items(message: Body) -> list[Item]:
    text = texts_in(message.get("content"))
    match message.get("role"):
        case "tool":
            return [Item("result", text, text_of(message.get("tool_call_id")))]
        case "assistant":
            return _said(message)
        case "system" | "developer":
            return [Item("instruction", text)]
        case _:
            return [Item("user", text)]


def _said(message: Body) -> list[Item]:
    items = list[Item]()
    for key in ("reasoning_content", "reasoning"):
        if (thinking := text_of(message.get(key))) and not items:
            items.append(Item("thinking", thinking))
    if text := texts_in(message.get("content")) or text_of(message.get("refusal")):
        items.append(Item("assistant", text))
    for tool in dicts_in(message.get("tool_calls")):
        items.append(_call(tool))
    return items


def _call(tool: Body) -> Item:
    function = tool.get("function")
    if not isinstance(function, dict):
        function = tool.get("custom")  # a tool that takes a text
    function = dict_of(function)
    arguments = json_text(function.get("arguments", function.get("input")))
    name = text_of(function.get("name"))
    return Item("call", arguments, text_of(tool.get("id")), name)


class ChatStream(ReplyStream):
    def __init__(self) -> None:
        self._head: Body = {}
        self._parts: dict[str, list[str]] = {}
        self._calls: dict[int, Body] = {}
        self._arguments: dict[int, list[str]] = {}
        self._stop: object = None

    def add(self, event: Body) -> None:
        if event.get("usage"):
            self._head["usage"] = event["usage"]
        for choice in dicts_in(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            if choice.get("finish_reason"):
                self._stop, self.ended = choice["finish_reason"], True
            delta = dict_of(choice.get("delta"))
            for name in ("content", "refusal", "reasoning_content", "reasoning"):
                if part := text_of(delta.get(name)):
                    self._parts.setdefault(name, []).append(part)
            for tool in dicts_in(delta.get("tool_calls")):
                self._add_call(tool)

    def _add_call(self, tool: Body) -> None:
        index = tool.get("index")
        if not isinstance(index, int):  # some servers send each call whole, without one
            index = len(self._calls)
        call = self._calls.setdefault(index, {"function": {}})
        function = dict_of(tool.get("function"))
        if tool.get("id"):
            call["id"] = tool["id"]
        if function.get("name"):
            call["function"]["name"] = function["name"]
        if part := text_of(function.get("arguments")):
            self._arguments.setdefault(index, []).append(part)

    def body(self) -> Body:
        for index, parts in self._arguments.items():
            self._calls[index]["function"]["arguments"] = "".join(parts)
        message: Body = {name: "".join(parts) for name, parts in self._parts.items()}
        message["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        return {
            **self._head,
            "choices": [{"message": message, "finish_reason": self._stop}],
        }
