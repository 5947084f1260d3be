"""The turns that led to an answer.

A trace that a skill is learned from and the transcript of an agent's answer are made of the
same turns, whatever format they came in.
"""

from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Literal, get_args

TurnKind = Literal["system", "user", "assistant", "thinking", "call", "result"]

_MOST: Final = 2**53


@dataclass(frozen=True)
class Turn:
    """One message, thought, tool call or tool result; a result follows its call."""

    kind: TurnKind
    text: str
    tool: str = ""  # the tool's name, for a call or a result
    failed: bool = False  # a result that is an error, or a nonzero exit status
    reply: int = 0  # the number of the model's reply that it is part of or follows; 0 is before any
    seconds: float | None = None  # of a result, or of the reply at its first turn
    input_tokens: int | None = None  # of the reply, at its first turn; so the next two
    output_tokens: int | None = None
    cost: float | None = None  # in USD

    def to_json(self) -> dict[str, Any]:
        """Without what has its default, as most of it has."""
        data = {name: value for name, value in vars(self).items() if value != _DEFAULTS.get(name)}
        return {"kind": self.kind, "text": self.text, **data}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Turn":
        """ValueError or KeyError if this is not a turn."""
        kind = data["kind"]
        if kind not in get_args(TurnKind):
            raise ValueError(f"unknown kind of turn {kind!r}")
        return cls(
            kind,
            str(data["text"]),
            str(data.get("tool", "")),
            bool(data.get("failed", False)),
            int(data.get("reply", 0)),
            _number(data.get("seconds")),
            _whole(data.get("input_tokens")),
            _whole(data.get("output_tokens")),
            _number(data.get("cost")),
        )


_DEFAULTS: Final = {
    field.name: field.default for field in fields(Turn) if field.default is not MISSING
}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and _number(value) is not None else None


Transcript = tuple[Turn, ...]
