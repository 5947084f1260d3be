"""Which sandbox each task of a run gets; those that can't run
are skipped with the reason.
"""

from collections.abc import Iterable, Sequence

from ..agents.task_sandbox import (
    SandboxChoice,
    choose_sandbox,
    has_own_image,
    skipped_if_unrunnable,
)
from ..checks import CheckedCase
from ..reports.terminal.sandbox_table import sandbox_counts, sandbox_table
from ..settings import Settings
from ..skills.case import Case
from ..skills.loaded_cases import LoadedCases


def sandbox_of_case(case: Case, settings: Settings) -> SandboxChoice:
    """Where a case runs on this machine, or why it is skipped."""
    if case.skip:
        return SandboxChoice("", reason=case.skip)
    return choose_sandbox(case.sandbox, settings.sandbox, settings.image or "")


def without_unrunnable(
    loaded: Sequence[LoadedCases[CheckedCase]], settings: Settings
) -> list[LoadedCases[CheckedCase]]:
    """Cases with an image of their own that can't run here are skipped;
    a cluster may differ.
    """
    if settings.cluster:
        return list(loaded)

    sandbox, image = settings.sandbox, settings.image or ""
    return [
        of_file.only(
            [
                (skipped_if_unrunnable(case, sandbox, image), checks)
                for case, checks in of_file.cases
            ],
            [],
        )
        for of_file in loaded
    ]


def sandbox_lines(
    cases: Iterable[Case], settings: Settings, *, asks: bool
) -> list[str]:
    """Where the tasks run; each of them before a run."""
    choices = {}
    for case in cases:
        if case.is_task or has_own_image(case.sandbox):
            choices[case.id] = sandbox_of_case(case, settings)
    if not choices or settings.cluster:
        return []

    line = f"upskill: {sandbox_counts(choices)}"
    if not asks:
        return [line, *sandbox_table(choices)]
    if not all(choice.kind for choice in choices.values()):
        line += " (--collect-only says why)"
    return [line]
