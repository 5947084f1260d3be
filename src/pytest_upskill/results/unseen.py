"""Which files of a skill the models did not see, in words."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from .._util.texts import counted, one_line
from ..errors import Spell
from ..skills.skill import UnseenFile
from ..trials.plan import SkillInfo

_MOST_NAMES: Final = 5
_LONGEST_NAME: Final = 100
_MOST_SKILLS: Final = 3  # more of them share one note


def unseen_notes(
    skills: Sequence[SkillInfo], spell: Spell | None = None, whom: str = "the model"
) -> list[str]:
    """Without these files a skill was not measured as an agent would use it.

    With ``spell``, the notes name the setting that helps.
    """
    lacking = [skill for skill in skills if skill.unseen_files]
    if len(lacking) > _MOST_SKILLS:
        files = [(f"{skill.name}/", file) for skill in lacking for file in skill.unseen_files]
        return [_note(f"of {len(lacking)} skills", files, spell, whom)]
    return [
        f"{one_line(skill.name, _LONGEST_NAME)}: "
        + _note("of this skill", [("", file) for file in skill.unseen_files], spell, whom)
        for skill in lacking
    ]


def _note(of: str, files: Sequence[tuple[str, UnseenFile]], spell: Spell | None, whom: str) -> str:
    were, them = ("was", "it") if len(files) == 1 else ("were", "them")
    shown = files[:_MOST_NAMES]
    groups = [
        _group(reason, [one_line(f"{where}{file.path}", _LONGEST_NAME) for where, file in own])
        for reason, own in groupby(shown, key=lambda one: one[1].reason)
    ]
    more = [f"{len(files) - len(shown):,} more"] if len(files) > len(shown) else []
    how = ""
    if spell and any(file.reason is None for _, file in files):
        how = f"; {spell('references')} puts {them} in context, {spell('agents')} loop reads {them}"
    what = f"{counted(len(files), 'file')} {of} {were} not available to {whom}"
    return f"{what}: {', '.join([*groups, *more])}{how}."


def _group(reason: str | None, names: Sequence[str]) -> str:
    return f"{', '.join(names)} ({one_line(reason, _LONGEST_NAME)})" if reason else ", ".join(names)
