"""Studies on a terminal: a table and what it means, details, and sentences."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.contrasts import Study
from ...results.model_change import CAN_GO, HELPS, HURTS, ModelChange
from ..model_change_tables import facts_of as model_change_facts
from ..model_change_tables import legend_of as model_change_legend
from ..model_change_tables import model_change_table, score_table
from ..study_tables import StudyTable, arm_table, contrast_table, facts_of, legend_of
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .routing_lines import sentences
from .tables import KEEP, Cell, Column, Style, Table, fitted

_WORD_STYLES: Final[dict[str, Style]] = {  # of contrasts, and of skills on two models
    **{word: {"red": True, "bold": True} for word in HURTS},
    **{word: {"green": True, "bold": True} for word in (*HELPS, "better")},
    **{word: {"cyan": True, "bold": True} for word in CAN_GO},
    **{
        word: {"yellow": True, "bold": True}
        for word in ("no longer helps", "lift fell")
    },
    "no loss shown": {"green": True},
    "no change shown": {"light": True},
    "no effect shown": {"light": True},
    "not known": {"light": True},
    "can't tell": {"light": True},
    "lift rose": {"light": True},
    "incomplete": {"red": True},
}
_MOST_CONTRASTS: Final = 12  # with -v all
_WIDE: Final = 100  # columns, for intervals of tokens
# The length of names, and which columns may be dropped then.
_LAYOUTS: Final = (
    *((length, 0) for length in range(48, 25, -2)),
    *((length, 20) for length in range(48, 17, -2)),
    (12, 30),
)
_PRIORITIES: Final = {
    "runs": 5,
    "cases": 6,
    "tokens": 10,
    "lift, old": 12,
    "lift, new": 13,
    "opened": 20,
}


def study_lines(studies: Sequence[Study], look: TerminalLook) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    return [line for study in studies for line in ("", *_study(study, look))]


def _study(study: Study, look: TerminalLook) -> list[str]:
    """A table of contrasts, one of arms, then sentences; with -v all rows."""
    contrasts = contrast_table(study, _most_rows(look), brief=look.width < _WIDE)
    arms = arm_table(study, every=look.verbosity > 0)
    legend = legend_of(study) if study.contrasts else ""
    facts = (
        f"{one_line(study.title, 80)} {look.marks.dot}"
        f" {facts_of(study, look.marks.dot)}"
    )
    return _block(
        facts,
        contrasts,
        legend=legend,
        details=arms,
        conclusions=study.conclusions,
        look=look,
    )


def model_change_lines(changes: Sequence[ModelChange], look: TerminalLook) -> list[str]:
    """A block for each agent, with a blank line before it; with -v all rows,
    and the scores.
    """
    dot, lines = look.marks.dot, list[str]()
    for change in changes:
        skills = model_change_table(change, _most_rows(look), brief=look.width < _WIDE)
        scores = score_table(change) if look.verbosity > 0 else StudyTable((), ())
        facts = f"{change.title} {dot} {model_change_facts(change, dot)}"
        legend = model_change_legend(change) if change.skills else ""
        lines += [
            "",
            *_block(
                facts,
                skills,
                legend=legend,
                details=scores,
                conclusions=change.conclusions,
                look=look,
            ),
        ]
    return lines


def _most_rows(look: TerminalLook) -> int | None:
    return None if look.verbosity > 0 else _MOST_CONTRASTS


def _block(
    facts: str,
    table: StudyTable,
    *,
    legend: str,
    details: StudyTable,
    conclusions: Sequence[str],
    look: TerminalLook,
) -> list[str]:
    """A title, a table and what it means, a table of details, then sentences."""
    title = harmless(facts).replace("×", look.marks.times)
    first, *more = wrapped(title, look.width, rest="  ")
    folded = f"{table.folded} (-v shows them)" if table.folded else ""
    blocks = [
        [look.paint(first, bold=True), *more],
        _study_table(table, look),
        sentences([*filter(None, [folded, legend])], look),
        _study_table(details, look),
        sentences(conclusions, look),
    ]
    marks = look.marks
    return [
        line.replace("…", marks.cut).replace("→", marks.arrow)
        for line in spaced(blocks)
    ]


def _study_table(table: StudyTable, look: TerminalLook) -> list[str]:
    """With names as long as there is room for; tokens are dropped first."""
    if not table.rows:
        return []
    columns = [
        Column(name, name == "tokens", _PRIORITIES.get(name, KEEP))
        for name in table.headers
    ]
    styles = [_WORD_STYLES[word] for word in table.words] or [{}] * len(table.rows)

    def layout(longest: int, drop_below: int) -> Table:
        names = distinct_names([row[0] for row in table.rows], longest, look.marks.cut)
        rows = [
            [
                Cell(names[name]),
                *(Cell(harmless(value)) for value in values),
                Cell(last, style),
            ]
            for (name, *values, last), style in zip(table.rows, styles, strict=True)
        ]
        return Table(columns, rows, drop_below=drop_below)

    return fitted((layout(*each) for each in _LAYOUTS), look.width).lines(look)
