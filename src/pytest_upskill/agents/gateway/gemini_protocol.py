"""Google's generateContent. Its paths name the model and say
whether the reply is a stream.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote, unquote

from ..._util.json_forms import whole_number
from ..._util.texts import digest
from ...models.sdk import stop_word
from ...models.tool_turns import dicts_in, object_of
from ...trials.answer import Answer, Usage
from ...trials.transcript import Tool, ToolCall
from .door import Door, snake
from .http import Body, dict_of, limit_of, text_of
from .protocol import (
    AgentRequest,
    Item,
    ItemKind,
    Protocol,
    ReplyStream,
    Target,
    reply_of,
    tool_of,
)

_PATH: Final = re.compile(r"/v1(?:beta|alpha)?/models/(.+):(\w+)")
_ASKING: Final = ("generateContent", "streamGenerateContent")
_REFUSED: Final = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"),
)
STOPS: Final = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_REFUSED, "refusal"),
}
_STOPPED: Final = {"length": "MAX_TOKENS", "refusal": "SAFETY"}
_ERRORS: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
}
# How much to think: by level from Gemini 3 on, before by tokens.
_LEVELS: Final = {"none": "minimal", "xhigh": "high"}
_BUDGETS: Final = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192}
_MOST_BUDGET: Final = 24_576


_DOOR: Final = Door(
    keys=frozenset(
        (
            "model",
            "contents",
            "system_instruction",
            "tools",
            "tool_config",
            "generation_config",
            "safety_settings",
            "service_tier",
        )
    ),
)


class Gemini(Protocol):
    version = "/v1beta"
    path = "/models"
    content = "contents"
    door = _DOOR

    def target(self, path: str, query: str) -> Target | None:
        match = _PATH.fullmatch(path)
        if match is None or match[2] not in (*_ASKING, "countTokens"):
            return None
        stream = match[2] == "streamGenerateContent"
        if stream and "alt=sse" not in query.split("&"):
            return None  # a stream in a form that no agent asks for
        query = "alt=sse" if stream else ""
        return Target(
            match[2], unquote(match[1]), stream, match[2] == "countTokens", query
        )

    def url(self, base: str, target: Target, model: str) -> str:
        root = re.sub(r"/v1(beta)?(/openai)?$", "", base)
        return f"{root}/v1beta/models/{quote(model, safe='/')}:{target.path}"

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """A key has a header of its own; the password of a proxy stays where it is."""
        bearer = "bearer "
        converted: dict[str, str] = {}
        for name, value in headers.items():
            if name.lower() == "authorization" and value.lower().startswith(bearer):
                converted["x-goog-api-key"] = value[len(bearer) :]
            else:
                converted[name] = value
        return converted

    def parse_request(self, body: Body) -> AgentRequest:
        config = dict_of(_get(body, "generationConfig"))
        limit = limit_of(config, "maxOutputTokens", "max_output_tokens")
        return replace(super().parse_request(body), max_output=limit)

    def items(self, body: Body) -> Iterator[Item]:
        for part in _parts(_get(body, "systemInstruction")):
            yield Item("instruction", text_of(part.get("text")))
        yield from _items(body["contents"])

    def tools(self, body: Body) -> Iterator[Tool]:
        for tool in dicts_in(body.get("tools")):
            for function in dicts_in(_get(tool, "functionDeclarations")):
                yield tool_of(function)

    def parse_reply(self, body: Body) -> Answer:
        candidates = dicts_in(body.get("candidates"))
        first = candidates[0] if candidates else {}
        items = list(_items([{"role": "model", "parts": _parts(first.get("content"))}]))
        stop = stop_word(first.get("finishReason"), STOPS)
        if stop == "end" and any(item.kind == "call" for item in items):
            stop = "tools"
        return reply_of(
            items,
            usage_of(body.get("usageMetadata")),
            stop="refusal" if _blocked(body) else stop,
            between="",  # a stream has them in many parts
        )

    def stream(self) -> ReplyStream:
        return GeminiStream()

    def reply_body(self, answer: Answer, request: AgentRequest) -> Body:
        parts: list[Body] = [{"text": answer.text}] if answer.text else []
        parts += [
            {
                "functionCall": {
                    "id": call.id,
                    "name": call.name,
                    "args": object_of(call.arguments),
                }
            }
            for call in answer.calls
        ]
        input_tokens, output_tokens = answer.usage.input or 0, answer.usage.output or 0
        stop = "STOP" if answer.calls else _STOPPED.get(answer.stop, "STOP")
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": stop, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": input_tokens,
                "candidatesTokenCount": output_tokens,
                "totalTokenCount": input_tokens + output_tokens,
                "cachedContentTokenCount": answer.usage.cached or 0,
            },
            "modelVersion": request.model,
            "responseId": token_hex(8),
        }

    def events(self, body: Body) -> Iterator[Body]:
        yield body

    def count_reply(self, tokens: int) -> Body:
        return {"totalTokens": tokens}

    def models(self, model: str) -> Body:
        return {"models": [self.model(model)]}

    def model(self, model: str) -> Body:
        named = {"name": f"models/{model}", "displayName": model}
        return {
            **named,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }

    def error(self, status: int, message: str) -> Body:
        kind = _ERRORS.get(status, "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": message, "status": kind}}

    def prepare(self, body: Body, model: str, effort: str | None) -> None:
        """Its path names the model."""
        body.pop("model", None)
        if not effort:
            return
        config = body.pop("generation_config", None) or body.get("generationConfig")
        config = body["generationConfig"] = dict(dict_of(config))
        options = dict_of(
            config.pop("thinking_config", None) or config.get("thinkingConfig")
        )
        options = {
            key: value
            for key, value in options.items()
            if snake(key) == "include_thoughts"
        }
        if re.match(r"gemini-[12]\.", model):
            options["thinkingBudget"] = _BUDGETS.get(effort, _MOST_BUDGET)
        else:
            options["thinkingLevel"] = _LEVELS.get(effort, effort)
        config["thinkingConfig"] = options


def usage_of(usage: object) -> Usage:
    """Google counts thoughts apart from the answer,
    and results of its tools from the prompt.
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt, tools, candidates, thoughts, cached, total = (
        whole_number(usage.get(name))
        for name in (
            *("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount"),
            *("thoughtsTokenCount", "cachedContentTokenCount", "totalTokenCount"),
        )
    )
    if prompt is not None:
        prompt += tools or 0
    outputs = [count for count in (candidates, thoughts) if count is not None]
    output = sum(outputs) if outputs else None
    if output is None and prompt is not None and total is not None:
        output = max(0, total - prompt)  # zeros are left out
    return Usage(prompt, output, cached or 0)


