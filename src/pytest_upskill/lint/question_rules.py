"""Rules for what is asked: do the questions show anything?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .._util import grouped
from .._util.similar_texts import find_similar
from .._util.texts import counted
from ..errors import shown
from ..skills.case import EDIT_ME, Case
from ..skills.kinds import CASE
from ..skills.suites.suite import Suite
from ..stats import cases_to_find
from ..trials.trial import lift_sample_of
from .finding import Finding

_RUNS: Final = 5  # more hardly spare any cases


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
        if second.kind.in_lift:
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
        kind = case.kind.noun != CASE.noun and case.tags
        return case.system, case.files, case.earlier, case.workspace, kind

    for group in grouped(cases, get_surroundings).values():
        for first, second in find_similar([case.input for case in group]):
            yield group[first], group[second]
