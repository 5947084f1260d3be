"""Trigger sets: queries that should, or should not, make an agent open a skill."""

from dataclasses import dataclass
from pathlib import Path

from .._util.json_forms import Location


@dataclass(frozen=True)
class Trigger:
    """A query, and whether the skill should be opened for it."""

    id: str  # of its test: "trigger-fill-in-this-form"
    query: str
    should_trigger: bool
    file: Path
    line: int = 1
    place: Location = ()
