"""Rules for what is asked, in cases and in triggers: do the questions show anything?"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from .._util.texts import counted, first_few
from ..errors import shown
from ..settings import ENOUGH_QUERIES
from ..skills.case import EDIT_ME, Case
from ..skills.loaded_cases import LoadedCases
from ..skills.suites.suite import Suite
from ..skills.suites.triggers import names_skill
from ..stats.power import assumed_kinds, cases_to_find
from ..trials.trial import lift_sample_of, sample_of
from .finding import Finding

_ALIKE: Final = 0.9  # share of words that near-duplicates have in common, in order
_SHARED: Final = 0.8  # so they share at least this much of their combined vocabulary
_WORDS_COMPARED: Final = 2000  # comparing takes quadratic time
_WORDS: Final = re.compile(r"\w+|[^\w\s]")
_TEMPLATE_WORDS: Final = re.compile(
    r"""(?P<quoted>"[^"\n]{1,30}"|'[^'\n]{1,30}'(?!\w)|`[^`\n]{1,30}`|“[^”\n]{1,30}”)"""
    r"|[\w$€£%/.,+-]*\w|\n|[^\w\s]"
)
_ENDS: Final = frozenset(".!?:\n")  # of a sentence
_FIXED_WORDS: Final = 4  # fewer are no template
_RUNS: Final = 5  # more hardly spare any cases
# One kind has more than this many times as many queries as the other
_LOPSIDED: Final = 2


def question_findings(suite: Suite, lift: float) -> Iterator[Finding]:
    """``lift`` is what the cases should be able to show."""
    for of_file in suite.files:
        for case in of_file.cases:
            if EDIT_ME in case.tags:
                message = f"{case.id}: an example, which says nothing about the skill"
                hint = f'Ask what users ask, then remove the tag "{EDIT_ME}".'
                yield Finding(
                    shown(of_file.file), case.line, "warning", "example", message, hint
                )
    cases = suite.cases
    not_skipped = [case for case in cases if case.skip is None]
    number = len({lift_sample_of(case) for case in not_skipped})
    fewest = cases_to_find(assumed_kinds(lift), _RUNS)
    if cases and (fewest is None or number < fewest):
        word = "case" if number == len(not_skipped) else "group"
        message = (
            f"{counted(number, word)}: too few to show a lift of {100 * lift:.3g}"
            " points"
        )
        with_one = cases_to_find(assumed_kinds(lift), 1)
        needed = [
            f"about {cases:,}" if cases else "over 10,000"
            for cases in (fewest, with_one)
        ]
        hint = (
            f"It takes {needed[0]} with {_RUNS} runs each, or {needed[1]} with one: "
            "see pytest-upskill plan SKILL."
        )
        yield Finding(shown(suite.path), 1, "warning", "few-cases", message, hint)


def duplicate_findings(file: Path, cases: Sequence[Case]) -> Iterator[Finding]:
    copies = list(near_copies(cases))
    for first, *others in copies:
        names = first_few([case.id for case in (first, *others)], 5)
        message = f"{names}: the same question but for numbers and names"
        hint = 'Give them the same "group": the lift then counts them as one case.'
        yield Finding(shown(file), first.line, "warning", "near-copies", message, hint)
    group_of = {case.id: case.group for case in cases}
    group_of |= {case.id: group[0].id for group in copies for case in group}
    for first, second in near_duplicates(cases):
        if group_of[first.id] and group_of[first.id] == group_of[second.id]:
            continue
        message = (
            f"{second.id}: almost the same question as {first.id} (line {first.line})"
        )
        hint = "Ask something different: repeats add no evidence."
        yield Finding(
            shown(file), second.line, "warning", "near-duplicate", message, hint
        )


def near_copies(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Cases, not all of one group, whose questions differ in numbers and names only.

    Those that are exactly the same count as one anyway, and queries have no groups.
    """
    alike: dict[object, list[Case]] = {}
    for case in cases:
        template = _template(case.input)
        if not case.is_trigger and sum(map(str.isalpha, template)) >= _FIXED_WORDS:
            around = case.system, case.files, case.earlier, case.workspace
            alike.setdefault((template, around), []).append(case)
    for group in alike.values():
        names = {case.group for case in group}
        different = len({sample_of(case) for case in group}) > 1
        if different and (len(names) > 1 or "" in names):
            yield group


def _template(question: str) -> tuple[str, ...]:
    """Its words without numbers, names and short quotations.

    A capitalised word is a name unless a sentence begins with it.
    """
    words, begins = list[str](), True
    for match in _TEMPLATE_WORDS.finditer(question):
        word = match[0]
        is_name = word[0].isupper() and not begins
        if match["quoted"] or is_name or any(map(str.isdigit, word)):
            word = "…"
        if (word, words[-1:]) != ("…", ["…"]):  # a name may have several words
            words.append(word.casefold())
        begins = word in _ENDS
    return tuple(words)


def near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Pairs of an earlier case and one that is almost the same.

    The same question about other files or in another conversation is a different one,
    and so is a query that should end differently: near misses make a good set.
    """
    earlier: dict[object, list[tuple[Case, list[str], frozenset[str]]]] = {}
    for case in cases:
        words = _WORDS.findall(case.input.casefold())[:_WORDS_COMPARED]
        vocabulary = frozenset(words)
        kind = case.is_trigger and case.tags
        same_around = earlier.setdefault(
            (case.system, case.files, case.earlier, kind), []
        )
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


def trigger_findings(
    loaded: Iterable[LoadedCases[Case]], folder: Path, name: str
) -> Iterator[Finding]:
    """The findings of a skill's queries; ``folder`` and ``name`` are the skill's."""
    queries = [
        (case, shown(of_file.file))
        for of_file in loaded
        for case in of_file.cases
        if case.skip is None
    ]
    by_kind = {
        kind: [case for case, _ in queries if case.should_open is kind]
        for kind in _KINDS
    }
    for case, file in queries:
        if case.should_open and names_skill(case.input, name):
            message = f"{case.id}: the query names the skill"
            hint = "Write what a user would who has never heard of it."
            yield Finding(
                file, case.line, "warning", "trigger-names-skill", message, hint
            )
    if not queries:
        return
    (kind, few), (_, many) = sorted(
        by_kind.items(), key=lambda of_kind: len(of_kind[1])
    )
    code, message, fix = "", "", "Write more"
    if not few:
        code = "trigger-one-kind"
        message = f"{_counted(not kind, many)}, and none that {_KINDS[kind]}"
    elif len(few) < ENOUGH_QUERIES:
        code, message = "trigger-few", f"{_counted(kind, few)}: too few to show much"
        fix = f"Have at least {ENOUGH_QUERIES} of each kind"
    elif len(many) > _LOPSIDED * len(few):
        code = "trigger-unbalanced"
        message = ", but ".join(_counted(*of_kind) for of_kind in by_kind.items())
    if code:
        hint = f"{fix}, or run pytest-upskill triggers {shown(folder)}."
        case, file = queries[0]
        yield Finding(file, case.line, "warning", code, message, hint)


_KINDS: Final = {True: "should trigger", False: "should not trigger"}


def _counted(kind: bool, queries: Sequence[Case]) -> str:
    return f"{counted(len(queries), 'query')} that {_KINDS[kind]}"
