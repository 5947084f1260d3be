"""Claude, or any server that speaks the Messages protocol, through the official SDK."""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .._util.texts import digest
from ..trials.answer import Answer, Usage
from ..trials.number_types import whole_number
from ..trials.tools import Step, ToolCall
from ..trials.trial import Question, Shared
from .batching import Batching
from .port import ModelSpec
from .sdk import (
    NO_KEY,
    OF_SCHEMA,
    Upstream,
    answer_of,
    client_options,
    keep_to_its_provider,
    not_a_reply,
    secrets_of,
    stop_word,
    translated_errors,
)
from .tool_turns import ToolTurn, calls_from, dumped, loaded, name_of, object_of

if TYPE_CHECKING:
    from anthropic.types import Message

STOPS: Final = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "tool_use": "tools",
}
_MESSAGES: Final = "/v1/messages"
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """Adapter to one Claude model."""

    most_in_flight: Final = None

    def __init__(self, spec: ModelSpec, timeout: float) -> None:
        import anthropic  # takes seconds, so only when it is needed

        self._sdk = anthropic
        self._spec = spec
        self._variable, self._key = spec.provider.key_in(os.environ) or ("", "")
        self._secrets = secrets_of(spec, self._key)
        self._takes_schemas = True
        self._takes_marks = True  # a proxy may refuse them
        self._client = self._connect(client_options(anthropic, spec, timeout))
        keep_to_its_provider(self._client, anthropic, spec)

    def _connect(self, options: dict[str, Any]) -> Any:
        is_token = self._variable == "ANTHROPIC_AUTH_TOKEN"
        return self._sdk.AsyncAnthropic(
            api_key=None if is_token else self._key or NO_KEY,
            auth_token=self._key if is_token else None,
            **options,
        )

    async def ask(self, question: Question) -> Answer:
        tools = bool(question.tools)
        with translated_errors(self._sdk, self._spec, self._secrets, tools=tools) as paid:
            return self._answer_in(await self._create(question), question, paid)

    def _answer_in(self, message: "Message", question: Question, paid: list[Usage]) -> Answer:
        # The SDK passes on anything: plain text, or an object without the usual fields.
        paid.append(usage := usage_of(message))
        if not isinstance(getattr(message, "content", None), list):
            raise not_a_reply(self._spec, message)
        text = "".join(block.text for block in message.content if block.type == "text")
        stop = stop_word(message.stop_reason, STOPS)
        turn = _turn(message, question) if question.tools else None
        return answer_of(text, usage, stop, turn)

    async def _create(self, question: Question) -> "Message":
        """If a server refuses the schema or the marks of its cache, ask without, now and later."""
        marks = bool(question.shared) and self._takes_marks
        schema = question.schema if self._takes_schemas else None
        refusals = (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError)
        try:
            return await self._send(question, marks=marks)
        except refusals:
            # Servers say it in many words. If that was not why, the next calls fail as well.
            for marked, form in _with_less(schema, marks=marks):
                with suppress(*refusals):
                    message = await self._send(replace(question, schema=form), marks=marked)
                    self._takes_marks &= marked or not marks
                    self._takes_schemas &= form == schema
                    return message
            raise

    async def _send(self, question: Question, *, marks: bool) -> "Message":
        message: Message = await self._client.messages.create(**self._body(question, marks=marks))
        return message

    def _body(self, question: Question, *, marks: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._spec.model_id,
            "max_tokens": question.max_output,
            "system": question.system,
            "messages": _messages(question),
        }
        config: dict[str, Any] = {}
        if self._spec.effort:
            config["effort"] = self._spec.effort
        if question.schema and self._takes_schemas:
            config["format"] = {"type": "json_schema", "schema": json.loads(question.schema)}
        if config:
            body["output_config"] = config
        if question.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": json.loads(tool.schema),
                }
                for tool in question.tools
            ]
        if marks:
            _mark(body, question.shared)
        return body

    def batches(self) -> Batching:
        """Its batches: they ask the very same, at half the price."""
        from .anthropic_batches import AnthropicBatches

        def call_of(question: Question) -> tuple[str, dict[str, Any]]:
            marks = bool(question.shared) and self._takes_marks
            return _MESSAGES, self._body(question, marks=marks)

        ways = (call_of, self._read, self._adapts)
        return AnthropicBatches(self._client, self._sdk, self._spec, self._secrets, *ways)

    def _read(self, reply: Any, question: Question) -> Answer:
        """The answer in a reply that did not come through the client."""
        from anthropic.types import Message

        with translated_errors(self._sdk, self._spec, self._secrets) as paid:
            message = Message.construct(**reply) if isinstance(reply, dict) else reply
            return self._answer_in(message, question, paid)

    def _adapts(self, question: Question, said: str) -> bool:
        """Whether to ask again: without what an error says that the server refuses."""
        if self._takes_marks and "cache_control" in said:
            self._takes_marks = False
            return True
        refused = bool(question.schema and self._takes_schemas and OF_SCHEMA.search(said))
        self._takes_schemas &= not refused
        return refused

    @property
    def address(self) -> str:
        return self._spec.address

    @property
    def upstream(self) -> Upstream | None:
        return Upstream.of(self._client, self._spec, self._secrets)

    @property
    def endpoint(self) -> str:
        return digest(self._spec.base_url or "", self._key)

    async def close(self) -> None:
        await self._client.close()


