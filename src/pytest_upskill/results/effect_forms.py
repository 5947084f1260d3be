"""Lifts and effects as they stand in files, to be read back."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..stats import Lift
from ..trials.number_types import Share, Whole
from .effects import Effect, State

# The difference of two lifts can be twice as large as a lift.
Difference = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]


class LiftForm(BaseModel):
    """The keys of a lift; later versions may write more."""

    model_config = ConfigDict(extra="ignore", strict=True)

    lift: Difference | None = None
    lift_low: Difference | None = None
    lift_high: Difference | None = None
    lift_p_value: Share | None = None

    def lift_value(self) -> Lift | None:
        return lift_of(self.lift, self.lift_low, self.lift_high, self.lift_p_value)


class EffectForm(LiftForm):
    """The keys of an effect, beside those of a lift."""

    change: Difference | None = None
    change_low: Difference | None = None
    change_high: Difference | None = None
    change_p_value: Share | None = None
    cases: Whole
    runs: Whole
    state: State
    cases_needed: Whole | None = None

    def effect(self, name: str) -> Effect:
        change = lift_of(self.change, self.change_low, self.change_high, self.change_p_value)
        return Effect(name, change, self.cases, self.runs, self.state, self.cases_needed)


def lift_of(
    lift: float | None, low: float | None, high: float | None, p_value: float | None
) -> Lift | None:
    if lift is None or low is None or high is None or p_value is None:
        return None
    return Lift(lift, low, high, p_value)
