"""Bundled skills that are unrelated to any other:
does a description stand out among many?
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from .._util.files import read_file

_FILE: Final = Path(__file__).with_name("noise.toml")


@dataclass(frozen=True)
class NoiseSkill:
    """A skill that is one file."""

    name: str
    description: str
    body: str

    @property
    def text(self) -> str:
        """Its SKILL.md."""
        return (
            f"---\nname: {self.name}\ndescription: >-\n "
            f" {self.description}\n---\n\n{self.body}"
        )


@cache
def noise_skills() -> tuple[NoiseSkill, ...]:
    """All of them, in the order in which they are installed."""
    import tomllib  # only studies of triggers need it

    data = tomllib.loads(read_file(_FILE).decode("utf-8"))
    return tuple(
        NoiseSkill(skill["name"], skill["description"], skill["body"].lstrip())
        for skill in data["skill"]
    )


def noise_for(number: int, taken: Collection[str]) -> tuple[NoiseSkill, ...]:
    """The first ones whose names are not taken; fewer if there are not so many."""
    names = {name.casefold() for name in taken}
    return tuple(
        skill for skill in noise_skills() if skill.name.casefold() not in names
    )[:number]