def _messages(question: Question) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [
        {"role": role, "content": text} for role, text in question.messages
    ]
    for step in question.steps:
        results: list[dict[str, Any]] = []
        for result in step.results:
            # An error must say something.
            block = {"type": "tool_result", "tool_use_id": result.call}
            results.append({**block, "content": result.text or "(nothing)"})
            if result.failed:
                results[-1]["is_error"] = True
        said.append({"role": "assistant", "content": _blocks(step)})
        said.append({"role": "user", "content": results})
    return said


def _blocks(step: Step) -> list[dict[str, Any]]:
    """A turn as it came, so that thinking keeps its signatures; else made of text and calls."""
    blocks = [one for one in loaded(step, list) or () if isinstance(one, dict)]
    ids = [call.id for call in step.calls]
    if blocks and ids == [one.get("id") for one in blocks if one.get("type") == "tool_use"]:
        return blocks
    text = [{"type": "text", "text": step.text}] if step.text.strip() else []
    return [*text, *map(_tool_use, step.calls)]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": name_of(call),
        "input": object_of(call.arguments),
    }


def _with_less(schema: str | None, *, marks: bool) -> Iterator[tuple[bool, str | None]]:
    """What else to try: without marks, without the schema, without both."""
    if marks:
        yield False, schema
    if schema:
        yield marks, None
    if marks and schema:
        yield False, None


def _mark(body: dict[str, Any], shared: Collection[Shared]) -> None:
    """Have the server cache what others send again: tools and system text, messages, steps.

    It looks for what it has cached only a few blocks before a mark, and a turn may have many
    calls: so the message that the turn before ended with is marked, too.
    """
    messages = body["messages"]
    if "system" in shared:
        if body["system"].strip():
            body["system"] = [{"type": "text", "text": body["system"], **_CACHED}]
        elif body.get("tools"):
            body["tools"][-1] |= _CACHED
    ends = messages[-1:-4:-2] if "steps" in shared else messages[-1:]
    for message in ends if {"steps", "messages"} & set(shared) else ():
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1] |= _CACHED


def _turn(message: "Message", question: Question) -> ToolTurn:
    """Calls, thinking, and the blocks as they must go back; no server takes a blank text."""
    content = message.to_dict(warnings=False)["content"]
    assert isinstance(content, list)
    blocks = [one for one in content if isinstance(one, dict) and not _is_blank(one)]
    uses = [one for one in blocks if one.get("type") == "tool_use"]
    found = [(one.get("id"), one.get("name"), one.get("input")) for one in uses]
    calls = calls_from(found, question.steps)
    for block, call in zip(uses, calls, strict=True):
        block |= _tool_use(call)
    thoughts = [one.get("thinking") for one in blocks if one.get("type") == "thinking"]
    thinking = "\n\n".join(one for one in thoughts if isinstance(one, str))
    return ToolTurn(tuple(calls), thinking, dumped(blocks))


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def usage_of(message: "Message") -> Usage:
    """Anthropic leaves cache reads and writes out of input_tokens; add them.

    The SDK passes on anything in place of numbers, and some compatible servers send no usage.
    """

    usage = getattr(message, "usage", None)

    def count(name: str, missing: int | None = None) -> int | None:
        value = getattr(usage, name, None)
        return missing if value is None else whole_number(value)

    parts = [
        count("input_tokens"),
        cached := count("cache_read_input_tokens", 0 if usage else None),
        written := count("cache_creation_input_tokens", 0),
    ]
    known = [part for part in parts if part is not None]
    asked = sum(known) if len(known) == len(parts) else None
    kinds, name = getattr(usage, "cache_creation", None), "ephemeral_1h_input_tokens"
    found = kinds.get(name) if isinstance(kinds, dict) else getattr(kinds, name, None)
    hour = whole_number(found) or 0
    return Usage(asked, count("output_tokens"), cached, written, hour=hour)
