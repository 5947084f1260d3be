"""Which files of a skill the models did not see, in words."""

from collections.abc import Sequence
from typing import Final

from .._util.texts import counted, one_line
from ..skills.skill import UnseenFile
from ..trials.plan import SkillInfo

_MOST_NAMES: Final = 5
_MOST_SKILLS: Final = 3  # more of them share one note
_HOW: Final = "--skill-references puts {} in context"


def unseen_notes(skills: Sequence[SkillInfo]) -> list[str]:
    """Without these files a skill was not measured as an agent would use it."""
    lacking = [skill for skill in skills if skill.unseen_files]
    if len(lacking) > _MOST_SKILLS:
        files = [(f"{skill.name}/", file) for skill in lacking for file in skill.unseen_files]
        return [_note(f"of {len(lacking)} skills", files)]
    return [
        f"{skill.name}: {_note('of this skill', [('', file) for file in skill.unseen_files])}"
        for skill in lacking
    ]


def _note(of: str, files: Sequence[tuple[str, UnseenFile]]) -> str:
    were, them = ("was", "it") if len(files) == 1 else ("were", "them")
    names = [_name(where, file) for where, file in files[:_MOST_NAMES]]
    more = [f"{len(files) - len(names):,} more"] if len(files) > len(names) else []
    how = f"; {_HOW.format(them)}" if any(file.reason is None for _, file in files) else ""
    what = f"{counted(len(files), 'file')} {of} {were} not available to the model"
    return f"{what}: {', '.join([*names, *more])}{how}."


def _name(where: str, file: UnseenFile) -> str:
    name = one_line(f"{where}{file.path}", 100)
    return f"{name} ({file.reason})" if file.reason else name
