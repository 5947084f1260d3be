"""The parts of a skill as a part of the page."""

from collections.abc import Sequence
from typing import Final

from ...results.effects import spent
from ...results.parts import Parts, conclusions, part_sentence
from ..parts import HEADERS, PartRow, legend, part_rows, parts_title
from .markup import Header, table, text

_MOST_SENTENCES: Final = 30
_CLASSES: Final = {"missed": "hurts", "could go": "helps", "better without": "helps"}


def parts_sections(found: Sequence[Parts]) -> str:
    return "".join(_section(one) for one in found if one.parts or one.notes)


def _section(found: Parts) -> str:
    *said, last = conclusions(found) or [""]
    told = [part_sentence(one, found.margin) for one in found.sorted[:_MOST_SENTENCES]]
    listed = "".join(f"<li>{text(one)}.</li>" for one in (*told, *said))
    return (
        '<section class="skill"><h2>Parts</h2>'
        f'<p class="facts">{text(parts_title(found))} · {text(spent(found))}</p>'
        f'<p class="conclusion">{text(last)}.</p>'
        f"{_table(found) if found.parts else ''}"
        f'<ul class="said">{listed}</ul></section>'
    )


def _table(found: Parts) -> str:
    headers: list[Header] = [("part", ""), *((name, "num") for name in HEADERS[1:-1])]
    rows = [(f"{text(row.name)}", _cells(row)) for row in part_rows(found)]
    made = table("numbers", "Parts of the skill", [*headers, ("verdict", "")], rows)
    return f'{made}<p class="note">{text(legend(found))}.</p>'


def _cells(row: PartRow) -> list[str]:
    kind = _CLASSES.get(row.word, row.word.replace(" ", "-"))
    word = f'<span class="word {kind}">{row.word}</span>'
    needs = f" <small>{text(row.needs)}</small>" if row.needs else ""
    return [*map(text, row.cells[1:-1]), word + needs]
