"""What studies found, on the page."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import one_line
from ...results.study import Study
from ..study_tables import StudyTable, arm_table, contrast_table, facts_of, legend_of
from .markup import Header, table, text

_MOST_ROWS: Final = 24
_LONGEST_NAME: Final = 80
_CLASSES: Final = {"no loss shown": "helps", "no change shown": "unknown", "not known": "unknown"}


def study_sections(studies: Sequence[Study]) -> str:
    return "".join(map(_section, studies))


def _section(study: Study) -> str:
    """What to remember, the contrasts, all arms folded, and the other sentences."""
    *sentences, last = study.conclusions or ("",)
    contrasts = contrast_table(study, _MOST_ROWS)
    items = "".join(f"<li>{text(sentence)}.</li>" for sentence in sentences)
    listed = f'<ul class="said">{items}</ul>' if items else ""
    remember = f'<p class="conclusion">{text(last)}.</p>' if last else ""
    name = f"{study.title}, {study.label}"
    every = _folded(contrasts.folded, f"All contrasts: {name}", contrast_table(study))
    return (
        f'<section class="skill"><h2>{text(study.title)}</h2>'
        f'<p class="facts">{text(facts_of(study))}</p>{remember}'
        f"{_table(name, contrasts)}{every if contrasts.folded else ''}"
        f'<p class="note">{text(legend_of(study))}.</p>'
        f"{_folded('Numbers of each arm', f'Arms: {name}', arm_table(study, every=True))}"
        f"{listed}</section>"
    )


def _table(title: str, contents: StudyTable) -> str:
    headers: list[Header] = [
        (name, "num" if name in ("change", "tokens", "score") else "") for name in contents.headers
    ]
    rows = [
        (text(one_line(name, _LONGEST_NAME)), [*map(text, values)])
        for name, *values in contents.rows
    ]
    for (_, cells), word in zip(rows, contents.words, strict=False):
        cells[-1] = f'<span class="word {_CLASSES.get(word, word)}">{cells[-1]}</span>'
    return table("numbers", title, headers, rows) if rows else ""


def _folded(summary: str, title: str, contents: StudyTable) -> str:
    return f"<details><summary>{text(summary)}</summary>{_table(title, contents)}</details>"
