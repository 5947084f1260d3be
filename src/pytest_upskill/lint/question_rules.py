"""Rules for what is asked, in cases and in triggers: do the questions show anything?"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from .._util.texts import counted
from ..errors import shown
from ..settings import ENOUGH_QUERIES
from ..skills.case import EDIT_ME, Case
from ..skills.trigger_loading import LoadedTriggers, Trigger, load_triggers, names_skill
from ..stats.power import cases_for_lift
from ..trials.trial import sample_of
from .finding import CasesSource, Finding, finding_of

_ALIKE: Final = 0.9  # share of words that near-duplicates have in common, in order
_SHARED: Final = 0.8  # so they share at least this much of their combined vocabulary
_WORDS_COMPARED: Final = 2000  # comparing takes quadratic time
_WORDS: Final = re.compile(r"\w+|[^\w\s]")
_LOPSIDED: Final = 2  # one kind has more than this many times as many queries as the other


def question_findings(source: CasesSource, cases: Sequence[Case], lift: float) -> Iterator[Finding]:
    """``lift`` is what the cases should be able to show."""
    for first, second in near_duplicates(cases):
        message = f"{second.id}: almost the same question as {first.id} (line {first.line})"
        hint = "Ask something different: repeats add no evidence."
        yield source.finding("warning", "near-duplicate", second.place, message, hint)
    for case in cases:
        if EDIT_ME in case.tags:
            message = f"{case.id}: an example, which says nothing about the skill"
            hint = f'Ask what users ask, then remove the tag "{EDIT_ME}".'
            yield source.finding("warning", "example", case.place, message, hint)
    not_skipped = [case for case in cases if case.skip is None]
    number, (best, worst) = len({sample_of(case) for case in not_skipped}), cases_for_lift(lift)
    if cases and number < best:
        word = "case" if number == len(not_skipped) else "different question"
        message = f"{counted(number, word)}: too few to show a lift of {100 * lift:.3g} points"
        hint = (
            f"Have at least {best:,} cases in total; up to {worst:,} if the skill makes some worse."
        )
        yield source.finding("warning", "few-cases", (), message, hint)


def near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Pairs of an earlier case and one that is almost the same.

    The same question about other files or in another conversation is a different one.
    """
    earlier: dict[object, list[tuple[Case, list[str], frozenset[str]]]] = {}
    for case in cases:
        words = _WORDS.findall(case.input.casefold())[:_WORDS_COMPARED]
        vocabulary = frozenset(words)
        same_around = earlier.setdefault((case.system, case.files, case.earlier), [])
        for first, first_words, first_vocabulary in same_around:
            if _share_most(first_vocabulary, vocabulary) and _alike(first_words, words):
                yield first, case
                break  # the first of several stands for all
        else:
            same_around.append((case, words, vocabulary))


def _share_most(first: frozenset[str], second: frozenset[str]) -> bool:
    shared = len(first & second)
    return shared >= _SHARED * (len(first) + len(second) - shared)


def _alike(first: Sequence[str], second: Sequence[str]) -> bool:
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


def trigger_findings(folder: Path, name: str) -> Iterator[Finding]:
    """The findings of a skill's trigger queries, if it has any; ``name`` is the skill's."""
    loaded = load_triggers(folder)
    for broken in loaded.broken:
        yield finding_of(broken.error, "trigger-invalid")
    for warning in loaded.warnings:
        code = "trigger-duplicate" if warning.repeats else "trigger-warning"
        yield Finding(shown(warning.file), warning.line, "warning", code, warning.message)
    for trigger in loaded.triggers:
        if trigger.should_trigger and names_skill(trigger.query, name):
            message = f"{trigger.id}: the query names the skill"
            hint = "Write what a user would who has never heard of it."
            yield _warning(trigger, "trigger-names-skill", message, hint)
    for should_trigger in (True, False):  # alike, with opposite wishes, makes a good set
        queries = {trigger.id: trigger for trigger in loaded.of_kind(should_trigger)}
        cases = [Case(trigger.id, trigger.query) for trigger in queries.values()]
        for first, second in near_duplicates(cases):
            message = f"{second.id}: almost the same query as {first.id}"
            hint = "Ask something different: repeats add no evidence."
            yield _warning(queries[second.id], "trigger-duplicate", message, hint)
    if loaded.triggers:
        yield from _trigger_numbers(loaded, folder)


def _warning(trigger: Trigger, code: str, message: str, hint: str) -> Finding:
    return Finding(shown(trigger.file), trigger.line, "warning", code, message, hint)


def _trigger_numbers(loaded: LoadedTriggers, folder: Path) -> Iterator[Finding]:
    """At most one finding about how many queries there are."""
    should, should_not = loaded.of_kind(True), loaded.of_kind(False)
    fewer, larger = sorted((should, should_not), key=len)
    code, message, fix = "", "", "Write more"
    if not fewer:
        code = "trigger-one-kind"
        message = f"{_counted(loaded.triggers)}, and none that {_kind(not should)}"
    elif len(fewer) < ENOUGH_QUERIES:
        code, message = "trigger-few", f"{_counted(fewer)}: too few to show much"
        fix = f"Have at least {ENOUGH_QUERIES} of each kind"
    elif len(larger) > _LOPSIDED * len(fewer):
        code, message = "trigger-unbalanced", f"{_counted(should)}, but {_counted(should_not)}"
    if code:
        hint = f"{fix}, or run pytest-upskill triggers {shown(folder)}."
        yield _warning(loaded.triggers[0], code, message, hint)


def _counted(queries: Sequence[Trigger]) -> str:
    return f"{counted(len(queries), 'query')} that {_kind(queries[0].should_trigger)}"


def _kind(should_trigger: bool) -> str:
    return "should trigger" if should_trigger else "should not trigger"
