"""Tools that a model may call, its calls, and what came of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """A tool as a model is offered it."""

    name: str
    description: str
    schema: str  # JSON Schema of its arguments


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for."""

    id: str
    name: str
    arguments: str  # JSON as the model wrote it, so perhaps broken


@dataclass(frozen=True)
class ToolResult:
    """What a model is told of a call."""

    call: str  # its id
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Step:
    """A turn of a model that called tools, and their results; each call has one, in order."""

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    raw: str = ""  # the turn in the provider's own form, as JSON: thinking must go back as it came
