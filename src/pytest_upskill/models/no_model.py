"""What stands in the place of a model where none is asked."""

from dataclasses import dataclass
from typing import Final

from ..errors import ModelError
from .model import Model, ModelSpec, Provider
from .prices import FREE, Price


@dataclass(frozen=True)
class NoModel(Provider):
    """Costs nothing, needs no key, and is never opened."""

    def identity(self, spec: ModelSpec) -> str | None:  # noqa: ARG002
        return None

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        return FREE

    async def open(self, spec: ModelSpec, timeout: float) -> Model:  # noqa: ARG002
        raise ModelError(f"{spec.name} has no model")


NO_MODEL: Final = NoModel("none", "")
