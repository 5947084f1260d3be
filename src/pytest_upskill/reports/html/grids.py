"""Tables in plain HTML that scroll where they are too wide and are cards on a phone."""

from collections.abc import Sequence

from .shell import text

Header = tuple[str, str]  # its words, its class
Cell = tuple[str, str, str]  # the header that it has on a card, what it holds as HTML, its class
Row = tuple[str, Sequence[Cell]]  # what it is about, as HTML


def table(kind: str, title: str, headers: Sequence[Header], rows: Sequence[Row]) -> str:
    """The roles are those that the elements have anyway, until a style makes cards of them."""
    head = "".join(
        f'<th scope="col" role="columnheader"{_class(of)}>{text(name)}</th>' for name, of in headers
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{head}</tr>'
        f'</thead><tbody role="rowgroup">{"".join(map(_row, rows))}</tbody></table></div>'
    )


def _row(row: Row) -> str:
    about, cells = row
    told = "".join(
        f'<td role="cell"{_class(of)} data-name="{text(name)}">{held}</td>'
        for name, held, of in cells
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{about}</th>{told}</tr>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
