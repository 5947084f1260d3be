"""``describe``: a description that opens a skill when it is needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..._util.files import resolved
from ...errors import InputError
from ...skills.folder import SKILL_NAMES, skill_file
from ...skills.search import find_skills
from ...skills.skill import load_skill
from ...teach.case_file import CaseFile, split_cases
from ...teach.drafts import draft_of
from ...teach.outcome import Taught
from ...teach.saving import require_writable, save_taught, with_costs
from ...teach.sources import Material, size_of
from ...teach.teach_run import TeachContext, open_teaching
from ...teach.teach_settings import TeachSettings, check
from .costs import estimate_descriptions
from .descriptions import Descriptions, require_changeable
from .query_file import required_queries

HELD_OUT_SHARE: Final = 0.4  # of the queries of each kind


def describe_skill(
    path: Path, settings: TeachSettings, context: TeachContext
) -> Taught:
    """Improve the description of a skill that has queries;
    unchanged if none is shown better.
    """
    start = draft_of(load_skill(skill_file(path)))
    check(settings)
    assert start.base, "a skill in a folder"
    folder = start.base.file.parent
    learning, held_out = split_cases(required_queries(folder), HELD_OUT_SHARE)
    settings = replace(settings, with_skills=_without(settings.with_skills, folder))
    require_writable(folder)
    with open_teaching(settings, context, start.folder_name) as run:
        queries = [f"{each.case.should_open} {each.case.input}" for each in learning]
        skill_sent = size_of(SKILL_NAMES[0], start.text)
        queries_sent = size_of("its queries to learn from", "\n".join(queries))
        run.material = Material(start=start, sent=(skill_sent, queries_sent))
        require_changeable(start)
        run.start(estimate_descriptions(run, start.base, learning, held_out))
        loop = Descriptions(run, learning, held_out)
        taught = loop.taught(start, is_new=False)
        if not taught.best.is_new:
            return with_costs(taught, run)
        return save_taught(run, taught, CaseFile(), (), folder, with_cases=False)


def _without(paths: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """The other skills: a folder of skills may hold the one that is described, too."""
    skills = list[Path]()
    for path in paths:
        try:
            files = find_skills(path).files
        except InputError:
            skills.append(path)  # reported where skills are installed
            continue
        others = [
            file.parent for file in files if resolved(file.parent) != resolved(folder)
        ]
        skills += others if len(others) < len(files) and others else [path]
    return tuple(skills)
