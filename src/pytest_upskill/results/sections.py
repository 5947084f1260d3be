"""What features add to the results of a run, beside its tests."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Union

from pydantic import Discriminator, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from .._util.json_forms import Flag
from ..settings import Gates


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
