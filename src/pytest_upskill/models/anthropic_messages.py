"""Claude, or any server that speaks the Messages protocol, through the official SDK."""

import json
from collections.abc import Collection
from typing import Any, Final

from .._util.json_forms import whole_number
from ..trials.answer import Answer, Usage
from ..trials.transcript import Step, ToolCall
from ..trials.trial import Question, Shared
from .model import ModelSpec
from .sdk import NO_KEY, Request, SdkModel, answer_of
from .sdk_errors import not_a_reply, refuses_schema
from .tool_turns import (
    ToolTurn,
    calls_from,
    dicts_in,
    dumped,
    loaded,
    name_of,
    object_of,
)

STOPS: Final = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "tool_use": "tools",
}
MESSAGES_PATH: Final = "/v1/messages"
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel(SdkModel):
    """Adapter to one Claude model."""

    def __init__(self, spec: ModelSpec, timeout: float) -> None:
        import anthropic  # takes seconds, so only when it is needed

        super().__init__(anthropic, spec, timeout)

    def _connect(self, options: dict[str, Any]) -> Any:
        is_token = self._variable == "ANTHROPIC_AUTH_TOKEN"
        return self.sdk.AsyncAnthropic(
            api_key=None if is_token else self._key or NO_KEY,
            auth_token=self._key if is_token else None,
            **options,
        )

    async def ask(self, question: Question) -> Answer:
        with self.translated(tools=bool(question.tools)) as usages:
            return self._answer_in(await self._send(question), question, usages)

    def _answer_in(self, reply: Any, question: Question, usages: list[Usage]) -> Answer:
        usages.append(
            usage := usage_of(reply.get("usage") if isinstance(reply, dict) else None)
        )
        if not (isinstance(reply, dict) and isinstance(reply.get("content"), list)):
            raise not_a_reply(self.spec, reply)
        blocks = reply["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        turn = _turn(blocks, question) if question.tools else None
        return answer_of(text, usage, reply.get("stop_reason"), STOPS, turn)

    def _request(self, question: Question, left_out: frozenset[str]) -> Request:
        body: dict[str, Any] = {
            "model": self.spec.model_id,
            "max_tokens": question.max_output,
            "system": question.system,
            "messages": _messages(question),
        }
        config: dict[str, Any] = {}
        if self.spec.effort:
            config["effort"] = self.spec.effort
        if question.schema and "schema" not in left_out:
            config["format"] = {
                "type": "json_schema",
                "schema": json.loads(question.schema),
            }
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
        if question.shared and "cache" not in left_out:
            _mark(body, question.shared)
        return MESSAGES_PATH, body

    def _refused_in(self, message: str, question: Question) -> str:  # noqa: ARG002
        if "cache_control" in message:
            return "cache"
        return "schema" if refuses_schema(message) else ""


def _messages(question: Question) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
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
        messages.append({"role": "assistant", "content": _blocks(step)})
        messages.append({"role": "user", "content": step.answer or results})
    return messages


def _blocks(step: Step) -> list[dict[str, Any]]:
    """A turn as it came, so that thinking keeps its signatures;
    else made of text and calls.
    """
    blocks = dicts_in(loaded(step, list))
    ids = [call.id for call in step.calls]
    if blocks and ids == [block.get("id") for block in _of_type(blocks, "tool_use")]:
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


def _mark(body: dict[str, Any], shared: Collection[Shared]) -> None:
    """Have the server cache what other questions repeat: tools and system text,
    messages, steps.

    It looks for a cached prefix only a few blocks before a mark, and a turn may have
    many calls: so the last message of the turn before is marked, too.
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


def _turn(content: list[Any], question: Question) -> ToolTurn:
    """Calls, thinking, and the blocks as they must go back;
    no server takes a blank text.
    """
    blocks = [block for block in dicts_in(content) if not _is_blank(block)]
    uses = _of_type(blocks, "tool_use")
    calls = calls_from(
        ((use.get("id"), use.get("name"), use.get("input")) for use in uses),
        question.steps,
    )
    for use, call in zip(uses, calls, strict=True):
        use.update(_tool_use(call))
    thoughts = [block.get("thinking") for block in _of_type(blocks, "thinking")]
    thinking = "\n\n".join(thought for thought in thoughts if isinstance(thought, str))
    return ToolTurn(tuple(calls), thinking, dumped(blocks))


def _of_type(blocks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [block for block in blocks if block.get("type") == kind]


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def usage_of(usage: object) -> Usage:
    """The usage of a reply, which may be anything; Usage keeps only counts.

    Anthropic leaves cache reads and writes out of input_tokens; add them.
    """
    counts = usage if isinstance(usage, dict) else {}

    def count(name: str, default: int | None = None) -> int | None:
        value = counts.get(name)
        return default if value is None else whole_number(value)

    fresh = count("input_tokens")
    cached = count("cache_read_input_tokens", 0 if usage else None)
    written = count("cache_creation_input_tokens", 0)
    parts = [part for part in (fresh, cached, written) if part is not None]
    total = sum(parts) if len(parts) == 3 else None
    creation = counts.get("cache_creation")
    hour = (
        creation.get("ephemeral_1h_input_tokens") if isinstance(creation, dict) else 0
    )
    return Usage(
        total, count("output_tokens"), cached, written, hour=whole_number(hour) or 0
    )
