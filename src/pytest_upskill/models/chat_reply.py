"""A reply of Chat Completions with attributes, as far as they are read.

The SDK's own classes take as long to make as all the rest of a call's reply, and check nothing.
"""

from typing import Any


class Part:
    """An object of a reply; None where it has no such key."""

    message: Any
    prompt_tokens_details: Any

    def __init__(self, data: dict[str, Any]) -> None:
        vars(self).update(data)

    def __getattr__(self, _: str) -> None:
        return None


def completion_of(reply: Any) -> Any:
    """The reply, its usage and its first choice; what is no object stays what it is."""
    if not isinstance(reply, dict):
        return reply
    usage, choices = _part(reply.get("usage")), reply.get("choices")
    if isinstance(usage, Part):
        usage.prompt_tokens_details = _part(usage.prompt_tokens_details)
    if isinstance(choices, list):
        choices = [_part(choice) for choice in choices[:1]]
        for choice in choices:
            if isinstance(choice, Part):
                choice.message = _part(choice.message)
    return Part({**reply, "usage": usage, "choices": choices})


def _part(value: Any) -> Any:
    return Part(value) if isinstance(value, dict) else value
