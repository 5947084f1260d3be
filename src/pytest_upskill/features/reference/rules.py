"""How references are graded: the checks of an answer, and what is wrong with a case.

Lint finds what checks decide by themselves, without a model or a sandbox.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...checks import AnyCheck, Check, grade, rubric_of, walk
from ...checks.final_workspace import Workspace
from ...checks.kinds import KINDS
from ...errors import CheckError, NoAnswerError, Setting, Text
from ...lint.check_rules import any_answer_passes
from ...lint.finding import CasesSource, Finding
from ...settings import Settings
from ...skills.case import Case
from ...trials.arm import BASELINE, SKILL
from ...trials.records import Grade, Record
from ...trials.trial import Task, start_files
from . import ORACLE
from .agent import Oracle

_TAKE_MORE: Final = ("judge", "command", "verifier")  # a model, or a sandbox


def why_skipped(case: Case, checks: Sequence[AnyCheck], settings: Settings) -> Text:
    """Why no reference can show that a case is sound; empty if one can."""
    if case.reference is None:
        return "no solution/solve.sh" if case.is_task else 'no "reference"'
    checks = choose_checks(checks, SKILL)
    if not any(check.required for check in checks):
        return "only checks of how an agent works, which no reference shows"
    if rubric_of(checks).texts and not settings.judge:
        return ("this needs a judge; add ", Setting("judge"), " MODEL")
    return ""


def choose_checks(checks: Iterable[AnyCheck], arm: str) -> tuple[AnyCheck, ...]:
    """The checks of an answer.

    A reference shows a result, not how an agent gets there. Who does nothing must not
    pass all checks, so none is left out for an empty answer.
    """
    chosen = []
    for check in checks:
        if arm != SKILL or not any(map(_is_of_work, walk([check]))):
            chosen.append(replace(check, with_skill=False))
    return tuple(chosen)


def _is_of_work(check: Check) -> bool:
    """Whether it looks at what an agent does, not at what it leaves behind."""
    return check.kind.needs_agent and not check.kind.of_files


def find_faults(records: Iterable[Record]) -> list[str]:
    """What is wrong with a case, by all records of it."""
    reasons: list[str] = []
    notes: list[str] = []
    passes = ""
    for record in records:
        if record.arm == SKILL and record.outcome == "failed":
            for grade in record.checks:
                if grade.fails:
                    reasons.append(f"{grade.check}: {grade.reason}")
            notes += record.activity.findings if record.activity else ()
        if record.arm == BASELINE and record.outcome == "passed":
            passes = "an empty answer passes: its checks test nothing"
            if any(grade.share is not None for grade in record.checks):
                passes = (
                    "doing nothing gets the full reward: its verifier tests nothing"
                )

    faults = []
    if reasons:
        each = "; ".join(dict.fromkeys([*reasons, *notes]))
        faults.append(f"the reference fails: {each}")
    if passes:
        faults.append(passes)
    return faults


# Without a run.


def find_mistakes(
    source: CasesSource, case: Case, checks: Sequence[AnyCheck]
) -> Iterator[Finding]:
    """The reference of a case that fails, and an empty answer that passes."""
    failed = [grade for grade in _grade(case, checks) if not grade.passed]
    if case.reference and failed:
        reasons = "; ".join(f"{grade.check}: {grade.reason}" for grade in failed)
        message = f"{case.id}: the reference fails: {reasons}"
        hint = "Correct the reference or the checks: nobody could pass this case."
        yield source.finding("error", "reference-fails", case.place_of(), message, hint)

    grades = _grade(replace(case, reference=None), checks)
    passes = grades and all(grade.passed for grade in grades)
    if passes and not any_answer_passes(checks):
        message = f"{case.id}: an empty answer passes: its checks test nothing"
        hint = (
            "Check for something the answer must say, or for a file that must be made."
        )
        yield source.finding("warning", "empty-passes", case.place, message, hint)


def _takes_more(check: AnyCheck) -> bool:
    """Whether a model, a sandbox or someone's code would have to decide."""
    kinds = [inner.kind for inner in walk([check])]
    return any(kind.name in _TAKE_MORE or kind.name not in KINDS for kind in kinds)


def _grade(case: Case, checks: Sequence[AnyCheck]) -> tuple[Grade, ...]:
    """The grades of the reference, or of nothing; none if
    these checks alone can't tell.
    """
    asked = choose_checks(checks, SKILL if case.reference else BASELINE)
    checks = [check for check in asked if check.required]
    if case.kind.until_opened or any(map(_takes_more, checks)):
        return ()
    try:
        files = start_files(case)
        task = Task(
            ORACLE,
            files=files,
            setup=case.setup,
            needs=case.sandbox,
            reference=case.reference,
        )
        if not (answer := Oracle().answer_at_once(task)):
            return ()
        return grade(
            checks,
            answer,
            case=case,
            workspace=Workspace(answer, files),
            even_if_empty=True,
        )
    # Which other rules, and a run, report
    except (CheckError, NoAnswerError, ValueError):
        return ()
