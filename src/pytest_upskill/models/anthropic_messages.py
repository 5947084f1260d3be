"""Claude, or any server that speaks the Messages protocol, through the official SDK."""

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .._util.texts import digest
from ..trials.answer import Answer, Usage, whole_number
from ..trials.tools import Step, ToolCall
from ..trials.trial import Question
from .port import ModelSpec
from .sdk import (
    NO_KEY,
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
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """Adapter to one Claude model."""

    most_in_flight: Final = None

    def __init__(self, spec: ModelSpec, timeout: float) -> None:
        import anthropic  # takes seconds, so only when it is needed

        self._sdk = anthropic
        self._spec = spec
        variable, self._key = spec.provider.key_in(os.environ) or ("", "")
        is_token = variable == "ANTHROPIC_AUTH_TOKEN"
        self._secrets = secrets_of(spec, self._key)
        self._takes_schemas = True
        # Another server may refuse the marks; with a proxy of Anthropic we only know once it does.
        self._takes_marks = spec.provider.name == "anthropic"
        self._client = anthropic.AsyncAnthropic(
            api_key=None if is_token else self._key or NO_KEY,
            auth_token=self._key if is_token else None,
            **client_options(anthropic, spec, timeout),
        )
        keep_to_its_provider(self._client, anthropic, spec)

    async def ask(self, question: Question) -> Answer:
        tools = bool(question.tools)
        with translated_errors(self._sdk, self._spec, self._secrets, tools=tools) as paid:
            message = await self._create(question)
            # The SDK passes on anything: plain text, or an object without the usual fields.
            paid.append(usage := usage_of(message))
            if not isinstance(getattr(message, "content", None), list):
                raise not_a_reply(self._spec, message)
            text = "".join(block.text for block in message.content if block.type == "text")
            stop = stop_word(message.stop_reason, STOPS)
            turn = _turn(message, question) if tools else None
            return answer_of(text, usage, stop, turn)

    async def _create(self, question: Question) -> "Message":
        """If a server refuses the schema or the marks of its cache, ask without, now and later."""
        marks = bool(question.tools) and self._takes_marks
        schemas = self._takes_schemas
        try:
            return await self._send(question, marks=marks)
        except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError):
            # Servers say it in many words. If that was not why, the next call fails as well.
            if marks:
                message = await self._send(question, marks=False)
                self._takes_marks = False
                return message
            if not (question.schema and schemas):
                raise
            message = await self._send(replace(question, schema=None), marks=False)
            self._takes_schemas = False
            return message

    async def _send(self, question: Question, *, marks: bool) -> "Message":
        more: dict[str, Any] = {}
        if question.schema and self._takes_schemas:
            form = {"type": "json_schema", "schema": json.loads(question.schema)}
            more["output_config"] = {"format": form}
        body: dict[str, Any] = {"system": question.system, "messages": _messages(question)}
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
            _mark(body)
        message: Message = await self._client.messages.create(
            model=self._spec.model_id, max_tokens=question.max_output, **body, **more
        )
        return message

    @property
    def address(self) -> str:
        return self._spec.address

    @property
    def upstream(self) -> Upstream:
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


def _mark(body: dict[str, Any]) -> None:
    """Have the server cache what the next turn sends again: tools and system text, then all.

    It looks for what it has cached only a few blocks before a mark, and a turn may have many
    calls: so the message that the turn before ended with is marked, too.
    """
    if body["system"].strip():
        body["system"] = [{"type": "text", "text": body["system"], **_CACHED}]
    else:
        body["tools"][-1] |= _CACHED
    for message in body["messages"][-1:-4:-2]:
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
    return Usage(asked, count("output_tokens"), cached, written)
