"""Why a case failed: the question, what is expected, and each arm's answer, run by
run.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..._util.texts import (
    WORTH_CUTTING,
    counted,
    first_few,
    one_line,
    seconds,
    shortened,
    visible,
)
from ...checks.check import spans
from ...checks.parse import RESERVED, WITH_SKILL
from ...errors import without_commands
from ...results.oracle_results import oracle_faults
from ...results.summary import checks_of
from ...trials.answer import AnswerFile
from ...trials.records import Record, Span
from ...trials.subject import CHAT, ORACLE
from ...trials.transcript import Transcript, Turn
from ..numbers import checks_words, short
from .layout import Marks, Paint, TerminalLook, side_by_side, wrapped

Line = tuple[str, str, str]  # first prefix, text, prefix of continuation lines

_LOST_BY_WRAPPING: Final = 12  # columns of two lines
_QUESTION: Final = 3000  # characters shown with -v; -vv shows everything
_ANSWER: Final = 8000
_LINE: Final = 1000
_RUNS: Final = (2, 1)  # failed and passed ones that -v shows
_FILES: Final = 3  # named where an answer has no text
_LAST_LINES: Final = 10  # of a verifier, without -v
_SIDE_BY_SIDE: Final = {2: 110, 3: 160}  # by number of arms: the width that it takes
_GRADES: Final = {True: "ok  ", False: "FAIL", None: "miss"}


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
    titles: dict[str, str] = {
        "skill": "with the skill" if has_skill else "with no skill",
        "previous": f"with the skill at {one_line(against or '', 60)}",
        "again": "with the skill again",
        "baseline": "without it",
    }
    if _is_oracle(records):
        titles = {"skill": "with the reference", "baseline": "with an empty answer"}
    by_arm = {
        title: by_run
        for arm, title in titles.items()
        if (by_run := {record.run: record for record in records if record.arm == arm})
    }
    runs = sorted({record.run for record in records})
    if look.verbosity < 1:
        lines = [_headline(records, standing, look), *_brief(question, by_arm, look)]
        return without_commands("\n".join(lines))
    shown_runs = _shown_runs(
        [record for record in records if record.arm == "skill"], look
    )
    blocks = [
        [_headline(records, standing, look)],
        ["Question:", *_question(question, look)],
    ]
    answers = list[list[str]]()
    same: dict[str, list[str]] = {}  # the titles of trials, by what was answered
    for run in shown_runs:
        arms = []
        for title, by_run in by_arm.items():
            if run in by_run:
                words = f"run {run}, {title}" if len(runs) > 1 else title
                alike = same.setdefault(_answered(by_run[run], look) or words, [])
                arms += [] if alike else [_arm(_capital(words), by_run[run], look)]
                alike.append(words)
        answers += _laid_out(arms, look)
    repeated = [
        f"Same answer: {'; '.join(alike)}." for alike in same.values() if len(alike) > 1
    ]
    answers += (
        [_wrapped((("", line, "  ") for line in repeated), look)] if repeated else []
    )
    blocks += [_expected(expected, answers, look)] if expected else []
    blocks += [_wrapped([("", _totals(by_arm), "  ")], look)] if len(runs) > 1 else []
    blocks += answers
    if hidden := len(runs) - len(shown_runs):
        blocks.append([f"{counted(hidden, 'more run')} not shown: -vv shows all."])
    return without_commands("\n\n".join("\n".join(block) for block in blocks))


def _headline(
    records: Sequence[Record], standing: str | None, look: TerminalLook
) -> str:
    """One line for pytest's short summary."""
    if _is_oracle(records):
        return _one_line("; ".join(oracle_faults(records)), 500, look)
    with_skill = [record for record in records if record.arm == "skill"]
    grades = [grade for record in with_skill for grade in record.checks]
    reasons = [grade.reason for grade in grades if grade.required and not grade.passed]
    text = _one_line("; ".join(dict.fromkeys(reasons)), 200, look)
    if standing is None and len(with_skill) > 1:
        passed = sum(record.outcome == "passed" for record in with_skill)
        standing = f"{passed} of {len(with_skill)} runs passed"
    parts = [part for part in (standing, _both_arms(records)) if part]
    return f"{_one_line(', '.join(parts), None, look)}: {text}" if parts else text


