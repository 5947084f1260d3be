"""Which sandbox each task of a run gets; those that can't run are skipped with the reason."""

from collections.abc import Iterable, Sequence

import pytest

from ..agents.task_sandbox import RunsIn, has_own_image, place_of, skipped_if_unplaced
from ..checks import CheckedCase
from ..reports.terminal.task_places import place_counts, place_table
from ..settings import Settings
from ..skills.case import Case
from ..skills.loaded_cases import LoadedCases
from .items import CaseItem


def place_of_case(case: Case, settings: Settings) -> RunsIn:
    """Where a case runs on this machine, or why it is skipped."""
    if case.skip:
        return RunsIn("", reason=case.skip)
    return place_of(case.sandbox, settings.sandbox, settings.image or "")


def without_unplaced(
    loaded: Sequence[LoadedCases[CheckedCase]], settings: Settings
) -> list[LoadedCases[CheckedCase]]:
    """Cases with an image of their own that can't run here are skipped; a cluster may differ."""
    if settings.cluster:
        return list(loaded)

    sandbox, image = settings.sandbox, settings.image or ""
    return [
        of_file.only(
            [(skipped_if_unplaced(case, sandbox, image), checks) for case, checks in of_file.cases],
            [],
        )
        for of_file in loaded
    ]


def place_lines(items: Iterable[pytest.Item], settings: Settings, *, asks: bool) -> list[str]:
    """Where the tasks run; each of them before a run."""
    cases = [item.case for item in items if isinstance(item, CaseItem)]
    tasks = {case.id: case for case in cases if case.is_task or has_own_image(case.sandbox)}
    if not tasks or settings.cluster:
        return []
    places = {name: place_of_case(case, settings) for name, case in tasks.items()}
    table = [] if asks else place_table(places)
    hint = " (--collect-only says why)" if asks and not all(p.kind for p in places.values()) else ""
    return [f"upskill: {place_counts(places)}{hint}", *table]
