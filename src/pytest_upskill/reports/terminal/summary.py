"""The summary at the end of a run, as lines of text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from ..._util.texts import counted, harmless, one_line
from ...results.summary import Summary
from ...results.verdict import Verdict, signal_lines, sweet_spot
from ...trials.trial import SkillInfo
from .columns import broken, width_of, wrapped
from .marks import ASCII_MARKS, Marks, marks_for
from .matrix import matrix_lines
from .quiet import COLOURS, quiet_lines
from .tables import Paint, table_lines

__all__ = ["ASCII_MARKS", "Marks", "Paint", "marks_for", "summary_lines"]

MOST_ROWS: Final = 12  # beyond that a matrix is shown
_MOST_NAMES: Final = 5
_ALL_WHOLE: Final[Mapping[tuple[str, str], str]] = {}


def summary_lines(
    skills: Sequence[SkillInfo],
    verdicts: Sequence[Verdict],
    *,
    width: int,
    marks: Marks,
    paint: Paint,
    notes: Sequence[str] = (),
    verbosity: int = 0,
    subsets: Mapping[tuple[str, str], str] = _ALL_WHOLE,
) -> list[str]:
    """Tables first and the verdicts last, since that is where eyes end.

    ``subsets`` are for who wants it quiet and gets no note of them.
    """
    if verbosity < 0:
        return [*quiet_lines(verdicts, subsets, width, marks, paint), *_notes(notes, width)]
    many = len(verdicts) > MOST_ROWS
    blocks = [matrix_lines(verdicts, width, marks, paint)] if many else []
    if not many or verbosity > 0:
        blocks += _tables(skills, verdicts, width, marks, paint)
    blocks.append(_notes(notes, width))
    if not many or verbosity > 0:
        blocks.append(_verdict_lines(verdicts, width, paint))
    if many:
        blocks.append(_counts(verdicts, width, paint, hint=verbosity <= 0))
    # Names inside of sentences were cut without a thought of the terminal.
    return [line.replace("…", marks.cut) for line in _with_blanks_between(blocks)]


def _with_blanks_between(blocks: Sequence[Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return lines


def _tables(
    skills: Sequence[SkillInfo], verdicts: Sequence[Verdict], width: int, marks: Marks, paint: Paint
) -> list[list[str]]:
    """For each skill its name and size, and a table with a row per model."""
    blocks = []
    for name, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        own = list(group)
        rows = [verdict.summary for verdict in own]
        skill = next(skill for skill in skills if skill.name == name)
        blocks.append(_title(skill, rows, width, marks, paint))
        blocks.append(table_lines(own, width, marks, paint))
    return blocks


def _title(
    skill: SkillInfo, rows: Sequence[Summary], width: int, marks: Marks, paint: Paint
) -> list[str]:
    cases, runs = max(row.cases for row in rows), sorted(_runs_in(rows))
    name = harmless(skill.name)
    span = (f"{runs[0]} to " if len(runs) > 1 else "") + counted(runs[-1], "run")
    size = f"{counted(cases, 'case')} {marks.times} {span}"
    rest = f"about {counted(skill.tokens, 'token')} {marks.dot} {size}"
    if width_of(name) + 3 + len(rest) > width:
        return [*(paint(part, bold=True) for part in broken(name, width)), rest]
    return [f"{paint(name, bold=True)} {marks.dot} {rest}"]


def _runs_in(rows: Sequence[Summary]) -> set[int]:
    """How many runs there are, which may differ from case to case."""
    return {row.runs for row in rows} | {case.runs for row in rows for case in row.by_case}


def _notes(notes: Sequence[str], width: int) -> list[str]:
    return [line for note in notes for line in wrapped(harmless(note), width)]


def _verdict_lines(verdicts: Sequence[Verdict], width: int, paint: Paint) -> list[str]:
    """What it amounts to, model by model, and over all models of a skill."""
    several = len({verdict.summary.skill for verdict in verdicts}) > 1
    lines: list[str] = []
    for skill, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        own = list(group)
        for verdict in own:
            lines += _verdict(verdict, _place(verdict) if several else None, width, paint)
        if spot := sweet_spot(own):
            of = f" of {one_line(skill, 60)}" if several else ""
            lines += wrapped(f"Sweet spot{of}: {harmless(spot)}", width, rest="  ")
    return lines


def _verdict(verdict: Verdict, place: str | None, width: int, paint: Paint) -> list[str]:
    where = place or harmless(verdict.summary.model)
    word = f"{verdict.word}: " if verdict.word else ""
    lines = wrapped(f"{where}: {word}{harmless(verdict.sentence)}.", width, rest="  ")
    if verdict.word in COLOURS:
        painted = paint(verdict.word, bold=True, **{COLOURS[verdict.word]: True})
        lines = _painted_once(lines, f": {verdict.word}:", f": {painted}:")
    since = [verdict.since.sentence] if verdict.since else []
    for line in [*since, *signal_lines(verdict)]:
        lines += wrapped(line, width, first="  ", rest="    ")
    return lines


def _painted_once(lines: Sequence[str], old: str, new: str) -> list[str]:
    """Only where the word stands whole on a line: a name may be so long that it does not."""
    at = next((number for number, line in enumerate(lines) if old in line), len(lines))
    painted = [line.replace(old, new, 1) for line in lines[at : at + 1]]
    return [*lines[:at], *painted, *lines[at + 1 :]]


def _place(verdict: Verdict) -> str:
    return f"{harmless(verdict.summary.skill)} on {harmless(verdict.summary.model)}"


def _counts(verdicts: Sequence[Verdict], width: int, paint: Paint, *, hint: bool) -> list[str]:
    """How many verdicts there are of each kind; those to look at are named."""
    found = Counter(verdict.word for verdict in verdicts if verdict.word)
    counts = ", ".join(f"{word} {number}" for word, number in found.most_common())
    lines = wrapped(f"{counts[0].upper()}{counts[1:]}.", width, rest="  ") if counts else []
    named = {
        "hurts": [verdict for verdict in verdicts if verdict.word == "hurts"],
        "incomplete": [verdict for verdict in verdicts if verdict.word == "incomplete"],
        "worse than at the ref": [v for v in verdicts if v.since and v.since.word == "worse"],
    }
    for word, own in named.items():
        if own:
            shown = ", ".join(one_line(_place(verdict), 120) for verdict in own[:_MOST_NAMES])
            more = f" and {len(own) - _MOST_NAMES} more" if len(own) > _MOST_NAMES else ""
            told = wrapped(f"{word}: {shown}{more}", width, rest="  ")
            lines += [told[0].replace(word, paint(word, red=True, bold=True), 1), *told[1:]]
    return [*lines, *(["-v shows the table of each skill."] if hint else [])]
