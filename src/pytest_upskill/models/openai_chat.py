"""OpenAI, or any server that speaks Chat Completions, through the official SDK."""

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from .._util.texts import digest
from ..errors import ModelError
from ..trials.answer import Answer, Usage, whole_number
from ..trials.tools import Step, Tool, ToolCall, ToolResult
from ..trials.trial import Question
from . import openai_responses
from .port import ModelSpec
from .sdk import (
    NO_KEY,
    Upstream,
    answer_of,
    clean,
    client_options,
    error_text,
    keep_to_its_provider,
    not_a_reply,
    secrets_of,
    stop_word,
    translated_errors,
)
from .tool_turns import ToolTurn, calls_from, dumped, loaded, name_of, object_text

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

STOPS: Final = {
    "stop": "end",
    "length": "length",
    "content_filter": "refusal",
    "tool_calls": "tools",
}
# What servers call the thoughts of a model. Most want them back beside its calls, some refuse
# them, and some miss them in turns that have none.
_THINKING: Final = ("reasoning_content", "reasoning")
_THOUGHTS: Final = re.compile(r"(reasoning|thinking)(?!_effort)")
_MISSING: Final = re.compile(r"missing|pass\w* back", re.IGNORECASE)
# Reasoning models, and GPT-5 and later, take only the new name of the limit.
_NEW_LIMIT: Final = re.compile(r"(o\d|gpt-([5-9]|\d\d)|codex)")
_LIMITS: Final = ("max_tokens", "max_completion_tokens")


