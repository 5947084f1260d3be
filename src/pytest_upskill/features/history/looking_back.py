"""What earlier runs say about this one: how often a skill was looked at, what is gone.

Answers are kept, so the cases that remain after some were deleted or deselected have
the answers that they were chosen by: without the cases that failed, any skill helps.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...results.history import KeptRun, RunHead, readable, runs
from ...results.run import RunResults
from ...trials.plan import Group, SkillInfo
from ...trials.records import Record


def look_back(results: RunResults, folder: Path) -> dict[str, Any]:
    """Fields of the results that the runs in a folder fill."""
    history = runs(folder)
    looks: dict[str, int] = {}
    gone: dict[str, tuple[str, ...]] = {}
    for skill in results.skills:
        records = [each for each in results.case_records if each.skill == skill.name]
        if not records:
            continue

        if cases := _find_gone_cases(results, skill, records, history):
            gone[skill.name] = cases
        is_part = bool(cases) or any(
            Group(record.pair) in results.subsets for record in records
        )
        if number := _count_looks(skill, records, history, is_part=is_part):
            looks[skill.name] = number

    return {"looks": looks, "gone": gone}


def _count_looks(
    skill: SkillInfo,
    records: Sequence[Record],
    history: Sequence[KeptRun],
    *,
    is_part: bool,
) -> int:
    """Which look this is at the skill as it is, on these models.

    Stored answers show nothing new, and a run without a verdict is no look.
    """
    models = {record.label for record in records}

    def is_of_the_same(head: RunHead) -> bool:
        rows = [row for row in head.summary if row.skill == skill.name and row.cases]
        same_skill = all(row.skill_digest == skill.digest for row in rows)
        return same_skill and {row.label for row in rows} == models

    before = _find_head(history, is_of_the_same)
    looks = before.looks.get(skill.name, 0) if before else 0
    is_new = any(not record.stored for record in records)
    is_complete = all(record.outcome != "errored" for record in records)
    return looks + (is_new and is_complete and not is_part)


def _find_gone_cases(
    results: RunResults,
    skill: SkillInfo,
    records: Sequence[Record],
    history: Sequence[KeptRun],
) -> tuple[str, ...]:
    """Cases that failed with the skill the last time and were not asked now.

    The last time is the newest run that lacked none itself: the same command again
    makes nothing whole. Where all answers are new, nothing was chosen by them.
    """
    if not any(record.stored for record in records):
        return ()

    gone: dict[str, None] = {}
    for pair in dict.fromkeys(record.pair for record in records):

        def has_all(head: RunHead, name: str = str(pair)) -> bool:
            return name in head.tested and skill.name not in head.gone

        last = _find_head(history, has_all)
        asked = {test.case for test in results.tests if test.pair == pair}
        for case in last.failed.get(str(pair), ()) if last else ():
            if case not in asked:
                gone[case] = None
    return tuple(gone)


def _find_head(
    history: Sequence[KeptRun], fits: Callable[[RunHead], bool]
) -> RunHead | None:
    """The newest head that fits."""
    for _, head in readable(history):
        if fits(head):
            return head
    return None
