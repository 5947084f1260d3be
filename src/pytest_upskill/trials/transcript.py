"""What led to an answer: the turns of an agent, what it did in them,
and calls of tools.

A trace that a skill is learned from and the transcript of an agent's answer are made of
the same turns, whatever format they came in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

from .._util.json_forms import Amount, Flag, Items, Whole
from .._util.texts import counted, one_line

# A finding of agents that know no skills, don't take this one, or have no room for it.
UNTOLD: Final = "its model was never told of the skill"
# A finding of agents that open a skill without their model, in trials of triggers.
GIVEN: Final = (
    "the first request had the skill's text: the agent did not leave it to the model"
)
# A finding of agents that did not take a user's command to use a skill.
NOT_INVOKED: Final = "the first request had no text of the skill, though it was invoked"

# How the list of skills in an agent's first request shows a skill to its model.
Sent = Literal["whole", "cut", "name", "not listed"]
# "answer" is what the user of a case said to a question of the agent.
TurnKind = Literal[
    "system", "user", "assistant", "thinking", "call", "result", "answer"
]


@dataclass(frozen=True)
class Turn:
    """One message, thought, tool call or tool result; a result follows its call."""

    kind: TurnKind
    text: str
    tool: str = ""  # the tool's name, for a call or a result
    failed: Flag = False  # a result that is an error, or a nonzero exit status
    # Number of the model's reply that it is part of or follows; 0: before any
    reply: Whole = 0
    seconds: Amount | None = None  # of a result, or of the reply at its first turn
    # Of the reply, at its first turn, or of the user's answer; so the next two.
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    cost: Amount | None = None  # in USD


Transcript = Items[Turn]


@dataclass(frozen=True)
class ListedSkill:
    """An installed skill, and what of its description an agent
    sent in its list of skills.
    """

    name: str
    sent: Sent
    tested: Flag = False


@dataclass(frozen=True)
class CommandCall:
    """A call of a command that a stand-in answered."""

    words: Items[str]  # the command and its arguments
    exit: Whole = 0
    stdin: Whole = 0  # bytes of standard input


@dataclass(frozen=True)
class Activity:
    """What an agent did, counted from its traffic with the model,
    never from its own words.
    """

    turns: Whole = 0  # replies of the model
    tool_calls: Whole = 0
    # Whether it opened a skill under test; None without one
    activated: Flag | None = None
    # Names of the skills whose SKILL.md it got to see, in order
    opened: Items[str] = ()
    read: Items[str] = ()  # other files of tested skills that it saw, relative to them
    scripts: Items[str] = ()  # files of tested skills that it ran
    findings: Items[str] = ()  # what was refused or left out, in words
    agents: Items[tuple[str, str]] = ()  # who did it: names and versions
    # All installed skills, if the first request is known
    listed: Items[ListedSkill] = ()
    # Those that stand-ins answered, in order
    commands: Items[CommandCall] = ()

    @property
    def sent(self) -> tuple[Sent, ...]:
        """How each skill under test was listed; nothing if that is not known."""
        return tuple(skill.sent for skill in self.listed if skill.tested)

    @property
    def untold(self) -> bool:
        """Whether the skill under test could not be opened, since nothing named it."""
        return self.activated is False and set(self.sent) == {"not listed"}

    @property
    def words(self) -> str:
        """``5 turns, 4 tool calls, opened the skill``."""
        words = [counted(self.turns, "turn"), counted(self.tool_calls, "tool call")]
        if self.activated and (len(self.sent) > 1 or len(self.opened) > 1):
            words.append(f"opened {one_line(', '.join(self.opened), 100)}")
        elif self.activated:
            words.append("opened the skill")
        elif self.activated is not None:
            others = one_line(", ".join(self.opened), 100)
            words.append(f"did not open the skill{f', but {others}' if others else ''}")
        return ", ".join(words)


def joined_activity(activities: Sequence[Activity | None]) -> Activity | None:
    """The activity of several answers of a trial; None if no agent gave any."""
    by_agents = [activity for activity in activities if activity is not None]
    if not by_agents:
        return None

    lists: dict[str, Any] = {}
    for name in ("opened", "read", "scripts", "findings", "agents", "listed"):
        each = chain.from_iterable(getattr(activity, name) for activity in by_agents)
        lists[name] = tuple(dict.fromkeys(each))
    calls = chain.from_iterable(activity.commands for activity in by_agents)
    activated = {activity.activated for activity in by_agents} - {None}
    return Activity(
        sum(activity.turns for activity in by_agents),
        sum(activity.tool_calls for activity in by_agents),
        activated=any(activated) if activated else None,
        commands=tuple(calls),
        **lists,
    )


# Tools that a model may call, its calls, and what came of them.


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
    """A turn of a model: it called tools, and each call has a result;
    or it asked its user.
    """

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    # The turn in the provider's own form, as JSON: thinking must go back as it came
    raw: str = ""
    answer: str = ""  # of the user, in place of calls and results
