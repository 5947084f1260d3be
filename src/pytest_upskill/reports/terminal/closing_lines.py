"""The last lines of a run: why it fails, how each skill does, what was spent,
what to do next.

A cross is only on what makes the run fail, and a run that fails has one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from ..._util.texts import (
    counted,
    dollars,
    first_few,
    harmless,
    one_line,
    percent,
    points,
    span,
)
from ...models.prices import ON_A_PLAN
from ...results.activation import Activation, sent_words
from ...results.arm_comparison import unit_of
from ...results.gates import gate_reasons, trigger_reasons
from ...results.oracle_results import is_sound, oracle_counts
from ...results.outcomes import count_outcomes, count_words
from ...results.run import RunResults
from ...results.self_comparison import rules_out_relevant
from ...results.summary import Summary
from ...results.trigger_summary import TriggerSummary
from ...results.verdict import Verdict, Word, missing_words
from ...stats import Lift
from ...trials.arm import AGAIN
from ..numbers import cache_words
from .layout import TerminalLook, split_name, text_width, wrapped

_MOST: Final = 5  # skills, and reasons
_LONGEST_REASON: Final = 300
_LONGEST_NAME: Final = 100  # of a skill or a model
_LONGEST_REF: Final = 20
_BACKSLASH: Final = " \\"
_INDENT: Final = "  "
# That a shell takes as it is
_PLAIN_WORD: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


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
    without_model: int = 0  # of ``calls``: answers of the oracle
    logins: Sequence[str] = ()  # labels of agents that were asked on a login


@dataclass(frozen=True)
class Ending:
    """How a run ended, besides its results."""

    failed: bool = False  # by its exit status
    problems: Sequence[str] = ()  # e.g. a report that could not be written
    not_reached: Sequence[str] = ()  # skills
    notes: Sequence[str] = ()  # shown if there is no summary above
    page: str = ""  # a link into the HTML page
    spent: Spent | None = None
    before_next: str = ""  # what to know, or to do, before the next command
    next: Sequence[str] = ()  # the words of the next command
    accept: Sequence[str] = ()  # those of the one that accepts what failed


def closing_lines(
    results: RunResults | None, ending: Ending, look: TerminalLook
) -> list[str]:
    """The painted lines; none if there is nothing to say."""
    marks, paint = look.marks, look.paint
    bad = paint(marks.bad, red=True, bold=True)
    skills = _skills(results, ending) if results else []
    reasons = [*ending.problems, *(_reasons(results) if results else [])]
    if ending.failed and not reasons and not any(skill.fails for skill in skills):
        reasons = ["failed: see above"]
    mark = bad if ending.failed else paint("!", **_STYLES["warn"])
    lines: list[str] = []
    for reason in _first_and_last(reasons):
        lines += _marked(mark, reason, look, red=ending.failed)
    if ending.not_reached:
        lines += _marked(bad, f"not reached: {_names(ending.not_reached)}", look)
    for skill in skills[:_MOST]:
        lines += skill.lines(look)
    if len(skills) > _MOST:
        lines.append(_hidden_skills(skills[_MOST:], look))
    for note in ending.notes:
        lines += _marked(marks.dot, note, look)
    if ending.page:
        lines.append(f"page: {harmless(ending.page)}")
    if ending.spent:
        lines += wrapped(spent_words(ending.spent), look.width, rest="  ")
    if ending.before_next:
        lines += wrapped(harmless(ending.before_next), look.width, rest="  ")
    if ending.next:
        lines += command_lines("next: ", ending.next, look.width)
    if ending.accept:
        lines += command_lines("or accept these failures: ", ending.accept, look.width)
    return [line.replace("…", marks.cut).replace("→", marks.arrow) for line in lines]


def _first_and_last(reasons: Sequence[str]) -> list[str]:
    """The last one stays: after those of cases it is the one of a skill as a whole."""
    texts = [one_line(reason, _LONGEST_REASON) for reason in reasons]
    if (hidden := len(texts) - _MOST) <= 0:
        return texts
    return [*texts[: _MOST - 1], f"and {counted(hidden, 'more reason')}", texts[-1]]


def _names(names: Sequence[str]) -> str:
    return first_few([one_line(name, _LONGEST_NAME) for name in names], _MOST)


def _marked(
    mark: str, text: str, look: TerminalLook, *, red: bool = False
) -> list[str]:
    """A text behind a mark, wrapped before it is painted."""
    width = look.width - text_width(look.marks.bad) - 1
    lines = wrapped(harmless(text), width, rest="  ")
    if red:
        lines = [look.paint(line, red=True) for line in lines]
    return [f"{mark} {lines[0]}", *lines[1:]]


def _reasons(results: RunResults) -> Iterator[str]:
    """Why the run fails, besides the tests that failed, which pytest has just
    counted.
    """
    # Else nothing was asked at all, which is reported above
    if results.tests or results.lost:
        yield from results.unfinished
    yield from (f"gate failed: {reason}" for reason in _gate_reasons(results))
    if results.gate.passed is None:
        yield from results.not_tested


def _gate_reasons(results: RunResults) -> list[str]:
    """Those of a skill's regressed cases on one line: each is a failed test,
    shown above.
    """
    reasons = list(results.gate.reasons)
    for run in results.comparisons:
        of_cases = [reason for reason in run.reasons if reason not in run.of_whole]
        if len(of_cases) > 1 and all(reason in reasons for reason in of_cases):
            names = first_few(
                [one_line(case.test.case, 60) for case in run.regressed], _MOST
            )
            at = reasons.index(of_cases[0])
            reasons = [reason for reason in reasons if reason not in of_cases]
            reasons.insert(
                at, f"{run.pair}: {counted(len(run.regressed), 'regression')}: {names}"
            )
    return reasons


# Skills.


class _Phrase(NamedTuple):
    """``helps haiku +60 (+35 to +80)``: a skill on a model."""

    badness: int
    verb: str  # "helps"; models with the same verb share it
    model: str
    number: str = ""
    bounds: str = ""


_FELL, _HURTS, _WORSE, _CLOSED, _MISSING, _OPEN, _PLAIN, _NOT_NEEDED, _HELPS = range(9)
_BADNESS: Final[Mapping[Word, int]] = {
    "hurts": _HURTS,
    "incomplete": _MISSING,
    "no effect shown": _OPEN,
    "too few cases to tell": _OPEN,
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
class _SkillEnding:
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
        worst = min((phrase.badness for phrase in self.phrases), default=_PLAIN)
        return _ORDER.index(self.standing), worst, self.lift, self.name

    def lines(self, look: TerminalLook) -> list[str]:
        mark = look.paint(_mark(self.standing, look), **_STYLES[self.standing])
        words = (_joined if len(self.phrases) <= _MOST else _counts)(self.phrases)
        name = one_line(self.name, _LONGEST_NAME)
        colon = "" if self.phrases[0].verb else ":"
        return _marked(
            mark, "; ".join(filter(None, [f"{name}{colon} {words}", self.tests])), look
        )


def _mark(standing: str, look: TerminalLook) -> str:
    marks = {
        "bad": look.marks.bad,
        "warn": "!",
        "open": look.marks.dot,
        "good": look.marks.good,
    }
    return marks[standing]


def _joined(phrases: Iterable[_Phrase]) -> str:
    parts = []
    for verb, group in groupby(phrases, key=lambda phrase: phrase.verb):
        models = [
            " ".join(filter(None, [one_line(phrase.model, _LONGEST_NAME), *phrase[3:]]))
            for phrase in group
        ]
        parts.append(f"{verb} {', '.join(models)}".strip())
    return "; ".join(parts)


def _counts(phrases: Iterable[_Phrase]) -> str:
    groups = groupby(phrases, key=lambda phrase: phrase.verb)
    return "; ".join(
        f"{verb} {counted(len([*group]), 'model')}" for verb, group in groups
    )


def _skills(results: RunResults, ending: Ending) -> list[_SkillEnding]:
    """The worst first."""
    skills = [_skill(results, skill.name, ending) for skill in results.skills]
    return sorted(
        (skill for skill in skills if skill.phrases), key=lambda skill: skill.badness
    )


def _skill(results: RunResults, name: str, ending: Ending) -> _SkillEnding:
    verdicts = [
        verdict for verdict in results.verdicts if verdict.summary.skill == name
    ]
    triggers = [row for row in results.trigger_summaries if row.skill == name]
    alone = len(verdicts) == 1
    phrases = [
        phrase for verdict in verdicts for phrase in _phrases(verdict, alone=alone)
    ]
    phrases += [_triggers(row) for row in triggers]
    phrases.sort(key=lambda phrase: (phrase.badness, phrase.verb))
    outcomes = [
        results.outcome_of(test) for test in results.tests if test.skill == name
    ]
    counts = count_outcomes(outcomes)
    failed = counts.get("failed", 0)
    parts = (
        [f"{count_words(counts)} of {counted(len(outcomes), 'test')}"] if failed else []
    )
    subsets = results.subsets.items()
    parts += dict.fromkeys(
        f"only {of}" for group, of in subsets if group.pair.skill == name
    )
    worst = min((phrase.badness for phrase in phrases), default=_PLAIN)
    bad = (
        failed or _misses_gates(results, name, verdicts, triggers) or worst == _MISSING
    )
    cut = any(verdict.summary.over_budget for verdict in verdicts)
    if bad and ending.failed:
        standing = "bad"
    elif bad or worst < _OPEN or cut:
        standing = "warn"
    else:
        standing = "good" if _is_good(verdicts, triggers) else "open"
    lift = min((verdict.lift.lift for verdict in verdicts if verdict.lift), default=0.0)
    return _SkillEnding(name, standing, tuple(phrases), "; ".join(parts), lift)


def _misses_gates(
    results: RunResults,
    name: str,
    verdicts: Sequence[Verdict],
    rows: Sequence[TriggerSummary],
) -> bool:
    regressed = any(run.reasons for run in results.comparisons if run.skill == name)
    by_triggers = rows and trigger_reasons(rows, results.active_gates, [name])
    return bool(
        regressed or gate_reasons(verdicts, results.active_gates) or by_triggers
    )


def _is_good(verdicts: Sequence[Verdict], rows: Sequence[TriggerSummary]) -> bool:
    """Whether it is shown to do what it is for; in a single arm,
    whether all cases pass.
    """
    words = {verdict.word for verdict in verdicts}
    alone = [v for v in verdicts if v.word is None and not v.by_chance]
    passes = all(v.summary.scored("skill") == 1 for v in alone)
    passes = passes and all(is_sound(v.summary) for v in verdicts if v.is_of_oracle)
    same = [over.lift for v in verdicts if v.by_chance and (over := v.over(AGAIN))]
    if not all(map(rules_out_relevant, same)):
        return False
    opened = not any(
        row.wrong(should_open) for row in rows for should_open in (True, False)
    )
    return (
        words <= {"helps", "not needed", None}
        and words != {"not needed"}
        and passes
        and opened
    )


def _phrases(verdict: Verdict, *, alone: bool) -> Iterator[_Phrase]:
    """``alone``: the skill has no other model."""
    row = verdict.summary
    word = verdict.word
    if verdict.is_of_oracle and word != "incomplete":
        yield _Phrase(_PLAIN if is_sound(row) else _WORSE, "", oracle_counts(row))
        return
    model = row.label
    unit = unit_of(row.score)
    if (accepted := verdict.accepted) and accepted.fall:
        yield _Phrase(
            _FELL, "fell on", model, accepted.fall, f"(since {accepted.date})"
        )
        if word not in ("hurts", "incomplete"):
            return
    if change := verdict.over("previous"):
        ref = one_line(row.against or "", _LONGEST_REF)
        badness = {"worse": _WORSE, "better": _HELPS}.get(change.word, _OPEN)
        verb = f"{change.word} since {ref}" + ("" if alone else " on")
        yield _Phrase(badness, verb, "" if alone else model, *_lift(change.lift, unit))
    if verdict.by_chance and (same := verdict.over(AGAIN)):
        badness, verb = _PLAIN, "shows no difference from itself on"
        if same.lift.shown:
            badness, verb = _WORSE, "differs from itself on"
        elif not rules_out_relevant(same.lift):
            badness, verb = _OPEN, "too few cases to tell on"
        yield _Phrase(badness, verb, model, *_lift(same.lift, unit))
    else:
        yield _own_phrase(verdict, row.label, unit)


def _own_phrase(verdict: Verdict, model: str, unit: str) -> _Phrase:
    """What the skill does to the model, compared with no skill."""
    row = verdict.summary
    word = verdict.word
    if word == "incomplete":
        possible = span(*row.possible_lift) if row.possible_lift else ""
        details = f"({missing_words(row)})"
        return _Phrase(_BADNESS[word], f"{word} on", model, possible, details)

    over = _over(row)
    if row.unfinished and word != "helps":
        verb = "unfinished with it and without on"
        return _Phrase(_CLOSED, verb, model, "", over.strip())

    if row.activation and not row.activation.count:
        return _never_opened(row.activation, model, over)

    if word == "not needed":
        rate = f"{percent(row.scored('baseline') or 0.0)}{unit}"
        without = f"({rate} pass without it){over}"
        return _Phrase(_BADNESS[word], f"{word} on", model, "", without)

    if word:
        verb = word if word in ("helps", "hurts") else f"{word} on"
        number, bounds = _lift(verdict.lift, unit) if verdict.lift else ("", "")
        return _Phrase(_BADNESS[word], verb, model, number, f"{bounds}{over}")

    passed = percent(row.scored("skill") or 0.0)
    return _Phrase(_PLAIN, f"passes {passed}{unit} on", model, "", over.strip())


def _never_opened(activation: Activation, model: str, over: str) -> _Phrase:
    if activation.untold == activation.trials:
        return _Phrase(_CLOSED, "never listed by", model, "", over.strip())
    was_cut = sent_words(activation.sent)
    cut = "(its description was not sent whole)" if was_cut else ""
    return _Phrase(_CLOSED, "never opened by", model, "", f"{cut}{over}".strip())


def _over(row: Summary) -> str:
    """`` over 6 of 10 cases``, if a budget left out others."""
    all_cases = counted(row.cases + row.over_budget, "case")
    return f" over {row.cases:,} of {all_cases}" if row.over_budget else ""


def _lift(lift: Lift, unit: str) -> tuple[str, str]:
    return f"{points(lift.lift)}{unit}", f"({span(lift.low, lift.high)})"


def _triggers(row: TriggerSummary) -> _Phrase:
    if row.incomplete:
        return _Phrase(
            _MISSING, "triggers incomplete on", row.label, "", f"({row.missing_words})"
        )
    rates = [f"{name} {percent(share.rate)}" for name, share in row.shares.items()]
    return _Phrase(_PLAIN, f"{', '.join(rates)} on", row.label)


def _hidden_skills(skills: Sequence[_SkillEnding], look: TerminalLook) -> str:
    """How many skills are not shown, and of what kind."""
    counts = Counter(skill.standing for skill in skills)
    kinds = [
        f"{look.paint(_mark(standing, look), **_STYLES[standing])} {counts[standing]:,}"
        for standing in _ORDER
        if counts[standing]
    ]
    return f"and {counted(len(skills), 'more skill')}: {', '.join(kinds)}"


# What was spent, and what to do next.


def spent_words(spent: Spent) -> str:
    """``spent $0.42 of $1.00, 720 calls (590 from cache)``."""
    source = one_line(spent.source, 100)
    failed = f"{counted(spent.unanswered, 'call')} without an answer"
    if (
        spent.without_model
        and spent.calls == spent.without_model
        and not spent.unanswered
    ):
        return "spent nothing: no model was asked"
    if not (spent.calls or spent.tokens):
        stored = f"{counted(spent.stored, 'answer')} from {source}"
        reasons = [
            *([stored] if spent.stored else []),
            *([failed] if spent.unanswered else []),
        ]
        return f"spent nothing: {', '.join(reasons) or 'no call was answered'}"
    number, details, after = spent.calls + spent.stored, list[str](), ""
    if spent.stored:
        details.append(f"{spent.stored:,} from {source}")
    if spent.unanswered and spent.counts == "call":
        number += spent.unanswered
        details.append(f"{spent.unanswered:,} without an answer")
    elif spent.unanswered:
        after = f", {failed}"
    after += f"; {saved}" if (saved := cache_words(spent.saved)) else ""
    aside = f" ({', '.join(details)})" if details else ""
    after += f"; {ON_A_PLAN}: {_names(spent.logins)}" if spent.logins else ""
    return f"spent {_amount(spent)}, {counted(number, spent.counts)}{aside}{after}"


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

    An option stays with its value, if there is room for both on a line.
    """
    lines, line = list[str](), first + words[0]
    for word in _with_values(words[1:], width - len(_INDENT + _BACKSLASH)):
        if text_width(f"{line} {word}{_BACKSLASH}") > width:
            lines.append(line + _BACKSLASH)
            line = f"{_INDENT}{word}"
        else:
            line = f"{line} {word}"
    return [part for line in [*lines, line] for part in _broken(line, width)]


