"""The summary at the end of a run: tables first, verdicts last,
where readers look first.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..._util.texts import counted, first_few, harmless, one_line
from ...registry import view_of
from ...results.arm_comparison import SCORE_WORDS, Comparison
from ...results.oracle_results import is_sound
from ...results.run import RunResults
from ...results.summary import Summary, case_words
from ...results.summary_row import row_of, row_of_triggers
from ...results.sweet_spot import sweet_spot
from ...results.trigger_summary import MODELS_CHOICE, TriggerSummary, size_words
from ...results.verdict import Verdict, signal_lines
from ...trials.plan import SkillInfo
from ...trials.subject import CHAT
from ..numbers import LIFT, TRIGGER_NUMBERS, WITH, WITHOUT, growth_words, shown_numbers
from .layout import (
    Marks,
    TerminalLook,
    spaced,
    split_name,
    text_width,
    wrapped,
)
from .number_tables import lift_style, number_table, word_style
from .study_lines import study_lines
from .tables import Cell, Column, Table

MOST_ROWS: Final = 12  # beyond that a matrix is shown
_MOST_SKILLS: Final = 40  # of a matrix; -v shows all
_MOST_NAMES: Final = 5


def results_lines(
    results: RunResults, look: TerminalLook, notes: Sequence[str] = ()
) -> list[str]:
    """The summary of a run, and of its studies."""
    tested = summary_lines(
        results.skills,
        results.verdicts,
        look,
        notes,
        results.trigger_summaries,
    )
    studied = [
        *study_lines(results.studies, look),
        *(
            line
            for section in results.sections
            for line in ("", *view_of(section.feature).lines(section, look))
        ),
    ]
    return [*tested, *(studied if tested else studied[1:])]


def summary_lines(
    skills: Sequence[SkillInfo],
    verdicts: Sequence[Verdict],
    look: TerminalLook,
    notes: Sequence[str] = (),
    triggers: Sequence[TriggerSummary] = (),
) -> list[str]:
    """Tables, notes, and verdicts; the oracle compares nothing, so it is in no
    table.
    """
    by_oracle = [verdict for verdict in verdicts if verdict.is_of_oracle]
    verdicts = [verdict for verdict in verdicts if not verdict.is_of_oracle]
    as_matrix = len(verdicts) > MOST_ROWS
    blocks = [_matrix_lines(verdicts, look)] if as_matrix else []
    if not as_matrix or look.verbosity > 0:
        blocks += _tables(skills, verdicts, look)
    blocks += _trigger_table(triggers, look)
    blocks.append(_notes(notes, look))
    if not as_matrix or look.verbosity > 0:
        blocks.append(_verdict_lines(verdicts, look))
    if as_matrix:
        blocks.append(_counts(verdicts, look))
    blocks.append(_oracle_lines(by_oracle, look))
    blocks.append(_trigger_verdicts(triggers, look))
    # Names inside sentences are cut with a mark that the terminal may not have.
    return [line.replace("…", look.marks.cut) for line in spaced(blocks)]


def _tables(
    skills: Sequence[SkillInfo], verdicts: Sequence[Verdict], look: TerminalLook
) -> list[list[str]]:
    """For each skill its name and size, and a table with a row per model."""
    blocks = []
    for name, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        group_verdicts = list(group)
        skill = next(skill for skill in skills if skill.name == name)
        blocks.append(
            _title(skill, [verdict.summary for verdict in group_verdicts], look)
        )
        blocks.append(skill_table(group_verdicts, look))
    return blocks


def _title(skill: SkillInfo, rows: Sequence[Summary], look: TerminalLook) -> list[str]:
    runs = sorted(_runs_in(rows))
    name, dot = harmless(skill.name), look.marks.dot
    span = (f"{runs[0]} to " if len(runs) > 1 else "") + counted(runs[-1], "run")
    size = f"{case_words(rows)} {look.marks.times} {span}"
    facts = (
        f"about {counted(skill.tokens, 'token')} {dot} {size}" if skill.tokens else size
    )
    facts += f" {dot} {SCORE_WORDS[skill.score]}" if skill.score != "pass" else ""
    if text_width(name) + 3 + len(facts) > look.width:
        return [
            *(look.paint(part, bold=True) for part in split_name(name, look.width)),
            facts,
        ]
    return [f"{look.paint(name, bold=True)} {dot} {facts}"]


def _runs_in(rows: Sequence[Summary]) -> set[int]:
    """The numbers of runs, which may differ from case to case."""
    return {row.runs for row in rows} | {
        case.runs for row in rows for case in row.by_case
    }


def _notes(notes: Sequence[str], look: TerminalLook) -> list[str]:
    return [line for note in notes for line in wrapped(harmless(note), look.width)]


def _verdict_lines(verdicts: Sequence[Verdict], look: TerminalLook) -> list[str]:
    """The verdict on each model, then the sweet spot of each skill."""
    several = len({verdict.summary.skill for verdict in verdicts}) > 1
    lines: list[str] = []
    for skill, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        group_verdicts = list(group)
        for verdict in group_verdicts:
            name = _pair(verdict) if several else harmless(verdict.summary.label)
            lines += _verdict(verdict, name, look)
        if spot := sweet_spot(group_verdicts):
            of = f" of {one_line(skill, 60)}" if several else ""
            lines += wrapped(f"Sweet spot{of}: {harmless(spot)}", look.width, rest="  ")
    return lines


def _oracle_lines(verdicts: Sequence[Verdict], look: TerminalLook) -> list[str]:
    """What references show about the cases of each skill; of many skills,
    what is wrong.
    """
    every = len(verdicts) <= MOST_ROWS or look.verbosity > 0
    shown = [v for v in verdicts if every or v.word or not is_sound(v.summary)]
    several = len(verdicts) > 1
    lines = list[str]()
    for verdict in shown:
        name = _pair(verdict) if several else harmless(verdict.summary.label)
        lines += _verdict(verdict, name, look)
    if hidden := len(verdicts) - len(shown):
        skills = counted(hidden, "more skill" if shown else "skill")
        lines.append(f"{skills}: all references pass, and all empty answers fail.")
    return lines


def _verdict(verdict: Verdict, name: str, look: TerminalLook) -> list[str]:
    word = f"{verdict.word}: " if verdict.word else ""
    fell = f"{verdict.fell}; ".replace("→", look.marks.arrow) if verdict.fell else ""
    text = f"{name}: {fell}{word}{harmless(verdict.sentence)}."
    lines = wrapped(text, look.width, rest="  ")
    if fell:
        lines = _painted_once(
            lines, ": fell ", f": {look.paint('fell', **word_style('worse'))} "
        )
    if style := word_style(verdict.word):
        painted = look.paint(verdict.word, **style)
        lines = _painted_once(lines, f" {verdict.word}:", f" {painted}:")
    if verdict.since:
        lines += _since(verdict.since, verdict.over("previous"), look)
    growth = growth_words(row_of(verdict), details=True, times=look.marks.times)
    details = [growth] if growth and look.verbosity > 0 else []
    signals = "; ".join(signal_lines(verdict, failures=look.verbosity > 0))
    for line in [*details, *([signals] if signals else [])]:
        lines += wrapped(line, look.width, first="  ", rest="    ")
    return lines


def _since(text: str, change: Comparison | None, look: TerminalLook) -> list[str]:
    """The skill compared with itself at a git ref, painted like a verdict."""
    lines = wrapped(harmless(text), look.width, first="  ", rest="    ")
    word = change.word if change else ""
    if style := word_style(word):
        lines = _painted_once(lines, f": {word},", f": {look.paint(word, **style)},")
    return lines


def _painted_once(lines: Sequence[str], old: str, new: str) -> list[str]:
    """Not painted if a long name broke the word over two lines."""
    at = next((number for number, line in enumerate(lines) if old in line), len(lines))
    painted = [line.replace(old, new, 1) for line in lines[at : at + 1]]
    return [*lines[:at], *painted, *lines[at + 1 :]]


def _pair(verdict: Verdict) -> str:
    return f"{harmless(verdict.summary.skill)} on {harmless(verdict.summary.label)}"


def _counts(verdicts: Sequence[Verdict], look: TerminalLook) -> list[str]:
    """Count the verdicts of each kind, and name the bad ones."""
    words = Counter(verdict.word for verdict in verdicts if verdict.word)
    counts = ", ".join(f"{word} {number}" for word, number in words.most_common())
    lines = (
        wrapped(f"{counts[0].upper()}{counts[1:]}.", look.width, rest="  ")
        if counts
        else []
    )
    named = {
        "hurts": [verdict for verdict in verdicts if verdict.word == "hurts"],
        "incomplete": [verdict for verdict in verdicts if verdict.word == "incomplete"],
        "worse than at the ref": [
            verdict for verdict in verdicts if verdict.worse_since
        ],
    }
    for word, listed in named.items():
        if listed:
            names = first_few(
                [one_line(_pair(verdict), 120) for verdict in listed], _MOST_NAMES
            )
            first, *rest = wrapped(f"{word}: {names}", look.width, rest="  ")
            lines += [
                first.replace(word, look.paint(word, red=True, bold=True), 1),
                *rest,
            ]
    return [
        *lines,
        *(["-v shows the table of each skill."] if look.verbosity <= 0 else []),
    ]


def skill_table(verdicts: Sequence[Verdict], look: TerminalLook) -> list[str]:
    """A row for each model."""
    rows = [*map(row_of, verdicts)]
    names = {"model": [row.label for row in rows]}
    return number_table(names, rows, shown_numbers(rows, details=True), look)


# Triggers.


def _trigger_table(
    rows: Sequence[TriggerSummary], look: TerminalLook
) -> list[list[str]]:
    """A title, and a table with a row for each skill, agent and model."""
    if not rows:
        return []
    facts = ["triggers", size_words(rows, look.marks.times)]
    facts += [MODELS_CHOICE] if all(row.agent == CHAT for row in rows) else []
    title = wrapped(f" {look.marks.dot} ".join(facts), look.width, rest="  ")
    names = {"skill": [row.skill for row in rows], "model": [row.label for row in rows]}
    if len(set(names["skill"])) == 1:
        del names["skill"]
    return [
        _painted_once(title, "triggers", look.paint("triggers", bold=True)),
        number_table(names, [*map(row_of_triggers, rows)], TRIGGER_NUMBERS, look),
    ]


def _trigger_verdicts(rows: Sequence[TriggerSummary], look: TerminalLook) -> list[str]:
    """The verdict on each row in words, and what to do about it."""
    several = len({row.skill for row in rows}) > 1
    if len(rows) > MOST_ROWS and look.verbosity <= 0:
        return ["-v shows the verdict on the triggers of each skill."]
    lines: list[str] = []
    for row in rows:
        name = harmless(f"{row.pair}" if several else row.label)
        word = f"{row.word}: " if row.word else ""
        sentence = wrapped(
            f"{name}: {word}{harmless(row.sentence)}.", look.width, rest="  "
        )
        painted = look.paint(row.word, **word_style(row.word))
        lines += _painted_once(sentence, f": {row.word}:", f": {painted}:")
        for advice in row.advice:
            lines += _advice(harmless(advice), look.width)
    return lines


def _advice(line: str, width: int) -> list[str]:
    """A command of several lines can be pasted."""
    if ": pytest-upskill " not in line:
        return wrapped(line, width, first="  ", rest="    ")
    *lines, last = wrapped(line, width - 2, first="  ", rest="    ")
    return [*(f"{part} \\" for part in lines), last]


# Many skills: rows are skills, columns are models.

# The lengths of names of skills and models: shorter ones if the models
# do not fit side by side.
_LONGEST_NAMES: Final = ((60, 60), (44, 24), (28, 24))
_INCOMPLETE: Final = "!"
_BY_CHECKS: Final = "*"


def _matrix_lines(verdicts: Sequence[Verdict], look: TerminalLook) -> list[str]:
    """As many matrices as the models need, and a legend; of many skills,
    those that do worst.
    """
    mixed = len({verdict.summary.score for verdict in verdicts}) > 1
    by_checks = verdicts[0].summary.score == "checks" and not mixed
    verdicts, hidden = _worst_skills(
        verdicts, None if look.verbosity > 0 else _MOST_SKILLS
    )
    for longest in _LONGEST_NAMES:
        tables = [*_matrix(verdicts, longest, look, mixed=mixed).split(look.width)]
        if len(tables) == 1:
            break
    rates = "Shares of checks" if by_checks else "Pass rates"
    legend = f"{rates} in %, without and with the skill, and the lift"
    legend += f"; {_BY_CHECKS} shares of checks" if mixed else ""
    if any(verdict.word == "incomplete" for verdict in verdicts):
        legend += f"; {_INCOMPLETE} is incomplete"
    lines = [line for table in tables for line in (*table.lines(look), "")]
    legend += (
        f". These are the {_MOST_SKILLS} skills with the lowest lift" if hidden else ""
    )
    return [*lines, *wrapped(f"{legend}.", look.width, rest="  ")]


def _worst_skills(
    verdicts: Sequence[Verdict], most: int | None
) -> tuple[list[Verdict], int]:
    """The verdicts on the skills with the lowest lift, in their order,
    and how many others.
    """
    lifts: dict[str, float] = {}
    for verdict in verdicts:
        # What is incomplete comes first
        lift = verdict.lift.lift if verdict.lift else -1.0
        lifts[verdict.summary.skill] = min(lift, lifts.get(verdict.summary.skill, lift))
    worst = {*sorted(lifts, key=lifts.__getitem__)[:most]}
    return [v for v in verdicts if v.summary.skill in worst], len(lifts) - len(worst)


def _matrix(
    verdicts: Sequence[Verdict],
    longest: tuple[int, int],
    look: TerminalLook,
    *,
    mixed: bool,
) -> Table:
    by_place = {
        (verdict.summary.skill, verdict.summary.label): verdict for verdict in verdicts
    }
    scores = {verdict.summary.skill: verdict.summary.score for verdict in verdicts}
    models = list(dict.fromkeys(model for _, model in by_place))
    # Like the cells below it, a header ends with a column for the mark.
    heads = [
        " \n".join(split_name(harmless(model), longest[1])) + " " for model in models
    ]
    rows = []
    for skill in scores:
        of_skill = [by_place.get((skill, model)) for model in models]
        cells = [_matrix_cell(verdict, look.marks) for verdict in of_skill]
        name = "\n".join(split_name(harmless(skill), longest[0]))
        mark = _BY_CHECKS if mixed and scores[skill] == "checks" else ""
        rows.append([Cell(name + mark), *cells, _verdict_cell(of_skill, look.marks)])
    numbers = [Column(head, right=True) for head in heads]
    table = Table([Column("skill"), *numbers, Column("verdict")], rows)
    judged = any(verdict.word for verdict in verdicts)
    return table if judged else table.selected(range(len(models) + 1))


def _verdict_cell(verdicts: Sequence[Verdict | None], marks: Marks) -> Cell:
    """``fell 67 → 17``, ``helps``; of several models ``hurts 1, helps 2``."""
    there = [verdict for verdict in verdicts if verdict]
    words = Counter(
        "fell" if verdict.fell else verdict.word or "-" for verdict in there
    )
    style = (
        word_style("worse") if "fell" in words else word_style(max(words, key=_badness))
    )
    if len(there) > 1:
        ordered = sorted(words, key=_badness, reverse=True)
        return Cell(", ".join(f"{word} {words[word]}" for word in ordered), style)
    accepted = there[0].accepted
    if accepted and accepted.fall:
        return Cell(f"fell {accepted.fall}".replace("→", marks.arrow), style)
    return Cell(next(iter(words)), style)


def _badness(word: str) -> int:
    worst = ("fell", "hurts", "incomplete", "no effect shown", "too few cases to tell")
    return len(worst) - worst.index(word) if word in worst else 0


def _matrix_cell(verdict: Verdict | None, marks: Marks) -> Cell:
    """``40→95 +55``; the lift is painted, or the mark of what is incomplete."""
    if verdict is None:
        return Cell("- ")
    row = row_of(verdict)
    rates = [WITHOUT.amount(row), WITH.amount(row)]
    shown_rates = marks.arrow.join(
        str(round(100 * rate)) for rate in rates if rate is not None
    )
    lift = LIFT.text(row) or ""
    text = " ".join(filter(None, [shown_rates, lift])) or "-"
    if verdict.word == "incomplete":
        return Cell(f"{text}{_INCOMPLETE}", {"red": True}, _INCOMPLETE)
    return Cell(f"{text} ", lift_style(verdict.word) if lift else {}, lift)
