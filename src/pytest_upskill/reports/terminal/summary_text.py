"""The summary at the end of a run: tables first, verdicts last, since that is where eyes end."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Final

from ..._util.texts import counted, harmless, one_line, percent, points
from ...results.arm_comparison import SCORE_WORDS, Comparison
from ...results.run import RunResults
from ...results.summary import Summary, case_words
from ...results.triggers import TriggerSummary
from ...results.verdict import Verdict, signal_lines, sweet_spot
from ...trials.plan import SkillInfo
from ..measured import Measured
from ..numbers import CHANGE, COST, KEEP, LIFT, Number, shown_numbers
from .layout import Look, Marks, cut, cut_middle, padded, split_name, text_width, wrapped
from .study_lines import study_lines
from .tables import Cell, Column, Table, first_that_fits
from .trigger_lines import trigger_tables, trigger_verdicts

MOST_ROWS: Final = 12  # beyond that a matrix is shown
_MOST_NAMES: Final = 5


def results_lines(results: RunResults, look: Look, notes: Sequence[str] = ()) -> list[str]:
    """Of all that a run tested, and of its studies."""
    tested = summary_lines(
        results.skills,
        results.verdicts,
        look,
        notes,
        results.trigger_summaries,
    )
    studied = study_lines(results, look)
    return [*tested, *(studied if tested else studied[1:])]


def summary_lines(
    skills: Sequence[SkillInfo],
    verdicts: Sequence[Verdict],
    look: Look,
    notes: Sequence[str] = (),
    triggers: Sequence[TriggerSummary] = (),
) -> list[str]:
    """Tables, notes, and verdicts."""
    many = len(verdicts) > MOST_ROWS
    blocks = [matrix_lines(verdicts, look)] if many else []
    if not many or look.verbosity > 0:
        blocks += _tables(skills, verdicts, look)
    blocks += trigger_tables(triggers, look)
    blocks.append(_notes(notes, look))
    if not many or look.verbosity > 0:
        blocks.append(_verdict_lines(verdicts, look))
    if many:
        blocks.append(_counts(verdicts, look))
    blocks.append(trigger_verdicts(triggers, look))
    # Names inside sentences are cut with a mark that the terminal may not have.
    return [line.replace("…", look.marks.cut) for line in _with_blanks_between(blocks)]


def _with_blanks_between(blocks: Sequence[Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return lines


def _tables(
    skills: Sequence[SkillInfo], verdicts: Sequence[Verdict], look: Look
) -> list[list[str]]:
    """For each skill its name and size, and a table with a row per model."""
    blocks = []
    for name, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        own = list(group)
        skill = next(skill for skill in skills if skill.name == name)
        blocks.append(_title(skill, [verdict.summary for verdict in own], look))
        blocks.append(skill_table(own, look))
    return blocks


def _title(skill: SkillInfo, rows: Sequence[Summary], look: Look) -> list[str]:
    runs = sorted(_runs_in(rows))
    name, dot = harmless(skill.name), look.marks.dot
    span = (f"{runs[0]} to " if len(runs) > 1 else "") + counted(runs[-1], "run")
    size = f"{case_words(rows)} {look.marks.times} {span}"
    rest = f"about {counted(skill.tokens, 'token')} {dot} {size}"
    rest += f" {dot} {SCORE_WORDS[skill.score]}" if skill.score != "pass" else ""
    if text_width(name) + 3 + len(rest) > look.width:
        return [*(look.paint(part, bold=True) for part in split_name(name, look.width)), rest]
    return [f"{look.paint(name, bold=True)} {dot} {rest}"]


def _runs_in(rows: Sequence[Summary]) -> set[int]:
    """How many runs there are, which may differ from case to case."""
    return {row.runs for row in rows} | {case.runs for row in rows for case in row.by_case}


def _notes(notes: Sequence[str], look: Look) -> list[str]:
    return [line for note in notes for line in wrapped(harmless(note), look.width)]


def _verdict_lines(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """The verdict on each model, then the sweet spot of each skill."""
    several = len({verdict.summary.skill for verdict in verdicts}) > 1
    lines: list[str] = []
    for skill, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        own = list(group)
        for verdict in own:
            where = _pair(verdict) if several else harmless(verdict.summary.model)
            lines += _verdict(verdict, where, look)
        if spot := sweet_spot(own):
            of = f" of {one_line(skill, 60)}" if several else ""
            lines += wrapped(f"Sweet spot{of}: {harmless(spot)}", look.width, rest="  ")
    return lines


def _verdict(verdict: Verdict, where: str, look: Look) -> list[str]:
    word = f"{verdict.word}: " if verdict.word else ""
    lines = wrapped(f"{where}: {word}{harmless(verdict.sentence)}.", look.width, rest="  ")
    if style := verdict_style(verdict.word):
        painted = look.paint(verdict.word, **style)
        lines = _painted_once(lines, f": {verdict.word}:", f": {painted}:")
    if verdict.since:
        lines += _since(verdict.since, verdict.over("previous"), look)
    for line in signal_lines(verdict):
        lines += wrapped(line, look.width, first="  ", rest="    ")
    return lines


def _since(text: str, change: Comparison | None, look: Look) -> list[str]:
    """The skill compared with itself at a git ref, painted like a verdict."""
    lines = wrapped(harmless(text), look.width, first="  ", rest="    ")
    word = change.word if change else ""
    if style := change_style(word):
        lines = _painted_once(lines, f": {word},", f": {look.paint(word, **style)},")
    return lines


def _painted_once(lines: Sequence[str], old: str, new: str) -> list[str]:
    """A long name may have broken the word over two lines: then it is not painted."""
    at = next((number for number, line in enumerate(lines) if old in line), len(lines))
    painted = [line.replace(old, new, 1) for line in lines[at : at + 1]]
    return [*lines[:at], *painted, *lines[at + 1 :]]


def _pair(verdict: Verdict) -> str:
    return f"{harmless(verdict.summary.skill)} on {harmless(verdict.summary.model)}"


def _counts(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """How many verdicts there are of each kind; bad ones are named."""
    found = Counter(verdict.word for verdict in verdicts if verdict.word)
    counts = ", ".join(f"{word} {number}" for word, number in found.most_common())
    lines = wrapped(f"{counts[0].upper()}{counts[1:]}.", look.width, rest="  ") if counts else []
    named = {
        "hurts": [verdict for verdict in verdicts if verdict.word == "hurts"],
        "incomplete": [verdict for verdict in verdicts if verdict.word == "incomplete"],
        "worse than at the ref": [verdict for verdict in verdicts if verdict.worse_since],
    }
    for word, own in named.items():
        if own:
            shown = ", ".join(one_line(_pair(verdict), 120) for verdict in own[:_MOST_NAMES])
            more = f" and {len(own) - _MOST_NAMES} more" if len(own) > _MOST_NAMES else ""
            first, *rest = wrapped(f"{word}: {shown}{more}", look.width, rest="  ")
            lines += [first.replace(word, look.paint(word, red=True, bold=True), 1), *rest]
    return [*lines, *(["-v shows the table of each skill."] if look.verbosity <= 0 else [])]


Pair = tuple[str, str]

_COLOURS: Final = {"helps": "green", "hurts": "red", "incomplete": "red"}


def verdict_style(word: str | None) -> dict[str, bool]:
    return {_COLOURS[word]: True, "bold": True} if word in _COLOURS else {}


def change_style(word: str | None) -> dict[str, bool]:
    """Of the skill since the git ref."""
    colours = {"better": "green", "worse": "red"}
    return {colours[word]: True, "bold": True} if word in colours else {}


def lift_style(word: str | None) -> dict[str, bool]:
    """Painted only if the verdict says that the lift is shown: a lift alone may be chance."""
    return verdict_style(word) if word != "incomplete" else {}


# One skill: a row for each model.


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    gap: str = ""  # around an arrow
    between: str = "  "  # the columns
    stacked: bool = False
    split: bool = False  # values without and with the skill on lines of their own
    dropped: frozenset[str] = frozenset()


_INTERVAL: Final = Column("interval", priority=5)
_FIRST_TO_GO: Final = 40  # columns of lower priority go before the rows are stacked
_ROOMY: Final = [*(_Layout(bar, 60, " ") for bar in (20, 16, 12, 10)), _Layout(10, 36, " ")]
_LESS_ROOMY: Final = [_Layout(10, 36, " "), _Layout(6, 36, " ")]
_TIGHT: Final = [_Layout(6, 24), _Layout(5, 16)]
_STACKED: Final = [
    _Layout(8, 14, stacked=True),
    _Layout(4, 9, stacked=True),
    _Layout(4, 9, stacked=True, split=True),
    _Layout(4, 8, between=" ", stacked=True, split=True),
]


def skill_table(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """The table of one skill, with as many columns as there is room for."""
    rows = [Measured.of(verdict) for verdict in verdicts]
    numbers = shown_numbers(rows, details=True)
    tables = (_table(verdicts, rows, numbers, one, look) for one in _layouts(numbers, rows))
    return first_that_fits(tables, look.width).lines(look)


def _layouts(numbers: Sequence[Number], rows: Sequence[Measured]) -> Iterator[_Layout]:
    """From roomy to narrow."""
    may_go = {_INTERVAL.header: _INTERVAL.priority}
    for number in numbers:
        alarming = number.alarm and any(number.amount(row) for row in rows)
        if number.priority < KEEP and not alarming:
            may_go[number.name] = number.priority
    order = sorted(may_go, key=may_go.__getitem__)
    steps = [frozenset(order[: n + 1]) for n in range(len(order))]
    early = [step for step in steps if max(map(may_go.__getitem__, step)) < _FIRST_TO_GO]
    roomy = [step for step in early if max(map(may_go.__getitem__, step)) <= _INTERVAL.priority]
    yield from _ROOMY
    for groups in (product(roomy, _LESS_ROOMY), product(early, _TIGHT)):
        yield from (replace(layout, dropped=step) for step, layout in groups)
    yield from (replace(layout, dropped=step) for layout, step in product(_STACKED, early))
    yield from (replace(_STACKED[-1], dropped=step) for step in steps[len(early) :])


def _table(
    verdicts: Sequence[Verdict],
    rows: Sequence[Measured],
    numbers: Sequence[Number],
    layout: _Layout,
    look: Look,
) -> Table:
    models = [harmless(verdict.summary.model) for verdict in verdicts]
    columns = [Column("model")]
    cells = [[Cell("\n".join(split_name(model, layout.name)))] for model in models]
    for number in numbers:
        if number.name in layout.dropped:
            continue
        width = layout.bar if layout.stacked else layout.bar + 5
        header = harmless(number.header_of(rows))
        if number.of_ref and text_width(header) > width:  # any name of a ref
            header = number.name if number is CHANGE else cut(header, width, look.marks.cut)
        right = not number.bar and len(number.values(rows[0])) == 1
        columns.append(Column(header, right=right))
        for row, own in zip(rows, cells, strict=True):
            own.append(_cell(number, row, layout, look.marks))
        bounds = [number.bounds_text(row) for row in rows] if number.interval else []
        if any(bounds) and _INTERVAL.header not in layout.dropped:
            columns.append(_INTERVAL)
            for text, own in zip(bounds, cells, strict=True):
                own.append(Cell(text or "-"))
    return Table(columns, cells, layout.between)


def _cell(number: Number, row: Measured, layout: _Layout, marks: Marks) -> Cell:
    if number.bar:
        return Cell(_bar(number.amount(row), layout, marks))
    # Costs are long, so that they are the first to take two lines.
    split = layout.split or (layout.stacked and number is COST)
    arrow = f"{marks.arrow}\n" if split else f"{layout.gap}{marks.arrow}{layout.gap}"
    text = number.text(row, arrow) or "-"
    if more := number.growth_text(row, marks.times) or number.gain_text(row, bounds=False):
        text += f"{chr(10) if layout.stacked else ' '}{more}"
    if number is LIFT:
        return Cell(text, lift_style(row.verdict))
    if number is CHANGE:
        return Cell(text, change_style(row.change_word))
    return Cell(text, {"red": True} if number.alarm and number.amount(row) else {})


def _bar(rate: float | None, layout: _Layout, marks: Marks) -> str:
    if rate is None:
        return "-"
    full = round(rate * layout.bar)
    bar = marks.full * full + marks.empty * (layout.bar - full)
    shown = percent(rate).rjust(4)
    return f"{bar}\n{shown.rjust(layout.bar)}" if layout.stacked else f"{bar} {shown}"


# Many skills: rows are skills, columns are models.

_LONGEST_SKILL: Final = 28
_LONGEST_MODEL: Final = (60, 24)  # the second if the models do not fit side by side
_BETWEEN: Final = "  "
_INCOMPLETE: Final = "!"
_BY_CHECKS: Final = "*"


def matrix_lines(verdicts: Sequence[Verdict], look: Look) -> list[str]:
    """As many matrices, one below the other, as the models need, and a legend."""
    marks = look.marks
    known = {(verdict.summary.skill, verdict.summary.model): verdict for verdict in verdicts}
    mixed = len({verdict.summary.score for verdict in verdicts}) > 1
    skills = {
        skill: cut_middle(harmless(skill), _LONGEST_SKILL, marks.cut)
        + (_BY_CHECKS if mixed and verdict.summary.score == "checks" else "")
        for (skill, _), verdict in known.items()
    }
    first = max(map(text_width, ("skill", *skills.values())))
    for longest in _LONGEST_MODEL:
        # Like the cells below it, a header ends with a column for the mark.
        heads = {model: cut_middle(harmless(model), longest, marks.cut) + " " for _, model in known}
        widths = {model: text_width(head) for model, head in heads.items()}
        for (_, model), verdict in known.items():
            widths[model] = max(widths[model], _cell_width(verdict, marks))
        groups = list(_groups(widths, look.width - first))
        if len(groups) == 1:
            break
    lines: list[str] = []
    for models in groups:
        head = [padded("skill", first), *(padded(heads[m], widths[m], right=True) for m in models)]
        top = _BETWEEN.join(head).rstrip()
        lines += [*([""] if lines else []), top, marks.rule * text_width(top)]
        for skill, name in skills.items():
            cells = [_matrix_cell(known.get((skill, m)), widths[m], look) for m in models]
            lines.append(_BETWEEN.join([padded(name, first), *cells]).rstrip())
    by_checks = verdicts[0].summary.score == "checks" and not mixed
    what = "Shares of checks" if by_checks else "Pass rates"
    legend = f"{what} in %, without and with the skill, and the lift"
    legend += f"; {_BY_CHECKS} shares of checks" if mixed else ""
    if any(verdict.word == "incomplete" for verdict in verdicts):
        legend += f"; {_INCOMPLETE} is incomplete"
    return [*lines, "", *wrapped(f"{legend}.", look.width, rest="  ")]


def _groups(widths: Mapping[str, int], room: int) -> Iterator[list[str]]:
    """The models in groups that fit the room, at least one in each."""
    group: list[str] = []
    for model in widths:
        taken = sum(len(_BETWEEN) + widths[one] for one in [*group, model])
        if group and taken > room:
            yield group
            group = []
        group.append(model)
    yield group


def _rates(verdict: Verdict, marks: Marks) -> str:
    rates = [verdict.summary.scored("baseline"), verdict.summary.scored("skill")]
    return marks.arrow.join(str(round(100 * rate)) for rate in rates if rate is not None) or "-"


def _cell_width(verdict: Verdict, marks: Marks) -> int:
    lift = verdict.summary.lift
    return text_width(_rates(verdict, marks)) + (len(points(lift)) + 2 if lift is not None else 1)


def _matrix_cell(verdict: Verdict | None, width: int, look: Look) -> str:
    if verdict is None:
        return padded("- ", width, right=True)
    mark = look.paint(_INCOMPLETE, red=True) if verdict.word == "incomplete" else " "
    text = " " * (width - _cell_width(verdict, look.marks)) + _rates(verdict, look.marks)
    if verdict.summary.lift is None:
        return f"{text}{mark}"
    lift, style = points(verdict.summary.lift), lift_style(verdict.word)
    return f"{text} {look.paint(lift, **style) if style else lift}{mark}"
