"""A comment for pull requests, and the summary of a job, in GitHub's Markdown."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from .._util.texts import counted, harmless, one_line, shortened
from ..results.accepted import case_result
from ..results.arm_comparison import SCORE_WORDS
from ..results.causes import cause_lines
from ..results.contrasts import Study
from ..results.outcomes import failure_words
from ..results.run import RunResults
from ..results.run_notes import agent_lines
from ..results.summary import case_words
from ..results.summary_row import row_of
from ..results.trigger_summary import TriggerSummary, size_words
from ..results.verdict import Verdict, signal_lines, sweet_spot
from ..trials.arm import AGAIN, BASELINE, PREVIOUS, SKILL, TRACE
from ..trials.plan import PlannedCase, SkillInfo
from ..trials.records import Record
from .numbers import checks_words, growth_words, shown_numbers
from .study_tables import NO_CHANGE, StudyTable, contrast_table, facts_of, legend_of

MARKER: Final = "<!-- pytest-upskill -->"  # identifies the comment of a job
GOOD, WARNING, BAD = "✅", "⚠️", "❌"
LIMIT: Final = 60_000  # GitHub refuses comments of more than 65,536 characters
_ROOM_FOR_REASONS: Final = 10_000
_ROOM_FOR_TABLES: Final = 30_000
_ROOM_FOR_NOTES: Final = 5_000
_ROOM_FOR_LAST_LINES: Final = 1_000
_LONGEST_TEXT: Final = 500
_QUESTION_LIMIT: Final = 1500
_ANSWER_LIMIT: Final = 3000
_MOST_REASONS: Final = 10
_MOST_CONTRASTS: Final = 40
_UNKNOWN: Final = "–"


def markdown_summary(
    results: RunResults, notes: Sequence[str] = (), failed: int | None = None
) -> str:
    """The outcome first, then a table for each skill, then regressions and failures, folded.

    ``failed`` is how many tests of the session failed, if others count than those of skills.
    """
    page = _Page()
    failures = failure_words(results.outcome_counts, failed)
    reasons = [*failures, *results.unfinished, *results.gate.reasons, *results.failed_studies]
    withheld = [] if reasons else results.withheld
    passed = "**Passed.**" if results.records else "**Nothing was tested.**"
    bad = f"**{results.outcome(failed).capitalize()}:**"
    neutral = results.only_studied and not reasons
    outcome = "" if neutral else f"\n\n{bad if reasons or withheld else passed}"
    mark = WARNING if withheld else GOOD if results.records and not reasons else BAD
    page.add(f"{MARKER}\n## {'' if neutral else f'{mark} '}Skills{outcome}")
    listed = [*failures, *cause_lines(results.causes), *reasons[len(failures) :], *withheld]
    page.add_most(len(listed), partial(_list, listed), _ROOM_FOR_REASONS)
    _add_tables(page, results)
    _add_triggers(page, results.trigger_summaries)
    for study in results.studies:
        _add_study(page, study)
    if lines := [escaped(line, _LONGEST_TEXT) for line in agent_lines(results)]:
        page.add("\n".join(f"- {line[0].upper()}{line[1:]}." for line in lines))
    page.add_most(len(notes), partial(_list, notes), _ROOM_FOR_TABLES + _ROOM_FOR_NOTES)
    _add_folded(page, "Regressions", results, _regressions(results))
    _add_folded(page, "Failed cases", results, _failed_cases(results))
    return page.text()


class _Page:
    """Blocks of Markdown as long as there is room; a block is added whole or not at all."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._length = 0

    def add(self, block: str, up_to: int = LIMIT - _ROOM_FOR_LAST_LINES) -> bool:
        """Whether the block fits a page of ``up_to`` characters."""
        length = self._length + len(block) + 2
        if length > up_to:
            return False
        self._blocks.append(block)
        self._length = length
        return True

    def add_most(self, number: int, block_of: Callable[[int], str], up_to: int) -> int:
        """Add a block of ``number`` parts, or half as many, and so on; return how many it has."""
        while number and not self.add(block_of(number), up_to):
            number //= 2
        return number

    def text(self) -> str:
        return "\n\n".join(self._blocks) + "\n"


def _list(texts: Sequence[str], number: int) -> str:
    """The first ``number`` texts as bullets."""
    bullets = [_bullet(text) for text in texts[:number]]
    hidden = len(texts) - len(bullets)
    return "\n".join([*bullets, *([f"- and {hidden:,} more"] if hidden else [])])


def _bullet(text: str) -> str:
    return f"- {escaped(text, _LONGEST_TEXT)}"


# Tables.


def _add_tables(page: _Page, results: RunResults) -> None:
    left_out = 0
    for skill in results.skills:
        rows = [verdict for verdict in results.verdicts if verdict.summary.skill == skill.name]
        shown_rows = page.add_most(len(rows), partial(_skill, skill, rows), _ROOM_FOR_TABLES)
        left_out += len(rows) - shown_rows
    if left_out:
        page.add(f"No room for {counted(left_out, 'more row')}, each a skill on a model.")


