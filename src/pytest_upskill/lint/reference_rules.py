"""Rules for what checks decide by themselves: references that fail,
empty answers that pass.

The oracle grades the same with all checks, in sandboxes where it takes one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ..agents.oracle import Oracle
from ..checks import AnyCheck, grade, walk
from ..checks.check import asked_checks
from ..checks.final_workspace import Workspace
from ..checks.kinds import KINDS
from ..errors import CheckError, NoAnswerError
from ..skills.case import Case
from ..trials.records import Grade
from ..trials.subject import ORACLE
from ..trials.trial import Task, start_files
from .finding import CasesSource, Finding

_TAKE_MORE: Final = ("judge", "command", "verifier")  # a model, or a sandbox


def reference_findings(
    source: CasesSource, case: Case, checks: Sequence[AnyCheck]
) -> Iterator[Finding]:
    if not case.reference:
        return
    if failed := [grade for grade in _grades(case, checks) if not grade.passed]:
        reasons = "; ".join(f"{grade.check}: {grade.reason}" for grade in failed)
        message = f"{case.id}: the reference fails: {reasons}"
        hint = "Correct the reference or the checks: nobody could pass this case."
        yield source.finding("error", "reference-fails", case.place_of(), message, hint)


def empty_passes(case: Case, checks: Sequence[AnyCheck]) -> bool:
    grades = _grades(replace(case, reference=None), checks)
    return bool(grades) and all(grade.passed for grade in grades)


def _takes_more(check: AnyCheck) -> bool:
    """Whether a model, a sandbox or someone's code would have to decide."""
    kinds = [inner.kind for inner in walk([check])]
    return any(kind.name in _TAKE_MORE or kind.name not in KINDS for kind in kinds)


def _grades(case: Case, checks: Sequence[AnyCheck]) -> tuple[Grade, ...]:
    """The grades of the reference, or of nothing; none if
    these checks alone can't tell.
    """
    asked = asked_checks(checks, ORACLE, has_skill=case.reference is not None)
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
