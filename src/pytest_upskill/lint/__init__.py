"""Find mistakes in a skill and its cases without calling a model.

No code of the skill is run or imported.
"""

from pathlib import Path

from ..errors import shown
from ..skills.case_loading import find_cases
from ..skills.folder import CASES_NAME
from ..skills.skill import name_of
from .case_rules import lint_cases, runnable_cases
from .finding import Finding, Level
from .skill_rules import lint_skill_file
from .trigger_rules import lint_triggers

__all__ = ["Finding", "Level", "lint_skill", "runnable_cases"]


def lint_skill(skill_file: Path, *, judge: bool, lift: float) -> list[Finding]:
    """All findings of a skill: those of SKILL.md, of its cases, and of its triggers."""
    folder = skill_file.parent
    found = list(lint_skill_file(skill_file))
    cases_file = find_cases(folder)
    if cases_file:
        found += lint_cases(cases_file, folder, judge=judge, lift=lift)
    else:
        hint = f"Write {CASES_NAME} next to it, or run pytest-upskill cases {shown(folder)}."
        found.append(Finding(shown(skill_file), 1, "warning", "no-cases", "no cases", hint))
    found += lint_triggers(folder, name_of(skill_file))
    return found
