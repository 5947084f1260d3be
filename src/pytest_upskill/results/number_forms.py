"""Numbers that a run can have written, as forms for its files.

Others would overflow in sums and statistics, or where they are shown.
"""

from typing import Annotated

from pydantic import Field

from ..settings import MOST_RUNS
from ..trials.answer import MOST, MOST_SECONDS

Whole = Annotated[int, Field(ge=0, le=MOST)]
Runs = Annotated[int, Field(ge=1, le=MOST_RUNS)]  # comparing takes longer the more there are
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]
