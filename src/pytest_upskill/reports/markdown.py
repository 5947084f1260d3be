"""The comment on a pull request and the summary of a CI job, in GitHub's Markdown.

A reader sees at most thirty lines: the verdict, what fell, a table, what cases say.
The answers are in the page.
"""

import html
import re
from collections.abc import Collection, Sequence
from typing import Final

from tabulate import tabulate

from .._util.texts import counted, first_few, one_line
from ..registry import view_of
from ..results.causes import cause_lines
from ..results.row import Row
from ..results.run import RunResults
from ..results.verdict import Verdict
from ..trials.arm import AGAIN
from ..trials.subject import asks_model
from .answers import badness, words_of_tests
from .columns import Column, choose_columns, row_of_all_models
from .headline import find_falls, headline
from .skill_signals import SignalCases, find_signals
from .skill_table import skill_cells, skill_columns
from .study_tables import Block, study_block

MARKER: Final = "<!-- pytest-upskill -->"  # by which a job finds its comment
MAX_LENGTH: Final = 60_000  # GitHub refuses comments of more than 65,536 characters
_MAX_TEXT_LENGTH: Final = 300
_MAX_CELL_LENGTH: Final = 60
_MAX_REASONS: Final = 6
_MAX_ROWS: Final = 8
_MAX_STUDY_ROWS: Final = 15
_MAX_NOTES: Final = 20
_MAX_CASES: Final = 4  # with a signal
_MAX_MODELS: Final = 5  # as columns
_MAX_SKILLS: Final = 15


def markdown_summary(
    results: RunResults, notes: Sequence[str] = (), failed: int | None = None
) -> str:
    """``failed`` is how many tests failed, if others count than those of skills."""
    problems = _find_problems(results)
    head = headline(results, problems)
    reasons = [*_failures(results, failed), *_fall_lines(results)]
    reasons += [*problems, *cause_lines(results.causes), *results.withheld]
    reasons += _sentences(results)
    title = escaped(str(head))
    if results.only_studied and not problems:
        title = "Skills"

    blocks = [f"{MARKER}\n## {title}"]
    blocks.append(_bullets([text for text in reasons if text != head.text]))
    blocks += skill_blocks(results, {row.skill for row in results.summary})

    for study in results.studies:
        block = study_block(study, _MAX_STUDY_ROWS)
        blocks.append(_study_text(block, is_folded=not results.only_studied))
    for section in results.sections:
        block = view_of(section.feature).block(section, _MAX_STUDY_ROWS)
        blocks.append(_study_text(block, is_folded=not results.only_studied))
    if notes:
        blocks.append(_fold(counted(len(notes), "note"), _bullets(notes, _MAX_NOTES)))

    return _join_blocks(blocks)


def _failures(results: RunResults, failed: int | None) -> list[str]:
    """How many tests failed, of skills and others."""
    lines = []
    if words := words_of_tests(results):
        lines.append(words)
    others = (failed or 0) - len(results.failed)
    if others > 0:
        lines.append(f"{counted(others, 'other test')} failed")
    return lines


def _find_problems(results: RunResults) -> list[str]:
    """Why the run fails, besides tests that failed and cases that fell."""
    of_cases: set[str] = set()
    for comparison in results.comparisons:
        of_cases.update(comparison.reasons)

    problems = [*results.unfinished, *results.failed_studies]
    problems += [reason for reason in results.gate.reasons if reason not in of_cases]
    if results.gate.passed is None:
        problems += results.not_tested
    return problems


def _fall_lines(results: RunResults) -> list[str]:
    falls = find_falls(results)
    lines = [fall.words for fall in falls]
    for fall in falls:
        lines += fall.reasons
    return lines


def _sentences(results: RunResults) -> list[str]:
    """What is shown of rows that have no lift, and of kinds without all answers."""
    lines = []
    for row in results.summary:
        if AGAIN in row.arms or not asks_model(row.agent):
            lines.append(f"{row.pair}: {row.sentence}")
    for of_kind in results.kind_sections:
        points = view_of(of_kind.feature).points(of_kind)
        lines += [point.text for point in points if point.mark == "warn"]
    return lines


def _join_blocks(blocks: Sequence[str]) -> str:
    """The blocks that there is room for; each is there as a whole or not at all."""
    kept: list[str] = []
    room = MAX_LENGTH
    for block in blocks:
        if block and len(block) < room:
            kept.append(block)
            room -= len(block) + 2
    return "\n\n".join(kept) + "\n"


def _bullets(texts: Sequence[str], most: int = _MAX_REASONS) -> str:
    lines = [f"- {escaped(text)}" for text in texts[:most]]
    if len(texts) > most:
        lines.append(f"- and {len(texts) - most:,} more")
    return "\n".join(lines)


