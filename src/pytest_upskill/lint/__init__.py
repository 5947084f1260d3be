"""Find mistakes in a skill and its cases without calling a model.

No code of the skill is run or imported.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from ..errors import CasesError, NoCasesError, SkillError, shown
from ..registry import lint_rules
from ..settings import Settings
from ..skills.bundle import folder_of, load_entry
from ..skills.case import Case
from ..skills.folder import CASES_NAME
from ..skills.loaded_cases import LoadedCases
from ..skills.skill import name_of
from ..skills.suites.reading import read_suites
from ..skills.suites.suite import Suite
from ..skills.task_folders import is_task
from .check_rules import check_findings, judge_findings, runnable_cases
from .finding import CasesSource, Finding, Level, finding_of
from .listing_rules import listing_findings
from .question_rules import duplicate_findings, question_findings
from .skill_rules import lint_skill_file

__all__ = [
    "Finding",
    "Level",
    "lint_plugin",
    "lint_skill",
    "listing_findings",
    "runnable_cases",
]


def lint_skill(
    skill_file: Path, *, judge: bool, lift: float, needs_cases: bool = True
) -> list[Finding]:
    """All findings of a skill: those of SKILL.md, of its cases, and of its triggers.

    ``judge`` is whether one is set, ``lift`` what the cases should be able to show. A
    skill of a plugin with cases needs none.
    """
    folder = skill_file.parent
    findings = list(lint_skill_file(skill_file))
    suites = read_suites(folder)
    if suites.cases:
        findings += _lint_cases(suites.cases, judge=judge, lift=lift)
    elif needs_cases and not any(map(is_task, folder.parents)):
        hint = (
            f"Write {CASES_NAME} next to it: pytest-upskill init {shown(folder)}"
            " starts it."
        )
        findings.append(
            Finding(shown(skill_file), 1, "warning", "no-cases", "no cases", hint)
        )
    for unread in filter(attrgetter("is_foreign"), suites.unread):
        message = f"not read: {unread.reason}"
        findings.append(
            Finding(shown(unread.file), 1, "warning", "evals-unread", message)
        )
    for loaded in suites.triggers:
        findings += _of_file(loaded)
    for find_mistakes in lint_rules():
        findings += find_mistakes(suites, folder, name_of(skill_file))
    return findings


def lint_plugin(manifest: Path, *, judge: bool, lift: float) -> list[Finding]:
    """All findings of a plugin but those of its skills: of its manifest,
    cases and triggers.
    """
    root, findings = folder_of(manifest), list[Finding]()
    try:
        bundle = load_entry(manifest, Settings())
    except SkillError as error:
        findings.append(finding_of(error, "plugin-invalid"))
    else:
        findings += [
            Finding(
                shown(manifest),
                fault.line,
                fault.level,
                fault.code,
                fault.message,
                fault.hint,
            )
            for fault in bundle.warnings
        ]
    suites = read_suites(root)
    if suites.cases:
        findings += _lint_cases(suites.cases, judge=judge, lift=lift)
    for loaded in suites.triggers:
        findings += _of_file(loaded)
    return findings


def _lint_cases(suite: Suite, *, judge: bool, lift: float) -> Iterator[Finding]:
    if isinstance(suite.error, NoCasesError):
        yield replace(finding_of(suite.error, "no-cases"), level="warning")
    elif suite.error:
        yield from _invalid(suite.path, suite.error)
    for loaded in suite.files:
        yield from _of_file(loaded)
        source = CasesSource(loaded.file, loaded.cases)
        yield from dict.fromkeys(check_findings(source, loaded.cases, suite.folder))
    if not suite.error:
        yield from [] if judge else judge_findings(suite)
        yield from question_findings(suite, lift)


def _invalid(file: Path, error: CasesError) -> Iterator[Finding]:
    if not error.problems:
        yield finding_of(error, "cases-invalid")
    else:
        source = CasesSource(file)
        yield from (source.invalid(*problem) for problem in error.problems)


def _of_file(loaded: LoadedCases[Case]) -> Iterator[Finding]:
    """What is wrong with the form of cases or triggers, and repeats among them."""
    for broken in loaded.broken:
        yield from _invalid(loaded.file, broken.error)
    for line, message in loaded.warnings:
        yield Finding(shown(loaded.file), line, "warning", "cases-warning", message)
    yield from duplicate_findings(loaded.file, loaded.cases)
