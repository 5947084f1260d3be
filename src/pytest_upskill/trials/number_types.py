"""Numbers that servers and files may hold, with their limits.

Larger ones would overflow in sums and statistics, or where they are shown.
"""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from ..settings import MOST_RUNS

MOST: Final = 2**53  # beyond it, JSON and floats lose digits
MOST_SECONDS: Final = 1e9


def whole_number(value: object) -> int | None:
    """A count from a server or a file; None for anything but a possible one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    return None


def _possible_seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value <= MOST_SECONDS else None
    return None


Whole = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Runs = Annotated[int, Field(strict=True, ge=1, le=MOST_RUNS)]  # more take too long to compare
Seconds = Annotated[float, Field(strict=True, ge=0, le=MOST_SECONDS, allow_inf_nan=False)]
# Anything but a possible duration becomes None.
LenientSeconds = Annotated[float | None, BeforeValidator(_possible_seconds)]
Amount = Annotated[float, Field(strict=True, ge=0, le=MOST, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(strict=True, ge=-MOST, le=MOST, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
