"""The matrix: what skills do to each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..stats import Lift
from .effects import Effect

ALL = "*"  # in place of a neighbour: all other skills together


@dataclass(frozen=True)
class Neighbour:
    """A skill (``skill``) on its own cases, with another (``other``) installed in both arms."""

    skill: str
    other: str  # or ALL
    effect: Effect  # its lift with the other, less its lift alone
    lift: Lift | None  # with the other installed
    opened: Mapping[str, int]  # by skill: trials with both installed in which it was opened
    opened_first: Mapping[str, int]  # by skill: trials in which it was the first to be opened
    trials: int  # with both installed


@dataclass(frozen=True)
class Matrix:
    """All ordered pairs of the skills of a run, for an agent on a model."""

    model: str  # the label
    skills: tuple[str, ...]
    alone: Mapping[str, Lift]  # the lift of each skill by itself
    pairs: tuple[Neighbour, ...]
    listing_tokens: Mapping[str, int]  # by skill, what its entry costs every request
    not_measured: Mapping[str, str]  # skills without cases for this, and why
    trials: int = 0
    cost: float | None = None
