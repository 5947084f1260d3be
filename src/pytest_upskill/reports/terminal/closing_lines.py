"""The last lines of a run: does each skill help, which tests failed, why the run
fails, what was spent, what to do next.

The mark of a skill is its verdict, that of the tests is pytest's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from ..._util.texts import counted, dollars, first_few, harmless, one_line
from ...models.prices import ON_A_PLAN
from ...registry import view_of
from ...results.row import Row, Word, since_words
from ...results.run import RunResults
from ...trials.arm import AGAIN, PREVIOUS
from ..answers import answer_words, badness, count_words, words_of_tests
from ..columns import cache_words
from .layout import TerminalLook, text_width, wrapped
from .summary_text import MAX_SKILLS

_MAX_LINES: Final = 5  # of a kind
_MAX_REASON_LENGTH: Final = 300
_MAX_NAME_LENGTH: Final = 100

Mark = Literal["bad", "warn", "open", "good"]
_STYLES: Final[dict[Mark, dict[str, bool]]] = {
    "bad": {"red": True, "bold": True},
    "warn": {"yellow": True, "bold": True},
    "open": {"yellow": True},
    "good": {"green": True, "bold": True},
}
_MARK_OF_WORD: Final[dict[Word | None, Mark]] = {
    "helps": "good",
    "cheaper": "good",
    "hurts": "bad",
    "incomplete": "warn",
    "nothing measured": "warn",
}


@dataclass(frozen=True)
class Spent:
    """What a run paid for; ``usd`` is None if nothing has a price."""

    usd: float | None = None
    tokens: int = 0
    unpriced: int = 0  # tokens of models whose price is not known
    calls: int = 0  # that were answered
    stored: int = 0  # answers that were there already
    unanswered: int = 0
    saved: float = 0.0  # USD, by the providers' caches
    most_usd: float | None = None
    most_tokens: int | None = None
    # What ``calls`` counts: an agent makes many calls for an answer
    counts: str = "call"
    source: str = "cache"  # where the stored ones are from
    logins: Sequence[str] = ()  # labels of agents that were asked on a login
    asks_no_model: bool = False  # agents without a model do


@dataclass(frozen=True)
class Ending:
    """How a run ended, besides its results."""

    failed: bool = False  # by its exit status
    problems: Sequence[str] = ()  # e.g. a report that could not be written
    notes: Sequence[str] = ()  # shown if there is no summary above
    page: str = ""  # a link into the HTML page
    spent: Spent | None = None
    before_next: str = ""  # what to know, or to do, before the next command
    next: Sequence[str] = ()  # the words of the next command


class Point(NamedTuple):
    mark: Mark
    text: str


def closing_lines(
    results: RunResults | None, ending: Ending, look: TerminalLook
) -> list[str]:
    """The painted lines; none if there is nothing to say."""
    lines = answer_lines(results, look) if results else []
    reasons = list(ending.problems)
    if results:
        reasons += _reasons(results)
    if ending.failed and not reasons and not (results and results.failed):
        reasons = ["failed: see above"]

    points = []
    for reason in _first_and_last(reasons):
        points.append(Point("bad" if ending.failed else "warn", reason))
    points += [Point("open", note) for note in ending.notes]

    for point in points:
        lines += _marked_lines(point, look)
    if ending.page:
        lines.append(f"page: {harmless(ending.page)}")
    if ending.spent:
        lines += look.wrap(spent_words(ending.spent))
    if ending.before_next:
        lines += look.wrap(harmless(ending.before_next))
    if ending.next:
        lines += command_lines("next: ", ending.next, look.width)

    return [look.show(line) for line in lines]


def answer_lines(results: RunResults, look: TerminalLook) -> list[str]:
    """Whether each skill helps, and how many tests failed."""
    points = _skill_points(results)
    if tests := words_of_tests(results):
        points.append(Point("bad", tests))

    lines = []
    for point in points:
        lines += _marked_lines(point, look)

    return [look.show(line) for line in lines]


def _marked_lines(point: Point, look: TerminalLook) -> list[str]:
    """A text behind a mark, which alone is painted."""
    marks: dict[Mark, str] = {
        "bad": look.marks.bad,
        "warn": "!",
        "open": look.marks.dot,
        "good": look.marks.good,
    }
    mark = marks[point.mark]
    lines = wrapped(harmless(point.text), look.width, first=f"{mark} ", rest="  ")
    lines[0] = look.paint(mark, **_STYLES[point.mark]) + lines[0][len(mark) :]
    return lines


def _first_and_last(reasons: Sequence[str]) -> list[str]:
    """The last one stays: after those of cases it is the one of a skill as a whole."""
    texts = [one_line(reason, _MAX_REASON_LENGTH) for reason in reasons]
    hidden = len(texts) - _MAX_LINES
    if hidden <= 0:
        return texts

    return [
        *texts[: _MAX_LINES - 1],
        f"and {counted(hidden, 'more reason')}",
        texts[-1],
    ]


def _reasons(results: RunResults) -> Iterator[str]:
    """Why the run fails, besides the tests that failed."""
    # Else nothing was asked at all, which is reported above
    if results.tests or results.lost:
        yield from results.unfinished
    yield from (f"gate failed: {reason}" for reason in _gate_reasons(results))
    if results.gate.passed is None:
        yield from results.not_tested


def _gate_reasons(results: RunResults) -> list[str]:
    """Those of a skill's regressed cases are one: each is a failed test."""
    reasons = dict.fromkeys(results.gate.reasons)
    for accepted in results.comparisons:
        if len(accepted.case_reasons) > 1:
            for reason in accepted.case_reasons:
                reasons.pop(reason, None)
            names = [one_line(pair.case, 60) for pair in accepted.regressed]
            number = counted(len(names), "regression")
            text = f"{accepted.pair}: {number}: {first_few(names, _MAX_LINES)}"
            reasons = {text: None, **reasons}

    return list(reasons)