def _skill(skill: SkillInfo, verdicts: Sequence[Verdict], number: int) -> str:
    """The first ``number`` rows of a skill."""
    rows = [verdict.summary for verdict in verdicts]
    size = f"{case_words(rows)} × {counted(max(row.runs for row in rows), 'run')}"
    bullets = [line for verdict in verdicts[:number] for line in _verdict(verdict)]
    spot = sweet_spot(verdicts)
    blocks = [
        f"### {escaped(skill.name, 100)}",
        f"{size}, about {counted(skill.tokens, 'token')}.{_scored(skill)}",
        "\n".join([*bullets, *([_bullet(f"Sweet spot: {spot}")] if spot else [])]),
        _numbers(verdicts, number),
    ]
    return "\n\n".join(blocks)


def _scored(skill: SkillInfo) -> str:
    return f" Lift and verdict are of the {SCORE_WORDS[skill.score]}." * (skill.score != "pass")


def _verdict(verdict: Verdict) -> list[str]:
    """The verdict, with single cases to look at below it."""
    word = f"{verdict.word}: " if verdict.word else ""
    since = f"; {verdict.since}" if verdict.since else ""
    bullet = _bullet(f"{verdict.summary.label}: {word}{verdict.sentence}{since}.")
    lines = [*filter(None, [growth_words(row_of(verdict), details=False)]), *signal_lines(verdict)]
    return [bullet, *(f"  {_bullet(line)}" for line in lines)]


def _numbers(verdicts: Sequence[Verdict], count: int) -> str:
    rows = [*map(row_of, verdicts)]
    numbers = shown_numbers(rows, details=False)
    headers = ["model", *(number.header_of(rows) for number in numbers), "verdict"]
    cells = []
    for verdict, row in list(zip(verdicts, rows, strict=True))[:count]:
        worse = [f"**{escaped(verdict.worse_since)}**"] if verdict.worse_since else []
        word = ", ".join([*([verdict.word] if verdict.word else []), *worse]) or _UNKNOWN
        model = escaped(verdict.summary.label, 100)
        cells.append([model, *(number.full_text(row) or _UNKNOWN for number in numbers), word])
    return _table(headers, cells)


