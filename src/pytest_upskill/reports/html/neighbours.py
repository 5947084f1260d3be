"""The matrix of neighbours as a part of the page."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import one_line
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
from ..neighbours import (
    ALONE,
    alone_cell,
    column_name,
    details,
    legend,
    listing_rows,
    opening_lines,
    pair_cell,
)
from .markup import Header, table, text

_LONGEST: Final = 80  # characters of a name in a table
_MOST_SHOWN: Final = 12
_MOST_OPEN: Final = 6


def neighbour_sections(matrices: Sequence[Matrix]) -> str:
    return "".join(map(_section, matrices))


def _section(matrix: Matrix) -> str:
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
        f'<p class="note">{text(legend(matrix))}.</p>'
        f"{_listing(matrix)}</section>"
    )


def _matrix(matrix: Matrix) -> str:
    """A row for each tested skill, a column for each neighbour, the last for all of them."""
    columns = matrix.columns
    names = [_name(column_name(one)) for one in columns]
    heads = ["skill", ALONE, *(f"with {one}" for one in names)]
    head = "".join(f'<th scope="col" role="columnheader">{text(one)}</th>' for one in heads)
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">{text(_name(one.skill))}</th>'
        f"{_alone(one)}"
        f"{''.join(_cell(matrix, one.skill, other) for other in columns)}</tr>"
        for one in matrix.alone
    )
    title = f"What neighbours do to each skill, on {_name(matrix.model)}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="matrix neighbours" role="table"><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _alone(one: Alone) -> str:
    number, *span = alone_cell(one)
    more = _folded(opening_lines(one.openings), f"{one.skill} alone")
    return _td("alone", ALONE, f"<b>{text(number)}</b> {_small(span)}{more}")


def _cell(matrix: Matrix, skill: str, other: str | None) -> str:
    pair, name = matrix.pair(skill, other), f"with {_name(column_name(other))}"
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
        (text(_name(name)), [text(tokens), *([text(told or "–")] if seen else [])])
        for name, tokens, told in rows
    ]
    made = table("listing", "Tokens of the list of skills", headers, body)
    return f'<h3 class="listing">The list of skills, in every request</h3>{made}'


def _name(name: str) -> str:
    return one_line(name, _LONGEST)