class OpenAIModel:
    """Adapter to one model of an OpenAI-compatible server."""

    def __init__(
        self, spec: ModelSpec, timeout: float, *, most_in_flight: int | None = None
    ) -> None:
        import openai  # takes seconds, so only when it is needed

        self.most_in_flight = most_in_flight
        self._sdk = openai
        self._spec = spec
        self._key = (spec.provider.key_in(os.environ) or ("", ""))[1]
        new_limit = spec.provider.name == "openai" and _NEW_LIMIT.match(spec.model_id)
        self._limit = _LIMITS[bool(new_limit)]
        self._refused_limits = set[str]()
        self._secrets = secrets_of(spec, self._key)
        self._takes_schemas = True
        self._by_responses = False
        self._thoughts: Literal["as they came", "never", "always"] = "as they came"
        self._client = openai.AsyncOpenAI(
            api_key=self._key or NO_KEY, **client_options(openai, spec, timeout)
        )
        keep_to_its_provider(self._client, openai, spec)

    async def ask(self, question: Question) -> Answer:
        tools = bool(question.tools)
        with translated_errors(self._sdk, self._spec, self._secrets, tools=tools) as paid:
            if tools and self._by_responses:
                return await self._respond(question, paid)
            try:
                completion = await self._create(question)
            except (self._sdk.BadRequestError, self._sdk.NotFoundError) as error:
                if not tools or openai_responses.PATH not in error_text(error, self._secrets):
                    raise
                self._by_responses = True  # the server says that it wants tools there
                return await self._respond(question, paid)
            paid.append(usage := usage_of(completion))
            if not getattr(completion, "choices", None):
                raise not_a_reply(self._spec, completion)
            choice = completion.choices[0]
            text = _text_of(choice.message.content) or choice.message.refusal or ""
            refused = bool(choice.message.refusal)
            stop = "refusal" if refused else stop_word(choice.finish_reason, STOPS)
            turn = _turn(choice.message, question) if tools else None
            return answer_of(text, usage, stop, turn)

    async def _respond(self, question: Question, paid: list[Usage]) -> Answer:
        body = openai_responses.request_for(question, self._spec)
        reply: Any = await self._client.post(openai_responses.PATH, body=body, cast_to=object)
        if not isinstance(reply, dict):
            raise not_a_reply(self._spec, reply)
        paid.append(usage := openai_responses.usage_in(reply))
        if error := openai_responses.failure_in(reply):
            raise ModelError(f"the server failed: {clean(error, self._secrets)}", transient=True)
        if not isinstance(reply.get("output"), list):
            raise not_a_reply(self._spec)
        return openai_responses.answer_in(reply, usage, question)

    async def _create(self, question: Question) -> "ChatCompletion":
        """Servers differ in what they accept: drop what one refuses, now and later."""
        while True:
            limit, schemas, thoughts = self._limit, self._takes_schemas, self._thoughts
            try:
                return await self._send(question)
            except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
                said = error_text(error, self._secrets)
                if limit in said and limit not in self._refused_limits:
                    self._refused_limits.add(limit)
                    self._limit = _LIMITS[limit == _LIMITS[0]]
                elif question.steps and thoughts == "as they came" and _THOUGHTS.search(said):
                    self._thoughts = "always" if _MISSING.search(said) else "never"
                elif question.schema and schemas:
                    # Servers say it in many words. If the schema was not why, this fails as well.
                    completion = await self._create(replace(question, schema=None))
                    self._takes_schemas = False
                    return completion
                else:
                    raise

    async def _send(self, question: Question) -> "ChatCompletion":
        from openai.types.chat import ChatCompletion

        roles = [("system", question.system), *question.messages]
        body: dict[str, Any] = {
            "model": self._spec.model_id,
            "messages": [{"role": role, "content": text} for role, text in roles],
            self._limit: question.max_output,
            **self.extra(question),
        }
        for step in question.steps:
            body["messages"] += [self._message(step), *map(_result, step.results)]
        if question.tools:
            body["tools"] = list(map(_function, question.tools))
        if question.schema and self._takes_schemas:
            form = {"name": "reply", "strict": True, "schema": json.loads(question.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self._spec.effort:
            body["reasoning_effort"] = self._spec.effort
        # Not chat.completions.create: it transforms parameters, which changes none of ours and
        # takes a third of the CPU time of a call.
        return await self._client.post("/chat/completions", body=body, cast_to=ChatCompletion)

    def _message(self, step: Step) -> dict[str, Any]:
        """A turn as it came, with what the model thought; else made of text and calls."""
        message: dict[str, Any] = loaded(step, dict) or {}
        ids = [call.id for call in step.calls]
        if ids != [call.get("id") for call in message.get("tool_calls") or ()]:
            calls = list(map(_tool_call, step.calls))
            message = {"role": "assistant", "content": step.text or None, "tool_calls": calls}
        if self._thoughts == "never":
            return {key: value for key, value in message.items() if not _THOUGHTS.match(key)}
        return {_THINKING[0]: "", **message} if self._thoughts == "always" else message

    @property
    def address(self) -> str:
        return self._spec.address

    @property
    def upstream(self) -> Upstream:
        return Upstream.of(self._client, self._spec, self._secrets)

    def extra(self, question: Question) -> dict[str, Any]:  # noqa: ARG002
        """More parameters, for adapters that know their server."""
        return {}

    @property
    def endpoint(self) -> str:
        return digest(self._spec.base_url or "", self._key)

    async def close(self) -> None:
        await self._client.close()


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


def _turn(message: Any, question: Question) -> ToolTurn:
    """Calls, thinking, and the message as it must go back."""
    said: dict[str, Any] = message.to_dict(warnings=False)
    given = said.get("tool_calls")
    asked = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    found = []
    for one in asked:
        function = one.get("function")
        named = function if isinstance(function, dict) else {}
        found.append((one.get("id"), named.get("name"), named.get("arguments")))
    calls = calls_from(found, question.steps)
    # Beside its function, a call may have what its server wants back, such as a signature.
    forms = [{**one, **_tool_call(call)} for one, call in zip(asked, calls, strict=True)]
    thoughts = {key: said[key] for key in said if _THOUGHTS.match(key) and said[key] is not None}
    turn = {"role": "assistant", "content": said.get("content"), **thoughts, "tool_calls": forms}
    told = [thoughts[key] for key in _THINKING if isinstance(thoughts.get(key), str)]
    thinking = next(iter(told), _text_of(said.get("content"), "thinking"))
    return ToolTurn(tuple(calls), thinking, dumped(turn))


def _text_of(content: Any, kind: str = "text") -> Any:
    """The text of a message, which a few servers send in parts, with what was thought."""
    if not isinstance(content, list):
        return content if kind == "text" else ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == kind]
    return "".join(_text_of(part.get(kind)) or "" for part in parts)


def usage_of(completion: "ChatCompletion") -> Usage:
    """The SDK passes on anything in place of numbers and objects; Usage keeps only counts."""
    usage = getattr(completion, "usage", None)
    asked = whole_number(getattr(usage, "prompt_tokens", None))
    answered = whole_number(getattr(usage, "completion_tokens", None))
    total = whole_number(getattr(usage, "total_tokens", None))
    if asked is not None and answered is not None and total is not None:
        # Some servers charge for what the model thought and leave it out of the answer's tokens.
        answered = max(answered, total - asked)
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None)
    written = getattr(details, "cache_write_tokens", None) or 0
    return Usage(asked, answered, 0 if usage and cached is None else cached, written)
