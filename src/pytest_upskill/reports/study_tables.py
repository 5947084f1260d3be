"""The tables of studies (matrix, ablate, distill), for the terminal, Markdown and the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from .._util.texts import counted, one_line, points, whole
from ..results.arm_comparison import span_words
from ..results.losses import loss_words, standing_of
from ..results.neighbours import Alone, Matrix, Neighbour, Openings, Word
from ..results.parts import PartEffect, Parts, Saved
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
        said = f"{self.word} ({self.needs})" if self.needs else self.word
        return self.name, self.line, self.tokens, self.saved, self.change, self.price, said


def part_rows(found: Parts) -> list[PartRow]:
    """The dearest points first."""
    return [_row(one, found) for one in found.sorted]


def parts_title(found: Parts) -> str:
    """``pdf on haiku: about 611 tokens, lift +62 (40 to 80), 24 cases × 2 to 8 runs``."""
    cases = max((one.effect.cases for one in found.parts), default=0)
    runs = sorted({one.effect.runs for one in found.parts if one.effect.runs})
    span = ""
    if runs:
        least = f"{runs[0]} to " if len(runs) > 1 else ""
        span = f", {counted(cases, 'case')} × {least}{counted(runs[-1], 'run')}"
    lift = f", lift {_change(found.lift)}" if found.lift else ""
    where = f"{one_line(found.skill, 60)} on {one_line(found.model, 60)}"
    return f"{where}: about {counted(found.tokens, 'token')}{lift}{span}"


def parts_legend(found: Parts, columns: Sequence[str] = PART_HEADERS) -> str:
    """What the numbers of these columns are."""
    what = "files" if any(one.kind == "file" for one in found.parts) else ""
    kinds = " and ".join(filter(None, (f"{found.by}s", what)))
    margin = points(found.margin).lstrip("+")
    saved = "Saved: tokens of an answer and of what is asked, as counted by the model. "
    return (
        f"Without it: by how many points the results change when one of the {kinds} is left out; "
        "the intervals hold for all of them together. "
        f"{saved if 'saved' in columns else ''}"
        f"A loss below {margin} points does not count"
    )


def _row(part: PartEffect, found: Parts) -> PartRow:
    word = word_of(part, found)
    needed = part.effect.cases_needed if word == "not known" else None
    price = part.tokens_per_point
    return PartRow(
        one_line(part.name, _LONGEST_NAME),
        f"{part.line:,}" if part.line else "",
        f"{part.tokens:,}",
        _saved(part.saved),
        _change(part.change),
        UNKNOWN if price is None or word == "incomplete" else _price(price),
        word,
        f"~{counted(needed, 'case')}" if needed else "",
        part.name,
    )


def word_of(part: PartEffect, found: Parts) -> PartWord:
    standing = part.standing(found.margin)
    if standing == "incomplete":
        return "incomplete"
    if standing == "loses":
        return "missed"
    if part.change and part.change.low > 0:
        return "better without"
    return "could go" if part.could_go else "not known"


def _change(lift: Lift | None) -> str:
    if lift is None:
        return UNKNOWN
    return span_words(lift)


def _saved(saved: Saved | None) -> str:
    if saved is None:
        return UNKNOWN
    if saved.low is None or saved.high is None or round(saved.low) == round(saved.high):
        return whole(saved.tokens)
    return f"{whole(saved.tokens)} ({whole(saved.low)} to {whole(saved.high)})"


def _price(tokens: float) -> str:
    return whole(tokens) if tokens >= _ROUND else f"{tokens:.1f}"


_UNKNOWN: Final = "–"
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


def _lift(lift: Lift | None) -> str:
    if lift is None:
        return _UNKNOWN
    return span_words(lift)


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


def matrix_legend(matrix: Matrix) -> str:
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
