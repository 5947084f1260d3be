"""The last lines of a run: why it fails, how each skill does, what was spent, what to do next.

A cross is only on what makes the run fail, and a run that fails has one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from ..._util.texts import counted, dollars, harmless, one_line, percent, points
from ...results.arm_comparison import unit_of
from ...results.neighbours import conclusion
from ...results.parts import conclusions
from ...results.run import RunResults
from ...results.triggers import TriggerSummary, trigger_reasons
from ...results.verdict import Verdict, Word, gate_reasons, missing_words
from ...stats import Lift
from ..phrases import cache_words
from .layout import Look, cut, cut_middle, distinct_names, text_width, wrapped

_MOST: Final = 5  # skills, and reasons
_LONGEST_REASON: Final = 300
_LONGEST: Final = 30  # name of a skill or a model
_SHORTEST: Final = 12
# Of names, and whether the bounds are told: a lift without them looks surer than it is.
_LAYOUTS: Final = (
    *((_LONGEST, True), (20, True)),
    *((_LONGEST, False), (20, False), (_SHORTEST, False)),
)
_LONGEST_REF: Final = 20
_BACKSLASH: Final = " \\"


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
    what: str = "call"  # what is counted: an agent makes many calls for an answer
    source: str = "cache"  # where the stored ones are from


@dataclass(frozen=True)
class Ending:
    """How a run ended, besides its results."""

    failed: bool = False  # by its exit status
    problems: Sequence[str] = ()  # say, a report that could not be written
    not_reached: Sequence[str] = ()  # skills
    notes: Sequence[str] = ()  # what else may be a problem, if there is no summary above
    studies: bool = False  # whether to tell what studies found, as nothing above does
    page: str = ""  # a link into the HTML page
    spent: Spent | None = None
    before_next: str = ""  # what to know, or to do, before the next command
    next: Sequence[str] = ()  # the words of the next command


def closing_lines(results: RunResults | None, ending: Ending, look: Look) -> list[str]:
    """All of them, painted; empty if there is nothing to say."""
    marks, paint = look.marks, look.paint
    bad = paint(marks.bad, red=True, bold=True)
    skills = _skills(results, ending) if results else []
    reasons = [*ending.problems, *(_reasons(results) if results else [])]
    if ending.failed and not reasons and not any(skill.fails for skill in skills):
        reasons = ["failed: see above"]
    mark = bad if ending.failed else paint("!", **_STYLES["warn"])
    red = ending.failed
    lines = [line for one in _few(reasons) for line in _said(mark, one, look, red=red)]
    if ending.not_reached:
        names = [one_line(name, _LONGEST) for name in ending.not_reached[:_MOST]]
        more = len(ending.not_reached) - len(names)
        named = ", ".join(names) + (f" and {more} more" if more else "")
        lines += _said(bad, f"not reached: {named}", look)
    lines += [skill.line(look) for skill in skills[:_MOST]]
    if len(skills) > _MOST:
        lines.append(_more(skills[_MOST:], look))
    told = [*ending.notes, *(_studies(results) if results and ending.studies else [])]
    lines += [line for one in told for line in _said(marks.dot, one, look)]
    if ending.page:
        lines.append(f"page: {harmless(ending.page)}")
    if ending.spent and (said := spent_words(ending.spent)):
        lines += wrapped(said, look.width, rest="  ")
    if ending.before_next:
        lines += wrapped(harmless(ending.before_next), look.width, rest="  ")
    if ending.next:
        lines += command_lines("next: ", ending.next, look.width)
    return [line.replace("…", marks.cut) for line in lines]


def _few(reasons: Sequence[str]) -> list[str]:
    """The first ones, and the last: after those of cases it is the one of a skill as a whole."""
    shown = [one_line(one, _LONGEST_REASON) for one in reasons]
    if (more := len(shown) - _MOST) <= 0:
        return shown
    return [*shown[: _MOST - 1], f"and {counted(more, 'more reason')}", shown[-1]]


def _said(mark: str, text: str, look: Look, *, red: bool = False) -> list[str]:
    """A line behind a mark, wrapped before it is painted."""
    first, *rest = wrapped(harmless(text), look.width - text_width(look.marks.bad) - 1, rest="  ")
    lines = [look.paint(line, red=True) if red else line for line in (first, *rest)]
    return [f"{mark} {lines[0]}", *lines[1:]]


def _reasons(results: RunResults) -> Iterator[str]:
    """Why the run fails, besides the tests that failed, which pytest has just counted."""
    if results.all_tests or results.lost:  # else nothing was asked at all, which is told
        yield from results.unfinished
    yield from (f"gate: {reason}" for reason in results.gate or ())
    if results.gate is None:
        yield from results.not_tested


def _studies(results: RunResults) -> Iterator[str]:
    for matrix in results.matrices:
        yield f"{matrix.model}: {conclusion(matrix)}"
    for parts in results.parts:
        yield from (f"{parts.skill} on {parts.model}: {said}" for said in conclusions(parts)[-1:])


# Skills.


class _Phrase(NamedTuple):
    """``helps haiku +60 (+35 to +80)``: what is said of a skill on a model."""

    badness: int
    verb: str  # "helps"; alike ones of several models are said once
    model: str
    number: str = ""
    bounds: str = ""  # goes if there is no room even with short names


_HURTS, _WORSE, _CLOSED, _MISSING, _OPEN, _PLAIN, _NOT_NEEDED, _HELPS = range(8)
_BADNESS: Final[Mapping[Word, int]] = {
    "hurts": _HURTS,
    "incomplete": _MISSING,
    "no effect shown": _OPEN,
    "not needed": _NOT_NEEDED,
    "helps": _HELPS,
}
_STYLES: Final = {
    "bad": {"red": True, "bold": True},
    "warn": {"yellow": True, "bold": True},
    "open": {"yellow": True},
    "good": {"green": True, "bold": True},
}
_ORDER: Final = ("bad", "warn", "open", "good")


@dataclass(frozen=True)
class _Skill:
    name: str
    standing: str  # a key of _STYLES
    phrases: tuple[_Phrase, ...]
    tests: str  # "3 of 10 tests failed", "only 2 of 10 cases"
    lift: float

    @property
    def fails(self) -> bool:
        return self.standing == "bad"

    @property
    def badness(self) -> tuple[int, int, float, str]:
        worst = min((one.badness for one in self.phrases), default=_PLAIN)
        return _ORDER.index(self.standing), worst, self.lift, self.name

    def line(self, look: Look) -> str:
        """With as much as fits: names are shortened first, then bounds go, then names of models."""
        mark = _mark(self.standing, look)
        painted, room = (
            look.paint(mark, **_STYLES[self.standing]),
            look.width - text_width(mark) - 1,
        )
        for text in self._texts(look):
            if text_width(text) <= room:
                return f"{painted} {text}"
        return f"{painted} {cut(text, room, look.marks.cut)}"

    def _texts(self, look: Look) -> Iterator[str]:
        for longest, bounds in _LAYOUTS:
            names = distinct_names({one.model for one in self.phrases}, longest, look.marks.cut)
            yield self._text(_joined(self.phrases, names, bounds=bounds), longest, look)
        yield self._text(_by_number(self.phrases), _SHORTEST, look)

    def _text(self, said: str, longest: int, look: Look) -> str:
        name = cut_middle(one_line(self.name, 200), longest, look.marks.cut)
        return "; ".join(filter(None, [f"{name} {said}", self.tests]))


def _mark(standing: str, look: Look) -> str:
    marks = {"bad": look.marks.bad, "warn": "!", "open": look.marks.dot, "good": look.marks.good}
    return marks[standing]


def _joined(phrases: Iterable[_Phrase], names: Mapping[str, str], *, bounds: bool) -> str:
    """Alike phrases share their verb."""
    parts = []
    for verb, group in groupby(phrases, key=lambda one: one.verb):
        each = [
            " ".join(filter(None, [names[one.model], one.number, one.bounds if bounds else ""]))
            for one in group
        ]
        parts.append(f"{verb} {', '.join(each)}")
    return "; ".join(parts)


def _by_number(phrases: Iterable[_Phrase]) -> str:
    found = [(verb, len(list(own))) for verb, own in groupby(phrases, key=lambda one: one.verb)]
    return "; ".join(f"{verb} {counted(number, 'model')}" for verb, number in found)


def _skills(results: RunResults, ending: Ending) -> list[_Skill]:
    """The worst first."""
    found = [_skill(results, skill.name, ending) for skill in results.skills]
    return sorted((one for one in found if one.phrases), key=lambda one: one.badness)


def _skill(results: RunResults, name: str, ending: Ending) -> _Skill:
    verdicts = [one for one in results.verdicts if one.summary.skill == name]
    rows = [one for one in results.trigger_summaries if one.skill == name]
    alone = len(verdicts) == 1
    phrases = [phrase for verdict in verdicts for phrase in _phrases(verdict, alone=alone)]
    phrases += [_triggers(row) for row in rows]
    phrases.sort(key=lambda one: (one.badness, one.verb))
    failed = [
        test
        for test in results.failed
        if test.skill == name and not results.is_errored(test)  # the verdict tells of these
    ]
    own = [test for test in results.all_tests if test.skill == name]
    parts = [f"{len(failed):,} of {counted(len(own), 'test')} failed"] if failed else []
    subsets = {**results.query_subsets, **results.subsets}
    parts += dict.fromkeys(f"only {of}" for (skill, _), of in subsets.items() if skill == name)
    worst = min((one.badness for one in phrases), default=_PLAIN)
    bad = failed or _misses_gates(results, name, verdicts, rows) or worst == _MISSING
    if bad and ending.failed:
        standing = "bad"
    elif bad or worst < _OPEN:
        standing = "warn"
    else:
        standing = "good" if _is_good(verdicts, rows) else "open"
    lift = min((one.lift.lift for one in verdicts if one.lift), default=0.0)
    return _Skill(name, standing, tuple(phrases), "; ".join(parts), lift)


def _misses_gates(
    results: RunResults, name: str, verdicts: Sequence[Verdict], rows: Sequence[TriggerSummary]
) -> bool:
    regressed = any(one.reasons for one in results.comparisons if one.skill == name)
    by_triggers = rows and trigger_reasons(rows, results.gates, [name])
    return bool(regressed or gate_reasons(verdicts, results.gates) or by_triggers)


def _is_good(verdicts: Sequence[Verdict], rows: Sequence[TriggerSummary]) -> bool:
    """Whether it is shown to do what it is for; without a baseline, whether all cases pass."""
    words = {verdict.word for verdict in verdicts}
    passes = all(one.summary.scored("skill") == 1 for one in verdicts if one.word is None)
    opened = not any(row.missed or row.alarms for row in rows)
    return words <= {"helps", "not needed", None} and words != {"not needed"} and passes and opened


def _phrases(verdict: Verdict, *, alone: bool) -> Iterator[_Phrase]:
    """``alone`` is on the only model of its skill."""
    row, lift, word = verdict.summary, verdict.lift, verdict.word
    model, unit = row.model, unit_of(row.score)
    number, bounds = _lift(lift, unit) if lift else ("", "")
    if change := verdict.over("previous"):
        ref = one_line(row.against or "", _LONGEST_REF)
        badness = {"worse": _WORSE, "better": _HELPS}.get(change.word, _OPEN)
        verb = f"{change.word} since {ref}"
        where = ("", verb) if alone else (model, f"{verb} on")
        yield _Phrase(badness, where[1], where[0], *_lift(change.lift, unit))
    if word == "incomplete":
        yield _Phrase(_BADNESS[word], f"{word} on", model, "", f"({missing_words(row)})")
    elif row.activation and not row.activation.count:
        yield _Phrase(_CLOSED, "never opened by", model)
    elif word == "not needed":
        without = f"({percent(row.scored('baseline') or 0.0)}{unit} pass without it)"
        yield _Phrase(_BADNESS[word], f"{word} on", model, "", without)
    elif word:
        verb = f"{word} on" if word == "no effect shown" else word
        yield _Phrase(_BADNESS[word], verb, model, number, bounds)
    else:
        passed = percent(row.scored("skill") or 0.0)
        yield _Phrase(_PLAIN, f"passes {passed}{unit} on", model)


def _lift(lift: Lift, unit: str) -> tuple[str, str]:
    return f"{points(lift.lift)}{unit}", f"({points(lift.low)} to {points(lift.high)})"


def _triggers(row: TriggerSummary) -> _Phrase:
    if row.incomplete:
        return _Phrase(_MISSING, "triggers incomplete on", row.model, "", f"({row.lacking})")
    shares = [("recall", row.recall), ("false alarms", row.false_alarms)]
    said = ", ".join(f"{what} {percent(one.rate)}" for what, one in shares if one)
    return _Phrase(_PLAIN, f"{said} on", row.model)


def _more(skills: Sequence[_Skill], look: Look) -> str:
    """How many skills are not shown, and of what kind."""
    counts = [(one, sum(skill.standing == one for skill in skills)) for one in _ORDER]
    kinds = [
        f"{look.paint(_mark(one, look), **_STYLES[one])} {number:,}"
        for one, number in counts
        if number
    ]
    return f"and {counted(len(skills), 'more skill')}: {', '.join(kinds)}"


# What was spent, and what to do next.


def spent_words(spent: Spent) -> str:
    """``spent $0.42 of $1.00, 720 calls (590 from cache)``."""
    stored = f"{counted(spent.stored, 'answer')} from {one_line(spent.source, 100)}"
    failed = f"{counted(spent.unanswered, 'call')} without an answer"
    if not (spent.calls or spent.tokens):
        known = [*([stored] if spent.stored else []), *([failed] if spent.unanswered else [])]
        return f"spent nothing: {', '.join(known) or 'no call was answered'}"
    details = [f"{spent.stored:,} from {one_line(spent.source, 100)}"] if spent.stored else []
    number, more = spent.calls + spent.stored, ""
    if spent.unanswered and spent.what == "call":
        number += spent.unanswered
        details.append(f"{spent.unanswered:,} without an answer")
    elif spent.unanswered:
        more = f", {failed}"
    saved = f"; {said}" if (said := cache_words(spent.saved)) else ""
    told = f" ({', '.join(details)})" if details else ""
    return f"spent {_amount(spent)}, {counted(number, spent.what)}{told}{more}{saved}"


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
    """A command of quoted words that can be pasted: broken between them, behind a backslash.

    An option stays with its value.
    """
    lines, line = list[str](), first + words[0]
    for word in _bound(words[1:]):
        if text_width(f"{line} {word}{_BACKSLASH}") > width:
            lines.append(line + _BACKSLASH)
            line = f"  {word}"
        else:
            line = f"{line} {word}"
    return [*lines, line]


def _bound(words: Sequence[str]) -> Iterator[str]:
    held = ""
    for word in words:
        if held and not word.startswith("-"):
            yield f"{held} {word}"
            held = ""
            continue
        if held:
            yield held
        held = word if word.startswith("-") and "=" not in word else ""
        if not held:
            yield word
    if held:
        yield held
