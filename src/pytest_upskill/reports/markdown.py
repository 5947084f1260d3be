"""The summary for people who read a pull request, as Markdown of GitHub's kind."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from .._util.texts import counted, harmless, one_line, points, shortened
from ..results.accepted import case_result
from ..results.regressions import AcceptedComparison
from ..results.run import RunResults
from ..results.verdict import Verdict, signal_lines, sweet_spot
from ..trials.plan import PlannedCase, SkillInfo
from ..trials.records import Record

MARKER: Final = "<!-- pytest-upskill -->"  # by which a job finds its own comment
# GitHub refuses a comment of more than 65,536 characters.
LIMIT: Final = 60_000
_ROOM_FOR_REASONS: Final = 10_000
_ROOM_FOR_TABLES: Final = 30_000
_ROOM_FOR_NOTES: Final = 5_000
_ROOM_FOR_LAST_LINES: Final = 1_000
_LONGEST_TEXT: Final = 500

_COST: Final = "$/1000"
_UNKNOWN: Final = "–"


@dataclass(frozen=True)
class ToLookAt:
    """A case on a model, and what is to be said of it in a few words."""

    test: PlannedCase
    told: str


class _Page:
    """Blocks of Markdown, as far as there is room; what has none is left out whole."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._length = 0

    def add(self, block: str, up_to: int = LIMIT - _ROOM_FOR_LAST_LINES) -> bool:
        """Whether the page is still shorter than this with the block."""
        length = self._length + len(block) + 2
        if length > up_to:
            return False
        self._blocks.append(block)
        self._length = length
        return True

    def add_most(self, number: int, block_of: Callable[[int], str], up_to: int) -> int:
        """A block of so many parts, or of half as many, and so on; how many it has."""
        while number and not self.add(block_of(number), up_to):
            number //= 2
        return number

    def text(self) -> str:
        return "\n\n".join(self._blocks) + "\n"


def markdown_summary(results: RunResults, notes: Sequence[str] = (), failed: int = 0) -> str:
    """The verdict first, then a table for each skill, then what to look at, folded.

    ``failed`` is how many tests failed or had errors.
    """
    page = _Page()
    failures = [f"{counted(failed, 'test')} failed or had errors"] if failed else []
    missing = [
        f"{skill} on {model}: {counted(number, 'case')} in none of the files"
        for (skill, model), number in results.missing.items()
    ]
    reasons = [*failures, *missing, *(results.gate or ())]
    passed = "**Passed.**" if results.records else "**Nothing was tested.**"
    page.add(f"{MARKER}\n## Skills\n\n{'**Not passed:**' if reasons else passed}")
    page.add_most(len(reasons), partial(_list, reasons), _ROOM_FOR_REASONS)
    _add_tables(page, results)
    page.add_most(len(notes), partial(_list, notes), _ROOM_FOR_TABLES + _ROOM_FOR_NOTES)
    _add_folded(page, "Regressions", results, regressions(results))
    _add_folded(page, "Failed cases", results, failed_cases(results))
    return page.text()


def _add_tables(page: _Page, results: RunResults) -> None:
    left_out = 0
    for skill in results.skills:
        rows = [verdict for verdict in results.verdicts if verdict.summary.skill == skill.name]
        shown = page.add_most(len(rows), partial(_skill, skill, rows), _ROOM_FOR_TABLES)
        left_out += len(rows) - shown
    if left_out:
        more = counted(left_out, "more row")
        page.add(f"And {more} (a skill on a model) for which there is no room.")


def _add_folded(page: _Page, title: str, results: RunResults, cases: Iterable[ToLookAt]) -> None:
    heading, left_out = f"### {title}\n\n", 0
    for case in cases:
        if not left_out and page.add(heading + folded(results, case)):
            heading = ""
        else:
            left_out += 1
    if left_out:
        page.add(f"{title}: {left_out:,} left out for which there is no room.", LIMIT)


