"""OpenAI, or any server that speaks Chat Completions, through the official SDK."""

import asyncio
import json
import re
from dataclasses import replace
from typing import Any, Final

from .._util.json_forms import whole_number
from .._util.texts import digest, first_few, one_line
from ..errors import ModelError
from ..trials.answer import Answer, Usage
from ..trials.transcript import Step, Tool, ToolCall, ToolResult
from ..trials.trial import Question
from . import openai_responses
from .model import ModelSpec
from .sdk import NO_KEY, Request, SdkModel, answer_of
from .sdk_errors import clean, not_a_reply, refuses_schema
from .tool_turns import (
    ToolTurn,
    calls_from,
    dicts_in,
    dumped,
    loaded,
    name_of,
    object_text,
)

STOPS: Final = {
    "stop": "end",
    "length": "length",
    "content_filter": "refusal",
    "tool_calls": "tools",
}
# Keys for a model's thinking. Most servers want it back with the calls, some refuse it,
# and some require it in turns that have none.
_THINKING: Final = ("reasoning_content", "reasoning")
_THOUGHTS: Final = re.compile(r"(reasoning|thinking)(?!_effort)")
_MISSING: Final = re.compile(r"missing|pass\w* back", re.IGNORECASE)
# Reasoning models, and GPT-5 and later, take only the new name of the limit.
_NEW_LIMIT: Final = re.compile(r"(o\d|gpt-([5-9]|\d\d)|codex)")
_CHAT: Final = "/chat/completions"
_ONLY_RESPONSES: Final = re.compile(r"-pro\b|codex|deep-research")
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
# These models cache up to a mark, else whole questions;
# earlier ones cache any common start.
_BY_MARKS: Final = re.compile(r"gpt-(5\.[6-9]|5\.\d\d|[6-9]|\d\d)")
_MOST_NAMES: Final = 8
_LIST_SECONDS: Final = 5.0
_CACHE: Final = "prompt_cache"  # all parameters of the cache contain it
_MARK: Final = {"type": "text", "prompt_cache_breakpoint": {"mode": "explicit"}}


