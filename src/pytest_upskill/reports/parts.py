"""The rows of a table of parts: written once, for the terminal, Markdown and HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .._util.texts import counted, one_line, points, whole
from ..results.arm_comparison import span_words
from ..results.parts import PartEffect, Parts, Saved
from ..stats import Lift

UNKNOWN: Final = "–"
HEADERS: Final = ("part", "line", "tokens", "saved", "without it", "tokens/point", "")
_LONGEST_NAME: Final = 80
_ROUND: Final = 10  # from this on, tokens per point have no decimals

Word = Literal["missed", "could go", "better without", "not known", "incomplete"]


@dataclass(frozen=True)
class PartRow:
    """A part: its size, what leaving it out does, and a word for that."""

    name: str
    line: str
    tokens: str
    saved: str
    change: str  # "-40 (-62 to -18)"
    price: str
    word: Word
    needs: str = ""  # "~60 cases"
    whole_name: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As in `HEADERS`."""
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


def legend(found: Parts, columns: Sequence[str] = HEADERS) -> str:
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


def word_of(part: PartEffect, found: Parts) -> Word:
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
