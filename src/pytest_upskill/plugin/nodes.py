"""A skill's file as a pytest node: its cases and triggers, and what they need of the run."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from .._util.texts import guess, harmless, one_line
from ..checks import CheckedCase, load_checked_cases, why_agent
from ..errors import InputError, printable, shown
from ..results.accepted import Results, read_results
from ..results.regressions import Standing
from ..settings import Settings
from ..skills.case import Case
from ..skills.context import load_for_run
from ..skills.loaded import BrokenCase, LoadedCases
from ..skills.skill import Skill
from ..skills.triggers import LoadedTriggers
from ..trials.answer import Reply
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import CHAT
from ..trials.trial import Question
from .asked_item import AskedItem
from .case_items import CaseItem
from .hooks import prompts, registered_checks
from .items import BrokenCaseItem, Unrunnable
from .paths import SkillSource, relative
from .pytest_options import message_of, spell
from .run_subjects import RunSubjects
from .runnable import only_runnable, why_not
from .trigger_items import TriggerItem


class Run(Protocol):
    """What nodes need from their run."""

    settings: Settings
    subjects: RunSubjects
    asks: bool  # False with --collect-only and the like

    def load_conftests(self, folder: Path) -> None: ...

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...

    def runs_of(self, item: "CaseItem") -> int:
        """How many runs to make: more than the first few only if the verdict is open."""
        ...

    def regression_of(self, item: AskedItem) -> Standing | None:
        """The standing of a case that regressed, seen with all others of its skill and model."""
        ...


class SkillWarning(pytest.PytestWarning):
    """A skill can be tested, but something about it looks wrong."""


def info_of(
    skill: Skill, label: str, path: str, settings: Settings, cases: Iterable[Case] = ()
) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))


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
    queries: LoadedTriggers = LoadedTriggers()
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
        node.source, node.run, node.runnable = source, run, {}
        return node

    @property
    def ihook(self) -> Any:
        folder = self.source.conftests
        return self.session.gethookproxy(folder) if folder else self.session.ihook

    @cached_property
    def told_path(self) -> Path:
        """As pytest shows it."""
        return Path(printable(str(self.path)))

    @cached_property
    def has_lines(self) -> bool:
        """Whether it is the file that has the cases."""
        return self.path == self.source.cases_file

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
        self.accepted = read_results(self.source.folder)
        self._warn(skill.file, [(fault.line, fault.message) for fault in skill.warnings])
        root = self.config.rootpath
        self.cases_path = relative(self._cases_file, root)
        path = relative(self.source.folder, root)
        self.info = info_of(skill, self.source.label, path, self.run.settings)
        loaded = LoadedCases[CheckedCase](self._cases_file, ())
        items, refused = list[pytest.Item](), list[pytest.Item]()
        if self.source.asks_cases(self.run.settings):
            try:
                loaded = self._load_cases()
            except InputError as error:  # queries may be asked all the same
                refused = [Unrunnable.make(self, message_of(error, self.config))]
            else:
                items += self._of_cases(skill, loaded)
                cases = [case for case, _ in loaded.cases]
                self.info = info_of(skill, self.source.label, path, self.run.settings, cases)
        items += self._of_triggers(skill)
        if not items and not refused and not self.source.picks:
            what = "case" if loaded.cases else "query"
            self.unfit = f"no {what} is for {', '.join(self.run.subjects.by_label)}"
            self._warn(self._cases_file, [(1, self.unfit)])
        known = {case.id: case.line for case, _ in loaded.cases}
        known |= {one.id: one.line for one in self.queries.triggers}
        return [*refused, *items, *([] if refused else self._missing(items, known))]

    def _of_cases(self, skill: Skill, loaded: LoadedCases[CheckedCase]) -> list[pytest.Item]:
        self._warn(loaded.file, loaded.warnings)
        cases = loaded.cases
        self.cases = tuple(case for case, _ in cases)
        ids = [*(case.id for case, _ in cases), *(broken.name for broken in loaded.broken)]
        self.siblings = tuple(ids) if self.source.has_own_cases else ()
        # A broken case counts, so that the run is known to lack it.
        self.runnable = {
            label: sum(not case.skip and self.fits(case, label) for case, _ in cases)
            + len(loaded.broken)
            for label in self.run.subjects.by_label
        }
        for tag in sorted({tag for case, _ in cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: tag of skill cases.")
        prompt = prompts(self.ihook, self.config)
        agents = {subject.agent for subject in self.run.subjects.by_label.values()}
        outfits = {agent: self.run.subjects.outfit_of(agent, skill, self.cases) for agent in agents}
        items: list[CaseItem | BrokenCaseItem] = [
            CaseItem.make(self, skill, case, checks, subject, prompt, outfits[subject.agent])
            for case, checks in cases
            for label, subject in self.run.subjects.by_label.items()
            if self.fits(case, label) and self.source.wants(case.id, label, self.run.subjects.usual)
        ]
        items += self._broken(loaded.broken)
        items.sort(key=lambda item: item.place)  # as in the file
        return [*items]

    def _of_triggers(self, skill: Skill) -> list[pytest.Item]:
        """The queries, by every agent and model that is to be asked."""
        source, settings = self.source, self.run.settings
        taken = [*(case.id for case in self.cases), *self.siblings]
        self.queries = queries = source.load_triggers(taken)
        labels = {
            label: subject
            for label, subject in self.run.subjects.by_label.items()
            if source.asks_triggers(settings, subject.agent)
        }
        if not labels:
            return []
        for one in queries.warnings:
            self._warn(one.file, [(one.line, one.message)])
        among = {
            subject.agent: self.run.subjects.among(subject.agent, skill, self.cases or None)
            for subject in (labels.values() if queries.triggers else ())
        }
        found: list[pytest.Item] = [
            TriggerItem.make(self, trigger, subject, among[subject.agent])
            for trigger in queries.triggers
            for label, subject in labels.items()
            if source.wants(trigger.id, label, self.run.subjects.usual)
        ]
        return [*found, *self._broken(queries.broken, "trigger")]

    def _broken(self, broken: Iterable[BrokenCase], *marks: str) -> list[BrokenCaseItem]:
        picks = dict(self.source.picks)
        wanted = [one for one in broken if not picks or one.name in picks]
        return [BrokenCaseItem.make(self, one, *marks) for one in wanted]

    def fits(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model."""
        agent, model = self.run.subjects.by_label[label]
        if agent == CHAT and case.id in self.for_agents:
            return False
        return case.is_for(label, model, self.run.subjects.model_ids[label])

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
        agents = {subject.agent for subject in self.run.subjects.by_label.values()}
        if agents != {CHAT}:
            self.for_agents = {case.id for case, checks in loaded.cases if why_agent(case, checks)}
        settings, asks = self.run.settings, self.run.asks
        return only_runnable(loaded, partial(why_not, settings=settings, agents=agents, asks=asks))

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

    def _missing(self, items: Sequence[pytest.Item], lines: dict[str, int]) -> Iterator[Unrunnable]:
        """The node ids on the command line that the file has no test for."""
        broken = {item.name for item in items if isinstance(item, BrokenCaseItem)}
        found = {name for item in items for name in (item.name, item.name.partition("[")[0])}
        for case, label in dict.fromkeys(self.source.picks):
            name = f"{case}[{label}]" if label else case
            if name in found or case in broken:
                continue
            where = shown(self._cases_file)
            what = f"no case {case!r}{guess(case, [*lines, *broken])}"
            if case in lines:
                labels = [label] if label else self.run.subjects.usual
                where, what = f"{where}:{lines[case]}", f"this case is not for {', '.join(labels)}"
            yield Unrunnable.make(self, harmless(f"{where}: {what}"), name)