def _skill(skill: SkillInfo, verdicts: Sequence[Verdict], number: int) -> str:
    """The first so many rows of a skill."""
    rows = [verdict.summary for verdict in verdicts]
    cases, runs = max(row.cases for row in rows), max(row.runs for row in rows)
    size = f"{counted(cases, 'case')} × {counted(runs, 'run')}"
    told = [line for verdict in verdicts[:number] for line in _told(verdict)]
    spot = sweet_spot(verdicts)
    blocks = [
        f"### {escaped(skill.name, 100)}",
        f"{size}, about {counted(skill.tokens, 'token')}.",
        "\n".join([*told, *([_point(f"Sweet spot: {spot}")] if spot else [])]),
        _table(verdicts, number),
    ]
    return "\n\n".join(blocks)


def _told(verdict: Verdict) -> list[str]:
    """The verdict, and below it what is to be said of single cases."""
    word = f"{verdict.word}: " if verdict.word else ""
    since = f"; {verdict.since}" if verdict.since else ""
    own = _point(f"{verdict.summary.model}: {word}{verdict.sentence}{since}.")
    return [own, *(f"  {_point(line)}" for line in signal_lines(verdict))]


def _table(verdicts: Sequence[Verdict], number: int) -> str:
    """The first so many rows; a column of what costs nothing, or nobody knows, says nothing."""
    priced = any(v.summary.arm("baseline").cost or v.summary.arm("skill").cost for v in verdicts)
    rows = [_cells(verdict) for verdict in verdicts[:number]]
    headers = [header for header in rows[0] if priced or header != _COST]
    body = [_row([row[header] for header in headers]) for row in rows]
    return "\n".join([_row(headers), _row(["---"] * len(headers)), *body])


def _cells(verdict: Verdict) -> dict[str, str]:
    row, lift = verdict.summary, verdict.lift
    baseline, skill = row.arm("baseline"), row.arm("skill")
    likely = f"{points(lift.lift)} ({points(lift.low)} to {points(lift.high)})" if lift else None
    return {
        "model": escaped(row.model, 100),
        "without": _percent(baseline.rate),
        "with": _percent(skill.rate),
        "lift": likely or _UNKNOWN,
        "tokens": _change(baseline.tokens, skill.tokens, ",.0f"),
        _COST: _change(_thousand(baseline.cost), _thousand(skill.cost), ".2g"),
        "verdict": verdict.word or _UNKNOWN,
    }


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(texts: Sequence[str], number: int) -> str:
    """The first so many of some texts."""
    shown = [_point(text) for text in texts[:number]]
    more = len(texts) - len(shown)
    return "\n".join([*shown, *([f"- and {more:,} more"] if more else [])])


def _point(text: str) -> str:
    return f"- {escaped(text, _LONGEST_TEXT)}"


def _percent(rate: float | None) -> str:
    return _UNKNOWN if rate is None else f"{rate:.0%}"


def _change(before: float | None, after: float | None, form: str) -> str:
    known = [format(value, form) for value in (before, after) if value is not None]
    return " → ".join(known) or _UNKNOWN


def _thousand(cost: float | None) -> float | None:
    return None if cost is None else 1000 * cost


_QUESTION_LIMIT: Final = 1500
_ANSWER_LIMIT: Final = 3000
_MOST_REASONS: Final = 10


def regressions(results: RunResults) -> Iterator[ToLookAt]:
    """What got worse than was accepted, by itself or together with others."""
    tests = {test.nodeid: test for test in results.tests}
    for comparison in results.comparisons:
        for case in comparison.to_run_again:
            test, now = tests[case.test.nodeid], case.result.count
            known = case.expected
            was = f"accepted {known.was} on {known.date}, " if known else ""
            yield ToLookAt(test, f"{was}now {now}")


def failed_cases(results: RunResults) -> Iterator[ToLookAt]:
    """The others that do not pass, or were not answered, though nobody expected it."""
    worse = {case.test.nodeid for found in results.comparisons for case in found.to_run_again}
    for test in results.failed:
        if test.nodeid not in worse:
            result = case_result(results.records_of(test), test.digest)
            told = f"passed {result.count}" if result else "not answered, or not graded"
            yield ToLookAt(test, told)


