"""What features add to the results of a run, beside its tests."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Union

from pydantic import Discriminator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from .._util.json_forms import Flag
from ..settings import Gates
from ..trials.subject import SkillOnSubject
from .row import Row


@dataclass(frozen=True, kw_only=True)
class Section:
    """What a feature found; ``feature`` is its name, a ``Literal`` of each subclass."""

    # Names of gates that it decides, so that they need no test
    decides: ClassVar[frozenset[str]]
    feature: str
    interrupted: Flag = False  # by Ctrl-C

    def problem(self, gates: Gates) -> str:
        """Why the run fails besides ``gate_reasons``; empty if it does not."""
        raise NotImplementedError

    def gate_reasons(self, gates: Gates) -> list[str]:
        """Why the run fails these gates; empty if it passes."""
        raise NotImplementedError


@dataclass(frozen=True)
class KindSection:
    """What a run shows of a kind of cases that no lift is of.

    Other fields, and what is computed, are in the file of the run.
    """

    feature: ClassVar[str]  # the name of its view
    results: Annotated[Any, Field(exclude=True, repr=False)]  # RunResults

    def add_to(self, rows: dict[SkillOnSubject, Row]) -> None:
        """Add its numbers to the rows of a run, and rows that have nothing else."""

    def gate_reasons(self, gates: Gates) -> list[str]:  # noqa: ARG002
        """Why the run fails these gates; empty if it passes."""
        return []

    @property
    def details(self) -> list[str]:
        """What to look at, for the model that teaches a skill."""
        return []


@dataclass(frozen=True)
class OneOf:
    """Has a section read and written as one of these types, by its feature."""

    types: tuple[type[Section], ...]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        if len(self.types) < 2:
            return handler.generate_schema(*(self.types or [source]))
        union: Any = Union[self.types]  # noqa: UP007
        return handler.generate_schema(Annotated[union, Discriminator("feature")])
