"""Where tasks run: a table, and how many run where."""

from collections import Counter
from collections.abc import Mapping
from textwrap import fill
from typing import Final

from ..._util.texts import counted, one_line
from ...agents.task_sandbox import SandboxChoice
from .tables import text_table

CAN_NOT: Final = "can't run"
_LONGEST: Final = 300  # characters of a reason
_WIDTH: Final = 80
_NARROW: Final = 24  # columns of a reason, at least


def sandbox_counts(places: Mapping[str, SandboxChoice]) -> str:
    """``23 in bwrap, 41 in an image (podman), 9 can't run``."""
    numbers = Counter(_kind(place) for place in places.values())
    words = [
        f"{number:,} {kind if kind == CAN_NOT else f'in {kind}'}"
        for kind, number in sorted(numbers.items(), key=lambda item: item[0] == CAN_NOT)
    ]
    return f"{counted(len(places), 'task')}: {', '.join(words)}"


def sandbox_table(places: Mapping[str, SandboxChoice]) -> list[str]:
    """A line for each task: its sandbox, or why it can't run."""
    free = _WIDTH - max(map(len, places), default=0) - len(CAN_NOT) - 2 * len("  ")
    rows = [
        (
            name,
            place.kind or CAN_NOT,
            fill(one_line(place.reason, _LONGEST), max(free, _NARROW)),
        )
        for name, place in places.items()
    ]
    return text_table(("task", "sandbox", "why"), rows).splitlines()


def _kind(place: SandboxChoice) -> str:
    if not place.kind:
        return CAN_NOT
    return f"an image ({place.kind})" if place.image else place.kind
