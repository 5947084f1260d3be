"""The two plots of a skill: its gain on each model, and what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

from ..._util import grouped
from ..._util.texts import one_line, percent
from ...results.summary_row import row_of
from ...results.verdict import Verdict, sweet_choice
from ...settings import Score
from ...stats import wilson
from ..numbers import COST, LIFT, TOKENS, Number
from .markup import circle, diamond, drawing, label, line, ticks

_LEFT, _SPAN = 7.0, 83.0  # percent of the width
_ARMS: Final[tuple[str, ...]] = ("baseline", "skill")
_QUARTERS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_ROW: Final = 60
_LOWEST, _HIGHEST = 170.0, 230.0  # heights of the second plot, to match the first
_TOP: Final = 16
_MOST_SPREAD: Final = 20.0  # beyond this factor the scale is logarithmic
_NARROW: Final = 300.0  # the width in pixels at which labels must not collide
_BESIDE: Final = 10.0  # pixels between a point and its name
_MOST_LETTERS: Final = 19  # of a name
_LETTER: Final = 7.2  # the greatest width of a letter


def dumbbell(verdicts: Sequence[Verdict]) -> str:
    """A row for each model: without the skill → with it, each with its interval."""
    rows = [verdict for verdict in verdicts if verdict.summary.scored("skill") is not None]
    bottom = len(rows) * _ROW + 8
    parts = []
    for share in _QUARTERS:
        parts.append(label(_at(share), bottom + 14, percent(share), "tick", "middle"))
    for number, verdict in enumerate(rows):
        parts += _row(verdict, number * _ROW)
    description = "; ".join(map(_rates, rows))
    compared = any(verdict.summary.scored("baseline") is not None for verdict in rows)
    arms = "without and with the skill" if compared else "with the skill"
    title = f"{score_title(rows[0].summary.score)} {arms}"
    return drawing("dumbbell", bottom + 22, title, description, parts)


def score_title(score: Score) -> str:
    return "Pass rate" if score == "pass" else "Share of checks passed"


def _row(verdict: Verdict, top: float) -> list[str]:
    row = verdict.summary
    y, skill, baseline = top + 38, row.scored("skill") or 0.0, row.scored("baseline")
    parts = [line(_at(share), y - 14, _at(share), y + 14, "grid faint") for share in _QUARTERS]
    parts.append(label(0, top + 14, _short(row.label), "name"))
    if words := LIFT.full_text(row_of(verdict)):
        parts.append(label(100, top + 14, words, "lift", "end"))
    if baseline is not None:
        direction = "gain" if skill > baseline else "loss" if skill < baseline else "same"
        parts += _interval(baseline, row.samples, y + 9, "baseline")
        parts.append(line(_at(baseline), y, _at(skill), y, f"way {direction}"))
    parts += _interval(skill, row.samples, y - 9, "skill")
    previous = row.scored("previous")
    if previous is not None:
        parts.append(diamond(_at(previous), y, "dot previous"))
    if baseline is not None:
        parts.append(circle(_at(baseline), y, "dot baseline"))
        side = -1 if baseline < skill else 1
        if baseline != skill:
            parts.append(_value(baseline, y, side))
    parts.append(circle(_at(skill), y, "dot skill"))
    parts.append(_value(skill, y, -1 if baseline is not None and skill < baseline else 1))
    return parts


def _value(rate: float, y: float, side: int) -> str:
    anchor = "end" if side < 0 else "start"
    return label(_at(rate), y + 4, percent(rate), "value", anchor, 10 * side)


def _interval(rate: float, cases: int, y: float, arm: str) -> list[str]:
    low, high = map(_at, wilson(rate, cases))
    ends = [line(x, y - 3, x, y + 3, f"interval {arm}") for x in (low, high)]
    return [line(low, y, high, y, f"interval {arm}"), *ends]


def _at(share: float) -> float:
    return _LEFT + _SPAN * share


def _short(name: str) -> str:
    """Both ends of a long name, as models of a family often differ in the last letters."""
    flat = one_line(name, 200)
    return flat if len(flat) <= _MOST_LETTERS else f"{flat[:9]}…{flat[-9:]}"


def _rates(verdict: Verdict) -> str:
    rates = [verdict.summary.scored(arm) for arm in _ARMS]
    texts = [percent(rate) for rate in rates if rate is not None]
    return f"{verdict.summary.label}: {' → '.join(texts)}"


@dataclass(frozen=True)
class Point:
    """A model with the skill or without it: what an answer takes, and its score."""

    model: str
    arm: str
    x: float
    rate: float


@dataclass(frozen=True)
class Scale:
    """Where points are in the second plot; x is the cost or the tokens."""

    number: Number
    low: float
    high: float
    is_log: bool
    height: float

    @property
    def is_cost(self) -> bool:
        return self.number is COST

    def y(self, rate: float) -> float:
        return _TOP + self.height * (1 - rate)

    def at(self, amount: float) -> float:
        if self.is_log:
            share = log10(amount / self.low) / log10(self.high / self.low)
        else:
            share = (amount - self.low) / (self.high - self.low)
        return _at(share)

    def text(self, amount: float) -> str:
        return self.number.unit.text(amount)


def points_of(verdicts: Sequence[Verdict]) -> tuple[list[Point], Scale] | None:
    """By cost if all prices are known, else by tokens; None if neither is known."""
    rows = [verdict for verdict in verdicts if verdict.summary.scored("skill") is not None]
    for number in (COST, TOKENS):
        points = [point for row in rows for point in _points(row, number)]
        amounts = [point.x for point in points]
        models = {point.model for point in points if point.arm == "skill"}
        if rows and len(models) == len(rows) and max(amounts) > 0:
            height = min(_HIGHEST, max(_LOWEST, _ROW * len(rows)))
            return points, _scale(amounts, number, height)
    return None


def _points(verdict: Verdict, number: Number) -> list[Point]:
    points = []
    for arm, amount in zip(_ARMS, number.amounts(row_of(verdict)), strict=True):
        rate = verdict.summary.scored(arm)
        if amount is not None and rate is not None:
            points.append(Point(verdict.summary.label, arm, amount, rate))
    return points


def _scale(amounts: Sequence[float], number: Number, height: float) -> Scale:
    low, high = min(amounts), max(amounts)
    if low > 0 and high / low > _MOST_SPREAD:
        return Scale(number, low / 1.3, high * 1.3, True, height)
    return Scale(number, 0.0, high * 1.1, False, height)


def efficient(points: Sequence[Point]) -> list[Point]:
    """Points that no other one beats in both cost and rate, from cheap to good."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.rate)):
        if not best or point.rate > best[-1].rate:
            best.append(point)
    return best