def _is_oracle(records: Sequence[Record]) -> bool:
    return any(record.agent == ORACLE for record in records)


def _brief(
    question: str, by_arm: Mapping[str, Mapping[int, Record]], look: TerminalLook
) -> list[str]:
    """The question, how each arm did, and the first answer with the skill that
    failed.
    """
    with_skill, *others = by_arm.values()
    failed = [record for record in with_skill.values() if record.outcome != "passed"]
    record = (failed or [*with_skill.values()])[0]
    several = len(with_skill) > 1
    outcomes = [
        f"{title}: {_beside(by_run[record.run], record)}"
        for title, by_run in zip([*by_arm][1:], others, strict=True)
        if record.run in by_run and not several
    ]
    aside = f" ({', '.join(outcomes)})" if outcomes else ""
    first = next(iter(by_arm))
    title = f"Run {record.run}, {first}" if several else f"{_capital(first)}{aside}"
    output = record.output or ""
    text = _marked(output, 0, len(output), spans(record.checks), look.marks)
    lines = [
        f"Question: {question}",
        *([_totals(by_arm)] if several else []),
        *(words for _, words, _ in activity_line(record)),
        f"{title}: {text or _without_text(record)}",
    ]
    two_lines = 2 * look.width - _LOST_BY_WRAPPING
    shown = [("", _one_line(line, two_lines, look), "  ") for line in lines]
    return _wrapped([*shown, *_printed(record, _LAST_LINES, look)], look)


def _without_text(record: Record) -> str:
    files = [
        f"{file.change} {one_line(file.path, _SHOWN_PATH)}" for file in record.files
    ]
    return f"({first_few(files, _FILES)})" if files else "(an empty answer)"


def _beside(other: Record, record: Record) -> str:
    """How another arm did; its reward, if its outcome is the same."""
    if _left(other) == _left(record):
        return "same answer"
    rewards = [grade.reason for grade in other.checks if grade.share is not None]
    same_outcome = other.outcome == record.outcome and other.score != record.score
    return rewards[0] if rewards and same_outcome else other.outcome


def _left(record: Record) -> tuple[object, ...]:
    """What an answer is: its text, its files and its result."""
    return record.output, record.files, record.outcome, record.score


def _both_arms(records: Sequence[Record]) -> str:
    """``6 of 7 checks (0 without the skill)``, if there are many checks."""
    skill, baseline = checks_words(records, "skill"), checks_of(records, "baseline")
    without = f" ({short(baseline[0])} without the skill)" if skill and baseline else ""
    return skill.removeprefix(", ") + without


def _question(question: str, look: TerminalLook) -> list[str]:
    lines = quoted(question, _limit(_QUESTION, look), look.marks)
    return _wrapped((("  | ", line, "  | ") for line in lines), look)


def _expected(
    expected: Any, answers: Sequence[Sequence[str]], look: TerminalLook
) -> list[str]:
    marked = any(look.marks.opens in line for block in answers for line in block)
    legend = f" (found text is marked {look.marks.opens}like this{look.marks.closes})"
    lines = [
        _one_line(line, _limit(_LINE, look), look) for line in expected_lines(expected)
    ]
    lines_shown = _wrapped((("  ", line, "    ") for line in lines), look)
    return [f"Expected{legend if marked else ''}:", *lines_shown]


def _totals(by_arm: Mapping[str, Mapping[int, Record]]) -> str:
    counts: list[str] = []
    for title, by_run in by_arm.items():
        passed = sum(record.outcome == "passed" for record in by_run.values())
        number = f"{passed} of {len(by_run)}"
        words = f"{title}: {number}" if counts else f"{title}: {number} runs passed"
        arm = next(iter(by_run.values())).arm
        counts.append(words + checks_words(by_run.values(), arm))
    return ". ".join(map(_capital, counts)) + "."


def _shown_runs(records: Sequence[Record], look: TerminalLook) -> list[int]:
    """The runs to show: failed ones first, then some that passed."""
    failed = [record.run for record in records if record.outcome != "passed"]
    passed = [record.run for record in records if record.outcome == "passed"]
    if look.verbosity >= 2:
        return [*failed, *passed]
    most_failed, most_passed = _RUNS
    return [*failed[:most_failed], *passed[:most_passed]]


