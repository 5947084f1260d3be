"""The summary at the end of a run: a block for each skill, or one table of many."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ..._util import grouped
from ..._util.texts import (
    counted,
    first_few,
    harmless,
    one_line,
)
from ...registry import view_of
from ...results.chance import looks_words, many_skills_words
from ...results.comparison import SCORE_WORDS
from ...results.row import Row, Word
from ...results.run import RunResults
from ...results.verdict import Verdict, new_run_words
from ...trials.plan import SkillInfo
from ..answers import badness, count_words
from ..columns import LIFT, VERDICT, Column, choose_columns, row_of_all_models
from ..skill_signals import SignalCases, find_signals
from ..skill_table import skill_cells, skill_columns
from .layout import TerminalLook, distinct_names, spaced, text_width, wrapped
from .study_lines import study_lines
from .tables import table_lines

MAX_SKILLS: Final = 3  # beyond that, a table of the worst
_WORST: Final = 20
_MAX_NAMES: Final = 2
_MAX_SETTLED: Final = 3
_LONGEST_NAME: Final = 60
_LONGEST_MODEL: Final = 12  # as a header
_STYLES: Final[dict[Word | None, dict[str, bool]]] = {
    "helps": {"green": True, "bold": True},
    "cheaper": {"green": True, "bold": True},
    "hurts": {"red": True, "bold": True},
    "incomplete": {"red": True},
    "nothing measured": {"red": True},
}


def results_lines(
    results: RunResults, look: TerminalLook, notes: Sequence[str] = ()
) -> list[str]:
    """The summary of a run, and of its studies."""
    blocks: list[list[str]] = []
    if len(results.verdicts) > MAX_SKILLS and look.verbosity < 1:
        blocks.append(_many_skills(results, look))
    else:
        verdicts = {verdict.skill: verdict for verdict in results.verdicts}
        for name, of_skill in grouped(results.rows, lambda row: row.skill).items():
            skill = next(skill for skill in results.skills if skill.name == name)
            blocks += _skill_blocks(skill, of_skill, verdicts.get(name), look)

    for of_kind in results.kind_sections:
        blocks.append(view_of(of_kind.feature).lines(of_kind, look))
    blocks.append(
        [part for note in notes for part in wrapped(harmless(note), look.width)]
    )
    lines = spaced(blocks)

    lines += study_lines(results.studies, look)
    for section in results.sections:
        lines += ["", *view_of(section.feature).lines(section, look)]
    if lines and not lines[0]:
        lines = lines[1:]

    return [look.show(line) for line in lines]


# One skill.


def _skill_blocks(
    skill: SkillInfo,
    rows: Sequence[Row],
    verdict: Verdict | None,
    look: TerminalLook,
) -> list[list[str]]:
    """Its name and size, a row for each model, and what its cases say."""
    shown = list(rows)
    if len(rows) > 1 and verdict and verdict.lift is not None:
        shown.append(row_of_all_models(rows, verdict))
    columns = [
        Column("model", is_name=True),
        *choose_columns(shown, details=look.verbosity > 0),
    ]
    cells = [[row.label, *_cells(row, columns[1:], look)] for row in shown]
    return [
        _title(skill, rows, look),
        table_lines(columns, cells, look),
        _case_lines(rows, verdict, look),
        _sentences(rows, look),
    ]


def _title(skill: SkillInfo, rows: Sequence[Row], look: TerminalLook) -> list[str]:
    facts = [one_line(skill.name, _LONGEST_NAME), _size(rows)]
    if skill.tokens:
        facts.append(f"SKILL.md about {counted(skill.tokens, 'token')}")
    if skill.score != "pass":
        facts.append(SCORE_WORDS[skill.score])
    if rows[0].against:
        facts.append(f"before is {one_line(rows[0].against, 20)}")

    return title_lines(facts, look)


def title_lines(facts: Sequence[str], look: TerminalLook) -> list[str]:
    first, *more = look.wrap(" · ".join(facts))
    return [first.replace(facts[0], look.paint(facts[0], bold=True), 1), *more]


def _size(rows: Sequence[Row]) -> str:
    """``10 cases × 3 runs``, ``4 of 10 cases × 3 runs``."""
    most = max(rows, key=lambda row: row.cases)
    cases = counted(most.cases, "case")
    if most.subset:
        cases = f"{most.cases:,} of {counted(most.all_cases, 'case')}"

    return f"{cases} × {counted(max(row.runs for row in rows), 'run')}"


def _cells(row: Row, columns: Iterable[Column], look: TerminalLook) -> list[str]:
    cells = []
    for column in columns:
        text = column.text(row)
        if not text and row.by_case:
            text = "-"
        if column in (LIFT, VERDICT):
            text = paint_word(row.verdict, text, look)
        elif column.header == "errors" and row.errored:
            text = look.paint(text, red=True)
        cells.append(text)

    return cells


def paint_word(word: Word | None, text: str, look: TerminalLook) -> str:
    """Painted only if the verdict is shown: a lift alone may be chance."""
    return look.paint(text, **_STYLES.get(word, {}))


def _case_lines(
    rows: Sequence[Row], verdict: Verdict | None, look: TerminalLook
) -> list[str]:
    """The signals of the cases, and how many cases would settle what is unclear."""
    word = verdict.verdict if verdict else None
    found = find_signals(rows, word)
    most = max((of_signal.number for of_signal in found), default=0)
    lines = []
    for of_signal in found:
        count = f"{of_signal.number:,}".rjust(len(f"{most:,}"))
        start = f"{of_signal.signal:12} {count}"
        lines += _signal_lines(start, of_signal, look)

    if found and max(row.runs for row in rows) == 1:
        lines.append("one run each: what varies is not seen")
    if word != "unclear":
        lines += _settling_lines(rows, look)
    if looks := looks_words(verdict.looks or 0) if verdict else "":
        lines += look.wrap(looks)

    return lines


def _signal_lines(start: str, of_signal: SignalCases, look: TerminalLook) -> list[str]:
    """With as many names as fit on a line; with -v all."""
    advice = f": {of_signal.advice}" if of_signal.advice else ""
    most = len(of_signal.cases) if look.verbosity > 0 else _MAX_NAMES
    while True:
        names = []
        for case in of_signal.cases[:most]:
            name = one_line(case.words, _LONGEST_NAME)
            names.append(look.paint(name, bold=True) if case.is_shown else name)
        if hidden := len(of_signal.cases[most:]):
            names[-1] += f" and {hidden:,} more"
        line = f"{start}  {', '.join(names)}{advice}".rstrip()
        if most <= 1 or look.verbosity > 0 or text_width(line) <= look.width:
            return wrapped(line, look.width, rest=" " * len(f"{start}  "))
        most -= 1


def _settling_lines(rows: Sequence[Row], look: TerminalLook) -> list[str]:
    """How many cases would settle the models on which the skill is unclear."""
    unclear = [row for row in rows if row.verdict == "unclear" and row.cases_needed]
    if not unclear:
        return []

    text = new_run_words(max(row.cases_needed or 0 for row in unclear))
    if len(rows) > 1:
        labels = [one_line(row.label, _LONGEST_NAME) for row in unclear]
        text = text.removesuffix("it") + first_few(labels, _MAX_SETTLED)
    return look.wrap(text)


def _sentences(rows: Sequence[Row], look: TerminalLook) -> list[str]:
    """With -v, what each model shows in words; else what no table shows."""
    lines = []
    for row in rows:
        says_more = row.activation or row.budget_words or row.verdict == "incomplete"
        if row.sentence and (look.verbosity > 0 or says_more or not row.by_case):
            text = f"{one_line(row.label, _LONGEST_NAME)}: {harmless(row.sentence)}"
            lines += look.wrap(text)

    return lines


# Many skills.


def _many_skills(results: RunResults, look: TerminalLook) -> list[str]:
    """How many help, and the worst of them."""
    verdicts = sorted(results.verdicts, key=badness)
    worst = verdicts[:_WORST]
    rest = verdicts[_WORST:]
    parts = [count_words(verdicts), many_skills_words(len(verdicts))]
    text = "; ".join(part for part in parts if part)
    header = f"the {_WORST} worst" if rest else "skill"
    table = _table_of_skills(worst, results, header, look)
    lines = [*look.wrap(text), *table]
    if rest:
        counts = Counter(verdict.verdict or "no verdict" for verdict in rest)
        words = []
        for word, number in counts.items():
            is_verb = word in ("helps", "hurts") and number > 1
            words.append(f"{number:,} {word[:-1] if is_verb else word}")
        text = f"and {len(rest):,} more: {', '.join(words)}"
        hint = "all: -v, or the page"
        room = text_width(table[1]) - text_width(text)
        lines += [text, hint] if room < len(hint) + 2 else [text + hint.rjust(room)]

    return lines


def _table_of_skills(
    verdicts: Sequence[Verdict],
    results: RunResults,
    header: str,
    look: TerminalLook,
) -> list[str]:
    labels = list(dict.fromkeys(row.label for row in results.rows))
    if len(labels) == 1:  # its lifts are those of the skills
        labels = []
    names = distinct_names(labels, _LONGEST_MODEL, look.marks.cut)
    columns = skill_columns(names.values())
    columns[0] = replace(columns[0], header=header)
    cells = skill_cells(verdicts, results.rows, labels)
    for verdict, row in zip(verdicts, cells, strict=True):
        for number in (1, 2):
            row[number] = paint_word(verdict.verdict, row[number], look)

    return table_lines(columns, cells, look)
