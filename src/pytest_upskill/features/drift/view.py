"""How skills on two models are shown, in each report."""

from typing import Final

from ...reports.study_tables import Block
from ...reports.terminal.layout import TerminalLook
from ...reports.terminal.study_lines import (
    Styles,
    block_lines,
    max_rows,
    study_table,
)
from .results import CAN_GO, HELPS, HURTS, ModelChange
from .tables import facts_of, legend_of, model_change_table, score_table

_STYLES: Final[Styles] = {
    **{word: {"red": True, "bold": True} for word in HURTS},
    **{word: {"green": True, "bold": True} for word in (*HELPS, "better")},
    **{word: {"cyan": True, "bold": True} for word in CAN_GO},
    **{
        word: {"yellow": True, "bold": True}
        for word in ("no longer helps", "lift fell")
    },
    **{word: {"light": True} for word in ("no change shown", "no effect")},
    **{word: {"light": True} for word in ("unclear", "lift rose")},
    "incomplete": {"red": True},
}
_WIDE: Final = 100  # columns, for intervals of tokens
_PRIORITIES: Final = {"runs": 5, "cases": 6, "lift, old": 12, "lift, new": 13}


def lines(change: ModelChange, look: TerminalLook) -> list[str]:
    """A row for each skill, and sentences; with -v all rows, and the scores."""
    skills = block(change, max_rows(look), brief=look.width < _WIDE)
    details = []
    if look.verbosity > 0:
        scores = score_table(change)
        details.append(study_table(scores, look, styles={}, priorities=_PRIORITIES))

    return block_lines(skills, look, details, styles=_STYLES, priorities=_PRIORITIES)


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