def _answered(record: Record, look: TerminalLook) -> str:
    """What trials have in common that need not be shown twice; empty if they are,
    with -vv.
    """
    if look.verbosity >= 2 or not record.output or record.transcript:
        return ""
    return repr((_left(record), [grade.passed for grade in record.checks]))


def _arm(title: str, record: Record, look: TerminalLook) -> list[Line]:
    """The checks of an answer, then the answer; of an agent, also what it did."""
    lines = [
        ("", f"{title}: {record.outcome}{checks_words([record], record.arm)}", "  ")
    ]
    for grade in record.checks:
        mark = _GRADES[grade.passed or (False if grade.required else None)]
        reason = _one_line(grade.reason, _limit(2 * _LINE, look), look)
        lines.append(
            (f"  {mark} ", f"{_one_line(grade.label, 60, look)}: {reason}", " " * 7)
        )
    lines += _printed(record, None, look)
    lines += activity_line(record)
    lines.append(("  ", f"Answer{_details(record)}:", "  "))
    text = record.output or ""
    for line in quoted(text, _limit(_ANSWER, look), look.marks, spans(record.checks)):
        lines.append(("  | ", line, "  | "))
    return [*lines, *trial_lines(record, look)]


def _printed(record: Record, most: int | None, look: TerminalLook) -> Iterator[Line]:
    """The end of what verifiers printed about an answer that failed."""
    for grade in record.checks:
        lines = quoted(grade.output, None, look.marks) if grade.output else []
        if lines:
            yield (
                "  ",
                f"What the {_one_line(grade.check, 60, look)} printed last:",
                "  ",
            )
        for line in lines if most is None else _last_rows(lines, most, look.width - 4):
            yield "  | ", line, "  | "


def _last_rows(lines: Sequence[str], most: int, width: int) -> list[str]:
    """The last lines, whole, on so many rows; of a longer one, its end."""
    rows = list[str]()
    for line in reversed(lines):
        parts = wrapped(line.expandtabs(4).rstrip(), width)
        if rows and len(rows) + len(parts) > most:
            break
        rows = [*parts, *rows]
    return rows[-most:]


def _details(record: Record) -> str:
    parts = []
    if record.output_tokens is not None:
        parts.append(counted(record.output_tokens, "token"))
    if record.seconds is not None:
        parts.append(f"{seconds(record.seconds)} s")
    return f" ({', '.join(parts)})" if parts else ""


def _laid_out(arms: Sequence[Sequence[Line]], look: TerminalLook) -> list[list[str]]:
    """Side by side if there is room, else (and with -vv) one below the other."""
    if look.verbosity >= 2 or look.width < _SIDE_BY_SIDE.get(len(arms), look.width + 1):
        return [_wrapped(lines, look) for lines in arms]
    wall = f" {look.marks.wall} "
    width = (look.width - len(wall) * (len(arms) - 1)) // len(arms)
    return [side_by_side([_wrapped(lines, look, width) for lines in arms], width, wall)]


def _wrapped(
    lines: Iterable[Line], look: TerminalLook, width: int | None = None
) -> list[str]:
    """Lines that fit; with -vv they stay whole, so that they can be copied."""
    if look.verbosity >= 2:
        return [first + text for first, text, _ in lines]
    around = (look.marks.opens, look.marks.closes)
    return [
        part
        for first, text, indent in lines
        for part in wrapped(
            text.expandtabs(4).rstrip(),
            width or look.width,
            first=first,
            rest=indent,
            around=around,
        )
    ]


def _limit(characters: int, look: TerminalLook) -> int | None:
    """-vv shows everything."""
    return None if look.verbosity >= 2 else characters


def _one_line(text: str, limit: int | None, look: TerminalLook) -> str:
    return one_line(text, limit).replace("…", look.marks.cut)


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def quoted(
    text: str, limit: int | None, marks: Marks, spans: Sequence[Span] = ()
) -> list[str]:
    """The lines of a text, safe to print, with ``spans`` marked; a long one is cut."""
    if limit is None or len(text) < limit + WORTH_CUTTING:
        return visible(_marked(text, 0, len(text), spans, marks)).split("\n")
    head, tail = limit * 3 // 4, len(text) - limit // 4
    hidden = any(head <= start and stop <= tail for start, stop in spans)
    among = ", including found text" if hidden else ""
    return [
        *visible(_marked(text, 0, head, spans, marks)).split("\n"),
        f"[{marks.cut} {tail - head:,} characters left out{among} {marks.cut}]",
        *visible(_marked(text, tail, len(text), spans, marks)).split("\n"),
    ]


