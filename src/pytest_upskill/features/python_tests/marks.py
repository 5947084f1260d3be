"""The skill that ``@pytest.mark.skill`` names."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ...errors import InputError
from ...plugin.paths import relative
from ...plugin.pytest_options import message_of
from ...plugin.run import RUN, Run
from ...plugin.skill_cases import info_of
from ...skills.bundle import entry_name
from ...skills.case import SandboxNeeds
from ...skills.context import load_for_run
from ...skills.folder import is_skill, skill_file
from ...skills.search import find_skills, labels_of
from ...skills.skill import Skill
from ...skills.suites.ours import sandbox_of
from ...skills.suites.reading import read_suites
from ...trials.plan import SkillInfo


class MarkedSkill(NamedTuple):
    """A skill that a mark names."""

    skill: Skill
    folder: Path
    info: SkillInfo
    needs: SandboxNeeds


def find_marked_skill(node: pytest.Item) -> MarkedSkill | None:
    """The skill of a test; CollectError if there is none at the path of its mark.

    The path is relative to the test's folder or to the rootdir.
    """
    mark = node.get_closest_marker("skill")
    if not mark or not mark.args:
        return None

    path = Path(str(mark.args[0]))
    places = [node.path.parent / path, node.config.rootpath / path]
    place = next((place for place in places if place.exists()), places[-1])
    try:
        return _read_skill(place.resolve(), path, node.config.stash[RUN])
    except InputError as error:
        reason = f"{node.nodeid}: {message_of(error, node.config)}"
        raise pytest.Collector.CollectError(reason) from None


@lru_cache
def _read_skill(folder: Path, written: Path, run: Run) -> MarkedSkill:
    file = _find_skill_file(folder, written)
    skill = load_for_run(file, run.settings)
    needs = sandbox_of(read_suites(file.parent).path)
    path = relative(file.parent, run.config.rootpath)
    info = info_of(run, skill, _find_label(file, run), path=path)
    return MarkedSkill(skill, file.parent, info, needs)


def _find_skill_file(folder: Path, written: Path) -> Path:
    """The only SKILL.md of a folder; skills inside a skill don't count."""
    if is_skill(folder):
        return skill_file(folder)

    file, *others = find_skills(folder).files
    if others:
        raise InputError(
            f"mark skill {written}",
            "several skills are in this folder",
            'Write @pytest.mark.skill("path/to/skill") above the test.',
        )
    return file


def _find_label(file: Path, run: Run) -> str:
    """The name of a skill in all results: the same as for --skill."""
    for source in run.selected.all:
        if source.folder.resolve() == file.parent:
            return source.label

    files = [file, *(source.skill_file for source in run.selected.all)]
    return labels_of(files, entry_name)[file]
