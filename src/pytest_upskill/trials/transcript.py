"""The turns that led to an answer.

A trace that a skill is learned from and the transcript of an agent's answer are made of the
same turns, whatever format they came in.
"""

from dataclasses import dataclass
from typing import Literal

from .number_types import Amount, Flag, Whole

TurnKind = Literal["system", "user", "assistant", "thinking", "call", "result"]


@dataclass(frozen=True)
class Turn:
    """One message, thought, tool call or tool result; a result follows its call."""

    kind: TurnKind
    text: str
    tool: str = ""  # the tool's name, for a call or a result
    failed: Flag = False  # a result that is an error, or a nonzero exit status
    reply: Whole = 0  # number of the model's reply that it is part of or follows; 0: before any
    seconds: Amount | None = None  # of a result, or of the reply at its first turn
    input_tokens: Whole | None = None  # of the reply, at its first turn; so the next two
    output_tokens: Whole | None = None
    cost: Amount | None = None  # in USD


Transcript = tuple[Turn, ...]
