"""From collected tests to what is planned for them: cases and tests in Python alike."""

from collections.abc import Sequence

import pytest

from ..trials.trial import CaseInfo, PlannedItem, SkillInfo, Trial
from .functions import asker_of
from .items import CaseItem, is_passed_by


def planned_items(items: Sequence[pytest.Item]) -> list[PlannedItem]:
    """The tests that a model is going to be asked for."""
    return [
        PlannedItem(item.nodeid, *of_skill)
        for item in items
        if (of_skill := _of_skill(item)) and not is_passed_by(item)
    ]


def _of_skill(item: pytest.Item) -> tuple[SkillInfo, tuple[Trial, ...], CaseInfo] | None:
    if isinstance(item, CaseItem):
        return item.parent.info, tuple(item.trials), item.info
    asker = asker_of(item)
    return (asker.info, tuple(asker.trials), asker.case) if asker else None
