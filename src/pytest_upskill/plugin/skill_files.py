"""A skill's file as pytest collects it: which of its cases and triggers can run,
and why not.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from .._util.json_forms import Location, cases_error
from .._util.texts import first_few, guess, harmless, one_line
from ..checks import (
    KINDS,
    AnyCheck,
    CheckedCase,
    checked_suite,
    checks_of,
    rubric_of,
    why_agent,
)
from ..checks.check import asked_checks
from ..checks.grading import rubric_for
from ..checks.parse import with_checks
from ..errors import InputError, SettingsError, SkillError, printable, shown
from ..results.accepted import read_results
from ..settings import Settings
from ..skills.bundle import Bundle, load_entry
from ..skills.case import Case
from ..skills.loaded_cases import BrokenCase, LoadedCases, broken_case
from ..skills.skill import Skill
from ..skills.suites.suite import Suite
from ..skills.task_set import TaskSet
from ..trials.arm import Arm
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import CHAT, ORACLE, Subject, takes_plugins
from ..trials.trial import Trial, judge_task, start_files, trials_of
from .case_file import CaseFile, Run
from .hooks import prompts, registered_checks
from .items import BrokenCaseItem, CaseItem, Unrunnable, is_trigger
from .paths import SkillSource, relative
from .pytest_options import message_of, spell
from .sandbox_choices import without_unrunnable

_MOST_CASES: Final = 10  # in a message
_NO_JUDGE: Final = "this needs a judge; add --skill-judge MODEL"
_NO_REFERENCE: Final = 'no "reference"'
_NO_SOLUTION: Final = "no solution/solve.sh"
_ONLY_OF_AGENTS: Final = "only checks of how an agent works, which no reference shows"
_NO_AGENT: Final = "add --skill-agent loop"
_NO_NETWORK: Final = "this needs the network; add --skill-allow-network"
_NAME_ONE: Final = "Name one: --skill-judge MODEL. To see the cases: --collect-only."


class SkillWarning(pytest.PytestWarning):
    """A skill can be tested, but something about it looks wrong."""

    kind = ""  # a run has one warning of a kind


def info_of(
    skill: Skill, label: str, path: str, settings: Settings, cases: Iterable[Case] = ()
) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))


class ReadSkill(NamedTuple):
    """What a run tests, with its cases by file, and tests that say what can't be
    read.
    """

    skill: Skill
    loaded: Sequence[LoadedCases[CheckedCase]]
    refused: Sequence[pytest.Item]


class SkillFile(CaseFile):
    """The file of a skill's cases.

    Its parent is the session: pytest imports the conftest.py of every folder that it
    enters, but testing a skill must not run its code.
    """

    conftests: Path | None = None  # the folder whose conftest files apply
    cases: tuple[Case, ...] = ()
    arms: tuple[Arm, ...] = ()
    collected: int | None = None  # how many tests it has; None if --lf passed it by
    unfit: str | None = None  # why no case can be asked
    for_agents: Collection[str] = ()  # cases that are not for chat, if there are others

    @classmethod
    def make(
        cls,
        session: pytest.Session,
        source: SkillSource,
        run: Run,
        file: Path | None = None,
    ) -> "SkillFile":
        """``file`` is that of the cases, unless it is the source's."""
        file = file or source.file
        # pytest gives all files outside the rootdir the same empty node id.
        nodeid = printable(relative(file, session.config.rootpath))
        node: SkillFile = cls.from_parent(
            session, path=file, name=nodeid, nodeid=nodeid
        )
        node.source, node.run, node.runnable = source, run, {}
        node.printable_path = Path(printable(str(file)))
        return node

    @property
    def ihook(self) -> Any:
        folder = self.conftests
        return self.session.gethookproxy(folder) if folder else self.session.ihook

    def collect(self) -> Iterator[pytest.Item]:
        self.conftests = self.run.load_conftests(self.source)
        try:
            items = self._items()
        except InputError as error:
            items = [Unrunnable.make(self, message_of(error, self.config))]
        self.collected = len(items)
        yield from items

    def _items(self) -> list[pytest.Item]:
        skill, loaded, refused = self.read()
        items = [item for of_file in loaded for item in self.of_file(skill, of_file)]
        kind = "query" if all(case.is_trigger for case in self.cases) else "case"
        asked = [item for item in items if kind == "query" or not is_trigger(item)]
        if not asked and not refused and not self.source.picks:
            self.unfit = f"no {kind} is for {', '.join(self.run.subjects.by_label)}"
            self._warn(self._cases_file, [] if items else [(1, self.unfit)])
        return [*refused, *items, *([] if refused else self.missing(items))]

    def read(self) -> "ReadSkill":
        """The skill with its cases; InputError if it can't be tested."""
        skill = load_entry(self.source.skill_file, self.run.settings)
        self.accepted = read_results(self.source.folder)
        for part in dict.fromkeys([skill, *skill.members]):
            faults = [(fault.line, fault.message) for fault in part.warnings]
            self._warn(part.file, faults, part.warnings[0].code if faults else "")
        self._require_skills(skill)
        loaded, refused = list[LoadedCases[CheckedCase]](), list[pytest.Item]()
        suites = self.source.suites
        if suites.cases and not suites.cases.is_empty:
            try:
                loaded += self._checked(suites.cases)
            except InputError as error:  # queries may be asked all the same
                refused = [Unrunnable.make(self, message_of(error, self.config))]
        for triggers in suites.triggers:
            loaded.append(
                with_checks(triggers, lambda case: checks_of(case, KINDS, {}))
            )
        self._take(skill, loaded, all_known=not refused)
        return ReadSkill(skill, loaded, refused)

    def _require_skills(self, skill: Skill) -> None:
        """InputError if a plugin has only what some agents of the run don't know."""
        agents = [subject.agent for subject in self.run.subjects.by_label.values()]
        without = [agent for agent in dict.fromkeys(agents) if not takes_plugins(agent)]
        if (
            not skill.members
            and without
            and isinstance(skill, Bundle)
            and without != [ORACLE]
        ):
            problem = (
                "this plugin has no skills, so it changes nothing for"
                f" {', '.join(without)}"
            )
            raise InputError(shown(skill.folder), problem, "Add --skill-agent claude.")

    def _take(
        self,
        skill: Skill,
        loaded: Sequence[LoadedCases[CheckedCase]],
        *,
        all_known: bool,
    ) -> None:
        """Set what tests need to know of all cases; not
        ``all_known`` if some can't be read.
        """
        broken = [case for of_file in loaded for case in of_file.broken]
        checked = [case for of_file in loaded for case in of_file.cases]
        self.cases = tuple(case for case, _ in checked)
        if ORACLE in self.run.subjects.agents:
            reasons = {
                case.id: _why_not_played(case, checks, self.run.settings)
                for case, checks in checked
            }
            self.not_played = {
                name: reason for name, reason in reasons.items() if reason
            }
        names = (*(case.id for case in self.cases), *(case.name for case in broken))
        self.siblings = names if self.source.has_own_cases and all_known else ()
        # A broken case counts, so that the run is known to lack it.
        self.runnable = {
            label: (
                Counter(case.is_trigger for case in broken)
                + Counter(c.is_trigger for c in self.cases if self._is_asked(c, label))
            )
            for label in self.run.subjects.by_label
        }
        for tag in sorted({tag for case in self.cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: tag of skill cases.")
        path = relative(self.source.folder, self.config.rootpath)
        self.info = info_of(
            skill, self.source.label, path, self.run.settings, self.cases
        )
        cases = [case for case in self.cases if not case.is_trigger]
        # A model without an agent chooses a skill as an agent does:
        # from those that are installed.
        agents = bool(self.run.subjects.agents) or any(
            c.asks_for_opening for c in self.cases
        )
        files = [of_file.file for of_file in loaded]
        if not isinstance(skill, TaskSet):
            self.arms = self.run.subjects.arm_maker.arms(
                skill, cases or None, agents=agents, case_files=files
            )

    def arms_for(self, case: Case, subject: Subject) -> tuple[Arm, ...]:  # noqa: ARG002
        """The arms of a case; InputError if its skills can't be read."""
        return self.run.subjects.arm_maker.with_own(self.arms, case)

    def of_file(
        self, skill: Skill, loaded: LoadedCases[CheckedCase]
    ) -> list[pytest.Item]:
        """The tests of a file's cases, by every agent and model that is to be asked."""
        self._warn(loaded.file, loaded.warnings)
        subjects, settings, label = (
            self.run.subjects,
            self.run.settings,
            self.source.label,
        )
        prompt = prompts(self.ihook, self.config, skill)
        judging = judge_task(settings, subjects.version_of)

        def trials(
            case: Case, checks: Sequence[AnyCheck], subject: Subject
        ) -> list[Trial]:
            rubric = rubric_for(checks, settings.judge, skill, judging)
            version = subjects.version_of(subject.agent)
            arms = self.arms_for(case, subject)
            return trials_of(
                label,
                case,
                subject,
                arms,
                settings=settings,
                rubric=rubric,
                prompt=prompt,
                version=version,
            )

        items, broken = list[CaseItem | BrokenCaseItem](), list(loaded.broken)
        for case, checks in loaded.cases:
            wanted = [
                subject
                for name, subject in subjects.by_label.items()
                if self.fits(case, name)
                and self.source.wants(case.id, name, subjects.usual)
            ]
            try:
                asked = [trials(case, checks, subject) for subject in wanted]
            except SkillError as error:  # of the case's own skills
                problem = (case.place_of("skills"), f"{error.where}: {error.problem}")
                broken.append(broken_case(loaded.file, case, [problem]))
                continue
            items += [
                CaseItem.make(self, loaded.file, case, checks, each) for each in asked
            ]
        items += self._broken(broken)
        items.sort(key=lambda item: item.place)  # as in the file
        return [*items]

    def _broken(self, broken: Iterable[BrokenCase]) -> list[BrokenCaseItem]:
        picks = dict(self.source.picks)
        picked = [case for case in broken if not picks or case.name in picks]
        return [BrokenCaseItem.make(self, case) for case in picked]

    def _is_asked(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model, which does not skip it."""
        is_oracle = self.run.subjects.by_label[label].agent == ORACLE
        skipped = case.skip or (is_oracle and case.id in self.not_played)
        return not skipped and self.fits(case, label)

    def fits(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model."""
        agent, model = self.run.subjects.by_label[label]
        if agent == ORACLE:
            return not case.is_trigger
        if agent == CHAT and case.id in self.for_agents:
            return False
        return case.is_for(label, model, self.run.subjects.model_ids[label])

    @property
    def _cases_file(self) -> Path:
        return self.source.suites.path or self.path

    def _checked(self, suite: Suite) -> list[LoadedCases[CheckedCase]]:
        """The cases of a suite that can run; InputError if there is none."""
        loaded = checked_suite(
            suite,
            registered_checks(self.ihook, self.config),
            allow_code=self.run.settings.allow_code,
            allowed_by=spell("allow_code"),
        )
        agents = {subject.agent for subject in self.run.subjects.by_label.values()}
        if agents != {CHAT}:
            cases = [checked for of_file in loaded for checked in of_file.cases]
            self.for_agents = {
                case.id for case, checks in cases if why_agent(case, checks)
            }
        settings, asks = self.run.settings, self.run.asks
        runnable = _only_runnable(
            loaded, partial(_why_not, settings=settings, agents=agents, asks=asks)
        )
        return runnable if agents == {CHAT} else without_unrunnable(runnable, settings)

    def _warn(
        self, file: Path, problems: Sequence[tuple[int, str]], kind: str = ""
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
            lint = f"pytest-upskill lint {shown(self.source.folder)}"
            text = f"{len(problems)} problems with its form ({lint}), first: {text}"
        warning = SkillWarning(one_line(text, None))  # pytest shows it as it is
        warning.kind = kind
        try:
            if not self.run.warned[kind]:
                warnings.warn_explicit(warning, None, printable(str(file)), line)
        except SkillWarning:  # -W error
            raise InputError(f"{shown(file)}:{line}", str(warning)) from None
        self.run.warned[kind] += 1

    @property
    def own_cases(self) -> tuple[Case, ...]:
        """The cases of this file."""
        return self.cases

    def missing(self, items: Sequence[pytest.Item]) -> Iterator[Unrunnable]:
        """The node ids on the command line that the file has no test for."""
        lines = {case.id: case.line for case in self.cases}
        broken = {item.name for item in items if isinstance(item, BrokenCaseItem)}
        names = {
            name for item in items for name in (item.name, item.name.partition("[")[0])
        }
        for case, label in dict.fromkeys(self.source.picks):
            name = f"{case}[{label}]" if label else case
            if name in names or case in broken:
                continue
            place = shown(self._cases_file)
            problem = f"no case {case!r}{_known_cases(case, [*lines, *broken])}"
            if case in lines:
                labels = [label] if label else self.run.subjects.usual
                place, problem = (
                    f"{place}:{lines[case]}",
                    f"this case is not for {', '.join(labels)}",
                )
            yield Unrunnable.make(self, harmless(f"{place}: {problem}"), name)


def _known_cases(case: str, names: Sequence[str]) -> str:
    """The case that is meant, else all cases of a file, unless they are many."""
    if meant := guess(case, names):
        return meant
    few = first_few([one_line(name, 60) for name in names], _MOST_CASES)
    return f"; the cases here: {few}" if few else ""


def require_judge(sources: Sequence[SkillSource]) -> None:
    """One error for all skills, if none of several can be tested without a judge."""
    has_triggers = any(source.suites.has_triggers for source in sources)
    if len(sources) > 1 and not has_triggers and all(map(_needs_judge, sources)):
        problem = f"all cases of these {len(sources):,} skills need a judge"
        raise SettingsError("judge", problem, _NAME_ONE)


def _needs_judge(source: SkillSource) -> bool:
    """Whether every case has a rubric; False if the file has other problems to
    report.
    """
    suite = source.suites.cases
    try:
        loaded = checked_suite(suite) if suite else []
    except InputError:
        return False
    cases = [checked for of_file in loaded for checked in of_file.cases]
    is_broken = any(of_file.broken for of_file in loaded)
    judged = [case for case, checks in cases if rubric_of(checks).texts]
    return bool(judged) and not is_broken and len(judged) == len(cases)


def _why_not(
    case: Case,
    checks: Sequence[AnyCheck],
    *,
    settings: Settings,
    agents: Collection[str],
    asks: bool,
) -> tuple[Location, str] | None:
    """Why a case can't run with these settings and agents, and where that is
    written.
    """
    judged = rubric_of(checks).texts and agents != {ORACLE}  # which skips it
    if asks and judged and not settings.judge:
        return case.place, _NO_JUDGE
    if agents == {CHAT}:
        reason = why_agent(case, checks) if asks else ""
        return (case.place, f"{reason}; {_NO_AGENT}") if reason else None
    if asks and case.sandbox.network and not settings.allow_network:
        return case.place, _NO_NETWORK
    try:
        start_files(case)
    except ValueError as error:
        return case.place_of("context", "files"), str(error)
    return None


def _why_not_played(case: Case, checks: Sequence[AnyCheck], settings: Settings) -> str:
    """Why the oracle skips a case; empty if it does not."""
    if case.reference is None:
        return _NO_SOLUTION if case.is_task else _NO_REFERENCE
    checks = asked_checks(checks, ORACLE)
    if not any(check.required for check in checks):
        return _ONLY_OF_AGENTS
    return _NO_JUDGE if rubric_of(checks).texts and not settings.judge else ""


def _only_runnable(
    loaded: Sequence[LoadedCases[CheckedCase]],
    why_not: Callable[[Case, Sequence[AnyCheck]], tuple[Location, str] | None],
) -> list[LoadedCases[CheckedCase]]:
    """Without cases that can't run; if no other can either,
    that is one error for the suite.
    """
    refused = {
        case.id: (of_file.file, case, problem)
        for of_file in loaded
        for case, checks in of_file.cases
        if (problem := why_not(case, checks))
    }
    if refused and len(refused) == sum(len(of_file.cases) for of_file in loaded):
        file, case, problem = next(iter(refused.values()))
        raise cases_error(file, [problem], case.line)
    return [
        of_file.only(
            [checked for checked in of_file.cases if checked[0].id not in refused],
            [
                broken_case(of_file.file, case, [refused[case.id][-1]])
                for case, _ in of_file.cases
                if case.id in refused
            ],
        )
        for of_file in loaded
    ]