def _table(headers: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """The cells of rows are Markdown."""
    heads = [_cell(header) for header in headers]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# Triggers.


def _add_triggers(page: _Page, rows: Sequence[TriggerSummary]) -> None:
    shown_rows = page.add_most(len(rows), partial(_triggers, rows), _ROOM_FOR_TABLES)
    if left_out := len(rows) - shown_rows:
        page.add(f"No room for the triggers of {counted(left_out, 'more skill')} on a model.")


def _triggers(rows: Sequence[TriggerSummary], count: int) -> str:
    """The verdicts of the first ``count`` rows."""
    bullets = []
    for row in rows[:count]:
        word = f"{row.word}: " if row.word else ""
        bullets.append(_bullet(f"{row.pair}: {word}{row.sentence}."))
        bullets += [f"  {_bullet(line)}" for line in row.advice]
    return "\n\n".join(["### Triggers", f"{escaped(size_words(rows))}.", "\n".join(bullets)])


# Studies.


def _add_study(page: _Page, study: Study) -> None:
    """What to remember, the other sentences, and the contrasts."""
    *sentences, last = study.conclusions or ("",)
    remember = f"**{escaped(last)}.** " if last else ""
    page.add(f"### {escaped(study.title, 200)}\n\n{remember}{escaped(facts_of(study))}.")
    page.add_most(len(sentences), partial(_list, sentences), _ROOM_FOR_TABLES)
    table = contrast_table(study, _MOST_CONTRASTS)
    up_to = _ROOM_FOR_TABLES + _ROOM_FOR_NOTES
    shown_rows = page.add_most(len(table.rows), partial(_contrasts, table), up_to)
    if left_out := len(table.rows) - shown_rows:
        page.add(f"No room for {counted(left_out, 'more row')}.")
    page.add(". ".join(map(escaped, filter(None, (table.folded, legend_of(study))))) + ".")


def _contrasts(table: StudyTable, number: int) -> str:
    rows = []
    for cells, word in zip(table.rows[:number], table.words[:number], strict=True):
        *values, verdict = map(_cell, cells)
        rows.append([*values, verdict if word in NO_CHANGE else f"**{verdict}**"])
    return _table(table.headers, rows)


# Cases to look at, folded.


@dataclass(frozen=True)
class _FoldedCase:
    """A case on a model, and its result in a few words."""

    test: PlannedCase
    result: str


def _add_folded(page: _Page, title: str, results: RunResults, cases: Iterable[_FoldedCase]) -> None:
    heading, left_out = f"### {title}\n\n", 0
    for case in cases:
        if not left_out and page.add(heading + _folded(results, case)):
            heading = ""
        else:
            left_out += 1
    if left_out:
        page.add(f"{title}: no room for {left_out:,} more.", LIMIT)


def _regressions(results: RunResults) -> Iterator[_FoldedCase]:
    tests = {test.nodeid: test for test in results.tests}
    for comparison in results.comparisons:
        for case in comparison.regressed:
            yield _FoldedCase(tests[case.test.nodeid], case.counts)


def _failed_cases(results: RunResults) -> Iterator[_FoldedCase]:
    """Unexpected failures and errors, without regressions and errors with a shared cause."""
    shared = {test for cause in results.causes if len(cause.tests) > 1 for test in cause.tests}
    worse = {
        case.test.nodeid for comparison in results.comparisons for case in comparison.regressed
    }
    for test in results.failed:
        if test.nodeid not in worse:
            result = case_result(results.records_of(test), test.digest)
            if not result and f"{test.skill}::{test.case}[{test.label}]" in shared:
                continue  # the shared cause is listed above
            yield _FoldedCase(
                test, f"passed {result.count}" if result else "not answered, or not graded"
            )


def _folded(results: RunResults, case: _FoldedCase) -> str:
    """Question, answer and the reasons why it failed."""
    test = case.test
    records = results.records_of(test)
    skill = f"{test.skill}: " if len(results.skills) > 1 else ""
    title = f"{skill}{test.case} on {test.label}"
    result = case.result + checks_words(records, "skill")
    blocks = [
        f"<details><summary>{in_html(title, 200)}: {in_html(result, 200)}</summary>",
        *_without(records),
        "Question:",
        fenced(shortened(results.questions.get((test.skill, test.case), ""), _QUESTION_LIMIT)),
        *_answer(records),
        "</details>",
    ]
    return "\n\n".join(blocks)


def _without(records: list[Record]) -> Iterator[str]:
    """A case that fails only with the skill is the skill's fault."""
    graded = [r for r in records if r.arm == "baseline" and r.outcome != "errored"]
    if graded:
        passed = sum(record.outcome == "passed" for record in graded)
        runs = f"passed {passed} of {counted(len(graded), 'run')}"
        yield f"Without the skill: {runs}{checks_words(records, 'baseline')}."


def _answer(records: list[Record]) -> Iterator[str]:
    """Of the first trial with an error, else of the first run with the skill that failed."""
    wrong = [record for record in records if record.outcome != "passed"]
    wrong.sort(key=lambda record: (record.outcome != "errored", record.arm != "skill"))
    if not wrong:
        return
    first = wrong[0]
    if first.output is not None:
        yield f"Answer {escaped(arm_words(first.arm), 100)}, run {first.run}:"
        yield fenced(shortened(first.output, _ANSWER_LIMIT))
    if first.activity:
        yield f"{escaped(first.activity.words.capitalize(), 300)}."
    reasons = [first.error] if first.error else []
    reasons += [f"{grade.check}: {grade.reason}" for grade in first.checks if not grade.passed]
    if reasons:
        hidden = len(reasons) - _MOST_REASONS
        bullets = [f"- {escaped(reason, 300)}" for reason in reasons[:_MOST_REASONS]]
        yield "\n".join([*bullets, *([f"- and {hidden} more"] if hidden > 0 else [])])


def arm_words(arm: str) -> str:
    """``with the skill``: what is there in an arm; others are known by their names."""
    words = {
        SKILL: "with the skill",
        BASELINE: "without the skill",
        PREVIOUS: "with the skill at the git ref",
        AGAIN: "with the skill again",
        TRACE: "with a trace instead of the skill",
    }
    return words.get(arm, f"in the arm {one_line(arm, 60)}")


# Text from models and files.

# GitHub turns these into links, mentions and references to issues anywhere in a text. The number
# sign of a character reference (&#x27;) stays as it is.
_CALLS: Final = re.compile(r"@|:(?=//)|www(?=\.)|(?<!&)#", re.IGNORECASE)


def escaped(text: str, limit: int | None = None) -> str:
    """Text from outside as plain words: no markup, no HTML, no table row, no mention."""
    flat = " ".join(harmless(text).split()) if limit is None else one_line(text, limit)
    # At the beginning of a line these would start a list or a rule.
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", _inline(flat))


def _cell(text: str, limit: int = 100) -> str:
    """The same in a table, where no text begins a line."""
    return _inline(one_line(text, limit))


def _inline(text: str) -> str:
    marked = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", html.escape(text, quote=False))
    return _without_calls(marked)


def in_html(text: str, limit: int) -> str:
    """The same between HTML tags, where Markdown's own marks are plain text."""
    return _without_calls(html.escape(one_line(text, limit)))


def fenced(text: str) -> str:
    """A text in a fence that is longer than any fence inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{harmless(text)}\n{fence}"


def _without_calls(text: str) -> str:
    # An invisible character behind them prevents mentions and links.
    return _CALLS.sub(lambda match: f"{match.group()}&#8203;", text)
