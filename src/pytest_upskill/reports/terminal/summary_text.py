"""The summary at the end of a run, as lines of text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from ..._util.texts import counted, harmless, one_line, points
from ...results.summary import Summary
from ...results.verdict import Verdict, signal_lines, sweet_spot
from ...trials.plan import SkillInfo
from .layout import (
    ASCII_MARKS,
    Marks,
    broken,
    cut_inside,
    marks_for,
    padded,
    told_apart,
    width_of,
    wrapped,
)
from .tables import (
    LIFT_COLOURS,
    Cell,
    Paint,
    change,
    column_widths,
    drawn,
    interval,
    lift_cell,
    table_lines,
)

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
    since = [verdict.since] if verdict.since else []
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
        "worse than at the ref": [
            v for v in verdicts if (since := v.over("previous")) and since.word == "worse"
        ],
    }
    for word, own in named.items():
        if own:
            shown = ", ".join(one_line(_place(verdict), 120) for verdict in own[:_MOST_NAMES])
            more = f" and {len(own) - _MOST_NAMES} more" if len(own) > _MOST_NAMES else ""
            told = wrapped(f"{word}: {shown}{more}", width, rest="  ")
            lines += [told[0].replace(word, paint(word, red=True, bold=True), 1), *told[1:]]
    return [*lines, *(["-v shows the table of each skill."] if hint else [])]


_SKILL_AT_MOST: Final = 28
_MODEL_AT_MOST: Final = (60, 24)  # the second where not all models would fit beside each other
_BETWEEN: Final = "  "
_MISSING: Final = "!"


def matrix_lines(verdicts: Sequence[Verdict], width: int, marks: Marks, paint: Paint) -> list[str]:
    """As many matrices below each other as the models need, and how to read them."""
    of = {(verdict.summary.skill, verdict.summary.model): verdict for verdict in verdicts}
    skills = {skill: cut_inside(harmless(skill), _SKILL_AT_MOST, marks.cut) for skill, _ in of}
    first = max(map(width_of, ("skill", *skills.values())))
    for most in _MODEL_AT_MOST:
        # Like the cells below it a head ends with a column that is for the mark.
        heads = {model: cut_inside(harmless(model), most, marks.cut) + " " for _, model in of}
        broad = {model: width_of(head) for model, head in heads.items()}
        for (_, model), verdict in of.items():
            broad[model] = max(broad[model], _cell_width(verdict, marks))
        groups = list(_that_fit(broad, width - first))
        if len(groups) == 1:
            break
    lines: list[str] = []
    for models in groups:
        head = [padded("skill", first), *(padded(heads[m], broad[m], right=True) for m in models)]
        top = _BETWEEN.join(head).rstrip()
        lines += [*([""] if lines else []), top, marks.rule * width_of(top)]
        for skill, name in skills.items():
            cells = [_cell(of.get((skill, model)), broad[model], marks, paint) for model in models]
            lines.append(_BETWEEN.join([padded(name, first), *cells]).rstrip())
    legend = "Pass rates in %, without and with the skill, and the lift"
    if any(verdict.word == "incomplete" for verdict in verdicts):
        legend += f"; {_MISSING} is incomplete"
    return [*lines, "", *wrapped(f"{legend}.", width, rest="  ")]


def _that_fit(broad: Mapping[str, int], room: int) -> Iterator[list[str]]:
    """The models in groups, each at most as broad as the room, but at least one."""
    group: list[str] = []
    for model in broad:
        taken = sum(len(_BETWEEN) + broad[one] for one in [*group, model])
        if group and taken > room:
            yield group
            group = []
        group.append(model)
    yield group


def _rates(verdict: Verdict, marks: Marks) -> str:
    row = verdict.summary
    rates = (row.arm("baseline").rate, row.arm("skill").rate)
    known = [rate for rate in rates if rate is not None]
    return marks.arrow.join(str(round(100 * rate)) for rate in known) or "-"


def _cell_width(verdict: Verdict, marks: Marks) -> int:
    lift = verdict.summary.lift
    return width_of(_rates(verdict, marks)) + (len(points(lift)) + 2 if lift is not None else 1)


def _cell(verdict: Verdict | None, broad: int, marks: Marks, paint: Paint) -> str:
    if verdict is None:
        return padded("- ", broad, right=True)
    mark = paint(_MISSING, red=True) if verdict.word == "incomplete" else " "
    text = " " * (broad - _cell_width(verdict, marks)) + _rates(verdict, marks)
    if verdict.summary.lift is None:
        return f"{text}{mark}"
    lift = lift_cell(verdict)
    shown = paint(lift.text, **lift.style) if lift.style else lift.text
    return f"{text} {shown}{mark}"


COLOURS: Final = {**LIFT_COLOURS, "incomplete": "red"}


@dataclass(frozen=True)
class _Layout:
    name: int  # the most that a name may take
    gap: str = " "
    interval: bool = True
    tokens: bool = True
    subset: bool = True  # says how many cases were asked, if not all


_DENSER: Final = (
    _Layout(0),
    _Layout(0, gap=""),
    _Layout(0, gap="", interval=False),
    _Layout(0, gap="", interval=False, tokens=False),
    _Layout(0, gap="", interval=False, tokens=False, subset=False),
)
# Names get shorter and never longer again, so that less room never shows more of them. The last
# layout of a length drops what the next shorter one may have again.
_LAYOUTS: Final = (
    *(_Layout(name) for name in range(60, 24, -4)),
    *(replace(layout, name=name) for name in (24, 20, 16) for layout in _DENSER[:3]),
    *(replace(layout, name=name) for name in (12, 8) for layout in _DENSER[1:]),
)


def quiet_lines(
    verdicts: Sequence[Verdict],
    subsets: Mapping[tuple[str, str], str],
    width: int,
    marks: Marks,
    paint: Paint,
) -> list[str]:
    skills = [verdict.summary.skill for verdict in verdicts]
    models = [verdict.summary.model for verdict in verdicts]
    for layout in _LAYOUTS:
        names = [
            told_apart(dict.fromkeys(given), layout.name, marks.cut) for given in (skills, models)
        ]
        rows = [_row(verdict, names, subsets, layout, marks) for verdict in verdicts]
        table = [[cell for cell, _ in row] for row in rows]
        widths = column_widths(table)
        if sum(widths) + len(_BETWEEN) * (len(widths) - 1) <= width:
            break
    right = [to_right for _, to_right in rows[0]]
    return [line for row in table for line in drawn(row, widths, right, _BETWEEN, paint)]


def _row(
    verdict: Verdict,
    names: Sequence[Mapping[str, str]],
    subsets: Mapping[tuple[str, str], str],
    layout: _Layout,
    marks: Marks,
) -> list[tuple[Cell, bool]]:
    """Each cell, and whether it stands at the right of its column."""
    row, arrow = verdict.summary, f"{layout.gap}{marks.arrow}{layout.gap}"
    lift = lift_cell(verdict)
    likely = interval(verdict) if layout.interval else None
    cells = [
        (Cell(names[0][row.skill]), False),
        (Cell(names[1][row.model]), False),
        (Cell(change(row.arm("baseline").rate, row.arm("skill").rate, arrow, ".0%")), True),
        (Cell(f"{lift.text} ({likely})" if likely else lift.text, lift.style), False),
    ]
    if layout.tokens:
        tokens = change(row.arm("baseline").tokens, row.arm("skill").tokens, arrow, ",.0f")
        cells.append((Cell(f"{tokens} tokens" if tokens != "-" else tokens), True))
    subset = subsets.get((row.skill, row.model)) if layout.subset else None
    return [*cells, (_word(verdict, subset), False)]


def _word(verdict: Verdict, subset: str | None) -> Cell:
    row, word = verdict.summary, verdict.word or ""
    missing = [counted(row.errored, "error")] if row.errored else []
    missing += [f"{row.not_run:,} not run"] if row.not_run else []
    missing += [subset] if subset else []
    text = f"{word} ({', '.join(missing)})".lstrip() if missing else word
    return Cell(text, {COLOURS[word]: True, "bold": True} if word in COLOURS else {})
