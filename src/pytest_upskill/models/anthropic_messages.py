"""Claude, or any server that speaks the Messages protocol, through the official SDK."""

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .._util.texts import digest
from ..skills.case import Role
from ..trials.answer import Answer, Usage, whole_number
from ..trials.trial import Question
from .port import ModelSpec
from .rate_limits import heard_quotas
from .sdk import (
    NO_KEY,
    Upstream,
    client_options,
    empty_reply,
    keep_to_its_provider,
    not_a_reply,
    secrets_of,
    stop_word,
    translated_errors,
)

if TYPE_CHECKING:
    from anthropic.types import Message, MessageParam

_STOPS: Final = {"end_turn": "end", "stop_sequence": "end", "max_tokens": "length"}


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
        self._client = anthropic.AsyncAnthropic(
            api_key=None if is_token else self._key or NO_KEY,
            auth_token=self._key if is_token else None,
            **client_options(anthropic, spec, timeout),
        )
        keep_to_its_provider(self._client, anthropic, spec)

    async def ask(self, question: Question) -> Answer:
        with translated_errors(self._sdk, self._spec, self._secrets) as paid:
            message = await self._create(question)
            # The SDK passes on anything: plain text, or an object without the usual fields.
            paid.append(usage := usage_of(message))
            if not isinstance(getattr(message, "content", None), list):
                raise not_a_reply(self._spec, message)
            text = "".join(block.text for block in message.content if block.type == "text")
            stop = stop_word(message.stop_reason, _STOPS)
            if not text.strip() and stop != "refusal":
                raise empty_reply(stop)
            return Answer(text, usage, stop, quotas=heard_quotas())

    async def _create(self, question: Question) -> "Message":
        """If a model refuses the schema, ask without it, now and later."""
        schemas = self._takes_schemas
        try:
            return await self._send(question)
        except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError):
            if not (question.schema and schemas):
                raise
            # Servers say it in many words. If the schema was not why, this fails as well.
            message = await self._send(replace(question, schema=None))
            self._takes_schemas = False
            return message

    async def _send(self, question: Question) -> "Message":
        more: dict[str, Any] = {}
        if question.schema and self._takes_schemas:
            form = {"type": "json_schema", "schema": json.loads(question.schema)}
            more["output_config"] = {"format": form}
        message: Message = await self._client.messages.create(
            model=self._spec.model_id,
            max_tokens=question.max_output,
            system=question.system,
            messages=[_message(role, text) for role, text in question.messages],
            **more,
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


def _message(role: Role, text: str) -> "MessageParam":
    return {"role": "user", "content": text} if role == "user" else {"role": role, "content": text}


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