class OpenAIModel(SdkModel):
    """Adapter to one model of an OpenAI-compatible server."""

    def __init__(
        self, spec: ModelSpec, timeout: float, *, most_in_flight: int | None = None
    ) -> None:
        import openai  # takes seconds, so only when it is needed

        super().__init__(openai, spec, timeout)
        self.most_in_flight = most_in_flight
        new_limit = spec.provider.name in ("openai", "azure") and _NEW_LIMIT.match(
            spec.model_id
        )
        # The likelier name first
        self._limits = _LIMITS[::-1] if new_limit else _LIMITS
        self._caches = spec.provider.caches_from(spec) is not None
        if spec.provider.name == "openai" and _ONLY_RESPONSES.search(spec.model_id):
            self._left_out = frozenset({"chat"})

    def _connect(self, options: dict[str, Any]) -> Any:
        return self.sdk.AsyncOpenAI(api_key=self._key or NO_KEY, **options)

    async def ask(self, question: Question) -> Answer:
        try:
            with self.translated(tools=bool(question.tools)) as usages:
                return self._answer_in(await self._send(question), question, usages)
        except ModelError as error:
            if error.problem.startswith("404 ") and (
                names := await self._names_there()
            ):
                hint = f"{error.hint}. It has {first_few(names, _MOST_NAMES)}"
                raise ModelError(error.problem, hint, fatal=True) from None
            raise

    async def _names_there(self) -> list[str]:
        """The models of the server, if it lists them."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                reply = await self.client.get("/models", cast_to=object)
        except (self.sdk.APIError, ModelError, OSError, ValueError):
            return []
        models = dicts_in(reply.get("data")) if isinstance(reply, dict) else []
        return [
            one_line(clean(str(model.get("id")), self.secrets), 60) for model in models
        ]

    def _refused_in(self, message: str, question: Question) -> str:
        # Some take tools, or all questions, only there
        if openai_responses.PATH in message:
            return "tools in chat" if question.tools else "chat"
        if any(limit in message for limit in self._limits):
            return "limit"
        if _CACHE in message:
            return "cache"
        if question.steps and _THOUGHTS.search(message):
            return "lack of thoughts" if _MISSING.search(message) else "thoughts"
        return "schema" if refuses_schema(message) else ""

    def _answer_in(self, reply: Any, question: Question, usages: list[Usage]) -> Answer:
        if isinstance(reply, dict) and (
            reply.get("object") == "response" or "output" in reply
        ):
            return self._response_in(reply, question, usages)
        usages.append(
            usage := usage_of(reply.get("usage") if isinstance(reply, dict) else None)
        )
        if not (isinstance(reply, dict) and reply.get("choices")):
            raise not_a_reply(self.spec, reply)
        choice = reply["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        text = _text_of(message.get("content")) or refusal or ""
        reason = "refusal" if refusal else choice.get("finish_reason")
        turn = _turn(message, question) if question.tools else None
        return answer_of(text, usage, reason, STOPS, turn)

    def _response_in(
        self, reply: dict[str, Any], question: Question, usages: list[Usage]
    ) -> Answer:
        usages.append(usage := openai_responses.usage_in(reply))
        if error := openai_responses.failure_in(reply):
            raise ModelError(
                f"the server failed: {clean(error, self.secrets)}", transient=True
            )
        if not isinstance(reply.get("output"), list):
            raise not_a_reply(self.spec)
        return openai_responses.answer_in(reply, usage, question)

    def _request(self, question: Question, left_out: frozenset[str]) -> Request:
        if "schema" in left_out:
            question = replace(question, schema=None)
        cache = {} if "cache" in left_out else self._cache_key(question)
        if "chat" in left_out or ("tools in chat" in left_out and question.tools):
            body = openai_responses.request_for(question, self.spec)
            return openai_responses.PATH, {**body, **cache}
        return _CHAT, self._body(question, cache, left_out)

    def _body(
        self, question: Question, cache: dict[str, Any], left_out: frozenset[str]
    ) -> dict[str, Any]:
        roles = [("system", question.system), *question.messages]
        body: dict[str, Any] = {
            "model": self.spec.model_id,
            "messages": [{"role": role, "content": text} for role, text in roles],
            self._limits["limit" in left_out]: question.max_output,
            **self.extra(question),
            **cache,
        }
        if (
            cache
            and "system" in question.shared
            and _BY_MARKS.match(self.spec.model_id)
        ):
            body["messages"][0]["content"] = [{**_MARK, "text": question.system}]
            # Else the question is cached, at a higher price
            if question.shared == ("system",):
                body["prompt_cache_options"] = {"mode": "explicit"}
        for step in question.steps:
            body["messages"] += [_message(step, left_out), *map(_result, step.results)]
            body["messages"] += (
                [{"role": "user", "content": step.answer}] if step.answer else []
            )
        if question.tools:
            body["tools"] = list(map(_function, question.tools))
        if question.schema:
            form = {
                "name": "reply",
                "strict": True,
                "schema": json.loads(question.schema),
            }
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self.spec.effort:
            body["reasoning_effort"] = self.spec.effort
        return body

    def extra(self, question: Question) -> dict[str, Any]:  # noqa: ARG002
        """More parameters, for adapters that know their server."""
        return {}

    def _cache_key(self, question: Question) -> dict[str, Any]:
        """Has OpenAI send questions that start alike to a machine
        that has their start cached.

        A server that only looks like OpenAI's may refuse it.
        """
        if not (self._caches and question.shared):
            return {}
        start = [question.system, *(repr(tool) for tool in question.tools)]
        if "system" not in question.shared or "steps" in question.shared:
            start += [text for _, text in question.messages]
        return {"prompt_cache_key": digest(*start)[:32]}


def _message(step: Step, left_out: frozenset[str]) -> dict[str, Any]:
    """A turn as it came, with its thinking; else made of text and calls."""
    message: dict[str, Any] = loaded(step, dict) or {}
    ids = [call.id for call in step.calls]
    if not message or ids != [
        call.get("id") for call in message.get("tool_calls") or ()
    ]:
        calls = list(map(_tool_call, step.calls))
        message = {
            "role": "assistant",
            "content": step.text or None,
            "tool_calls": calls,
        }
    if not step.calls:
        message.pop("tool_calls", None)  # no server takes an empty list
    if "thoughts" in left_out:
        return {
            key: value for key, value in message.items() if not _THOUGHTS.match(key)
        }
    return {_THINKING[0]: "", **message} if "lack of thoughts" in left_out else message


def _function(tool: Tool) -> dict[str, Any]:
    form = {
        "name": tool.name,
        "description": tool.description,
        "parameters": json.loads(tool.schema),
    }
    return {"type": "function", "function": form}


def _result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.call, "content": result.text}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": name_of(call), "arguments": object_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _turn(message: dict[str, Any], question: Question) -> ToolTurn:
    """Calls, thinking, and the message as it must go back."""
    tool_calls = message.get("tool_calls")
    requested = dicts_in(tool_calls)
    functions = [
        function if isinstance(function, dict) else {}
        for function in (call.get("function") for call in requested)
    ]
    calls = calls_from(
        (
            (call.get("id"), function.get("name"), function.get("arguments"))
            for call, function in zip(requested, functions, strict=True)
        ),
        question.steps,
    )
    # Beside its function, a call may have what its server wants back,
    # such as a signature.
    forms = [
        {**raw, **_tool_call(call)} for raw, call in zip(requested, calls, strict=True)
    ]
    thoughts = {
        key: value
        for key, value in message.items()
        if _THOUGHTS.match(key) and value is not None
    }
    content = message.get("content")
    turn = {"role": "assistant", "content": content, **thoughts, "tool_calls": forms}
    texts = [thoughts[key] for key in _THINKING if isinstance(thoughts.get(key), str)]
    thinking = next(iter(texts), _text_of(content, "thinking"))
    return ToolTurn(tuple(calls), thinking, dumped(turn))


def _text_of(content: Any, kind: str = "text") -> Any:
    """The text of a message; a few servers send it in parts, with thinking."""
    if not isinstance(content, list):
        return content if kind == "text" else ""
    parts = [
        part for part in content if isinstance(part, dict) and part.get("type") == kind
    ]
    return "".join(_text_of(part.get(kind)) or "" for part in parts)


def usage_of(usage: object) -> Usage:
    """The usage of a reply, which may be anything; Usage keeps only counts."""
    counts = usage if isinstance(usage, dict) else {}
    prompt = whole_number(counts.get("prompt_tokens"))
    completion = whole_number(counts.get("completion_tokens"))
    total = whole_number(counts.get("total_tokens"))
    if prompt is not None and completion is not None and total is not None:
        # Some servers charge for thinking tokens, and count them only in the total.
        completion = max(completion, total - prompt)
    details = counts.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached, written = details.get("cached_tokens"), details.get("cache_write_tokens")
    return Usage(
        prompt, completion, 0 if usage and cached is None else cached, written or 0
    )
