"""Skills and their cases as pytest nodes: file and item."""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from .._util.json_forms import Location, cases_error
from .._util.keys import without_keys
from .._util.texts import guess, harmless, one_line
from ..checks import (
    AnyCheck,
    CheckedCase,
    load_checked_cases,
    rubric_of,
    spans,
    why_agent,
)
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import CasesError, InputError, SettingsError, printable, shown
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import Look
from ..results.accepted import Results, case_result, planned_case, read_results
from ..results.regressions import Standing
from ..settings import Settings
from ..skills.case import Case, broken_case
from ..skills.context import load_for_run
from ..skills.loaded import BrokenCase, LoadedCases
from ..skills.skill import Skill
from ..trials.answer import Reply
from ..trials.outfit import Outfit, start_files
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.records import Record, dump_records
from ..trials.subject import CHAT, Subject
from ..trials.trial import Arm, Prompt, Question, Trial, trials_of
from .display import screen_of
from .hooks import prompts, registered_checks
from .options import message_of, spell
from .outcomes import (
    BROKEN_PROPERTY,
    RECORDS_PROPERTY,
    NotAnswered,
    WrongAnswer,
    is_expected_to_fail,
    judge_present,
)
from .paths import SkillSource, relative

_NO_JUDGE: Final = "this needs a judge; add --skill-judge MODEL"
_NO_AGENT: Final = "add --skill-agent loop"
_NO_NETWORK: Final = "this needs the network; add --skill-allow-network"
_NAME_ONE: Final = "Name one: --skill-judge MODEL. To see the cases: --collect-only."


class Run(Protocol):
    """What nodes need from their run."""

    settings: Settings
    subjects: dict[str, Subject]  # agents on models, by label
    model_ids: dict[str, str]  # by label
    usual: Collection[str]  # labels, without those that only node ids name
    asks: bool  # False with --collect-only and the like

    def outfit_of(
        self, agent: str, skill: Skill, cases: Sequence[Case] | None = None
    ) -> Outfit | None:
        """What an agent has in the trials of a skill; None for a plain completion."""
        ...

    def require_fit(self, agent: str, model: str) -> None:
        """InputError if an agent can't ask a model."""
        ...

    def load_conftests(self, folder: Path) -> None: ...

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...

    def runs_of(self, item: "CaseItem") -> int:
        """How many runs to make: more than the first few only if the verdict is open."""
        ...

    def regression_of(self, item: "CaseItem") -> Standing | None:
        """The standing of a case that regressed, seen with all others of its skill and model."""
        ...


class SkillWarning(pytest.PytestWarning):
    """A skill can be tested, but something about it looks wrong."""


def info_of(
    skill: Skill, label: str, path: str, settings: Settings, cases: Iterable[Case] = ()
) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))


def hooks_of_parent(node: Any) -> Any:
    """Use the conftest files of the parent node: pytest looks them up by path."""
    return node.parent.ihook


