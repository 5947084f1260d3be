"""Why a case failed: the question, what is expected, and each arm's answer, run by
run.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..._util.texts import (
    counted,
    first_few,
    one_line,
    seconds,
    shortened,
    visible,
)
from ...checks.check import spans
from ...errors import without_commands
from ...results.outcomes import missed
from ...skills.kinds import kinds_by_agent
from ...trials.answer import AnswerFile
from ...trials.records import Grade, Record, Span
from ...trials.subject import works_on_model
from ...trials.transcript import Turn
from ..columns import short
from .layout import Marks, Paint, TerminalLook, wrapped
from .live import checks_of, checks_words

Line = tuple[str, str]  # a prefix, and a text that may be wrapped
Lines = list[Line]

_QUOTE: Final = "  | "
_LOST_BY_WRAPPING: Final = 12  # columns of two lines
# Characters and lines that -v shows; -vv shows everything.
_MAX_QUESTION: Final = 3000
_MAX_ANSWER: Final = 8000
_MAX_REASON: Final = 2000
_MAX_HEADLINE: Final = 300
_MAX_FAILED_RUNS: Final = 2
_MAX_PASSED_RUNS: Final = 1
_MAX_FILES: Final = 20
_MAX_STEPS: Final = 6
_MAX_STEPS_IN_FULL: Final = 100
_MAX_STEP: Final = 300
_MAX_STEP_IN_FULL: Final = 1500
_MAX_PATH: Final = 200
_MAX_NAMED_FILES: Final = 3
_LAST_LINES: Final = 10  # of a verifier, without -v
_TURN_WORDS: Final = {
    "thinking": "thinks",
    "assistant": "says",
    "answer": "is answered",
}


class _Arm(NamedTuple):
    title: str
    by_run: Mapping[int, Record]


def failure_text(
    question: str,
    records: Sequence[Record],
    *,
    expected: Any = None,
    against: str | None = None,
    standing: str | None = None,
    has_skill: bool = True,
    look: TerminalLook = TerminalLook(verbosity=1),  # noqa: B008 - it is frozen
) -> str:
    """The text of one failed item: without -v, a few lines.

    ``standing`` replaces "2 of 5 runs passed" in its headline.
    A task may have no skill at all.
    """
    arms = []
    for arm, title in _titles(records, against, has_skill=has_skill).items():
        by_run = {record.run: record for record in records if record.arm == arm}
        if by_run:
            arms.append(_Arm(title, by_run))

    headline = look.show(_headline(records, standing))
    if look.verbosity < 1:
        return without_commands("\n".join([headline, *_brief(question, arms, look)]))

    blocks = [headline]
    for lines in _details(question, expected, arms, look):
        blocks.append("\n".join(_fit(lines, look)))

    return without_commands("\n\n".join(blocks))


def _titles(
    records: Sequence[Record], against: str | None, *, has_skill: bool
) -> dict[str, str]:
    if kind := kinds_by_agent().get(records[0].agent):
        return dict(kind.arm_titles)

    return {
        "skill": "with the skill" if has_skill else "with no skill",
        "previous": f"with the skill at {one_line(against or '', 60)}",
        "again": "with the skill again",
        "baseline": "without it",
    }


def _headline(records: Sequence[Record], standing: str | None) -> str:
    """One line for pytest's short summary."""
    text = one_line("; ".join(missed(records)), _MAX_HEADLINE)
    with_skill = [record for record in records if record.arm == "skill"]
    if standing is None and len(with_skill) > 1:
        standing = f"{_count_passed(with_skill)} runs passed"
    parts = [part for part in (standing, _checks_of_both(records)) if part]
    return f"{one_line(', '.join(parts), None)}: {text}" if parts else text


def _count_passed(records: Sequence[Record]) -> str:
    passed = sum(record.outcome == "passed" for record in records)
    return f"{passed} of {len(records)}"


def _checks_of_both(records: Sequence[Record]) -> str:
    """``6 of 7 checks (0 without the skill)``, if there are many checks."""
    with_skill = checks_words(records, "skill").removeprefix(", ")
    baseline = checks_of(records, "baseline")
    if not with_skill or not baseline:
        return with_skill

    return f"{with_skill} ({short(baseline[0])} without the skill)"


def _fit(lines: Iterable[Line], look: TerminalLook) -> list[str]:
    """Lines that fit; with -vv they stay whole, so that they can be copied."""
    fitted = []
    for prefix, text in lines:
        shown = look.show(text)
        if look.verbosity >= 2:
            fitted.append(prefix + shown)
        else:
            rest = prefix if prefix.endswith("| ") else f"{prefix}  "
            shown = shown.expandtabs(4).rstrip()
            fitted += wrapped(shown, look.width, first=prefix, rest=rest)

    return fitted


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


# Without -v.