def _broken(line: str, width: int) -> list[str]:
    """A word that is too long goes on where the next line begins;
    so the shell joins them.
    """
    if text_width(line) <= width:
        return [line]
    word = line.strip().removesuffix(_BACKSLASH)
    quote = "'" if word.startswith("'") else ""
    inside = word[len(quote) : len(word) - len(quote)]
    if "'" in inside or not (quote or _PLAIN_WORD.fullmatch(inside)):
        return [line]
    file, colons, name = inside.partition("::")
    room = max(width - len(_BACKSLASH) - 2 * len(quote) - 2, 1)
    parts = [
        part
        for text in (file + colons, name)
        if text
        for part in split_name(text, room)
    ]
    lead, end = line[: line.index(word)], line[line.index(word) + len(word) :]
    return [
        f"{lead if number == 0 else ''}{quote}{part}{quote}"
        f"{end if number == len(parts) - 1 else _BACKSLASH.lstrip()}"
        for number, part in enumerate(parts)
    ]


def _with_values(words: Iterable[str], width: int) -> list[str]:
    """Options with their values, as one word each where that is no wider."""
    joined: list[str] = []
    takes_value = False
    for word in words:
        is_value = takes_value and not word.startswith("-")
        if is_value and text_width(f"{joined[-1]} {word}") <= width:
            joined[-1] += f" {word}"
            takes_value = False
        else:
            joined.append(word)
            takes_value = not is_value and word.startswith("-") and "=" not in word
    return joined
