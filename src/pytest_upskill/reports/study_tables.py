"""The tables of studies (matrix, ablate, distill), for the terminal, Markdown and the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from .._util.texts import counted, one_line, points, span, unsigned_points, whole
from ..results.arm_comparison import span_words
from ..results.effects import loss_standing, loss_words
from ..results.neighbours import Alone, Matrix, Neighbour, Openings, PairVerdict
from ..results.part_effects import PartEffect, Parts, SavedTokens
from ..stats import Lift

UNKNOWN: Final = "–"
PART_HEADERS: Final = ("part", "line", "tokens", "saved", "without it", "tokens/point", "")
_LONGEST_NAME: Final = 80
_ROUND: Final = 10  # from this on, tokens per point have no decimals

PartWord = Literal["missed", "could go", "better without", "not known", "incomplete"]


@dataclass(frozen=True)
class PartRow:
    """A part: its size, what leaving it out does, and a word for that."""

    name: str
    line: str
    tokens: str
    saved: str
    change: str  # "-40 (-62 to -18)"
    price: str
    word: PartWord
    needs: str = ""  # "~60 cases"
    full_name: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As in `PART_HEADERS`."""
        word = f"{self.word} ({self.needs})" if self.needs else self.word
        return self.name, self.line, self.tokens, self.saved, self.change, self.price, word


def part_rows(parts: Parts) -> list[PartRow]:
    """The parts that cost the most tokens per point first."""
    return [_part_row(part, parts) for part in parts.sorted]


def parts_title(parts: Parts) -> str:
    """``pdf on haiku: about 611 tokens, lift +62 (40 to 80), 24 cases × 2 to 8 runs``."""
    cases = max((part.effect.cases for part in parts.parts), default=0)
    runs = sorted({part.effect.runs for part in parts.parts if part.effect.runs})
    size = ""
    if runs:
        fewest = f"{runs[0]} to " if len(runs) > 1 else ""
        size = f", {counted(cases, 'case')} × {fewest}{counted(runs[-1], 'run')}"
    lift = f", lift {_lift_text(parts.lift)}" if parts.lift else ""
    name = f"{one_line(parts.skill, 60)} on {one_line(parts.label, 60)}"
    return f"{name}: about {counted(parts.tokens, 'token')}{lift}{size}"


def parts_legend(parts: Parts, columns: Sequence[str] = PART_HEADERS) -> str:
    """What the numbers of these columns are."""
    kinds = f"{parts.by}s"
    kinds += " and files" if any(part.kind == "file" for part in parts.parts) else ""
    saved = "Saved: tokens of an answer and of what is asked, as counted by the model. "
    return (
        f"Without it: by how many points the results change when one of the {kinds} is left out; "
        "the intervals hold for all of them together. "
        f"{saved if 'saved' in columns else ''}"
        f"A loss below {unsigned_points(parts.margin)} points does not count"
    )


def _part_row(part: PartEffect, parts: Parts) -> PartRow:
    word = _part_word(part, parts)
    needed = part.effect.cases_needed if word == "not known" else None
    price = part.tokens_per_point
    return PartRow(
        one_line(part.name, _LONGEST_NAME),
        f"{part.line:,}" if part.line else "",
        f"{part.tokens:,}",
        _saved(part.saved),
        _lift_text(part.change),
        UNKNOWN if price is None or word == "incomplete" else _price(price),
        word,
        f"~{counted(needed, 'case')}" if needed else "",
        part.name,
    )


def _part_word(part: PartEffect, parts: Parts) -> PartWord:
    standing = part.standing(parts.margin)
    if standing == "incomplete":
        return "incomplete"
    if standing == "loses":
        return "missed"
    if part.change and part.change.low > 0:
        return "better without"
    return "could go" if part.could_go else "not known"


def _lift_text(lift: Lift | None) -> str:
    return UNKNOWN if lift is None else span_words(lift)


def _saved(saved: SavedTokens | None) -> str:
    if saved is None:
        return UNKNOWN
    if saved.low is None or saved.high is None or round(saved.low) == round(saved.high):
        return whole(saved.tokens)
    return f"{whole(saved.tokens)} ({span(saved.low, saved.high, whole)})"


def _price(tokens: float) -> str:
    return whole(tokens) if tokens >= _ROUND else f"{tokens:.1f}"


