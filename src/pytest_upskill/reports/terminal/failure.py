"""Why a case failed: the question, what is expected, what each arm answered, run by run."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..._util.texts import WORTH_CUTTING, counted, harmless, one_line
from ...checks.parse import RESERVED
from ...trials.records import Record
from .layout import UNICODE_MARKS, Marks, beside, wrapped

_QUESTION: Final = 600  # characters that are shown at most
_ANSWER: Final = 1600
_LINE: Final = 200
_RUNS: Final = {0: (1, 1), 1: (3, 2)}  # by verbosity: of those that failed, of those that passed
_SIDE_BY_SIDE: Final = {2: 110, 3: 160}  # by the number of arms: the columns that it takes
_MARKS: Final = {True: "ok  ", False: "FAIL", None: "miss"}

Span = tuple[int, int]
_Line = tuple[str, str, str]  # what it begins with, its text, what it goes on with if it is broken


@dataclass(frozen=True)
class Look:
    """How much of a failure is shown, and with how much room; the verbosity is pytest's."""

    width: int = 80
    verbosity: int = 0
    marks: Marks = UNICODE_MARKS

    def most(self, characters: int) -> int | None:
        """With -v five times as much as without, with -vv all."""
        if self.verbosity >= 2:
            return None
        return 5 * characters if self.verbosity == 1 else characters

    def wrapped(self, lines: Iterable[_Line], width: int | None = None) -> list[str]:
        """Lines that fit; with -vv they are left as they are, for who copies them."""
        if self.verbosity >= 2:
            return [first + text for first, text, _ in lines]
        around = (self.marks.opens, self.marks.closes)
        return [
            part
            for first, text, rest in lines
            for part in wrapped(
                text.expandtabs(4).rstrip(),
                width or self.width,
                first=first,
                rest=rest,
                around=around,
            )
        ]

    def line(self, text: str, limit: int | None) -> str:
        return one_line(text, limit).replace("…", self.marks.cut)


def failure_text(
    question: str,
    records: Sequence[Record],
    *,
    expected: Any = None,
    found: Callable[[str], Sequence[Span]] = lambda _: (),
    against: str | None = None,
    standing: str | None = None,
    look: Look = Look(),  # noqa: B008 - it is frozen
) -> str:
    """The text of one failed item. ``found`` tells where in an answer checks found something.

    ``standing`` is what the headline begins with instead of how many runs passed.
    """
    titles = {
        "skill": "with the skill",
        "previous": f"with the skill at {one_line(against or '', 60)}",
        "baseline": "without it",
    }
    by_arm = {
        title: own
        for arm, title in titles.items()
        if (own := {record.run: record for record in records if record.arm == arm})
    }
    runs = sorted({record.run for record in records})
    shown = _shown([record for record in records if record.arm == "skill"], look)
    blocks = [[_headline(records, standing, look)], ["Question:", *_asked(question, look)]]
    answers = []
    for run in shown:
        arms = []
        for title, own in by_arm.items():
            if run in own:
                told = f"run {run}, {title}" if len(runs) > 1 else title
                arms.append(_arm(f"{told[0].upper()}{told[1:]}", own[run], found, look))
        answers += _laid_out(arms, look)
    blocks += [_expected(expected, answers, look)] if expected else []
    blocks += [[_totals(by_arm)]] if len(runs) > 1 else []
    blocks += answers
    if left := len(runs) - len(shown):
        how = "-vv shows all" if look.verbosity > 0 else "-v shows more, -vv all"
        blocks.append([f"{counted(left, 'more run')} not shown here: {how}."])
    return "\n\n".join("\n".join(block) for block in blocks)


def _headline(records: Sequence[Record], standing: str | None, look: Look) -> str:
    """One line for pytest's short summary."""
    own = [record for record in records if record.arm == "skill"]
    grades = [grade for record in own for grade in record.checks]
    reasons = [grade.reason for grade in grades if grade.required and not grade.passed]
    told = look.line("; ".join(dict.fromkeys(reasons)), 200)
    if standing is None and len(own) > 1:
        passed = sum(record.outcome == "passed" for record in own)
        standing = f"{passed} of {len(own)} runs passed"
    return f"{look.line(standing, None)}: {told}" if standing else told


def _asked(question: str, look: Look) -> list[str]:
    lines = quoted(question, look.most(_QUESTION), look.marks)
    return look.wrapped(("  | ", line, "  | ") for line in lines)


def _expected(expected: Any, answers: Sequence[Sequence[str]], look: Look) -> list[str]:
    marked = any(look.marks.opens in line for block in answers for line in block)
    legend = f" (what checks found is marked {look.marks.opens}so{look.marks.closes})"
    lines = [look.line(line, look.most(_LINE)) for line in expected_lines(expected)]
    told = look.wrapped(("  ", line, "    ") for line in lines)
    return [f"Expected{legend if marked else ''}:", *told]


