"""How the cases of a run stand beside their accepted results, as values.

A feature fills them: see `registry.comparing`. Without it, there are none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..skills.kinds import CASE
from ..trials.subject import CHAT, WithPair
from .comparison import CasePair
from .row import SinceAccepted

StandingKind = Literal[
    "passed", "failed", "better", "accepted as failing", "could be chance", "regressed"
]


@dataclass(frozen=True)
class Standing:
    """How a case ends, and why."""

    kind: StandingKind
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class AcceptedComparison(WithPair):
    """A skill on a model compared with its accepted results."""

    skill: str
    model: str
    agent: str = CHAT
    noun: str = CASE.noun  # what is compared
    standings: Mapping[str, Standing] = field(default_factory=dict)  # by case
    regressed: tuple[CasePair, ...] = ()  # cases shown to be worse, alone or together
    since: SinceAccepted | None = None  # None if no case has both results
    # Why the run fails: cases whose tests fail, and what only all cases can show
    case_reasons: tuple[str, ...] = ()
    group_reasons: tuple[str, ...] = ()
    # Of the other cases: better, new, or worse by what could be chance
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the run fails."""
        return self.case_reasons + self.group_reasons