def _fold(title: str, *blocks: str) -> str:
    """Blocks below a title that is HTML."""
    return "\n\n".join([f"<details><summary>{title}</summary>", *blocks, "</details>"])


# Skills.


def skill_blocks(results: RunResults, skills: Collection[str]) -> list[str]:
    """A table, and what the cases say; of one skill by model, else a row a skill."""
    verdicts = [each for each in results.verdicts if each.skill in skills]
    rows = []
    for row in results.summary:
        if row.skill in skills and asks_model(row.agent):
            rows.append(row)
    if not rows:
        return []
    if len(verdicts) > 1:
        return [_skill_table(verdicts, rows)]

    verdict = verdicts[0] if verdicts else None
    signals = find_signals(rows, verdict.verdict if verdict else None)
    return [_model_table(rows, verdict), _bullets(_signal_lines(signals))]


def _model_table(rows: Sequence[Row], verdict: Verdict | None) -> str:
    shown = list(rows[:_MAX_ROWS])
    if len(rows) > 1 and verdict and verdict.lift is not None:
        shown.append(row_of_all_models(rows, verdict))
    columns = choose_columns(shown)
    cells = []
    for row in shown:
        cells.append([row.label, *(column.text(row) for column in columns)])
    table = _table([Column("model"), *columns], cells)
    more = len(rows) - _MAX_ROWS
    return f"{table}\n\nand {counted(more, 'more model')}" if more > 0 else table


def _skill_table(verdicts: Sequence[Verdict], rows: Sequence[Row]) -> str:
    """The worst first."""
    labels = list(dict.fromkeys(row.label for row in rows))
    if len(labels) > _MAX_MODELS:
        labels = []
    worst = sorted(verdicts, key=badness)[:_MAX_SKILLS]
    table = _table(skill_columns(labels), skill_cells(worst, rows, labels))
    more = len(verdicts) - len(worst)
    return f"{table}\n\nand {counted(more, 'more skill')}" if more else table


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    return tabulate(
        [[_cell(text) for text in row] for row in rows],
        headers=[_cell(column.header) for column in columns],
        tablefmt="github",
        disable_numparse=True,
        colalign=["right" if column.right else "left" for column in columns],
    )


def _signal_lines(signals: Sequence[SignalCases]) -> list[str]:
    """A line for each signal that cases have, with the first of these cases."""
    lines = []
    for found in signals:
        if found.number:
            names = [case.words for case in found.cases]
            parts = [f"{found.signal} {found.number:,}", first_few(names, _MAX_CASES)]
            lines.append(": ".join(filter(None, [*parts, found.advice])))
    return lines


# Studies.


def _study_text(block: Block, *, is_folded: bool) -> str:
    """What to remember, then the other sentences and a table."""
    *sentences, last = block.conclusions or ("",)
    facts = f"{escaped(block.facts)}."
    texts = [f"**{escaped(last)}.** {facts}" if last else facts, _bullets(sentences)]
    columns = [Column(header) for header in block.table.headers]
    texts.append(_table(columns, block.table.rows[:_MAX_STUDY_ROWS]))
    for text in (block.table.folded, block.legend):
        if text:
            texts.append(f"{escaped(text)}.")
    if is_folded:
        return _fold(_in_html(block.title), *filter(None, texts))
    return "\n\n".join([f"### {escaped(block.title)}", *filter(None, texts)])


# Text from models and files.

# GitHub turns these into links, mentions and references to issues anywhere in a text.
# The number sign of a character reference (&#x27;) stays as it is.
_CALLS: Final = re.compile(r"@|:(?=//)|www(?=\.)|(?<!&)#", re.IGNORECASE)
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]|~#!])")


def escaped(text: str, limit: int = _MAX_TEXT_LENGTH) -> str:
    """Text from outside as plain words: no markup, HTML, table row or mention."""
    # At the beginning of a line these would start a list or a rule.
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", _cell(text, limit))


def _cell(text: str, limit: int = _MAX_CELL_LENGTH) -> str:
    """The same in a table, where no text begins a line."""
    flat = html.escape(one_line(text, limit), quote=False)
    return _without_calls(_MARKUP.sub(r"\\\1", flat))


def _in_html(text: str) -> str:
    """The same between HTML tags, where Markdown's own marks are plain text."""
    return _without_calls(html.escape(one_line(text, _MAX_TEXT_LENGTH)))


def _without_calls(text: str) -> str:
    # An invisible character behind them prevents mentions and links.
    return _CALLS.sub(lambda match: f"{match.group()}&#8203;", text)
