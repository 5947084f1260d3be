"""What studies found, on the page: the matrix of neighbours, parts, the curve of versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import Final

from ..._util.texts import counted, one_line, points, whole
from ...results.arm_comparison import points_words
from ...results.neighbours import (
    Alone,
    Matrix,
    conclusion,
    listing_sentence,
    neighbour_only,
    open_sentences,
    shown_sentences,
)
from ...results.part_effects import Parts, part_conclusions, part_sentence
from ...stats import Lift
from ..study_tables import (
    ALONE,
    CURVE_HEADERS,
    PART_HEADERS,
    CurveRow,
    PartRow,
    alone_cell,
    column_name,
    curve_rows,
    curve_title,
    details,
    listing_rows,
    matrix_legend,
    opening_lines,
    pair_cell,
    part_rows,
    parts_legend,
    parts_title,
)
from .markup import Header, circle, diamond, drawing, figure, key, label, line, table, text
from .plots import placed_names, round_steps

_LONGEST: Final = 80  # characters of a name in a table
_MOST_SHOWN: Final = 12
_MOST_OPEN: Final = 6


def neighbour_sections(matrices: Sequence[Matrix]) -> str:
    return "".join(map(_matrix_section, matrices))


def _matrix_section(matrix: Matrix) -> str:
    sentences = [
        *shown_sentences(matrix, _MOST_SHOWN),
        *open_sentences(matrix, _MOST_OPEN),
        *neighbour_only(matrix),
        listing_sentence(matrix),
    ]
    listed = "".join(f"<li>{text(sentence)}.</li>" for sentence in sentences)
    return (
        f'<section class="skill"><h2>Neighbours</h2>'
        f'<p class="facts">{text(matrix.label)} · {text(matrix.spent)}</p>'
        f'<p class="conclusion">{text(conclusion(matrix))}.</p>'
        f'<ul class="said">{listed}</ul>'
        f"{_matrix(matrix)}"
        f'<p class="note">{text(matrix_legend(matrix))}.</p>'
        f"{_listing(matrix)}</section>"
    )


def _matrix(matrix: Matrix) -> str:
    """A row for each tested skill, a column for each neighbour, the last for all of them."""
    columns = matrix.columns
    names = [_short_name(column_name(alone)) for alone in columns]
    heads = ["skill", ALONE, *(f"with {alone}" for alone in names)]
    head = "".join(f'<th scope="col" role="columnheader">{text(alone)}</th>' for alone in heads)
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">{text(_short_name(alone.skill))}</th>'
        f"{_alone(alone)}"
        f"{''.join(_pair_td(matrix, alone.skill, other) for other in columns)}</tr>"
        for alone in matrix.alone
    )
    title = f"What neighbours do to each skill, on {_short_name(matrix.label)}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="matrix neighbours" role="table"><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _alone(alone: Alone) -> str:
    number, *span = alone_cell(alone)
    folded = _folded(opening_lines(alone.openings), f"{alone.skill} alone")
    return _td("alone", ALONE, f"<b>{text(number)}</b> {_small(span)}{folded}")


def _pair_td(matrix: Matrix, skill: str, neighbour: str | None) -> str:
    pair, name = matrix.pair(skill, neighbour), f"with {_short_name(column_name(neighbour))}"
    if pair is None:
        same = skill == neighbour
        return _td("self", name, '<span aria-label="itself">–</span>' if same else "")
    cell, lines = pair_cell(pair), details(pair)
    hover = "; ".join(lines)
    content = (
        f'<span title="{text(hover)}"><b>{text(cell.change)}</b> '
        f'<span class="word {pair.verdict}">{pair.verdict}</span></span> '
        f"{_small([cell.span, cell.needs])}"
    )
    return _td(pair.verdict, name, content + _folded(lines, f"{skill} {name}"))


def _td(kind: str, name: str, inside: str) -> str:
    return f'<td role="cell" class="{kind}" data-name="{text(name)}">{inside}</td>'


def _small(lines: Sequence[str]) -> str:
    return "".join(f"<small>{text(line)}</small>" for line in lines if line)


def _folded(lines: Sequence[str], of: str) -> str:
    """All numbers, for those who can't hover."""
    if not lines:
        return ""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    label = text(f"Numbers of {of}")
    return f'<details><summary aria-label="{label}">numbers</summary><ul>{items}</ul></details>'


def _listing(matrix: Matrix) -> str:
    """What the entry of each skill costs every request."""
    rows = listing_rows(matrix)
    counts = any(count for _, _, count in rows)
    headers: list[Header] = [("skill", ""), ("tokens of its entry, estimated", "num")]
    headers += [("by the model's count", "num")] if counts else []
    body = [
        (
            text(_short_name(name)),
            [text(tokens), *([text(count or "–")] if counts else [])],
        )
        for name, tokens, count in rows
    ]
    listing = table("listing", "Tokens of the list of skills", headers, body)
    return f'<h3 class="listing">The list of skills, in every request</h3>{listing}'


def _short_name(name: str) -> str:
    return one_line(name, _LONGEST)


_MOST_SENTENCES: Final = 30
_CLASSES: Final = {"missed": "hurts", "could go": "helps", "better without": "helps"}


