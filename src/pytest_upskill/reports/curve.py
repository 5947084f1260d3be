"""The versions of a skill as a table: tokens, lift, and what each loses, for every report."""

from typing import Final, NamedTuple

from .._util.texts import counted
from ..results.arm_comparison import span_words
from ..results.losses import loss_words, standing_of
from ..results.parts import Parts
from ..stats import Lift
from .terminal.layout import Look
from .terminal.tables import Cell, Column, Table

_UNKNOWN: Final = "–"
HEADERS: Final = ("", "tokens", "lift", "against the whole skill")


class CurveRow(NamedTuple):
    """The skill in one size."""

    name: str
    tokens: str
    lift: str
    loss: str  # in words
    state: str  # "", or a `Standing`

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.name, self.tokens, self.lift, self.loss


def curve_rows(found: Parts) -> list[CurveRow]:
    """The whole skill, then its versions from long to short; none without versions."""
    if not found.versions:
        return []
    whole = found.held_out or found.lift
    rows = [CurveRow("whole skill", f"{found.tokens:,}", _lift(whole), _UNKNOWN, "")]
    for one in sorted(found.versions, key=lambda version: -version.tokens):
        words = loss_words(one.change, found.margin)
        name = "saved" if one.folder else "shorter"
        standing = standing_of(one.change, found.margin)
        rows.append(CurveRow(name, f"{one.tokens:,}", _lift(one.lift), words, standing))
    return rows


def curve_title(found: Parts) -> str:
    """What the versions were measured on."""
    cases = max((one.cases for one in found.versions), default=0)
    return f"{found.model}, {counted(cases, 'held-out case')}"


def curve_lines(found: Parts, look: Look) -> list[str]:
    """The table for a terminal, below its title."""
    rows = curve_rows(found)
    if not rows:
        return []
    columns = [Column(name, right=name == "tokens") for name in HEADERS]
    styles = {"loses": {"red": True}, "no loss shown": {"green": True}}
    cells = [
        [*map(Cell, row.cells[:-1]), Cell(row.loss, styles.get(row.state, {}))] for row in rows
    ]
    return [curve_title(found), *Table(columns, cells).lines(look)]


def _lift(lift: Lift | None) -> str:
    if lift is None:
        return _UNKNOWN
    return span_words(lift)