class SkillFile(pytest.File):
    """The file of a skill's cases.

    Its parent is the session: pytest imports the conftest.py of every folder that it enters, but
    testing a skill must not run its code.
    """

    source: SkillSource
    run: Run
    info: SkillInfo
    accepted: Results = {}  # noqa: RUF012 - replaced, never changed
    cases_path: str  # relative to the rootdir
    cases: tuple[Case, ...] = ()
    siblings: tuple[str, ...] = ()  # ids of all cases in the skill's own file
    runnable: dict[str, int]  # by label: the number of its cases that are not skipped
    collected: int | None = None  # how many tests it has; None if --lf passed it by
    unfit: str | None = None  # why no case can be asked
    for_agents: Collection[str] = ()  # cases that are not for chat, if there are others

    @classmethod
    def make(cls, session: pytest.Session, source: SkillSource, run: Run) -> "SkillFile":
        # pytest gives all files outside the rootdir the same empty node id.
        nodeid = printable(relative(source.file, session.config.rootpath))
        node: SkillFile = cls.from_parent(session, path=source.file, name=nodeid, nodeid=nodeid)
        node.source, node.run = source, run
        return node

    @property
    def ihook(self) -> Any:
        folder = self.source.conftests
        return self.session.gethookproxy(folder) if folder else self.session.ihook

    def collect(self) -> Iterator[pytest.Item]:
        if self.source.conftests:
            self.run.load_conftests(self.source.conftests)
        try:
            items = self._items()
        except InputError as error:
            items = [Unrunnable.make(self, message_of(error, self.config))]
        self.collected = len(items)
        yield from items

    def _items(self) -> list[pytest.Item]:
        skill = load_for_run(self.source.skill_file, self.run.settings)
        loaded = self._load_cases()
        self.accepted = read_results(self.source.folder)
        self._warn(skill.file, [(fault.line, fault.message) for fault in skill.warnings])
        self._warn(loaded.file, loaded.warnings)
        cases = loaded.cases
        root = self.config.rootpath
        path = relative(self.source.folder, root)
        asked = [case for case, _ in cases]
        self.info = info_of(skill, self.source.label, path, self.run.settings, asked)
        self.cases = tuple(asked)
        self.cases_path = relative(self._cases_file, root)
        ids = [*(case.id for case, _ in cases), *(broken.name for broken in loaded.broken)]
        self.siblings = tuple(ids) if self.source.has_own_cases else ()
        # A broken case counts, so that the run is known to lack it.
        self.runnable = {
            label: sum(not case.skip and self.fits(case, label) for case, _ in cases)
            + len(loaded.broken)
            for label in self.run.subjects
        }
        for tag in sorted({tag for case, _ in cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: tag of skill cases.")
        prompt = prompts(self.ihook, self.config)
        agents = {subject.agent for subject in self.run.subjects.values()}
        outfits = {agent: self.run.outfit_of(agent, skill, self.cases) for agent in agents}
        items: list[CaseItem | BrokenCaseItem] = [
            CaseItem.make(self, skill, case, checks, subject, prompt, outfits[subject.agent])
            for case, checks in cases
            for label, subject in self.run.subjects.items()
            if self.fits(case, label) and self.source.wants(case.id, label, self.run.usual)
        ]
        items += [
            BrokenCaseItem.make(self, broken)
            for broken in loaded.broken
            if not self.source.picks or broken.name in dict(self.source.picks)
        ]
        if not items and not self.source.picks:
            unfit = f"no case is for {', '.join(self.run.subjects)}"
            self._warn(self._cases_file, [(1, unfit)])
            self.unfit = unfit
        items.sort(key=lambda item: item.place)  # as in the file
        return [*items, *self._missing(items, loaded)]

    def fits(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model."""
        agent, model = self.run.subjects[label]
        if agent == CHAT and case.id in self.for_agents:
            return False
        return case.is_for(label, model, self.run.model_ids[label])

    @property
    def _cases_file(self) -> Path:
        return self.source.cases_file or self.path

    def _load_cases(self) -> LoadedCases[CheckedCase]:
        loaded = load_checked_cases(
            self._cases_file,
            registered_checks(self.ihook, self.config),
            folder=self.source.folder,
            allow_code=self.run.settings.allow_code,
            allowed_by=spell("allow_code"),
        )
        agents = {subject.agent for subject in self.run.subjects.values()}
        if agents != {CHAT}:
            self.for_agents = {case.id for case, checks in loaded.cases if why_agent(case, checks)}
        settings, asks = self.run.settings, self.run.asks
        return _without(loaded, partial(_why_not, settings=settings, agents=agents, asks=asks))

    def _warn(self, file: Path, found: Sequence[tuple[int, str]]) -> None:
        """Make one warning of all that is wrong with a file; lint shows everything."""
        if not found:
            return
        (line, text), *more = found
        if more:
            lint = f"pytest-upskill lint {shown(self.source.folder)}"
            text = f"{len(more) + 1} problems with its form ({lint}), first: {text}"
        text = one_line(text, None)  # pytest shows it as it is
        try:
            warnings.warn_explicit(SkillWarning(text), None, printable(str(file)), line)
        except SkillWarning:  # -W error
            raise InputError(f"{shown(file)}:{line}", text) from None

    def _missing(
        self, items: Sequence[pytest.Item], loaded: LoadedCases[CheckedCase]
    ) -> Iterator["Unrunnable"]:
        """The node ids on the command line that the file has no test for."""
        lines = {case.id: case.line for case, _ in loaded.cases}
        broken = {case.name: case.line for case in loaded.broken}
        found = {name for item in items for name in (item.name, item.name.partition("[")[0])}
        for case, label in dict.fromkeys(self.source.picks):
            name = f"{case}[{label}]" if label else case
            if name in found or case in broken:
                continue
            where, what = shown(self._cases_file), f"no case {case!r}{guess(case, lines | broken)}"
            if case in lines:
                labels = [label] if label else self.run.usual
                where, what = f"{where}:{lines[case]}", f"this case is not for {', '.join(labels)}"
            yield Unrunnable.make(self, harmless(f"{where}: {what}"), name)


def require_judge(sources: Sequence[SkillSource]) -> None:
    """One error for all skills, if none of several can be tested without a judge."""
    if len(sources) > 1 and all(map(_needs_judge, sources)):
        problem = f"all cases of these {len(sources):,} skills need a judge"
        raise SettingsError("judge", problem, _NAME_ONE)


def _needs_judge(source: SkillSource) -> bool:
    """Whether every case has a rubric; False if the file has other problems to report."""
    try:
        loaded = load_checked_cases(source.cases_file or source.file, folder=source.folder)
    except InputError:
        return False
    judged = _with_rubric(loaded)
    return bool(judged) and not loaded.broken and len(judged) == len(loaded.cases)


def _with_rubric(loaded: LoadedCases[CheckedCase]) -> list[Case]:
    return [case for case, checks in loaded.cases if rubric_of(checks).texts]


def _why_not(
    case: Case,
    checks: Sequence[AnyCheck],
    *,
    settings: Settings,
    agents: Collection[str],
    asks: bool,
) -> tuple[Location, str] | None:
    """Why a case can't run with these settings and agents, and where that is written."""
    if asks and rubric_of(checks).texts and not settings.judge:
        return case.place, _NO_JUDGE
    if agents == {CHAT}:
        why = why_agent(case, checks) if asks else ""
        return (case.place, f"{why}; {_NO_AGENT}") if why else None
    if asks and case.sandbox.network and not settings.allow_network:
        return case.place, _NO_NETWORK
    try:
        start_files(case)
    except ValueError as error:
        return case.place_of("context", "files"), str(error)
    return None


def _without(
    loaded: LoadedCases[CheckedCase],
    why_not: Callable[[Case, Sequence[AnyCheck]], tuple[Location, str] | None],
) -> LoadedCases[CheckedCase]:
    """Without cases that can't run; if no other can either, that is one error for the file."""
    refused = {
        case.place: (case, problem)
        for case, checks in loaded.cases
        if (problem := why_not(case, checks))
    }
    if refused and len(refused) == len(loaded.cases):
        raise cases_error(loaded.file, [next(iter(refused.values()))[1]])
    return loaded.only(
        [one for one in loaded.cases if one[0].place not in refused],
        [broken_case(loaded.file, case, [problem]) for case, problem in refused.values()],
    )


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: SkillFile
    place: Location
    line: int
    ihook = property(hooks_of_parent)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        shown: Any = super().repr_failure(excinfo, style)
        if isinstance(excinfo.value, pytest.fail.Exception):
            self._set_crash(shown, self._in_short(excinfo.value))
        return shown

    def _set_crash(self, shown: Any, text: str) -> None:
        """One line at the place of the case, for the short summary, JUnit and --tb=line."""
        if crash := getattr(shown, "reprcrash", None):
            crash.path, crash.lineno = printable(str(self.path)), self._line
            crash.message = harmless(text).split("\n")[0]
            if self.config.getoption("tbstyle", None) == "line":
                shown.reprtraceback.reprentries.clear()

    def _in_short(self, failure: BaseException) -> str:
        return str(failure)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # pytest shows it beside the node id if they differ.
        return Path(printable(str(self.path))), self._line - 1, self.name

    @property
    def _line(self) -> int:
        """The line of the case, if pytest collects the file that it is in."""
        return self.line if self.path == self.parent.source.cases_file else 1


class Unrunnable(ItemOfFile):
    """A skill that can't be tested, or a case that is not there: an ERROR with a message.

    Not an error of collection: pytest would run nothing else then, and xdist goes on regardless.
    """

    message: str
    line = 1

    @classmethod
    def make(cls, parent: SkillFile, message: str, case: str = "") -> "Unrunnable":
        nodeid = f"{parent.nodeid}::{case}" if case else parent.nodeid
        name = case or parent.source.label
        item: Unrunnable = cls.from_parent(parent, name=name, nodeid=nodeid)
        item.message = message
        return item

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        raise NotAnswered(self.message, pytrace=False)

    def shorten(self, longrepr: Any) -> None:
        """Without the file, which stands before it in the short summary."""
        self._set_crash(longrepr, self.message.removeprefix(f"{shown(self.path)}:").strip())

    def runtest(self) -> None:
        """Never called: setup fails."""


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nobody."""

    error: CasesError

    @classmethod
    def make(cls, parent: SkillFile, broken: BrokenCase) -> "BrokenCaseItem":
        nodeid = f"{parent.nodeid}::{broken.name}"
        item: BrokenCaseItem = cls.from_parent(parent, name=broken.name, nodeid=nodeid)
        item.place, item.line = broken.place, broken.line
        item.error = broken.error
        item.add_marker("skill")
        return item

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)

    @property
    def message(self) -> str:
        return message_of(self.error, self.config)

    def _in_short(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file and the line, which stand before it."""
        return self.error.problem


class CaseItem(ItemOfFile):
    """A case on a model."""

    case: Case
    checks: tuple[AnyCheck, ...]
    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._graded: dict[tuple[Arm, int], Record] = {}
        self._records: list[Record] = []

    @classmethod
    def make(
        cls,
        parent: SkillFile,
        skill: Skill,
        case: Case,
        checks: tuple[AnyCheck, ...],
        subject: Subject,
        prompt: Prompt,
        outfit: Outfit | None,
    ) -> "CaseItem":
        name = f"{case.id}[{subject.label}]"
        # From a whole node id pytest parses the parameter in brackets, which --lf needs.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.place, item.line = case.place, case.line
        label, settings = parent.source.label, parent.run.settings
        rubric = rubric_for(checks, settings.judge, skill)
        item._planned = planned_case(
            item.nodeid,
            case,
            trials_of(
                label,
                skill,
                case,
                subject.model,
                settings,
                rubric,
                prompt,
                outfit,
            ),
            settings,
            folder=parent.source.folder,
            file=parent.cases_path,
            accepted=parent.accepted,
            siblings=parent.siblings,
            of=parent.runnable[subject.label],
        )
        for mark in ("skill", *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=one_line(case.skip, None)))
        if case.xfail:
            reason = one_line(case.xfail, None)
            item.add_marker(pytest.mark.xfail(reason=reason, raises=WrongAnswer))
        return item

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error, not a failure."""
        if not self.parent.run.asks:
            return
        run = self.parent.run
        (self._records,) = records_of_items([self], run.runs_of(self), run.ask)
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # other trials may have been answered
            reasons = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            raise NotAnswered(f"{self.name}: {reasons}" if replayed else reasons, pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed."""
        self._send_records()
        planned = self.planned
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        run = self.parent.run
        standing = judge_present(
            self, run.settings, planned, result.count, lambda: run.regression_of(self)
        )
        if standing:
            reason = standing.reason if standing.kind == "regressed" else None
            raise WrongAnswer(without_keys(self._failure_text(reason)), pytrace=False)

    def _failure_text(self, regression: str | None) -> str:
        screen = screen_of(self.config)
        expected = [self.case.expected]
        if self.case.validator:
            expected.append(dict([self.case.validator]))
        return failure_text(
            self.trials[0].question.messages[-1][1],
            self._records,
            expected=expected,
            found=lambda answer: spans(self.checks, answer),
            against=self.parent.info.against,
            standing=regression,
            look=Look(screen.width, screen.marks, verbosity=self.config.get_verbosity()),
        )

    @property
    def planned(self) -> PlannedCase:
        """With the marks that it has by now."""
        return replace(self._planned, compared=not is_expected_to_fail(self))

    @property
    def lacks_judge(self) -> bool:
        """Only with --collect-only: in a run, such a case is broken."""
        return bool(rubric_of(self.checks).texts) and not self.parent.run.settings.judge

    @property
    def lacks_agent(self) -> bool:
        """The same for a case that needs an agent."""
        return self._planned.agent == CHAT and bool(why_agent(self.case, self.checks))

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self._planned.trials

    def _send_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]


def records_of_items(items: Sequence[CaseItem], runs: int, ask: Ask) -> list[list[Record]]:
    """The records of each item up to a number of runs; new questions are asked all at once."""
    wanted = [
        [trial for trial in item.trials if not trial.later or trial.run <= runs] for item in items
    ]
    new = [
        (item, trial)
        for item, trials in zip(items, wanted, strict=True)
        for trial in trials
        if (trial.arm, trial.run) not in item._graded
    ]
    to_grade = [ToGrade(trial, item.case, item.checks) for item, trial in new]
    sandbox = items[0].parent.run.settings.sandbox if items else "auto"
    records = records_of(to_grade, ask, sandbox)
    for (item, trial), record in zip(new, records, strict=True):
        item._graded[trial.arm, trial.run] = record
    return [
        [item._graded[trial.arm, trial.run] for trial in trials]
        for item, trials in zip(items, wanted, strict=True)
    ]
