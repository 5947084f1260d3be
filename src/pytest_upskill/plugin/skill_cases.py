"""The cases of a skill as a run tests them: which can run, and why others can't."""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .._util.json_forms import Location
from .._util.texts import one_line
from ..agents.task_sandbox import skipped_if_unrunnable
from ..checks import (
    AnyCheck,
    CheckedCase,
    checked_suite,
    checks_of,
    rubric_of,
    why_agent,
)
from ..checks.parse import with_checks
from ..errors import InputError, SettingsError, printable, shown
from ..settings import Settings
from ..skills.bundle import Bundle, load_entry
from ..skills.case import Case
from ..skills.kinds import CASE, kinds_by_agent, rules_of
from ..skills.loaded_cases import BrokenCase, LoadedCases, broken_case
from ..skills.skill import Skill
from ..skills.suites.suite import Suite
from ..skills.task_set import TaskSet
from ..trials.arm import Arm
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import CHAT, asks_model, takes_plugins
from ..trials.trial import start_files
from .hooks import registered_checks
from .paths import SkillSource, relative
from .pytest_options import message_of, spell
from .run import Run

CheckedFile = LoadedCases[CheckedCase]


class SkillWarning(pytest.PytestWarning):
    """A skill can be tested, but something about it looks wrong."""

    kind = ""  # a run has one warning of a kind


