"""A comment for pull requests, and the summary of a job, in GitHub's Markdown."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from .._util.texts import counted, harmless, one_line, shortened
from ..registry import view_of
from ..results.accepted import case_result
from ..results.arm_comparison import SCORE_WORDS
from ..results.causes import cause_lines
from ..results.oracle_results import oracle_faults
from ..results.outcomes import BAD as FAILURES
from ..results.outcomes import count_words, failure_words
from ..results.run import RunResults
from ..results.run_notes import agent_lines
from ..results.summary import case_words
from ..results.summary_row import SummaryRow, row_of
from ..results.sweet_spot import sweet_spot
from ..results.trigger_summary import TriggerSummary, size_words
from ..results.verdict import Verdict, signal_lines
from ..trials.arm import AGAIN, BASELINE, PREVIOUS, SKILL, TRACE
from ..trials.plan import PlannedCase, SkillInfo
from ..trials.records import Record
from ..trials.subject import ORACLE
from .headline import headline
from .numbers import checks_words, growth_words, shown_numbers
from .study_tables import NO_CHANGE, Block, StudyTable, study_block

MARKER: Final = "<!-- pytest-upskill -->"  # identifies the comment of a job
GOOD, WARNING, BAD = "✅", "⚠️", "❌"
LIMIT: Final = 60_000  # GitHub refuses comments of more than 65,536 characters
_ROOM_FOR_REASONS: Final = 10_000
_ROOM_FOR_TABLES: Final = 30_000
_ROOM_FOR_NOTES: Final = 5_000
_ROOM_FOR_SENTENCES: Final = 10_000
_ROOM_FOR_LAST_LINES: Final = 1_000
_LONGEST_TEXT: Final = 500
_QUESTION_LIMIT: Final = 1500
_ANSWER_LIMIT: Final = 3000
_MOST_REASONS: Final = 10
_MOST_CONTRASTS: Final = 40
_MOST_ROWS: Final = 20  # of the table; others are folded
_MOST_CASES: Final = 30  # of each kind
_LONGEST_TITLE: Final = 250
# Columns that a comment has no room for
_IN_THE_PAGE: Final = ("checks", "turns", "tool-calls")
_UNKNOWN: Final = "–"


def markdown_summary(
    results: RunResults, notes: Sequence[str] = (), failed: int | None = None
) -> str:
    """What changed, a table over all skills, then sentences, regressions and failures,
    folded.

    ``failed`` is how many tests of the session failed,
    if others count than those of skills.
    """
    page = _Page()
    failures = failure_words(results.outcome_counts, failed)
    reasons = [
        *failures,
        *results.unfinished,
        *results.gate.reasons,
        *results.failed_studies,
    ]
    reasons += results.not_tested if results.gate.passed is None else []
    withheld = [] if reasons else results.withheld
    neutral = results.only_studied and not reasons
    mark = WARNING if withheld else GOOD if results.records and not reasons else BAD
    title = "" if neutral else headline(results, [*reasons, *withheld])
    page.add(
        f"{MARKER}\n##"
        f" {f'{mark} {escaped(title, _LONGEST_TITLE)}' if title else 'Skills'}"
    )
    if counts := count_words(results.outcome_counts, every=True):
        page.add(f"**{results.outcome(failed).capitalize()}:** {counts}.")
    # Of cases that regressed there is a list of their own.
    cases = {reason for run in results.comparisons for reason in run.reasons}
    cases -= {reason for run in results.comparisons for reason in run.of_whole}
    counted_above = any(word in results.outcome_counts for word in FAILURES)
    others = failures[1:] if counted_above else failures
    listed = [
        *others,
        *cause_lines(results.causes),
        *reasons[len(failures) :],
        *withheld,
    ]
    listed = [reason for reason in listed if reason not in cases and reason != title]
    page.add_most(len(listed), partial(_list, listed), _ROOM_FOR_REASONS)
    _add_table(page, results)
    for study in results.studies:
        _add_block(page, study_block(study, _MOST_CONTRASTS))
    for section in results.sections:
        _add_block(page, view_of(section.feature).block(section, _MOST_CONTRASTS))
    page.add_most(len(notes), partial(_list, notes), _ROOM_FOR_TABLES + _ROOM_FOR_NOTES)
    _add_sentences(page, results)
    _add_folded(page, "Regressions", results, _regressions(results))
    _add_folded(page, "Failed cases", results, _failed_cases(results))
    return page.text()


class _Page:
    """Blocks of Markdown as long as there is room; a block is
    added whole or not at all.
    """

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
        """Add a block of ``number`` parts, or half as many, and so on;
        return how many it has.
        """
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


# One table over all skills.


def _add_table(page: _Page, results: RunResults) -> None:
    # The oracle has no lift; its sentences say what it found.
    rows = sorted((row for row in results.summary if row.agent != ORACLE), key=_badness)
    shown_rows = page.add_most(
        len(rows), partial(_numbers, results, rows), _ROOM_FOR_TABLES
    )
    if left_out := len(rows) - shown_rows:
        page.add(
            f"No room for {counted(left_out, 'more row')}, each a skill on a model."
        )


def _badness(row: SummaryRow) -> tuple[int, float]:
    """What got worse comes first, and skills that help last."""
    if "worse" in (row.accepted_verdict, row.change_verdict):
        return 0, row.accepted_change or row.change or 0.0
    order = {"hurts": 1, "incomplete": 2, "helps": 4}
    return order.get(row.verdict or "", 3), row.lift or 0.0


def _numbers(results: RunResults, rows: Sequence[SummaryRow], count: int) -> str:
    """The first ``count`` rows; beyond a screen they are folded."""
    numbers = [
        number
        for number in shown_numbers(rows, details=False)
        if number.name not in _IN_THE_PAGE and any(map(number.full_text, rows))
    ]
    headers = [
        "skill",
        "model",
        *(number.header_of(rows) for number in numbers),
        "verdict",
    ]
    words = {summary.pair: summary.word for summary in results.trigger_summaries}
    cells = [
        [
            _cell(row.skill),
            _cell(row.label),
            *(number.full_text(row) or _UNKNOWN for number in numbers),
            _words(row, words.get(row.pair)),
        ]
        for row in rows[:count]
    ]
    folded = cells[_MOST_ROWS:]
    title = f"{counted(len(folded), 'more row')}"
    more = [_details(title, _table(headers, folded))] if folded else []
    return "\n\n".join([_table(headers, cells[:_MOST_ROWS]), *more])


def _words(row: SummaryRow, of_triggers: str | None) -> str:
    """The verdict; what got worse since it was accepted, or since the ref, stands
    out.
    """
    ref = (
        f"worse than at {row.against}"
        if row.against and row.change_verdict == "worse"
        else ""
    )
    bad = [f"**{_cell(text)}**" for text in (row.accepted_words, ref) if text]
    words = dict.fromkeys(filter(None, (row.verdict, of_triggers)))
    return ", ".join([*bad, *words]) or _UNKNOWN


def _table(headers: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """The cells of rows are Markdown."""
    heads = [_cell(header) for header in headers]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _details(title: str, *blocks: str) -> str:
    """Folded; the title is HTML."""
    return "\n\n".join([f"<details><summary>{title}</summary>", *blocks, "</details>"])


# The sentences of verdicts.


def _add_sentences(page: _Page, results: RunResults) -> None:
    blocks = list(filter(None, (_skill(results, skill) for skill in results.skills)))
    if results.trigger_summaries:
        blocks.append(_triggers(results.trigger_summaries))
    if lines := agent_lines(results):
        blocks.append(
            "\n".join(_bullet(f"{line[0].upper()}{line[1:]}.") for line in lines)
        )

    def first(count: int) -> str:
        hidden = len(blocks) - count
        more = [f"No room for {counted(hidden, 'more skill')}."] if hidden else []
        return _details("Verdicts in full", *blocks[:count], *more)

    page.add_most(
        len(blocks), first, _ROOM_FOR_TABLES + _ROOM_FOR_NOTES + _ROOM_FOR_SENTENCES
    )


def _skill(results: RunResults, skill: SkillInfo) -> str:
    verdicts = [
        verdict for verdict in results.verdicts if verdict.summary.skill == skill.name
    ]
    if not verdicts:
        return ""
    rows = [verdict.summary for verdict in verdicts]
    size = f"{case_words(rows)} × {counted(max(row.runs for row in rows), 'run')}"
    size += f", about {counted(skill.tokens, 'token')}" if skill.tokens else ""
    size += "." + ("" if all(v.is_of_oracle for v in verdicts) else _scored(skill))
    bullets = [line for verdict in verdicts for line in _verdict(verdict)]
    spot = sweet_spot(verdicts)
    bullets += [_bullet(f"Sweet spot: {spot}")] if spot else []
    return "\n\n".join([f"**{escaped(skill.name, 100)}**: {size}", "\n".join(bullets)])


def _scored(skill: SkillInfo) -> str:
    return f" Lift and verdict are of the {SCORE_WORDS[skill.score]}." * (
        skill.score != "pass"
    )


def _verdict(verdict: Verdict) -> list[str]:
    """The verdict, with single cases to look at below it."""
    word = f"{verdict.word}: " if verdict.word else ""
    since = f"; {verdict.since}" if verdict.since else ""
    bullet = _bullet(f"{verdict.summary.label}: {word}{verdict.sentence}{since}.")
    lines = [
        *filter(None, [growth_words(row_of(verdict), details=False)]),
        *signal_lines(verdict),
    ]
    return [bullet, *(f"  {_bullet(line)}" for line in lines)]


def _triggers(rows: Sequence[TriggerSummary]) -> str:
    bullets = []
    for row in rows:
        word = f"{row.word}: " if row.word else ""
        bullets.append(_bullet(f"{row.pair}: {word}{row.sentence}."))
        bullets += [f"  {_bullet(line)}" for line in row.advice]
    return "\n\n".join(
        [f"**Triggers**: {escaped(size_words(rows))}.", "\n".join(bullets)]
    )


# Studies.


def _add_block(page: _Page, block: Block) -> None:
    """What to remember, the other sentences, and a table."""
    *sentences, last = block.conclusions or ("",)
    table, legend = block.table, block.legend
    remember = f"**{escaped(last)}.** " if last else ""
    page.add(f"### {escaped(block.title, 200)}\n\n{remember}{escaped(block.facts)}.")
    page.add_most(len(sentences), partial(_list, sentences), _ROOM_FOR_TABLES)
    up_to = _ROOM_FOR_TABLES + _ROOM_FOR_NOTES
    shown_rows = page.add_most(len(table.rows), partial(_first_rows, table), up_to)
    if left_out := len(table.rows) - shown_rows:
        page.add(f"No room for {counted(left_out, 'more row')}.")
    page.add(". ".join(map(escaped, filter(None, (table.folded, legend)))) + ".")


def _first_rows(table: StudyTable, number: int) -> str:
    """Verdicts that show something are bold."""
    rows = [[*map(_cell, cells)] for cells in table.rows[:number]]
    for row, word in zip(rows, table.words, strict=False):
        row[-1] = row[-1] if word in NO_CHANGE else f"**{row[-1]}**"
    return _table(table.headers, rows)


# Cases to look at, folded.


@dataclass(frozen=True)
class _FoldedCase:
    """A case on a model, and its result in a few words."""

    test: PlannedCase
    result: str


def _add_folded(
    page: _Page, title: str, results: RunResults, cases: Iterable[_FoldedCase]
) -> None:
    heading, left_out = f"### {title}\n\n", 0
    for number, case in enumerate(cases):
        if (
            number < _MOST_CASES
            and not left_out
            and page.add(heading + _folded(results, case))
        ):
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
    """Unexpected failures and errors, without regressions and
    errors with a shared cause.
    """
    shared = {
        test for cause in results.causes if len(cause.tests) > 1 for test in cause.tests
    }
    worse = {
        case.test.nodeid
        for comparison in results.comparisons
        for case in comparison.regressed
    }
    for test in results.failed:
        if test.nodeid not in worse:
            result = case_result(results.records_of(test), test.digest)
            if not result and f"{test.skill}::{test.case}[{test.label}]" in shared:
                continue  # the shared cause is listed above
            if result and test.agent == ORACLE:
                yield _FoldedCase(
                    test, "; ".join(oracle_faults(results.records_of(test)))
                )
                continue
            yield _FoldedCase(
                test,
                f"passed {result.count}" if result else "not answered, or not graded",
            )


def _folded(results: RunResults, case: _FoldedCase) -> str:
    """Question, answer and the reasons why it failed."""
    test = case.test
    records = results.records_of(test)
    skill = f"{test.skill}: " if len(results.skills) > 1 else ""
    title = f"{skill}{test.case} on {test.label}"
    is_oracle = test.agent == ORACLE
    result = case.result + ("" if is_oracle else checks_words(records, "skill"))
    return _details(
        f"{in_html(title, 200)}: {in_html(result, 200)}",
        *(() if is_oracle else _without(records)),
        "Question:",
        fenced(
            shortened(
                results.questions.get((test.skill, test.case), ""), _QUESTION_LIMIT
            )
        ),
        *(_reference(records) if is_oracle else _answer(records)),
    )


def _reference(records: list[Record]) -> Iterator[str]:
    """Why it could not be graded, and its text."""
    if errors := dict.fromkeys(record.error for record in records if record.error):
        yield "\n".join(map(_bullet, errors))
    for record in records:
        if record.arm == SKILL and record.output:
            yield "Reference:"
            yield fenced(shortened(record.output, _ANSWER_LIMIT))
            return


def _without(records: list[Record]) -> Iterator[str]:
    """A case that fails only with the skill is the skill's fault."""
    graded = [r for r in records if r.arm == "baseline" and r.outcome != "errored"]
    if graded:
        passed = sum(record.outcome == "passed" for record in graded)
        runs = f"passed {passed} of {counted(len(graded), 'run')}"
        yield f"Without the skill: {runs}{checks_words(records, 'baseline')}."


def _answer(records: list[Record]) -> Iterator[str]:
    """Of the first trial with an error, else of the first run
    with the skill that failed.
    """
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
    reasons += [
        f"{grade.label}: {grade.reason}" for grade in first.checks if not grade.passed
    ]
    if reasons:
        hidden = len(reasons) - _MOST_REASONS
        bullets = [f"- {escaped(reason, 300)}" for reason in reasons[:_MOST_REASONS]]
        yield "\n".join([*bullets, *([f"- and {hidden} more"] if hidden > 0 else [])])
    for grade in first.checks:
        if grade.output:
            yield f"What the {escaped(grade.check, 60)} printed last:"
            yield fenced(grade.output[-_ANSWER_LIMIT:])


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

# GitHub turns these into links, mentions and references to issues anywhere in a text.
# The number sign of a character reference (&#x27;) stays as it is.
_CALLS: Final = re.compile(r"@|:(?=//)|www(?=\.)|(?<!&)#", re.IGNORECASE)


def escaped(text: str, limit: int | None = None) -> str:
    """Text from outside as plain words: no markup, no HTML, no table row, no
    mention.
    """
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
