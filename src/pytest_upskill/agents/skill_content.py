"""The text of a skill as a model gets it when the skill is opened,
or a user invokes it.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from ..skills.folder import SKILL_NAMES
from ..skills.invocation import Invocation
from ..trials.trial import Question
from .sandboxes.sandbox import Sandbox
from .staging import InstalledSkill

MOST_LISTED: Final = 500  # files


def invoked_skill(
    question: Question, skills: Sequence[InstalledSkill]
) -> InstalledSkill | None:
    """The skill that the user of a trial invokes, if there is one."""
    invocation = question.task.invoke if question.task else None
    return next(
        (skill for skill in skills if invocation and skill.name == invocation.skill),
        None,
    )


def skill_content(
    skill: InstalledSkill, sandbox: Sandbox, invocation: Invocation | None = None
) -> str:
    """An opened skill in the form of agentskills.io's guide for clients;
    perhaps with arguments.
    """
    body = (invocation.text(skill.body) if invocation else skill.body).strip()
    files = [path for path in skill.files if path not in SKILL_NAMES]
    lines = [
        f"  <file>{escape(path, quote=False)}</file>" for path in files[:MOST_LISTED]
    ]
    if len(files) > MOST_LISTED:
        lines.append(f"  [… {len(files) - MOST_LISTED:,} more …]")
    parts = [
        f'<skill_content name="{escape(skill.name)}">\n{body}\n',
        (
            f"Skill directory: {sandbox.path(skill.inside)}\n"
            "Paths in the skill are relative to this directory."
        ),
    ]
    if lines:
        parts.append("\n".join(["\n<skill_resources>", *lines, "</skill_resources>"]))
    return "\n".join([*parts, "</skill_content>"])
