"""The curve of a skill: its lift against its tokens, for the whole and for shorter versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from ..._util.texts import counted, points, whole
from ...results.arm_comparison import points_words
from ...results.parts import Parts
from ...stats import Lift
from ..curve import HEADERS, CurveRow, curve_rows, curve_title
from .markup import Header, circle, diamond, drawing, figure, key, label, line, table, text
from .plots import placed_names, round_steps

_LEFT, _SPAN = 9.0, 84.0  # percent of the width
_TOP, _HEIGHT = 18.0, 210.0
_STEP: Final = 0.25  # between lines
_BEYOND: Final = 1.08  # how far the axis goes beyond the whole skill


@dataclass(frozen=True)
class CurvePoint:
    """The skill in one size; ``name`` is empty for the baseline."""

    name: str
    tokens: int
    lift: Lift
    kind: str  # "whole", "version" or "chosen"


def points_of_curve(found: Parts) -> list[CurvePoint]:
    """From short to long, without the baseline; only what was measured."""
    versions = [
        CurvePoint(f"{one.tokens:,}", one.tokens, one.lift, "chosen" if one.folder else "version")
        for one in found.versions
        if one.lift
    ]
    lift = found.held_out or found.lift
    whole_skill = [CurvePoint("whole", found.tokens, lift, "whole")] if lift else []
    return sorted([*versions, *whole_skill], key=lambda one: one.tokens)


def curve(found: Parts) -> str | None:
    """The plot; None if no shorter version was measured."""
    dots = points_of_curve(found)
    if not any(one.kind != "whole" for one in dots):
        return None
    axes = _Axes.of(dots)
    parts = axes.drawn()
    places = [(axes.x(one.tokens), axes.y(one.lift.lift)) for one in dots]
    way = [(axes.x(0), axes.y(0.0)), *places]
    for (x1, y1), (x2, y2) in zip(way, places, strict=False):
        parts.append(line(x1, y1, x2, y2, "joint"))
    parts.append(circle(*way[0], "dot baseline"))
    for one, (x, y) in zip(dots, places, strict=True):
        parts += _interval(one.lift, x, axes)
        if one.kind == "chosen":
            parts.append(circle(x, y, "spot", 11))
        draw = diamond if one.kind == "whole" else circle
        parts.append(draw(x, y, "dot skill"))
    names = [one.name for one in dots]
    parts += placed_names([*places, way[0]], [*names, "without"], axes.bottom)
    described = "; ".join(["0 tokens: the baseline", *map(_described, dots)])
    title = f"Lift of {found.skill} on {found.model} against its tokens"
    return drawing("curve", axes.bottom + 24, title, described, parts)


def curve_section(found: Parts) -> str:
    """The plot and its numbers as a table; empty without versions."""
    picture, rows = curve(found), curve_rows(found)
    if not rows:
        return ""
    keys = [key("hollow", "without the skill"), key("rhomb full", "whole skill")]
    keys += [key("filled", "shorter version"), key("whisker", "95 % interval")]
    keys += [key("ring", "saved")] if any(one.folder for one in found.versions) else []
    drawn = figure("Lift in points against tokens", picture, keys) if picture else ""
    headers: list[Header] = [("version", ""), *((name, "num") for name in HEADERS[1:3])]
    body = [(text(row.name), [*map(text, row.cells[1:3]), _words(row)]) for row in rows]
    numbers = table("numbers curve", "Numbers of each version", [*headers, (HEADERS[3], "")], body)
    return (
        f'<section class="skill"><h2>{text(found.skill)}, shorter</h2>'
        f'<p class="facts">{text(curve_title(found))}; no choice was based on these</p>'
        f'<div class="plots stacked">{drawn}</div>{numbers}</section>'
    )


def _words(row: CurveRow) -> str:
    if not row.state:
        return text(row.loss)
    kind = {"loses": "hurts", "no loss shown": "helps"}.get(row.state, "unknown")
    return f'<span class="word {kind}">{text(row.loss)}</span>'


def _described(one: CurvePoint) -> str:
    kind = {"whole": "the whole skill", "version": "a version", "chosen": "the chosen version"}
    return f"{counted(one.tokens, 'token')}, {kind[one.kind]}: {points_words(one.lift)}"


def _interval(lift: Lift, x: float, axes: "_Axes") -> list[str]:
    low, high = axes.y(lift.low), axes.y(lift.high)
    ends = [line(x - 0.6, y, x + 0.6, y, "interval skill") for y in (low, high)]
    return [line(x, low, x, high, "interval skill"), *ends]


@dataclass(frozen=True)
class _Axes:
    """Where tokens and lifts are drawn."""

    most: float  # tokens
    low: float
    high: float

    @classmethod
    def of(cls, dots: Sequence[CurvePoint]) -> "_Axes":
        lows, highs = [one.lift.low for one in dots], [one.lift.high for one in dots]
        low = floor(min(0.0, *lows) / _STEP) * _STEP
        high = ceil(max(_STEP, *highs) / _STEP) * _STEP
        return cls(max(one.tokens for one in dots) * _BEYOND, low, high)

    @property
    def bottom(self) -> float:
        return self.y(self.low)

    def x(self, tokens: float) -> float:
        return _LEFT + _SPAN * tokens / self.most

    def y(self, lift: float) -> float:
        return _TOP + _HEIGHT * (self.high - lift) / (self.high - self.low)

    def drawn(self) -> list[str]:
        """Lines with their lifts, and ticks with their tokens."""
        parts = []
        for number in range(round((self.high - self.low) / _STEP) + 1):
            lift = self.low + number * _STEP
            y = self.y(lift)
            parts.append(line(0, y, 100, y, "grid" if lift == 0 else "grid faint"))
            parts.append(label(0, y - 4, points(lift), "tick"))
        for tokens in round_steps(self.most):
            x = self.x(tokens)
            parts.append(line(x, self.bottom, x, self.bottom + 4, "grid"))
            parts.append(label(x, self.bottom + 18, whole(tokens), "tick", "middle"))
        return parts