def frontier(verdicts: Sequence[Verdict]) -> str | None:
    """The score against cost or tokens, for both arms of each model."""
    points_and_scale = points_of(verdicts)
    if points_and_scale is None:
        return None
    points, scale = points_and_scale
    parts = _axes(scale)
    steps = efficient(points)
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        end = scale.at(after.x) if after else 100.0
        parts.append(
            line(scale.at(step.x), scale.y(step.rate), end, scale.y(step.rate), "frontier")
        )
        if after:
            parts.append(line(end, scale.y(step.rate), end, scale.y(after.rate), "frontier"))
    by_model = grouped(points, lambda point: point.model)
    for first, *others in by_model.values():
        for second in others:
            ends = (
                scale.at(first.x),
                scale.y(first.rate),
                scale.at(second.x),
                scale.y(second.rate),
            )
            parts.append(line(*ends, "joint"))
    spot = sweet_choice(verdicts) if scale.is_cost else None
    for point in points:
        x, y = scale.at(point.x), scale.y(point.rate)
        if spot and (point.model, point.arm) == (spot.model, spot.arm):
            parts.append(circle(x, y, "spot", 11))
        parts.append(circle(x, y, f"dot {point.arm}"))
    parts += _labels(points, scale)
    score_name = score_title(verdicts[0].summary.score).lower()
    title = f"{'Cost' if scale.is_cost else 'Tokens'} and {score_name}"
    texts = (f"{p.model} {p.arm}: {scale.text(p.x)}, {percent(p.rate)}" for p in points)
    return drawing("plane", scale.y(0) + 24, title, "; ".join(texts), parts)


def _axes(scale: Scale) -> list[str]:
    parts = []
    for share in _QUARTERS:
        parts.append(
            line(0, scale.y(share), 100, scale.y(share), "grid" if share == 0 else "grid faint")
        )
        parts.append(label(0, scale.y(share) - 4, percent(share), "tick"))
    for amount in _ticks(scale):
        x = scale.at(amount)
        parts.append(line(x, scale.y(0), x, scale.y(0) + 4, "grid"))
        parts.append(label(x, scale.y(0) + 18, scale.text(amount), "tick", "middle"))
    return parts


def _ticks(scale: Scale) -> list[float]:
    """Some round numbers."""
    if scale.is_log:
        decades = range(floor(log10(scale.low)), floor(log10(scale.high)) + 1)
        amounts = [10.0**decade for decade in decades]
        inside = [amount for amount in amounts if scale.low <= amount <= scale.high]
        return inside[:: -(-len(inside) // 5)]
    return ticks(0.0, scale.high)[1:]


def _labels(points: Sequence[Point], scale: Scale) -> list[str]:
    """The name of each model beside its point with the skill, legible even on a phone."""
    places = [(scale.at(p.x), scale.y(p.rate)) for p in points]
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in ((x / 100 * _NARROW, y) for x, y in places)]
    parts = []
    for point, (share, y) in zip(points, places, strict=True):
        if point.arm != "skill":
            continue
        name, x = _short(point.model), share / 100 * _NARROW
        side, down, box = _free_place(x, y, len(name) * _LETTER, taken, scale.y(0))
        taken.append(box)
        anchor = {-1: "end", 0: "middle", 1: "start"}[side]
        parts.append(label(share, y + down + 4, name, "name small", anchor, _BESIDE * side))
    return parts


Box = tuple[float, float, float, float]


def _free_place(
    x: float, y: float, width: float, taken: Sequence[Box], bottom: float
) -> tuple[int, float, Box]:
    """The side of a point and the distance below it at which its name fits: the first free one."""
    options: list[tuple[int, float, Box]] = []
    for down in (-16, 18, 0, 34, -32, 50, 66):
        for side in (1, -1, 0) if down else (1, -1):
            start = {1: x + _BESIDE, -1: x - _BESIDE - width, 0: x - width / 2}[side]
            options.append((side, down, (start, y + down - 8, start + width, y + down + 8)))
    plane = (-8, 0, _NARROW + 8, bottom)
    inside = [option for option in options if _is_inside(option[2], plane)]
    for option in inside:
        if not any(_overlap(option[2], box) for box in taken):
            return option
    return (inside or options)[0]


def _is_inside(inner: Box, outer: Box) -> bool:
    starts = inner[0] >= outer[0] and inner[1] >= outer[1]
    return starts and inner[2] <= outer[2] and inner[3] <= outer[3]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
