"""Rules for what is asked, in cases and in triggers: do the questions show anything?"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from .._util import grouped
from .._util.similar_texts import find_similar
from .._util.texts import counted
from ..errors import shown
from ..settings import ENOUGH_QUERIES
from ..skills.case import EDIT_ME, Case
from ..skills.loaded_cases import LoadedCases
from ..skills.suites.suite import Suite
from ..skills.suites.triggers import names_skill
from ..stats import cases_to_find
from ..trials.trial import lift_sample_of
from .finding import Finding

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
    fewest = cases_to_find(lift, _RUNS)
    if cases and (fewest is None or number < fewest):
        word = "case" if number == len(not_skipped) else "group"
        message = (
            f"{counted(number, word)}: too few to show a lift of {100 * lift:.3g}"
            " points"
        )
        with_one = cases_to_find(lift)
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
    for first, second in near_duplicates(cases):
        if second.group and second.group == first.group:
            continue

        message = f"{second.id}: asks nearly the same as {first.id} (line {first.line})"
        hint = "Ask something different: repeats add no evidence."
        if not second.is_trigger:
            hint = 'Give both the same "group": the lift then counts them as one case.'
        yield Finding(
            shown(file), second.line, "warning", "near-duplicate", message, hint
        )


def near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Pairs of an earlier case and one that asks nearly the same.

    The same question about other files or in another conversation is a different one,
    and so is a query that should end differently: near misses make a good set.
    """

    def get_surroundings(case: Case) -> object:
        kind = case.is_trigger and case.tags
        return case.system, case.files, case.earlier, case.workspace, kind

    for group in grouped(cases, get_surroundings).values():
        for first, second in find_similar([case.input for case in group]):
            yield group[first], group[second]


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
