"""What studies found, on the page: the matrix of neighbours, parts, the curve of versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from ..._util.texts import counted, one_line, points, whole
from ...results.arm_comparison import points_words
from ...results.effects import spent
from ...results.neighbours import (
    Alone,
    Matrix,
    conclusion,
    listing_sentence,
    neighbour_only,
    open_sentences,
    shown_sentences,
)
from ...results.parts import Parts, conclusions, part_sentence
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
    said = [
        *shown_sentences(matrix, _MOST_SHOWN),
        *open_sentences(matrix, _MOST_OPEN),
        *neighbour_only(matrix),
        listing_sentence(matrix),
    ]
    listed = "".join(f"<li>{text(one)}.</li>" for one in said)
    return (
        f'<section class="skill"><h2>Neighbours</h2>'
        f'<p class="facts">{text(matrix.model)} · {text(spent(matrix))}</p>'
        f'<p class="conclusion">{text(conclusion(matrix))}.</p>'
        f'<ul class="said">{listed}</ul>'
        f"{_matrix(matrix)}"
        f'<p class="note">{text(matrix_legend(matrix))}.</p>'
        f"{_listing(matrix)}</section>"
    )


def _matrix(matrix: Matrix) -> str:
    """A row for each tested skill, a column for each neighbour, the last for all of them."""
    columns = matrix.columns
    names = [_short_name(column_name(one)) for one in columns]
    heads = ["skill", ALONE, *(f"with {one}" for one in names)]
    head = "".join(f'<th scope="col" role="columnheader">{text(one)}</th>' for one in heads)
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">{text(_short_name(one.skill))}</th>'
        f"{_alone(one)}"
        f"{''.join(_pair_td(matrix, one.skill, other) for other in columns)}</tr>"
        for one in matrix.alone
    )
    title = f"What neighbours do to each skill, on {_short_name(matrix.model)}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="matrix neighbours" role="table"><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _alone(one: Alone) -> str:
    number, *span = alone_cell(one)
    more = _folded(opening_lines(one.openings), f"{one.skill} alone")
    return _td("alone", ALONE, f"<b>{text(number)}</b> {_small(span)}{more}")


def _pair_td(matrix: Matrix, skill: str, other: str | None) -> str:
    pair, name = matrix.pair(skill, other), f"with {_short_name(column_name(other))}"
    if pair is None:
        same = skill == other
        return _td("self", name, '<span aria-label="itself">–</span>' if same else "")
    cell, lines = pair_cell(pair), details(pair)
    hover = "; ".join(lines)
    shown = (
        f'<span title="{text(hover)}"><b>{text(cell.change)}</b> '
        f'<span class="word {pair.word}">{pair.word}</span></span> '
        f"{_small([cell.span, cell.needs])}"
    )
    return _td(pair.word, name, shown + _folded(lines, f"{skill} {name}"))


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
    seen = any(one for _, _, one in rows)
    headers: list[Header] = [("skill", ""), ("tokens of its entry, estimated", "num")]
    headers += [("by the model's count", "num")] if seen else []
    body = [
        (text(_short_name(name)), [text(tokens), *([text(told or "–")] if seen else [])])
        for name, tokens, told in rows
    ]
    made = table("listing", "Tokens of the list of skills", headers, body)
    return f'<h3 class="listing">The list of skills, in every request</h3>{made}'


def _short_name(name: str) -> str:
    return one_line(name, _LONGEST)


_MOST_SENTENCES: Final = 30
_CLASSES: Final = {"missed": "hurts", "could go": "helps", "better without": "helps"}


def parts_sections(found: Sequence[Parts]) -> str:
    return "".join(_parts_section(one) for one in found if one.parts or one.notes)


def _parts_section(found: Parts) -> str:
    *said, last = conclusions(found) or [""]
    told = [part_sentence(one, found.margin) for one in found.sorted[:_MOST_SENTENCES]]
    listed = "".join(f"<li>{text(one)}.</li>" for one in (*told, *said))
    return (
        '<section class="skill"><h2>Parts</h2>'
        f'<p class="facts">{text(parts_title(found))} · {text(spent(found))}</p>'
        f'<p class="conclusion">{text(last)}.</p>'
        f"{_parts_table(found) if found.parts else ''}"
        f'<ul class="said">{listed}</ul></section>'
    )


def _parts_table(found: Parts) -> str:
    headers: list[Header] = [("part", ""), *((name, "num") for name in PART_HEADERS[1:-1])]
    rows = [(f"{text(row.name)}", _part_cells(row)) for row in part_rows(found)]
    made = table("numbers", "Parts of the skill", [*headers, ("verdict", "")], rows)
    return f'{made}<p class="note">{text(parts_legend(found))}.</p>'


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
    described = "; ".join(["0 tokens: the baseline", *map(_point_words, dots)])
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
    headers: list[Header] = [("version", ""), *((name, "num") for name in CURVE_HEADERS[1:3])]
    body = [(text(row.name), [*map(text, row.cells[1:3]), _loss_words(row)]) for row in rows]
    numbers = table(
        "numbers curve", "Numbers of each version", [*headers, (CURVE_HEADERS[3], "")], body
    )
    return (
        f'<section class="skill"><h2>{text(found.skill)}, shorter</h2>'
        f'<p class="facts">{text(curve_title(found))}; no choice was based on these</p>'
        f'<div class="plots stacked">{drawn}</div>{numbers}</section>'
    )


def _loss_words(row: CurveRow) -> str:
    if not row.state:
        return text(row.loss)
    kind = {"loses": "hurts", "no loss shown": "helps"}.get(row.state, "unknown")
    return f'<span class="word {kind}">{text(row.loss)}</span>'


def _point_words(one: CurvePoint) -> str:
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
