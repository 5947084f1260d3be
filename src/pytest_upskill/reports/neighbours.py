"""The cells of a matrix of neighbours: written once, for the terminal, Markdown and HTML."""

from dataclasses import dataclass
from typing import Final

from .._util.texts import counted, points
from ..results.neighbours import Alone, Matrix, Neighbour, Openings, Word
from ..stats import Lift

ALL: Final = "all"
ALONE: Final = "lift alone"
_NOTHING: Final = "-"


@dataclass(frozen=True)
class PairCell:
    """A pair in a table: its change, a word for it, and what else there is to say."""

    change: str  # "-20"
    word: Word
    span: str = ""  # "-35 to -5"
    needs: str = ""  # "~120 cases"

    @property
    def lines(self) -> list[str]:
        return [f"{self.change} {self.word}", *filter(None, (self.span, self.needs))]


def column_name(other: str | None) -> str:
    return ALL if other is None else other


def pair_cell(one: Neighbour) -> PairCell:
    effect = one.effect
    if effect.lift is None:
        return PairCell(_NOTHING, one.word)
    needs = ""
    if one.word == "unknown":
        wanted = effect.cases_needed or one.cases_to_tell
        needs = f"~{counted(wanted, 'case')}" if wanted else "too few cases"
        needs = "small, if any" if wanted and wanted <= effect.cases else needs
    return PairCell(points(effect.lift.lift), one.word, span_of(effect.lift), needs)


def span_of(lift: Lift) -> str:
    return f"{points(lift.low)} to {points(lift.high)}"


def alone_cell(one: Alone | None) -> list[str]:
    """The lift of a skill by itself; a skill without cases has none."""
    if one is None:
        return ["no cases"]
    return [points(one.lift.lift), span_of(one.lift)] if one.lift else [_NOTHING]


def details(one: Neighbour) -> list[str]:
    """All numbers of a pair, one line each."""
    effect = one.effect
    lines = [f"{counted(effect.cases, 'case')} × {counted(effect.runs, 'run')}"]
    if effect.lift:
        lines.insert(0, f"change {points(effect.lift.lift)} ({span_of(effect.lift)})")
    if one.lift:
        lines.append(f"lift here {points(one.lift.lift)} ({span_of(one.lift)})")
    if effect.state == "dropped":
        lines.append("stopped early: more runs would hardly have shown anything")
    return [*lines, *opening_lines(one.openings)]


def opening_lines(openings: Openings) -> list[str]:
    """``pdf opened in 9 of 10 trials, first in 4``."""
    return [
        f"{name} opened in {openings.of(name)}, first in {openings.first.get(name, 0):,}"
        for name in sorted(openings.opened, key=lambda name: (-openings.opened[name], name))
    ]


def legend(matrix: Matrix) -> str:
    """What the numbers of the table are."""
    text = (
        "By how many points the lift of a row's skill changes when the skill of a column is "
        "installed as well, on the row's own cases"
    )
    if (pairs := len(matrix.pairs)) > 1:
        text += f"; the intervals hold for all {pairs:,} pairs together"
    unknown = bool(matrix.found("unknown"))
    return f"{text}. ~ is how many cases it would take to know more" if unknown else text


def listing_rows(matrix: Matrix) -> list[tuple[str, str, str]]:
    """Skill, estimated tokens of its entry, and tokens by the model's count."""
    return [
        (name, f"{tokens:,}", f"{seen:,}" if (seen := matrix.listing_seen.get(name)) else "")
        for name, tokens in matrix.listing.items()
    ]
