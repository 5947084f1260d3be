"""The turns that led to an answer.

A trace that a skill is learned from and the transcript of an agent's answer are made of the
same turns, whatever format they came in.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

TurnKind = Literal["user", "assistant", "thinking", "call", "result"]


@dataclass(frozen=True)
class Turn:
    """One message, thought, tool call or tool result; a result follows its call."""

    kind: TurnKind
    text: str
    tool: str = ""  # the tool's name, for a call or a result
    failed: bool = False  # a result that is an error, or a nonzero exit status

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind, "text": self.text}
        if self.tool:
            data["tool"] = self.tool
        if self.failed:
            data["failed"] = True
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Turn":
        """ValueError or KeyError if this is not a turn."""
        kind = data["kind"]
        if kind not in get_args(TurnKind):
            raise ValueError(f"unknown kind of turn {kind!r}")
        tool, failed = str(data.get("tool", "")), bool(data.get("failed", False))
        return cls(kind, str(data["text"]), tool, failed)


Transcript = tuple[Turn, ...]
