"""OpenAI, or any server that speaks Chat Completions, through the official SDK."""

import json
import os
import re
from dataclasses import replace
from typing import Any, Final, Literal

from .._util.texts import digest
from ..errors import ModelError
from ..trials.answer import Answer, Usage
from ..trials.number_types import whole_number
from ..trials.tools import Step, Tool, ToolCall, ToolResult
from ..trials.trial import Question
from . import openai_responses
from .batching import Batching
from .chat_reply import completion_of
from .port import ModelSpec
from .sdk import (
    NO_KEY,
    OF_SCHEMA,
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
_CHAT: Final = "/chat/completions"
_ONLY_RESPONSES: Final = re.compile(r"-pro\b|codex|deep-research")
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
# These models keep what is marked, else all of a question; earlier ones any start of it.
_BY_MARKS: Final = re.compile(r"gpt-(5\.[6-9]|5\.\d\d|[6-9]|\d\d)")
_CACHE: Final = "prompt_cache"  # in the names of all parameters for it
_MARK: Final = {"type": "text", "prompt_cache_breakpoint": {"mode": "explicit"}}


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
        new_limit = spec.provider.name in ("openai", "azure") and _NEW_LIMIT.match(spec.model_id)
        self._limit = _LIMITS[bool(new_limit)]
        self._refused_limits = set[str]()
        self._secrets = secrets_of(spec, self._key)
        self._takes_schemas = True
        self._caches = spec.provider.caches_from(spec) is not None
        # Where a server takes tools, or all that a model is asked, only in Responses.
        self._by_responses = False
        only = spec.provider.name == "openai" and _ONLY_RESPONSES.search(spec.model_id)
        self._only_responses = bool(only)
        self._thoughts: Literal["as they came", "never", "always"] = "as they came"
        self._client = self._connect(client_options(openai, spec, timeout))
        keep_to_its_provider(self._client, openai, spec)

    def _connect(self, options: dict[str, Any]) -> Any:
        return self._sdk.AsyncOpenAI(api_key=self._key or NO_KEY, **options)

    async def ask(self, question: Question) -> Answer:
        tools = bool(question.tools)
        with translated_errors(self._sdk, self._spec, self._secrets, tools=tools) as paid:
            if self._goes_by_responses(question):
                return await self._respond(question, paid)
            try:
                completion = await self._create(question)
            except (self._sdk.BadRequestError, self._sdk.NotFoundError) as error:
                if not self._turns_to_responses(question, error_text(error, self._secrets)):
                    raise
                return await self._respond(question, paid)
            return self._answer_in(completion, question, paid)

    def _goes_by_responses(self, question: Question) -> bool:
        return self._only_responses or (bool(question.tools) and self._by_responses)

    def _turns_to_responses(self, question: Question, said: str) -> bool:
        """Whether an error says that the server wants a question there, as it then gets."""
        if openai_responses.PATH not in said or self._goes_by_responses(question):
            return False
        self._by_responses = True
        self._only_responses = not question.tools
        return True

    def batches(self) -> Batching:
        """Its batches: they ask the very same, at half the price."""
        from .openai_batches import OpenAIBatches

        ways = (self._request, self._read, self._adapts)
        return OpenAIBatches(self._client, self._sdk, self._spec, self._secrets, *ways)

    def _request(self, question: Question) -> tuple[str, dict[str, Any]]:
        kept = self._kept(question)
        if self._goes_by_responses(question):
            body = openai_responses.request_for(question, self._spec)
            return openai_responses.PATH, {**body, **kept}
        return _CHAT, self._body(question, kept)

    def _read(self, reply: Any, question: Question) -> Answer:
        """The answer in a reply that did not come through the client."""
        with translated_errors(self._sdk, self._spec, self._secrets) as paid:
            if isinstance(reply, dict) and reply.get("object") == "response":
                return self._response_in(reply, question, paid)
            return self._answer_in(completion_of(reply), question, paid)

    def _adapts(self, question: Question, said: str) -> bool:
        """Whether to ask again: without what an error says that the server refuses."""
        if self._turns_to_responses(question, said):
            return True
        if self._limit in said and self._limit not in self._refused_limits:
            self._refused_limits.add(self._limit)
            self._limit = _LIMITS[self._limit == _LIMITS[0]]
            return True
        if self._caches and _CACHE in said:
            self._caches = False
            return True
        refused = bool(question.schema and self._takes_schemas and OF_SCHEMA.search(said))
        self._takes_schemas &= not refused
        return refused

    def _answer_in(self, completion: Any, question: Question, paid: list[Usage]) -> Answer:
        paid.append(usage := usage_of(completion))
        if not getattr(completion, "choices", None):
            raise not_a_reply(self._spec, completion)
        choice = completion.choices[0]
        text = _text_of(choice.message.content) or choice.message.refusal or ""
        refused = bool(choice.message.refusal)
        stop = "refusal" if refused else stop_word(choice.finish_reason, STOPS)
        turn = _turn(choice.message, question) if question.tools else None
        return answer_of(text, usage, stop, turn)

    async def _respond(self, question: Question, paid: list[Usage]) -> Answer:
        body = openai_responses.request_for(question, self._spec)
        kept = self._kept(question)
        try:
            reply: Any = await self._post_response({**body, **kept})
        except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as refusal:
            if not kept or _CACHE not in error_text(refusal, self._secrets):
                raise
            self._caches = False
            reply = await self._post_response(body)
        return self._response_in(reply, question, paid)

    def _response_in(self, reply: Any, question: Question, paid: list[Usage]) -> Answer:
        if not isinstance(reply, dict):
            raise not_a_reply(self._spec, reply)
        paid.append(usage := openai_responses.usage_in(reply))
        if error := openai_responses.failure_in(reply):
            raise ModelError(f"the server failed: {clean(error, self._secrets)}", transient=True)
        if not isinstance(reply.get("output"), list):
            raise not_a_reply(self._spec)
        return openai_responses.answer_in(reply, usage, question)

    async def _post_response(self, body: dict[str, Any]) -> Any:
        return await self._client.post(openai_responses.PATH, body=body, cast_to=object)

    async def _create(self, question: Question) -> Any:
        """Servers differ in what they accept: drop what one refuses, now and later."""
        while True:
            limit, schemas, thoughts = self._limit, self._takes_schemas, self._thoughts
            kept = self._kept(question)
            try:
                return await self._send(question, kept)
            except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
                said = error_text(error, self._secrets)
                if limit in said and limit not in self._refused_limits:
                    self._refused_limits.add(limit)
                    self._limit = _LIMITS[limit == _LIMITS[0]]
                elif kept and _CACHE in said:
                    self._caches = False
                elif question.steps and thoughts == "as they came" and _THOUGHTS.search(said):
                    self._thoughts = "always" if _MISSING.search(said) else "never"
                elif kept and openai_responses.PATH not in said:
                    # Some only say that there is a field that they don't know.
                    completion = await self._create(replace(question, shared=()))
                    if self._takes_schemas == schemas:  # else that was why
                        self._caches = False
                    return completion
                elif question.schema and schemas:
                    # Servers say it in many words. If the schema was not why, this fails as well.
                    completion = await self._create(replace(question, schema=None))
                    self._takes_schemas = False
                    return completion
                else:
                    raise

    async def _send(self, question: Question, kept: dict[str, Any]) -> Any:
        # Not chat.completions.create: it transforms parameters, which changes none of ours and
        # takes a third of the CPU time of a call.
        body = self._body(question, kept)
        options = {"idempotency_key": "none"}  # never sent; else the SDK makes one up
        reply = await self._client.post(_CHAT, body=body, cast_to=object, options=options)
        return completion_of(reply)

    def _body(self, question: Question, kept: dict[str, Any]) -> dict[str, Any]:
        roles = [("system", question.system), *question.messages]
        body: dict[str, Any] = {
            "model": self._spec.model_id,
            "messages": [{"role": role, "content": text} for role, text in roles],
            self._limit: question.max_output,
            **self.extra(question),
            **kept,
        }
        if kept and "system" in question.shared and _BY_MARKS.match(self._spec.model_id):
            body["messages"][0]["content"] = [{**_MARK, "text": question.system}]
            if question.shared == ("system",):  # or the question is kept, too, at a higher price
                body["prompt_cache_options"] = {"mode": "explicit"}
        for step in question.steps:
            body["messages"] += [self._message(step), *map(_result, step.results)]
        if question.tools:
            body["tools"] = list(map(_function, question.tools))
        if question.schema and self._takes_schemas:
            form = {"name": "reply", "strict": True, "schema": json.loads(question.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self._spec.effort:
            body["reasoning_effort"] = self._spec.effort
        return body

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

    def _kept(self, question: Question) -> dict[str, Any]:
        """What has OpenAI send questions with the same start to a machine that has it in cache.

        A server that only looks like OpenAI's may refuse it.
        """
        if not (self._caches and question.shared):
            return {}
        start = [question.system, *(repr(tool) for tool in question.tools)]
        if "system" not in question.shared or "steps" in question.shared:
            start += [text for _, text in question.messages]
        return {"prompt_cache_key": digest(*start)[:32]}

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
    said: dict[str, Any] = {**vars(message)}
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


def usage_of(completion: Any) -> Usage:
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
