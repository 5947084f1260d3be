"""Tools that a model may call, its calls, and what came of them."""

from dataclasses import dataclass, replace

from .._util.keys import without_keys


@dataclass(frozen=True)
class Tool:
    """A tool as a model is offered it."""

    name: str
    description: str
    schema: str  # JSON Schema of its arguments

    def without_keys(self) -> "Tool":
        return Tool(self.name, without_keys(self.description), without_keys(self.schema))


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for."""

    id: str
    name: str
    arguments: str  # JSON as the model wrote it, so perhaps broken

    def without_keys(self) -> "ToolCall":
        name, arguments = without_keys(self.name), without_keys(self.arguments)
        return ToolCall(self.id, name, arguments)


@dataclass(frozen=True)
class ToolResult:
    """What a model is told of a call."""

    call: str  # its id
    text: str
    failed: bool = False

    def without_keys(self) -> "ToolResult":
        return replace(self, text=without_keys(self.text))


@dataclass(frozen=True)
class Step:
    """A turn of a model that called tools, and their results; each call has one, in order."""

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    raw: str = ""  # the turn in the provider's own form, as JSON: thinking must go back as it came

    def without_keys(self) -> "Step":
        """As a whole: calls and ``raw`` may be a script's, not only a server's own words."""
        return Step(
            without_keys(self.text),
            tuple(call.without_keys() for call in self.calls),
            tuple(result.without_keys() for result in self.results),
            without_keys(self.raw),
        )