def _brief(question: str, arms: Sequence[_Arm], look: TerminalLook) -> list[str]:
    """The question, how each arm did, and the first answer with the skill that
    failed.
    """
    with_skill, *others = arms
    failed = [r for r in with_skill.by_run.values() if r.outcome != "passed"]
    record = (failed or list(with_skill.by_run.values()))[0]

    texts = [f"Question: {question}"]
    if len(with_skill.by_run) > 1:
        texts.append(_totals(arms))
        title = f"Run {record.run}, {with_skill.title}"
    else:
        title = _capital(with_skill.title)
        outcomes = []
        for arm in others:
            if record.run in arm.by_run:
                words = _compare(arm.by_run[record.run], record)
                outcomes.append(f"{arm.title}: {words}")
        if outcomes:
            title += f" ({', '.join(outcomes)})"

    texts += [text for _, text in _activity(record)]
    answer = _mark(record.output or "", spans(record.checks))
    texts.append(f"{title}: {answer or _without_text(record)}")

    two_lines = 2 * look.width - _LOST_BY_WRAPPING
    lines = [("", one_line(text, two_lines)) for text in texts]
    printed = _fit(_quote_verifiers(record), look)
    return [*_fit(lines, look), *printed[:1], *printed[1:][-_LAST_LINES:]]


def _without_text(record: Record) -> str:
    files = [f"{file.change} {one_line(file.path, _MAX_PATH)}" for file in record.files]
    return f"({first_few(files, _MAX_NAMED_FILES)})" if files else "(an empty answer)"


def _compare(other: Record, record: Record) -> str:
    """How another arm did; its reward, if its outcome is the same."""
    if _result(other) == _result(record):
        return "same answer"

    rewards = [grade.reason for grade in other.checks if grade.share is not None]
    if rewards and other.outcome == record.outcome and other.score != record.score:
        return rewards[0]

    return other.outcome


def _result(record: Record) -> tuple[object, ...]:
    """What an answer is: its text, its files and its result."""
    return record.output, record.files, record.outcome, record.score


# With -v.


def _details(
    question: str, expected: Any, arms: Sequence[_Arm], look: TerminalLook
) -> Iterator[Lines]:
    """Blocks of lines: question, expected, counts, answers."""
    is_full = look.verbosity >= 2
    runs = sorted({run for arm in arms for run in arm.by_run})
    shown_runs = _choose_runs(arms[0], is_full=is_full)
    limit = None if is_full else _MAX_QUESTION
    yield [("", "Question:"), *_quote(question, limit)]

    if expected:
        limit = None if is_full else _MAX_REASON
        lines = [("  ", one_line(line, limit)) for line in expected_lines(expected)]
        yield [("", "Expected:"), *lines]

    if len(runs) > 1:
        yield [("", _totals(arms))]

    for run in shown_runs:
        for title, by_run in arms:
            words = f"run {run}, {title}" if len(runs) > 1 else title
            if run in by_run:
                yield _answer(_capital(words), by_run[run], is_full=is_full)

    if hidden := len(runs) - len(shown_runs):
        yield [("", f"{counted(hidden, 'more run')} not shown: -vv shows all.")]


def _choose_runs(with_skill: _Arm, *, is_full: bool) -> list[int]:
    """The runs to show: failed ones first, then some that passed."""
    passed = [run for run, r in with_skill.by_run.items() if r.outcome == "passed"]
    failed = [run for run in with_skill.by_run if run not in passed]
    if is_full:
        return failed + passed

    return failed[:_MAX_FAILED_RUNS] + passed[:_MAX_PASSED_RUNS]


def _totals(arms: Sequence[_Arm]) -> str:
    """``With the skill: 2 of 4 runs passed. Without it: 3 of 4.``"""
    counts: list[str] = []
    for arm in arms:
        records = list(arm.by_run.values())
        words = f"{_capital(arm.title)}: {_count_passed(records)}"
        if not counts:
            words += " runs passed"
        counts.append(words + checks_words(records, records[0].arm))

    return ". ".join(counts) + "."


def _answer(title: str, record: Record, *, is_full: bool) -> Lines:
    """The checks of an answer, then the answer; of an agent, also what it did."""
    lines = [("", f"{title}: {record.outcome}{checks_words([record], record.arm)}")]
    for grade in record.checks:
        reason = one_line(grade.reason, None if is_full else _MAX_REASON)
        label = one_line(grade.label, 60)
        lines.append(("  ", f"{_grade_word(grade):4} {label}: {reason}"))
    lines += _quote_verifiers(record)
    lines += _activity(record)

    size = []
    if record.output_tokens is not None:
        size.append(counted(record.output_tokens, "token"))
    if record.seconds is not None:
        size.append(f"{seconds(record.seconds)} s")
    lines.append(("  ", f"Answer ({', '.join(size)}):" if size else "Answer:"))
    limit = None if is_full else _MAX_ANSWER
    lines += _quote(record.output or "", limit, spans(record.checks))
    if record.activity:
        for finding in record.activity.findings:
            lines.append(("  ", f"Note: {one_line(finding, _MAX_STEP)}"))

    return [*lines, *_files(record.files), *_turns(record, is_full=is_full)]