# Skills.


def _skill_points(results: RunResults) -> list[Point]:
    """What fell, the answer for each skill, and what else was tested."""
    falls = []
    for row in results.rows:
        if row.accepted and row.accepted.words:
            falls.append(Point("bad", f"{row.pair} {row.accepted.words}"))
        since = row.over(PREVIOUS)
        text = f"{row.pair}: {since_words(row, since)}" if since else ""
        if since and text not in results.gate.reasons:
            falls.append(Point("bad" if since.word == "worse" else "open", text))

    verdicts = sorted(results.verdicts, key=badness)
    marks = [_MARK_OF_WORD.get(verdict.verdict, "open") for verdict in verdicts]
    answers = []
    if len(verdicts) > MAX_SKILLS:
        mark = marks[-1] if marks[0] == "open" else marks[0]
        answers.append(Point(mark, count_words(verdicts)))
    else:
        for mark, verdict in zip(marks, verdicts, strict=True):
            answers.append(Point(mark, answer_words(verdict)))

    others = [_compare_with_itself(row) for row in results.rows if AGAIN in row.arms]
    for of_kind in results.kind_sections:
        others += view_of(of_kind.feature).points(of_kind)
    return [*_first_points(falls), *answers, *_first_points(others)]


def _first_points(points: Sequence[Point]) -> list[Point]:
    hidden = len(points[_MAX_LINES:])
    if not hidden:
        return list(points)

    return [*points[:_MAX_LINES], Point("open", f"and {hidden:,} more")]


def _compare_with_itself(row: Row) -> Point:
    again = row.over(AGAIN)
    is_doubtful = again is None or again.lift.shown
    return Point("warn" if is_doubtful else "open", f"{row.pair} {row.sentence}")


# What was spent, and what to do next.


def spent_words(spent: Spent) -> str:
    """``spent $0.42 of $1.00, 720 calls (590 from cache)``."""
    source = one_line(spent.source, 100)
    failed = f"{counted(spent.unanswered, 'call')} without an answer"
    if spent.asks_no_model and spent.calls and not (spent.tokens or spent.unanswered):
        return "spent nothing: no model was asked"
    if not (spent.calls or spent.tokens):
        reasons = []
        if spent.stored:
            reasons.append(f"{counted(spent.stored, 'answer')} from {source}")
        if spent.unanswered:
            reasons.append(failed)
        return f"spent nothing: {', '.join(reasons) or 'no call was answered'}"

    number = spent.calls + spent.stored
    details = []
    if spent.stored:
        details.append(f"{spent.stored:,} from {source}")
    if spent.unanswered and spent.counts == "call":
        number += spent.unanswered
        details.append(f"{spent.unanswered:,} without an answer")

    words = f"spent {_amount(spent)}, {counted(number, spent.counts)}"
    if details:
        words += f" ({', '.join(details)})"
    if spent.unanswered and spent.counts != "call":
        words += f", {failed}"
    if saved := cache_words(spent.saved):
        words += f"; {saved}"
    if spent.logins:
        words += f"; {ON_A_PLAN}: {first_few(spent.logins, _MAX_LINES)}"

    return words


def _amount(spent: Spent) -> str:
    parts = []
    if spent.usd is not None or spent.most_usd is not None:
        limit = f" of {dollars(spent.most_usd)}" if spent.most_usd is not None else ""
        parts.append(f"{dollars(spent.usd or 0.0)}{limit}")
        if spent.unpriced:
            parts.append(f"{counted(spent.unpriced, 'token')} of unknown price")
    if spent.most_tokens is not None:
        parts.append(f"{spent.tokens:,} of {counted(spent.most_tokens, 'token')}")

    return " and ".join(parts) or counted(spent.tokens, "token")


def command_lines(first: str, words: Sequence[str], width: int) -> list[str]:
    """A command that can be pasted: wrapped between its words, with backslashes.

    An option stays with its value.
    """
    groups: list[str] = []
    for word in words[1:]:
        last = groups[-1] if groups else ""
        is_option = last.startswith("-") and not {"=", " "} & set(last)
        if is_option and not word.startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)

    lines = []
    line = first + words[0]
    for group in groups:
        if text_width(f"{line} {group} \\") > width:
            lines.append(f"{line} \\")
            line = f"  {group}"
        else:
            line += f" {group}"

    return [*lines, line]