def _totals(by_arm: Mapping[str, Mapping[int, Record]]) -> str:
    counts: list[str] = []
    for title, own in by_arm.items():
        passed = sum(record.outcome == "passed" for record in own.values())
        number = f"{passed} of {len(own)}"
        counts.append(f"{title}: {number}" if counts else f"{title}: passed {number} runs")
    return ". ".join(f"{count[0].upper()}{count[1:]}" for count in counts) + "."


def _shown(records: Sequence[Record], look: Look) -> list[int]:
    """The runs that tell most: some that failed with the skill, then some that passed."""
    failed = [record.run for record in records if record.outcome != "passed"]
    passed = [record.run for record in records if record.outcome == "passed"]
    if look.verbosity >= 2:
        return [*failed, *passed]
    most_failed, most_passed = _RUNS[max(look.verbosity, 0)]
    return [*failed[:most_failed], *passed[:most_passed]]


def _arm(
    title: str, record: Record, found: Callable[[str], Sequence[Span]], look: Look
) -> list[_Line]:
    """What a model answered, after what the checks say of it."""
    lines = [("", f"{title}: {record.outcome}", "  ")]
    for grade in record.checks:
        mark = _MARKS[grade.passed or (False if grade.required else None)]
        reason = look.line(grade.reason, look.most(2 * _LINE))
        lines.append((f"  {mark} ", f"{look.line(grade.check, 60)}: {reason}", " " * 7))
    lines.append(("  ", f"Answer{_details(record)}:", "  "))
    text = record.output or ""
    for line in quoted(text, look.most(_ANSWER), look.marks, found(text)):
        lines.append(("  | ", line, "  | "))
    return lines


def _laid_out(arms: Sequence[Sequence[_Line]], look: Look) -> list[list[str]]:
    """Side by side where there is room for it, else, and with -vv, below each other."""
    if look.verbosity >= 2 or look.width < _SIDE_BY_SIDE.get(len(arms), look.width + 1):
        return [look.wrapped(lines) for lines in arms]
    wall = f" {look.marks.wall} "
    room = (look.width - len(wall) * (len(arms) - 1)) // len(arms)
    return [beside([look.wrapped(lines, room) for lines in arms], room, wall)]


def _details(record: Record) -> str:
    parts = []
    if record.output_tokens is not None:
        parts.append(counted(record.output_tokens, "token"))
    if record.seconds is not None:
        parts.append(f"{record.seconds:.1f} s")
    return f" ({', '.join(parts)})" if parts else ""


def expected_lines(written: Any) -> Iterator[str]:
    """Of ``expected`` as it is written in a case; the lines are not harmless yet."""
    if isinstance(written, list):
        for group in written:
            yield from expected_lines(group)
    elif isinstance(written, dict):
        settings = _settings(written)
        for name, argument in written.items():
            if argument is None:  # how some programs write "not there"
                continue
            if name == "all_of":
                yield from expected_lines(argument)
            elif name in ("any_of", "not"):
                yield f"{name}: {_choices(argument)}{settings}"
            elif name not in RESERVED:
                for text in _arguments(name, argument):
                    yield f"{name}: {text}{settings}"


def _settings(group: dict[str, Any]) -> str:
    said = ["case counts"] if group.get("case_sensitive") else []
    said += ["not required"] if group.get("required") is False else []
    return f" ({', '.join(said)})" if said else ""


def _choices(groups: Any) -> str:
    """Groups on one line."""
    each = groups if isinstance(groups, list) else [groups]
    return "; or ".join("; and ".join(expected_lines(group)) for group in each)


def _arguments(name: str, argument: Any) -> Iterator[str]:
    texts = argument if isinstance(argument, list) else [argument]
    if not all(isinstance(text, str) for text in texts):
        yield json.dumps(argument, ensure_ascii=False)
    elif name == "judge":  # sentences, each with a line of its own
        yield from texts
    else:
        yield ", ".join(f'"{text}"' for text in texts)


def quoted(text: str, limit: int | None, marks: Marks, spans: Sequence[Span] = ()) -> list[str]:
    """The lines of a text; of a long one the beginning and the end, and how much was cut."""
    if limit is None or len(text) < limit + WORTH_CUTTING:
        return harmless(_marked(text, 0, len(text), spans, marks)).split("\n")
    head, tail = limit * 3 // 4, len(text) - limit // 4
    hidden = any(head <= start and stop <= tail for start, stop in spans)
    among = ", something that was found among them" if hidden else ""
    return [
        *harmless(_marked(text, 0, head, spans, marks)).split("\n"),
        f"[{marks.cut} {tail - head:,} characters left out{among} {marks.cut}]",
        *harmless(_marked(text, tail, len(text), spans, marks)).split("\n"),
    ]


def _marked(text: str, start: int, stop: int, spans: Iterable[Span], marks: Marks) -> str:
    """A part of a text, in which the parts of spans that are in it stand between marks."""
    parts, at = [], start
    for first, last in spans:
        first, last = max(first, start), min(last, stop)
        if first < last:
            parts += [text[at:first], marks.opens, text[first:last], marks.closes]
            at = last
    return "".join([*parts, text[at:stop]])