def _marked(
    text: str, start: int, stop: int, spans: Iterable[Span], marks: Marks
) -> str:
    """A part of a text, with marks around the spans in it."""
    parts, at = [], start
    for span_start, span_stop in spans:
        first = max(span_start, start)
        last = min(span_stop, stop)
        if first < last:
            parts += [text[at:first], marks.opens, text[first:last], marks.closes]
            at = last
    return "".join([*parts, text[at:stop]])


def expected_lines(written: Any) -> Iterator[str]:
    """``expected`` of a case, a line for each check; not yet safe to print."""
    if isinstance(written, list):
        for group in written:
            yield from expected_lines(group)
    elif isinstance(written, dict):
        settings = _settings(written)
        for name, argument in written.items():
            if argument is None:  # null means absent
                continue
            if name == "all_of":
                yield from expected_lines(argument)
            elif name == WITH_SKILL:
                yield from (f"{name}: {line}" for line in expected_lines(argument))
            elif name in ("any_of", "not"):
                yield f"{name}: {_choices(argument)}{settings}"
            elif name not in RESERVED:
                for text in _arguments(name, argument):
                    yield f"{name}: {text}{settings}"


def _settings(group: dict[str, Any]) -> str:
    words = ["case-sensitive"] if group.get("case_sensitive") else []
    words += ["not required"] if group.get("required") is False else []
    return f" ({', '.join(words)})" if words else ""


def _choices(groups: Any) -> str:
    """Groups of checks on one line."""
    each = groups if isinstance(groups, list) else [groups]
    return "; or ".join("; and ".join(expected_lines(group)) for group in each)


def _arguments(name: str, argument: Any) -> Iterator[str]:
    texts = argument if isinstance(argument, list) else [argument]
    if not all(isinstance(text, str) for text in texts):
        yield json.dumps(argument, ensure_ascii=False)
    elif name == "judge":  # each criterion is a sentence with a line of its own
        yield from texts
    else:
        yield ", ".join(f'"{text}"' for text in texts)


_SHOWN_PATH: Final = 200


@dataclass(frozen=True)
class _LineLimits:
    """How much is shown."""

    replies: int
    turns: int
    characters: int  # of a turn, or of a file
    files: int
    full: bool  # whole texts, instead of one line each


_LINE_LIMITS: Final = {
    1: _LineLimits(3, 12, 300, 20, full=False),
    2: _LineLimits(30, 100, 1500, 50, full=True),
}


def activity_line(record: Record) -> Iterator[Line]:
    if record.activity and record.agent not in (CHAT, ORACLE):
        yield "  ", f"Agent: {record.activity.words}", "    "


def trial_lines(record: Record, look: TerminalLook) -> Iterator[Line]:
    """Findings, files and the last turns; with -vv, more of them."""
    limits = _LINE_LIMITS[min(look.verbosity, 2)]
    for lines in (
        _findings(record, limits),
        _files(record.files, limits),
        _turns(record, limits),
    ):
        for first, text, indent in lines:
            yield first, text.replace("…", look.marks.cut), indent


def _findings(record: Record, limits: _LineLimits) -> Iterator[Line]:
    for finding in record.activity.findings if record.activity else ():
        yield "  ", f"Note: {one_line(finding, limits.characters)}", "    "


def _files(files: Sequence[AnswerFile], limits: _LineLimits) -> Iterator[Line]:
    if files:
        yield "  ", "Files:", "  "
    for file in files[: limits.files]:
        size = "" if file.change == "deleted" else f" ({counted(file.size, 'byte')})"
        yield (
            "    ",
            f"{file.change} {one_line(file.path, _SHOWN_PATH)}{size}",
            "      ",
        )
        if limits.full and file.text:
            yield from _text_lines(file.text, limits, "      | ")
    if len(files) > limits.files:
        yield "    ", f"and {counted(len(files) - limits.files, 'more file')}", "      "