@dataclass
class SkillCases:
    """A skill with its cases, by file."""

    run: Run
    source: SkillSource
    skill: Skill
    files: list[CheckedFile] = field(default_factory=list)
    problem: str = ""  # why its cases can't be read; queries may be asked all the same
    for_agents: Collection[str] = ()  # ids of cases that are not for chat

    @property
    def cases(self) -> Iterator[CheckedCase]:
        for file in self.files:
            yield from file.cases

    @property
    def broken(self) -> Iterator[BrokenCase]:
        for file in self.files:
            yield from file.broken

    @property
    def siblings(self) -> tuple[str, ...]:
        """The ids of all cases, if all are known, and of the skill's own files."""
        if self.problem or not self.source.has_own_cases:
            return ()
        return (*(case.id for case, _ in self.cases), *(b.name for b in self.broken))

    def count_runnable(self, label: str) -> Counter[str]:
        """How many cases are not skipped by a subject, by what they are counted as.

        A broken case counts, so that the run is known to lack it.
        """
        counts = Counter(broken.kind.noun for broken in self.broken)
        agent = self.run.subjects.by_label[label].agent
        for case, checks in self.cases:
            if self.fits(case, label) and not case.skip:
                played = played_by(agent, case)
                if not why_unplayed(played, checks, self.run.settings):
                    counts[case.kind.noun] += 1
        return counts

    def fits(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model."""
        agent, model = self.run.subjects.by_label[label]
        if not asks_model(agent):
            return case.kind.noun == CASE.noun
        if agent == CHAT and case.id in self.for_agents:
            return False
        return case.is_for(label, model, self.run.subjects.model_ids[label])

    @cached_property
    def info(self) -> SkillInfo:
        path = relative(self.source.folder, self.run.config.rootpath)
        cases = [case for case, _ in self.cases]
        return info_of(self.skill, self.source.label, path, self.run.settings, cases)

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        if isinstance(self.skill, TaskSet):
            return ()  # each task has its own
        subjects = self.run.subjects
        cases = [case for case, _ in self.cases]
        # A model without an agent chooses a skill as an agent does:
        # from those that are installed.
        agents = bool(subjects.agents) or any(case.kind.until_opened for case in cases)
        return subjects.arm_maker.arms(
            self.skill,
            [case for case in cases if case.kind.noun == CASE.noun] or None,
            agents=agents,
            case_files=[file.file for file in self.files],
        )


def info_of(
    skill: Skill, label: str, path: str, settings: Settings, cases: Iterable[Case] = ()
) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))


def read_skill(run: Run, source: SkillSource, ihook: Any) -> SkillCases:
    """InputError if the skill can't be tested."""
    skill = load_entry(source.skill_file, run.settings)
    tested = SkillCases(run, source, skill)
    for part in dict.fromkeys([skill, *skill.members]):
        if part.warnings:
            faults = [(fault.line, fault.message) for fault in part.warnings]
            warn(run, source, part.file, faults, kind=part.warnings[0].code)
    _require_skills(run, skill)

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


def _require_skills(run: Run, skill: Skill) -> None:
    """InputError if a plugin has only what some agents of the run don't know."""
    if skill.members or not isinstance(skill, Bundle):
        return

    agents = dict.fromkeys(subject.agent for subject in run.subjects.by_label.values())
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
            problem = _find_problem(case, checks, run, agents)
            if problem:
                broken.append(broken_case(of_file.file, case, [problem]))
                continue

            if agents != {CHAT} and not settings.cluster:  # whose workers may differ
                image = settings.image or ""
                cases.append(
                    (skipped_if_unrunnable(case, settings.sandbox, image), checks)
                )
            else:
                cases.append((case, checks))
        refused += broken
        files.append(of_file.only(cases, broken))
    if refused and not any(file.cases for file in files):
        raise refused[0].error

    if agents != {CHAT}:
        tested.for_agents = needing_agents
    tested.files += files


def _find_problem(
    case: Case, checks: Sequence[AnyCheck], run: Run, agents: Collection[str]
) -> tuple[Location, str] | None:
    """The first reason why a case can't run with these settings and agents, and where
    that is written; with --collect-only, what it lacks is only counted.
    """
    if lack := _find_lack(case, checks, run.settings, agents):
        if run.asks:
            return case.place, f"{lack.reason}; add {lack.option}"
        run.lacking[lack.option] += 1
    if agents != {CHAT}:
        try:
            start_files(case)
        except ValueError as error:
            return case.place_of("context", "files"), str(error)
    return None


class _Lack(NamedTuple):
    reason: str
    option: str


def _find_lack(
    case: Case, checks: Sequence[AnyCheck], settings: Settings, agents: Collection[str]
) -> _Lack | None:
    """An option without which a case can't run."""
    # An agent without a model skips what needs a judge.
    needs_judge = rubric_of(checks).texts and any(map(asks_model, agents))
    if needs_judge and not settings.judge:
        return _Lack("this needs a judge", "--skill-judge MODEL")
    if agents == {CHAT} and (reason := why_agent(case, checks)):
        return _Lack(reason, "--skill-agent loop")
    if agents != {CHAT} and case.sandbox.network and not settings.allow_network:
        return _Lack("this needs the network", "--skill-allow-network")
    return None


def played_by(agent: str, case: Case) -> Case:
    """The case as an agent has it: without a model there is nobody to whom servers,
    a user or an expected failure matter.
    """
    kind = kinds_by_agent().get(agent)
    return replace(case, kind=kind, mcp=(), user=None, xfail=None) if kind else case


def why_unplayed(case: Case, checks: Sequence[AnyCheck], settings: Settings) -> str:
    """Why an agent without a model skips a case; empty if it does not."""
    if not case.kind.agent:
        return ""
    return str(rules_of(case.kind).why_skipped(case, checks, settings))


def require_judge(sources: Sequence[SkillSource]) -> None:
    """One error for all skills, if none of several can be tested without a judge."""
    has_triggers = any(source.suites.has_triggers for source in sources)
    if len(sources) > 1 and not has_triggers and all(map(_needs_judge, sources)):
        problem = f"all cases of these {len(sources):,} skills need a judge"
        hint = "Name one: --skill-judge MODEL. To see the cases: --collect-only."
        raise SettingsError("judge", problem, hint)


def _needs_judge(source: SkillSource) -> bool:
    """Whether every case has a rubric; False if the file has other problems to
    report.
    """
    suite = source.suites.cases
    try:
        loaded = checked_suite(suite) if suite else []
    except InputError:
        return False

    rubrics = []
    for of_file in loaded:
        if of_file.broken:
            return False
        rubrics += [rubric_of(checks).texts for _, checks in of_file.cases]
    return bool(rubrics) and all(rubrics)


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