def _get(body: Any, name: str) -> Any:
    if not isinstance(body, dict):
        return None
    return body.get(name, body.get(snake(name)))


def _parts(content: object) -> list[Body]:
    if isinstance(content, str):
        return [{"text": content}]
    if isinstance(content, list):
        return dicts_in(content)
    parts = content.get("parts") if isinstance(content, dict) else None
    return [parts] if isinstance(parts, dict) else dicts_in(parts)


def _items(contents: list[Any]) -> Iterator[Item]:
    # Calls without a result, and their own ids
    waiting = list[tuple[object, ToolCall]]()
    for content in dicts_in(contents):
        kind: ItemKind = "assistant" if content.get("role") == "model" else "user"
        # Results first: some agents put a message before them.
        for part in sorted(
            _parts(content), key=lambda part: not _get(part, "functionResponse")
        ):
            if call := _call(part):
                waiting.append((_get(part, "functionCall").get("id"), call))
                yield Item("call", call.arguments, call.id, call.name)
            elif isinstance(response := _get(part, "functionResponse"), dict):
                key, (text, failed) = _answered(response, waiting), _result(response)
                yield Item("result", text, key, failed=failed)
            elif text := text_of(part.get("text")):
                yield Item("thinking" if part.get("thought") is True else kind, text)


def _call(part: Body) -> ToolCall | None:
    """A call. Its id is made of its content, as agents repeat
    calls with ids of their own.
    """
    function = _get(part, "functionCall")
    if not isinstance(function, dict):
        return None
    name, arguments = text_of(function.get("name")), function.get("args")
    text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    fingerprint = digest(name, json.dumps(arguments, sort_keys=True))[:12]
    return ToolCall(f"{name[:60]}-{fingerprint}", name, text)


def _answered(response: Body, waiting: list[tuple[object, ToolCall]]) -> str:
    """The id of a result's call: found by the result's own id, else by name, in
    order.
    """
    key, name = response.get("id"), text_of(response.get("name"))
    by_id = (waiting_call for waiting_call in waiting if key and waiting_call[0] == key)
    match = next(by_id, None) or next(
        (waiting_call for waiting_call in waiting if waiting_call[1].name == name), None
    )
    if match is None:
        return text_of(key)
    waiting.remove(match)
    return match[1].id


def _result(response: Body) -> tuple[str, bool]:
    """The text of a result, and whether it is an error."""
    output = response.get("response")
    if not isinstance(output, dict):
        return text_of(output), False
    for key, failed in (("output", False), ("error", True), ("result", False)):
        if isinstance(output.get(key), str) and len(output) == 1:
            return output[key], failed
    return json.dumps(output, ensure_ascii=False), "error" in output


def _blocked(body: Body) -> bool:
    """Whether the prompt was refused."""
    return bool(dict_of(body.get("promptFeedback")).get("blockReason"))


class GeminiStream(ReplyStream):
    """Each event has the next parts of the answer, and the usage so far."""

    def __init__(self) -> None:
        self._body: Body = {}
        self._parts: list[Body] = []
        self._stop: object = None

    def add(self, event: Body) -> None:
        for name in ("usageMetadata", "promptFeedback"):
            if event.get(name):
                self._body[name] = event[name]
        self.ended = self.ended or _blocked(event)
        for candidate in dicts_in(event.get("candidates"))[:1]:
            self._parts += _parts(candidate.get("content"))
            if candidate.get("finishReason"):
                self._stop, self.ended = candidate["finishReason"], True

    def body(self) -> Body:
        candidate = {"content": {"parts": self._parts}, "finishReason": self._stop}
        body = {**self._body, "candidates": [candidate]}
        if not self.ended and isinstance(usage := body.get("usageMetadata"), dict):
            names = (
                "promptTokenCount",
                "cachedContentTokenCount",
                "toolUsePromptTokenCount",
            )
            body["usageMetadata"] = {
                name: usage[name] for name in names if name in usage
            }
        return body