def _grade_word(grade: Grade) -> str:
    if grade.passed:
        return "ok"

    return "FAIL" if grade.required else "miss"


def _quote_verifiers(record: Record) -> Lines:
    """What verifiers printed about an answer that failed."""
    lines = []
    for grade in record.checks:
        if grade.output:
            name = one_line(grade.check, 60)
            lines.append(("  ", f"What the {name} printed last:"))
            lines += _quote(grade.output, None)

    return lines


def _quote(text: str, limit: int | None, found: Sequence[Span] = ()) -> Lines:
    """The lines of a text, safe to print, with what was ``found`` marked."""
    marked = _mark(text, found)
    if limit is not None:
        marked = shortened(marked, limit)
    return [(_QUOTE, line) for line in visible(marked).split("\n")]


def _mark(text: str, found: Iterable[Span]) -> str:
    parts = []
    end = 0
    for start, stop in found:
        parts.append(f"{text[end:start]}»{text[start:stop]}«")
        end = stop

    return "".join([*parts, text[end:]])


# What agents did.


def _activity(record: Record) -> Iterator[Line]:
    if record.activity and works_on_model(record.agent):
        yield "  ", f"Agent: {record.activity.words}"


def _files(files: Sequence[AnswerFile]) -> Iterator[Line]:
    if files:
        yield "  ", "Files:"
    for file in files[:_MAX_FILES]:
        size = "" if file.change == "deleted" else f" ({counted(file.size, 'byte')})"
        yield "    ", f"{file.change} {one_line(file.path, _MAX_PATH)}{size}"
    if hidden := len(files[_MAX_FILES:]):
        yield "    ", f"and {counted(hidden, 'more file')}"


def _turns(record: Record, *, is_full: bool) -> Iterator[Line]:
    """The last steps, without the prompt and the answer, which are shown above."""
    turns = [turn for turn in record.transcript if turn.kind not in ("system", "user")]
    if turns and turns[-1].kind == "assistant" and turns[-1].text == record.output:
        turns.pop()

    most = _MAX_STEPS_IN_FULL if is_full else _MAX_STEPS
    shown = turns[-most:]
    if shown:
        selection = "All" if shown == turns else f"The last {len(shown):,} of"
        yield "  ", f"{selection} {counted(len(turns), 'step')}:"
    for turn in shown:
        limit = _MAX_STEP_IN_FULL if is_full else _MAX_STEP
        yield "    ", f"{_turn_words(turn)}: {one_line(_turn_text(turn), limit)}"


def _turn_words(turn: Turn) -> str:
    tool = one_line(turn.tool, 60)
    if turn.kind == "call":
        return f"calls {tool}"
    if turn.kind == "result":
        return f"{tool} {'failed' if turn.failed else 'gave'}"

    return _TURN_WORDS[turn.kind]


def _turn_text(turn: Turn) -> str:
    """A single argument of a call is shown without braces and quotes."""
    if turn.kind != "call":
        return turn.text
    try:
        arguments = json.loads(turn.text)
    except (ValueError, RecursionError):
        return turn.text

    values = list(arguments.values()) if isinstance(arguments, dict) else []
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]

    return turn.text


# What is expected.


def expected_lines(written: Any) -> Iterator[str]:
    """``expected`` of a case, a line for each check; not yet safe to print."""
    groups = written if isinstance(written, list) else [written]
    for group in groups:
        for name, argument in (group or {}).items():
            if argument is not None:  # null means absent
                yield f"{name}: {_argument(argument)}"


def _argument(argument: Any) -> str:
    """A list of texts without brackets; else as it is in JSON."""
    text = json.dumps(argument, ensure_ascii=False)
    if isinstance(argument, list) and all(isinstance(part, str) for part in argument):
        return text[1:-1]

    return text


# Colours.

_GRADE_STYLES: Final[Mapping[str, Mapping[str, bool]]] = {
    "FAIL": {"red": True, "bold": True},
    "ok": {"green": True},
    "miss": {"yellow": True},
}
_GRADE: Final = re.compile(r"(?<=\A  )(?:FAIL|ok|miss)(?= +\S)")
_HEADING: Final = re.compile(
    r"\A(?:Question|Expected|Run \d+, with|With|Without|Rerun|In the page)\b[^:]*:"
)


def painted_failure(
    lines: Iterable[str], marks: Marks, paint: Paint, headlines: int = 1
) -> Iterator[str]:
    """The first line says what is wrong, perhaps with others that it is wrapped
    onto.
    """
    found = re.compile(f"{re.escape(marks.opens)}.+?{re.escape(marks.closes)}")
    for number, line in enumerate(lines):
        if number < headlines:
            yield paint(line, red=True, bold=True)
            continue

        grade = _GRADE.search(line)
        if grade:
            word = grade.group()
            yield _GRADE.sub(paint(word, **_GRADE_STYLES[word]), line)
        elif _HEADING.match(line):
            yield _HEADING.sub(lambda match: paint(match.group(), bold=True), line)
        else:
            yield found.sub(lambda match: paint(match.group(), yellow=True), line)