# Shorter versions of a skill.

CURVE_HEADERS: Final = ("", "tokens", "lift", "against the whole skill")


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


def curve_rows(parts: Parts) -> list[CurveRow]:
    """The whole skill, then its versions from long to short; none without versions."""
    if not parts.versions:
        return []
    lift = _lift_text(parts.held_out or parts.lift)
    rows = [CurveRow("whole skill", f"{parts.tokens:,}", lift, UNKNOWN, "")]
    for version in sorted(parts.versions, key=lambda version: -version.tokens):
        loss = loss_words(version.change, parts.margin)
        name = "saved" if version.folder else "shorter"
        standing = loss_standing(version.change, parts.margin)
        lift = _lift_text(version.lift)
        rows.append(CurveRow(name, f"{version.tokens:,}", lift, loss, standing))
    return rows


def curve_title(parts: Parts) -> str:
    """What the versions were measured on."""
    cases = max((version.cases for version in parts.versions), default=0)
    return f"{parts.label}, {counted(cases, 'held-out case')}"


# The matrix of neighbours.

ALL: Final = "all"
ALONE: Final = "lift alone"
_NOTHING: Final = "-"


@dataclass(frozen=True)
class PairCell:
    """A pair in a table: its change, a word for it, and what else there is to say."""

    change: str  # "-20"
    word: PairVerdict
    span: str = ""  # "-35 to -5"
    needs: str = ""  # "~120 cases"

    @property
    def lines(self) -> list[str]:
        return [f"{self.change} {self.word}", *filter(None, (self.span, self.needs))]


def column_name(other: str | None) -> str:
    return ALL if other is None else other


def pair_cell(pair: Neighbour) -> PairCell:
    effect = pair.effect
    if effect.lift is None:
        return PairCell(_NOTHING, pair.verdict)
    needs = ""
    if pair.verdict == "unknown":
        cases = effect.cases_needed or pair.cases_to_tell
        needs = f"~{counted(cases, 'case')}" if cases else "too few cases"
        needs = "small, if any" if cases and cases <= effect.cases else needs
    bounds = span(effect.lift.low, effect.lift.high)
    return PairCell(points(effect.lift.lift), pair.verdict, bounds, needs)


def alone_cell(alone: Alone | None) -> list[str]:
    """The lift of a skill by itself; a skill without cases has none."""
    if alone is None:
        return ["no cases"]
    if alone.lift is None:
        return [_NOTHING]
    return [points(alone.lift.lift), span(alone.lift.low, alone.lift.high)]


def details(pair: Neighbour) -> list[str]:
    """All numbers of a pair, one line each."""
    effect = pair.effect
    lines = [f"change {span_words(effect.lift)}"] if effect.lift else []
    lines.append(f"{counted(effect.cases, 'case')} × {counted(effect.runs, 'run')}")
    if pair.lift:
        lines.append(f"lift here {span_words(pair.lift)}")
    if effect.state == "dropped":
        lines.append("stopped early: more runs would hardly have shown anything")
    return [*lines, *opening_lines(pair.openings)]


def opening_lines(openings: Openings) -> list[str]:
    """``pdf opened in 9 of 10 trials, first in 4``."""
    return [
        f"{name} opened in {openings.of(name)}, first in {openings.first.get(name, 0):,}"
        for name in sorted(openings.opened, key=lambda name: (-openings.opened[name], name))
    ]


def matrix_legend(matrix: Matrix) -> str:
    """What the numbers of the table are."""
    text = (
        "By how many points the lift of a row's skill changes when the skill of a column is "
        "installed as well, on the row's own cases"
    )
    if (pairs := len(matrix.pairs)) > 1:
        text += f"; the intervals hold for all {pairs:,} pairs together"
    unknown = bool(matrix.pairs_that("unknown"))
    return f"{text}. ~ is how many cases it would take to know more" if unknown else text


def listing_rows(matrix: Matrix) -> list[tuple[str, str, str]]:
    """Skill, estimated tokens of its entry, and tokens by the model's count."""
    return [
        (name, f"{tokens:,}", f"{count:,}" if (count := matrix.listing_seen.get(name)) else "")
        for name, tokens in matrix.listing.items()
    ]
