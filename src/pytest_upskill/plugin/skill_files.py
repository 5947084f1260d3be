"""A skill's file as pytest collects it: its cases become tests."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .._util.texts import guess, harmless, one_line
from ..checks import CheckedCase
from ..errors import InputError, SkillError, printable, shown
from ..skills.case import Case
from ..skills.kinds import CASE
from ..skills.loaded_cases import BrokenCase, broken_case
from .case_needs import played_by, why_unplayed
from .case_reading import read_skill, warn
from .item_reports import WrongAnswer
from .items import BrokenCaseItem, CaseItem, ItemOfFile, Unrunnable
from .paths import relative
from .pytest_options import message_of
from .run import PlannedTest, Run
from .skill_cases import CheckedFile, SkillCases
from .skill_source import SkillSource


def files_of(
    session: pytest.Session, source: SkillSource, run: Run
) -> "list[SkillFile]":
    """The files of a skill's cases that pytest collects; of a task set,
    those of its tasks.
    """
    files: list[SkillFile] = []
    for path in source.task_files or [source.file]:
        # pytest gives all files outside the rootdir the same empty node id.
        nodeid = printable(relative(path, session.config.rootpath))
        file = SkillFile.from_parent(
            session,
            path=path,
            name=nodeid,
            nodeid=nodeid,
            run=run,
            source=source,
            tasks=files,
        )
        files.append(file)
    return files


class SkillFile(pytest.File):
    """The file of a skill's cases.

    Its parent is the session: pytest imports the conftest.py of every folder that it
    enters, but testing a skill must not run its code.
    """

    def __init__(
        self,
        *,
        run: Run,
        source: SkillSource,
        tasks: "list[SkillFile]",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.source = source
        self.tasks = tasks  # this file and all others of its skill
        self.tested: SkillCases | None = None  # once it is read
        self.is_broken = False  # which is told of the first file that is collected
        self.conftests: Path | None = None  # the folder whose conftest files apply
        self.collected: int | None = None  # its tests; None if --lf passed it by
        self.unfit = ""  # why no case can be asked
        self.runnable: Mapping[str, Counter[str]] = {}  # by label

    @property
    def ihook(self) -> Any:
        folder = self.conftests
        return self.session.gethookproxy(folder) if folder else self.session.ihook

    @property
    def own_files(self) -> Sequence[CheckedFile]:
        """Those of a task, or all of its skill."""
        files = self.tested.files if self.tested else []
        if not self.source.task_files:
            return files
        return [of_file for of_file in files if of_file.file == self.path]

    @property
    def own_cases(self) -> list[Case]:
        return [case for of_file in self.own_files for case, _ in of_file.cases]

    @property
    def siblings(self) -> tuple[str, ...]:
        return self.tested.siblings if self.tested else ()

    def collect(self) -> Iterator[pytest.Item]:
        self.conftests = _load_conftests(self.run, self.source)
        try:
            items = self._make_items()
        except InputError as error:
            items = [self.make_unrunnable(message_of(error, self.config))]
        self.collected = len(items)
        yield from items

    def _make_items(self) -> list[pytest.Item]:
        tested = self._read()
        if not tested:
            return []

        labels = self.run.subjects.by_label
        self.runnable = {label: tested.count_runnable(label) for label in labels}
        cases = self._make_cases(tested)
        if self is not self.tasks[0]:
            return cases
        if tested.problem:
            return [self.make_unrunnable(tested.problem), *cases]
        if len(self.tasks) == 1:
            self._note_unfit(tested, cases)
        return [*cases, *self._make_missing(tested, cases)]

    def _read(self) -> SkillCases | None:
        """The cases of the skill, which the files of a task set share; None if one of
        these has told why they can't be read.
        """
        first = self.tasks[0]
        if first.tested is None and not first.is_broken:
            first.is_broken = True
            first.tested = read_skill(self.run, self.source, self.ihook)
        self.tested = first.tested
        return self.tested

    def _note_unfit(self, tested: SkillCases, items: Sequence[pytest.Item]) -> None:
        """Note if there is no case for any agent and model of the run."""
        nouns = {case.kind.noun for case, _ in tested.cases}
        noun = CASE.noun if CASE.noun in nouns or not nouns else nouns.pop()
        asked = any(
            not isinstance(item, CaseItem) or item.case.kind.noun == noun
            for item in items
        )
        if asked or self.source.picks:
            return

        self.unfit = f"no {noun} is for {', '.join(self.run.subjects.by_label)}"
        if not items:
            warn(self.run, self.source, self._cases_path, [(1, self.unfit)])

    @property
    def _cases_path(self) -> Path:
        return self.source.suites.path or self.path

    def _make_cases(self, tested: SkillCases) -> list[pytest.Item]:
        """The tests of cases, by every agent and model that is to be asked."""
        items: list[pytest.Item] = []
        for of_file in self.own_files:
            warn(self.run, self.source, of_file.file, of_file.warnings)
            of_this: list[ItemOfFile] = []
            broken = list(of_file.broken)
            for checked in of_file.cases:
                case, _ = checked
                try:
                    of_this += self._make_case(tested, of_file.file, checked)
                except SkillError as error:
                    # Of the case's own skills.
                    problem = f"{error.where}: {error.problem}"
                    problems = [(case.place_of("skills"), problem)]
                    broken.append(broken_case(of_file.file, case, problems))
            of_this += self._make_broken(broken)
            of_this.sort(key=lambda item: item.place)
            items += of_this
        return items

    def _make_case(
        self, tested: SkillCases, path: Path, checked: CheckedCase
    ) -> list[CaseItem]:
        """A test for each agent and model; SkillError if its skills can't be read."""
        case, checks = checked
        run = self.run
        items = []
        for label, subject in run.subjects.by_label.items():
            is_wanted = self.source.wants(case.id, label, run.subjects.usual)
            if not is_wanted or not tested.fits(case, label):
                continue

            # The files that a task names are beside it.
            case_folder = self.source.case_folder
            if self.source.task_files:
                case_folder = self.path.parent
            name = f"{case.id}[{label}]"
            played = (played_by(subject.agent, case), checks)
            planned = tested.plan(
                played,
                subject,
                case_folder=case_folder,
                nodeid=f"{self.nodeid}::{name}",
                file=relative(path, self.config.rootpath),
                of=self.runnable[label][case.kind.noun],
            )
            item = CaseItem.from_parent(
                self,
                name=name,
                skill=self.source.label,
                place=case.place,
                line=case.line if path == self.path else 1,
                checked=played,
                test=PlannedTest(tested.info, planned),
            )
            _mark(item, run)
            items.append(item)
        return items

    def _make_broken(self, broken: Iterable[BrokenCase]) -> Iterator[BrokenCaseItem]:
        picked = {case for case, _ in self.source.picks}
        for case in broken:
            if picked and case.name not in picked:
                continue
            item = BrokenCaseItem.from_parent(
                self,
                name=case.name,
                skill=self.source.label,
                place=case.place,
                line=case.line,
                message=message_of(case.error, self.config),
                # Nobody here wrote the tasks of a benchmark.
                can_mend=not self.source.task_files,
            )
            for mark in filter(None, ("skill", case.kind.mark)):
                item.add_marker(mark)
            yield item

    def _make_missing(
        self, tested: SkillCases, items: Sequence[pytest.Item]
    ) -> Iterator[Unrunnable]:
        """The node ids on the command line that the file has no test for."""
        lines = {case.id: case.line for case, _ in tested.cases}
        broken = [item.name for item in items if isinstance(item, BrokenCaseItem)]
        names = set()
        for item in items:
            names |= {item.name, item.name.partition("[")[0]}
        # Other files of a task set have tests for the others.
        elsewhere = lines if len(self.tasks) > 1 else {}
        for case, label in dict.fromkeys(self.source.picks):
            name = f"{case}[{label}]" if label else case
            if name in names or case in broken or case in elsewhere:
                continue

            place = shown(self._cases_path)
            problem = f"no case {case!r}{guess(case, [*lines, *broken])}"
            if case in lines:
                labels = [label] if label else self.run.subjects.usual
                place = f"{place}:{lines[case]}"
                problem = f"this case is not for {', '.join(labels)}"
            yield self.make_unrunnable(
                harmless(f"{place}: {problem}"),
                name=name,
                nodeid=f"{self.nodeid}::{name}",
            )

    def make_unrunnable(
        self, message: str, name: str = "", nodeid: str = ""
    ) -> Unrunnable:
        return Unrunnable.from_parent(
            self,
            name=name or self.source.label,
            nodeid=nodeid or self.nodeid,
            skill=self.source.label,
            message=message,
        )


