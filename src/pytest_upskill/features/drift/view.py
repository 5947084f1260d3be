"""How skills on two models are shown, in each report."""

from collections.abc import Mapping
from typing import Any, Final

from ..._util.json_forms import json_values
from ...reports.study_tables import Block
from ...reports.terminal.layout import TerminalLook
from ...reports.terminal.study_lines import (
    WIDE,
    block_lines,
    most_rows,
    study_table,
)
from ...reports.terminal.tables import Style
from .results import CAN_GO, HELPS, HURTS, ModelChange
from .tables import facts_of, legend_of, model_change_table, score_table

_STYLES: Final[Mapping[str, Style]] = {
    **{word: {"red": True, "bold": True} for word in HURTS},
    **{word: {"green": True, "bold": True} for word in (*HELPS, "better")},
    **{word: {"cyan": True, "bold": True} for word in CAN_GO},
    **{
        word: {"yellow": True, "bold": True}
        for word in ("no longer helps", "lift fell")
    },
    **{word: {"light": True} for word in ("no change shown", "no effect shown")},
    **{word: {"light": True} for word in ("can't tell", "lift rose")},
    "incomplete": {"red": True},
}
_PRIORITIES: Final = {"runs": 5, "cases": 6, "lift, old": 12, "lift, new": 13}


def lines(change: ModelChange, look: TerminalLook) -> list[str]:
    """A row for each skill, and sentences; with -v all rows, and the scores."""
    skills = block(change, most_rows(look), brief=look.width < WIDE)
    details = []
    if look.verbosity > 0:
        details.append(study_table(score_table(change), look, {}, _PRIORITIES))
    return block_lines(skills, look, details, _STYLES, _PRIORITIES)


def block(
    change: ModelChange, most: int | None = None, *, brief: bool = False
) -> Block:
    return Block(
        change.title,
        facts_of(change),
        change.conclusions,
        model_change_table(change, most, brief=brief),
        legend_of(change),
    )


def page_values(change: ModelChange) -> dict[str, Any]:
    return {"scores": json_values(score_table(change))}
