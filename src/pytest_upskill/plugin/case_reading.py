"""Reading a skill and its cases: which can run, and why others can't."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .._util.texts import one_line
from ..checks import checked_suite, checks_of, why_agent
from ..checks.parse import with_checks
from ..errors import InputError, printable, shown
from ..skills.bundle import Bundle, load_entry
from ..skills.loaded_cases import broken_case
from ..skills.suites.suite import Suite
from ..trials.subject import CHAT, asks_model, takes_plugins
from .case_needs import find_problem, skip_if_unrunnable
from .hooks import prompts, registered_checks
from .pytest_options import message_of, spell
from .run import Run
from .skill_cases import SkillCases
from .skill_source import SkillSource


class SkillWarning(pytest.PytestWarning):
    """A skill can be tested, but something about it looks wrong."""

    kind = ""  # a run has one warning of a kind


def read_skill(run: Run, source: SkillSource, ihook: Any) -> SkillCases:
    """InputError if the skill can't be tested."""
    skill = load_entry(source.skill_file, run.settings)
    prompt = prompts(ihook, run.config, skill)
    tested = SkillCases(run, source, skill, prompt)
    for part in dict.fromkeys([skill, *skill.members]):
        if part.warnings:
            faults = [(fault.line, fault.message) for fault in part.warnings]
            warn(run, source, part.file, faults, kind=part.warnings[0].code)
    _require_skills(tested)

    suites = source.suites
    if suites.cases and not suites.cases.is_empty:
        try:
            _add_suite(tested, suites.cases, ihook)
        except InputError as error:
            tested.problem = message_of(error, run.config)
    for queries in suites.triggers:
        from ..checks.kinds import KINDS

        checked = with_checks(queries, lambda case: checks_of(case, KINDS, {}))
        tested.files.append(checked)
    tags = set[str]()
    for case, _ in tested.cases:
        tags.update(case.tags)
    for tag in sorted(tags):
        run.config.addinivalue_line("markers", f"{tag}: tag of skill cases.")
    return tested


def _require_skills(tested: SkillCases) -> None:
    """InputError if a plugin has only what some agents of the run don't know."""
    skill = tested.skill
    if skill.members or not isinstance(skill, Bundle):
        return

    agents = dict.fromkeys(
        subject.agent for subject in tested.run.subjects.by_label.values()
    )
    without = [agent for agent in agents if not takes_plugins(agent)]
    if any(map(asks_model, without)):
        problem = (
            f"this plugin has no skills, so it changes nothing for {', '.join(without)}"
        )
        raise InputError(shown(skill.folder), problem, "Add --skill-agent claude.")


def _add_suite(tested: SkillCases, suite: Suite, ihook: Any) -> None:
    """Add the cases of a suite; InputError if none of them can run."""
    run = tested.run
    settings = run.settings
    loaded = checked_suite(
        suite,
        registered_checks(ihook, run.config),
        allow_code=settings.allow_code,
        allowed_by=spell("allow_code"),
    )
    agents = {subject.agent for subject in run.subjects.by_label.values()}
    files = []
    refused = []
    needing_agents = set()
    for of_file in loaded:
        cases = []
        broken = []
        for case, checks in of_file.cases:
            if why_agent(case, checks):
                needing_agents.add(case.id)
            problem = find_problem(case, checks, run, agents)
            if problem:
                broken.append(broken_case(of_file.file, case, [problem]))
                continue

            cases.append((skip_if_unrunnable(case, settings, agents), checks))
        refused += broken
        files.append(of_file.only(cases, broken))
    if refused and not any(file.cases for file in files):
        raise refused[0].error

    if agents != {CHAT}:
        tested.for_agents = needing_agents
    tested.files += files


def warn(
    run: Run,
    source: SkillSource,
    file: Path,
    problems: Sequence[tuple[int, str]],
    *,
    kind: str = "",
) -> None:
    """Make one warning of all problems of a file, and of all files
    with such a first problem.

    Lint shows everything.
    """
    if not problems:
        return

    line, text = problems[0]
    kind = kind or text.partition(":")[0]
    if len(problems) > 1:
        lint = f"pytest-upskill lint {shown(source.folder)}"
        text = f"{len(problems)} problems with its form ({lint}), first: {text}"
    warning = SkillWarning(one_line(text, None))  # pytest shows it as it is
    warning.kind = kind
    try:
        if not run.warned[kind]:
            warnings.warn_explicit(warning, None, printable(str(file)), line)
    except SkillWarning:  # -W error
        raise InputError(f"{shown(file)}:{line}", str(warning)) from None
    run.warned[kind] += 1
