"""Whether a skill is opened when it should be, and only then: per skill, agent and model."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..stats import Interval
from ..trials.subject import CHAT


@dataclass(frozen=True)
class QueryRate:
    """How often the skill was opened for a query."""

    case: str  # the id of its test
    query: str
    should_trigger: bool
    opened: int  # runs that opened the skill
    runs: int  # that were decided; errored ones are not among them
    errored: int
    instead: Mapping[str, int]  # other skills, by the number of runs that opened one and not ours

    @property
    def rate(self) -> float | None:
        return self.opened / self.runs if self.runs else None


@dataclass(frozen=True)
class Share:
    """A share of queries: a mean over queries of the share of runs, with its interval."""

    rate: float
    interval: Interval
    queries: int
    opened: int  # queries that opened the skill, by the threshold


@dataclass(frozen=True)
class TriggerSummary:
    """What came of the queries of a skill for an agent on a model."""

    skill: str
    model: str  # the label
    recall: Share | None  # of the queries that should open it; None if no such query was decided
    false_alarms: Share | None  # of those that should not
    queries: tuple[QueryRate, ...]
    errored: int  # trials
    not_run: int = 0  # queries without a trial
    cost: float | None = None
    tokens: float | None = None  # of one trial
    agent: str = CHAT
    installed: int = 1  # skills that the agent was told of, this one included