def parts_sections(studies: Sequence[Parts]) -> str:
    return "".join(_parts_section(parts) for parts in studies if parts.parts or parts.notes)


def _parts_section(parts: Parts) -> str:
    *closing, last = part_conclusions(parts) or [""]
    sentences = [
        part_sentence(sentence, parts.margin) for sentence in parts.sorted[:_MOST_SENTENCES]
    ]
    listed = "".join(f"<li>{text(sentence)}.</li>" for sentence in (*sentences, *closing))
    return (
        '<section class="skill"><h2>Parts</h2>'
        f'<p class="facts">{text(parts_title(parts))} · {text(parts.spent)}</p>'
        f'<p class="conclusion">{text(last)}.</p>'
        f"{_parts_table(parts) if parts.parts else ''}"
        f'<ul class="said">{listed}</ul></section>'
    )


def _parts_table(parts: Parts) -> str:
    headers: list[Header] = [("part", ""), *((name, "num") for name in PART_HEADERS[1:-1])]
    rows = [(f"{text(row.name)}", _part_cells(row)) for row in part_rows(parts)]
    table_html = table("numbers", "Parts of the skill", [*headers, ("verdict", "")], rows)
    return f'{table_html}<p class="note">{text(parts_legend(parts))}.</p>'


def _part_cells(row: PartRow) -> list[str]:
    kind = _CLASSES.get(row.word, row.word.replace(" ", "-"))
    word = f'<span class="word {kind}">{row.word}</span>'
    needs = f" <small>{text(row.needs)}</small>" if row.needs else ""
    return [*map(text, row.cells[1:-1]), word + needs]


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


def points_of_curve(parts: Parts) -> list[CurvePoint]:
    """From short to long, without the baseline; only what was measured."""
    versions = [
        CurvePoint(
            f"{version.tokens:,}",
            version.tokens,
            version.lift,
            "chosen" if version.folder else "version",
        )
        for version in parts.versions
        if version.lift
    ]
    lift = parts.held_out or parts.lift
    whole_skill = [CurvePoint("whole", parts.tokens, lift, "whole")] if lift else []
    return sorted([*versions, *whole_skill], key=lambda version: version.tokens)


def curve(parts: Parts) -> str | None:
    """The plot; None if no shorter version was measured."""
    points = points_of_curve(parts)
    if not any(point.kind != "whole" for point in points):
        return None
    axes = _Axes.of(points)
    drawn = axes.drawn()
    baseline = (axes.x(0), axes.y(0.0))
    places = [(axes.x(point.tokens), axes.y(point.lift.lift)) for point in points]
    for start, end in pairwise([baseline, *places]):
        drawn.append(line(*start, *end, "joint"))
    drawn.append(circle(*baseline, "dot baseline"))
    for point, (x, y) in zip(points, places, strict=True):
        drawn += _interval(point.lift, x, axes)
        if point.kind == "chosen":
            drawn.append(circle(x, y, "spot", 11))
        draw = diamond if point.kind == "whole" else circle
        drawn.append(draw(x, y, "dot skill"))
    names = [*(point.name for point in points), "without"]
    drawn += placed_names([*places, baseline], names, axes.bottom)
    description = "; ".join(["0 tokens: the baseline", *map(_point_words, points)])
    title = f"Lift of {parts.pair} against its tokens"
    return drawing("curve", axes.bottom + 24, title, description, drawn)


def curve_section(parts: Parts) -> str:
    """The plot and its numbers as a table; empty without versions."""
    picture, rows = curve(parts), curve_rows(parts)
    if not rows:
        return ""
    keys = [key("hollow", "without the skill"), key("rhomb full", "whole skill")]
    keys += [key("filled", "shorter version"), key("whisker", "95 % interval")]
    keys += [key("ring", "saved")] if any(version.folder for version in parts.versions) else []
    drawn = figure("Lift in points against tokens", picture, keys) if picture else ""
    headers: list[Header] = [("version", ""), *((name, "num") for name in CURVE_HEADERS[1:3])]
    body = [(text(row.name), [*map(text, row.cells[1:3]), _loss_words(row)]) for row in rows]
    numbers = table(
        "numbers curve", "Numbers of each version", [*headers, (CURVE_HEADERS[3], "")], body
    )
    return (
        f'<section class="skill"><h2>{text(parts.skill)}, shorter</h2>'
        f'<p class="facts">{text(curve_title(parts))}; no choice was based on these</p>'
        f'<div class="plots stacked">{drawn}</div>{numbers}</section>'
    )


def _loss_words(row: CurveRow) -> str:
    if not row.state:
        return text(row.loss)
    kind = {"loses": "hurts", "no loss shown": "helps"}.get(row.state, "unknown")
    return f'<span class="word {kind}">{text(row.loss)}</span>'


def _point_words(point: CurvePoint) -> str:
    kind = {"whole": "the whole skill", "version": "a version", "chosen": "the chosen version"}
    return f"{counted(point.tokens, 'token')}, {kind[point.kind]}: {points_words(point.lift)}"


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
        lows, highs = [point.lift.low for point in dots], [point.lift.high for point in dots]
        low = floor(min(0.0, *lows) / _STEP) * _STEP
        high = ceil(max(_STEP, *highs) / _STEP) * _STEP
        return cls(max(point.tokens for point in dots) * _BEYOND, low, high)

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
