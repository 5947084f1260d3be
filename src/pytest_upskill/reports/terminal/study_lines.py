"""What studies found, on the terminal."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.contrasts import ContrastWord
from ...results.study import Study
from ..study_tables import StudyTable, arm_table, contrast_table, facts_of, legend_of
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .tables import KEEP, Cell, Column, Style, Table, fitted

_STYLES: Final[dict[ContrastWord, Style]] = {
    "hurts": {"red": True, "bold": True},
    "helps": {"green": True, "bold": True},
    "no loss shown": {"green": True},
    "no change shown": {"light": True},
    "not known": {"light": True},
    "incomplete": {"red": True},
}
_MOST_ROWS: Final = 12  # with -v all
_WIDE: Final = 100  # columns, for intervals of tokens
# The length of names, and which columns may be dropped then.
_LAYOUTS: Final = (
    *((length, 0) for length in range(48, 25, -2)),
    *((length, 20) for length in range(48, 17, -2)),
    (12, 30),
)
_PRIORITIES: Final = {"tokens": 10, "opened": 20}


def study_lines(studies: Sequence[Study], look: TerminalLook) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    return [line for study in studies for line in ("", *_study(study, look))]


def _study(study: Study, look: TerminalLook) -> list[str]:
    """A table of contrasts, one of arms, then sentences; with -v all rows."""
    verbose, dot = look.verbosity > 0, look.marks.dot
    title = harmless(f"{one_line(study.title, 80)} {dot} {facts_of(study, dot)}")
    first, *more = wrapped(title.replace("×", look.marks.times), look.width, rest="  ")
    most = None if verbose else _MOST_ROWS
    contrasts = contrast_table(study, most, brief=look.width < _WIDE)
    folded = [f"{contrasts.folded} (-v shows them)"] if contrasts.folded else []
    blocks = [
        [look.paint(first, bold=True), *more],
        _table(contrasts, look),
        _sentences([*folded, legend_of(study)] if study.contrasts else [], look),
        _table(arm_table(study, every=verbose), look),
        _sentences(study.conclusions, look),
    ]
    return [line.replace("…", look.marks.cut) for line in spaced(blocks)]


def _table(table: StudyTable, look: TerminalLook) -> list[str]:
    """With names as long as there is room for; tokens are dropped first."""
    if not table.rows:
        return []
    columns = [
        Column(name, name == "tokens", _PRIORITIES.get(name, KEEP)) for name in table.headers
    ]
    styles = [_STYLES[word] for word in table.words] or [{}] * len(table.rows)

    def layout(longest: int, drop_below: int) -> Table:
        names = distinct_names([row[0] for row in table.rows], longest, look.marks.cut)
        rows = [
            [Cell(names[name]), *(Cell(harmless(value)) for value in values), Cell(last, style)]
            for (name, *values, last), style in zip(table.rows, styles, strict=True)
        ]
        return Table(columns, rows, drop_below=drop_below)

    return fitted((layout(*each) for each in _LAYOUTS), look.width).lines(look)


def _sentences(sentences: Sequence[str], look: TerminalLook) -> list[str]:
    return [
        line
        for sentence in sentences
        for line in wrapped(f"{harmless(sentence)}.", look.width, rest="  ")
    ]
