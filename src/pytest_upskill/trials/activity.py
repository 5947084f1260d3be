"""What an agent did on the way to its answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from .._util.keys import without_keys
from .number_types import Flag, Whole

# A finding of agents that know no skills, or don't take this one.
UNTOLD: Final = "its model was never told of the skill"
# A finding of agents that open a skill without their model, in trials of triggers.
GIVEN: Final = "the first request had the skill's text: the agent did not leave it to the model"
_LISTS = ("opened", "read", "scripts", "findings")


@dataclass(frozen=True)
class Activity:
    """Counted from what went between the agent and its model, never from the agent's own words."""

    turns: Whole = 0  # replies of the model
    tool_calls: Whole = 0
    activated: Flag | None = None  # whether it opened the skill under test; None without one
    opened: tuple[str, ...] = ()  # names of the skills whose SKILL.md it got to see, in order
    read: tuple[str, ...] = ()  # other files of the tested skill that it saw, relative to it
    scripts: tuple[str, ...] = ()  # files of the tested skill that it ran
    findings: tuple[str, ...] = ()  # what was refused or left out, in words
    agents: tuple[tuple[str, str], ...] = ()  # who did it: names and versions

    @property
    def untold(self) -> bool:
        """Whether there was no way to open the skill under test, as nothing named it."""
        return self.activated is False and UNTOLD in self.findings

    def without_keys(self) -> "Activity":
        lists: Any = {name: tuple(map(without_keys, getattr(self, name))) for name in _LISTS}
        return replace(self, **lists)


def joined_activity(activities: Sequence[Activity | None]) -> Activity | None:
    """Of several answers of one trial; None if no agent gave any of them."""
    known = [one for one in activities if one is not None]
    if not known:
        return None
    lists = {
        name: tuple(dict.fromkeys(word for one in known for word in getattr(one, name)))
        for name in _LISTS
    }
    activated = [one.activated for one in known if one.activated is not None]
    return Activity(
        sum(one.turns for one in known),
        sum(one.tool_calls for one in known),
        any(activated) if activated else None,
        **lists,
        agents=tuple(dict.fromkeys(pair for one in known for pair in one.agents)),
    )
