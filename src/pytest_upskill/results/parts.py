"""Parts of a skill: what each one gains, and what it costs."""

from dataclasses import dataclass

from ..skills.parts import PartKind
from ..stats import Lift
from .effects import Effect
from .losses import MARGIN


@dataclass(frozen=True)
class PartEffect:
    """A part of a skill, and what leaving it out does."""

    name: str  # a heading, the first words of a paragraph, or a path
    kind: PartKind
    line: int  # in SKILL.md; 0 for a file
    tokens: int
    effect: Effect  # of leaving it out: below 0 if it is missed
    could_go: bool = False  # no loss shown, and none that counts is likely


@dataclass(frozen=True)
class Version:
    """A shorter skill, measured on cases that no choice was based on."""

    tokens: int
    lift: Lift | None  # over the baseline
    change: Lift | None  # against the whole skill, adjusted if several were compared
    parts: tuple[str, ...] = ()  # that were left out
    folder: str = ""  # where it was written
    cases: int = 0  # that it was measured on
    cases_needed: int | None = None  # that would tell whether more than the margin is lost


@dataclass(frozen=True)
class Parts:
    """What the parts of a skill earn, for an agent on a model."""

    skill: str
    model: str  # the label
    tokens: int  # of the whole skill
    lift: Lift | None  # of the whole skill
    parts: tuple[PartEffect, ...]
    versions: tuple[Version, ...] = ()  # shorter ones: of --apply, or the curve of distill
    held_out: Lift | None = None  # of the whole skill, on the cases of the versions
    margin: float = MARGIN  # a loss of a version that does not count
    trials: int = 0
    cost: float | None = None