def _mark(item: CaseItem, run: Run) -> None:
    case = item.case
    for name in filter(None, ("skill", case.kind.mark, *case.tags)):
        item.add_marker(name)
    skip = case.skip or why_unplayed(case, item.checks, run.settings)
    if skip:
        item.add_marker(pytest.mark.skip(reason=_write_reason(skip)))
    if case.xfail:
        reason = _write_reason(case.xfail)
        item.add_marker(pytest.mark.xfail(reason=reason, raises=WrongAnswer))


def _load_conftests(run: Run, source: SkillSource) -> Path | None:
    """The folder whose conftest files apply to a skill:
    the nearest that pytest has loaded.

    Those of the project are imported for it, once: if one is broken, that is an
    error of the first skill there, and pytest stops.
    """
    folder = source.conftests
    config = run.config
    manager = config.pluginmanager
    if folder and folder not in run.conftests:
        run.conftests.add(folder)
        manager._loadconftestmodules(
            folder,
            config.getoption("importmode"),
            rootpath=config.rootpath,
            consider_namespace_packages=config.getini("consider_namespace_packages"),
        )
    return next(filter(manager._getconftestmodules, source.folder.parents), folder)


def _write_reason(text: str) -> str:
    """On one line. pytest may wrap it anywhere, and no line of a
    log may begin with ``::``.

    GitHub would obey it as a command.
    """
    return one_line(text, None).replace("::", r"\u003a:")
