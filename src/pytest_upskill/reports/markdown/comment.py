"""The summary for people who read a pull request, as Markdown of GitHub's kind."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from ..._util.texts import counted, points
from ...results.run import RunResults
from ...results.verdict import Verdict, signal_lines, sweet_spot
from ...trials.trial import SkillInfo
from .cases import ToLookAt, failed_cases, folded, regressions
from .text import escaped

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
    since = f"; {verdict.since.sentence}" if verdict.since else ""
    own = _point(f"{verdict.summary.model}: {word}{verdict.sentence}{since}.")
    return [own, *(f"  {_point(line)}" for line in signal_lines(verdict))]


def _table(verdicts: Sequence[Verdict], number: int) -> str:
    """The first so many rows; a column of what costs nothing, or nobody knows, says nothing."""
    priced = any(v.summary.baseline_cost or v.summary.skill_cost for v in verdicts)
    rows = [_cells(verdict) for verdict in verdicts[:number]]
    headers = [header for header in rows[0] if priced or header != _COST]
    body = [_row([row[header] for header in headers]) for row in rows]
    return "\n".join([_row(headers), _row(["---"] * len(headers)), *body])


def _cells(verdict: Verdict) -> dict[str, str]:
    row, lift = verdict.summary, verdict.lift
    likely = f"{points(lift.lift)} ({points(lift.low)} to {points(lift.high)})" if lift else None
    return {
        "model": escaped(row.model, 100),
        "without": _percent(row.baseline_rate),
        "with": _percent(row.skill_rate),
        "lift": likely or _UNKNOWN,
        "tokens": _change(row.baseline_tokens, row.skill_tokens, ",.0f"),
        _COST: _change(_thousand(row.baseline_cost), _thousand(row.skill_cost), ".2g"),
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