def _turns(record: Record, limits: _LineLimits) -> Iterator[Line]:
    turns = _without_answer(record)
    if not limits.full:  # the prompt is shown above
        turns = tuple(turn for turn in turns if turn.kind not in ("system", "user"))
    last = max((turn.reply for turn in turns), default=0)
    shown_turns = [turn for turn in turns if turn.reply > last - limits.replies][
        -limits.turns :
    ]
    if not shown_turns:
        return
    selection = (
        "All" if len(shown_turns) == len(turns) else f"The last {len(shown_turns):,} of"
    )
    yield "  ", f"{selection} {counted(len(turns), 'step')}:", "  "
    for turn in shown_turns:
        first, text = _turn_words(turn)
        if limits.full:
            yield "    ", f"{first}:", "      "
            yield from _text_lines(text, limits, "      | ")
        else:
            yield "    ", f"{first}: {one_line(text, limits.characters)}", "      "


def _without_answer(record: Record) -> Transcript:
    """Without the final answer, which is shown above."""
    turns = record.transcript
    if turns and turns[-1].kind == "assistant" and turns[-1].text == record.output:
        return turns[:-1]
    return turns


_WORDS: Final = {
    "thinking": "thinks",
    "assistant": "says",
    "system": "is told",
    "user": "is asked",
    "answer": "is answered",
}


def _turn_words(turn: Turn) -> tuple[str, str]:
    tool = one_line(turn.tool, 60)
    if turn.kind == "call":
        return f"calls {tool}", _argument(turn.text)
    if turn.kind == "result":
        return f"{tool} {'failed' if turn.failed else 'gave'}", turn.text
    return _WORDS[turn.kind], turn.text


def _argument(text: str) -> str:
    """A single argument of a call is shown without braces and quotes."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return text
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text


def _text_lines(text: str, limits: _LineLimits, prefix: str) -> Iterator[Line]:
    for line in visible(shortened(text, limits.characters)).split("\n"):
        yield prefix, line, prefix


_RED: Final = {"red": True, "bold": True}
_GREEN: Final = {"green": True}
_YELLOW: Final = {"yellow": True}
_BOLD: Final = {"bold": True}
_GRADE: Final = re.compile(r"(?P<before>\A  )(?P<word>FAIL|ok|miss)(?= +\S)")
_TITLE: Final = re.compile(
    r"\A(?P<title>(?:Run \d+, with|With|Without)[^:]*:"
    r" )(?P<outcome>passed|failed|errored)\b"
)
_HEADING: Final = re.compile(
    r"\A(?:Question|Expected|Run \d+, with|With (?:the|no) skill|Rerun|In the"
    r" page)\b[^:]*:",
    re.ASCII,
)
_STYLES: Final = {
    "FAIL": _RED,
    "ok": _GREEN,
    "miss": _YELLOW,
    "failed": _RED,
    "passed": _GREEN,
    "errored": _YELLOW,
}


def painted_failure(
    lines: Iterable[str], marks: Marks, paint: Paint, headlines: int = 1
) -> Iterator[str]:
    """The first line says what is wrong, perhaps with others that it is wrapped
    onto.
    """
    wall = f" {marks.wall} "
    for number, line in enumerate(lines):
        if number < headlines:
            yield paint(line, **_RED)
        else:
            # Both arms may be side by side, and an answer may contain a wall itself.
            yield wall.join(_painted(part, marks, paint) for part in line.split(wall))


def _painted(line: str, marks: Marks, paint: Paint) -> str:
    if grade := _GRADE.match(line):
        word = grade["word"]
        return f"  {paint(word, **_STYLES[word])}{line[grade.end() :]}"
    if title := _TITLE.match(line):
        outcome = paint(title["outcome"], **_STYLES[title["outcome"]])
        return f"{paint(title['title'], **_BOLD)}{outcome}{line[title.end() :]}"
    if heading := _HEADING.match(line):
        return f"{paint(heading.group(), **_BOLD)}{line[heading.end() :]}"
    marked = re.compile(f"{re.escape(marks.opens)}.+?{re.escape(marks.closes)}")
    return marked.sub(lambda match: paint(match.group(), **_YELLOW, **_BOLD), line)