def folded(results: RunResults, case: ToLookAt) -> str:
    test = case.test
    records = results.records_of(test)
    skill = f"{test.skill}: " if len(results.skills) > 1 else ""
    title = f"{skill}{test.case} on {test.model}"
    blocks = [
        f"<details><summary>{in_html(title, 200)}: {in_html(case.told, 200)}</summary>",
        *_without(records),
        "Question:",
        fenced(shortened(results.questions.get((test.skill, test.case), ""), _QUESTION_LIMIT)),
        *_answer(records),
        "</details>",
    ]
    return "\n\n".join(blocks)


def _without(records: list[Record]) -> Iterator[str]:
    """Whether it passes without the skill: what fails only with it is the skill's doing."""
    own = [r for r in records if r.arm == "baseline" and r.outcome != "errored"]
    if own:
        passed = sum(record.outcome == "passed" for record in own)
        yield f"Without the skill: passed {passed} of {counted(len(own), 'run')}."


def _answer(records: list[Record]) -> Iterator[str]:
    """Of the first trial that has no answer, else of the first run with the skill that failed."""
    wrong = [record for record in records if record.outcome != "passed"]
    wrong.sort(key=lambda record: (record.outcome != "errored", record.arm != "skill"))
    if not wrong:
        return
    first = wrong[0]
    arm = {"skill": "with the skill", "baseline": "without the skill"}.get(first.arm, "before")
    if first.output is not None:
        yield f"Answer {arm}, run {first.run}:"
        yield fenced(shortened(first.output, _ANSWER_LIMIT))
    told = [first.error] if first.error else []
    told += [f"{grade.check}: {grade.reason}" for grade in first.checks if not grade.passed]
    if told:
        more = len(told) - _MOST_REASONS
        shown = [f"- {escaped(reason, 300)}" for reason in told[:_MOST_REASONS]]
        yield "\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])])


# GitHub makes links of these, mentions and references to issues, wherever they stand in a text.
# The number sign of a character reference (&#x27;) is left to it.
_CALLS = re.compile(r"@|:(?=//)|www(?=\.)|(?<!&)#", re.IGNORECASE)


def escaped(text: str, limit: int | None = None) -> str:
    """Text from outside as plain words: no markup, no HTML, no row of a table, no mention."""
    flat = " ".join(harmless(text).split()) if limit is None else one_line(text, limit)
    marked = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", html.escape(flat, quote=False))
    # What would begin a list or a line across the page, at the beginning of a line.
    marked = re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", marked)
    return _quiet(marked)


def in_html(text: str, limit: int) -> str:
    """The same between HTML tags, where Markdown's own marks are plain text."""
    return _quiet(html.escape(one_line(text, limit)))


def fenced(text: str) -> str:
    """A text as it is, in a fence that is longer than any inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{harmless(text)}\n{fence}"


def _quiet(text: str) -> str:
    # An invisible character after them keeps a mention from calling people, a link from forming.
    return _CALLS.sub(lambda match: f"{match.group()}&#8203;", text)


_LIMIT = 500


def annotations(compared: Sequence[AcceptedComparison], gate: Iterable[str]) -> list[str]:
    """An error for each regression, where its case stands, and for each gate that did not pass."""
    lines: list[str] = []
    told: list[str] = []
    for comparison in compared:
        # One reason for each case that got worse, then perhaps one for all together.
        places = [(case.test.file, case.test.line) for case in comparison.worse]
        places += [(case.test.file, 1) for case in comparison.cases[:1]]
        told += comparison.reasons
        for (file, line), reason in zip(places, comparison.reasons, strict=False):
            where = f"file={_value(file)},line={line}"
            lines.append(_error(f"{where},title={_value('regression of a skill')}", reason))
    lines += [_error("title=gate of a skill", reason) for reason in gate if reason not in told]
    return lines


def _error(properties: str, message: str) -> str:
    return f"::error {properties}::{_data(one_line(message, _LIMIT))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
